"""The calibrators by name."""

from __future__ import annotations

from truerank.core.names import look_up

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
    "pool": "truerank.calibration.pool:PooledCalibrator",
}


def calibrator_class(name: str) -> type:
    """Class of a calibrator by its name, for example "asymmetric-laplace"."""
    return look_up(CALIBRATORS, name, "calibrator")
