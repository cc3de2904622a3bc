"""Stumps with every distinct value as a threshold: the one with the largest edge, from running sums of potentials.

Each column's rows are sorted once, and a round is a running sum along that order, from both ends towards the fullest
value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.trees.stumps import TOLERANCE, Stump

_COLUMNS = 8  # columns in a block of the threaded search


class SortedStumps:
    """Search over all distinct values of each column as thresholds (the largest splits nothing and is none).

    Parameters
    ----------
    X, rows, n_jobs
        As for `grid_stumps.GridStumps`.
    """

    def __init__(self, X: np.ndarray, rows: np.ndarray, n_jobs: int | None) -> None:
        self.n_jobs = n_jobs
        p = X.shape[1]
        self.blocks = row_blocks(p, _COLUMNS)
        columns = run_blocks(lambda k: _sort_column(X[rows, k]), [(k,) for k in range(p)], n_jobs)
        # Four places for each column: where its low part, its high part and its missing rows start, and its end.
        self.places = np.zeros((p, 4), dtype=np.int64)
        start = 0
        for k, (low, high, missing, _) in enumerate(columns):
            ends = np.cumsum([start, len(low), len(high), len(missing)])
            self.places[k] = ends
            start = int(ends[-1])
        pieces = [piece for column in columns for piece in column[:3]]
        # The fewest bytes that hold `2 * row + 1`, so that a small set's order stays in the second-level cache.
        kind = np.uint16 if len(rows) < 2**15 else np.uint32 if len(rows) < 2**31 else np.int64
        self.order: Any = np.concatenate([np.empty(0, dtype=np.int64), *pieces]).astype(kind)
        self.thresholds = [column[3] for column in columns]

    def best(self, potentials: np.ndarray) -> Stump | None:
        """The stump with the largest |r|."""
        parts = run_blocks(
            lambda a, b: _best_of_sorted(self.order, self.places, potentials, a, b), self.blocks, self.n_jobs
        )
        edges = np.concatenate([np.empty(0), *parts])
        if not len(edges) or edges.max() <= 0:
            return None
        largest = edges.max()
        # A running sum of the winner alone, this time for the lowest threshold of the largest edge.
        for k in np.flatnonzero(edges >= largest - 2 * TOLERANCE):
            j, edge, absent = _lowest_of_sorted(self.order, *self.places[k], potentials, largest - TOLERANCE)
            if j >= 0:
                flip = abs(edge + absent) > abs(edge) + TOLERANCE
                return Stump(int(k), float(self.thresholds[k][j]), int(flip), float(edge + absent if flip else edge))
        raise AssertionError("unreachable: the largest edge belongs to some column")

    def apply(self, stump: Stump, weight: float, scores: np.ndarray) -> None:
        """Add `weight * h` to the scores (n,), in place."""
        low, high, missing, end = self.places[stump.feature]
        below, above = (np.flatnonzero(self.order[a:b] & 1) + 1 for a, b in ((low, high), (high, missing)))
        thresholds = self.thresholds[stump.feature]
        # Thresholds in the high part, whose rows descend, are the last ones.
        place = int(np.searchsorted(thresholds, stump.threshold)) - (len(thresholds) - len(above))
        h = np.zeros(len(scores), dtype=np.bool_)
        if place >= 0:
            h[self.order[high : high + above[len(above) - 1 - place]] >> 1] = True
        else:
            h[:] = True
            h[self.order[low : low + (below[place] if -place <= len(below) else 0)] >> 1] = False
        h[self.order[missing:end] >> 1] = stump.missing == 1
        scores[h] += weight


def _sort_column(column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Low part (ascending), high part (descending), missing rows, and the thresholds in ascending order.

    An entry is `2 * row`, plus 1 for the last row of a value. The fullest value stands in neither part.
    """
    order = np.argsort(column, kind="stable")  # nan last
    values = column[order]
    n_present = len(values) - int(np.isnan(values).sum())
    present, absent = order[:n_present], order[n_present:]
    nothing = np.empty(0, dtype=np.int64)
    lowest = [-np.inf] if len(absent) and n_present else []
    if n_present == 0:
        return nothing, nothing, nothing, np.empty(0)
    starts = np.concatenate([[0], np.flatnonzero(values[1:n_present] != values[: n_present - 1]) + 1])
    ends = np.concatenate([starts[1:], [n_present]])
    if len(starts) == 1 and not lowest:
        return nothing, nothing, nothing, np.empty(0)
    fullest = int(np.argmax(ends - starts))
    low = 2 * present[: starts[fullest]]
    low[ends[:fullest] - 1] += 1
    high = 2 * present[ends[fullest] :]
    high[starts[fullest + 1 :] - ends[fullest]] += 1
    thresholds = np.concatenate([lowest, values[starts[:-1]].astype(np.float64)])
    return low, high[::-1], 2 * absent, thresholds


@kernel
def _walk(order, potentials, start, stop, sum_, other, largest):
    """Largest |r| along a part of a column's order: r is the running sum, or that plus `other`."""
    for j in range(start, stop):
        entry = order[j]
        sum_ += potentials[entry >> 1]
        if entry & 1:
            largest = max(largest, max(abs(sum_), abs(sum_ + other)))
    return largest


@kernel
def _walk_four(order, potentials, s0, s1, s2, s3, size, sums, largest):
    """Four columns without missing values at a time, `size` entries of each: one sum would wait for each addition."""
    a = b = c = d = 0.0
    high_a = high_b = high_c = high_d = 0.0
    for j in range(size):
        e = order[s0 + j]
        f = order[s1 + j]
        g = order[s2 + j]
        h = order[s3 + j]
        a += potentials[e >> 1]
        b += potentials[f >> 1]
        c += potentials[g >> 1]
        d += potentials[h >> 1]
        high_a = max(high_a, abs(a) if e & 1 else 0.0)
        high_b = max(high_b, abs(b) if f & 1 else 0.0)
        high_c = max(high_c, abs(c) if g & 1 else 0.0)
        high_d = max(high_d, abs(d) if h & 1 else 0.0)
    sums[0] = a
    sums[1] = b
    sums[2] = c
    sums[3] = d
    largest[0] = high_a
    largest[1] = high_b
    largest[2] = high_c
    largest[3] = high_d


@kernel
def _best_of_sorted(order, places, potentials, first, last):
    """Largest |r| of each column first … last - 1."""
    result = np.zeros(last - first)
    sums = np.zeros(4)
    largest = np.zeros(4)
    for k in range(first, last, 4):
        # The high parts of four columns side by side, as far as the shortest goes.
        size = 0
        if k + 4 <= last:
            size = places[k, 2] - places[k, 1]
            for i in range(4):
                size = min(size, places[k + i, 2] - places[k + i, 1])
                if places[k + i, 3] > places[k + i, 2]:
                    size = 0
        sums[:] = 0.0
        largest[:] = 0.0
        if size > 0:
            starts = places[k : k + 4, 1]
            _walk_four(order, potentials, starts[0], starts[1], starts[2], starts[3], size, sums, largest)
        for i in range(min(4, last - k)):
            low, high, missing, end = places[k + i, 0], places[k + i, 1], places[k + i, 2], places[k + i, 3]
            absent = 0.0
            for j in range(missing, end):
                absent += potentials[order[j] >> 1]
            best = max(largest[i], abs(absent))
            best = _walk(order, potentials, low, high, absent, -absent, best)
            result[k + i - first] = _walk(order, potentials, high + size, missing, sums[i], absent, best)
    return result


@kernel
def _lowest_of_sorted(order, low, high, missing, end, potentials, least):
    """Number of a column's lowest threshold with |r| >= `least`, or -1; its r; what missing rows add to it."""
    absent = 0.0
    for j in range(missing, end):
        absent += potentials[order[j] >> 1]
    place = 0
    if missing < end:
        if max(abs(-absent), abs(-absent + absent)) >= least:
            return place, -absent, absent
        place += 1
    sum_ = 0.0
    for j in range(low, high):
        sum_ += potentials[order[j] >> 1]
        if order[j] & 1:
            edge = -absent - sum_
            if max(abs(edge), abs(edge + absent)) >= least:
                return place, edge, absent
            place += 1
    # The high part's rows descend: the last that is found is the lowest.
    found = -1
    edge = 0.0
    above = 0
    sum_ = 0.0
    for j in range(high, missing):
        sum_ += potentials[order[j] >> 1]
        if order[j] & 1:
            if max(abs(sum_), abs(sum_ + absent)) >= least:
                found = above
                edge = sum_
            above += 1
    return place + above - 1 - found if found >= 0 else -1, edge, absent
