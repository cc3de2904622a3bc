"""What all charts have in common: colours, forms, and an empty canvas.

Series differ by colour and by hatch or line style. Colours are Okabe and Ito's eight.
"""

from __future__ import annotations

from typing import Any

from truerank.core.errors import imports_of_extra

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
HATCHES = ("", "///", "\\\\\\", "xxx", "---", "...", "+++", "ooo")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))


def blank(figure: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """A canvas with title, labels and note, and its axes, without touching pyplot's global state."""
    with imports_of_extra("matplotlib", "plots", "drawing charts"):
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
