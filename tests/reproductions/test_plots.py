"""Figures of experiments: what those of calibration hold, and that all are drawn and written whole."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from reproductions.calibration.figures import density_figure, log_odds_figure, reliability_figure
from reproductions.figures import draw_figures
from reproductions.plots import Figure

from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.diagnostics import reliability
from truerank.calibration.posteriors import LogisticCalibrator
from truerank.core.errors import InvalidInputError

CHARTS = [
    Figure("bars", "bars", "A title", "classes", "MAP", ["a", "b"], {"one": [0.1, 0.2]}),
    Figure("lines", "lines", "Curve", "round", "MAP", [1, 2, 3], {"train": [0.1, 0.2, 0.3]}),
]


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    y = rng.uniform(size=2000) < 0.4
    s = rng.laplace(size=2000) + 2 * y
    half = np.arange(2000) < 1000
    laplace, logistic = (c.fit(s[half], y[half]) for c in (AsymmetricLaplaceCalibrator(), LogisticCalibrator()))
    data = [("training", s[half], y[half]), ("test", s[~half], y[~half])]
    diagram = reliability(y[~half], laplace.predict_proba(s[~half]), n_resamples=50)
    return {
        "densities": density_figure("d", "densities", laplace, data),
        "log-odds": log_odds_figure("l", "log-odds", {"A. Laplace": laplace, "LogReg": logistic}, data),
        "reliability": reliability_figure("r", "reliability", diagram, "1000 rows"),
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


@pytest.mark.parametrize("kind", ["densities", "log-odds", "reliability"])
def test_figures_are_drawn(pictures, kind, tmp_path):
    pytest.importorskip("matplotlib")
    (path,) = draw_figures([pictures[kind]], tmp_path)
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    paths = draw_figures(CHARTS, tmp_path / "new", suffix=suffix)
    assert [path.name for path in paths] == [f"bars.{suffix}", f"lines.{suffix}"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [path.name for path in paths]
    if suffix == "png":
        head = paths[0].read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:24]) == (1200, 690)


def test_unknown_kind_of_file(tmp_path):
    with pytest.raises(InvalidInputError, match="png, svg or pdf"):
        draw_figures(CHARTS, tmp_path, suffix="gif")
