"""Verdicts against a margin: all that hold, by their definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truerank.core.errors import InvalidInputError
from truerank.significance import Interval, Verdict, verdict


def judged(low, high, margin=0.1):
    return Verdict(Interval((low + high) / 2, low, high), margin)


@pytest.mark.parametrize(
    ("ends", "kinds"),
    [
        ((0.01, 0.3), ("better", "not worse")),
        ((-0.3, -0.11), ("worse",)),
        ((-0.09, -0.01), ("worse", "not worse", "equivalent")),
        ((-0.09, 0.09), ("not worse", "equivalent")),
        ((-0.11, 0.09), ("undecided",)),
        ((-0.09, 0.3), ("not worse",)),
        ((-0.3, 0.3), ("undecided",)),
        ((math.nan,) * 2, ("undecided",)),
    ],
)
def test_all_that_hold_are_named(ends, kinds):
    assert judged(*ends).kinds == kinds


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=30), st.floats(0.01, 0.5))
def test_equivalence_is_two_one_sided_tests_at_half_the_level(values, margin):
    found = verdict(values, margin)
    if max(values) - min(values) < 1e-6:
        return
    above = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(values, margin, alternative="less").pvalue
    if min(abs(above - 0.025), abs(below - 0.025)) > 1e-6:
        assert found.equivalent == (max(above, below) < 0.025)
        assert found.not_worse == (above < 0.025)
    assert not (found.better and found.worse)


def test_words_and_refusals():
    assert str(verdict([0.1, 0.1, 0.1], 0.2)) == "undecided"
    assert verdict([0.2]).kinds == ("undecided",)
    assert judged(-0.09, 0.3).words == "not worse by more than 0.1"
    with pytest.raises(InvalidInputError, match="margin"):
        verdict([0.1, 0.2], 0.0)
    with pytest.raises(AttributeError):
        verdict([0.1, 0.2]).margin = 1.0
