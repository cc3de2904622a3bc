"""Charts: what is drawn is what was given, colours and patterns differ."""

from __future__ import annotations

import math

import pytest
from reproductions.plots import Figure

from reproductions import plots

pytest.importorskip("matplotlib")

BARS = Figure(
    "bars", "bars", "A title", "classes", "MAP", ["a", "b"], {"one": [0.1, 0.2], "two": [0.3, math.nan]},
    errors={"one": [0.01, math.nan]}, note="A note.",
)  # fmt: skip
LINES = Figure("lines", "lines", "Curve", "round", "MAP", [1, 2, 3], {"train": [0.1, 0.2, 0.3]}, ylim=(0.0, 1.0))


def test_bars_have_the_given_heights_and_tell_series_apart():
    axes = plots.draw(BARS).axes[0]
    bars = [container for container in axes.containers if hasattr(container, "patches")]
    heights = [[patch.get_height() for patch in container.patches] for container in bars]
    assert heights[0] == [0.1, 0.2]
    assert heights[1][0] == 0.3
    first, second = (container.patches[0] for container in bars)
    assert first.get_facecolor() != second.get_facecolor()
    assert first.get_hatch() != second.get_hatch()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["one", "two"]


def test_lines_have_the_given_points():
    axes = plots.draw(LINES).axes[0]
    assert axes.lines[0].get_xydata().tolist() == [[1, 0.1], [2, 0.2], [3, 0.3]]
    assert axes.get_ylim() == (0.0, 1.0)
    assert axes.get_legend() is None


def test_boxes_have_the_given_medians():
    values = {"plain": [0.1, 0.2, 0.4, 0.3, 0.9], "one value": [0.5]}
    axes = plots.draw(Figure("boxes", "boxes", "A title", "leaves", "nDCG@5", list(values), values)).axes[0]
    level = [line.get_ydata() for line in axes.lines if len(set(line.get_ydata())) == 1]
    medians = {values[0] for values in level}
    assert {0.3, 0.5} <= medians
    assert [label.get_text() for label in axes.get_xticklabels()] == list(values)
    assert axes.get_legend() is None
