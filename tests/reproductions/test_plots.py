"""Charts of experiments: what is drawn is what was given, series differ, files are written whole."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from reproductions.calibration.figures import density_figure, log_odds_figure
from reproductions.plots import Figure, draw, draw_figures

from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.posteriors import LogisticCalibrator
from truerank.core.errors import InvalidInputError

pytest.importorskip("matplotlib")

BARS = Figure(
    "bars", "bars", "A title", "classes", "MAP", ["a", "b"], {"one": [0.1, 0.2], "two": [0.3, math.nan]},
    errors={"one": [0.01, math.nan]}, note="A note.",
)  # fmt: skip
LINES = Figure("lines", "lines", "Curve", "round", "MAP", [1, 2, 3], {"train": [0.1, 0.2, 0.3]}, ylim=(0.0, 1.0))


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    y = rng.uniform(size=2000) < 0.4
    s = rng.laplace(size=2000) + 2 * y
    half = np.arange(2000) < 1000
    laplace, logistic = (c.fit(s[half], y[half]) for c in (AsymmetricLaplaceCalibrator(), LogisticCalibrator()))
    data = [("training", s[half], y[half]), ("test", s[~half], y[~half])]
    return {
        "densities": density_figure("d", "densities", {"fit": laplace}, data),
        "log-odds": log_odds_figure("l", "log-odds", {"A. Laplace": laplace, "LogReg": logistic}, data),
    }


def test_bars_have_the_given_heights_and_tell_series_apart():
    axes = draw(BARS).axes[0]
    bars = [container for container in axes.containers if hasattr(container, "patches")]
    heights = [[patch.get_height() for patch in container.patches] for container in bars]
    assert heights[0] == [0.1, 0.2]
    assert heights[1][0] == 0.3
    first, second = (container.patches[0] for container in bars)
    assert first.get_facecolor() != second.get_facecolor()
    assert first.get_hatch() != second.get_hatch()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_lines_have_the_given_points():
    axes = draw(LINES).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[1, 0.1], [2, 0.2], [3, 0.3]]
    assert axes.get_ylim() == (0.0, 1.0)
    assert axes.get_legend() is None


def test_boxes_have_the_given_medians():
    values = {"plain": [0.1, 0.2, 0.4, 0.3, 0.9], "one value": [0.5]}
    axes = draw(Figure("boxes", "boxes", "A title", "leaves", "nDCG@5", list(values), values)).axes[0]
    level = [line.get_ydata() for line in axes.lines if len(set(line.get_ydata())) == 1]
    medians = {values[0] for values in level}
    assert {0.3, 0.5} <= medians
    assert [label.get_text() for label in axes.get_xticklabels()] == list(values)
    assert axes.get_legend() is None


def test_histograms_and_curves_are_densities(pictures):
    figure = pictures["densities"]
    assert len(figure.series) == 6  # a histogram of each class in training and test, and a curve of each class
    for values in figure.series.values():
        assert np.trapezoid(values, figure.x) == pytest.approx(1, abs=0.05)
    styles = [(style["color"], style["linestyle"]) for style in figure.styles.values()]
    assert len(set(styles)) == len(styles)


def test_empirical_log_odds_follow_the_fit(pictures):
    figure = pictures["log-odds"]
    points = figure.points["test"]
    fitted = np.interp(points.x, figure.x, figure.series["A. Laplace"])
    assert np.abs(fitted - points.y).mean() < 0.6
    assert ((points.low < points.y) & (points.y < points.high)).all()
    drawn = draw(figure).axes[0].collections  # for each sample the intervals, the full points and the hollow ones
    inside = (points.x >= figure.x[0]) & (points.x <= figure.x[-1])
    assert len(drawn) == 6
    assert len(drawn[4].get_offsets()) + len(drawn[5].get_offsets()) == inside.sum()


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_files(pictures, tmp_path, suffix):
    charts = [BARS, LINES, *pictures.values()]
    paths = draw_figures(charts, tmp_path / "new", suffix=suffix)
    assert [path.name for path in paths] == [f"{one.name}.{suffix}" for one in charts]
    assert sorted((tmp_path / "new").iterdir()) == sorted(paths)
    assert all(path.stat().st_size > 5000 for path in paths)
    if suffix == "png":
        head = paths[0].read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", head[16:24]) == (1200, 690)


def test_unknown_kind_of_file(tmp_path):
    with pytest.raises(InvalidInputError, match="png, svg or pdf"):
        draw_figures([LINES], tmp_path, suffix="gif")
