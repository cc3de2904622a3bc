"""Draw figures of calibration: densities, log-odds, reliability diagrams."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproductions.calibration.figures import CalibrationFigure
from reproductions.plots import COLOURS, LINES, blank

BLUE, ORANGE, BLACK = "#0072B2", "#E69F00", "#000000"
_MARKERS = ("o", "s", "^", "D")


def draw(figure: CalibrationFigure) -> Any:
    """One figure as a matplotlib `Figure`."""
    canvas, axes = blank(figure, (6.0, 5.6) if figure.kind == "reliability" else (8.0, 4.6))
    {"densities": _densities, "log-odds": _log_odds, "reliability": _reliability}[figure.kind](axes, figure)
    if figure.ylim is not None:
        axes.set_ylim(*figure.ylim)
    # An opaque ground keeps the lines of the grid out of the words.
    axes.legend(facecolor="white", edgecolor="none", framealpha=1.0, fontsize=9, loc="best")
    return canvas


def _densities(axes: Any, figure: CalibrationFigure) -> None:
    # Class by colour, origin by form: steps for the histograms, a thick line for the fit.
    for label, (x, heights) in figure.points.items():
        colour = ORANGE if label.endswith("+") else BLUE
        first = label.startswith(next(iter(figure.points)).partition(",")[0])
        axes.step(
            x,
            heights,
            where="mid",
            color=colour,
            linewidth=0.9,
            linestyle="-" if first else ":",
            alpha=0.9,
            label=label,
        )
    first_fit = next(iter(figure.curves)).partition(",")[0]
    for label, y in figure.curves.items():
        colour, style = (
            "#7a4f00" if label.endswith("+") else "#003a5c",
            "-" if label.startswith(first_fit + ",") else "--",
        )
        axes.plot(figure.x, y, color=colour, linestyle=style, linewidth=2.0, label=label)
    fitted = max(float(y.max()) for y in figure.curves.values())
    tallest = max((float(heights.max()) for _, heights in figure.points.values()), default=fitted)
    axes.set_ylim(0, 1.15 * max(tallest, min(fitted, 1.5 * tallest)))


def _log_odds(axes: Any, figure: CalibrationFigure) -> None:
    for i, (label, y) in enumerate(figure.curves.items()):
        axes.plot(figure.x, y, color=COLOURS[i], linestyle=LINES[i], linewidth=1.8, label=label)
    for i, (label, (x, y)) in enumerate(figure.points.items()):
        colour = BLACK if i == 0 else "#777777"
        hollow = figure.one_class.get(label, np.zeros(len(x), dtype=bool))
        inside = (x >= figure.x[0]) & (x <= figure.x[-1])
        if label in figure.intervals:
            low, high = figure.intervals[label]
            axes.vlines(x[inside], low[inside], high[inside], color=colour, linewidth=0.8, alpha=0.6, zorder=2)
        # Points at the border are drawn whole.
        for some, face in ((inside & ~hollow, colour), (inside & hollow, "white")):
            axes.scatter(
                x[some], y[some], marker=_MARKERS[i], facecolors=face, edgecolors=colour, s=24, linewidths=1,
                label=label if face == colour else None, zorder=3, clip_on=False,
            )  # fmt: skip
    axes.set_xlim(figure.x[0], figure.x[-1])
    axes.axhline(0, color="#999999", linewidth=0.7)


def _reliability(axes: Any, figure: CalibrationFigure) -> None:
    diagram = figure.reliability
    if diagram is None:
        raise ValueError("a reliability figure needs a Reliability")
    top = float(max(diagram.predicted.max(), diagram.observed.max(), diagram.band_high.max())) * 1.05
    axes.plot([0, top], [0, top], color="#999999", linewidth=0.8, linestyle="--", label="perfect calibration")
    axes.vlines(
        diagram.predicted, diagram.band_low, diagram.band_high, color=BLUE, linewidth=7, alpha=0.35,
        label=f"{diagram.level:.0%} consistency band",
    )  # fmt: skip
    axes.plot(
        diagram.predicted, diagram.observed, color=ORANGE, marker="o", linewidth=1.4, label="observed", clip_on=False
    )
    axes.set_xlim(0, min(top, 1.02))
    axes.set_ylim(0, min(top, 1.02))
