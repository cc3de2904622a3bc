"""Tests of many paired comparisons at once, each with the 95 % interval that agrees with its p."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from truerank.core.types import ArrayLike, RandomState
from truerank.significance.two_samples import (
    Signs,
    as_differences,
    sign_test_of_counts,
    signed_rank_distribution,
    signs_p,
    smallest_p,
    wilcoxon,
)

TESTS = ("randomisation", "t", "wilcoxon", "sign")
OF_MEANS = TESTS[:2]
LEVEL = 0.05
_INVERTED, _INVERTED_OF_MANY = 10_000, 2_000  # resamples for an interval, and with more than 1,000 comparisons
_COLUMNS = 250  # comparisons whose resamples are held at a time
_MOST_WALSH = 3_000  # queries up to which Wilcoxon's test is inverted


class Paired(NamedTuple):
    """Results for h comparisons, arrays (h,)."""

    topics: np.ndarray  # number of topics with a value
    mean: np.ndarray
    deviation: np.ndarray  # standard deviation (n - 1) of the differences; 0 if they differ by rounding alone
    p: np.ndarray  # NaN if the test has none
    low: np.ndarray  # of the 95 % interval; NaN if there is none
    high: np.ndarray
    smallest: np.ndarray  # the smallest p that the number of nonzero differences allows
    n_resamples: int


def paired_tests(
    test: str,
    differences: ArrayLike,
    *,
    magnitude: object = 0.0,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
) -> Paired:
    """Return p-values of differences (n topics, h comparisons) and the intervals that their test does not reject.

    A NaN marks a topic without a value. The interval contains 0 exactly if p is at least 0.05. It is that of the mean
    ("t" and "randomisation"), of the pseudo-median ("wilcoxon"), or of the share of wins, which contains 1/2 instead of
    0 ("sign"). For fewer than two topics, p and the interval are NaN. If all differences are equal, the interval of the
    mean and the p of the t-test are NaN. If all are 0, p is 1.
    """
    d = as_differences(differences)
    topics, mean, deviation = _moments(d)
    nonzero = np.count_nonzero(np.nan_to_num(d), axis=0)
    signs = Signs.of(len(d), n_resamples, random_state)
    if test == "t":
        p, low, high = _student(mean, deviation, topics)
        smallest = np.zeros(len(p))
    elif test == "randomisation":
        p = signs_p(np.nan_to_num(d), signs, magnitude)
        low, high = _inverted(d, signs)
        smallest = np.maximum(smallest_p(nonzero), 0.0 if signs.exhaustive else 1 / (signs.n_resamples + 1))
    else:
        p, low, high = np.array([_by_ranks(test, column[~np.isnan(column)]) for column in d.T]).T
        smallest = smallest_p(nonzero)
    single = topics < 2
    without_interval = single | (deviation == 0) if test in OF_MEANS else single
    without_p = without_interval if test == "t" else single
    p = np.where(nonzero == 0, 1.0, np.where(without_p, math.nan, p))
    smallest = np.where(without_p | (nonzero == 0), 1.0, smallest)
    low, high = _agreeing(p, without_interval, low, high, 0.5 if test == "sign" else 0.0)
    return Paired(topics, mean, deviation, p, low, high, smallest, signs.n_resamples)


def _moments(d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of topics, mean and standard deviation of each column."""
    there = ~np.isnan(d.T)
    rows = np.ascontiguousarray(np.nan_to_num(d).T)
    topics = there.sum(axis=1)
    mean = rows.sum(axis=1) / topics
    centred = np.where(there, rows - mean[:, None], 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1) / np.maximum(topics - 1, 1))
    return topics, mean, np.where(deviation <= 1e-15 * np.abs(rows).max(axis=1), 0.0, deviation)


def _agreeing(
    p: np.ndarray, without: np.ndarray, low: np.ndarray, high: np.ndarray, at: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends on the side of `at` that p indicates, also where rounding differs; NaN without an interval."""
    kept = p >= LEVEL
    low, high = np.where(kept, np.minimum(low, at), low), np.where(kept, np.maximum(high, at), high)
    astride = ~kept & (low <= at) & (high >= at)
    above = astride & (at - low < high - at)
    low, high = np.where(above, np.nextafter(at, 1), low), np.where(astride & ~above, np.nextafter(at, -1), high)
    without = without | ~np.isfinite(low) | ~np.isfinite(high)
    return np.where(without, math.nan, low), np.where(without, math.nan, high)


def _student(mean: np.ndarray, deviation: np.ndarray, topics: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return p and both ends of Student's interval."""
    from scipy.special import stdtr, stdtrit

    freedom = np.maximum(topics - 1, 1)
    error = np.where(deviation > 0, deviation, 1.0) / np.sqrt(topics)
    p = np.minimum(1.0, 2.0 * stdtr(freedom, -np.abs(mean / error)))
    half = stdtrit(freedom, 1.0 - LEVEL / 2.0) * error
    return p, mean - half, mean + half


def _inverted(d: np.ndarray, signs: Signs) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the shifts θ that the randomisation test of d - θ does not reject.

    For θ below the mean, a resample is as extreme as the observation if θ is at least the mean of the topics whose sign
    it changes, or of the others. The ends are therefore order statistics of these means.
    """
    h = d.shape[1]
    if not signs.exhaustive:
        most = _INVERTED if h <= 1_000 else _INVERTED_OF_MANY
        signs = signs._replace(n_resamples=min(most, signs.n_resamples))
    count = signs.fewest(LEVEL)
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
            same = (kept == 0) | (kept == n)  # equal to the observation for every shift
            lower[:, here] = np.where(same, -math.inf, np.minimum(first, second))
            upper[:, here] = np.where(same, math.inf, np.maximum(first, second))
        ends[0][part] = np.partition(lower, count - 1, axis=1)[:, count - 1]
        ends[1][part] = np.partition(upper, signs.rows - count, axis=1)[:, signs.rows - count]
    return ends


def _by_ranks(test: str, difference: np.ndarray) -> tuple[float, float, float]:
    """Return p and the interval of the sign test's share of wins, or of Wilcoxon's pseudo-median."""
    if test == "sign":
        wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
        return sign_test_of_counts(wins, losses).p, *share_interval(wins, losses)
    p = wilcoxon(difference, np.zeros(len(difference))).p
    n = len(difference)
    k = _critical(n) if n <= _MOST_WALSH else -1
    if k < 0:
        return p, math.nan, math.nan
    walsh = (difference[:, None] + difference)[np.triu_indices(n)] / 2.0
    low, high = np.partition(walsh, (k, len(walsh) - 1 - k))[[k, -1 - k]].tolist()
    agrees = (low <= 0 <= high) == (p >= LEVEL)
    return (p, low, high) if agrees else (p, math.nan, math.nan)


@lru_cache(maxsize=64)
def _critical(n: int) -> int:
    """Return the number of Walsh averages outside each end: one more than the largest rank sum with p < 0.05; or -1."""
    if n > 50:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24.0)
        return math.ceil(n * (n + 1) / 4.0 - NormalDist().inv_cdf(1.0 - LEVEL / 2.0) * deviation)
    tail = 2.0 * np.cumsum(signed_rank_distribution(np.arange(1, n + 1)))
    return int(np.searchsorted(tail, LEVEL, side="left")) or -1


def share_interval(wins: int, losses: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95 % interval of the share of wins among the queries that differ; NaN if none does.

    >>> [round(end, 4) for end in share_interval(8, 2)]
    [0.4439, 0.9748]
    """
    if wins + losses == 0:
        return math.nan, math.nan
    from scipy.special import betaincinv

    low = 0.0 if wins == 0 else float(betaincinv(wins, losses + 1, LEVEL / 2.0))
    high = 1.0 if losses == 0 else float(betaincinv(wins + 1, losses, 1.0 - LEVEL / 2.0))
    return low, high
