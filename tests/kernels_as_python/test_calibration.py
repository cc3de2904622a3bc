"""The calibrators' kernels on a dozen rows."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.calibration.base import probability_pairs
from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.density_fits import fit_two_sided
from truerank.calibration.log_odds_fits import fit_log_odds
from truerank.solvers.result import Status


def test_asymmetric_laplace():
    assert fit_two_sided(np.array([-1.0, 1, 1, 1, 1, 3]), None, 1e-12, "asymmetric-laplace") == pytest.approx(
        (1.0, 2 / 3, 2 / 3)
    )


def test_modes_between_scores():
    assert fit_two_sided(np.array([-2.0, 0, 0, 0, 0, 0, 0, 2]), None, 1e-12, "asymmetric-gaussian") == pytest.approx(
        (0.0, 1.0, 1.0)
    )
    theta, u, sigma = fit_two_sided(np.array([-3.0, -1, 0, 0, 0, 0.5, 2]), np.ones(7), 1e-12, "hybrid")
    assert -1 <= theta <= 0.5
    assert u > 0
    assert sigma > 0


def test_log_odds():
    design = np.ascontiguousarray(np.stack([np.ones(4), [0.0, 0, 1, 1]], axis=1))
    fit = fit_log_odds(design, np.array([0.0, 1, 1, 1]) * 0.5 + 0.25, None)
    assert fit.status is Status.CONVERGED
    np.testing.assert_allclose(fit.coef, [0.0, np.log(3)], atol=1e-6)
    np.testing.assert_allclose(probability_pairs(np.array([np.log(3)])), [[0.25, 0.75]])


def test_prediction():
    calibrator = AsymmetricLaplaceCalibrator().fit([-3.0, -2, -2, -2, -1, 1, 2, 2, 2, 3], [0] * 5 + [1] * 5)
    np.testing.assert_allclose(calibrator.log_odds([0.0, 1.0]), [0.0, 5.0], atol=1e-12)
    np.testing.assert_allclose(calibrator.density([2.0, 3.0], 1), [1.25, 1.25 * np.exp(-2.5)])
