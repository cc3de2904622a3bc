"""The calibrators by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truerank.core.errors import InvalidInputError
from truerank.core.names import look_up

if TYPE_CHECKING:
    from truerank.calibration.base import Calibrator

# Name -> "module:class" of calibrators (`CalibratedRanker(method=NAME)`, `truerank calibrate --method NAME`).
CALIBRATORS: dict[str, str] = {
    "gaussian": "truerank.calibration.densities:GaussianCalibrator",
    "asymmetric-gaussian": "truerank.calibration.densities:AsymmetricGaussianCalibrator",
    "laplace": "truerank.calibration.densities:LaplaceCalibrator",
    "asymmetric-laplace": "truerank.calibration.densities:AsymmetricLaplaceCalibrator",
    "logistic": "truerank.calibration.posteriors:LogisticCalibrator",
    "platt": "truerank.calibration.posteriors:PlattCalibrator",
    "hybrid": "truerank.calibration.densities:HybridCalibrator",
    "spline": "truerank.calibration.posteriors:SplineCalibrator",
    "isotonic": "truerank.calibration.posteriors:IsotonicCalibrator",
    "beta": "truerank.calibration.posteriors:BetaCalibrator",
    "temperature": "truerank.calibration.posteriors:TemperatureCalibrator",
    "identity": "truerank.calibration.posteriors:IdentityCalibrator",
    "pool": "truerank.calibration.pool:PooledCalibrator",
}
SYNONYMS = {"sigmoid": "platt"}  # scikit-learn's names


def calibrator_class(name: str) -> type:
    """Return the class of a calibrator by its name, for example "asymmetric-laplace"."""
    return look_up(CALIBRATORS, SYNONYMS.get(name, name), "calibrator")


def make_calibrator(method: object, *, monotone: bool | None = None) -> Calibrator:
    """Return a new calibrator from its name (with `monotone`, if it has this parameter), or a clone of one."""
    if isinstance(method, str):
        cls: Any = calibrator_class(method)
        return cls() if monotone is None or cls.always_monotone else cls(monotone=monotone)
    from sklearn.base import clone

    from truerank.calibration.base import Calibrator

    if isinstance(method, Calibrator):
        return clone(method)
    raise InvalidInputError(f"method must be the name of a calibrator or a calibrator, got {method!r}")
