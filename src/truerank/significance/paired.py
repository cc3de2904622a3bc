"""Two-sided tests of differences between rankers, from their values (m,) on the same queries, for one pair or many.

Queries with a NaN of either ranker are left out. Differences that rounding alone explains are 0 (`differences_of`). If
all differences are 0, p is 1. The paired t-test has no p (NaN) for a single query and for equal differences, whose
variance is 0. The number of nonzero differences determines the smallest possible p.
All comparisons of a table use the same random signs (`Signs`), and each has the 95 % interval that agrees with its p.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.core.types import ArrayLike, RandomState

TESTS = ("randomisation", "t", "wilcoxon", "sign")
OF_MEANS = TESTS[:2]
LEVEL = 0.05
_INVERTED, _INVERTED_OF_MANY = 10_000, 2_000  # resamples for an interval, and with more than 1,000 comparisons
_COLUMNS = 250  # comparisons whose resamples are held at a time
_MOST_WALSH = 3_000  # queries up to which Wilcoxon's test is inverted
TIED = 1e-9  # sums, ranks and deviations within this share of the absolute differences are equal
_ROUNDING = 2.0**-40  # of the values: a smaller difference is rounding
EXACT = 50  # nonzero differences up to which Wilcoxon's distribution is exact
_ROWS = 256  # resamples made at a time, always the same number, so that a seed gives the same signs everywhere


class Outcome(NamedTuple):
    """The statistic and the two-sided p-value of a test."""

    statistic: float
    p: float


class WinLoss(NamedTuple):
    """The numbers of queries on which the first ranker is better, worse, and equal."""

    wins: int
    losses: int
    ties: int


def paired_t(a: ArrayLike, b: ArrayLike) -> Outcome:
    """Return Student's t-test of paired differences.

    Equal differences other than 0 have an infinite statistic, and a single query has the statistic 0. Both have p NaN.

    Examples
    --------
    >>> result = paired_t([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.8, 0.4])
    >>> round(result.statistic, 4), round(result.p, 4)
    (2.4495, 0.0917)
    """
    difference = paired_differences(a, b)
    n = len(difference)
    if not difference.any():
        return Outcome(0.0, 1.0)
    if n < 2:
        return Outcome(0.0, math.nan)
    mean, deviation = difference.mean(), deviation_of(difference)
    if deviation == 0:
        return Outcome(math.copysign(math.inf, mean), math.nan)
    from scipy.special import stdtr

    statistic = mean / (deviation / np.sqrt(n))
    return Outcome(float(statistic), float(min(1.0, 2.0 * stdtr(n - 1, -abs(statistic)))))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> Outcome:
    """Return Wilcoxon's signed rank test, where zeros are ranked and then dropped (Pratt, JASA 54, 1959, 655-667).

    Ties have their mean rank. The statistic is the smaller of the rank sums of wins and losses. Up to 50 nonzero
    differences its distribution is exact. Above 50, the normal approximation without a continuity correction is used.

    Examples
    --------
    >>> wilcoxon([0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0])
    Outcome(statistic=0.0, p=0.125)
    """
    difference = paired_differences(a, b)
    positive, doubled = signed_ranks(difference)
    if len(doubled) == 0:
        return Outcome(0.0, 1.0)
    wins = int(doubled[positive].sum())
    total = int(doubled.sum())
    smaller = min(wins, total - wins)
    if len(doubled) > EXACT:
        p = math.erfc((total / 2.0 - smaller) / math.sqrt(float((doubled**2.0).sum()) / 2.0))
    else:
        p = min(1.0, 2.0 * float(signed_rank_distribution(doubled)[: smaller + 1].sum()))
    return Outcome(smaller / 2.0, p)


def signed_ranks(difference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return signs and doubled mean ranks (integers) of the nonzero differences; values tie after rounding."""
    size = np.abs(difference)
    order = np.argsort(size, kind="stable")
    tied = np.cumsum(np.diff(size[order], prepend=0.0) > TIED * size.max(initial=0.0))
    _, place, count = np.unique(tied, return_inverse=True, return_counts=True)
    doubled = np.empty(len(difference), dtype=np.int64)
    doubled[order] = (2 * (np.cumsum(count) - count) + count + 1)[place]
    there = difference != 0
    return difference[there] > 0, doubled[there]


def gain_by(test: str, differences: np.ndarray) -> float:
    """Return the sum that a test compares with 0: of differences, of wins minus losses, or of signed ranks.

    >>> [gain_by(test, np.array([0.9, -0.1, -0.2, -0.3])) > 0 for test in TESTS]
    [True, True, False, False]
    """
    d = differences[~np.isnan(differences)]
    if test == "sign":
        return float(np.sign(d).sum())
    if test == "wilcoxon":
        positive, doubled = signed_ranks(d)
        return float(np.where(positive, doubled, -doubled).sum())
    return float(d.sum())


def signed_rank_distribution(doubled: np.ndarray) -> np.ndarray:
    """Return the probability, under random signs, of each sum 0 … Σ of the doubled ranks with a positive sign."""
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled.tolist():
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2.0
        chance[:rank] /= 2.0
    return chance


def sign_test(a: ArrayLike, b: ArrayLike) -> Outcome:
    """Return the exact binomial test of wins against losses; ties are ignored. The statistic is the share of wins."""
    counts = win_loss(a, b)
    return sign_test_of_counts(counts.wins, counts.losses)


def sign_test_of_counts(wins: int, losses: int) -> Outcome:
    """Return the sign test of counts, for example of right and wrong decisions."""
    wins, losses = check_positive_int(wins, "wins", 0), check_positive_int(losses, "losses", 0)
    if wins + losses == 0:
        return Outcome(0.5, 1.0)
    from scipy.special import bdtr

    # Two-sided p of a symmetric binomial: twice the smaller tail.
    p = min(1.0, 2.0 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
    return Outcome(wins / (wins + losses), p)


def randomisation(a: ArrayLike, b: ArrayLike, *, n_resamples: int = 10_000, random_state: RandomState = 0) -> Outcome:
    """Return Fisher's paired randomisation test of whether the two values of a query are interchangeable.

    Each of the B resamples swaps the two values of a query with probability 1/2. With count resamples whose absolute
    mean difference is at least the observed one, p = (count + 1)/(B + 1). If all 2^n ≤ B swaps are tried, p is exact.
    """
    difference = paired_differences(a, b)
    signs = Signs.of(len(difference), n_resamples, random_state)
    return Outcome(float(difference.mean()), float(signs_p(difference[:, None], signs)[0]))


def win_loss(a: ArrayLike, b: ArrayLike) -> WinLoss:
    """Count the queries on which `a` is better than `b`, worse than `b`, and equal to `b`."""
    difference = paired_differences(a, b)
    wins, losses = int(np.count_nonzero(difference > 0)), int(np.count_nonzero(difference < 0))
    return WinLoss(wins, losses, len(difference) - wins - losses)


def paired_differences(a: ArrayLike, b: ArrayLike | None = None) -> np.ndarray:
    """Return `a - b` by query (`differences_of`), or `a`, without the queries where either value is NaN."""
    difference = as_sample(a, "a", nan=True)
    if b is not None:
        other = as_sample(b, "b", nan=True)
        if difference.shape != other.shape:
            raise InvalidInputError(
                f"a paired test requires values of the same queries, got {len(difference)} and {len(other)} values",
                code="other-queries",
            )
        difference = differences_of(difference, other)
    difference = difference[~np.isnan(difference)]
    if len(difference) == 0:
        raise InvalidInputError(
            "a paired test requires at least one query with values of both rankers, got none", code="no-query"
        )
    return difference


def differences_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return `a - b` with 0 for a difference of at most 2^-40 (|a| + |b|), which can be rounding alone.

    Rounding is removed only here: tests, counts, influence and power use the result. Do not apply it
    to shifted differences d - θ.

    >>> differences_of(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25])).tolist()
    [0.0, 0.25]
    """
    difference = a - b
    return np.where(np.abs(difference) <= _ROUNDING * np.abs(a) + _ROUNDING * np.abs(b), 0.0, difference)


def deviation_of(difference: np.ndarray) -> float:
    """Return the standard deviation (n - 1) of differences; 0 for a single one, or if all are equal up to rounding."""
    if len(difference) < 2:
        return 0.0
    deviation = float(difference.std(ddof=1))
    return 0.0 if deviation <= TIED * float(np.abs(difference).max()) else deviation


def as_sample(values: ArrayLike, name: str, nan: bool = False) -> np.ndarray:
    """Return finite values as float64 (n,); NaN are allowed with `nan`."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold numbers: {error}", argument=name) from error
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, one value for each query, got shape {array.shape}")
    bad = np.isinf(array) if nan else ~np.isfinite(array)
    if bad.any():
        raise InvalidInputError(f"{name} must be finite, got {array[bad][0]} at index {np.argmax(bad)}", argument=name)
    return array


class Paired(NamedTuple):
    """Results for h comparisons, arrays (h,)."""

    topics: np.ndarray  # number of topics with a value
    mean: np.ndarray
    deviation: np.ndarray  # standard deviation (n - 1) of the differences; 0 if they differ by rounding alone
    p: np.ndarray  # NaN if the test has none
    low: np.ndarray  # of the interval at 1 - level; NaN if there is none
    high: np.ndarray
    smallest: np.ndarray  # the smallest p that the number of nonzero differences allows
    n_resamples: int


def paired_tests(
    test: str,
    differences: ArrayLike,
    *,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
    own: np.ndarray | None = None,
    level: float = LEVEL,
) -> Paired:
    """Return p-values of differences (n topics, h comparisons), and the intervals that agree with the test.

    A NaN marks a topic without a value. The interval is for the mean ("t" and "randomisation"), the pseudo-median
    ("wilcoxon"), or the share of wins ("sign"). It contains 0, or 1/2 for "sign", exactly if p is at least `level`. For
    fewer than two topics, p and the interval are NaN. If all differences are equal, the interval of the mean and the p
    of the t-test are NaN. If all differences are 0, p is 1. `own` is the p (h,) of the randomisation test, if known.
    """
    d = as_differences(differences)
    topics, mean, deviation = moments(d)
    nonzero = np.count_nonzero(np.nan_to_num(d), axis=0)
    signs = Signs.of(len(d), n_resamples, random_state)
    if test == "t":
        p, low, high = _student(mean, deviation, topics, level)
        smallest = np.zeros(len(p))
    elif test == "randomisation":
        p = signs_p(np.nan_to_num(d), signs) if own is None else own
        low, high = _inverted(d, signs, level)
        smallest = np.maximum(smallest_p(nonzero), 0.0 if signs.exhaustive else 1 / (signs.n_resamples + 1))
    else:
        p, low, high = np.array([_by_ranks(test, column[~np.isnan(column)], level) for column in d.T]).T
        smallest = smallest_p(nonzero)
    single = topics < 2
    without_interval = single | (deviation == 0) if test in OF_MEANS else single
    without_p = without_interval if test == "t" else single
    p = np.where(nonzero == 0, 1.0, np.where(without_p, math.nan, p))
    smallest = np.where(without_p | (nonzero == 0), 1.0, smallest)
    low, high = _agreeing(p, without_interval, low, high, 0.5 if test == "sign" else 0.0, level)
    return Paired(topics, mean, deviation, p, low, high, smallest, signs.n_resamples)


def moments(d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of topics, mean and standard deviation of each column."""
    there = ~np.isnan(d.T)
    rows = np.ascontiguousarray(np.nan_to_num(d).T)
    topics = there.sum(axis=1)
    mean = rows.sum(axis=1) / topics
    centred = np.where(there, rows - mean[:, None], 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1) / np.maximum(topics - 1, 1))
    return topics, mean, np.where(deviation <= TIED * np.abs(rows).max(axis=1, initial=0.0), 0.0, deviation)


def _agreeing(
    p: np.ndarray, without: np.ndarray, low: np.ndarray, high: np.ndarray, at: float, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends that contain 0 or not as p requires, also if rounding differs; NaN without an interval."""
    kept = p >= level
    low, high = np.where(kept, np.minimum(low, at), low), np.where(kept, np.maximum(high, at), high)
    astride = ~kept & (low <= at) & (high >= at)
    above = astride & (at - low < high - at)
    low, high = np.where(above, np.nextafter(at, 1), low), np.where(astride & ~above, np.nextafter(at, -1), high)
    without = without | ~np.isfinite(low) | ~np.isfinite(high)
    return np.where(without, math.nan, low), np.where(without, math.nan, high)


def _student(mean: np.ndarray, deviation: np.ndarray, topics: np.ndarray, level: float) -> tuple[np.ndarray, ...]:
    """Return p and both ends of Student's interval."""
    from scipy.special import stdtr, stdtrit

    freedom = np.maximum(topics - 1, 1)
    error = np.where(deviation > 0, deviation, 1.0) / np.sqrt(topics)
    p = np.minimum(1.0, 2.0 * stdtr(freedom, -np.abs(mean / error)))
    half = stdtrit(freedom, 1.0 - level / 2.0) * error
    return p, mean - half, mean + half


def _inverted(d: np.ndarray, signs: Signs, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the shifts θ that the randomisation test of d - θ does not reject."""
    # For θ below the mean, a resample is as extreme as the observation if θ is at least the mean of the topics whose
    # sign it changes, or of the others. The ends are therefore order statistics of these means.
    h = d.shape[1]
    if not signs.exhaustive:
        most = max(_INVERTED if h <= 1_000 else _INVERTED_OF_MANY, math.ceil(2 / level))
        signs = signs._replace(n_resamples=min(most, signs.n_resamples))
    count = signs.fewest(level)
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


def _by_ranks(test: str, difference: np.ndarray, level: float) -> tuple[float, float, float]:
    """Return p and the interval of the sign test's share of wins, or of Wilcoxon's pseudo-median."""
    if test == "sign":
        wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
        return sign_test_of_counts(wins, losses).p, *share_interval(wins, losses, level)
    p = wilcoxon(difference, np.zeros(len(difference))).p
    n = len(difference)
    k = _critical(n, level) if n <= _MOST_WALSH else -1
    if k < 0:
        return p, math.nan, math.nan
    walsh = (difference[:, None] + difference)[np.triu_indices(n)] / 2.0
    ends = np.partition(walsh, (k, len(walsh) - 1 - k))[[k, -1 - k]]
    low, high = np.where(np.abs(ends) <= TIED * np.abs(difference).max(), 0.0, ends).tolist()
    agrees = (low <= 0 <= high) == (p >= level)
    return (p, low, high) if agrees else (p, math.nan, math.nan)


@lru_cache(maxsize=64)
def _critical(n: int, level: float) -> int:
    """Return the number of Walsh averages outside each end: the largest rank sum with p < level plus one; or -1."""
    if n > EXACT:
        deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24.0)
        return math.ceil(n * (n + 1) / 4.0 - NormalDist().inv_cdf(1.0 - level / 2.0) * deviation)
    tail = 2.0 * np.cumsum(signed_rank_distribution(np.arange(1, n + 1)))
    return int(np.searchsorted(tail, level, side="left")) or -1


def share_interval(wins: int, losses: int, level: float = LEVEL) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of the share of wins among differing queries, or NaN without such queries.

    >>> [round(end, 4) for end in share_interval(8, 2)]
    [0.4439, 0.9748]
    """
    if wins + losses == 0:
        return math.nan, math.nan
    from scipy.special import betaincinv

    low = 0.0 if wins == 0 else float(betaincinv(wins, losses + 1, level / 2.0))
    high = 1.0 if losses == 0 else float(betaincinv(wins + 1, losses, 1.0 - level / 2.0))
    return low, high


class Signs(NamedTuple):
    """Signs of `n` topics, as all 2^n sign vectors if there are at most `n_resamples` of them, else as random draws.

    Of two vectors that differ by the factor -1, only one is enumerated, since a two-sided test counts both or neither.
    """

    n: int
    exhaustive: bool
    n_resamples: int
    seed: np.random.SeedSequence

    @classmethod
    def of(cls, n: int, n_resamples: int, random_state: RandomState) -> Signs:
        """Return the sign vectors of `n` topics, at most `n_resamples` of them."""
        b = check_positive_int(n_resamples, "n_resamples")
        exhaustive = 2**n <= b
        return cls(n, exhaustive, 2**n if exhaustive else b, np.random.SeedSequence(seed_of(random_state)))

    @property
    def rows(self) -> int:
        """The number of sign vectors that `chunks` yields in total."""
        return self.n_resamples // 2 if self.exhaustive and self.n else self.n_resamples

    def chunks(self) -> Iterator[np.ndarray]:
        """Yield the signs as float64 arrays (at most 256, n) of -1 and 1."""
        rng = np.random.default_rng(self.seed)
        width = -(-self.n // 8)
        for start in range(0, self.rows, _ROWS):
            here = min(_ROWS, self.rows - start)
            bits: Any
            if self.exhaustive:
                bits = (np.arange(start, start + here)[:, None] >> np.arange(self.n)) & 1
            else:
                drawn = np.frombuffer(rng.bytes(_ROWS * width), dtype=np.uint8).reshape(_ROWS, width)
                bits = np.unpackbits(drawn[:here], axis=1, count=self.n)
            yield 1.0 - 2.0 * bits

    def p(self, counts: np.ndarray) -> np.ndarray:
        """Return p, exact or (count + 1)/(B + 1), from the counts of vectors at least as extreme as the observation."""
        return counts / self.rows if self.exhaustive else (counts + 1.0) / (self.rows + 1.0)

    def fewest(self, level: float) -> int:
        """Return the smallest count for which p is at least `level`."""
        least = level * self.rows if self.exhaustive else level * (self.rows + 1) - 1
        return max(0, math.ceil(least - 1e-9))


def as_differences(differences: ArrayLike) -> np.ndarray:
    """Return differences as float64 (n, h), without the topics that are NaN for every hypothesis."""
    found = np.asarray(differences, dtype=np.float64)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or np.isinf(found).any():
        raise InvalidInputError(
            f"differences (topics, pairs) must be finite or NaN, got {np.isinf(found).sum()} inf, shape {found.shape}",
            argument="differences",
        )
    defined = ~np.isnan(found)
    if not defined.any(axis=0).all():
        raise InvalidInputError(
            f"{np.sum(~defined.any(axis=0))} of {found.shape[1]} pairs have no common topic. Compare other rankers",
            code="no-common-topic",
        )
    return found if defined.any(axis=1).all() else found[defined.any(axis=1)]


def signs_p(d: np.ndarray, signs: Signs) -> np.ndarray:
    """Return the two-sided p (h,) of each column's sum under random signs, at least `smallest_p`.

    `d` holds differences (n, h) without NaN.
    """
    threshold = (np.abs(d.sum(axis=0)) - TIED * np.abs(d).sum(axis=0))[:, None]
    columns = np.ascontiguousarray(d.T)
    counts = np.zeros(d.shape[1], dtype=np.int64)
    for chunk in signs.chunks():
        counts += np.count_nonzero(np.abs(columns @ chunk.T) >= threshold, axis=1)
    return np.maximum(signs.p(counts), smallest_p(np.count_nonzero(d, axis=0)))


def smallest_p(nonzero: Any) -> Any:
    """Return the smallest two-sided p of a sign test with `nonzero` differences: 2^(1 - nonzero), at most 1."""
    return np.minimum(1.0, np.exp2(1.0 - np.asarray(nonzero, dtype=np.float64)))
