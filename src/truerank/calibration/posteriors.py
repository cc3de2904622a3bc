"""Calibrators that fit P(positive | score) directly, by maximum likelihood.

`LogisticCalibrator` has the targets 1 and 0. Others, whose odds could become infinite on separable scores, use Platt's
targets `(n₊ + 1)/(n₊ + 2)` and `1/(n₋ + 2)`. If all scores are equal, every probability is the smoothed prior.

References
----------
D. D. Lewis, W. A. Gale (1994), SIGIR: logistic regression on a classifier's log-odds. J. Platt (1999), Advances in
large margin classifiers. P. N. Bennett (2003), SIGIR. M. Kull, T. Silva Filho, P. Flach (2017), AISTATS: beta
calibration. C. Guo et al. (2017), ICML: temperature scaling. B. Zadrozny, C. Elkan (2002), KDD: isotonic regression.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.optimize import isotonic_regression

from truerank.calibration.base import ABOVE_ZERO, BELOW_ONE, Calibrator, logit, warn
from truerank.calibration.log_odds_fits import LogOddsFit, best_knots, fit_log_odds, spline_columns
from truerank.core.checks import check_positive_int
from truerank.solvers.result import Status


def platt_targets(positive: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return `(n₊ + 1)/(n₊ + 2)` for positive rows and `1/(n₋ + 2)` for negative rows, float64 (n,)."""
    n_positive = float(positive.sum() if weight is None else weight[positive].sum())
    n_negative = float((~positive).sum() if weight is None else weight[~positive].sum())
    return np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))


class LogisticCalibrator(Calibrator):
    """Fit a logistic regression on the score (the paper's "LogReg", equation 6; Lewis and Gale).

        P(+ | s) = exp(a + b s)/(1 + exp(a + b s))

    If one threshold separates the classes, maximum likelihood has no solution. The fit then uses Platt's targets, with
    a warning. The fit needs about eight steps of O(n).

    Parameters
    ----------
    monotone : bool, default False
        Force b ≥ 0.

    Attributes
    ----------
    a_, b_ : float
    separable_ : bool
        Whether one threshold separates the classes.

    Examples
    --------
    >>> calibrator = LogisticCalibrator().fit([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0, 0, 1, 0, 1, 1])
    >>> calibrator.predict_proba([0.0, 1.0])[:, 1].round(6).tolist()
    [0.333333, 0.666667]
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "a_ b_ centre_ level_": "float",
        "separable_": "bool??",
    }
    _noisy_labels: ClassVar[bool] = False

    def __init__(self, *, monotone: bool = False) -> None:
        self.monotone = monotone

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        self.centre_, scale = _centre_and_scale(scores, weight)
        self.separable_ = _separable(scores, positive)
        self.level_, self.b_ = logit(float(self.prior_[1])), 0.0
        if scale > 0.0:
            if self.separable_ and not self._noisy_labels:
                warn(
                    f"{type(self).__name__}: a threshold separates the classes, so that maximum likelihood has no "
                    "solution. Platt's targets were used instead"
                )
            noisy = self._noisy_labels or self.separable_
            targets = platt_targets(positive, weight) if noisy else positive.astype(np.float64)
            fit = _solve([(scores - self.centre_) / scale], targets, weight, [self.monotone], type(self).__name__)
            self.level_, self.b_ = float(fit.coef[0]), float(fit.coef[1]) / scale
        self.a_ = self.level_ - self.b_ * self.centre_

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self.level_ + self.b_ * (scores - self.centre_)


class PlattCalibrator(LogisticCalibrator):
    """Fit a logistic regression with noisy labels (Platt scaling, the paper's "LR+Noise").

    This is `LogisticCalibrator` with Platt's targets, for which there is always a solution. Platt's A and B are `-b_`
    and `-a_`.

    Examples
    --------
    With two scores, the fit is equal to the targets 3/4 and 1/4.

    >>> PlattCalibrator().fit([-1.0, -1.0, 1.0, 1.0], [0, 0, 1, 1]).predict_proba([-1.0, 1.0])[:, 1].round(6).tolist()
    [0.25, 0.75]
    """

    _noisy_labels: ClassVar[bool] = True


class SplineCalibrator(Calibrator):
    """Fit log-odds that are a continuous line of three pieces (the paper's future work).

    Two asymmetric Laplace densities have log-odds of this form. Here no densities are assumed:

        log-odds(s) = level + slope_1 min(s - κ_1, 0) + slope_2 clip(s - κ_1, 0, κ_2 - κ_1) + slope_3 max(s - κ_2, 0)

    with Platt's targets. For given knots, level and slopes have the greatest likelihood (a convex problem). The knots
    are chosen from pairs of quantiles of the scores and refined one at a time, on a summary of the rows. This is not
    always the maximum over all knots. A ridge of 1e-6 of the rows on the standardised slopes determines pieces without
    rows of both classes.

    Parameters
    ----------
    monotone : bool, default False
        Force slopes ≥ 0.
    n_candidates : int, default 8
        Number n of quantiles for the knots, n (n - 1)/2 pairs.

    Attributes
    ----------
    knots_ : float64 array (2,)
    slopes_ : float64 array (3,)
    level_ : float
        Log-odds at the first knot.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(-4, 4, 4000)
    >>> y = rng.uniform(size=4000) < 1 / (1 + np.exp(-np.clip(s, -1, 1) * 3))
    >>> calibrator = SplineCalibrator().fit(s, y)
    >>> bool(np.all(np.abs(calibrator.log_odds([-3.0, 0.0, 3.0]) - [-3, 0, 3]) < 0.4))
    True
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "knots_ centred_knots_": "float64[2]",
        "slopes_": "float64[3]",
        "level_ centre_": "float",
    }

    def __init__(self, *, monotone: bool = False, n_candidates: int = 8) -> None:
        self.monotone = monotone
        self.n_candidates = n_candidates

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        n_candidates = check_positive_int(self.n_candidates, "n_candidates", 2)
        self.centre_, scale = _centre_and_scale(scores, weight)
        self.level_, self.slopes_, self.centred_knots_ = logit(float(self.prior_[1])), np.zeros(3), np.zeros(2)
        if scale > 0.0:
            z = (scores - self.centre_) / scale
            targets = platt_targets(positive, weight)
            knots = best_knots(z, positive, targets, weight, self.monotone, n_candidates)
            ridge = 1e-6 * float(len(z) if weight is None else weight.sum())
            fit = _solve(
                spline_columns(z, knots), targets, weight, [self.monotone] * 3, type(self).__name__, ridge=ridge
            )
            self.level_, self.slopes_ = float(fit.coef[0]), fit.coef[1:] / scale
            self.centred_knots_ = knots * scale
        self.knots_ = self.centred_knots_ + self.centre_

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self.level_ + self.slopes_ @ np.stack(spline_columns(scores - self.centre_, self.centred_knots_))


class IsotonicCalibrator(Calibrator):
    """Fit scikit-learn's isotonic regression on the score, with Platt's targets so that no log-odds is infinite.

    It is linear between the training scores and constant outside. Isotonic regression needs a thousand rows or more,
    and rows within a step become tied. The cost is O(n log n).

    Attributes
    ----------
    scores_, probabilities_ : float64 array (k,)
        The knots of the fitted function.

    Examples
    --------
    >>> calibrator = IsotonicCalibrator().fit([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1])
    >>> calibrator.predict_proba([1.0, 2.5, 4.0])[:, 1].round(9).tolist()
    [0.25, 0.5, 0.75]
    """

    always_monotone: ClassVar[bool] = True
    model_attributes: ClassVar[dict[str, str]] = {
        "scores_": "float64[knots] rising",
        "probabilities_": f"float64[knots] in [{ABOVE_ZERO}, {BELOW_ONE!r}]",
    }

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        if scores.min() == scores.max():
            self.scores_, self.probabilities_ = scores[:1].copy(), self.prior_[1:].copy()
            return
        # Equal scores become one row, and rows inside a step are left out: its two ends define the line.
        places, row = np.unique(scores, return_inverse=True)
        mass = np.bincount(row, weights=weight)
        targets = platt_targets(positive, weight)
        means = np.bincount(row, weights=targets if weight is None else weight * targets) / mass
        p = np.clip(isotonic_regression(means, weights=mass).x, targets.min(), targets.max())
        ends = np.ones(len(p), dtype=bool)
        ends[1:-1] = (p[1:-1] != p[:-2]) | (p[1:-1] != p[2:])
        self.scores_, self.probabilities_ = places[ends], p[ends]

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        p = np.interp(scores, self.scores_, self.probabilities_)
        return np.log(p) - np.log1p(-p)


class BetaCalibrator(Calibrator):
    """Fit a beta calibration (Kull, Silva Filho, Flach) to scores that are the log-odds of a probability p.

        log-odds = a log p - b log(1 - p) + c,   a ≥ 0, b ≥ 0

    with p = 1/(1 + exp(-s)), by maximum likelihood with Platt's targets. Large log-odds do not overflow.

    Attributes
    ----------
    a_, b_, c_ : float

    Examples
    --------
    >>> calibrator = BetaCalibrator().fit([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], [0, 0, 1, 0, 1, 1])
    >>> bool(np.all(np.diff(calibrator.predict_proba([-3.0, 0.0, 3.0])[:, 1]) > 0))
    True
    """

    always_monotone: ClassVar[bool] = True
    model_attributes: ClassVar[dict[str, str]] = {"a_ b_ c_": "float"}

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        self.a_, self.b_, self.c_ = 0.0, 0.0, logit(float(self.prior_[1]))
        if scores.min() == scores.max():
            return
        log_p, minus_log_q = _log_p(scores), -_log_p(-scores)
        columns, centres, scales = [], [], []
        for column in (log_p, minus_log_q):
            centre, scale = _centre_and_scale(column, weight)
            # exp(-800) is 0, so a column may be constant although the scores are not.
            scales.append(scale if scale > 0.0 else 1.0)
            centres.append(centre)
            columns.append((column - centre) / scales[-1])
        ridge = 1e-12 * float(len(scores) if weight is None else weight.sum())
        fit = _solve(columns, platt_targets(positive, weight), weight, [True, True], type(self).__name__, ridge=ridge)
        self.a_, self.b_ = float(fit.coef[1]) / scales[0], float(fit.coef[2]) / scales[1]
        self.c_ = float(fit.coef[0]) - self.a_ * centres[0] - self.b_ * centres[1]

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self.a_ * _log_p(scores) - self.b_ * _log_p(-scores) + self.c_


class IdentityCalibrator(Calibrator):
    """Use the scores as log-odds, without a fit. This is a baseline for scores that are log-odds already.

    Examples
    --------
    >>> IdentityCalibrator().fit([-1.0, 1.0], [0, 1]).log_odds([0.5]).tolist()
    [0.5]
    """

    always_monotone: ClassVar[bool] = True

    def __init__(self) -> None:
        """Take no parameter, since every fit is monotone."""

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        """Do nothing."""

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return scores * self.unit_


class TemperatureCalibrator(Calibrator):
    """Fit a temperature T > 0 with log-odds = s/T, for scores that are log-odds already.

    T has the greatest likelihood, with Platt's targets if every sign is right and so no maximum exists. For scores that
    rank no better than chance, T is the largest float and 1/T is 0. The prior is not used.

    Attributes
    ----------
    temperature_, slope_ : float
        T and 1/T.

    Examples
    --------
    >>> calibrator = TemperatureCalibrator().fit([-2.0, -2.0, -2.0, 2.0, 2.0, 2.0], [0, 0, 1, 0, 1, 1])
    >>> 0 < calibrator.slope_ < 1
    True
    """

    always_monotone: ClassVar[bool] = True
    model_attributes: ClassVar[dict[str, str]] = {"temperature_": "float in [-inf, inf]", "slope_": "float"}

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        scale = float(np.sqrt(np.average(scores * scores, weights=weight)))
        self.slope_ = 0.0
        if scale > 0.0:
            design = np.ascontiguousarray((scores / scale)[:, None])
            # If all signs are right, the likelihood grows with 1/T without end.
            perfect = bool((scores[positive] >= 0).all() and (scores[~positive] <= 0).all())
            targets = platt_targets(positive, weight) if perfect else positive.astype(np.float64)
            fit = fit_log_odds(design, targets, weight, lower=np.array([True]))
            if fit.status is not Status.CONVERGED:
                warn(f"TemperatureCalibrator {fit.status.value}")
            self.slope_ = float(fit.coef[0]) / scale
        # A slope of 0 would be an infinite temperature, which a model file cannot hold.
        self.temperature_ = 1.0 / self.slope_ if self.slope_ > 1e-300 else float(np.finfo(np.float64).max)

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        return self.slope_ * scores


def _log_p(s: np.ndarray) -> np.ndarray:
    """Return log(1/(1 + exp(-s))) without overflow."""
    return np.minimum(s, 0.0) - np.log1p(np.exp(-np.abs(s)))


def _centre_and_scale(values: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return mean and standard deviation, computed about a pivot so that large offsets do not cancel."""
    pivot = float(values[0])
    shifted = values - pivot
    if not shifted.any():
        return pivot, 0.0
    mean = float(np.average(shifted, weights=weight))
    return pivot + mean, float(np.sqrt(np.average((shifted - mean) ** 2, weights=weight)))


def _separable(scores: np.ndarray, positive: np.ndarray) -> bool:
    """Return whether a threshold has one class at or above it and the other at or below it."""
    if positive.all() or not positive.any():
        return True
    plus, minus = scores[positive], scores[~positive]
    return bool(minus.max() <= plus.min() or plus.max() <= minus.min())


def _solve(
    columns: list[np.ndarray],
    targets: np.ndarray,
    weight: np.ndarray | None,
    nonnegative: list[bool],
    name: str,
    *,
    ridge: float = 0.0,
) -> LogOddsFit:
    """Fit an intercept, without a ridge, and the coefficients of the columns."""
    design = np.ascontiguousarray(np.stack([np.ones(len(targets)), *columns], axis=1))
    start = np.zeros(design.shape[1])
    start[0] = logit(float(np.clip(np.average(targets, weights=weight), 1e-12, 1 - 1e-12)))
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    fit = fit_log_odds(design, targets, weight, start=start, lower=np.array([False, *nonnegative]), ridge=penalty)
    if fit.status is not Status.CONVERGED:
        warn(f"{name} {fit.status.value}")
    return fit
