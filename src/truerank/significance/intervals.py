"""How large a difference is, and how small a one a test set can show."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.measures.base import Measure, log_values
from truerank.significance.two_samples import deviation_of, paired_differences


class Interval(NamedTuple):
    """An estimate with its interval."""

    estimate: float
    low: float
    high: float


def bootstrap_interval(
    a: Any, b: Any = None, *, level: float = 0.95, n_resamples: int = 10_000, random_state: Any = 0
) -> Interval:
    """Percentile bootstrap interval, over queries, of the mean of `a`, or of the mean difference `a - b`.

    Parameters
    ----------
    a, b : array (m,)
        Per-query values; queries with NaN are left out.
    level : float in (0, 1)
    n_resamples : int
    random_state : seed

    Notes
    -----
    With one query, or equal values, the interval is the estimate itself. The cost is `n_resamples` times the queries.
    """
    difference = paired_differences(a, np.zeros(np.shape(a)) if b is None else b)
    level = check_number(level, "level", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    n_resamples = check_positive_int(n_resamples, "n_resamples")
    rng = np.random.default_rng(random_state)
    n = len(difference)
    means = np.empty(n_resamples)
    block = max(1, 250_000 // n)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        means[start : start + rows] = difference[rng.integers(0, n, (rows, n))].mean(axis=1)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail])
    estimate = float(difference.mean())
    # The mean of equal values may differ from them in the last bit.
    return Interval(estimate, min(float(low), estimate), max(float(high), estimate))


def measure_interval(measure: Measure, values: np.ndarray, **options: Any) -> Interval:
    """Bootstrap interval, over queries, of what `measure.aggregate` makes of values by query (m,).

    That of the mean; of a measure that is added up, times the number of queries; of a geometric mean, of the mean
    logarithm. Options are those of `bootstrap_interval`.

    Examples
    --------
    >>> from truerank.measures import AP, GMAP
    >>> values = np.array([0.5, 0.01, 0.2, 0.0])
    >>> [[round(number, 4) for number in measure_interval(measure, values)] for measure in (AP, GMAP)]
    [[0.1775, 0.005, 0.3775], [0.01, 0.0001, 0.3162]]
    """
    if measure.AGGREGATE == "geometric":
        return Interval(*(math.exp(end) for end in bootstrap_interval(log_values(values), **options)))
    interval = bootstrap_interval(values, **options)
    if measure.AGGREGATE == "sum":
        return Interval(*(end * np.count_nonzero(~np.isnan(values)) for end in interval))
    return interval


def detectable_against_another(a: Any, *, correlation: float = 0.8, alpha: float = 0.05, power: float = 0.8) -> float:
    """As `smallest_detectable_difference`, before there is another ranking to compare with.

    The differences' deviation is taken to be `s √(2 (1 - correlation))`: that of two rankings whose values on these
    queries have the same deviation s and this correlation. Correlations of AP between rankings were .60 (median over
    pairs of TREC-9's 73 better runs) to .99 (learners on the same features); where both rankings are at hand, compare
    them. Student's quantiles are those of Fisher's expansion, within 1 % from 6 queries on, so that SciPy is not
    loaded.

    Examples
    --------
    >>> values = [0.5, 0.7, 0.9, 0.4, 0.1, 0.6]
    >>> round(detectable_against_another(values), 2)
    0.25
    """
    correlation = check_number(correlation, "correlation", minimum=-1.0, maximum=1.0)
    shares = _shares(alpha, power)
    values = paired_differences(a, np.zeros(np.shape(a)))
    n = len(values)
    if n < 2:
        return math.inf
    quantiles = sum(_student(share, n - 1) for share in shares)
    return max(0.0, quantiles) * float(values.std(ddof=1)) * math.sqrt(2.0 * (1.0 - correlation) / n)


def _student(share: float, freedom: int) -> float:
    """Quantile of Student's t by Fisher's expansion in 1/freedom (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(share)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def smallest_detectable_difference(a: Any, b: Any, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Smallest true mean difference that a two-sided paired t-test on these queries would find with this power.

    (t_{1 - alpha/2} + t_{power}) s / √n with n - 1 degrees of freedom, s being the differences' standard deviation. 0
    when the differences are all equal, infinite with fewer than two queries.

    Examples
    --------
    >>> round(smallest_detectable_difference([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.8, 0.4]), 4)
    0.1699
    """
    shares = _shares(alpha, power)
    difference = paired_differences(a, b)
    n = len(difference)
    if n < 2:
        return math.inf
    from scipy.special import stdtrit

    quantiles = float(sum(stdtrit(n - 1, share) for share in shares))
    return max(0.0, quantiles) * deviation_of(difference) / math.sqrt(n)


def _shares(alpha: float, power: float) -> tuple[float, float]:
    """Shares below the two quantiles of Student's t that a test of this level and power rests on."""
    for name, value in (("alpha", alpha), ("power", power)):
        check_number(value, name, minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    return 1.0 - alpha / 2.0, power
