import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.matrices import binning
from truerank.matrices.binning import MISSING, code_columns, code_rows, find_borders, scan_columns


def test_columns_without_borders_are_last():
    X = np.stack([np.zeros(5), np.arange(5.0), np.full(5, np.nan), np.arange(5.0) % 2], axis=1)
    borders = [np.empty(0), np.arange(4.0), np.empty(0), np.zeros(1)]
    matrix = code_rows(X, borders)
    assert matrix.slots.tolist() == [2, 0, 3, 1]
    assert matrix.has_missing.tolist() == [False, False, True, False]
    expected = [[0] * 5, [0, 1, 2, 3, 4], [MISSING] * 5, [0, 1, 0, 1, 0]]
    for k, codes in enumerate(expected):
        assert matrix.column(k).tolist() == codes
        words, shift = matrix.codes_at(k)
        assert ((words >> shift) & np.uint64(255)).tolist() == codes


def test_least_and_largest_value_of_each_part():
    assert find_borders(np.arange(12.0), 3).tolist() == [0, 3, 4, 7, 8]


def test_parts_of_one_value_give_one_border():
    assert find_borders(np.array([0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5.0]), 3).tolist() == [0, 1, 2]


def test_few_values_are_all_borders():
    assert find_borders(np.array([0, 0, 0, 0, 0, 0, 0, 1, 2.0]), 3).tolist() == [0, 1]


def test_a_constant_column_has_no_border():
    assert find_borders(np.zeros(5), 3).tolist() == []
    assert find_borders(np.empty(0), 3).tolist() == []


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=400), st.integers(1, 255))
def test_borders_fit_a_byte_and_leave_no_side_empty(values, parts):
    values = np.sort(np.array(values, dtype=float))
    borders = find_borders(values, parts)
    assert len(borders) <= 254
    assert (np.diff(borders) > 0).all()
    assert np.isin(borders, values).all()
    assert all(0 < (values <= c).sum() < len(values) for c in borders)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 8, 11])
def test_codes_count_the_borders_below(dtype, p):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (5000, p)).astype(dtype)
    X[rng.random(X.shape) < 0.05] = np.nan
    borders = scan_columns(X, lambda k, values, _: find_borders(values, 5 + 20 * k))
    matrix = code_rows(X, borders, n_jobs=2)
    for k in range(p):
        expected = np.where(np.isnan(X[:, k]), MISSING, (X[:, k, None] > borders[k]).sum(axis=1))
        np.testing.assert_array_equal(matrix.column(k), expected)
        assert matrix.has_missing[k]
        assert matrix.n_bins[k] == len(borders[k]) + 1


def test_codes_of_float32_rows_are_those_of_the_same_rows_as_float64():
    rng = np.random.default_rng(1)
    near = np.float32(0.1) * (1 + np.arange(-20, 21) * np.finfo(np.float32).eps)
    X = np.concatenate([near, rng.normal(size=300), [-np.inf, np.inf, 0.0, -0.0, np.nan]]).astype(np.float32)[:, None]
    borders = np.unique(
        [0.1, float(np.float32(0.1)), -0.0, 1e-60, -1e60, 1e60, *rng.choice(near, 5), *rng.normal(size=9)]
    )
    single, double = (code_rows(rows, [borders]).column(0) for rows in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(single, double)


def test_columns_are_seen_sorted_and_without_nan():
    X = np.array([[3.0, np.nan], [1.0, np.nan], [2.0, 5.0]])
    assert scan_columns(X, lambda k, values, _: (k, values.tolist())) == [(0, [1, 2, 3]), (1, [5])]
    assert X[:, 0].tolist() == [3, 1, 2]
    one = np.array([[2.0], [1.0]])
    assert scan_columns(one, lambda k, values, _: values.tolist()) == [[1, 2]]
    assert one[:, 0].tolist() == [2, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_sorted_columns_have_the_same_bits_in_any_order_of_the_rows(dtype, weighted):
    # -0.0 equals 0.0, so that a sort may leave them in any order, and a border was one or the other.
    rng = np.random.default_rng(9)
    n = 9000
    X = np.column_stack([rng.choice([-0.0, 0.0, 1.0, -2.5, np.nan, -np.inf], n), rng.standard_normal(n)]).astype(dtype)
    X[::50, 1] = -np.nan
    copies = rng.integers(0, 3, n) if weighted else None
    order = rng.permutation(n)

    def look(_, values, ends):
        return values.copy(), find_borders(values, 5, ends), ends

    found = scan_columns(X, look, copies=copies)
    turned = scan_columns(X[order], look, copies=None if copies is None else copies[order])
    for column, (values, borders, ends), (again, same_borders, _) in zip(X.T, found, turned, strict=True):
        seen = ~np.isnan(column) if copies is None else ~np.isnan(column) & (copies > 0)
        np.testing.assert_array_equal(values, np.sort(column[seen]))
        assert not np.signbit(values[values == 0]).any()
        assert values.tobytes() == again.tobytes()
        assert borders.tobytes() == same_borders.tobytes()
        assert ends is None or ends[-1] == copies[seen].sum()


def test_many_rows_compile_nothing_that_few_rows_have_not():
    X = np.random.default_rng(0).standard_normal((5000, 9)).astype(np.float32)
    borders = scan_columns(X, lambda k, values, _: find_borders(values, 10))
    few, many = code_rows(X[:100], borders), code_rows(X, borders)
    np.testing.assert_array_equal(many.codes[:, :100], few.codes)
    for signature in code_columns.signatures:
        assert {kind.layout for kind in signature if hasattr(kind, "layout")} == {"C"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_values_have_the_codes_that_many_have(monkeypatch, dtype):
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(900, 11)), 1).astype(dtype)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4], X[:, 5] = 1.0, np.nan
    borders = [np.unique(column[~np.isnan(column)])[:: k + 1].astype(np.float64)[:200] for k, column in enumerate(X.T)]
    few = code_rows(X, borders)
    monkeypatch.setattr(binning, "_FEW", 0)
    many = code_rows(X, borders)
    assert np.array_equal(few.codes, many.codes)
    assert np.array_equal(few.has_missing, many.has_missing)
