"""Corrections for families of comparisons, from p-values or by resampling (max-T), and simultaneous intervals.

A resample draws a sign for each topic. For features that are compared with shuffled copies, a resample draws for each
topic the copy that replaces the original. All hypotheses use one draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import at_places
from truerank.significance.paired import (
    LEVEL,
    TIED,
    Signs,
    as_differences,
    differences_of,
    moments,
    smallest_p,
)

FEWEST, MOST = 10_000, 400_000  # resamples of a family of tests
_SHARE = 0.8  # of the level for max-T; Holm has the rest
_SMALL = 1 / 8  # of the scale that max-T uses: Holm's part is for smaller differences


def bonferroni(p: ArrayLike) -> np.ndarray:
    """Return p-values multiplied by the size of their family, at most 1.

    Examples
    --------
    >>> bonferroni([0.01, 0.04, 0.5]).tolist()
    [0.03, 0.12, 1.0]
    """
    values = _family(p)
    return np.minimum(1.0, values * len(values))


def holm(p: ArrayLike) -> np.ndarray:
    """Return Holm's step-down adjusted p-values (1979), which are valid under any dependence.

    The i-th smallest of n becomes the largest of (n - j + 1) p_(j) over j ≤ i, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return at_places(np.minimum(1.0, stepped), order)


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return Benjamini and Hochberg's step-up adjusted p-values (1995).

    The i-th smallest of n becomes the smallest of n p_(j) / j over j ≥ i. At level 0.05, at most 5 % of the significant
    differences are expected to be false. Holm's correction bounds the probability of a single false discovery.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    n = len(values)
    stepped = np.minimum.accumulate((values[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    return at_places(np.minimum(1.0, stepped), order)


def _family(p: ArrayLike) -> np.ndarray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError(f"p-values must be a list of numbers in [0, 1], got {p!r}", argument="p")
    return values


class Family(NamedTuple):
    """The result of `step_down_max_t` or `divided_step_down` for h hypotheses."""

    p_adjusted: np.ndarray  # float64 (h,)
    error: np.ndarray  # float64 (h,): Monte Carlo standard error of each adjusted p; 0 if all signs were tried
    n_resamples: int
    exhaustive: bool  # whether all 2^n signs were tried
    p: np.ndarray  # float64 (h,): of each hypothesis alone, by the same signs
    divided: bool  # whether Holm's part has a share of the level
    smallest: float  # the smallest adjusted p that is possible


def step_down_max_t(
    differences: ArrayLike,
    measures: ArrayLike | None = None,
    *,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
) -> Family:
    """Return p-values of mean differences, adjusted for the whole family (step-down max-T).

    Parameters
    ----------
    differences : float array (n topics, h hypotheses)
        NaN if a topic is undefined for a hypothesis's measure. Such a topic is left out of the test of the hypothesis.
    measures : sequence (h,), optional
        The measure of each hypothesis. Hypotheses of one measure share one scale. By default, all do.
    n_resamples : int, default=10_000
        Random sign vectors B. If only B or fewer sign vectors exist (2^n), each is used once.
    random_state : seed

    Returns
    -------
    Family
        p is 1 for a hypothesis without any difference, and never below 2^(1 - nonzero differences).

    Raises
    ------
    InvalidInputError
        If a difference is infinite, or a hypothesis has no topic.

    Notes
    -----
    T_h = Σ_i d_ih / (s_v √n_h), with n_h the topics of hypothesis h and s_v the root mean square of the differences of
    measure v. A resample has T*_h = Σ_i ε_i d_ih / (s_v √n_h), with one sign ε_i a topic. Let the hypotheses be ordered
    by falling |T|. In count resamples, the largest |T*| of the hypotheses j, j + 1, … is at least |T_(j)|; p_(j) is
    (count + 1)/(B + 1), and at least p_(j-1).

    A scale for each hypothesis does not keep the level, because almost identical rankers have few, skewed nonzero
    differences. With one scale, max-T misses a hypothesis with small differences among hypotheses with large
    differences; see `divided_step_down`. The test is exact for symmetric differences. With 50 topics and strongly
    skewed differences, the error of the family is up to 6 % (`python -m validation max_t`). Cost: O(B n h) time.

    References
    ----------
    P. H. Westfall, S. S. Young: Resampling-Based Multiple Testing. Wiley, 1993, section 2.6.

    Examples
    --------
    >>> d = np.array([[0.2, 0.0], [0.1, 0.1], [0.3, -0.1], [0.2, 0.0], [0.2, 0.1], [0.1, 0.0]])
    >>> step_down_max_t(d).p_adjusted.round(4).tolist()
    [0.0312, 1.0]
    """
    d, scale = _with_scales(differences, measures)
    signs = Signs.of(len(d), n_resamples, random_state)
    p, own = _resampled(d, scale, signs)
    least = float(np.maximum(smallest_p(np.count_nonzero(d, axis=0)), _least(signs)).min())
    return Family(p, _error(p, signs), signs.n_resamples, signs.exhaustive, own, False, least)


def divided_step_down(
    differences: ArrayLike,
    measures: ArrayLike | None = None,
    *,
    level: float = LEVEL,
    random_state: RandomState = 0,
) -> Family:
    """Return p-values of mean differences, adjusted for the family, with the level divided between max-T and Holm.

    p_adjusted = min(1, 1.25 p_max-T, 5 p_Holm), where p_Holm is Holm's correction of the randomisation p of each
    hypothesis alone, by the same signs. At level 0.05, max-T rejects at 0.04 and Holm at 0.01, so the error of the
    family is at most the sum if each part keeps its level. Unlike max-T, Holm finds small, steady differences among
    large ones. For 28 pairs on resampled collections the measured error is 4 to 6 % (`python -m validation families`).

    Holm's part counts p as 1 for hypotheses that are not small and steady (`small_and_steady`). For such a hypothesis,
    the test alone errs far more often than its level: if one topic in fifty decides the mean, most samples lack it.

    For `differences`, `measures` and `random_state` see `step_down_max_t`. Hypotheses without any difference have p = 1
    and do not count in h. If h is 1, the adjusted p is the p of the hypothesis alone. The number of resamples is
    `family_resamples(h, level)`. If Holm's part requires more than 400,000 resamples, max-T has the full level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> d = np.column_stack([rng.normal(0.004, 0.006, 50), rng.normal(0, 0.2, (50, 2))])
    >>> step_down_max_t(d).p_adjusted[0].round(2).item(), divided_step_down(d).p_adjusted[0].round(3).item()
    (0.67, 0.001)
    """
    d, scale = _with_scales(differences, measures)
    nonzero = np.count_nonzero(d, axis=0)
    tested = nonzero > 0
    h = int(tested.sum())
    n_resamples, divided = family_resamples(h, level)
    signs = Signs.of(len(d), n_resamples, random_state)
    joint, own = _resampled(d, scale, signs)
    least = float(np.maximum(smallest_p(nonzero), _least(signs)).min())
    p = own if h < 2 else joint
    error = _error(p, signs)
    if divided and h > 1:
        by_holm = np.ones(len(p))
        by_holm[tested] = holm(np.where(small_and_steady(differences, measures), own, 1.0)[tested])
        first, second = joint / _SHARE, by_holm / (1.0 - _SHARE)
        p = np.minimum(1.0, np.minimum(first, second))
        error = np.where(first <= second, error / _SHARE, second / own * _error(own, signs))
        least = min(1.0, least / _SHARE)
    return Family(p, error, signs.n_resamples, signs.exhaustive, own, divided, least)


def family_resamples(h: int, level: float = LEVEL) -> tuple[int, bool]:
    """Return the resamples for a family of h hypotheses, and whether max-T and Holm divide the level.

    With 10 h/level resamples (10,000 to 400,000), the smallest p of Holm's part is half the level. If 400,000 resamples
    cannot be enough (h > 4,000 at level 0.05), max-T has the full level, with at least 500/level resamples.

    >>> family_resamples(28), family_resamples(1000), family_resamples(5356)
    ((10000, True), (200000, True), (10000, False))
    """
    if 5 * h / level > MOST:
        return max(FEWEST, math.ceil(500 / level - 1e-9)), False
    return min(MOST, max(FEWEST, math.ceil(10 * h / level - 1e-9))), True


class Simultaneous(NamedTuple):
    """The result of `simultaneous_intervals` for h means."""

    low: np.ndarray  # float64 (h,); NaN without an interval
    high: np.ndarray
    critical: np.ndarray  # float64 (h,): the half width by max-T; infinite if so few topics or hypotheses have none


def simultaneous_intervals(
    differences: ArrayLike,
    measures: ArrayLike | None = None,
    *,
    level: float = 0.95,
    random_state: RandomState = 0,
) -> Simultaneous:
    """Return intervals of mean differences that simultaneously contain all true means with probability `level`.

    Use these intervals for a selected mean, such as the mean of the best of several systems. The intervals are the
    single-step intervals of `divided_step_down`, so its p can be below 0.05 although the interval contains 0.

    Parameters
    ----------
    differences, measures, random_state
        See `step_down_max_t`.
    level : float in (0, 1), default=0.95

    Notes
    -----
    With α = 1 - level and h hypotheses with differences, the interval of hypothesis k is the intersection of

        m_k ± √(n_k/(n_k - 1)) q s_v/√n_k     q the 1 - 0.8 α quantile of max |T*| of the centred differences
        m_k ± t s_k/√n_k                      t Student's quantile for 1 - 0.2 α/h, if k is `small_and_steady`

    s_v is here the root mean square of the centred differences. A single hypothesis has Student's interval at `level`.
    If max-T has the full level, only the first line applies. With one topic, or equal differences, the interval is NaN.

    Examples
    --------
    >>> d = np.random.default_rng(0).normal([0.1, 0.0], 0.2, (50, 2))
    >>> found = simultaneous_intervals(d)
    >>> found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.034, -0.028], [0.161, 0.099])
    """
    from scipy.special import stdtrit

    d = as_differences(differences)
    topics, mean, deviation = moments(d)
    alpha = 1.0 - check_number(level, "level", "(0, 1)")
    h = int(np.count_nonzero(np.nan_to_num(d).any(axis=0)))
    divided = family_resamples(h, alpha)[1]
    shifted = np.where(np.isnan(d), d, np.where(deviation > 0, d - mean, 0.0))
    centred, scale = _with_scales(shifted, measures)
    critical = np.full(len(mean), math.inf)
    if h > 1:
        signs = Signs.of(len(d), max(FEWEST, math.ceil(500 / alpha - 1e-9)), random_state)
        columns = np.ascontiguousarray((centred / scale).T)
        largest = np.concatenate([np.abs(columns @ chunk.T).max(axis=0) for chunk in signs.chunks()])
        count = signs.fewest(_SHARE * alpha if divided else alpha)
        if count > 1:
            quantile = np.partition(largest, len(largest) - count)[len(largest) - count]
            critical = np.sqrt(topics / np.maximum(topics - 1, 1)) * quantile * scale / topics
    tail = own_level(h, alpha, divided) / 2.0
    own = stdtrit(np.maximum(topics - 1, 1), 1.0 - tail) * np.where(deviation > 0, deviation, 1.0) / np.sqrt(topics)
    half = np.minimum(critical, np.where(small_and_steady(shifted, measures) | (h < 2), own, math.inf))
    half[(deviation == 0) | (topics < 2) | np.isinf(half)] = math.nan
    return Simultaneous(mean - half, mean + half, critical)


def small_and_steady(differences: ArrayLike, measures: ArrayLike | None = None) -> np.ndarray:
    """Return which hypotheses (h,) Holm's part tests: hypotheses with small and steady differences.

    The root mean square of small differences is at most an eighth of the scale s_v of their measure, so that max-T
    cannot find them. The choice does not depend on the signs, and neither does `steady_differences`.
    """
    d, scale = _with_scales(differences, measures)
    small = np.sqrt((d**2).sum(axis=0)) <= _SMALL * scale
    return small & steady_differences(as_differences(differences))


def steady_differences(d: np.ndarray) -> np.ndarray:
    """Return which columns (h,) of differences (n, h) are steady: without outliers and without many equal sizes.

    The kurtosis about 0, n Σd⁴/(Σd²)², is at most 4 (3 for normal differences), and at most a quarter of the nonzero
    differences have the same absolute value. Both are independent of the signs, so a test by signs keeps its level
    among steady columns. A NaN counts as no topic.
    """
    topics = (~np.isnan(d)).sum(axis=0)
    sizes = np.sort(np.abs(np.nan_to_num(d)), axis=0)
    largest = np.where(sizes[-1] > 0, sizes[-1], 1.0)
    sizes /= largest
    steady = topics * (sizes**4).sum(axis=0) <= 4.0 * (sizes**2).sum(axis=0) ** 2
    quarter = np.count_nonzero(sizes, axis=0) // 4
    for k in np.unique(quarter):
        own = quarter == k
        low, high = sizes[: len(d) - k, own], sizes[k:, own]
        steady[own] &= ~((low > 0) & (high - low <= TIED)).any(axis=0)
    return steady


def own_level(h: int, alpha: float, divided: bool) -> float:
    """Return the level at which each of h hypotheses is tested by itself; 0 if max-T has the full level."""
    return alpha if h < 2 else (1.0 - _SHARE) * alpha / h if divided else 0.0


def _with_scales(differences: ArrayLike, measures: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences (n, h) with 0 for NaN, and the scale s_v √n_h of each hypothesis's sum."""
    d = as_differences(differences)
    h = d.shape[1]
    _, of = np.unique(np.zeros(h) if measures is None else np.asarray(measures), return_inverse=True)
    if of.shape != (h,):
        raise InvalidInputError(
            f"measures must have one name for each of the {h} hypotheses, got {len(of)}", argument="measures"
        )
    # The root mean square of each measure's differences, with equal weight for each hypothesis; 1 if all are 0.
    squares = np.bincount(of, weights=np.nanmean(d**2, axis=0)) / np.bincount(of)
    return np.nan_to_num(d), np.sqrt(np.where(squares > 0, squares, 1.0))[of] * np.sqrt((~np.isnan(d)).sum(axis=0))


def _resampled(d: np.ndarray, scale: np.ndarray, signs: Signs) -> tuple[np.ndarray, np.ndarray]:
    """Return the step-down p (h,) of max-T, and each hypothesis's own p (h,), by the same signs."""
    nonzero = np.count_nonzero(d, axis=0)
    t, rounding = np.abs(d.sum(axis=0)) / scale, TIED * np.abs(d).sum(axis=0) / scale
    tested = np.flatnonzero(nonzero)
    tested = tested[np.argsort(t[tested], kind="stable")]  # by rising |T|
    joint, own = np.ones(len(t)), np.ones(len(t))
    if not len(tested):
        return joint, own
    threshold, own_threshold = t[tested, None] - rounding[tested].max(), (t - rounding)[tested, None]
    scaled = np.ascontiguousarray((d / scale)[:, tested].T)
    counts, own_counts = np.zeros(len(tested), dtype=np.int64), np.zeros(len(tested), dtype=np.int64)
    for chunk in signs.chunks():
        largest = scaled @ chunk.T
        np.abs(largest, out=largest)
        own_counts += np.count_nonzero(largest >= own_threshold, axis=1)
        np.maximum.accumulate(largest, axis=0, out=largest)
        counts += np.count_nonzero(largest >= threshold, axis=1)
    least = smallest_p(nonzero[tested])
    joint[tested] = np.maximum.accumulate(np.maximum(signs.p(counts), least)[::-1])[::-1]
    own[tested] = np.maximum(signs.p(own_counts), least)
    return joint, own


def _error(p: np.ndarray, signs: Signs) -> np.ndarray:
    """Return the Monte Carlo standard error of each p (h,)."""
    return np.zeros(len(p)) if signs.exhaustive else np.sqrt(p * (1 - p) / signs.n_resamples)


def _least(signs: Signs) -> float:
    """Return the smallest p of random signs, or 0 if all sign vectors are tried."""
    return 0.0 if signs.exhaustive else 1 / (signs.n_resamples + 1)


def step_down_of_copies(
    values: np.ndarray, *, level: float = 0.05, n_resamples: int = 2_000, random_state: RandomState = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return adjusted p-values and noise floors (h,) of values, compared with the values of exchangeable copies.

    `values` (h hypotheses, n topics, 1 + R copies) has no NaN, and copy 0 is the original. p is below `level` exactly
    if the absolute mean over topics of the original less the mean of its copies is above the floor. Without any
    difference p is 1 and the floor 0.

    T_h = |Σ_i d_ih| / s_h, with d_ih the original less the mean of the copies, and s_h its root mean square over all
    choices. Each of the B resamples draws for every topic the copy that replaces the original, the same for all
    hypotheses. The step-down procedure is the procedure of `step_down_max_t`. Cost: O(B n h R) in a matrix product.

    Examples
    --------
    >>> values = np.zeros((2, 12, 4))
    >>> values[0, :, 0], values[1, ::2, 1] = 0.5, 0.5
    >>> p, floor = step_down_of_copies(values)
    >>> p.round(4).tolist(), floor.round(2).tolist()
    ([0.0005, 0.3438], [0.12, 0.08])
    """
    h, n, copies = values.shape
    found = differences_of(values, values.mean(axis=2, keepdims=True)) * (copies / (copies - 1))
    scale = np.sqrt((found**2).mean(axis=2).sum(axis=1))
    p, floor = np.ones(h), np.zeros(h)
    tested = np.flatnonzero(scale)
    if not len(tested):
        return p, floor
    t = np.abs(found[tested, :, 0].sum(axis=1)) / scale[tested]
    order = np.argsort(t, kind="stable")  # by rising |T|
    tested, t = tested[order], t[order]
    scaled = (found[tested] / scale[tested, None, None]).reshape(len(tested), -1)
    rng, one_of = np.random.default_rng(seed_of(random_state)), np.eye(copies)
    largest = np.empty((len(tested), n_resamples))
    for start in range(0, n_resamples, 64):
        draw = rng.integers(0, copies, (min(64, n_resamples - start), n))
        largest[:, start : start + 64] = scaled @ one_of[draw].reshape(len(draw), -1).T
    largest = np.maximum.accumulate(np.abs(largest), axis=0)
    own = (1.0 + (largest >= t[:, None] - 1e-9).sum(axis=1)) / (n_resamples + 1.0)
    p[tested] = np.maximum.accumulate(own[::-1])[::-1]
    # The largest count whose p is below the level leaves the next larger statistic as the critical one.
    allowed = min(n_resamples, math.ceil(level * (n_resamples + 1)) - 1)
    last = max(0, int(np.count_nonzero(p[tested] >= level)) - 1)
    floor[tested] = np.sort(largest[last])[n_resamples - max(allowed, 1)] * scale[tested] / n
    return p, floor
