"""A figure as data: what an experiment has to show, for `report.plots` to draw and for tests to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Figure:
    """One chart.

    Attributes
    ----------
    name : str
        Stem of its file name.
    kind : {"bars", "lines", "boxes"}
        Grouped bars over the categories `x`, one line for each series over the numbers `x`, or one box for each series
        (quartiles, whiskers and outliers of its values), in the places `x`.
    title, xlabel, ylabel : str
    x : sequence
        Categories (str), or numbers.
    series : mapping of str to sequence of float
        Values at each `x` by name; nan is a gap. Of boxes: the values that each is drawn of, any number.
    errors : mapping of str to sequence of float
        Half-widths of error bars by series, where there are any.
    ylim : (float, float), optional
    note : str
        A sentence below the chart: protocol, convention, numbers of queries.
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
