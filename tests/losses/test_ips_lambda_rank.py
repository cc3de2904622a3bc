"""IPS LambdaRank: its derivatives, and that it learns from relevances."""

from __future__ import annotations

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting
from truerank.core.errors import InvalidInputError
from truerank.losses.lambda_rank import IPSLambdaRank

OFFSETS = np.array([0, 5, 6, 6, 12])


def test_derivatives_are_those_of_the_loss_with_discounts_held():
    rng = np.random.default_rng(0)
    y, s = rng.random(12), rng.standard_normal(12)
    y[0:5] = 0.3
    discount = np.zeros(12)
    for a, b in zip(OFFSETS, OFFSETS[1:]):
        discount[a + np.argsort(-s[a:b])] = 1.0 / np.log2(2.0 + np.arange(b - a))

    def loss(scores):
        return sum(
            y[i] * abs(discount[i] - discount[j]) * np.log1p(np.exp(-1.5 * (scores[i] - scores[j])))
            for a, b in zip(OFFSETS, OFFSETS[1:])
            for i in range(a, b)
            for j in range(a, b)
        )

    gradient, hessian = IPSLambdaRank(1.5)(y, s, OFFSETS)
    for k in range(12):
        step = np.zeros(12)
        step[k] = 1e-4
        up, middle, down = loss(s + step), loss(s), loss(s - step)
        assert gradient[k] == pytest.approx((up - down) / 2e-4, abs=1e-6)
        assert hessian[k] == pytest.approx((up - 2 * middle + down) / 1e-8, abs=1e-4)


def test_it_trains_and_refuses_grades():
    rng = np.random.default_rng(0)
    X, qid = rng.random((300, 3)), np.repeat(np.arange(30), 10)
    settings = {"objective": "ips-lambdarank", "n_estimators": 10, "leaves": "constant"}
    ranker = ObliviousBoosting(**settings).fit(X, X[:, 1] * 0.8, qid=qid)
    assert np.corrcoef(ranker.predict(X), X[:, 1])[0, 1] > 0.8
    with refused(InvalidInputError, code="relevances"):
        ObliviousBoosting(**settings).fit(X, np.arange(300) % 3, qid=qid)
