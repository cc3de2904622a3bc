"""Intervals, detectable differences, families of p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truerank.core.errors import InvalidInputError
from truerank.significance import bonferroni, bootstrap_interval, holm, smallest_detectable_difference


def test_bootstrap_of_a_mean_is_near_the_normal_interval():
    values = np.random.default_rng(0).normal(0.4, 0.2, 400)
    found = bootstrap_interval(values)
    half = 1.96 * values.std(ddof=1) / 20
    assert found.estimate == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.003)
    assert found.high == pytest.approx(values.mean() + half, abs=0.003)


def test_bootstrap_covers():
    rng = np.random.default_rng(1)
    inside = 0
    for seed in range(200):
        low, high = bootstrap_interval(rng.normal(0, 1, 60), level=0.9, n_resamples=400, random_state=seed)[1:]
        inside += low <= 0 <= high
    assert 0.82 <= inside / 200 <= 0.96


def test_bootstrap_degenerate():
    assert bootstrap_interval([0.3]) == (0.3, 0.3, 0.3)
    assert bootstrap_interval([0.1] * 3, [0.1] * 3) == (0.0, 0.0, 0.0)
    assert bootstrap_interval([0.2, np.nan, 0.4], n_resamples=10).estimate == pytest.approx(0.3)


def test_detectable_difference_is_found_four_times_in_five():
    rng = np.random.default_rng(2)
    base = rng.normal(0, 0.2, 50)
    effect = smallest_detectable_difference(base, np.zeros(50))
    deviation = base.std(ddof=1)
    found = [stats.ttest_1samp(rng.normal(effect, deviation, 50), 0).pvalue < 0.05 for _ in range(600)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_detectable_difference_degenerate():
    assert smallest_detectable_difference([0.5], [0.1]) == math.inf
    assert smallest_detectable_difference([0.5, 0.6], [0.25, 0.35]) == 0.0


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
    with pytest.raises(InvalidInputError, match=r"\[0, 1\]"):
        holm([0.5, 1.5])
    with pytest.raises(InvalidInputError, match="level"):
        bootstrap_interval([1, 2], level=1.0)
