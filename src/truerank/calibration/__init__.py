"""Calibration: map scores to probabilities, make decisions with them, and test whether they are calibrated."""

from typing import Any

from truerank.core.names import look_up

# Name -> "module:class" of calibrators (`CalibratedRanker(method=NAME)`).
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
# Forms of `SoftmaxCalibrator` by their names in `CalibratedClassifier(method=…)`.
SOFTMAX_METHODS: dict[str, dict[str, Any]] = {
    "temperature": {"form": "temperature"},
    "vector": {"form": "vector"},
    "matrix": {"form": "matrix"},
    "dirichlet": {"form": "matrix", "inputs": "log-softmax"},
}
QUERY_SCORES = ("mean-top", "expected-relevant", "best", "gap", "agreement", "learned")


def calibrator_class(name: str) -> type:
    """Return the class of a calibrator by its name, for example "asymmetric-laplace"."""
    return look_up(CALIBRATORS, SYNONYMS.get(name, name), "calibrator")
