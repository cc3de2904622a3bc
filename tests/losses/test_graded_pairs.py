"""Counted pairs beside listed ones: loss, derivatives, curvature, spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference.pairs import listed_pairs, pair_objective
from support.made_up_rows import graded
from truerank.losses.graded_pairs import HINGE, SQUARED_HINGE, GradedPairs, sort_grades
from truerank.matrices.rows import LinearRows

CASES = [([30, 1, 12, 25], 2), ([9] * 6, 3), ([40, 35], 5), ([60], 1000), ([2, 3, 50], 25), ([150, 70], 9)]


@pytest.mark.parametrize(("sizes", "n_grades"), CASES)
@pytest.mark.parametrize("kind", [HINGE, SQUARED_HINGE])
def test_counted_loss_and_derivative_equal_those_of_listed_pairs(sizes, n_grades, kind):
    X, y, offsets, _ = graded(1, sizes, n_grades)
    weight = np.random.default_rng(2).uniform(0, 2, len(sizes))
    w = np.array([0.4, -0.3, 0.0, 0.7])
    loss, derivative = GradedPairs(y, offsets, weight).loss(X @ w, kind)
    value, gradient = pair_objective(w, X, y, offsets, 1.0, weight, power=kind + 1)
    np.testing.assert_allclose(loss, value - 0.5 * w @ w, rtol=1e-12)
    np.testing.assert_allclose(X.T @ derivative, gradient - w, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 40))
def test_counted_loss_of_integer_scores_with_ties(seed, n, n_grades):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, n) / 2.0  # many pairs at exactly the margin
    y = rng.integers(0, n_grades, n).astype(float)
    offsets = np.array([0, n])
    pairs, _ = listed_pairs(y, offsets)
    slack = np.maximum(0.0, 1.0 - (scores[pairs[:, 0]] - scores[pairs[:, 1]]))
    counted = GradedPairs(y, offsets)
    assert counted.n_pairs[0] == len(pairs)
    assert counted.loss(scores, HINGE)[0] == slack.sum()  # halves add without rounding
    loss, derivative = counted.loss(scores, SQUARED_HINGE)
    assert loss == (slack**2).sum()
    expected = np.zeros(n)
    np.add.at(expected, pairs[:, 0], -2 * slack)
    np.add.at(expected, pairs[:, 1], 2 * slack)
    assert derivative.tolist() == expected.tolist()


@pytest.mark.parametrize(("sizes", "n_grades"), CASES)
def test_curvature_is_the_laplacian_of_the_violated_pairs(sizes, n_grades):
    X, y, offsets, _ = graded(3, sizes, n_grades)
    weight = np.random.default_rng(4).uniform(0, 2, len(sizes))
    scores = X[:, 0]
    counted = GradedPairs(y, offsets, weight)
    counted.loss(scores, SQUARED_HINGE)
    values, result = X[:, 1].copy(), np.empty(len(y))
    counted.curvature(values, result, 0, len(sizes))
    pairs, weights = listed_pairs(y, offsets, weight)
    active = scores[pairs[:, 0]] - scores[pairs[:, 1]] < 1
    a, b, v = pairs[active, 0], pairs[active, 1], 2 * weights[active]
    expected = np.zeros(len(y))
    np.add.at(expected, a, v * (values[a] - values[b]))
    np.add.at(expected, b, v * (values[b] - values[a]))
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)


def test_scores_that_are_not_finite_harm_no_other_query():
    rng = np.random.default_rng(6)
    offsets, y = np.array([0, 40, 90]), rng.integers(0, 3, 90).astype(float)
    scores = rng.normal(size=90)
    _, expected = GradedPairs(y, offsets).loss(scores, SQUARED_HINGE)
    for bad in (np.nan, np.inf, -np.inf):
        for n_bad in (1, 20, 40):
            counted, broken = GradedPairs(y, offsets), scores.copy()
            broken[rng.choice(40, n_bad, replace=False)] = bad
            with np.errstate(all="ignore"):  # where kernels run as plain Python
                _, derivative = counted.loss(broken, SQUARED_HINGE)
            assert set(counted.order[:40]) <= set(range(40))
            np.testing.assert_array_equal(derivative[40:], expected[40:])


@pytest.mark.parametrize("as_sparse", [False, True])
def test_spread_by_column_is_that_of_the_pairs(as_sparse):
    X, y, offsets, _ = graded(5, [7, 12, 1], 4)
    weight = np.array([1.0, 0.5, 2.0])
    counted = GradedPairs(y, offsets, weight)
    rows = LinearRows(sparse.csr_matrix(X) if as_sparse else X)
    spread = rows.pair_spread(sort_grades(y, offsets)[0], counted.ranks, offsets, weight)
    pairs, weights = listed_pairs(y, offsets, weight)
    a, b = X[pairs[:, 0]], X[pairs[:, 1]]
    expected = weights @ (a**2 + b**2 if as_sparse else (a - b) ** 2)
    np.testing.assert_allclose(spread, expected, rtol=1e-10)


def test_long_queries_sort_by_another_route_to_the_same_sums():
    rng = np.random.default_rng(11)
    scores, y = rng.normal(size=9000), rng.integers(0, 3, 9000).astype(float)
    shuffled = rng.permutation(9000)
    long = GradedPairs(y, np.array([0, 9000])).loss(scores, SQUARED_HINGE)[0]
    again = GradedPairs(y[shuffled], np.array([0, 9000])).loss(scores[shuffled], SQUARED_HINGE)[0]
    total = 0.0
    for a in range(3):
        for b in range(a):
            total += np.sum(np.maximum(0, 1 - (scores[y == a][:, None] - scores[y == b][None, :])) ** 2)
    assert long == pytest.approx(total, rel=1e-12)
    assert again == pytest.approx(total, rel=1e-12)
