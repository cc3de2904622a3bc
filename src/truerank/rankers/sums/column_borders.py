"""Borders of columns over partitions: the same as on one machine, for any partitioning.

Borders are the values at some ranks of a column. A small summary gives an interval for each value; the partitions count
the values below it and summarise those inside. This repeats until the summary is exact: two rounds for a quarter of a
million different values, four for a billion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.data.row_source import Part, RowSource
from truerank.matrices.binning import border_ranks, borders_among, scan_columns
from truerank.matrices.row_copies import CopyUnit, different_weights
from truerank.rankers.sums.column_summaries import LIMIT, ColumnSummary, merge_summaries

ROUGH = 1 << 14  # different values that the first summary of a column keeps
_VALUES = 1 << 22  # of a partition's columns that are looked at in one round
_FEWEST, _MOST = 8, 64  # columns a round

Between = tuple[np.ndarray, np.ndarray]
Counted = tuple[np.ndarray, ColumnSummary]


class RankSearch:
    """Search for the values at some ranks (r,) of a column, ascending from 0, by a summary of all values.

    `found` (r,) has the values once they are known. Until then they are in the disjoint intervals `between`, open below
    and closed above: arrays of low and high ends (k,).
    """

    def __init__(self, ranks: np.ndarray, summary: ColumnSummary) -> None:
        self.ranks = ranks
        self.found: np.ndarray | None = None
        self.between: Between = np.array([-np.inf], summary.values.dtype), summary.values[-1:]
        self._interval = np.zeros(len(ranks), dtype=np.int64)
        self._narrow(ranks, summary)

    def take(self, counts: np.ndarray, inside: ColumnSummary) -> None:
        """Take the counts below and in each interval, int64 (2, k), and the summaries of the values inside."""
        below, within = counts
        before = np.cumsum(within) - within
        self._narrow(self.ranks + (before - below)[self._interval], inside)

    def _narrow(self, ranks: np.ndarray, summary: ColumnSummary) -> None:
        """Narrow the intervals by the summary of their values, among which the wanted ones have `ranks`."""
        ends = np.cumsum(summary.counts, dtype=np.int64)
        if summary.error == 0.0:
            self.found = summary.values[np.searchsorted(ends, ranks, side="right")]
            return
        slack = int(np.ceil(summary.error * (ends[-1] + summary.limit / 2)))  # each cut rounds to whole rows
        last_below = np.searchsorted(ends, ranks - slack, side="right") - 1
        first_above = np.minimum(np.searchsorted(ends, ranks + slack + 1), len(ends) - 1)
        low, high = (sides[self._interval] for sides in self.between)
        low = np.where(last_below < 0, low, np.maximum(low, summary.values[last_below]))
        high = np.minimum(high, summary.values[first_above])
        apart = np.concatenate([[True], low[1:] >= high[:-1]])
        self._interval = np.cumsum(apart) - 1
        self.between = low[apart], high[np.append(np.flatnonzero(apart)[1:] - 1, len(high) - 1)]


def copy_unit(data: RowSource) -> CopyUnit | None:
    """Return the weight of one copy of a row; None without weights."""
    if data.description.largest_weight is None:
        return None
    return CopyUnit.of(data.statistics(_different_weights, merge=_both_weights), data.n_rows)


def column_borders(data: RowSource, parts: int, unit: CopyUnit | None = None) -> list[np.ndarray]:
    """Apply `find_borders` to every column of the partitions, whose rows count as their copies of this `unit`."""
    width = min(max(_VALUES // max(int(data.rows_by_part.max()), 1), _FEWEST), _MOST)
    borders: list[np.ndarray] = []
    for first in range(0, data.n_features, width):
        columns = range(first, min(first + width, data.n_features))
        borders += _borders_of(data, columns, parts, unit)
    return borders


def _borders_of(data: RowSource, columns: range, parts: int, unit: CopyUnit | None) -> list[np.ndarray]:
    summaries = data.statistics(summaries_of, columns, data.feature_names, ROUGH, unit, merge=merge_summaries)
    searches: dict[int, RankSearch] = {}
    for k, summary in zip(columns, summaries):
        if summary.error > 0.0 or len(summary.values) > parts:
            ranks = np.sort(border_ranks(int(summary.counts.sum(dtype=np.int64)), parts))
            searches[k] = RankSearch(ranks, summary)
    while unknown := {k: search for k, search in searches.items() if search.found is None}:
        between = [search.between for search in unknown.values()]
        answers = data.statistics(
            _counts_between, columns, list(unknown), between, data.feature_names, unit, merge=_merge_counts
        )
        for search, answer in zip(unknown.values(), answers):
            search.take(*answer)
    return [
        borders_among(searches[k].found, summary.values[-1])  # type: ignore[arg-type]
        if k in searches
        else summary.values[:-1].astype(np.float64)
        for k, summary in zip(columns, summaries)
    ]


# Statistics of a partition.


def row_copies(partition: Part, unit: CopyUnit | None) -> np.ndarray | None:
    """Return the number of copies of each row, int64; None if all rows count once."""
    if unit is None:
        return None
    weight = partition.data.row_weight
    return unit.counts(np.ones(partition.data.n_rows) if weight is None else weight)


def summaries_of(
    partition: Part, columns: range, names: list[str] | None, limit: int, unit: CopyUnit | None
) -> list[ColumnSummary]:
    return [ColumnSummary.of(values, limit, ends) for values, ends in _sorted_columns(partition, columns, names, unit)]


def _counts_between(
    partition: Part,
    columns: range,
    chosen: Sequence[int],
    between: list[Between],
    names: list[str] | None,
    unit: CopyUnit | None,
) -> list[Counted]:
    ordered = _sorted_columns(partition, columns, names, unit)
    answers = []
    for k, (low, high) in zip(chosen, between):
        values, ends = ordered[k - columns.start]
        start, stop = np.searchsorted(values, low, side="right"), np.searchsorted(values, high, side="right")
        inside = [slice(a, b) for a, b in zip(start.tolist(), stop.tolist())]
        ends_inside = None
        if ends is not None:
            counts = np.diff(ends, prepend=0)
            ends_inside = np.cumsum(np.concatenate([counts[here] for here in inside]))
            start, stop = (np.append(0, ends)[place] for place in (start, stop))
        summary = ColumnSummary.of(np.concatenate([values[here] for here in inside]), LIMIT, ends_inside)
        answers.append((np.array([start, stop - start]), summary))
    return answers


def _different_weights(partition: Part) -> np.ndarray:
    weight = partition.data.row_weight
    return different_weights(np.ones(1) if weight is None else weight)


def _both_weights(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return different_weights(np.append(a, b))


def _merge_counts(a: list[Counted], b: list[Counted]) -> list[Counted]:
    return [(one[0] + other[0], one[1].merged(other[1])) for one, other in zip(a, b, strict=True)]


def _sorted_columns(
    partition: Part, columns: range, names: list[str] | None, unit: CopyUnit | None
) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Return the observed values of each column, ascending, and the copies up to each; kept for the next round."""
    which, ordered = partition.memory.get("sorted", (None, []))
    if which != columns:
        copies = row_copies(partition, unit)
        ordered = _sorted(partition.columns(columns, names), copies)
        chosen, statistics = partition.memory.get("statistics", ((), None))
        for place, k in enumerate(chosen):
            if k in columns:
                ordered[k - columns.start] = _sorted(statistics[:, place : place + 1], copies)[0]
        partition.memory["sorted"] = columns, ordered
    return ordered


def _sorted(X: Any, copies: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray | None]]:
    X = X.toarray() if hasattr(X, "tocsr") else X
    return scan_columns(X, lambda _, values, ends: (values.copy(), ends), copies=copies)
