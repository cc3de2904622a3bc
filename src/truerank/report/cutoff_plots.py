"""The curve of a cut-off: risk, and its bound, against the share that is answered or shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from truerank.report.canvas import COLOURS, blank


def draw(cutoff: Any) -> Any:
    """The `curve_` of a fitted `Cutoff` as a matplotlib `Figure`; thresholds outside the tested sequence are dotted."""
    curve, answers = cutoff.curve_, cutoff.kind_ == "answer"
    words = SimpleNamespace(
        title=f"{cutoff.n_queries_} calibration queries", note="", ylabel=f"mean loss {cutoff._name()}",
        xlabel="share of queries answered" if answers else "share of documents shown",
    )  # fmt: skip
    canvas, axes = blank(words, (6.4, 3.8))
    bound = (
        "bound on the expected loss" if cutoff.confidence is None else f"upper bound, confidence {cutoff.confidence:g}"
    )
    for name, label, colour in (("bound", bound, COLOURS[1]), ("risk", "calibration queries", COLOURS[0])):
        axes.plot(curve["answered"], curve[name], color=colour, linewidth=1, linestyle=":")
        inside = np.where(curve["tested"], curve[name], np.nan)
        axes.plot(curve["answered"], inside, color=colour, linewidth=2, label=label)
    axes.axhline(cutoff.at_most, color="black", linewidth=1, linestyle="--", label=f"at most {cutoff.at_most:g}")
    axes.axvline(cutoff.answered_, color=COLOURS[2], linewidth=2, label=f"chosen: {cutoff.answered_:.0%}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, min(1.0, 1.6 * max(cutoff.at_most, float(curve["risk"].max()))))
    axes.legend(frameon=False, fontsize=9)
    return canvas
