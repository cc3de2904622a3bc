"""The listwise loss of linear weights: its value as printed, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from reference import listnet as reference
from support.made_up_rows import graded
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import HeldRows
from truerank.rankers.sums.linear import LinearProblem, SummedCrossEntropy


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [1, 5, 8, 19])
def test_value_is_the_definitions_and_gradient_its_derivative(normalize, p):
    X, y, _, qid = graded(1, [9, 1, 12, 8, 20, 5], 4, p)
    y[qid == 0] = 1.0
    m = len(np.unique(qid))
    weight = np.arange(m) % 3.0
    data = RankingData(X, y, qid, query_weight=weight)

    def of(rows):
        return SummedCrossEntropy(LinearProblem(rows, "never"), 0.7, normalize, None)

    problem = of(data.in_parts(None))
    coef = np.random.default_rng(2).normal(size=p)

    def value(w):
        return reference.objective(w, X, y, qid, 0.7, weight, normalize)

    got, gradient = problem.value_and_gradient(coef)
    assert got == pytest.approx(value(coef), rel=1e-12)
    np.testing.assert_allclose(gradient, optimize.approx_fprime(coef, value, 1e-6), rtol=1e-4, atol=1e-5)
    hessian = problem.hessian(coef)
    numeric = optimize.approx_fprime(coef, lambda w: problem.value_and_gradient(w)[1], 1e-7)
    np.testing.assert_allclose(hessian, numeric.reshape(p, p), rtol=1e-4, atol=1e-5)
    # Sparse rows, and three parts, of which the first has no query that counts, have the same loss.
    others = (
        of(RankingData(sparse.csr_matrix(X), y, qid, query_weight=weight).in_parts(None)),
        of(HeldRows([data.take_queries(queries) for queries in ([0], [1, 2], range(3, m))])),
    )
    for other in others:
        value_there, gradient_there = other.value_and_gradient(coef)
        assert value_there == pytest.approx(got, rel=1e-12)
        np.testing.assert_allclose(gradient_there, gradient, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(other.curvature(), problem.curvature(), rtol=1e-10)
    np.testing.assert_allclose(others[1].hessian(coef), hessian, rtol=1e-9, atol=1e-12)
