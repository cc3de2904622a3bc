"""Stumps with every distinct value as a threshold: the one with the largest edge, from running sums of potentials.

Each column's rows are sorted once, and a round is a running sum along that order, from both ends towards the fullest
value. Potentials are whole numbers of 2^-60 there: their magnitudes add up to 2 at most, so that no sum overflows, and
sums of integers neither round nor wait for one another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.trees.stumps import TOLERANCE, Stump

_COLUMNS = 8  # columns in a block of the threaded search
_UNIT = 2.0**-60  # of potentials
_TOLERANCE = round(TOLERANCE / _UNIT)


class SortedStumps:
    """Search over all distinct values of each column as thresholds (the largest splits nothing and is none)."""

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
        """The stump with the largest |r|; None where none is beyond `TOLERANCE`."""
        units = np.rint(potentials / _UNIT).astype(np.int64)
        parts = run_blocks(lambda a, b: _best_of_sorted(self.order, self.places, units, a, b), self.blocks, self.n_jobs)
        edges = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        largest = int(edges.max(initial=0))
        if largest <= _TOLERANCE:
            return None
        # A running sum of the winner alone, this time for the lowest threshold of the largest edge.
        k = int(np.argmax(edges >= largest - _TOLERANCE))
        j, edge, absent = _lowest_of_sorted(self.order, *self.places[k], units, largest - _TOLERANCE)
        flip = abs(edge + absent) > abs(edge) + _TOLERANCE
        return Stump(k, float(self.thresholds[k][j]), int(flip), float(edge + absent if flip else edge) * _UNIT)

    def apply(self, stump: Stump, weight: float, scores: np.ndarray) -> None:
        """Add `weight * h` to the scores (n,), in place."""
        thresholds = self.thresholds[stump.feature]
        place = int(np.searchsorted(thresholds, stump.threshold))
        below = place + (1 if thresholds[0] > -np.inf else 0)
        h = np.zeros(len(scores), dtype=np.bool_)
        _rows_above(self.order, *self.places[stump.feature], below, len(thresholds) - place, stump.missing == 1, h)
        scores += weight * h


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
def _rows_above(order, low, high, missing, end, below, above, with_missing, h):
    """Set h (n,) where a column's value is among its `above` highest, which are all but its `below` lowest."""
    for j in range(high, missing):
        if above == 0:
            break
        h[order[j] >> 1] = True
        above -= order[j] & 1
    if above > 0:  # the fullest value too
        h[:] = True
        for j in range(low, high):
            if below == 0:
                break
            h[order[j] >> 1] = False
            below -= order[j] & 1
    for j in range(missing, end):
        h[order[j] >> 1] = with_missing


@kernel
def _best_of_sorted(order, places, units, first, last):
    """Largest |r| of each column first … last - 1, int64: of its highest and lowest running sums at ends of values.

    256 sums are taken, and then all looked at, many in one instruction.
    """
    result = np.zeros(last - first, dtype=np.int64)
    sums = np.empty(256, dtype=np.int64)
    for k in range(first, last):
        highest = lowest = absent = np.int64(0)
        for j in range(places[k, 2], places[k, 3]):
            absent += units[order[j] >> 1]
        for part in range(2):
            total = np.int64(0)
            for start in range(places[k, part], places[k, part + 1], 256):
                some = order[start : min(start + 256, places[k, part + 1])]
                for i in range(some.size):
                    total += units[np.uint64(some[i]) >> np.uint64(1)]
                    sums[i] = total
                for i in range(some.size):
                    edge = sums[i] * np.int64(some[i] & 1)
                    highest = edge if edge > highest else highest
                    lowest = edge if edge < lowest else lowest
        result[k - first] = max(max(highest, -lowest), max(abs(highest + absent), abs(lowest + absent)))
    return result


@kernel
def _lowest_of_sorted(order, low, high, missing, end, units, least):
    """Number of a column's lowest threshold with |r| >= `least`; its r; what missing rows add to it."""
    absent = np.int64(0)
    for j in range(missing, end):
        absent += units[order[j] >> 1]
    place = 0
    if missing < end:
        if abs(absent) >= least:
            return place, -absent, absent
        place += 1
    total = np.int64(0)
    for j in range(low, high):
        total += units[order[j] >> 1]
        if order[j] & 1:
            edge = -absent - total
            if max(abs(edge), abs(edge + absent)) >= least:
                return place, edge, absent
            place += 1
    # The high part's rows descend: the last that is found is the lowest.
    found = 0
    edge = np.int64(0)
    above = 0
    total = np.int64(0)
    for j in range(high, missing):
        total += units[order[j] >> 1]
        if order[j] & 1:
            if max(abs(total), abs(total + absent)) >= least:
                found = above
                edge = total
            above += 1
    return place + above - 1 - found, edge, absent
