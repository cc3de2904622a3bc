"""Charts of experiments with matplotlib: legible in grey, safe for colour-blind readers.

Series differ by colour and by hatch or line style. Colours are Okabe and Ito's eight.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...", "+++", "ooo")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
GREYS = ("#000000", "#777777")


class Points(NamedTuple):
    """Points over lines, with their intervals; hollow ones are drawn empty."""

    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    hollow: np.ndarray


@dataclass(frozen=True)
class Figure:
    """One chart: grouped bars over categories `x`, lines over numbers `x`, or boxes in the places `x`.

    `name` is the stem of its file name. `series` has the values at each `x` by name, with nan for gaps; a box shows all
    values of its series. `errors` are half-widths of error bars, `styles` matplotlib's settings of lines by name, and
    `points` are drawn over the lines. `note` is a sentence below the chart.
    """

    name: str
    kind: Literal["bars", "lines", "boxes"]
    title: str
    xlabel: str
    ylabel: str
    x: Sequence[Any] | np.ndarray
    series: Mapping[str, Sequence[float] | np.ndarray]
    errors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    styles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    points: Mapping[str, Points] = field(default_factory=dict)
    ylim: tuple[float, float] | None = None
    note: str = ""


def draw(figure: Figure) -> Any:
    """Draw a chart as a matplotlib `Figure`, without touching pyplot's global state."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(8.0, 4.6), layout="constrained")
    axes = canvas.add_subplot()
    axes.set_title(figure.title, fontsize=12, loc="left", fontweight="bold")
    axes.set_xlabel(figure.xlabel)
    axes.set_ylabel(figure.ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#cccccc", linewidth=0.6)
    axes.set_axisbelow(True)
    if figure.note:
        canvas.supxlabel(figure.note, fontsize=8, color="#444444")
    {"bars": _bars, "lines": _lines, "boxes": _boxes}[figure.kind](axes, figure)
    if figure.ylim is not None:
        axes.set_ylim(*figure.ylim)
    if len(figure.series) > 1 and figure.kind != "boxes":
        axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return canvas


def draw_figures(figures: Iterable[Figure], folder: str | os.PathLike[str], *, suffix: str = "png") -> list[Path]:
    """Draw each figure into `folder` as `NAME.suffix` and return the paths; each file is written whole or not at all.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    if suffix not in ("png", "svg", "pdf"):
        raise InvalidInputError(f"charts are written as png, svg or pdf, got {suffix!r}")
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        canvas = draw(figure)
        paths.append(Path(folder, f"{figure.name}.{suffix}"))
        with atomic_write(paths[-1], "wb") as stream:
            # No date in the file: the same data give the same bytes.
            canvas.savefig(stream, format=suffix, dpi=150, metadata={"Date": None} if suffix == "svg" else None)
    return paths


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
        style = {"color": COLOURS[i % len(COLOURS)], "linestyle": LINES[i % len(LINES)], "linewidth": 1.8}
        axes.plot(figure.x, values, label=name, **(style | dict(figure.styles.get(name, {}))))
    for name, grey, marker in zip(figure.points, GREYS, "os"):
        x, y, low, high, hollow = figure.points[name]
        inside = (x >= figure.x[0]) & (x <= figure.x[-1])
        axes.vlines(x[inside], low[inside], high[inside], color=grey, linewidth=0.8, alpha=0.6, zorder=2)
        for some, face in ((inside & ~hollow, grey), (inside & hollow, "white")):  # whole at the border, too
            axes.scatter(
                x[some], y[some], marker=marker, facecolors=face, edgecolors=grey, s=24, linewidths=1,
                label=name if face == grey else None, zorder=3, clip_on=False,
            )  # fmt: skip
        axes.set_xlim(figure.x[0], figure.x[-1])


def _boxes(axes: Any, figure: Figure) -> None:
    axes.boxplot(
        list(figure.series.values()), widths=0.6, patch_artist=True, boxprops={"facecolor": COLOURS[4]},
        medianprops={"color": COLOURS[7]}, flierprops={"markersize": 3},
    )  # fmt: skip
    axes.set_xticks(range(1, len(figure.series) + 1), [str(x) for x in figure.x], fontsize=8)
