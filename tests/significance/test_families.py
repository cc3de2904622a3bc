"""step_down_max_t: its definition by enumeration, its order, its degenerate cases."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from reference.families import divided, own_p, simultaneous, step_down, step_down_of_copies
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.significance import (
    Family,
    corrections,
    divided_step_down,
    paired_t,
    simultaneous_intervals,
    step_down_max_t,
)

rng = np.random.default_rng(11)


def test_all_signs_are_tried_where_there_are_few():
    for _ in range(20):
        d = rng.normal(0.1, 1.0, (7, 5)).round(1)
        measures = rng.integers(0, 2, 5)
        found = step_down_max_t(d, measures)
        assert (found.exhaustive, found.n_resamples) == (True, 128)
        np.testing.assert_allclose(found.p_adjusted, step_down(d, measures), atol=1e-12)
        assert not found.error.any()


def small_family(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences (n, h) of two measures with ties, zeros, whole columns of zeros, and topics without a value."""
    own = np.random.default_rng(seed)
    n, h = int(own.integers(2, 9)), int(own.integers(1, 6))
    d = own.normal(0.3, 1.0, (n, h)).round(int(own.integers(0, 3))) * own.choice([0.01, 1.0], h)
    d[:, own.random(h) < 0.2] = 0.0
    measures = own.integers(0, 2, h)
    d[np.ix_(own.random(n) < 0.2, measures == 1)] = np.nan
    d[0] = np.nan_to_num(d[0])  # at least one topic
    return d, measures


@pytest.mark.parametrize("seed", range(60))
def test_the_divided_level_is_its_definition(seed):
    d, measures = small_family(seed)
    found = divided_step_down(d, measures)
    assert (found.exhaustive, found.divided) == (True, True)
    np.testing.assert_allclose(found.p_adjusted, divided(d, measures), atol=1e-12)
    np.testing.assert_allclose(found.p, own_p(d), atol=1e-12)
    np.testing.assert_allclose(step_down_max_t(d, measures).p_adjusted, step_down(d, measures), atol=1e-12)
    assert (found.p_adjusted >= found.p - 1e-12).all()
    assert found.p_adjusted.min() >= found.smallest - 1e-12
    for level in (0.95, 0.6):
        low, high, _ = simultaneous_intervals(d, measures, level=level)
        np.testing.assert_allclose((high - low) / 2, simultaneous(d, measures, level), rtol=1e-9)
        np.testing.assert_allclose((high + low) / 2, np.where(np.isnan(low), np.nan, np.nanmean(d, axis=0)), atol=1e-12)


def test_steady_differences_are_without_outliers_and_many_equal_sizes():
    normal = rng.normal(0.004, 0.006, 50)
    sparse, equal, one = np.where(np.arange(50) < 8, normal, 0.0), normal.copy(), np.full(50, np.nan)
    equal[:13], one[:3] = 0.004, 0.1
    equal[::2] *= -1
    columns = np.column_stack([normal, -normal * 1e-200, sparse, equal, np.full(50, 0.1), one, np.zeros(50), normal])
    columns[3, 7] = np.nan
    assert corrections.steady_differences(columns).tolist() == [True, True, *[False] * 4, True, True]


def test_a_topic_that_few_samples_have_does_not_decide():
    # The mean difference is 0: one topic in forty loses what the others gain.
    wrong = []
    for _ in range(100):
        values = np.where(rng.random((25, 3)) < 1 / 40, -0.39, 0.01)
        d = np.column_stack([values, rng.normal(0, 0.2, (25, 3))])
        wrong.append(divided_step_down(d).p_adjusted.min() < 0.05)
    assert np.mean(wrong) < 0.15  # by each own p alone in more than half of the samples


def test_a_near_duplicate_is_found_beside_a_noisy_run():
    own = np.random.default_rng(0)
    found = []
    for _ in range(60):
        d = np.column_stack([own.normal(0.004, 0.006, 50), own.normal(0, 0.2, 50)])
        low, high, critical = simultaneous_intervals(d)
        assert critical[0] > 0.02
        families = (divided_step_down(d), step_down_max_t(d))
        found.append([high[0] - low[0] < 0.02, *(family.p_adjusted[0] < 0.05 for family in families)])
    assert np.mean(found, axis=0) == pytest.approx([0.93, 0.93, 0.05], abs=0.1)


def test_one_hypothesis_with_a_difference_has_its_own_p():
    d = np.zeros((30, 4))
    d[:, 1] = rng.normal(0.1, 0.2, 30)
    found = divided_step_down(d, random_state=2)
    assert found.p_adjusted[1] == found.p[1] == divided_step_down(d[:, 1], random_state=2).p[0]
    assert found.p_adjusted[[0, 2, 3]].tolist() == [1.0, 1.0, 1.0]
    low, high, critical = simultaneous_intervals(d)
    assert (low[1] > 0) == (paired_t(d[:, 1], np.zeros(30)).p < 0.05)
    assert np.isnan([low[0], high[0]]).all()
    assert np.isinf(critical).all()


def test_of_too_many_hypotheses_max_t_has_the_whole_level():
    d = rng.normal(0.1, 0.2, (20, 4100))
    found, alone = divided_step_down(d, random_state=1), step_down_max_t(d, random_state=1)
    assert (found.divided, found.n_resamples) == (False, 10_000)
    np.testing.assert_array_equal(found.p_adjusted, alone.p_adjusted)
    low, high, critical = simultaneous_intervals(d)
    np.testing.assert_allclose(high - low, 2 * critical)
    assert corrections.family_resamples(10, 0.0001) == (5_000_000, False)
    assert corrections.family_resamples(10, 0.001) == (100_000, True)


def test_random_signs_approach_all_signs():
    d = rng.normal(0.3, 1.0, (12, 6)) * np.linspace(0.5, 2.0, 6)
    exact = step_down_max_t(d, n_resamples=4096)
    drawn = step_down_max_t(d, n_resamples=4000)
    assert (exact.exhaustive, drawn.exhaustive) == (True, False)
    assert (np.abs(exact.p_adjusted - drawn.p_adjusted) <= 4 * drawn.error + 1e-3).all()


def test_seed_order_of_hypotheses_and_direction():
    d = rng.normal(0.1, 1.0, (30, 40)) * rng.uniform(0.01, 1.0, 40)
    one = step_down_max_t(d, random_state=3)
    order = rng.permutation(40)
    turned = step_down_max_t(-d[:, order], random_state=3)
    np.testing.assert_array_equal(one.p_adjusted[order], turned.p_adjusted)
    assert isinstance(one, Family)


def test_one_hypothesis_of_equal_differences_and_ties_by_rounding():
    # Six equal differences: two of 64 sign vectors are as extreme, however the sums are rounded.
    assert step_down_max_t(np.full((6, 1), 0.1)).p_adjusted[0] == 2 / 64
    assert step_down_max_t(np.array([0.1, 0.2, 0.3, 0.7, 0.4, 0.5])).p_adjusted[0] == 2 / 64


def test_no_p_below_what_the_topics_allow():
    d = np.zeros((30, 3))
    d[:2, 0] = 1.0
    d[:, 1] = rng.normal(1.0, 0.1, 30)
    found = step_down_max_t(d, n_resamples=500).p_adjusted
    assert found[0] >= 0.5
    assert found[1] == 1 / 501
    assert found[2] == 1.0  # without any difference


def test_a_topic_that_is_undefined_is_left_out():
    d = rng.normal(0.5, 1.0, (8, 2))
    d[2, 1] = np.nan
    alone = step_down_max_t(np.delete(d[:, 1], 2)).p_adjusted[0]
    found = step_down_max_t(d, measures=["a", "b"]).p_adjusted
    assert found[1] >= alone
    whole = np.vstack([d, [np.nan, np.nan]])
    np.testing.assert_array_equal(step_down_max_t(whole, ["a", "b"]).p_adjusted, found)


def test_refusals():
    with refused(InvalidInputError, code="no-common-topic"):
        step_down_max_t([[np.nan, 1.0], [np.nan, 2.0]])
    with refused(InvalidInputError, argument="differences"):
        step_down_max_t([[np.inf]])
    with refused(InvalidInputError, argument="measures"):
        step_down_max_t([[1.0]], ["a", "b"])


def test_drawn_copies_approach_all_choices_of_copies():
    for _ in range(5):
        values = rng.normal(size=(4, 5, 3))
        values[0, :, 0] += 3.0
        values[3] = values[3, :, :1]  # all copies as the original
        exact = step_down_of_copies(values[:3])
        found, floor = corrections.step_down_of_copies(values, n_resamples=20_000, level=0.2)
        np.testing.assert_allclose(found[:3], exact, atol=0.015)
        assert (found[3], floor[3]) == (1.0, 0.0)
        loss = np.abs((values[:, :, 0] - values[:, :, 1:].mean(axis=2)).mean(axis=1))
        np.testing.assert_array_equal(loss[:3] > floor[:3] + 1e-9, found[:3] < 0.2)


def test_several_measures_hold_their_level_over_all_signs_of_the_topics():
    signs = np.array(list(product([-1.0, 1.0], repeat=6)))
    for seed in range(20):
        d = np.random.default_rng(seed).normal(size=(6, 6)) * np.repeat([0.05, 0.3], 3)
        least = np.array([step_down_max_t(d * one[:, None], np.repeat([0, 1], 3)).p_adjusted.min() for one in signs])
        for level in np.unique(least):
            assert (least <= level + 1e-12).mean() <= level + 1e-12
