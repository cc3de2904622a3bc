"""Calibrate by fitting a density to the scores of each class, with Bayes' rule.

    log-odds(s) = log P(+)/P(-) + log p(s | +) - log p(s | -),        P(c) = (|c| + 1)/(n + 2).

All densities are fitted by exact maximum likelihood (`density_fits`). Their log-odds may fall as the score rises;
`monotone=True` prevents this.

Let R be the range of all scores. Scales are at least `smallest_scale · R`, because on a side without spread the
likelihood has no maximum. A class without rows has its mode in the middle of the scores and the scale
`WIDEST_SCALE · R`. `limits` determines the prediction on a side with the smallest scale:

* "succession": the rule of succession, a mass of 1/(|c| + 2) with the scale of the other side. A class whose scores are
  all equal has the scale R/10.
* "paper": the fitted density, Bennett's β = INF with INF = 1/(smallest_scale · R). Bennett's ε is 1/(WIDEST_SCALE · R).
  The paper gives neither number.

`density` and the fitted scales do not depend on `limits`. The log-odds are constant at scores that are more than 1,000
R outside the range. If all scores are equal, the probability is the prior.

Reference: P. N. Bennett (2003). Using asymmetric distributions to improve text classifier probability estimates. SIGIR.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from truerank.calibration import density_fits
from truerank.calibration.base import Calibrator, as_scores, in_unit
from truerank.calibration.density_fits import HALF_GAUSSIAN
from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.types import ArrayLike

SMALLEST_SCALE = 1e-12
WIDEST_SCALE = 10.0
POINT_SCALE = 0.1
_FAR = 1e3
_MONOTONE_KNOTS = 1000


class DensityCalibrator(Calibrator):
    """Base class of calibrators with a density for each class.

    Each density is `exp(norm - linear |d| - quadratic d²)`, with d the distance to the mode. The coefficients differ
    left (d ≤ 0) and right of it. `shape_` (2, 6) holds mode (relative to `centre_`), norm and the two pairs, negative
    class first.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "centre_": "float",
        "shape_": "float64[2, 6]",
        "predictive_": "float64[2, 8]",
        "flat_": "float64[2]",
        "monotone_scores_": "float64[steps] rising",
        "monotone_log_odds_": "float64[steps]",
    }
    # Whether the mode may lie between scores. If so, scores are first centred, for exact modes at large offsets.
    _centred: ClassVar[bool] = True
    # Name of the family in `density_fits`.
    _family: ClassVar[str] = ""

    def __init__(
        self, *, monotone: bool = False, smallest_scale: float = SMALLEST_SCALE, limits: str = "succession"
    ) -> None:
        self.monotone = monotone
        self.smallest_scale = smallest_scale
        self.limits = limits

    def density(self, scores: ArrayLike, cls: Any) -> np.ndarray:
        """Return the fitted density p(score | class `cls`), float64 (n,), in 1/(unit of the scores)."""
        check_is_fitted(self)
        index = np.flatnonzero(self.classes_ == cls)
        if len(index) != 1:
            raise InvalidInputError(argument="cls", expected=f"one of {self.classes_.tolist()}", value=cls)
        mode, norm = self.shape_[index[0], :2]
        with np.errstate(over="ignore", under="ignore"):
            distance = in_unit(as_scores(scores), self.unit_) - self.centre_ - mode
            log_density = norm - _exponent(distance, self.shape_[index[0], 2:]) - math.log(self.unit_)
            # The peak of the smallest scale may overflow.
            return np.exp(np.minimum(log_density, 709.0))

    def _fit(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> None:
        low, high = float(scores.min()), float(scores.max())
        floor = check_number(self.smallest_scale, "smallest_scale", "[1e-15, 1]") * (high - low)
        succession = check_choice(self.limits, "limits", ("succession", "paper")) == "succession"
        self.centre_ = low + (high - low) / 2.0 if self._centred else 0.0
        ascending = self._ascending(scores, positive, weight)
        fits, shapes, empty = [], [], np.zeros((2, 2), dtype=bool)
        for outer_right, rows in ((not ascending, ~positive), (ascending, positive)):
            x = scores[rows]
            w = None if weight is None else weight[rows]
            if high == low:
                fits.append((low - self.centre_, 1.0, 1.0))
            elif len(x) == 0:
                wide = WIDEST_SCALE * (high - low)
                fits.append((low + (high - low) / 2.0 - self.centre_, wide, wide))
            else:
                fits.append(self._fit_class(x, w, outer_right, floor))
                empty[len(fits) - 1] = succession & (np.array(fits[-1][1:]) <= floor)
            shapes.append(self._shape(*fits[-1], outer_right))
        self.shape_ = np.array(shapes)
        if high == low:
            self.shape_[1] = self.shape_[0]
        self._name_parameters(np.array(fits), ascending)
        self.predictive_ = self._predictive(np.array(fits), empty, POINT_SCALE * (high - low))
        far = _FAR * (high - low)
        self.flat_ = np.array([low - self.centre_ - far, high - self.centre_ + far])
        self._make_monotone(scores, weight, empty)

    def _fit_class(
        self, x: np.ndarray, weight: np.ndarray | None, outer_right: bool, smallest: float
    ) -> tuple[float, float, float]:
        """Return the mode (relative to the centre), the left and the right scale of one class."""
        if self._centred:
            x = x - self.centre_
        if weight is None:  # a sort takes a tenth of the time of its permutation
            return self._fit_sorted(np.sort(x), None, outer_right, smallest)
        order = np.argsort(x, kind="stable")
        return self._fit_sorted(x[order], weight[order], outer_right, smallest)

    def _ascending(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> bool:
        """Return whether the positive class lies to the right, which only the hybrid uses."""
        return True

    def _predictive(self, fits: np.ndarray, empty: np.ndarray, point_scale: float) -> np.ndarray:
        """Return mode, log density there, and norm, linear, quadratic of each side: `shape_` unless a side is empty."""
        mode, norm = self.shape_[:, :1], self.shape_[:, 1:2]
        result = np.concatenate([mode, norm, norm, self.shape_[:, 2:4], norm, self.shape_[:, 4:6]], axis=1)
        for cls, (left, right) in enumerate(empty):
            for side, other in ((0, 1), (1, 0)):
                if not empty[cls, side]:
                    continue
                gaussian = self.shape_[cls, 3 + 2 * side] > 0.0
                scale = point_scale if left and right else fits[cls, 1 + other]
                mass = 0.5 if left and right else 1.0 / (self.counts_[cls] + 2.0)
                width = HALF_GAUSSIAN * scale if gaussian else scale
                log_peak = math.log(mass / width)
                result[cls, 2 + 3 * side : 5 + 3 * side] = (
                    (log_peak, 0.0, 0.5 / scale**2) if gaussian else (log_peak, 1.0 / scale, 0.0)
                )
            if left or right:
                result[cls, 1] = max(result[cls, 2], result[cls, 5])
        return result

    # Methods of a family. The defaults are those of two half Gaussians.

    def _fit_sorted(
        self, x: np.ndarray, weight: np.ndarray | None, outer_right: bool, smallest: float
    ) -> tuple[float, float, float]:
        return density_fits.fit_two_sided(x, weight, smallest, self._family)

    def _shape(self, theta: float, left: float, right: float, outer_right: bool) -> list[float]:
        return [theta, -math.log(HALF_GAUSSIAN * (left + right)), 0.0, 0.5 / left**2, 0.0, 0.5 / right**2]

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        """Set the paper's names from rows (θ, left scale, right scale)."""
        raise NotImplementedError

    # Prediction.

    def _log_odds(self, scores: np.ndarray) -> np.ndarray:
        if len(self.monotone_scores_):
            return np.interp(scores - self.centre_, self.monotone_scores_, self.monotone_log_odds_)
        return self._free_log_odds(scores - self.centre_ if self.centre_ else scores)

    def _free_log_odds(self, centred: np.ndarray) -> np.ndarray:
        x = np.clip(centred, *self.flat_)
        norm, exponents = 0.0, []
        for sign, (mode, peak, norm_l, linear_l, quadratic_l, norm_r, *right) in zip((-1, 1), self.predictive_):
            d = x - mode
            norm = norm + sign * np.where(d > 0.0, norm_r, np.where(d < 0.0, norm_l, peak))
            exponents.append(_exponent(d, np.array([linear_l, quadratic_l, *right])))
        return math.log(self.prior_[1] / self.prior_[0]) + norm + (exponents[0] - exponents[1])

    def _make_monotone(self, scores: np.ndarray, weight: np.ndarray | None, empty: np.ndarray) -> None:
        """Flatten falling ends, or apply isotonic regression at up to 1,000 quantiles of the scores."""
        self.monotone_scores_, self.monotone_log_odds_ = np.empty(0), np.empty(0)
        if not self.monotone:
            return
        linear = not self.predictive_[:, (4, 7)].any() and not empty.any()
        theta_minus, theta_plus = self.predictive_[:, 0]
        if linear and theta_minus <= theta_plus:
            # The slopes are β₊ - β₋, β₊ + γ₋ and γ₋ - γ₊, so only the ends can fall.
            (left_minus, right_minus), (left_plus, right_plus) = self.predictive_[:, (3, 6)]
            if left_plus < left_minus:
                self.flat_[0] = theta_minus
            if right_minus < right_plus:
                self.flat_[1] = theta_plus
            return
        knots, place = np.unique(scores - self.centre_, return_inverse=True)
        mass = np.bincount(place, weights=weight)
        if len(knots) > _MONOTONE_KNOTS:
            ends = np.searchsorted(np.cumsum(mass), np.linspace(0, mass.sum(), _MONOTONE_KNOTS)[1:-1])
            kept = np.unique(np.concatenate([[0], ends, [len(knots) - 1]]))
            mass = np.add.reduceat(mass, kept)
            knots = knots[kept]
        self.monotone_scores_ = knots
        self.monotone_log_odds_ = isotonic_regression(self._free_log_odds(knots), weights=mass).x

    def check_model(self) -> None:
        """Check a loaded model as every calibrator, and that its flat part ascends."""
        if self.flat_[0] > self.flat_[1]:
            raise ModelFileError(
                f"{type(self).__name__}: flat_ must ascend, got {self.flat_.tolist()}", argument="flat_"
            )
        super().check_model()


class GaussianCalibrator(DensityCalibrator):
    """Calibrate with a normal density for each class ("Gauss" of Bennett 2003). Log-odds are a parabola.

    Parameters
    ----------
    monotone : bool, default False
        Force log-odds that never fall as the score rises (by isotonic projection).
    smallest_scale : float, default 1e-12
        Least value of a scale as a fraction of the range of all scores. Raise it (0.01) against spikes on few rows.
    limits : {"succession", "paper"}, default "succession"
        What is predicted where a scale is at that value (module docstring); "paper" keeps the density as it is.

    Attributes
    ----------
    mu_, sigma_ : float64 array (2,)
        Mean and standard deviation (divisor n) of the negative and the positive class.

    Examples
    --------
    >>> calibrator = GaussianCalibrator().fit([-3.0, -1.0, 1.0, 3.0], [0, 0, 1, 1])
    >>> calibrator.mu_.tolist(), calibrator.sigma_.tolist(), calibrator.predict_proba([0.0]).tolist()
    ([-2.0, 2.0], [1.0, 1.0], [[0.5, 0.5]])
    """

    model_attributes: ClassVar[dict[str, str]] = {"mu_ sigma_": "float64[2]"}

    def _fit_class(
        self, x: np.ndarray, weight: np.ndarray | None, outer_right: bool, smallest: float
    ) -> tuple[float, float, float]:
        mu, sigma = density_fits.fit_gaussian(x - self.centre_, weight)
        return mu, max(sigma, smallest), max(sigma, smallest)

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        self.mu_, self.sigma_ = fits[:, 0] + self.centre_, fits[:, 1]


class AsymmetricGaussianCalibrator(DensityCalibrator):
    """Calibrate with two half Gaussians that meet at one mode, for each class ("A. Gauss" of Bennett 2003, equation 2).

        p(s) = 2/(√(2π)(σ_l + σ_r)) · exp(-(s - θ)²/(2σ²)),  σ = σ_l for s ≤ θ, σ_r for s > θ

    The likelihood is maximal over all modes θ, also between scores. Tails of two classes can cross, which raises the
    loss.

    The parameters are those of `GaussianCalibrator`.

    Attributes
    ----------
    theta_, sigma_l_, sigma_r_ : float64 array (2,)
        Mode and the scales left and right of it, negative class first.

    Examples
    --------
    >>> minus, plus = [-3.0, *[-2.0] * 6, -1.0], [1.0, *[2.0] * 6, 3.0]
    >>> calibrator = AsymmetricGaussianCalibrator().fit(minus + plus, [0] * 8 + [1] * 8)
    >>> calibrator.theta_.round(6).tolist(), calibrator.predict_proba([0.0]).round(6).tolist()
    ([-2.0, 2.0], [[0.5, 0.5]])
    """

    model_attributes: ClassVar[dict[str, str]] = {"theta_ sigma_l_ sigma_r_": "float64[2]"}
    _family: ClassVar[str] = "asymmetric-gaussian"

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        self.theta_, self.sigma_l_, self.sigma_r_ = fits[:, 0] + self.centre_, fits[:, 1], fits[:, 2]


class LaplaceCalibrator(DensityCalibrator):
    """Calibrate with a Laplace density for each class ("Laplace" of Bennett 2003).

        p(s) = β/2 · exp(-β |s - θ|), θ the median and 1/β the mean absolute deviation about it

    The parameters are those of `GaussianCalibrator`.

    Attributes
    ----------
    theta_, beta_ : float64 array (2,)
        Median and inverse scale of the negative and the positive class.

    Examples
    --------
    >>> calibrator = LaplaceCalibrator().fit([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], [0, 0, 0, 1, 1, 1])
    >>> calibrator.theta_.tolist(), calibrator.beta_.tolist()
    ([-2.0, 2.0], [1.5, 1.5])
    """

    model_attributes: ClassVar[dict[str, str]] = {"theta_ beta_": "float64[2]"}
    _centred: ClassVar[bool] = False

    def _fit_sorted(
        self, x: np.ndarray, weight: np.ndarray | None, outer_right: bool, smallest: float
    ) -> tuple[float, float, float]:
        theta, scale = density_fits.fit_laplace(x, weight)
        return theta, max(scale, smallest), max(scale, smallest)

    def _shape(self, theta: float, left: float, right: float, outer_right: bool) -> list[float]:
        return [theta, -math.log(left + right), 1.0 / left, 0.0, 1.0 / right, 0.0]

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        self.theta_, self.beta_ = fits[:, 0].copy(), 1.0 / fits[:, 1]


class AsymmetricLaplaceCalibrator(LaplaceCalibrator):
    """Calibrate with two exponentials that meet at one mode, for each class ("A. Laplace", Bennett 2003, equation 1).

        p(s) = βγ/(β + γ) · exp(-β(θ - s)) for s ≤ θ,  · exp(-γ(s - θ)) for s > θ

    The log-odds are piecewise linear with knots at the two modes. One pass over the sorted scores finds the exact
    maximum of the likelihood (equation 3). The best mode is always a score.

    The parameters are those of `GaussianCalibrator`. With θ₋ ≤ θ₊, `monotone=True` makes a falling end flat.

    Attributes
    ----------
    theta_, beta_, gamma_ : float64 array (2,)
        Mode and the inverse scales left and right of it, negative class first.

    Examples
    --------
    θ = 2 has D_l = D_r = 1 among the positive scores, so β = γ = 5/(1 + √1).

    >>> minus, plus = [-3.0, -2, -2, -2, -1], [1.0, 2, 2, 2, 3]
    >>> calibrator = AsymmetricLaplaceCalibrator().fit(minus + plus, [0] * 5 + [1] * 5)
    >>> calibrator.theta_.tolist(), calibrator.beta_.tolist(), calibrator.gamma_.tolist()
    ([-2.0, 2.0], [2.5, 2.5], [2.5, 2.5])
    >>> calibrator.log_odds([-5.0, 0.0, 1.0]).tolist()
    [-10.0, 0.0, 5.0]
    """

    model_attributes: ClassVar[dict[str, str]] = {"gamma_": "float64[2]"}
    _family: ClassVar[str] = "asymmetric-laplace"
    _fit_sorted = DensityCalibrator._fit_sorted

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        super()._name_parameters(fits, ascending)
        self.gamma_ = 1.0 / fits[:, 2]


class HybridCalibrator(DensityCalibrator):
    """Calibrate with exponential inner and Gaussian outer sides, for each class (future work of Bennett 2003).

    The inner side faces the other class; the class with the higher mean lies to the right:

        p(s) = exp(-d/u)/(u + √(π/2) σ) on the inner side,  exp(-d²/(2σ²))/(u + √(π/2) σ) on the outer,  d = |s - θ|

    The parameters are those of `GaussianCalibrator`.

    Attributes
    ----------
    theta_, u_, sigma_ : float64 array (2,)
        Mode, scale of the exponential side and of the Gaussian side, negative class first.
    ascending_ : bool
        Whether the positive class lies to the right.

    Examples
    --------
    >>> minus, plus = [-3.0, -2, -2, -2, -1], [1.0, 2, 2, 2, 3]
    >>> calibrator = HybridCalibrator().fit(minus + plus, [0] * 5 + [1] * 5)
    >>> calibrator.ascending_, calibrator.predict_proba([0.0]).round(6).tolist()
    (True, [[0.5, 0.5]])
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "theta_ u_ sigma_": "float64[2]",
        "ascending_": "bool",
    }
    _family: ClassVar[str] = "hybrid"

    def _ascending(self, scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None) -> bool:
        if positive.all() or not positive.any():
            return True
        w = np.ones(len(scores)) if weight is None else weight
        shifted = scores - self.centre_
        return bool(
            np.average(shifted[positive], weights=w[positive]) >= np.average(shifted[~positive], weights=w[~positive])
        )

    def _fit_sorted(
        self, x: np.ndarray, weight: np.ndarray | None, outer_right: bool, smallest: float
    ) -> tuple[float, float, float]:
        if outer_right:
            return super()._fit_sorted(x, weight, outer_right, smallest)
        mirrored = None if weight is None else np.ascontiguousarray(weight[::-1])
        theta, u, sigma = super()._fit_sorted(np.ascontiguousarray(-x[::-1]), mirrored, outer_right, smallest)
        return -theta, sigma, u

    def _shape(self, theta: float, left: float, right: float, outer_right: bool) -> list[float]:
        if outer_right:
            return [theta, -math.log(left + HALF_GAUSSIAN * right), 1.0 / left, 0.0, 0.0, 0.5 / right**2]
        return [theta, -math.log(right + HALF_GAUSSIAN * left), 0.0, 0.5 / left**2, 1.0 / right, 0.0]

    def _name_parameters(self, fits: np.ndarray, ascending: bool) -> None:
        outer_right = np.array([not ascending, ascending])
        self.theta_ = fits[:, 0] + self.centre_
        self.u_ = np.where(outer_right, fits[:, 1], fits[:, 2])
        self.sigma_ = np.where(outer_right, fits[:, 2], fits[:, 1])
        self.ascending_ = bool(ascending)


def _exponent(distance: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Return exponents at distances from the mode; `sides` (4,) has the linear and quadratic term of each side."""
    linear_l, quadratic_l, linear_r, quadratic_r = sides
    right = distance * (linear_r + quadratic_r * distance)
    return np.where(distance > 0.0, right, distance * (quadratic_l * distance - linear_l))
