"""The AdaRank experiment on made-up queries: trials, resuming, the trivial rankers."""

from __future__ import annotations

import argparse
import json

import numpy as np
from reproductions.adarank import trials

from reproductions import protocol
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure


class Terms:
    """Term statistics whose BM25 is a column of the data."""

    streams = ("title", "abstract")

    def __init__(self, data):
        self._column = data.X[:, 10]

    def bm25(self, stream, k1, b):
        return self._column if stream == "abstract" else -self._column


def test_the_papers_protocol_runs_resumes_and_draws(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(240, 41)), 1)
    y = np.clip(np.round(X[:, 10] + X[:, 1] + rng.normal(size=240)), 0, 2)
    data = RankingData(X, y, np.repeat(np.arange(20), 12))
    collection = protocol.Collection("ohsumed", data, list(np.arange(20).reshape(5, 4)), "letor3")
    monkeypatch.setattr(protocol, "load_collection", lambda root, name: collection)
    monkeypatch.setattr(trials, "read_terms", lambda path, data: Terms(data))
    parser = argparse.ArgumentParser()
    trials.configure(parser)
    args = parser.parse_args(["--data", "nowhere", "--quick", "--out", str(tmp_path), "--json"])
    first = trials.run(args)["trials"]
    capsys.readouterr()
    monkeypatch.setattr(trials, "_fit", lambda *arguments: 1 / 0)
    whole = trials.run(args)
    trials.print_tables(whole)
    printed = capsys.readouterr()
    assert "finished pieces found" in printed.err
    result = whole["trials"]
    assert json.dumps(first["tests"]) == json.dumps(result["tests"])
    assert set(result["means"]) == set(trials.ROWS)
    assert f"{result['means']['RankBoost']['AP(rel=2)']['mean']:.4f}" in printed.out
    assert {one["stream"] for one in result["bm25"]} == {"abstract"}
    assert all(row["AP(rel=2)"]["n"] == 2 for row in result["means"].values())
    assert sum(result["groups"]["queries"]) == 15
    assert len(trials.figures(whole)) == 7
    for found in result["training"].values():
        assert found["trials"] == 8
        assert found["own measure ahead"] + found["behind"] <= 8
    # A column that is the best by a measure is never behind the best by the other one.
    assert [result["training"][f"{m} (best single feature)"]["behind"] for m in trials.TRAINED] == [0, 0]


def test_the_single_feature_is_the_best_of_all_columns():
    rng = np.random.default_rng(2)
    data = RankingData(rng.normal(size=(80, 5)), rng.integers(0, 3, 80), np.repeat(np.arange(8), 10))
    fold = trials.four_trials(data, 0)[0][0]
    found = trials._single_feature(fold)
    measure = parse_measure("AP(rel=2)", convention="ranklib")
    values = [measure.mean(fold.train.judgements(), np.ascontiguousarray(x)) for x in fold.train.X.T]
    assert found["column"] == int(np.argmax(values))
    assert abs(found["train"]["AP(rel=2)"]["AP(rel=2)"] - max(values)) < 1e-12


def test_trials_test_every_query_once_and_train_on_the_others():
    data = RankingData(np.zeros((30, 1)), np.arange(30) % 3, np.repeat(np.arange(10), 3))
    folds, parts = trials.four_trials(data, 3)
    assert sorted(np.concatenate(parts)) == list(range(10))
    for fold in folds:
        assert not set(fold.train_queries) & set(fold.test_queries)
        assert len(fold.train_queries) + len(fold.test_queries) == 10
    again, _ = trials.four_trials(data, 3)
    assert all(np.array_equal(a.test_queries, b.test_queries) for a, b in zip(folds, again))
    other, _ = trials.four_trials(data, 4)
    assert any(not np.array_equal(a.test_queries, b.test_queries) for a, b in zip(folds, other))
