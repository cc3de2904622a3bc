"""Borders of columns whose rows live in partitions: those of one machine, whatever the partitioning.

Borders are the values at some ranks of a column. A small summary says between which values each of them must lie; the
partitions count what is below that interval, and summarise what is in it; and so on, until the values in the intervals
are few enough to be known exactly. A quarter of a million different values take two rounds, a billion four.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.cluster.column_summaries import LIMIT, ColumnSummary, merge_summaries
from truerank.cluster.data import ClusterRankingData
from truerank.cluster.partition import Partition
from truerank.matrices.binning import border_ranks, borders_among, scan_columns

ROUGH = 1 << 14  # different values that the first summary of a column keeps
_VALUES = 1 << 22  # of a partition's columns that are looked at in one round
_FEWEST, _MOST = 8, 64  # columns a round

Between = tuple[np.ndarray, np.ndarray]


class RankSearch:
    """Looks for the values at some ranks (r,) of a column, ascending from 0, by a summary of all values.

    The values are `found` (r,) once they are known; till then they lie in the disjoint intervals `between`, open below
    and closed above, as arrays of low and high ends (k,).
    """

    def __init__(self, ranks: np.ndarray, summary: ColumnSummary) -> None:
        self.ranks = ranks
        self.found: np.ndarray | None = None
        everything = np.array([-np.inf], summary.values.dtype), summary.values[-1:]
        self.between: Between = everything
        self._interval = np.zeros(len(ranks), dtype=np.int64)
        self._narrow(ranks, summary)

    def take(self, counts: np.ndarray, inside: ColumnSummary) -> None:
        """What the partitions answer: below and in each interval int64 (2, k), and the values in all of them."""
        below, within = counts
        before = np.cumsum(within) - within
        self._narrow(self.ranks + (before - below)[self._interval], inside)

    def _narrow(self, ranks: np.ndarray, summary: ColumnSummary) -> None:
        """Narrow the intervals by the summary of the values in them, among which the values looked for have `ranks`."""
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


def column_borders(data: ClusterRankingData, parts: int) -> list[np.ndarray]:
    """`find_borders` of every column of the partitions."""
    rows = int(data.rows_by_partition.max())
    width = min(max(_VALUES // max(rows, 1), _FEWEST), _MOST)
    borders: list[np.ndarray] = []
    for first in range(0, data.n_features, width):
        columns = range(first, min(first + width, data.n_features))
        borders += _borders_of(data, columns, parts)
    return borders


def _borders_of(data: ClusterRankingData, columns: range, parts: int) -> list[np.ndarray]:
    summaries = data.crew.round(summaries_of, columns, data.feature_names, ROUGH, merge=merge_summaries)
    searches: dict[int, RankSearch] = {}
    for k, summary in zip(columns, summaries):
        if summary.error > 0.0 or len(summary.values) > parts:
            ranks = np.sort(border_ranks(int(summary.counts.sum(dtype=np.int64)), parts))
            searches[k] = RankSearch(ranks, summary)
    while unknown := {k: search for k, search in searches.items() if search.found is None}:
        between = [search.between for search in unknown.values()]
        answers = data.crew.round(
            _counts_between, columns, list(unknown), between, data.feature_names, merge=_merge_counts
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


def summaries_of(partition: Partition, columns: range, names: list[str] | None, limit: int) -> list[ColumnSummary]:
    """Summaries of some columns, merged by `merge_summaries`."""
    return [ColumnSummary.of(values, limit) for values in _sorted_columns(partition, columns, names)]


def _counts_between(
    partition: Partition, columns: range, chosen: Sequence[int], between: list[Between], names: list[str] | None
) -> list[tuple[np.ndarray, ColumnSummary]]:
    ordered = _sorted_columns(partition, columns, names)
    answers = []
    for k, (low, high) in zip(chosen, between):
        values = ordered[k - columns.start]
        start, stop = np.searchsorted(values, low, side="right"), np.searchsorted(values, high, side="right")
        inside = np.concatenate([values[a:b] for a, b in zip(start.tolist(), stop.tolist())])
        answers.append((np.array([start, stop - start]), ColumnSummary.of(inside, LIMIT)))
    return answers


def _merge_counts(
    a: list[tuple[np.ndarray, ColumnSummary]], b: list[tuple[np.ndarray, ColumnSummary]]
) -> list[tuple[np.ndarray, ColumnSummary]]:
    return [(one[0] + other[0], one[1].merged(other[1])) for one, other in zip(a, b, strict=True)]


def _sorted_columns(partition: Partition, columns: range, names: list[str] | None) -> list[np.ndarray]:
    """Observed values of each column in ascending order, kept for the next round about the same columns."""
    which, ordered = partition.memory.get("sorted", (None, []))
    if which != columns:
        ordered = _sorted(partition.columns(columns, names))
        chosen, statistics = partition.memory.get("statistics", ((), None))
        for place, k in enumerate(chosen):
            if k in columns:
                ordered[k - columns.start] = _sorted(statistics[:, place : place + 1])[0]
        partition.memory["sorted"] = columns, ordered
    return ordered


def _sorted(X: Any) -> list[np.ndarray]:
    X = X.toarray() if hasattr(X, "tocsr") else X
    return scan_columns(X, lambda _, values: values.copy())
