"""The listwise loss of linear weights: its value as printed, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from reference import listnet as reference
from support.made_up_rows import graded
from truerank.data.ranking_data import RankingData
from truerank.losses.cross_entropy import CrossEntropy
from truerank.matrices.rows import LinearRows


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("p", [1, 5, 8, 19])
def test_value_is_the_definitions_and_gradient_its_derivative(normalize, p):
    X, y, _, qid = graded(1, [9, 1, 12, 8, 20, 5], 4, p)
    y[qid == 0] = 1.0
    m = len(np.unique(qid))
    weight = np.arange(m) % 3.0
    data = RankingData(X, y, qid, query_weight=weight)

    def of(data):
        rows = LinearRows(data.X)
        return CrossEntropy(rows, data.y, data.offsets, data.query_weight, alpha=0.7, normalize=normalize)

    problem = of(data)
    coef = np.random.default_rng(2).normal(size=p)

    def value(w):
        return reference.objective(w, X, y, qid, 0.7, weight, normalize)

    got, gradient = problem.value_and_gradient(coef)
    assert got == pytest.approx(value(coef), rel=1e-12)
    np.testing.assert_allclose(gradient, optimize.approx_fprime(coef, value, 1e-6), rtol=1e-4, atol=1e-5)
    hessian = problem.hessian(coef)
    numeric = optimize.approx_fprime(coef, lambda w: problem.value_and_gradient(w)[1], 1e-7)
    np.testing.assert_allclose(hessian, numeric.reshape(p, p), rtol=1e-4, atol=1e-5)
    rows = of(RankingData(sparse.csr_matrix(X), y, qid, query_weight=weight))
    sparse_value, sparse_gradient = rows.value_and_gradient(coef)
    assert sparse_value == pytest.approx(got, rel=1e-12)
    np.testing.assert_allclose(sparse_gradient, gradient, rtol=1e-10, atol=1e-12)
