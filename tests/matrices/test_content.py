"""Order by content and column scales: what does not depend on where a row stands, nor on how it is kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from truerank.data.ranking_data import RankingData
from truerank.matrices import content
from truerank.matrices.binned import BinnedMatrix
from truerank.matrices.content import content_hashes, order_by_content
from truerank.rankers.sums.linear import LinearProblem


def shuffled(seed, m=12, p=4):
    """The same queries twice: as made, and with queries and rows in another order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, m)
    X = np.round(rng.normal(size=(sizes.sum(), p)), 1)
    X[rng.random(X.shape) < 0.4] = 0.0
    X[1] = X[0]
    y, qid = rng.integers(0, 3, len(X)).astype(float), np.repeat(np.arange(m), sizes)
    moved = np.concatenate([rng.permutation(np.flatnonzero(qid == q)) for q in rng.permutation(m)])
    return RankingData(X, y, qid), RankingData(X[moved], y[moved], qid[moved])


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "binned"])
@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_rows_and_queries_becomes_one(seed, kind):
    def kept(X):
        if kind == "binned":
            return BinnedMatrix.from_values(X, [[-0.5, 0.5]] * X.shape[1])
        return {"dense": X, "float32": X.astype(np.float32), "sparse": sparse.csr_matrix(X)}[kind]

    results = []
    for data in shuffled(seed):
        rows, queries = order_by_content(kept(data.X), data.y, data.offsets)
        assert np.array_equal(np.sort(rows), np.arange(data.n_rows))
        offsets = np.concatenate([[0], np.cumsum(np.diff(data.offsets)[queries])])
        assert np.array_equal(data.query_index[rows], np.repeat(queries, np.diff(offsets)))
        X = kept(data.X)[rows]
        X = X.codes if kind == "binned" else X.toarray() if kind == "sparse" else X
        results.append((X, data.y[rows], offsets))
    for one, other in zip(*results):
        assert np.array_equal(one, other)


def test_weights_tell_equal_queries_apart_and_signs_of_zero_do_not():
    X, y, offsets = np.array([[1.0], [1.0]]), np.array([1.0, 1.0]), np.array([0, 1, 2])
    assert order_by_content(X, y, offsets, np.array([2.0, 1.0]))[1].tolist() == [1, 0]
    assert order_by_content(X, y, offsets, np.array([1.0, 2.0]))[1].tolist() == [0, 1]
    one, other = np.array([[0.0, 3.0], [1.0, 2.0]]), np.array([[-0.0, 3.0], [1.0, 2.0]])
    rows = [order_by_content(X, y, np.array([0, 2]))[0].tolist() for X in (one, other)]
    assert rows[0] == rows[1]


def scales_of(X, qid):
    data = RankingData(X, np.zeros(X.shape[0]), qid)
    return LinearProblem(data.in_parts(None), "auto").scale


def test_scales_are_the_spread_within_queries_to_a_power_of_two():
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(20), 10)
    X = rng.normal(size=(200, 4)) * [1.0, 1e-3, 5e6, 0.0] + 1e9 * query[:, None] * [0, 0, 1, 1]
    scale = scales_of(X, query)
    assert np.array_equal(np.log2(scale[:3]), np.round(np.log2([1.0, 1e-3, 5e6])))
    assert scale[3] == 0.0
    assert scales_of(X[:, :1], query) is None
    assert scales_of(X[:, [0, 0]] * [1.0, 0.02], query) is None
    assert scales_of(X[:, 3:], query) is None


def test_scales_of_huge_sparse_and_binned_columns():
    X = np.array([[1e300, 0.0], [-1e300, 1.0], [0.0, 2.0]])
    for rows in (X, sparse.csr_matrix(X)):
        scale = scales_of(rows, np.zeros(3))
        assert 1e299 < scale[0] < 1e301
        assert 0.5 <= scale[1] <= 2
    binned = BinnedMatrix.from_values(X, [[0.0], [0.0]])
    assert scales_of(binned, np.zeros(3)) is None


@pytest.mark.parametrize("m", [7, 70_000])
def test_the_fast_sort_of_the_rows_is_the_one_by_three_keys(m):
    rng = np.random.default_rng(m)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 20 if m < 10 else 3, m))])
    X, y = rng.integers(0, 4, (offsets[-1], 2)).astype(float), rng.integers(0, 3, offsets[-1]).astype(float)
    rows, queries = order_by_content(X, y, offsets)
    keys, grades, *_ = content_hashes(X, y, offsets)
    assert len(np.unique(keys)) < len(keys)
    place = np.empty(m, dtype=np.int64)
    place[queries] = np.arange(m)
    assert np.array_equal(rows, np.lexsort((grades, keys, np.repeat(place, np.diff(offsets)))))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("rounded", [False, True])
def test_few_values_have_the_hashes_that_many_have(monkeypatch, dtype, rounded):
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(500, 7)) * 3, 1)
    X[rng.random(X.shape) < 0.3] = -0.0
    X = X.astype(dtype)
    if X.dtype.kind == "f" and rounded:
        X[5, 2] = np.nan
    few = content.row_hashes(X, rounded)
    monkeypatch.setattr(content, "_FEW", 0)
    assert np.array_equal(few, content.row_hashes(X, rounded))


def test_few_rows_have_the_order_that_many_have(monkeypatch):
    data, _ = shuffled(3, m=40)
    few = [*order_by_content(data.X, data.y, data.offsets), *content_hashes(data.X, data.y, data.offsets)]
    monkeypatch.setattr(content, "_FEW", 0)
    many = [*order_by_content(data.X, data.y, data.offsets), *content_hashes(data.X, data.y, data.offsets)]
    assert all(map(np.array_equal, few, many))
