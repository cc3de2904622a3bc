"""The curve of a fitted `Cutoff`: risk, and its bound, by the share that is answered or shown."""

from __future__ import annotations

from typing import Any

from truerank.report.figures import Figure, layer, number
from truerank.report.page import Section, chart, paragraph


def draw_curve(cutoff: Any) -> Any:
    """Return the curve as a matplotlib `Figure`."""
    from truerank.report.plots import draw

    curve = cutoff.curve_
    of = "queries answered" if cutoff.kind_ == "answer" else "documents shown"
    title = f"{cutoff.answered_:.0%} of {of}, {cutoff.n_queries_} calibration queries"
    lines = {"risk": curve["risk"], "bound": curve["bound"], "at most": 0 * curve["risk"] + cutoff.at_most}
    return draw(Figure("cutoff", "lines", title, f"share of {of}", "mean loss", curve["answered"], lines))


def cutoff_section(cutoff: Any) -> Section:
    """Return the promise and the curve as a section of a report."""
    points = [
        {"share": share, "loss": value, "line": name}
        for name in ("risk", "bound") for share, value in zip(cutoff.curve_["answered"], cutoff.curve_[name])
    ]  # fmt: skip
    x, y = number("share", "share answered or shown"), number("loss", "mean loss")
    dash = {"field": "line", "type": "nominal"}
    spec = layer({"type": "line", "color": "--a"}, points, x=x, y=y, strokeDash=dash) | {"height": 220}
    return Section(
        "cutoff", "Cutoff", paragraph(cutoff.summary()) + chart(spec, "risk and its bound by share answered")
    )
