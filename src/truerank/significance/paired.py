"""Tests of many paired comparisons at once, each with the interval that agrees with its p."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from truerank.core.types import ArrayLike, RandomState
from truerank.significance.signs import Signs, as_differences, signs_p, smallest_p
from truerank.significance.two_samples import deviation_of, sign_test_of_counts, signed_rank_distribution, wilcoxon

TESTS = ("randomisation", "t", "wilcoxon", "sign")
OF_MEANS = TESTS[:2]
_INVERTED = 10_000  # resamples that an interval is made of
_COLUMNS = 250  # comparisons whose resamples are held at a time
_MOST_WALSH = 3_000  # queries up to which Wilcoxon's test is inverted


class Paired(NamedTuple):
    """p (h,), and the ends (h,) of the interval at each level; NaN where there is none."""

    p: np.ndarray
    ends: dict[float, tuple[np.ndarray, np.ndarray]]
    smallest: np.ndarray
    n_resamples: int


def paired_tests(
    test: str,
    differences: ArrayLike,
    *,
    levels: tuple[float, ...] = (0.95,),
    magnitude: object = 0.0,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
) -> Paired:
    """Return p-values of differences (n topics, h comparisons) and the intervals that their test does not reject.

    NaN marks a topic without a value. The interval contains 0 exactly where p is at least 1 - level. It is that of the
    mean for "t" and "randomisation", of Hodges and Lehmann's pseudo-median for "wilcoxon", and for "sign" Clopper and
    Pearson's of the share of wins, which contains 1/2 instead. `smallest` is the smallest p that the number of topics
    that differ allows. Comparisons of fewer than two topics have neither p nor interval. Equal differences have no
    interval of the mean, and no p of the t-test; the signs of the other tests have one. Without any difference p is 1.
    """
    d = as_differences(differences)
    missing = np.isnan(d)
    topics = (~missing).sum(axis=0)
    nonzero = np.count_nonzero(np.nan_to_num(d), axis=0)
    deviation = np.array([deviation_of(one[~gone]) for one, gone in zip(d.T, missing.T)])
    signs = Signs.of(len(d), n_resamples, random_state)
    if test == "t":
        p, ends = _student(d, deviation, topics, levels)
        smallest = np.zeros(len(p))
    elif test == "randomisation":
        p = signs_p(np.nan_to_num(d), signs, magnitude)
        ends = {level: _inverted(d, signs, level) for level in levels}
        smallest = np.maximum(smallest_p(nonzero), 0.0 if signs.exhaustive else 1 / (signs.n_resamples + 1))
    else:
        tested = [_by_ranks(test, one[~gone], levels) for one, gone in zip(d.T, missing.T)]
        p = np.array([one[0] for one in tested])
        ends = {level: (np.array([o[1][level][0] for o in tested]), np.array([o[1][level][1] for o in tested]))
                for level in levels}  # fmt: skip
        smallest = smallest_p(nonzero)
    none = topics < 2
    if test == "t":
        none |= deviation == 0
    p = np.where(nonzero == 0, 1.0, np.where(none, math.nan, p))
    smallest = np.where(none | (nonzero == 0), 1.0, smallest)
    middle = 0.5 if test == "sign" else 0.0
    if test in OF_MEANS:
        none |= deviation == 0
    agreed = {level: _agreeing(p, none, pair, round(1.0 - level, 12), middle) for level, pair in ends.items()}
    return Paired(p, agreed, smallest, signs.n_resamples)


def _agreeing(p: Any, none: Any, ends: tuple[Any, Any], alpha: float, at: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends on the side of `at` that p says, in spite of rounding and other resamples; NaN without an interval."""
    low, high = ends
    kept = p >= alpha
    low, high = np.where(kept, np.minimum(low, at), low), np.where(kept, np.maximum(high, at), high)
    astride = ~kept & (low <= at) & (high >= at)
    above = astride & (at - low < high - at)
    low, high = np.where(above, np.nextafter(at, 1), low), np.where(astride & ~above, np.nextafter(at, -1), high)
    none = none | ~np.isfinite(low) | ~np.isfinite(high)
    return np.where(none, math.nan, low), np.where(none, math.nan, high)


def _student(
    d: np.ndarray, deviation: np.ndarray, topics: np.ndarray, levels: tuple[float, ...]
) -> tuple[np.ndarray, dict[float, tuple[np.ndarray, np.ndarray]]]:
    from scipy.special import stdtr, stdtrit

    freedom = np.maximum(topics - 1, 1)
    mean = np.nanmean(d, axis=0)
    error = np.where(deviation > 0, deviation, 1.0) / np.sqrt(topics)
    p = np.minimum(1.0, 2.0 * stdtr(freedom, -np.abs(mean / error)))
    half = {level: stdtrit(freedom, (1.0 + level) / 2.0) * error for level in levels}
    return p, {level: (mean - half[level], mean + half[level]) for level in levels}


def _inverted(d: np.ndarray, signs: Signs, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the shifts θ that the randomisation test of d - θ does not reject.

    For θ below the mean a resample is as extreme as what was observed where θ is at least the mean of the topics whose
    sign it turns, or of those whose sign it keeps. So the ends are order statistics of these means.
    """
    if not signs.exhaustive:
        signs = signs._replace(n_resamples=min(_INVERTED, signs.n_resamples))
    count = signs.fewest(1.0 - level)
    h = d.shape[1]
    ends = np.full(h, -math.inf), np.full(h, math.inf)
    if count == 0:
        return ends
    there = ~np.isnan(d)
    for start in range(0, h, _COLUMNS):
        part = slice(start, start + _COLUMNS)
        own = np.ascontiguousarray(np.nan_to_num(d[:, part]).T)
        with_value = np.ascontiguousarray(there[:, part].T.astype(np.float64))
        whole = bool(there[:, part].all())
        total, n = own.sum(axis=1)[:, None], with_value.sum(axis=1)[:, None]
        lower, upper = np.empty((len(own), signs.rows)), np.empty((len(own), signs.rows))
        row = 0
        for chunk in signs.chunks():
            here = slice(row, row + len(chunk))
            row += len(chunk)
            sums = own @ chunk.T
            kept = (n + (chunk.sum(axis=1) if whole else with_value @ chunk.T)) / 2.0
            with np.errstate(divide="ignore", invalid="ignore"):
                first, second = (total + sums) / 2.0 / kept, (total - sums) / 2.0 / (n - kept)
            same = (kept == 0) | (kept == n)  # no shift tells it from what was observed
            lower[:, here] = np.where(same, -math.inf, np.minimum(first, second))
            upper[:, here] = np.where(same, math.inf, np.maximum(first, second))
        ends[0][part] = np.partition(lower, count - 1, axis=1)[:, count - 1]
        ends[1][part] = np.partition(upper, signs.rows - count, axis=1)[:, signs.rows - count]
    return ends


def _by_ranks(
    test: str, difference: np.ndarray, levels: tuple[float, ...]
) -> tuple[float, dict[float, tuple[float, float]]]:
    """p and intervals of the sign test's share of wins or of Wilcoxon's pseudo-median."""
    if test == "sign":
        wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
        return sign_test_of_counts(wins, losses).p, {level: share_interval(wins, losses, level) for level in levels}
    p = wilcoxon(difference, np.zeros(len(difference))).p
    n = len(difference)
    if n > _MOST_WALSH:
        return p, dict.fromkeys(levels, (math.nan, math.nan))
    walsh = (difference[:, None] + difference)[np.triu_indices(n)] / 2.0
    found = {}
    for level in levels:
        k = _critical(n, round(1.0 - level, 12))
        low, high = (-math.inf, math.inf) if k < 0 else np.partition(walsh, (k, len(walsh) - 1 - k))[[k, -1 - k]]
        agrees = (low <= 0 <= high) == (p >= round(1.0 - level, 12))
        found[level] = (float(low), float(high)) if agrees else (math.nan, math.nan)
    return p, found


@lru_cache(maxsize=64)
def _critical(n: int, alpha: float) -> int:
    """Number of Walsh averages outside each end: one more than the largest untied rank sum with p < alpha."""
    if n > 50:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24.0)
        from statistics import NormalDist

        return math.ceil(n * (n + 1) / 4.0 - NormalDist().inv_cdf(1.0 - alpha / 2.0) * deviation)
    tail = 2.0 * np.cumsum(signed_rank_distribution(np.arange(1, n + 1)))
    found = int(np.searchsorted(tail, alpha, side="left"))
    return found if found else -1


def share_interval(wins: int, losses: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of the share of wins among the queries that differ; NaN where none does.

    >>> [round(end, 4) for end in share_interval(8, 2)]
    [0.4439, 0.9748]
    """
    if wins + losses == 0:
        return math.nan, math.nan
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = 0.0 if wins == 0 else float(betaincinv(wins, losses + 1, tail))
    high = 1.0 if losses == 0 else float(betaincinv(wins + 1, losses, 1.0 - tail))
    return low, high
