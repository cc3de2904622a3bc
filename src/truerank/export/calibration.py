"""A calibrator as log-odds that are a polynomial of degree two at most between knots of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.calibration.densities import DensityCalibrator
from truerank.calibration.posteriors import (
    IdentityCalibrator,
    LogisticCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from truerank.core.errors import InvalidInputError

_TOLERANCE = 1e-8  # of log-odds, relative to 1 + their magnitude


@dataclass(frozen=True)
class Calibration:
    """Piece k holds scores above `knots[k - 1]` and up to `knots[k]`: `(quadratic d + linear) d + constant`, d from
    `centres[k]`; P(relevant) is the logistic function of that.
    """

    knots: np.ndarray
    centres: np.ndarray
    quadratic: np.ndarray
    linear: np.ndarray
    constant: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays by name."""
        return dict(vars(self))

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Log-odds (n,)."""
        k = np.searchsorted(self.knots, scores)
        d = scores - self.centres[k]
        return np.asarray((self.quadratic[k] * d + self.linear[k]) * d + self.constant[k])


def calibration_of(model: Any) -> Calibration:
    """The calibration of a fitted `CalibratedRanker`.

    Raises
    ------
    InvalidInputError
        When the probability depends on the other documents of the query, on several calibrators, or on a function that
        is no such polynomial (isotonic, beta, pool).
    """
    if len(model.statistics_coef_):
        raise InvalidInputError(
            "with query_statistics a probability depends on the other documents of the query, and an engine sees one "
            "document at a time; calibrate without"
        )
    place = int(np.searchsorted(model.grades_, model.rel))
    if place:
        raise InvalidInputError(
            f"P(grade >= {model.rel:g}) is the least of {place + 1} calibrators, which no format holds; calibrate with "
            f"the lowest relevant grade {model.grades_[0]:g}"
        )
    calibrator = model.calibrators_[0]
    knots = _knots(calibrator)
    span = float(np.ptp(knots)) if len(knots) > 1 and np.ptp(knots) > 0 else 1.0
    ends = np.concatenate([[knots[0] - 2 * span], knots, [knots[-1] + 2 * span]]) if len(knots) else np.array([-1.0, 1])
    centres, steps = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 4
    low, middle, high = (calibrator.log_odds(centres + sign * steps) for sign in (-1, 0, 1))
    quadratic = (high + low - 2 * middle) / (2 * steps**2)
    quadratic[np.abs(quadratic) * steps**2 < 1e-11 * (1 + np.abs(middle))] = 0.0
    result = Calibration(knots, centres, quadratic, (high - low) / (2 * steps), middle)
    grid = np.concatenate([np.linspace(a, b, 7)[1:-1] for a, b in zip(ends[:-1], ends[1:])] + [ends])
    expected = calibrator.log_odds(grid)
    if (np.abs(result.log_odds(grid) - expected) > _TOLERANCE * (1 + np.abs(expected))).any():
        raise InvalidInputError(f"the log-odds of {type(calibrator).__name__} have no such form; calibrate with platt")
    return result


def _knots(calibrator: Any) -> np.ndarray:
    if isinstance(calibrator, LogisticCalibrator | IdentityCalibrator | TemperatureCalibrator):
        return np.empty(0)
    if isinstance(calibrator, SplineCalibrator):
        return np.unique(calibrator.centred_knots_ + calibrator.centre_)
    if isinstance(calibrator, DensityCalibrator):
        if len(calibrator.monotone_scores_):
            return np.unique(calibrator.monotone_scores_ + calibrator.centre_)
        own = np.concatenate([calibrator.predictive_[:, 0], calibrator.flat_])
        return np.unique(own[np.isfinite(own)] + calibrator.centre_)
    raise InvalidInputError(
        f"the log-odds of {type(calibrator).__name__} are no polynomials between knots, which is what formats hold; "
        "logistic, platt, temperature, spline and the densities have such log-odds"
    )
