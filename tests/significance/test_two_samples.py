"""The tests against SciPy, against full enumeration, and in their degenerate cases."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.significance import (
    paired_t,
    randomisation,
    sign_test,
    sign_test_of_counts,
    wilcoxon,
    win_loss,
)

PAIRED = [paired_t, wilcoxon, sign_test, randomisation]


@pytest.fixture
def samples():
    rng = np.random.default_rng(1)
    a = rng.random(30)
    return a, a + rng.normal(0.05, 0.2, 30)


def test_paired_t_equals_scipy(samples):
    expected = stats.ttest_rel(*samples)
    found = paired_t(*samples)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)


def test_wilcoxon_equals_scipy(samples):
    expected = stats.wilcoxon(*samples)
    assert wilcoxon(*samples) == pytest.approx((expected.statistic, expected.pvalue))


def test_wilcoxon_of_few_queries_enumerates_signs():
    difference = np.array([0.3, -0.1, 0.4, 0.25, 0.05])
    ranks = stats.rankdata(np.abs(difference))
    observed = min(ranks[difference > 0].sum(), ranks[difference < 0].sum())
    sums = [sum(rank for rank, sign in zip(ranks, signs) if sign) for signs in product([0, 1], repeat=5)]
    expected = sum(min(total, ranks.sum() - total) <= observed for total in sums) / 2**5
    assert wilcoxon(difference, np.zeros(5)).p == pytest.approx(expected)


def test_sign_test_equals_binomial_test(samples):
    counts = win_loss(*samples)
    expected = stats.binomtest(counts.wins, counts.wins + counts.losses).pvalue
    assert sign_test(*samples).p == pytest.approx(expected, rel=1e-12)
    for wins in range(8):
        assert sign_test_of_counts(wins, 7 - wins).p == pytest.approx(stats.binomtest(wins, 7).pvalue, rel=1e-12)


def test_randomisation_approaches_the_full_enumeration():
    difference = np.array([0.1, 0.2, -0.05, 0.3, 0.15, 0.02, -0.1, 0.25])
    sums = [abs(np.dot(signs, difference)) for signs in product([-1, 1], repeat=8)]
    exact = np.mean([total >= abs(difference.sum()) - 1e-12 for total in sums])
    found = randomisation(difference, np.zeros(8), n_resamples=40_000, random_state=3)
    assert found.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000) + 1 / 40_001)
    assert found.statistic == pytest.approx(difference.mean())


def test_randomisation_counts_the_observed_order_itself():
    result = randomisation(np.full(40, 0.1), np.zeros(40), n_resamples=99, random_state=0)
    assert result.p == 1 / 100


def test_randomisation_holds_its_level():
    rng = np.random.default_rng(5)
    p = [randomisation(rng.normal(size=12), np.zeros(12), n_resamples=199, random_state=i).p for i in range(300)]
    assert abs(np.mean(np.array(p) <= 0.1) - 0.1) < 0.05


@pytest.mark.parametrize("test", PAIRED)
def test_no_difference_has_p_1(test):
    values = np.array([0.2, 0.4, 0.4])
    assert test(values, values).p == 1.0


@pytest.mark.parametrize(("test", "p"), [(wilcoxon, 1.0), (sign_test, 1.0), (randomisation, 1.0)])
def test_one_query_shows_nothing(test, p):
    assert test([0.5], [0.2]).p == p


def test_equal_differences():
    result = paired_t([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    assert result.statistic == math.inf
    assert math.isnan(result.p)  # no p from a variance of 0
    assert math.isnan(paired_t([0.5], [0.2]).p)
    assert wilcoxon([0.5, 0.6, 0.7], [0.25, 0.35, 0.45]).p == pytest.approx(0.25, abs=0.2)


def test_skipped_queries_are_left_out():
    a, b = [0.5, np.nan, 0.7, 0.2], [0.4, 0.3, np.nan, 0.4]
    assert win_loss(a, b) == (1, 1, 0)
    assert sign_test(a, b).p == 1.0


def signed_rank_by_enumeration(difference):
    """Two-sided p of Wilcoxon's test with Pratt's zeros: every sign vector of the nonzero differences."""
    ranks = stats.rankdata(np.abs(difference))[difference != 0]
    sums = [sum(r for r, sign in zip(ranks, signs) if sign) for signs in product([0, 1], repeat=len(ranks))]
    wins = stats.rankdata(np.abs(difference))[difference > 0].sum()
    observed = min(wins, ranks.sum() - wins)
    return min(1.0, 2 * np.mean([total <= observed for total in sums]))


@pytest.mark.parametrize("seed", range(30))
def test_wilcoxon_is_exact_with_ties_and_zeros(seed):
    difference = np.random.default_rng(seed).integers(-2, 4, 10) / 4
    assert wilcoxon(difference, np.zeros(10)).p == pytest.approx(signed_rank_by_enumeration(difference), abs=1e-12)


def test_four_equal_differences_have_the_exact_p():
    assert wilcoxon([0.5] * 4, [0.0] * 4).p == 0.125
    assert sign_test([0.5] * 4, [0.0] * 4).p == 0.125
    assert randomisation([0.5] * 4, [0.0] * 4).p == 0.125


@pytest.mark.parametrize("test", PAIRED)
def test_refusals(test):
    with refused(InvalidInputError, code="other-queries"):
        test([1, 2], [1, 2, 3])
    with refused(InvalidInputError, argument="a"):
        test([1, np.inf], [1, 2])
    with refused(InvalidInputError, code="no-query"):
        test([np.nan], [1])


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=25))
def test_always_a_number_and_symmetric(pairs):
    a, b = (np.array(side) / 4 for side in zip(*pairs))
    for test in PAIRED:
        there, back = test(a, b), test(b, a)
        if test is paired_t and math.isnan(there.p):
            assert math.isnan(back.p)
            assert len(set((a - b).tolist())) == 1
            continue
        assert 0 <= there.p <= 1
        assert not math.isnan(there.statistic)
        assert there.p == pytest.approx(back.p, abs=0.03 if test is randomisation else 1e-9)
