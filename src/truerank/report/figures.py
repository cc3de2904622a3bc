"""Figures as data: charts for `report.plots`, and layers of Vega-Lite for `report.page`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


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


def number(field: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """A channel of numbers in a chart."""
    return {"field": field, "type": "quantitative"} | ({"title": title} if title else {}) | more


def layer(mark: dict[str, Any], rows: list[dict[str, Any]] | None = None, **channels: Any) -> dict[str, Any]:
    """A mark with its channels, over rows of its own or over those of the whole chart."""
    return {"mark": mark, "encoding": channels} | ({} if rows is None else {"data": {"values": rows}})
