"""The power of a test for each number of queries, predicted from a pilot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.random_streams import seed_of
from truerank.core.results import Result, data_frame
from truerank.core.types import ArrayLike, RandomState, Test
from truerank.significance.paired import OF_MEANS, deviation_of, moments, paired_differences

_MOST = 100_000  # queries
_RESAMPLED = 2_000  # queries up to which resamples are drawn
_BLOCK = 2_000_000  # numbers that are held at a time
_COLUMNS = 250  # comparisons that are resampled at a time
_SIZES = (10, 25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200)


class Pilot(NamedTuple):
    """The systems of a pilot, their measure and convention, the observed difference, and whether it is the effect."""

    systems: tuple[str, ...]
    measure: str
    convention: str
    observed: float
    is_effect: bool

    def __str__(self) -> str:
        first, second = self.systems
        about = f", convention {self.convention}" if self.convention else ""
        text = f"Pilot: {first} minus {second}, {self.measure}{about}, observed difference {self.observed:+.4f}."
        if self.is_effect:
            text += (
                "\n\nThe effect is the observed difference, which is uncertain, and too large if the rankings were "
                "selected by it. Set the effect to the smallest difference that matters to you."
            )
        return text


class PowerSettings(TypedDict, total=False):
    """Arguments of `queries_needed` after the effect."""

    test: Test
    comparisons: int
    power: float
    level: float
    at: Sequence[int]
    n_resamples: int
    random_state: RandomState


@dataclass(repr=False)
class QueriesNeeded(Result):
    """The result of `queries_needed`.

    `n` is the smallest number of queries with the requested power, with a 95 % interval from `low` to `high`; None if
    100,000 are not enough. `power_by_n` holds the power and its 95 % interval for each number of queries.
    """

    n: int | None
    low: int | None
    high: int | None
    power_by_n: dict[int, tuple[float, float, float]] = field(repr=False)
    effect: float  # the true difference that is assumed
    deviation: float  # standard deviation of the pilot's differences
    pilot: int  # number of its queries
    test: str
    power: float  # requested
    level: float  # before it is divided by `comparisons`
    comparisons: int

    of: Pilot | None = None  # what the differences are of, where it is known

    KIND: ClassVar[str] = "power"

    def _figures(self) -> dict[str, Any]:
        found = asdict(self) | {"power_by_n": {str(n): list(one) for n, one in self.power_by_n.items()}}
        del found["of"]
        return found if self.of is None else found | self.of._asdict()

    @property
    def summary(self) -> str:
        """A sentence with the number of queries, its interval, and the difference that so many queries find."""
        found = f"more than {_MOST:,}" if self.n is None else f"{self.n:,}"
        ends = [f"more than {_MOST:,}" if end is None else f"{end:,}" for end in (self.low, self.high)]
        corrected = f", level {self.level:g} divided by {self.comparisons} comparisons" if self.comparisons > 1 else ""
        return (
            f"{found} queries (95 % interval {ends[0]} to {ends[1]}) give {100 * self.power:g} % power to find a true "
            f"difference of {self.effect:.4g} by a {self.test} test, two-sided{corrected}."
        )

    def _table(self, style: str) -> str:
        rows = [
            [n, f"{p:.2f}", f"[{low:.2f}, {high:.2f}]", *(["#" * round(40 * p)] if style == "text" else [])]
            for n, (p, low, high) in self.power_by_n.items()
        ]
        return styled_table(rows, ["queries", "power", "95% interval", *([""] if style == "text" else [])], style)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each number of queries."""
        columns = ("power", "low", "high")
        return data_frame(
            [dict(zip(columns, one)) for one in self.power_by_n.values()], list(self.power_by_n), "queries"
        )

    def __str__(self) -> str:
        about = (
            f"From {counted(self.pilot, 'pilot query')} with a standard deviation of {self.deviation:.4f}. "
            "The intervals reflect the uncertainty of this deviation."
        )
        return "\n\n".join([super().__str__(), about, *([] if self.of is None else [str(self.of)])])

    __repr__ = __str__


def queries_needed(
    differences: ArrayLike,
    effect: float = 0.02,
    test: str = "t",
    *,
    comparisons: int = 1,
    power: float = 0.8,
    level: float = 0.05,
    at: Sequence[int] = (),
    n_resamples: int = 2_000,
    random_state: RandomState = 0,
) -> QueriesNeeded:
    """Return how many queries a paired test requires to find a true mean difference, predicted from a pilot.

    The pilot's differences are centred and shifted by the effect, and queries are drawn from them with replacement. The
    power is the share of draws in which the test rejects in the direction of the effect. A pilot with a negative mean
    is mirrored, so that the order of the two rankers does not matter.

    Parameters
    ----------
    differences : float array (n,)
        Differences of a measure between two rankers by query. NaN are left out.
    effect : float, default 0.02
        The true mean difference, in the unit of the measure; not 0.
    test : {"randomisation", "t"}, default "t"
        "randomisation" is computed as "t", because both agree from about 20 queries on; its power is 0 if n queries
        cannot have a p below the level. An effect on the mean does not determine the power of other tests.
    comparisons : int, default 1
        The level is divided by this number (Bonferroni). The power of max-T is a little higher.
    power, level : float in (0, 1)
    at : sequence of int, optional
        Numbers of queries to add to `power_by_n`, which always contains the number of the pilot.
    n_resamples : int, default 2,000
    random_state : seed

    Raises
    ------
    InvalidInputError
        With an effect of 0, fewer than five differences other than 0, or equal differences.

    Notes
    -----
    The pilot's standard deviation is uncertain. The interval of the power is the power at both ends of the interval of
    the deviation (`deviation_interval`). For n > 2,000, the power is that of 2,000 queries and √(n / 2,000) times the
    effect.

    References
    ----------
    D. G. Bonett: Approximate confidence interval for standard deviation of nonnormal distributions. Computational
    Statistics and Data Analysis 50 (2006), 775-782.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = queries_needed(rng.normal(0.05, 0.2, size=60), effect=0.05)
    >>> 60 < found.n < 220, found.low < found.n < found.high
    (True, True)
    """
    check_choice(test, "test", OF_MEANS)
    effect = abs(check_number(effect, "effect"))
    comparisons = check_positive_int(comparisons, "comparisons")
    n_resamples = check_positive_int(n_resamples, "n_resamples")
    for name, value in (("power", power), ("level", level)):
        check_number(value, name, "(0, 1)")
    d = paired_differences(differences)
    d = -d if d.mean() < 0 else d
    deviation = deviation_of(d)
    differ = int(np.count_nonzero(d))
    if effect == 0 or differ < 5 or deviation == 0:
        advice = "Give the smallest difference that matters" if effect == 0 else "Compare other rankings"
        advice = advice if differ >= 5 else _larger_pilot(len(d), differ)
        raise InvalidInputError(
            "power requires an effect other than 0 and a pilot of at least five queries with nonzero, unequal "
            f"differences. Got an effect of {effect:g}, and {len(d)} queries with {differ} nonzero and "
            f"{len(np.unique(d))} distinct differences. {advice}",
            code="pilot",
        )
    seed = int(np.random.default_rng(seed_of(random_state)).integers(2**62))
    centred = d - d.mean()
    low_s, high_s = deviation_interval(d)
    alpha = level / comparisons

    def of(n: int, scale: float) -> float:
        return _power(centred, effect / scale, test, alpha, n, n_resamples, seed)

    scales = (1.0, high_s / deviation, low_s / deviation)  # a larger deviation has less power
    needed = [_smallest(partial(of, scale=scale), power) for scale in scales]
    largest = max(2 * (needed[1] or _MOST), 100)
    by_n = {}
    sizes = {size for size in _SIZES if size <= largest} | {len(d)} | {check_positive_int(n, "at", 2) for n in at}
    for n in sorted(sizes | ({needed[0]} if needed[0] else set())):
        middle, low, high = (of(n, scale) for scale in scales)
        by_n[n] = (middle, min(low, middle), max(high, middle))
    return QueriesNeeded(
        needed[0], needed[2], needed[1], by_n, effect, deviation, len(d), test, power, level, comparisons
    )


def _larger_pilot(n: int, differ: int) -> str:
    """Return advice on the size of a pilot in which five queries differ with probability 0.9.

    >>> _larger_pilot(20, 3)[:45]
    'A pilot of about 52 queries has five that dif'
    """
    from scipy.special import bdtrc

    share = differ / n if differ else 1 - 0.05 ** (1 / n)  # none differs: the upper end of the share at 95 %
    sizes = np.arange(5, _MOST)
    needed = int(sizes[np.argmax(bdtrc(4, sizes, share) >= 0.9)])
    return (
        f"A pilot of {'about' if differ else 'at least'} {needed:,} queries has five that differ with probability 0.9 "
        f"if {'' if differ else 'at most '}{share:.1%} of all queries differ; or compare rankings that differ more"
    )


def _smallest(power_at: Callable[[int], float], wanted: float) -> int | None:
    """Return the smallest number of queries with the requested power, by bisection, or None above 100,000."""
    low, high = 4, 8
    while power_at(high) < wanted:
        if high >= _MOST:
            return None
        low, high = high, min(2 * high, _MOST)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= wanted else (middle, high)
    return high


def _power(centred: np.ndarray, effect: float, test: str, alpha: float, n: int, n_resamples: int, seed: int) -> float:
    """Return the share of draws of n queries in which the test rejects in the direction of the effect."""
    if n > _RESAMPLED:  # there the power depends on effect * sqrt(n) alone
        effect, n = effect * math.sqrt(n / _RESAMPLED), _RESAMPLED
    if test == "randomisation" and 2.0 ** (1 - n) >= alpha:
        return 0.0  # no p can be below the level
    from scipy.special import stdtr

    rng = np.random.default_rng(seed)
    rejected, block = 0, max(1, _BLOCK // n)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        sample = centred[rng.integers(0, len(centred), (rows, n))] + effect
        deviation = sample.std(axis=1, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = sample.mean(axis=1) / (deviation / math.sqrt(n))
        p = np.where(deviation > 0, stdtr(n - 1, -t), 1.0)  # one-sided; equal values have no p
        rejected += int(np.count_nonzero(p < alpha / 2.0))
    return rejected / n_resamples


def detectable_differences(
    differences: np.ndarray,
    level: float | np.ndarray,
    power: float = 0.8,
    n_resamples: int = 2_000,
    *,
    critical: np.ndarray | None = None,
) -> np.ndarray:
    """Return the true mean differences (k,) that paired t-tests of `differences` (n, k) find with the given power.

    With `critical` (k,), a difference is also found if the absolute mean is above it, such as by max-T. The result is
    the smaller of both differences; at `level` 0, only `critical` counts.

    The power is the power of `queries_needed` for the given number of queries. A sample drawn from the centred
    differences rejects at every effect above t s/√n less its mean, so the result is a quantile of these effects over
    the samples. For more than 2,000 queries the result is Student's (t_(1 - level/2) + t_power) s/√n. The result is NaN
    if fewer than five queries differ, or if all differences are equal.
    """
    from scipy.special import stdtrit

    there = ~np.isnan(differences)
    n = there.sum(axis=0)
    t = stdtrit(np.maximum(n - 1, 1), 1.0 - level / 2.0)
    critical = np.full(len(n), math.inf) if critical is None else critical
    deviation = moments(differences)[2]
    if len(differences) > _RESAMPLED:
        error = np.where(deviation > 0, deviation, math.nan) / np.sqrt(n)
        found = np.minimum(critical, t * error) + stdtrit(np.maximum(n - 1, 1), power) * error
    else:
        rows = len(differences)
        drawn = np.random.default_rng(0).integers(0, rows, (n_resamples, rows)) + rows * np.arange(n_resamples)[:, None]
        copies = np.bincount(drawn.ravel(), minlength=n_resamples * rows).reshape(n_resamples, rows).astype(np.float64)
        found = np.empty(differences.shape[1])
        for k in range(0, len(found), _COLUMNS):
            part = slice(k, k + _COLUMNS)
            centred = np.nan_to_num(differences[:, part] - np.nanmean(differences[:, part], axis=0))
            size = copies @ there[:, part]
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = copies @ centred / size
                variance = (copies @ centred**2 - size * mean**2) / (size - 1)
                effect = t[part] * np.sqrt(variance / size) - mean
            equal = ~(variance > 1e-12 * deviation[part] ** 2)  # as in `_power`, these samples do not reject
            both = [np.where(equal, math.inf, effect), np.where(size > 0, critical[part] - mean, math.inf)]
            found[part] = np.quantile(both, power, axis=1, method="higher").min(axis=0)
    enough = (np.count_nonzero(np.nan_to_num(differences), axis=0) >= 5) & (deviation > 0) & np.isfinite(found)
    return np.where(enough, found, math.nan)


def deviation_interval(d: np.ndarray) -> tuple[float, float]:
    """Return a 95 % interval of a standard deviation: Bonett's interval, widened; n >= 5.

    1. The quantile is Student's, not the normal quantile.
    2. The kurtosis k about a trimmed mean is divided by 1 - k/n (at least 1/4), because the kurtosis of a sample is
       below n, and far too small for skewed differences or many zeros. With this divisor, the coverage is at least 0.9
       for 10 to 100 differences that are exponential or 85 % zero.

    >>> [round(end, 2) for end in deviation_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0]))]
    [0.95, 11.62]
    """
    from scipy.special import stdtrit

    n, z, t = len(d), NormalDist().inv_cdf(0.975), float(stdtrit(len(d) - 1, 0.975))
    trimmed = min(int(n / (2.0 * math.sqrt(n - 4.0))), (n - 1) // 2)  # at each end
    centre = np.sort(d)[trimmed : n - trimmed].mean()
    kurtosis = n * float(((d - centre) ** 4).sum()) / float(((d - d.mean()) ** 2).sum()) ** 2
    kurtosis /= max(1.0 - kurtosis / n, 0.25)
    correction = n / (n - z)
    half = t * correction * math.sqrt(max(kurtosis - (n - 3.0) / n, 1.0 / n) / (n - 1.0))
    middle = math.log(correction * float(d.var(ddof=1)))
    return math.exp((middle - half) / 2.0), math.exp((middle + half) / 2.0)
