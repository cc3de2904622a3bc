"""Student's confidence intervals of means and mean differences over queries, and verdicts against a margin δ.

Ends are NaN if there is no interval: with fewer than two queries, and if all values are equal. The intervals of the
other tests are in `paired`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from truerank.core.checks import check_number
from truerank.core.types import ArrayLike
from truerank.measures.base import Measure, log_values
from truerank.measures.names import MEASURES
from truerank.significance.paired import deviation_of, paired_differences


class Interval(NamedTuple):
    """An estimate with the ends of its interval; NaN if there is none."""

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
    level = check_number(level, "level", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    difference = paired_differences(a, np.zeros(np.shape(a)) if b is None else b)
    mean, n = float(difference.mean()), len(difference)
    deviation = deviation_of(difference)
    if deviation == 0:
        return Interval(mean, math.nan, math.nan)
    half = student_quantile((1.0 + level) / 2.0, n - 1) * deviation / math.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def measure_interval(measure: Measure, values: np.ndarray, *, level: float = 0.95) -> Interval:
    """Return Student's interval of a measure's aggregate over queries, from values by query (m,).

    A geometric mean has the interval of its mean logarithm. A sum is a count and has no interval. An
    interval of one of the package's own measures ends at the limits of its values, except for DCG: -1 and 1 for tau,
    else 0 and 1.

    Examples
    --------
    >>> from truerank.measures import AP, GMAP
    >>> values = np.array([0.5, 0.3, 0.2, 0.4])
    >>> [[round(number, 4) for number in measure_interval(measure, values)] for measure in (AP, GMAP)]
    [[0.35, 0.1446, 0.5554], [0.331, 0.1764, 0.6211]]
    """
    if measure.AGGREGATE == "sum":
        return Interval(float(np.nansum(values)), math.nan, math.nan)
    if measure.AGGREGATE == "geometric":
        found = Interval(*(math.exp(end) for end in mean_interval(log_values(values), level=level)))
    else:
        found = mean_interval(values, level=level)
    if measure.NAME not in MEASURES.own or measure.NAME == "DCG":
        return found
    lowest = min(-1.0 if measure.NAME == "tau" else 0.0, found.estimate)  # negative grades may have negative values
    return Interval(found.estimate, max(found.low, lowest), min(found.high, max(1.0, found.estimate)))


@dataclass(frozen=True)
class Verdict:
    """What the 95 % `interval` of one mean difference shows, with a margin δ: "undecided" without an interval (NaN).

    Without a margin, only "better" and "worse" are possible.
    """

    interval: Interval
    margin: float | None = None

    @property
    def better(self) -> bool:
        """Whether the interval lies above 0."""
        return self.interval.low > 0

    @property
    def worse(self) -> bool:
        """Whether the interval lies below 0."""
        return self.interval.high < 0

    @property
    def not_worse(self) -> bool:
        """Whether the interval lies above -δ."""
        return self.margin is not None and self.interval.low > -self.margin

    @property
    def equivalent(self) -> bool:
        """Whether the interval lies between -δ and δ."""
        return self.margin is not None and self.not_worse and self.interval.high < self.margin

    @property
    def kinds(self) -> tuple[str, ...]:
        """All that hold of "better", "worse", "not worse" and "equivalent"; else "undecided"."""
        held = (self.better, self.worse, self.not_worse, self.equivalent)
        names = ("better", "worse", "not worse", "equivalent")
        return tuple(name for name, holds in zip(names, held) if holds) or ("undecided",)

    @property
    def words(self) -> str:
        """The verdicts as a table prints them.

        >>> verdict([0.011, 0.002, 0.004, 0.008, 0.003], margin=0.02).words
        'better; not worse by more than 0.02; equivalent within 0.02'
        """
        texts = {
            "not worse": f"not worse by more than {self.margin or 0:g}",
            "equivalent": f"equivalent within {self.margin or 0:g}",
        }
        return "; ".join(texts.get(kind, kind) for kind in self.kinds)

    def __str__(self) -> str:
        return self.words


def verdict(differences: ArrayLike, margin: float | None = None) -> Verdict:
    """Return what Student's 95 % interval of the mean of paired `differences` (n topics,) shows; NaN are left out.

    `margin` is the δ > 0 of non-inferiority and equivalence, in the unit of the differences. The verdict is "undecided"
    with fewer than two topics, and if all differences are equal. It is about this comparison alone, without a
    correction, and is wrong in at most 5 % of samples (`python -m validation verdicts`).

    Equivalence is usually tested with the 90 % interval (two one-sided tests at level 0.05, TOST). On the skewed
    differences of TREC-9 runs that verdict is wrong in 7 % of samples. With the 95 % interval, which tables print, at
    most 5 % are wrong. This requires about a fifth more topics than TOST.

    References
    ----------
    D. J. Schuirmann: A comparison of the two one-sided tests procedure and the power approach. J. Pharmacokinet.
    Biopharm. 15 (1987), 657-680.

    Examples
    --------
    >>> verdict([0.1, 0.3, 0.2, 0.1, 0.4]).kinds
    ('better',)
    >>> verdict([0.1, -0.3, 0.2, 0.1, -0.4], margin=0.05).kinds
    ('undecided',)
    """
    return Verdict(mean_interval(differences), checked_margin(margin))


def checked_margin(margin: float | None) -> float | None:
    """Return the margin; an error unless it is positive or None."""
    return None if margin is None else check_number(margin, "margin", minimum=0.0, open_minimum=True)


def stretched_percentiles(
    estimate: np.ndarray | float, draws: np.ndarray, units: int, level: float = 0.95
) -> np.ndarray:
    """Return the ends (2, …) of a percentile interval of bootstrap draws (d, …), widened for few resampled units.

    Percentiles of m resampled units are those of a normal distribution with the variance of divisor m. The distance of
    each end from the estimate is multiplied by t_(m-1)/z · √(m/(m-1)). With one unit the ends are NaN.
    """
    tail = (1.0 - level) / 2.0
    if units < 2:
        return np.full((2, *np.shape(estimate)), np.nan)
    stretch = (
        student_quantile(1.0 - tail, units - 1) / NormalDist().inv_cdf(1.0 - tail) * math.sqrt(units / (units - 1))
    )
    return estimate + stretch * (np.quantile(draws, [tail, 1.0 - tail], axis=0) - estimate)


def student_quantile(share: float, freedom: int) -> float:
    """Return the quantile of Student's t, without SciPy, which takes half a second to import.

    Up to 200 degrees of freedom, the finite series of the distribution function (Abramowitz and Stegun 26.7.3 and
    26.7.4) is bisected. Above 200, Fisher's expansion in 1/freedom (26.7.5) has an error below 1e-9.
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
        """Probability of |t| ≤ √freedom tan(angle)."""
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
