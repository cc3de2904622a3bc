"""Ranks within queries and numbers of rows are recognised; ordinary whole numbers are not taken for them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from truerank.data.checkup import ranks_as_scores
from truerank.data.rank_columns import are_ranks, are_row_labels, count_rows


def lists(rng, m, low, high):
    return np.concatenate([[0], np.cumsum(rng.integers(low, high, m))])


def column(offsets, of):
    return np.concatenate([of(n) for n in np.diff(offsets).tolist()]).astype(float)


ORDINARY = {
    "counts": lambda rng, n: rng.poisson(rng.choice([1, 3, 10, 50]), n),
    "clicks": lambda rng, n: rng.geometric(0.3, n) - 1,
    "rounded BM25": lambda rng, n: np.round(rng.gamma(2, 5, n)),
    "BM25 with a digit": lambda rng, n: np.round(10 * rng.gamma(2, 5, n)),
    "numbers up to n": lambda rng, n: rng.integers(1, n + 1, n),
    "numbers up to 2 n": lambda rng, n: rng.integers(1, 2 * n + 1, n),
    "grades": lambda rng, n: rng.integers(0, 5, n),
    "flags": lambda rng, n: rng.integers(0, 2, n),
    "prices": lambda rng, n: rng.integers(1, 500, n),
    "years": lambda rng, n: rng.integers(1990, 2024, n),
    "ids": lambda rng, n: rng.choice(1000, n, replace=False),
    "heavy tail": lambda rng, n: rng.zipf(1.7, n),
}
RANKS = {
    "ranks": lambda rng, n: rng.permutation(n) + 1,
    "ranks from 0": lambda rng, n: rng.permutation(n),
    "points": lambda rng, n: n - np.arange(n),
    "ranks with gaps": lambda rng, n: rng.choice(3 * n // 2, n, replace=False) + 1,
}
METHODS = ("min", "max", "average", "dense")
SHAPES = [(3, 1, 4), (5, 2, 6), (10, 3, 12), (30, 1, 30), (100, 5, 60)]


@pytest.mark.parametrize("kind", ORDINARY)
def test_ordinary_numbers_are_not_ranks(kind):
    rng = np.random.default_rng(0)
    for trial in range(100):  # 1,200 columns in all
        offsets = lists(rng, *SHAPES[trial % len(SHAPES)])
        assert not are_ranks(column(offsets, lambda n: ORDINARY[kind](rng, n)), offsets), trial


@pytest.mark.parametrize("kind", RANKS)
def test_ranks_are_recognised_also_with_a_few_wrong_queries(kind):
    rng = np.random.default_rng(1)
    for trial in range(60):
        offsets = lists(rng, *[(5, 5, 12), (10, 4, 9), (100, 1, 30)][trial % 3])
        values = column(offsets, lambda n: RANKS[kind](rng, n))
        assert are_ranks(values, offsets)
        assert not are_ranks(values + 0.5, offsets)
        assert not are_ranks(-values, offsets)
    values[offsets[3] : offsets[4]] = np.nan
    assert are_ranks(values, offsets)


@pytest.mark.parametrize("method", METHODS)
def test_ranks_that_equal_values_share_are_recognised(method):
    rng = np.random.default_rng(2)
    for trial in range(60):
        offsets = lists(rng, *[(10, 8, 13), (20, 5, 12), (100, 1, 30)][trial % 3])
        values = column(offsets, lambda n: rankdata(rng.integers(0, 3 * n, n), method))
        assert are_ranks(values, offsets), trial
        assert not are_ranks(values + 0.25, offsets)
        assert not are_ranks(-values, offsets)


@pytest.mark.parametrize("kind", ORDINARY)
def test_equal_or_ordinary_numbers_of_all_rows_are_no_ranks(kind):
    rng = np.random.default_rng(3)
    for _ in range(100):
        offsets = lists(rng, 12, 1, 9)
        values = column(offsets, lambda n: ORDINARY[kind](rng, n))
        assert not ranks_as_scores({"a": values, "b": np.full(len(values), 4.5)}, offsets)
        ranks = {"all": rankdata(rng.normal(size=len(values)), "ordinal"), "rows": np.arange(len(values))}
        assert [remark.items for remark in ranks_as_scores(ranks, offsets)] == [["all", "rows"]]


def test_few_documents_prove_nothing():
    assert not are_ranks(np.array([1.0, 2.0, 3.0]), np.array([0, 3]))
    assert not are_ranks(np.tile([1.0, 0.0], 50), np.arange(0, 101, 2))  # a flag of pairs
    assert are_ranks(np.tile([2.0, 1.0], 50), np.arange(0, 101, 2))
    assert not are_ranks(np.ones(5), np.arange(6))  # lists of one document
    assert not are_ranks(np.zeros(0), np.array([0]))


def test_numbers_of_rows():
    assert count_rows(np.arange(12.0))
    assert count_rows(np.arange(1, 13))
    assert not count_rows(np.arange(5, 17.0))
    assert not count_rows(np.arange(4.0))
    shuffled = np.random.default_rng(0).permutation(1000)[:50]  # the index of a sample
    assert are_row_labels(shuffled)
    assert are_row_labels(shuffled.astype(float))
    for other in (shuffled + 0.5, shuffled - 1000, np.append(shuffled, shuffled[0]), np.array(["a"]), [np.nan]):
        assert not are_row_labels(np.asarray(other))
