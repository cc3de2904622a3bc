"""Student's confidence intervals of means and mean differences over queries, and verdicts against a margin δ.

Ends are NaN if there is no interval: with fewer than two queries, or if all values are equal. The module `paired` has
the intervals of the other tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.measures.base import Measure, log_values
from truerank.measures.names import MEASURES
from truerank.significance.paired import LEVEL, as_sample, deviation_of, paired_differences, paired_tests


class Interval(NamedTuple):
    """An estimate with the ends of its interval, which are NaN if there is no interval."""

    estimate: float
    low: float
    high: float


def mean_interval(a: ArrayLike, b: ArrayLike | None = None, *, level: float = 0.95) -> Interval:
    """Return Student's interval of the mean of `a` (m,), or of `a - b`: m ± t s/√n with n - 1 degrees of freedom.

    Queries with NaN are left out.

    Examples
    --------
    >>> [round(number, 4) for number in mean_interval([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.8, 0.4])]
    [0.1, -0.0299, 0.2299]
    """
    level = check_number(level, "level", "(0, 1)")
    difference = paired_differences(a, b)
    mean, n = float(difference.mean()), len(difference)
    deviation = deviation_of(difference)
    if deviation == 0:
        return Interval(mean, math.nan, math.nan)
    half = student_quantile((1.0 + level) / 2.0, n - 1) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def measure_interval(measure: Measure | None, values: np.ndarray, *, level: float = 0.95) -> Interval:
    """Return Student's interval of a measure's aggregate over queries, from values by query (m,).

    Without a value, the estimate is 0, and without a measure, the mean. A geometric mean has the interval of its mean
    logarithm. A sum is a count and has no interval. The interval of a measure of this package ends at the limits of its
    values, except for DCG: -1 and 1 for tau, else 0 and 1.

    Examples
    --------
    >>> from truerank.measures import AP, GMAP
    >>> values = np.array([0.5, 0.3, 0.2, 0.4])
    >>> [[round(number, 4) for number in measure_interval(measure, values)] for measure in (AP, GMAP)]
    [[0.35, 0.1446, 0.5554], [0.331, 0.1764, 0.6211]]
    """
    if np.isnan(values).all():
        return Interval(0.0, math.nan, math.nan)
    if measure is None:
        return mean_interval(values, level=level)
    if measure.AGGREGATE == "sum":
        return Interval(float(np.nansum(values)), math.nan, math.nan)
    if measure.AGGREGATE == "geometric":
        found = Interval(*(math.exp(end) for end in mean_interval(log_values(values), level=level)))
    else:
        found = mean_interval(values, level=level)
    if not is_share(measure) and measure.NAME != "tau":
        return found
    lowest = min(-1.0 if measure.NAME == "tau" else 0.0, found.estimate)  # negative grades may have negative values
    return Interval(found.estimate, max(found.low, lowest), min(found.high, max(1.0, found.estimate)))


def is_share(measure: Measure) -> bool:
    """Return whether values lie between 0 and 1, as for all measures of this package except for DCG and tau."""
    return measure.NAME in MEASURES.own and measure.NAME not in ("DCG", "tau")


@dataclass(frozen=True)
class Verdict:
    """The verdict "better", "worse", "not worse", "equivalent" or "undecided" on one mean difference with a margin δ.

    All verdicts are decided here. "better" and "worse" depend on `p`. "not worse" requires that the `interval` lies
    above -δ, and also Student's interval with one more query that loses `loss`. "equivalent" requires that both lie
    within ±δ, and also Student's interval with one more query that gains `loss`. Equal differences have no interval, so
    that the interval with one more query decides. Without a margin or a loss, only "better" and "worse" are possible.
    """

    interval: Interval  # that of the test; its ends are NaN if there is none
    p: float  # with any correction; NaN if there is none
    n: int  # queries
    deviation: float  # of the differences, with divisor n - 1
    margin: float | None = None
    loss: float | None = None  # L: see `failing_loss`
    level: float = LEVEL

    @property
    def better(self) -> bool:
        """Return whether p is below the level and the mean difference is positive."""
        return self.p < self.level and self.interval.estimate > 0

    @property
    def worse(self) -> bool:
        """Return whether p is below the level and the mean difference is negative."""
        return self.p < self.level and self.interval.estimate < 0

    @property
    def not_worse(self) -> bool:
        """Return whether the loss is at most δ."""
        return self._above and self.loss is not None and self._one_more(-self.loss)[0] > -(self.margin or 0.0)

    @property
    def equivalent(self) -> bool:
        """Return whether the loss and the gain are at most δ."""
        if self.margin is None or self.loss is None or not self.not_worse:
            return False
        high = self.interval.high if self.deviation else self.interval.estimate
        ends = (*self._one_more(-self.loss), *self._one_more(self.loss))
        return high < self.margin and all(abs(end) < self.margin for end in ends)

    @property
    def _above(self) -> bool:
        """Return whether the interval alone lies above -δ."""
        low = self.interval.low if self.deviation else self.interval.estimate
        return self.margin is not None and self.n > 1 and low > -self.margin

    def _one_more(self, difference: float, n: int = 0) -> tuple[float, float]:
        return with_one_more(n or self.n, self.interval.estimate, self.deviation, difference, self.level)

    @property
    def needed(self) -> int | None:
        """The approximate number of queries for "not worse" if one more failing query reverses it, else None."""
        if not self._above or self.margin is None or self.loss is None or self.not_worse:
            return None
        few = many = self.n
        while not self._one_more(-self.loss, many)[0] > -self.margin:
            few, many = many, 2 * many
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if self._one_more(-self.loss, middle)[0] > -self.margin else (middle, many)
        return many

    @property
    def unseen(self) -> str:
        """A sentence on the losses that "not worse" cannot exclude: n queries miss them with probability 0.05."""
        return f"{self.n} queries can miss losses on fewer than {100 * (1 - LEVEL ** (1 / self.n)):.2g} % of queries"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The verdicts that hold among "better", "worse", "not worse" and "equivalent", or "undecided"."""
        held = (self.better, self.worse, self.not_worse, self.equivalent)
        names = ("better", "worse", "not worse", "equivalent")
        return tuple(name for name, holds in zip(names, held) if holds) or ("undecided",)

    @property
    def words(self) -> str:
        """The verdicts in the words of tables.

        >>> verdict([0.011, 0.002, 0.004, 0.008, 0.003], margin=0.02, baseline=[0.01, 0, 0.02, 0, 0.01]).words
        'better; not worse by more than 0.02; equivalent within 0.02'
        >>> verdict([0.011, 0.002, 0.004, -0.008, 0.003], margin=0.02, baseline=[0.4, 0.2, 0.7, 0.3, 0.4]).words
        'undecided: one more failing query would reverse it; about 54 queries are needed'
        """
        texts = {
            "not worse": f"not worse by more than {self.margin or 0:g}",
            "equivalent": f"equivalent within {self.margin or 0:g}",
        }
        if self._above and self.loss is None:
            texts["undecided"] = 'undecided: "not worse" is undefined where values can be negative or lower is better'
        elif self.needed is not None:
            texts["undecided"] = (
                f"undecided: one more failing query would reverse it; about {self.needed} queries are needed"
            )
        return "; ".join(texts.get(kind, kind) for kind in self.kinds)

    def __str__(self) -> str:
        return f"{self.words}; {self.unseen}" if self.not_worse else self.words


def with_one_more(n: int, mean: Any, deviation: Any, difference: Any, level: float = LEVEL) -> tuple[Any, Any]:
    """Return the ends of Student's interval of n differences and one more; all arguments but n may be arrays.

    >>> [round(end, 4) for end in with_one_more(3, 0.0, 1.0, 0.0)] == [
    ...     round(end, 4) for end in mean_interval([-1.0, 0.0, 1.0, 0.0])[1:]
    ... ]
    True
    """
    middle = mean + (difference - mean) / (n + 1)
    variance = ((n - 1) * deviation**2 + (difference - mean) ** 2 * n / (n + 1)) / n
    half = student_quantile(1.0 - level / 2.0, n) * (variance / (n + 1)) ** 0.5
    return middle - half, middle + half


def failing_loss(baseline: ArrayLike, candidate: ArrayLike, measure: Measure | None = None) -> float | None:
    """Return L, the loss on a query that fails: the mean of the baseline's values (m,) on queries with both values.

    The result is None if lower is better, the measure may be negative, or a value is negative.
    """
    values = np.array([baseline, candidate], dtype=np.float64)
    values = values[:, ~np.isnan(values).any(axis=0)]
    unsuitable = measure is not None and (not measure.higher_is_better or measure.NAME == "tau")
    return None if unsuitable or (values < 0).any() else float(values[0].mean())


def verdict(differences: ArrayLike, margin: float | None = None, *, baseline: ArrayLike | None = None) -> Verdict:
    """Return the verdict on paired `differences` (n topics,) of one comparison by Student's t-test; NaN are left out.

    `margin` is the δ > 0 of non-inferiority and equivalence, in the unit of the differences. A margin requires the
    values (n,) of the `baseline`: differences are new less baseline, positive if new is better. The verdict is
    "undecided" with fewer than two topics.

    Notes
    -----
    A sample seldom has large losses on few queries, and Student's interval alone would then often be above -δ. With L
    the mean of the baseline's values, "not worse" therefore also requires that Student's interval of n + 1 differences,
    the last one -L, is above -δ (n degrees of freedom). "equivalent" requires that the intervals with -L and with L lie
    within ±δ. Even without any difference, δ must be above L (1 + t)/(n + 1). If values may be negative, neither
    verdict is possible. No rule sees losses on a share of queries below 1 - 0.05^(1/n) (`unseen`). Error rates: `python
    -m validation verdicts`.

    Equivalence is usually tested with the 90 % interval (two one-sided tests at level 0.05, TOST). On the skewed
    differences of TREC-9 runs, that verdict is wrong in 7 % of samples. The 95 % interval requires about a fifth more
    topics.

    References
    ----------
    D. J. Schuirmann: A comparison of the two one-sided tests procedure and the power approach. J. Pharmacokinet.
    Biopharm. 15 (1987), 657-680.

    Examples
    --------
    >>> verdict([0.1, 0.3, 0.2, 0.1, 0.4]).kinds
    ('better',)
    >>> verdict([0.1, -0.3, 0.2, 0.1, -0.4], margin=0.05, baseline=[0.5, 0.4, 0.3, 0.5, 0.6]).kinds
    ('undecided',)
    """
    margin, d = checked_margin(margin), as_sample(differences, "differences", nan=True)
    if margin is None or baseline is None:
        if margin is not None:
            raise InvalidInputError(
                f"margin={margin:g} requires the values of the baseline. Add baseline=values", argument="margin"
            )
        return decided("t", d)
    values = as_sample(baseline, "baseline", nan=True)
    if len(values) != len(d):
        raise InvalidInputError(
            f"baseline has {len(values)} values for {len(d)} differences. Pass one value for each difference",
            argument="baseline",
        )
    return decided("t", d, margin, failing_loss(values, values + d))


def decided(
    test: str, differences: np.ndarray, margin: float | None = None, loss: float | None = None, level: float = LEVEL,
    **options: Any,
) -> Verdict:  # fmt: skip
    """Return the verdict of `test`, "randomisation" or "t", on the differences (n,) of one pair, with its `options`."""
    found = paired_tests(test, differences[:, None], level=level, **options)
    interval = Interval(found.mean.item(), found.low.item(), found.high.item())
    return Verdict(interval, found.p.item(), found.topics.item(), found.deviation.item(), margin, loss, level)


def checked_margin(margin: float | None) -> float | None:
    """Return the margin; raise unless the margin is positive or None."""
    return None if margin is None else check_number(margin, "margin", "(0, inf)")


def stretched_percentiles(
    estimate: np.ndarray | float, draws: np.ndarray, units: int, level: float = 0.95
) -> np.ndarray:
    """Return the ends (2, …) of a percentile interval of bootstrap draws (d, …), widened for few resampled units.

    Percentiles of m resampled units follow a normal distribution whose variance has the divisor m. The distance of each
    end from the estimate is multiplied by t_(m-1)/z · √(m/(m-1)). With one unit, the ends are NaN.
    """
    tail = (1.0 - level) / 2.0
    if units < 2:
        return np.full((2, *np.shape(estimate)), np.nan)
    stretch = (
        student_quantile(1.0 - tail, units - 1) / NormalDist().inv_cdf(1.0 - tail) * math.sqrt(units / (units - 1))
    )
    return estimate + stretch * (np.quantile(draws, [tail, 1.0 - tail], axis=0) - estimate)


@lru_cache(maxsize=1024)
def student_quantile(share: float, freedom: int) -> float:
    """Return the quantile of Student's t without SciPy, whose import takes half a second.

    Up to 200 degrees of freedom, bisection inverts the finite series of the distribution function (Abramowitz and
    Stegun 26.7.3 and 26.7.4). Above 200, Fisher's expansion in 1/freedom (26.7.5) has an error below 1e-9.
    """
    if share < 0.5:
        return -student_quantile(1.0 - share, freedom)
    if freedom > 200:
        z = NormalDist().inv_cdf(share)
        terms = (
            z,
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
        )
        return sum(term / freedom**power for power, term in enumerate(terms))

    def within(angle: float) -> float:
        """Return the probability of |t| ≤ √freedom tan(angle)."""
        odd = freedom % 2
        term = total = math.cos(angle) if odd else 1.0
        for k in range(2 + odd, freedom, 2):
            term *= math.cos(angle) ** 2 * (k - 1) / k
            total += term
        if odd:
            return 2.0 / math.pi * (angle + (math.sin(angle) * total if freedom > 1 else 0.0))
        return math.sin(angle) * total

    low, high = 0.0, math.pi / 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if within(middle) < 2.0 * share - 1.0 else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
