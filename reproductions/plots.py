"""Charts with matplotlib: legible in grey, safe for colour-blind readers.

Series differ by colour and by hatch or line style. Colours are Okabe and Ito's eight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...", "+++", "ooo")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))


@dataclass(frozen=True)
class Figure:
    """One chart: grouped bars over categories `x`, lines over numbers `x`, or boxes in the places `x`.

    `name` is the stem of its file name. `series` has the values at each `x` by name, with nan for gaps; a box shows all
    values of its series. `errors` are half-widths of error bars. `note` is a sentence below the chart.
    """

    name: str
    kind: Literal["bars", "lines", "boxes"]
    title: str
    xlabel: str
    ylabel: str
    x: Sequence[str] | Sequence[float]
    series: Mapping[str, Sequence[float]]
    errors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    ylim: tuple[float, float] | None = None
    note: str = ""


def blank(figure: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """A canvas with title, labels and note, and its axes, without touching pyplot's global state."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.add_subplot()
    axes.set_title(figure.title, fontsize=12, loc="left", fontweight="bold")
    axes.set_xlabel(figure.xlabel)
    axes.set_ylabel(figure.ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#cccccc", linewidth=0.6)
    axes.set_axisbelow(True)
    if figure.note:
        canvas.supxlabel(figure.note, fontsize=8, color="#444444")
    return canvas, axes


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
