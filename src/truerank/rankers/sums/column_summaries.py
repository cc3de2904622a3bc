"""Values of a column with their counts, which can be merged: exact up to a limit, then quantiles with a known error.

A summary with at most `limit` different values is exact. A larger one is reduced to `limit // 2` values at equal steps
of the counts, which moves a rank by at most `2 / limit` of the values. Merging along a binary tree over P partitions
reduces at most 1 + log2 P times. `column_borders` finds exact ranks from such summaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel, kernel_array

LIMIT = 1 << 18


@dataclass(frozen=True)
class ColumnSummary:
    """The distinct values of a column, ascending, and their counts, without NaN.

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
        """Return the summary of both columns."""
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
