"""Charts with matplotlib (extra `plots`): legible in grey, safe for colour-blind readers."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.report.canvas import COLOURS, HATCHES, LINES, blank
from truerank.report.figures import Figure


def draw(figure: Figure) -> Any:
    """Draw a chart as a matplotlib `Figure`."""
    canvas, axes = blank(figure, (8.0, 4.6))
    {"bars": _bars, "lines": _lines, "boxes": _boxes}[figure.kind](axes, figure)
    if figure.ylim is not None:
        axes.set_ylim(*figure.ylim)
    if len(figure.series) > 1 and figure.kind != "boxes":
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return canvas


def _bars(axes: Any, figure: Figure) -> None:
    places = np.arange(len(figure.x))
    width = 0.8 / max(len(figure.series), 1)
    for i, (name, values) in enumerate(figure.series.items()):
        axes.bar(
            places - 0.4 + width * (i + 0.5), values, width, label=name, color=COLOURS[i % len(COLOURS)],
            hatch=HATCHES[i % len(HATCHES)], edgecolor="white", linewidth=0.5, yerr=figure.errors.get(name),
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "ecolor": "#333333"},
        )  # fmt: skip
    labels = [str(x) for x in figure.x]
    crowded = sum(len(label) for label in labels) > 60
    axes.set_xticks(places, labels, rotation=30 if crowded else 0, ha="right" if crowded else "center")


def _lines(axes: Any, figure: Figure) -> None:
    for i, (name, values) in enumerate(figure.series.items()):
        axes.plot(
            figure.x, values, label=name, color=COLOURS[i % len(COLOURS)], linestyle=LINES[i % len(LINES)],
            linewidth=1.8,
        )  # fmt: skip


def _boxes(axes: Any, figure: Figure) -> None:
    axes.boxplot(
        list(figure.series.values()), widths=0.6, patch_artist=True, boxprops={"facecolor": COLOURS[4]},
        medianprops={"color": COLOURS[7]}, flierprops={"markersize": 3},
    )  # fmt: skip
    axes.set_xticks(range(1, len(figure.series) + 1), [str(x) for x in figure.x], fontsize=8)
