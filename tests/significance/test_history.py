"""A history of comparisons: looks at the same queries spend the level, in one format for every command."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import compare
from truerank.cli import main
from truerank.core.locks import locked
from truerank.significance.history import History, judgement_digests, level_of


def trec(seed, topics=40):
    """Qrels of some topics with one relevant document, and runs that find it at random ranks."""
    rng = np.random.default_rng(seed)
    qrels = {f"q{k}": {f"d{j}": int(j == 0) for j in range(5)} for k in range(topics)}
    runs = {
        name: {q: dict(zip(documents, rng.random(5) + shift * (np.arange(5) == 0))) for q, documents in qrels.items()}
        for name, shift in (("old", 0.0), ("new", 0.2), ("other", 0.1))
    }
    return qrels, runs


def test_later_looks_multiply_p_and_widen_the_interval():
    qrels, runs = trec(0)
    history = History()
    first = compare(qrels, {k: runs[k] for k in ("old", "new")}, "RR", history=history)
    assert (first.look, first.level) == (1, 0.05)
    second = compare(qrels, {k: runs[k] for k in ("old", "other")}, "RR", history=history)
    plain = compare(qrels, {k: runs[k] for k in ("old", "other")}, "RR")
    assert (second.look, second.level) == (2, level_of(2, 0.05))
    assert second.pairs[0].p_adjusted == pytest.approx(min(1.0, 2 * plain.pairs[0].p_adjusted))
    assert second.pairs[0].low < plain.pairs[0].low
    assert second.pairs[0].p == plain.pairs[0].p
    again = compare(qrels, {k: runs[k] for k in ("old", "new")}, "RR", history=history)
    assert again.look == 1  # the same results
    assert again.pairs == first.pairs
    assert max(history.looks.values()) == 2


def test_queries_are_the_same_whatever_a_run_retrieves():
    qrels, runs = trec(1)
    history = History()
    compare(qrels, {"old": runs["old"], "new": runs["new"]}, "RR", history=history)
    few = {name: {q: dict(list(own.items())[:3]) for q, own in runs[name].items()} for name in ("other", "old")}
    assert compare(qrels, few, "RR", history=history).look == 2
    judged = {q: own | {"d1": 1} for q, own in qrels.items()}
    assert compare(judged, few, "RR", history=history).look == 1  # other judgements


def test_rows_in_another_order_are_the_same_queries():
    rng = np.random.default_rng(2)
    y, qid = rng.integers(0, 3, 60), np.repeat(np.arange(12), 5)
    order = rng.permutation(60)
    history = History()
    compare(y, {"a": rng.random(60), "b": rng.random(60)}, qid=qid, history=history)
    scores = {"a": rng.random(60), "b": rng.random(60)}
    assert compare(y[order], scores, qid=qid[order], history=history).look == 2


def test_a_failed_comparison_counts_nothing():
    qrels, runs = trec(3)
    history = History()
    with refused(ValueError, argument="baseline"):
        compare(qrels, {k: runs[k] for k in ("old", "new")}, "RR", baseline="none", history=history)
    assert history == History()


def test_null_systems_one_after_another_are_seldom_better():
    rng, found = np.random.default_rng(4), 0
    for _ in range(60):
        y, qid = rng.integers(0, 2, 150), np.repeat(np.arange(30), 5)
        history, old = History(), rng.random(150)
        shown = [
            compare(y, {"old": old, "new": rng.random(150)}, "RR", qid=qid, test="t", history=history) for _ in range(8)
        ]
        assert [one.look for one in shown] == list(range(1, 9))
        found += any(one.pairs[0].p_adjusted < 0.05 and one.pairs[0].difference > 0 for one in shown)
    assert found <= 8  # expected at most 3 of 60


def test_the_command_counts_reports_and_locks(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qrels, runs = trec(5)
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {d} {g}\n" for q, own in qrels.items() for d, g in own.items()))
    for name, run in runs.items():
        lines = [f"{q} Q0 {d} 1 {score} x\n" for q, own in run.items() for d, score in own.items()]
        (tmp_path / name).write_text("".join(lines))
    words = ["compare", "--qrels", "qrels", "--measure", "RR", "--history", "h.json"]
    assert main([*words, "old", "new"]) == 0
    out, err = capsys.readouterr()
    assert "h.json does not exist" in err
    assert out.count("If you chose among systems on these queries, put all of them into one comparison.") == 1
    assert main([*words, "old", "other"]) == 0
    out, err = capsys.readouterr()
    assert "h.json" not in err
    assert "look 2 at these queries (times 2)" in out
    assert "difference, 97.5%" in out
    assert main([*words, "old", "new", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["look"], report["level"]) == (1, 0.05)
    before = (tmp_path / "h.json").read_bytes()
    assert main([*words, "old", "missing"]) != 0
    with locked("h.json"):
        assert main([*words, "old", "other"]) == 1
    assert (tmp_path / "h.json").read_bytes() == before
    assert sorted(json.loads(before)) == ["looks", "references", "results"]


def test_digests_depend_on_names_and_grades():
    qrels, runs = trec(6, topics=3)
    from truerank.io.trec import judge_run

    first = judgement_digests(judge_run(qrels, runs["old"])[0])
    assert len(set(first.tolist())) == 3
    assert judgement_digests(judge_run({"q1": qrels["q1"]}, runs["new"])[0]).tolist() == [first[1]]


def test_the_order_of_rows_and_systems_makes_no_new_look():
    qrels, runs = trec(3)
    history = History()
    pair = {name: runs[name] for name in ("old", "new")}
    assert compare(qrels, pair, "RR", baseline="old", history=history).look == 1
    turned = dict(reversed(qrels.items()))
    for judgements, systems in ((turned, pair), (qrels, dict(reversed(pair.items())))):
        assert compare(judgements, systems, "RR", baseline="old", history=history).look == 1
    assert compare(qrels, pair, "RR", baseline="new", history=history).look == 1 + (len(history.results) > 1)
