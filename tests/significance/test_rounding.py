"""Differences that are rounding alone are 0: values that differ by some ulps give the same results as exact ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.refusals import refused
from truerank import compare
from truerank.calibration.diagnostics import micro_sign_test
from truerank.core.errors import InvalidInputError
from truerank.inspection.learners import compare_learners
from truerank.significance import (
    compare_values,
    mean_interval,
    paired_t,
    randomisation,
    sign_test,
    step_down_max_t,
    wilcoxon,
    win_loss,
)
from truerank.significance.comparison import MeasuredValues, compare_measures
from truerank.significance.corrections import step_down_of_copies
from truerank.significance.paired import TESTS, differences_of
from truerank.significance.power import queries_needed

ULPS = 4


def moved(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The values with an error of at most `ULPS` units in the last place."""
    return values + rng.integers(-ULPS, ULPS + 1, values.shape) * np.spacing(values)


def same_scores():
    """Two scorings with the same exact value on every query: equal scores only of neighbours of equal grade."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(200), 12)
    y, a = rng.integers(0, 3, len(qid)), rng.normal(size=len(qid))
    b = a.copy()
    for query in range(200):
        rows = np.flatnonzero(qid == query)
        order = rows[np.argsort(-a[rows])]
        starts = np.flatnonzero(np.diff(y[order], prepend=-1))
        b[order] = np.repeat(a[order[starts]], np.diff(np.append(starts, 12)))
    return y, {"a": a, "b": b}, qid


@pytest.mark.parametrize("test", TESTS)
def test_equal_values_are_ties(test):
    y, scores, qid = same_scores()
    found = compare(y, scores, "nDCG@10", qid=qid, convention="sklearn", test=test)
    (pair,) = found.pairs
    values = found.per_query
    assert (values["a"] != values["b"]).any()  # rounding differs
    assert (pair.wins, pair.losses, pair.ties, pair.p, pair.p_adjusted, pair.difference) == (0, 0, 200, 1.0, 1.0, 0.0)
    assert math.isnan(pair.detectable)
    assert not found.influence("a", "b").changes
    assert found.moved_most("a", "b") == ([], [])
    with refused(InvalidInputError, code="pilot"):
        queries_needed(*[differences_of(values["a"], values["b"])])


def test_a_small_value_is_not_rounding():
    assert win_loss([0.1 + 0.2, 0.7], [0.3, 0.1 * 7]) == (0, 0, 2)
    assert win_loss([1e-100, -1e-300], [0.0, 0.0]) == (1, 1, 0)
    assert win_loss([1e12 + 1, 1e12], [1e12, 1e12]) == (0, 0, 2)
    largest = np.finfo(float).max
    assert differences_of(np.array([largest, np.nan]), np.array([largest / 2, 1.0]))[0] == largest / 2


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([1.0, 1e-12, 1e4]), st.sampled_from([6, 12, 60]))
def test_ulps_change_no_result(seed, unit, n):
    rng = np.random.default_rng(seed)
    grid = int(rng.choice([2, 12, 1000]))
    # Fractions with many exact ties: of values with values, and of differences with differences.
    exact = unit * (1.0 + rng.integers(0, grid + 1, (3, n)) / grid)
    exact[2] = np.where(rng.random(n) < 0.3, exact[0], exact[2])
    if seed % 5 == 0:
        exact[1] = exact[0] + 0.25 * unit  # equal differences
    near = moved(exact, rng)
    pairs = [(exact[0], exact[1]), (near[0], near[1])]
    assert win_loss(*pairs[1]) == win_loss(*pairs[0])
    for function in (paired_t, wilcoxon, sign_test, randomisation):
        one, other = (function(*pair) for pair in pairs)
        assert other.p == pytest.approx(one.p, rel=1e-6, nan_ok=True), function
        if function is not paired_t or math.isfinite(one.statistic):
            assert other.statistic == pytest.approx(one.statistic, rel=1e-6, abs=1e-6)
    one, other = (mean_interval(*pair) for pair in pairs)
    assert other == pytest.approx(one, rel=1e-6, abs=1e-9 * unit, nan_ok=True)
    for test in TESTS:
        results = [
            compare_measures(
                [MeasuredValues(dict(zip("abc", values)), "AP"), MeasuredValues(dict(zip("abc", values[::-1])), "RR")],
                baseline=None, test=test, random_state=1,
            )
            for values in (exact, near)
        ]  # fmt: skip
        for one, other in zip(*results):
            for own, theirs in zip(one.pairs, other.pairs):
                assert [x for x in theirs if isinstance(x, int)] == [x for x in own if isinstance(x, int)]
                assert theirs.effect == pytest.approx(own.effect, rel=1e-5, abs=1e-8, nan_ok=True)
                both = (pair._replace(effect=0.0) for pair in (own, theirs))
                numbers = [[x for x in pair if isinstance(x, float)] for pair in both]
                assert numbers[1] == pytest.approx(numbers[0], rel=1e-5, abs=1e-8 * unit, nan_ok=True)
        both = [one[0].influence("a", "b") for one in results]
        assert (both[0] is None) == (both[1] is None)
        if both[0] is not None:
            assert both[1].p_adjusted == pytest.approx(both[0].p_adjusted, rel=1e-6, nan_ok=True)
            assert both[1].changes == both[0].changes


def test_families_of_ties():
    rng = np.random.default_rng(0)
    for _ in range(50):
        exact = rng.integers(0, 5, (8, 10)) / 5 + 1.0
        near = moved(exact, rng)
        family, other = (step_down_max_t(differences_of(one[1:], one[:1]).T).p_adjusted for one in (exact, near))
        np.testing.assert_allclose(other, family)
        copies = np.stack([exact, exact[:, ::-1], exact[::-1]], axis=2)
        found, theirs = (step_down_of_copies(one, n_resamples=200) for one in (copies, moved(copies, rng)))
        np.testing.assert_allclose(theirs[0], found[0])
        np.testing.assert_allclose(theirs[1], found[1], atol=1e-9)


def test_learners_and_decisions():
    rng = np.random.default_rng(0)
    folds = rng.integers(1, 9, 10) / 9
    both = {"a": folds, "b": moved(folds, rng)}
    pair = compare_learners(both, {"a": 0.5, "b": 0.5}, "AP", "trec", repeats=2).pairs[0]
    assert (pair.p, pair.difference) == (1.0, 0.0)
    decisions = micro_sign_test(folds, moved(folds, rng))
    assert (decisions.wins, decisions.losses) == (0, 0)


def test_values_of_one_ranker_that_are_equal_up_to_rounding_have_no_interval():
    found = compare_values({"a": moved(np.full(20, 0.3), np.random.default_rng(0)), "b": np.arange(20.0)})
    assert math.isnan(found.intervals["a"].low)
