"""Weights as numbers of copies, and quantiles of rows that count more than once: those of rows that stand repeated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csc_matrix

from truerank.matrices.binning import find_borders, scan_columns
from truerank.matrices.bundles import scan_sparse_columns
from truerank.matrices.row_copies import CopyUnit, RowCopies, different_weights
from truerank.trees.leaves.places import make_places, spread_evenly


@pytest.mark.parametrize(
    ("weight", "counts"),
    [
        ([1.0, 2.0, 1.0, 0.0], [1, 2, 1, 0]),
        ([0.1, 0.3, 0.2], [1, 3, 2]),
        ([2.0, 3.0], [2, 3]),
        ([17e50, 18e50], [17, 18]),
        ([4.0, 6.0, 0.0], [2, 3, 0]),
        ([5.0, 0.0, 5.0], [1, 0, 1]),
    ],
)
def test_whole_multiples_are_copies(weight, counts):
    copies = RowCopies.of(np.array(weight))
    assert copies.counts.tolist() == counts
    assert copies.total == copies.rows == copies.places == sum(counts)


def test_equal_weights_are_none():
    assert RowCopies.of(np.full(7, 0.3)) is None


def test_other_weights_are_rounded_to_a_tiny_unit():
    weight = np.random.default_rng(0).lognormal(size=500)
    copies = RowCopies.of(weight)
    assert copies.rows == 500
    np.testing.assert_allclose(copies.counts / copies.total, weight / weight.sum(), rtol=1e-6)
    for unit in (1e-30, 3.0, 1e30):
        again = RowCopies.of(unit * weight)
        assert (again.total, again.places) == (copies.total, copies.places)
        np.testing.assert_array_equal(again.counts, copies.counts)
    for least in (1e-90, 5e-324):
        assert RowCopies.of(np.array([least, 1e90])).counts.tolist() == [1, 1 << 30]


def test_copies_of_a_billion_rows_can_be_cut_into_parts():
    unit = CopyUnit.of(np.array([0.3, np.pi]), 10**9)
    assert not unit.whole
    assert int(unit.counts(np.array([np.pi]))[0]) * 10**9 * 2**18 < 2**63


def test_many_different_weights_are_cut_to_the_largest():
    weight = np.random.default_rng(1).permutation(np.arange(3000.0))
    found = different_weights(weight)
    assert (len(found), found[-1]) == (1025, 2999)
    halves = different_weights(np.append(different_weights(weight[:1500]), different_weights(weight[1500:])))
    np.testing.assert_array_equal(halves, found)


small = st.integers(-4, 4)


@given(st.data(), st.integers(1, 60), st.integers(1, 9), st.integers(2, 9))
def test_borders_and_places_are_those_of_repeated_rows(data, n, parts, limit):
    column = data.draw(hnp.arrays(np.float64, n, elements=st.one_of(small.map(float), st.just(np.nan))))
    copies = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))

    def look(_, values, ends):
        borders = find_borders(values, parts, ends)
        places = make_places(values, borders, limit, ends)
        spread = spread_evenly(values, 7, ends)
        return [borders, places.lower, places.upper, places.starts, spread]

    repeated = np.repeat(column, copies)[:, None]
    if not len(repeated):
        return
    (expected,) = scan_columns(repeated, look)
    sparse = csc_matrix(column[:, None])
    for found in (
        scan_columns(column[:, None], look, copies=copies),
        scan_sparse_columns(sparse, look, copies=copies),
    ):
        for a, b in zip(found[0], expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_columns_are_sorted_with_their_copies(dtype):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((6000, 3)).astype(dtype)
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    for copies in (rng.integers(0, 4, 6000), rng.integers(1, 1 << 30, 6000)):
        before = X.copy()
        found = scan_columns(X, lambda k, values, ends: (values, ends), copies=copies)
        np.testing.assert_array_equal(X, before)
        for column, (values, ends) in zip(X.T, found, strict=True):
            seen = ~np.isnan(column) & (copies > 0)
            np.testing.assert_array_equal(values, np.sort(column[seen]))
            last = np.append(values[1:] != values[:-1], True)
            expected = [copies[seen & (column <= value)].sum() for value in values[last]]
            np.testing.assert_array_equal(ends[last], expected)


def test_places_are_fewer_than_copies_where_these_are_too_many():
    values, ends = np.array([1.0, 2.0, 3.0, 4.0]), np.cumsum([10, 1, 1, 1000])
    table = make_places(values, np.empty(0), 9, ends, 0.1)
    assert table.starts.tolist() == [0, 1, 2, 3, 101]  # a place a knot at least
