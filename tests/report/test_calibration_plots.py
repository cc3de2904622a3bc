"""Figures of calibration: what they hold, and that they can be drawn without a warning."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.diagnostics import reliability
from truerank.calibration.posteriors import LogisticCalibrator
from truerank.report.calibration_figures import decile_figure, density_figure, log_odds_figure, reliability_figure


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    y = rng.uniform(size=2000) < 0.4
    s = rng.laplace(size=2000) + 2 * y
    half = np.arange(2000) < 1000
    laplace, logistic = (c.fit(s[half], y[half]) for c in (AsymmetricLaplaceCalibrator(), LogisticCalibrator()))
    data = [("training", s[half], y[half]), ("test", s[~half], y[~half])]
    diagram = reliability(y[~half], laplace.predict_proba(s[~half]), n_resamples=50)
    deciles = [{"expected": k / 3, "observed": k / 3 + 0.1, "standard_error": 0.2} for k in range(10)]
    return {
        "densities": density_figure("d", "densities", laplace, data),
        "log-odds": log_odds_figure("l", "log-odds", {"A. Laplace": laplace, "LogReg": logistic}, data),
        "reliability": reliability_figure("r", "reliability", diagram, "1000 rows"),
        "deciles": decile_figure("t", "deciles", deciles),
    }


def test_histograms_and_curves_are_densities(pictures):
    figure = pictures["densities"]
    for x, heights in figure.points.values():
        assert (heights * (x[1] - x[0])).sum() == pytest.approx(1, abs=0.03)
    for curve in figure.curves.values():
        assert np.trapezoid(curve, figure.x) == pytest.approx(1, abs=0.05)


def test_empirical_log_odds_follow_the_fit(pictures):
    figure = pictures["log-odds"]
    x, y = figure.points["test"]
    fitted = np.interp(x, figure.x, figure.curves["A. Laplace"])
    assert np.abs(fitted - y).mean() < 0.6


@pytest.mark.parametrize("kind", ["densities", "log-odds", "reliability", "deciles"])
def test_figures_are_drawn(pictures, kind, tmp_path):
    pytest.importorskip("matplotlib")
    from truerank.report.plots import draw_figures

    (path,) = draw_figures([pictures[kind]], tmp_path)
    assert path.stat().st_size > 5000
