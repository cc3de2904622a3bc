"""Tests of a difference between two rankers, as thin functions over SciPy's.

All are two-sided. Samples are per-query values (m,) of two rankers on the same queries; queries where either is NaN
(skipped by the measure) are left out. What is degenerate has a stated result, never NaN and never a warning: without
any difference p is 1; with a single query, which can show nothing about others, the paired t-test has p = 1.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError


class Outcome(NamedTuple):
    """Statistic and two-sided p-value of a test."""

    statistic: float
    p: float


class WinLoss(NamedTuple):
    """Queries on which the first ranker is better, worse, and equal."""

    wins: int
    losses: int
    ties: int


def paired_t(a: Any, b: Any) -> Outcome:
    """Student's t-test on paired differences (the AdaRank paper's, at p < .05).

    Equal differences that are not 0 give an infinite statistic and p = 0; a single query gives t = 0 and p = 1.

    Examples
    --------
    >>> result = paired_t([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.8, 0.4])
    >>> round(result.statistic, 4), round(result.p, 4)
    (2.4495, 0.0917)
    """
    difference = paired_differences(a, b)
    n = len(difference)
    if n < 2 or not difference.any():
        return Outcome(0.0, 1.0)
    mean, deviation = difference.mean(), deviation_of(difference)
    if deviation == 0:
        return Outcome(float(np.copysign(np.inf, mean)), 0.0)
    from scipy.special import stdtr

    statistic = mean / (deviation / np.sqrt(n))
    return Outcome(float(statistic), float(min(1.0, 2.0 * stdtr(n - 1, -abs(statistic)))))


def wilcoxon(a: Any, b: Any) -> Outcome:
    """Wilcoxon's signed rank test (the SVM-MAP paper's, at .95): zero differences are dropped.

    The statistic is the smaller of the two rank sums. SciPy's `wilcoxon` does the work: the exact distribution for at
    most 50 nonzero differences without ties, else the normal approximation. (Called with zeros among the differences,
    SciPy approximates at once; p-values of 1e-9 and 1e-7 were seen for the same 50 topics.)
    """
    difference = paired_differences(a, b)
    difference = difference[difference != 0]
    if len(difference) == 0:
        return Outcome(0.0, 1.0)
    from scipy.stats import wilcoxon as scipy_wilcoxon

    tied = len(np.unique(np.abs(difference))) < len(difference)
    method: Any = "exact" if len(difference) <= 50 and not tied else "approx"
    with warnings.catch_warnings():
        # SciPy 1.13 warns of every tied sample of fewer than ten.
        warnings.filterwarnings("ignore", "Sample size too small", UserWarning)
        result: Any = scipy_wilcoxon(difference, zero_method="wilcox", method=method)
    return Outcome(float(result.statistic), float(result.pvalue))


def rank_sum(a: Any, b: Any) -> Outcome:
    """Wilcoxon's rank-sum test of two independent samples, of any lengths (for repeated runs with other seeds).

    The statistic is Mann and Whitney's U of `a`; SciPy's `mannwhitneyu`, which corrects for ties.
    """
    first, second = _sample(a, "a"), _sample(b, "b")
    if len(first) == 0 or len(second) == 0:
        raise InvalidInputError("rank_sum needs at least one value in each sample")
    if np.ptp(np.concatenate([first, second])) == 0:
        return Outcome(len(first) * len(second) / 2.0, 1.0)
    from scipy.stats import mannwhitneyu

    result: Any = mannwhitneyu(first, second, alternative="two-sided")
    return Outcome(float(result.statistic), float(result.pvalue))


def sign_test(a: Any, b: Any) -> Outcome:
    """Sign test: the exact binomial test of wins against losses, ties left out. The statistic is the share of wins."""
    counts = win_loss(a, b)
    return sign_test_of_counts(counts.wins, counts.losses)


def sign_test_of_counts(wins: int, losses: int) -> Outcome:
    """The sign test from counts, for example of right and wrong decisions (the calibration paper's micro sign test)."""
    wins, losses = check_positive_int(wins, "wins", 0), check_positive_int(losses, "losses", 0)
    if wins + losses == 0:
        return Outcome(0.5, 1.0)
    from scipy.special import bdtr

    # Two-sided p of a symmetric binomial: twice the smaller tail.
    p = min(1.0, 2.0 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
    return Outcome(wins / (wins + losses), p)


def randomisation(a: Any, b: Any, *, n_resamples: int = 10_000, random_state: Any = 0) -> Outcome:
    """Paired randomisation test (Fisher's): are the rankers' values on a query interchangeable?

    Each resample swaps the two values of a query with probability 1/2. p = (count + 1)/(B + 1), where `count` of the B
    resamples have an absolute mean difference of at least the observed one. The statistic is that mean difference.
    Memory is bounded; the cost is `n_resamples` times the queries that differ.
    """
    difference = paired_differences(a, b)
    n_resamples = check_positive_int(n_resamples, "n_resamples")
    n = len(difference)
    difference = difference[difference != 0]
    if len(difference) == 0:
        return Outcome(0.0, 1.0)
    rng = np.random.default_rng(random_state)
    magnitude = np.nansum(np.abs(np.asarray(a, dtype=np.float64))) + np.nansum(np.abs(np.asarray(b, dtype=np.float64)))
    threshold = abs(difference.sum()) - rounding_of(np.abs(difference).sum(), magnitude)
    block = max(1, 250_000 // len(difference))
    count = 0
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        signs = rng.integers(0, 2, (rows, len(difference)), dtype=np.int8)
        sums = np.where(signs == 1, difference, -difference).sum(axis=1)
        count += int(np.count_nonzero(np.abs(sums) >= threshold))
    return Outcome(float(difference.sum() / n), (count + 1) / (n_resamples + 1))


def rounding_of(differences: Any, magnitude: Any) -> Any:
    """By how much two sums of signed differences may be apart that are equal in exact arithmetic, and must count so.

    `differences` is the sum of their magnitudes, and `magnitude` that of the values that they are differences of: next
    to large values the last bits of a small difference are rounding.
    """
    return 1e-12 * differences + 1e-15 * magnitude


def win_loss(a: Any, b: Any, *, tolerance: float = 0.0) -> WinLoss:
    """Queries on which `a` is better than `b`, worse, and equal (within `tolerance`)."""
    difference = paired_differences(a, b)
    wins = int(np.count_nonzero(difference > tolerance))
    losses = int(np.count_nonzero(difference < -tolerance))
    return WinLoss(wins, losses, len(difference) - wins - losses)


def paired_differences(a: Any, b: Any) -> np.ndarray:
    """`a - b` by query, without queries where either is NaN."""
    first, second = _sample(a, "a", nan=True), _sample(b, "b", nan=True)
    if first.shape != second.shape:
        raise InvalidInputError(
            f"a paired test needs values of the same queries: got {len(first)} and {len(second)} values"
        )
    difference = first - second
    difference = difference[~np.isnan(difference)]
    if len(difference) == 0:
        raise InvalidInputError("a paired test needs at least one query that both rankers have a value for")
    return difference


def deviation_of(difference: np.ndarray) -> float:
    """Standard deviation (n - 1) of two differences or more; 0 where they are equal but for rounding."""
    deviation = float(difference.std(ddof=1))
    return 0.0 if deviation <= 1e-15 * float(np.abs(difference).max()) else deviation


def _sample(values: Any, name: str, nan: bool = False) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold numbers: {error}") from error
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, one value for each query; got shape {array.shape}")
    if np.isinf(array).any() or (not nan and np.isnan(array).any()):
        raise InvalidInputError(f"{name} must hold finite numbers")
    return array
