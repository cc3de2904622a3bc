"""Sums without rounding: the same for any order and any partitioning."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank.matrices.exact_sums import exact_parts, exact_sum, exact_total

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers, max_size=60), st.integers(0, 60))
def test_equal_to_pythons_exact_sum_in_any_two_parts(values, cut):
    try:
        expected = math.fsum(values)
    except OverflowError:  # of a partial sum; the total may be finite
        return
    array = np.array(values, dtype=np.float64)
    assert exact_sum(array) == expected
    assert exact_total(exact_parts(array[cut:]) + exact_parts(array[:cut])) == expected


def test_what_is_not_a_number_is_said():
    assert math.isnan(exact_sum(np.array([1.0, np.nan])))
    assert math.isnan(exact_sum(np.array([1.0, np.inf])))
    assert exact_sum(np.array([1.7e308, 1.7e308])) == math.inf
    assert exact_sum(np.broadcast_to(1.0, (5,))) == 5.0


def test_many_terms():
    values = np.random.default_rng(0).standard_normal(300_000)
    assert exact_sum(values) == pytest.approx(math.fsum(values), abs=0)
