"""Folds, selection by validation, results that survive a kill, tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from reproductions import protocol
from support.refusals import refused
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.measures import Measure


class FirstColumn:
    def __init__(self, sign=1.0):
        self.sign = sign

    def predict(self, data):
        return data.restore(self.sign * np.asarray(data.X[:, 0], dtype=float))


class TopGrade(Measure):
    """Grade of the top document: a measure that is obvious."""

    NAME = "TopGrade"

    def per_query(self, judgements, scores):
        bounds = zip(judgements.offsets[:-1], judgements.offsets[1:])
        return np.array([judgements.grades[a:b][np.argmax(scores[a:b])] for a, b in bounds])

    def mean(self, judgements, scores, query_weight=None):
        return float(self.per_query(judgements, scores).mean())


@pytest.fixture
def collection():
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(60, 2)), rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(20), 3))
    return protocol.Collection("toy", data, list(np.arange(20).reshape(5, 4)), "letor3")


def test_the_five_folds_test_every_query_once(collection):
    folds = protocol.letor_folds(collection)
    tested = np.concatenate([fold.test_queries for fold in folds])
    assert sorted(tested) == list(range(20))
    for number, fold in enumerate(folds, start=1):
        # Test part S_k, validation part S_(k-1), the other three train.
        test_part, valid_part = fold.test_queries[0] // 4 + 1, fold.valid_queries[0] // 4 + 1
        assert valid_part == (test_part - 2) % 5 + 1
        assert test_part == (number + 3) % 5 + 1
        assert not set(fold.train_queries) & (set(fold.valid_queries) | set(fold.test_queries))
        assert len(fold.train_queries) == 12
    assert folds[3].train_queries.tolist() == [*range(12, 20), *range(4)]  # S4 S5 S1, as published
    np.testing.assert_array_equal(folds[0].test.query_ids, np.arange(16, 20))


def test_random_folds_are_a_partition_and_repeatable(collection):
    first, again, other = (protocol.random_folds(collection.data, r, seed=3) for r in (0, 0, 1))
    assert sorted(np.concatenate([fold.test_queries for fold in first])) == list(range(20))
    assert all(np.array_equal(a.test_queries, b.test_queries) for a, b in zip(first, again))
    assert any(not np.array_equal(a.test_queries, b.test_queries) for a, b in zip(first, other))


def test_selection_looks_at_validation_alone_and_keeps_the_first_of_equals(collection):
    fold = protocol.letor_folds(collection)[0]
    candidates = [{"sign": 1.0}, {"sign": -1.0}, {"sign": 2.0}]
    chosen = protocol.select(candidates, lambda params, fold: FirstColumn(**params), fold, TopGrade())
    by_hand = [TopGrade().mean(fold.valid.judgements(), s * fold.valid.X[:, 0]) for s in (1, -1, 2)]
    assert chosen.values == by_hand
    assert chosen.params == candidates[int(np.argmax(by_hand))]
    with pytest.raises(InvalidInputError, match="no candidates"):
        protocol.select([], lambda params, fold: None, fold, TopGrade())


def test_pooled_values_are_in_the_order_of_the_queries(collection):
    folds = protocol.letor_folds(collection)
    values = [protocol.measure_test(FirstColumn(), fold, {"top": TopGrade()})["top"] for fold in folds]
    pooled = protocol.pool(folds, values)
    whole = TopGrade().per_query(collection.data.judgements(), collection.data.X[:, 0])
    np.testing.assert_array_equal(pooled, whole)
    assert protocol.mean_of_folds(folds, pooled) == pytest.approx(whole.mean())  # parts of equal size


def test_finished_pieces_survive_a_kill(tmp_path):
    path = tmp_path / "out" / "results.jsonl"
    store = protocol.ResultStore(path, {"seed": 0})
    assert store.compute({"fold": 1, "a": 2}, lambda: {"AP": np.array([0.1, np.nan])}) == {"AP": [0.1, None]}
    store.compute({"fold": 2}, lambda: 0.1 + 0.2)
    with path.open("a") as stream:
        stream.write('{"stamp": {"seed": 0}, "key": {"fo')  # the machine died here
    del store  # frees its file, as the end of its run does
    again = protocol.ResultStore(path, {"seed": 0})
    assert again.n_resumed == len(again) == 2
    assert {"fold": 2} in again
    assert again.compute({"a": 2, "fold": 1}, lambda: pytest.fail("computed twice")) == {"AP": [0.1, None]}
    assert again.compute({"fold": 2}, lambda: pytest.fail("computed twice")) == 0.1 + 0.2
    again.compute({"fold": 3}, lambda: 3)
    assert [json.loads(line)["key"]["fold"] for line in path.read_text().splitlines()] == [1, 2, 3]
    del again
    assert protocol.ResultStore(path, {"seed": 1}).n_resumed == 0
    path.write_text('{"stamp": {"seed": 0}, "key": {"fold": 1}, "result": null}\n')
    again = protocol.ResultStore(path, {"seed": 0})
    assert again.n_resumed == 0
    assert again.compute({"fold": 1}, lambda: 1) == 1
    del again
    assert protocol.ResultStore(path, {"seed": 0}).n_resumed == 1
    path.write_text("nonsense\n")
    with refused(DataFileError, code="other-lines", line=1):
        protocol.ResultStore(path)


def test_spread():
    assert protocol.spread([1.0, 3.0]) == {"n": 2, "mean": 2.0, "sd": pytest.approx(2**0.5), "min": 1.0, "max": 3.0}


def test_a_missing_part_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"S1\.txt"):
        protocol.load_collection(tmp_path, "mq2008")
    with pytest.raises(InvalidInputError, match="Choose"):
        protocol.load_collection(tmp_path, "mq2007")


@pytest.mark.data
def test_the_real_collections(collections):
    mq2008 = protocol.load_collection(collections, "mq2008")
    assert (mq2008.data.n_queries, mq2008.data.n_rows, mq2008.data.n_features) == (784, 15211, 46)
    assert [len(part) for part in mq2008.parts] == [157, 157, 157, 157, 156]
    ohsumed = protocol.load_collection(collections, "ohsumed")
    assert (ohsumed.data.n_queries, ohsumed.data.n_rows, ohsumed.data.n_features) == (106, 16140, 45)
    aggregated = protocol.load_collection(collections, "mq2008-agg")
    assert np.array_equal(aggregated.data.y, mq2008.data.y)
    assert np.isnan(aggregated.data.X).any()


def test_a_paired_comparison_counts_and_tests():
    a, b = np.array([0.5, 0.6, 0.7, 0.4, 0.9]), np.array([0.4, 0.6, 0.5, 0.5, 0.6])
    figures = protocol.compare_paired(a, b)
    assert figures["difference"] == pytest.approx(0.1)
    assert (figures["wins"], figures["losses"], figures["ties"]) == (3, 1, 1)
    t = 0.1 / ((a - b).std(ddof=1) / 5**0.5)
    assert figures["p_paired_t"] == pytest.approx(2 * stats.t.sf(t, 4))
    assert 0 < figures["p_randomisation"] <= 1
    assert 0 < figures["p_wilcoxon"] <= 1


@pytest.mark.parametrize("paper", ["svm_map", "letor", "descent", "calibration", "oblivious"])
def test_published_tables_name_their_source(paper):
    found = protocol.published(paper)
    assert all(found[name] for name in ("source", "page", "conditions"))


def test_letor_folds_test_each_part_once():
    assert protocol.letor_fold_parts(1) == ((1, 2, 3), 4, 5)
    assert sorted(protocol.letor_fold_parts(fold)[2] for fold in range(1, 6)) == [1, 2, 3, 4, 5]
    with pytest.raises(InvalidInputError):
        protocol.letor_fold_parts(0)


def test_random_trials_train_on_every_query_once_in_five():
    trials = protocol.random_trials(50, (10, 5, 35), 48, random_state=1)
    assert len(trials) == 48
    for first in range(0, 45, 5):
        trained = np.concatenate([trial[0] for trial in trials[first : first + 5]])
        assert sorted(trained.tolist()) == list(range(50))
    for trial in trials:
        assert [len(role) for role in trial] == [10, 5, 35]
        assert sorted(np.concatenate(trial).tolist()) == list(range(50))


def test_random_trials_give_every_query_each_role_equally_often():
    """With 50 trials of 10, 5 and 35 of 50 queries: 10, 5 and 35 times, as in SVM-MAP's experiment."""
    counts = np.zeros((3, 50), dtype=int)
    for trial in protocol.random_trials(50, (10, 5, 35), 50, random_state=3):
        for role, queries in enumerate(trial):
            counts[role, queries] += 1
    assert counts.tolist() == [[10] * 50, [5] * 50, [35] * 50]


def test_random_trials_of_different_orders_are_independent():
    """One circle would train 450 of the 1,225 pairs of queries together; independent draws train about 1,056."""
    together = np.zeros((50, 50), dtype=int)
    for train, _, _ in protocol.random_trials(50, (10, 5, 35), 50, random_state=0):
        together[np.ix_(train, train)] += 1
    pairs = int((together[np.triu_indices(50, 1)] > 0).sum())
    assert 950 < pairs < 1150
