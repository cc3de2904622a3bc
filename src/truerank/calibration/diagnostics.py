"""Diagnostics of probabilities: losses, sign tests, reliability, calibration error and Brier decomposition.

Functions receive the classes `y` (n,), 1 or True for positive, and P(positive) (n,) or (n, 2). Documents of a query
depend on each other: pass their queries as `groups`, which are then resampled as a whole. Without groups, intervals and
bands are too narrow. With fewer than two groups, the intervals are NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import erf, erfc, ndtri, stdtr, stdtrit

from truerank.calibration.base import two_classes
from truerank.calibration.decisions import as_probabilities
from truerank.core.checks import as_vector, check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import group_rows
from truerank.significance.paired import differences_of, sign_test_of_counts

_FEWEST = 10  # rows, or groups, that are resampled for an interval
_BLOCK = 1_000_000  # resampled rows or groups that are held at a time


@dataclass(frozen=True)
class Figures:
    """Sums of three losses over n decisions."""

    n: int
    log_loss: float  # sum of log P(actual class), in nats, so at most 0
    squared_error: float  # sum of (1 - P(actual class))²
    errors: int  # decisions that are wrong at P = 0.5; at even odds the decision is "positive"

    @property
    def log_loss_bits(self) -> float:
        """Return the log loss in bits."""
        return self.log_loss / math.log(2.0)

    @property
    def brier(self) -> float:
        """Return the mean squared error."""
        return self.squared_error / self.n


@dataclass(frozen=True)
class Losses:
    """Losses of each decision, (n,), as -log P(actual class) in nats, squared error, and whether it is an error."""

    log_loss: np.ndarray
    squared_error: np.ndarray
    error: np.ndarray

    def sums(self) -> Figures:
        """Return the sums."""
        return Figures(
            len(self.error), -float(self.log_loss.sum()), float(self.squared_error.sum()), int(self.error.sum())
        )


def losses(y: ArrayLike, log_odds: Any) -> Losses:
    """Return the losses of each decision from the classes (n,) and the log-odds of the positive class (n,) in nats.

    Examples
    --------
    >>> figures = losses([1, 0], [np.log(3), np.log(3)]).sums()
    >>> round(figures.log_loss_bits, 4), figures.squared_error, figures.errors
    (-2.415, 0.625, 1)
    """
    log_odds = np.asarray(log_odds, dtype=np.float64)
    positive = two_classes(y, len(log_odds))[1]
    right = np.where(positive, log_odds, -log_odds)
    wrong = np.exp(-np.logaddexp(0.0, right))  # P(the other class)
    return Losses(np.logaddexp(0.0, -right), wrong * wrong, (log_odds >= 0) != positive)


@dataclass(frozen=True)
class SignTest:
    """The wins and losses of method a against b, and the two-sided binomial p-value, which ignores ties."""

    wins: int
    losses: int
    p: float


def micro_sign_test(a: ArrayLike, b: ArrayLike) -> SignTest:
    """Return the micro sign test over decisions: how often `a` (n,) is lower where the losses `a` and `b` (n,) differ.

    Reference: Y. Yang, X. Liu (1999). A re-examination of text categorization methods. SIGIR.

    Examples
    --------
    >>> micro_sign_test([0.1, 0.2, 0.3, 0.5], [0.2, 0.3, 0.4, 0.5])
    SignTest(wins=3, losses=0, p=0.25)
    """
    a = as_vector(a, "a", None, None)
    b = as_vector(b, "b", len(a), None)
    lower = differences_of(b, a)
    wins, losses_ = int((lower > 0).sum()), int((lower < 0).sum())
    return SignTest(wins, losses_, sign_test_of_counts(wins, losses_).p)


@dataclass(frozen=True)
class Reliability(Result):
    """A reliability diagram, with one entry for each bin that has rows, arrays (bins,).

    If every probability is true, the share of positives lies in the consistency band with the probability `level`.
    The band is NaN with fewer than two groups.
    """

    low: np.ndarray  # border of the bin
    high: np.ndarray
    count: np.ndarray
    predicted: np.ndarray  # mean probability
    observed: np.ndarray  # share of positives
    band_low: np.ndarray
    band_high: np.ndarray
    level: float

    KIND: ClassVar[str] = "reliability"

    @property
    def summary(self) -> str:
        """A sentence on how many bins agree with calibrated probabilities."""
        found = f"{100 * self.inside:.0f} % of {counted(len(self.count), 'bin')} are inside their bands"
        return f"{found}; about {100 * self.level:.4g} % are if the probabilities are calibrated."

    def _figures(self) -> dict[str, Any]:
        return vars(self) | {"inside": self.inside}

    def _table(self, style: str) -> str:
        names = ("low", "high", "count", "predicted", "observed", "band_low", "band_high")
        columns = (getattr(self, name).tolist() for name in names)
        return styled_table([list(row) for row in zip(*columns)], list(names), style)

    @property
    def inside(self) -> float:
        """Share of bins whose observed share lies in the band: about `level` for calibrated probabilities, or NaN."""
        if np.isnan(self.band_low).any():
            return math.nan
        return float(((self.observed >= self.band_low) & (self.observed <= self.band_high)).mean())


def reliability(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_bins: int = 10,
    strategy: str = "quantile",
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: RandomState = None,
) -> Reliability:
    """Return predicted and observed shares of positives by bin, with consistency bands.

    The bands are quantiles over `n_resamples` draws of the classes from the probabilities (Bröcker and Smith 2007,
    Weather and Forecasting 22). With `groups` they are widened by the square root of the design effect: the variance of
    a bin's gap between groups (with Student's t), divided by that of independent rows, and at least 1. Bins of the
    strategy "quantile" have equal counts (equal probabilities stay together), those of "uniform" equal widths.
    """
    p, positive, group = _checked(y, probabilities, groups)
    level = check_number(level, "level", "(0, 1)")
    place, counts, borders = _bins(p, n_bins, strategy)
    kept = np.flatnonzero(counts)
    generator = stream(seed_of(random_state), "reliability")
    draws = np.stack([_shares(generator.random(len(p)) < p, place, counts)[kept] for _ in range(n_resamples)])
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    predicted, observed = (_shares(values, place, counts)[kept] for values in (p, positive))
    if group is not None:
        between, n_groups = _variance_between(positive - p, place, counts, group)
        independent = np.bincount(place, weights=p * (1 - p), minlength=len(counts)) / np.maximum(counts, 1) ** 2
        student = stdtrit(np.maximum(n_groups - 1, 1), tail) / ndtri(tail)
        effect = between * student**2 / np.maximum(independent, 1e-300)
        widened = np.sqrt(np.maximum(effect, 1.0))[kept] if group.max() else math.nan
        low = np.maximum(predicted - widened * (predicted - low), 0.0)
        high = np.minimum(predicted + widened * (high - predicted), 1.0)
    return Reliability(
        borders[:-1][kept], borders[1:][kept], counts[kept], predicted, observed, low, high, level
    )  # fmt: skip


@dataclass(frozen=True)
class CalibrationError:
    """An expected calibration error, with a bootstrap interval of the debiased error."""

    plain: float  # Σ_bins (count/n) |observed - predicted|, biased upwards
    debiased: float  # without the part from the scatter of the observed shares, at least 0
    low: float  # NaN if there is no interval
    high: float
    n_bins: int  # that hold rows
    strategy: str
    level: float


def expected_calibration_error(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: str = "quantile",
    level: float = 0.95,
    n_resamples: int = 300,
    random_state: RandomState = None,
) -> CalibrationError:
    """Return the expected calibration error, corrected for bias, with an interval.

    The observed share of a bin has the variance σ² = share (1 - share)/count, which makes |observed - predicted| too
    large on average. So the gaps are multiplied by s with `s² = Σ mass (gap² - σ²)/Σ mass gap²` (the unbiased estimate
    of the squared error, at least 0), and `Σ mass (E|s gap + σ Z| - |s gap|)`, Z standard normal, is subtracted. The
    interval has quantiles of the same estimate over resampled rows, where σ² counts twice. All resamples use the bins
    of the given rows. With fewer than 10 rows or groups, the interval is NaN.

    With `groups`, σ² is at least the variance of the bin's gap between groups, `Σ_g (R_g - n_g gap)² · G/(G -
    1)/count²`, with R_g the sum of (class - probability) of the group's n_g rows in the bin, over the bin's G groups.

    Reference: A. Kumar, P. Liang, T. Ma (2019). Verified uncertainty calibration. NeurIPS (the unbiased squared error).
    """
    p, positive, group = _checked(y, probabilities, groups)
    level = check_number(level, "level", "(0, 1)")
    place, counts, _ = _bins(p, n_bins, strategy)
    observed = _shares(positive, place, counts)
    smoothed = (counts * observed + 0.5) / (counts + 1.0)
    variance = smoothed * (1.0 - smoothed) / np.maximum(counts, 1)
    mass = counts / len(p)
    gaps = observed - _shares(p, place, counts)
    if group is not None:
        variance = np.maximum(variance, _variance_between(positive - p, place, counts, group)[0])
    unit = np.arange(len(p)) if group is None else group
    n_drawn = int(unit.max()) + 1
    rows_of, sums_of = (
        csr_array((values, (unit, place)), shape=(n_drawn, len(counts))) for values in (np.ones(len(p)), positive - p)
    )
    generator = stream(seed_of(random_state), "calibration-error")
    resampled = np.empty(n_resamples)
    for start in range(0, n_resamples, block := max(1, _BLOCK // n_drawn)):
        here = min(block, n_resamples - start)
        chosen = generator.integers(n_drawn, size=(here, n_drawn)) + n_drawn * np.arange(here)[:, None]
        weight = np.bincount(chosen.ravel(), minlength=here * n_drawn).reshape(here, n_drawn)
        drawn = np.maximum(weight @ rows_of, 1e-300)
        difference = weight @ sums_of / drawn
        resampled[start : start + here] = _debiased_error(difference, 2.0 * variance, drawn / len(p))
    tail = (1 - level) / 2
    debiased = float(_debiased_error(gaps, variance, mass))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    low, high = (min(float(low), debiased), max(float(high), debiased)) if n_drawn >= _FEWEST else (math.nan, math.nan)
    return CalibrationError(
        float((mass * np.abs(gaps)).sum()), debiased, low, high,
        int((counts > 0).sum()), strategy, level,
    )  # fmt: skip


def _debiased_error(gaps: np.ndarray, variance: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the mean |gap| (…) over bins (…, b) without the part that scatter of the given variance adds."""
    squared = (mass * gaps * gaps).sum(axis=-1, keepdims=True)
    kept = np.maximum(squared - (mass * variance).sum(axis=-1, keepdims=True), 0.0)
    mean = np.sqrt(kept / np.where(squared > 0, squared, 1.0)) * np.abs(gaps)
    sigma = np.sqrt(np.maximum(variance, 1e-300))
    ratio = mean / sigma
    folded = sigma * math.sqrt(2.0 / math.pi) * np.exp(-0.5 * ratio * ratio) + mean * erf(ratio / math.sqrt(2.0))
    error = (mass * (np.abs(gaps) - (folded - mean))).sum(axis=-1)
    return np.where(squared[..., 0] > 0, np.maximum(error, 0.0), 0.0)


@dataclass(frozen=True)
class BrierDecomposition:
    """brier = reliability - resolution + uncertainty + within (Murphy 1973; Stephenson et al. 2008)."""

    brier: float  # mean squared error
    reliability: float  # Σ (count/n)(predicted - observed)²; 0 if calibrated
    resolution: float  # Σ (count/n)(observed - base rate)²; higher is better
    uncertainty: float  # base rate · (1 - base rate)
    within: float  # variance of the probabilities inside bins less twice their covariance with the classes


def brier_decomposition(
    y: ArrayLike, probabilities: ArrayLike, *, n_bins: int | None = 10, strategy: str = "quantile"
) -> BrierDecomposition:
    """Return reliability, resolution and uncertainty of the Brier score, which add up exactly with `within`.

    `n_bins=None` makes a bin of each distinct probability, where `within` is 0 (Murphy's own decomposition).

    Examples
    --------
    >>> parts = brier_decomposition([0, 1, 1, 1], [0.5, 0.5, 0.75, 0.75], n_bins=None)
    >>> parts.brier, parts.reliability, parts.resolution, parts.uncertainty, parts.within
    (0.15625, 0.03125, 0.0625, 0.1875, 0.0)
    """
    p, positive, _ = _checked(y, probabilities)
    if n_bins is None:
        _, place = np.unique(p, return_inverse=True)
        counts = np.bincount(place)
    else:
        place, counts, _ = _bins(p, n_bins, strategy)
    n, base = len(p), float(positive.mean())
    predicted, observed = _shares(p, place, counts), _shares(positive, place, counts)
    deviation = p - predicted[place]
    return BrierDecomposition(
        brier=float(np.mean((p - positive) ** 2)),
        reliability=float((counts * (predicted - observed) ** 2).sum() / n),
        resolution=float((counts * (observed - base) ** 2).sum() / n),
        uncertainty=base * (1 - base),
        within=float(np.mean(deviation * deviation - 2 * deviation * (positive - observed[place]))),
    )


@dataclass(frozen=True)
class Spiegelhalter:
    """Spiegelhalter's z, or with groups a t statistic, and the two-sided p-value."""

    z: float
    p: float


def spiegelhalter_test(y: ArrayLike, probabilities: ArrayLike, *, groups: ArrayLike | None = None) -> Spiegelhalter:
    """Test the hypothesis that the probabilities are true, by the null distribution of the Brier score.

        z = Σ (y - p)(1 - 2p)/√(Σ (1 - 2p)² p (1 - p))

    Without `groups` z is standard normal if the probabilities are true. With `groups` the sums of the G groups are
    tested with G - 1 degrees of freedom by the smaller of Student's t and Johnson's, which corrects it for skewness:
    Johnson's test alone rejects true probabilities of 20 queries in 5.4 % of samples.

    If every probability is 0, 1/2 or 1, and all probabilities of 0 and 1 are right, p is 1. A wrong probability of 0 or
    1 gives z = ±infinity and p 0.

    References: D. J. Spiegelhalter (1986). Probabilistic prediction in patient management. Statistics in Medicine 5.
    N. J. Johnson (1978). Modified t tests and confidence intervals for asymmetrical populations. JASA 73.
    """
    p, positive, group = _checked(y, probabilities, groups)
    if group is not None:
        return _johnson_test(np.bincount(group, weights=(positive - p) * (1 - 2 * p)))
    numerator = float(((positive - p) * (1 - 2 * p)).sum())
    variance = float(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    if variance == 0.0:
        return Spiegelhalter(0.0, 1.0) if numerator == 0.0 else Spiegelhalter(math.copysign(math.inf, numerator), 0.0)
    z = numerator / math.sqrt(variance)
    return Spiegelhalter(z, float(erfc(abs(z) / math.sqrt(2.0))))


def _johnson_test(values: np.ndarray) -> Spiegelhalter:
    """Test that the mean of the values (n,) is 0: the smaller of Student's t and t corrected for skewness."""
    n = len(values)
    if n < 2:
        return Spiegelhalter(math.nan, math.nan)
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if variance == 0.0:
        return Spiegelhalter(0.0, 1.0) if mean == 0.0 else Spiegelhalter(math.nan, math.nan)
    third = float(((values - mean) ** 3).sum()) * n / ((n - 1) * (n - 2)) if n > 2 else 0.0
    corrected = mean + third / (6 * variance * n) + third * mean**2 / (3 * variance**2)
    t = min(mean, corrected, key=abs) / math.sqrt(variance / n)
    return Spiegelhalter(t, float(2.0 * stdtr(n - 1, -abs(t))))


def _checked(
    y: ArrayLike, probabilities: ArrayLike, groups: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return P(positive), the classes as 0 and 1, and the number of each row's group, all (n,)."""
    p = as_probabilities(probabilities)
    if not len(p):
        raise InvalidInputError("there are no rows. A diagnostic requires at least one probability", code="no-rows")
    group = None if groups is None else group_rows(groups, len(p))
    return (
        p,
        two_classes(y, len(p))[1].astype(np.float64),
        None if group is None else group.restore(group.query_index),
    )


def _variance_between(
    residual: np.ndarray, place: np.ndarray, counts: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance of each bin's mean residual between groups (0 for one group), and the number of groups."""
    cell, own = np.unique(place * (int(group.max()) + 1) + group, return_inverse=True)
    bins = cell // (int(group.max()) + 1)
    rows, sums = np.bincount(own), np.bincount(own, weights=residual)
    beside = sums - rows * _shares(residual, place, counts)[bins]
    n_groups = np.bincount(bins, minlength=len(counts))
    squares = np.bincount(bins, weights=beside * beside, minlength=len(counts))
    return squares / np.maximum(counts, 1) ** 2 * n_groups / np.maximum(n_groups - 1, 1), n_groups


def _bins(p: np.ndarray, n_bins: int, strategy: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bin of each row, the rows of each bin, and the borders; equal probabilities share a bin."""
    n_bins = check_positive_int(n_bins, "n_bins")
    check_choice(strategy, "strategy", ("quantile", "uniform"))
    if strategy == "uniform":
        borders = np.linspace(0.0, 1.0, n_bins + 1)
    else:
        borders = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)))
        borders = np.array([borders[0], borders[0]]) if len(borders) == 1 else borders
    # A border belongs to the bin above it, the last one to the last bin.
    place = np.clip(np.searchsorted(borders, p, side="right") - 1, 0, len(borders) - 2)
    return place, np.bincount(place, minlength=len(borders) - 1), borders


def _shares(values: np.ndarray, place: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sums = np.bincount(place, weights=values, minlength=len(counts))
    return sums / np.maximum(counts, 1)
