"""Find the borders of columns over partitions: those of one machine, for any partitioning.

Borders are the values at some ranks of a column. A small summary gives an interval for each value; the partitions count
the values below it and summarise those inside. This repeats until the summary is exact: two rounds for a quarter of a
million different values, four for a billion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.kernel import kernel, kernel_array
from truerank.data.row_source import Part, RowSource
from truerank.matrices.binning import border_ranks, borders_among, scan_columns
from truerank.matrices.row_copies import CopyUnit, different_weights

LIMIT = 1 << 18


@dataclass(frozen=True)
class ColumnSummary:
    """The distinct values of a column, ascending, and their counts, without NaN.

    A summary with at most `limit` different values is exact. A larger one is reduced to `limit // 2` values at equal
    steps of the counts, which moves a rank by at most `2 / limit` of the values. Merging along a binary tree over P
    partitions reduces at most 1 + log2 P times.

    Examples
    --------
    >>> a, b = ColumnSummary.of(np.array([1.0, 2.0, 2.0])), ColumnSummary.of(np.array([1.0, 3.0]))
    >>> both = a.merged(b)
    >>> both.values.tolist(), both.counts.tolist(), both.error, both.sorted_values().tolist()
    ([1.0, 2.0, 3.0], [2, 2, 1], 0.0, [1.0, 1.0, 2.0, 2.0, 3.0])
    """

    values: np.ndarray  # float (k,)
    counts: np.ndarray  # (k,), unsigned, in as few bytes as hold them: summaries are sent
    error: float = 0.0  # largest possible shift of a rank, as a share of the values; 0 where the summary is exact
    limit: int = LIMIT  # most values that are kept

    @classmethod
    def of(cls, ordered: np.ndarray, limit: int = LIMIT, ends: np.ndarray | None = None) -> ColumnSummary:
        """Summarise ascending observed values (n,); `ends` as in `binning.find_borders`."""
        ordered = ordered + ordered.dtype.type(0)  # -0.0 is 0.0
        new = ordered[1:] != ordered[:-1]
        if new.all() and ends is None:
            return cls(ordered, np.ones(len(ordered), np.uint8), limit=limit)._cut()
        first = np.flatnonzero(np.concatenate([[True], new])) if len(ordered) else np.empty(0, dtype=np.int64)
        starts = np.append(first, len(ordered))
        if ends is not None:
            starts = np.append(0, ends)[starts]
        return cls(ordered[first], narrowed(np.diff(starts)), limit=limit)._cut()

    def merged(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of the values of both summaries."""
        room = len(self.values) + len(other.values)
        values, counts = np.empty(room, self.values.dtype), np.empty(room, np.int64)
        sides = ((kernel_array(one.values), one.counts.astype(np.int64)) for one in (self, other))
        k = _merge(*next(sides), *next(sides), values, counts)
        error = max(self.error, other.error)
        return ColumnSummary(values[:k].copy(), narrowed(counts[:k]), error, self.limit)._cut()

    def _cut(self) -> ColumnSummary:
        limit = self.limit
        if len(self.values) <= limit:
            return self
        ends = np.cumsum(self.counts, dtype=np.int64)
        total, kept = int(ends[-1]), limit // 2
        # The value in the middle of each of `kept` equal parts stands for its part; the outermost values stay.
        edges = (np.arange(kept + 1) * total) // kept
        places = np.searchsorted(ends, (edges[:-1] + edges[1:]) // 2, side="right")
        values = self.values[places]
        values[0], values[-1] = self.values[0], self.values[-1]
        counts = np.diff(edges)
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        return ColumnSummary(values[first], narrowed(np.add.reduceat(counts, first)), self.error + 2.0 / limit, limit)

    @property
    def nbytes(self) -> int:
        """Size of values and counts in bytes."""
        return self.values.nbytes + self.counts.nbytes

    def sorted_values(self) -> np.ndarray:
        """Return the observed values (n,), ascending; exact if the summary is."""
        return np.repeat(self.values, self.counts)


def narrowed(counts: np.ndarray) -> np.ndarray:
    """Return numbers >= 0 in the smallest integer type that holds them."""
    return counts.astype(np.min_scalar_type(int(counts.max(initial=0))))


def merge_summaries(a: list[ColumnSummary], b: list[ColumnSummary]) -> list[ColumnSummary]:
    """Merge the summaries of several columns one by one."""
    return [one.merged(other) for one, other in zip(a, b, strict=True)]


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
        """Receive the counts below and in each interval, int64 (2, k), and summaries of the values in the intervals."""
        below, within = counts
        before = np.cumsum(within) - within
        self._narrow(self.ranks + (before - below)[self._interval], inside)

    def _narrow(self, ranks: np.ndarray, summary: ColumnSummary) -> None:
        """Narrow the intervals by the summary of their values, among which the wanted values have `ranks`."""
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


def row_copies(partition: Part, unit: CopyUnit) -> np.ndarray:
    """Return the number of copies of each row, int64."""
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
        copies = None if unit is None else row_copies(partition, unit)
        ordered = _sorted(partition.columns(columns, names), copies)
        chosen, statistics = partition.memory.get("statistics", ((), None))
        for place, k in enumerate(chosen):
            if k in columns:
                ordered[k - columns.start] = _sorted(statistics[:, place : place + 1], copies)[0]
        partition.memory["sorted"] = columns, ordered
    return ordered


def _sorted(X: Any, copies: np.ndarray | None) -> list[tuple[np.ndarray, np.ndarray | None]]:
    X = X.toarray() if is_sparse(X) else X
    return scan_columns(X, lambda _, values, ends: (values.copy(), ends), copies=copies)


@kernel
def _merge(a, a_counts, b, b_counts, values, counts):
    """Merge two ascending lists of distinct values with their counts; return the length."""
    i = j = k = 0
    while i < len(a) or j < len(b):
        from_a = i < len(a) and (j == len(b) or a[i] <= b[j])
        from_b = j < len(b) and (i == len(a) or b[j] <= a[i])
        total = 0
        if from_a:
            values[k] = a[i]
            total += a_counts[i]
            i += 1
        if from_b:
            values[k] = b[j]
            total += b_counts[j]
            j += 1
        counts[k] = total
        k += 1
    return k
