"""Decisions: arithmetic, and brute force over all decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.refusals import refused
from truerank.calibration.decisions import (
    cost_threshold,
    decide,
    expected_costs,
    expected_relevant,
    least_expected_cost,
    utility_threshold,
)
from truerank.core.errors import InvalidInputError

costs = st.floats(0.01, 50)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), costs, costs, st.floats(0, 5))
def test_no_decision_costs_less(probabilities, cost_fp, cost_fn, cost_abstain):
    p = np.array(probabilities)
    taken = decide(p, cost_fp=cost_fp, cost_fn=cost_fn, cost_abstain=cost_abstain)
    for probability, decision in zip(p, taken):
        options = {1: (1 - probability) * cost_fp, 0: probability * cost_fn, -1: cost_abstain}
        assert options[int(decision)] <= min(options.values()) + 1e-9


def test_thresholds():
    assert cost_threshold() == 0.5
    assert cost_threshold(cost_fp=1, cost_fn=3) == 0.25
    # u = 3 TP - 2 FP: deliver from 2/5 on. A loss for misses lowers it: 2/(2 + 3 + 1).
    assert utility_threshold(3, 2) == pytest.approx(0.4)
    assert utility_threshold(3, 2, loss_fn=1) == pytest.approx(1 / 3)
    with refused(InvalidInputError, code="costs"):
        cost_threshold(cost_fp=0, cost_fn=0)
    with refused(InvalidInputError, code="costs"):
        cost_threshold(cost_fp=1, cost_fn=1, cost_tp=2)


def test_several_classes():
    rng = np.random.default_rng(0)
    p, table = rng.dirichlet(np.ones(4), 50), rng.uniform(size=(4, 3))
    expected = [min(range(3), key=lambda d: sum(row[c] * table[c, d] for c in range(4))) for row in p]
    assert least_expected_cost(p, table).tolist() == expected
    assert (expected_costs([0.25], cost_fp=2, cost_fn=3) == [[0.75, 1.5]]).all()
    with refused(InvalidInputError, argument="probabilities"):
        least_expected_cost(p, table.T)


def test_expected_relevant_is_a_sum_over_the_first_k():
    p = np.array([0.9, 0.1, 0.5, 0.7, 0.2, 0.4])
    qid = ["a", "b", "a", "a", "b", "b"]
    assert expected_relevant(p, 2, qid=qid) == pytest.approx([1.6, 0.6])
    assert expected_relevant(p, 5, qid=qid) == pytest.approx([2.1, 0.7])
    assert expected_relevant(p, 1, qid=qid, scores=[0, 1, 5, 2, 0, 0]) == pytest.approx([0.5, 0.1])
    assert expected_relevant(np.stack([1 - p, p], axis=1), 1, qid=qid) == pytest.approx([0.9, 0.4])


def test_probabilities_are_checked():
    with refused(InvalidInputError, argument="probabilities"):
        decide([0.2, 1.5])
    with refused(InvalidInputError, argument="probabilities"):
        decide([np.nan])
    with refused(InvalidInputError, argument="probabilities"):
        decide(np.ones((2, 3)))
