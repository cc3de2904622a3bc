"""The ramp bound of nDCG: its maxima against the enumeration of all rankings, its bound, its convex piece."""

from __future__ import annotations

import numpy as np
import pytest

from reference.rankings import ramp_by_enumeration
from truerank.data.ranking_data import Judgements
from truerank.losses.ramp import RampOracle
from truerank.measures import nDCG
from truerank.measures.ndcg import discounts


@pytest.mark.parametrize("kind", ["ties", "wide", "narrow"])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize(
    ("cutoff", "discount"), [(1, "log2"), (2, "log2"), (3, "letor"), (None, "log2"), (10, "letor")]
)
def test_both_maxima_are_those_of_enumeration(cutoff, discount, gain, kind):
    rng = np.random.default_rng(5)
    tried = 0
    for _ in range(12):
        n = int(rng.integers(1, 7))
        grades = rng.integers(0, 4, n).astype(float)
        scores = {"ties": rng.integers(-2, 3, n) / 4, "wide": rng.uniform(-5, 5, n), "narrow": rng.normal(size=n) / 50}
        s = scores[kind]
        oracle = RampOracle(grades, np.array([0, n]), cutoff=cutoff, gain=gain, discount=discount)
        if len(np.unique(grades)) < 2:
            assert not oracle.kept[0]
            assert oracle.bounds(s)[0] == 0
            assert not oracle(s)[1].any()
            continue
        tried += 1
        worst, best = ramp_by_enumeration(grades, s, cutoff, gain, discount)
        assert oracle.bounds(s)[0] == pytest.approx(worst - best, abs=1e-12)
        anchor = rng.normal(size=n)
        oracle.set_anchor(anchor)
        order = np.argsort(-anchor)
        weights = discounts(discount, n)
        weights[n if cutoff is None else cutoff :] = 0.0
        loss, coefficients = oracle(s)
        assert loss[0] + coefficients @ s == pytest.approx(worst - weights @ s[order], abs=1e-12)
        assert coefficients.sum() == pytest.approx(0, abs=1e-12)
    assert tried > 5


def test_it_bounds_the_loss_and_the_convex_piece_lies_above_and_touches():
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 30, 40))])
    grades = rng.integers(0, 3, offsets[-1]).astype(float)
    oracle = RampOracle(grades, offsets, cutoff=5)
    for scale in (0.01, 0.1, 1.0, 10.0):
        scores = scale * rng.normal(size=len(grades))
        values = (nDCG @ 5).per_query(Judgements(grades, offsets), scores)
        bounds = oracle.bounds(scores)
        assert np.all(bounds[oracle.kept] >= 1 - values[oracle.kept] - 1e-12)
        loss, coefficients = oracle(scores)
        piece = loss + np.add.reduceat(coefficients * scores, offsets[:-1])
        assert np.all(piece >= bounds - 1e-12)
        oracle.set_anchor(scores)
        loss, coefficients = oracle(scores)
        np.testing.assert_allclose(loss + np.add.reduceat(coefficients * scores, offsets[:-1]), bounds, atol=1e-12)


def test_queries_without_a_choice_count_nothing():
    grades = np.array([1.0, 1.0, 0.0, 0.0, 2.0, 0.0])
    oracle = RampOracle(grades, np.array([0, 2, 2, 4, 6]), cutoff=3)
    assert oracle.kept.tolist() == [False, False, False, True]
    loss, coefficients = oracle(np.arange(6.0))
    assert loss[:3].tolist() == [0, 0, 0]
    assert not coefficients[:4].any()
