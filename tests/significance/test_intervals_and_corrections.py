"""Intervals, detectable differences, families of p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.significance import bonferroni, compare_values, holm, mean_interval


def test_detectable_difference_is_found_four_times_in_five():
    rng = np.random.default_rng(2)
    base = rng.normal(0, 0.2, 50)
    effect = compare_values({"base": np.zeros(50), "new": base}).pairs[0].detectable
    deviation = base.std(ddof=1)
    found = [stats.ttest_1samp(rng.normal(effect, deviation, 50), 0).pvalue < 0.05 for _ in range(600)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("own", [[0.5], [0.5, 0.5]])
def test_no_detectable_difference_without_a_variance(own):
    found = compare_values({"base": [0.25] * len(own), "new": own})
    assert math.isnan(found.pairs[0].detectable)
    assert "inf" not in str(found)


def test_holm_by_hand():
    # Sorted .005, .01, .03, .04 times 4, 3, 2, 1 are .02, .03, .06, .04; none may fall below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert bonferroni([0.01, 0.4]) == pytest.approx([0.02, 0.8])
    assert holm([]).tolist() == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_raw_values_and_bonferroni(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p)).all()
    assert (adjusted <= bonferroni(p) + 1e-15).all()
    # Rejecting while p_(i) ≤ α/(n - i + 1) is the same as rejecting where the adjusted value is ≤ α.
    alpha, order = 0.2, np.argsort(p, kind="stable")
    rejected = set()
    for i, index in enumerate(order):
        if p[index] * (len(p) - i) > alpha:
            break
        rejected.add(int(index))
    assert rejected == {i for i in range(len(p)) if adjusted[i] <= alpha}


def test_refusals():
    with refused(InvalidInputError, argument="p"):
        holm([0.5, 1.5])
    with refused(InvalidInputError, argument="level"):
        mean_interval([1, 2], level=1.0)
