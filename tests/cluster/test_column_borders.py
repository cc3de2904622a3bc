"""Borders of columns in partitions are those of one machine, however small the summaries they are found with."""

from __future__ import annotations

import numpy as np
import pytest

from truerank import ObliviousBoosting, RankingData
from truerank.cluster import from_parts
from truerank.matrices.binning import find_borders, scan_columns
from truerank.matrices.row_copies import RowCopies
from truerank.trees import column_borders as module


def columns(n, rng):
    """Columns that are smooth, skewed, tied, rare, constant, missing, with zeros of both signs."""
    X = rng.standard_normal((n, 9))
    X[:, 1] = np.exp(4 * X[:, 1])
    X[:, 2] = np.rint(20 * X[:, 2])
    X[:, 3] = np.where(rng.random(n) < 0.97, 7.0, X[:, 3])
    X[:, 4] = 1.0
    X[rng.random(n) < 0.4, 5] = np.nan
    X[:, 6] = np.nan
    X[:, 7] = np.where(rng.random(n) < 0.5, rng.choice([0.0, -0.0], n), np.abs(X[:, 7]))
    X[:, 8] = np.arange(n)
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("parts", "k"), [(3, 1), (3, 13), (20, 5), (140, 1)])
def test_borders_are_exact_however_much_summaries_are_cut(monkeypatch, dtype, parts, k):
    monkeypatch.setattr(module, "ROUGH", 1024)
    monkeypatch.setattr(module, "LIMIT", 8192 if parts > 100 else 2048)
    monkeypatch.setattr(module, "_VALUES", 4 * 20_000 // k)
    monkeypatch.setattr(module, "_FEWEST", 1)
    X = columns(20_000, np.random.default_rng(k)).astype(dtype)
    data = RankingData(X, np.zeros(len(X)), np.arange(len(X)) // 10)
    own = from_parts([data.take_queries(np.arange(i, data.n_queries, k)) for i in range(k)])
    before = own.crew.n_rounds
    found = module.column_borders(own, parts)
    assert own.crew.n_rounds - before >= 6
    for border, column in zip(found, X.T, strict=True):
        expected = find_borders(np.sort(column[~np.isnan(column)]), parts)
        assert border.dtype == np.float64
        np.testing.assert_array_equal(border, expected)


@pytest.mark.parametrize("whole", [True, False])
def test_weighed_borders_are_exact_however_much_summaries_are_cut(monkeypatch, whole):
    monkeypatch.setattr(module, "ROUGH", 1024)
    monkeypatch.setattr(module, "LIMIT", 2048)
    rng = np.random.default_rng(8)
    X = columns(20_000, rng)
    weight = rng.integers(0, 4, len(X)).astype(float) if whole else rng.lognormal(size=len(X))
    data = RankingData(X, np.zeros(len(X)), np.arange(len(X)) // 10, sample_weight=weight)
    own = from_parts([data.take_queries(np.arange(i, data.n_queries, 5)) for i in range(5)])
    expected = scan_columns(
        X, lambda k, values, ends: find_borders(values, 20, ends), copies=RowCopies.of(weight).counts
    )
    for border, column in zip(module.column_borders(own, 20, module.copy_unit(own)), expected, strict=True):
        np.testing.assert_array_equal(border, column)


@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_found_in_three_and_more_narrowings(seed):
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.gamma(0.3, size=rng.integers(1, 20_000))) for _ in range(rng.integers(1, 20))]
    whole = np.sort(np.concatenate(parts))
    ranks = np.sort(rng.integers(0, len(whole), 5))

    def summary(values):
        total = None
        for own in values:
            one = module.ColumnSummary.of(own, 512)
            total = one if total is None else total.merged(one)
        return total

    search, narrowings = module.RankSearch(ranks, summary(parts)), 0
    while search.found is None:
        low, high = search.between
        inside = [np.concatenate([own[(own > a) & (own <= b)] for a, b in zip(low, high)]) for own in parts]
        below = np.searchsorted(whole, low, side="right")
        search.take(np.array([below, np.searchsorted(whole, high, side="right") - below]), summary(inside))
        narrowings += 1
        assert narrowings < 20
    np.testing.assert_array_equal(search.found, whole[ranks])


def test_trees_beyond_the_limit_of_a_summary_have_the_bits_of_one_machine(monkeypatch):
    monkeypatch.setattr(module, "ROUGH", 1024)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6_000, 4)).astype(np.float32)
    data = RankingData(X, np.clip(np.rint(X[:, 0] + X[:, 1] * X[:, 2] + 1), 0, 3), np.arange(6_000) // 20)
    one = ObliviousBoosting("constant", n_estimators=4, depth=3, borders=16, n_jobs=1).fit(data)
    parts = [data.take_queries(np.arange(i, data.n_queries, 5)) for i in range(5)]
    many = ObliviousBoosting("constant", n_estimators=4, depth=3, borders=16, n_jobs=1).fit(from_parts(parts))
    np.testing.assert_array_equal(one.tree_borders_, many.tree_borders_)
    np.testing.assert_array_equal(one.predict(X), many.predict(X))
