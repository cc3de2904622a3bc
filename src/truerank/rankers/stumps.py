"""Threshold stumps on one feature: finding the one with the largest edge, applying it, scoring with a sum of them.

A stump is `h(x) = 1[x_k > theta]`, and `missing` (0 or 1) where x_k is nan. Its edge over documents with potentials
pi is `r = sum_x pi(x) h(x)`; potentials add up to 0. Two ways of finding the largest |r|:

* `GridStumps`, few thresholds: rows are coded once, and one pass over the codes adds the potentials into one bin for
  each interval between thresholds. Each column's fullest bin is left out of the codes, because the bins of a column
  add up to 0; on LETOR data that saves half of the work.
* `SortedStumps`, every distinct value a threshold: each column's rows are sorted once, and a round is a running sum
  along that order, from both ends towards the fullest value.

Both take the candidates within `TOLERANCE` of the largest |r| for ties, which go to the lowest feature, then the
lowest threshold, then to `missing = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.blocked import row_blocks, run_blocks
from truerank.core.kernel import kernel

TOLERANCE = 1e-12
_COLUMNS = 8  # columns in a block of the threaded search


@dataclass(frozen=True)
class Stump:
    """A weak ranker with its edge r."""

    feature: int
    threshold: float
    missing: int
    edge: float


def grid_thresholds(lowest: np.ndarray, highest: np.ndarray, with_missing: np.ndarray, n: int) -> list[np.ndarray]:
    """`n` evenly spaced thresholds for each column, from its smallest value up; the largest value is none.

    A column with missing values also has the threshold -inf, which tells present from missing. A constant column has
    no others, a column without any value (`lowest` > `highest`) only that one.
    """
    result = []
    for low, high, missing in zip(lowest.tolist(), highest.tolist(), with_missing.tolist()):
        grid = [-np.inf] if missing and low <= high else []
        if low < high:
            grid += [low + j * (high - low) / n for j in range(n)]
        result.append(np.array(grid))
    return result


class GridStumps:
    """Search over a fixed grid of thresholds.

    Parameters
    ----------
    X : float32 or float64 array (N, p)
        May hold nan.
    rows : int64 array (n,)
        The rows of X that take part, in the order of the potentials.
    n_thresholds : int
        Thresholds for each column.
    n_jobs : int or None
    """

    def __init__(self, X: np.ndarray, rows: np.ndarray, n_thresholds: int, n_jobs: int | None) -> None:
        n, p = len(rows), X.shape[1]
        blocks = row_blocks(n)
        ranges = run_blocks(lambda a, b: _column_ranges(X, rows[a:b]), blocks, n_jobs)
        lowest = np.min([part[0] for part in ranges], axis=0)
        highest = np.max([part[1] for part in ranges], axis=0)
        with_missing = np.any([part[2] for part in ranges], axis=0)
        thresholds = grid_thresholds(lowest, highest, with_missing, n_thresholds)
        self.n_thresholds = np.array([len(t) for t in thresholds], dtype=np.int64)
        self.threshold_start = np.concatenate([[0], np.cumsum(self.n_thresholds)])
        self.thresholds = np.concatenate([np.empty(0), *thresholds])
        self.missing_bin = (with_missing & (self.n_thresholds > 0)).astype(np.int64)
        n_bins = np.where(self.n_thresholds > 0, self.n_thresholds + 1 + self.missing_bin, 0)
        self.bin_start = np.concatenate([[0], np.cumsum(n_bins)])
        total = int(self.bin_start[-1])
        used = np.flatnonzero(self.n_thresholds)
        codes = np.empty((n, len(used)), dtype=np.uint16 if total <= 2**16 else np.uint32)

        def code(first: int, last: int) -> np.ndarray:
            counts = np.zeros(total, dtype=np.int64)
            _code_rows(X, rows, used, self.thresholds, self.threshold_start, self.bin_start, codes, counts, first, last)
            return counts

        counts = np.sum(np.stack(run_blocks(code, blocks, n_jobs)), axis=0)
        self.fullest = np.zeros(p, dtype=np.int64)
        left_out = np.zeros(total, dtype=np.uint8)
        for k in used:
            self.fullest[k] = self.bin_start[k] + np.argmax(counts[self.bin_start[k] : self.bin_start[k + 1]])
            left_out[self.fullest[k]] = 1
        self.starts = np.empty(n + 1, dtype=np.int64)
        size = _leave_out(codes, left_out, self.starts)
        self.codes = codes.reshape(-1)[:size]

    def histogram(self, potentials: np.ndarray, first: int, last: int) -> np.ndarray:
        """Sums of the potentials of rows first … last - 1 by bin, the fullest bins left 0: a statistic that adds up."""
        sums = np.zeros(int(self.bin_start[-1]))
        _add_potentials(self.codes, self.starts, potentials, first, last, sums)
        return sums

    def best(self, histogram: np.ndarray) -> Stump | None:
        """The stump with the largest |r| from the whole histogram (which is completed in place)."""
        k, j, missing, edge = _best_of_bins(
            histogram, self.bin_start, self.n_thresholds, self.missing_bin, self.fullest, TOLERANCE
        )
        if k < 0:
            return None
        return Stump(int(k), float(self.thresholds[self.threshold_start[k] + j]), int(missing), float(edge))


class SortedStumps:
    """Search over all distinct values of each column as thresholds (the largest splits nothing and is none).

    Parameters
    ----------
    X, rows, n_jobs
        As for `GridStumps`.
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
        kind = np.int32 if len(rows) < 2**30 else np.int64
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
        # A running sum of the winner alone, this time with every threshold's edge kept.
        for k in np.flatnonzero(edges >= largest - 2 * TOLERANCE):
            low, high, missing, end = self.places[k]
            absent = float(_running(self.order[missing:end], potentials)[-1]) if missing < end else 0.0
            below = -absent - self._edges(low, high, potentials)
            above = self._edges(high, missing, potentials)[::-1]
            edge0 = np.concatenate([[-absent] if missing < end else [], below, above])
            edge1 = edge0 + absent
            good = np.flatnonzero(np.maximum(np.abs(edge0), np.abs(edge1)) >= largest - TOLERANCE)
            if len(good):
                j = int(good[0])
                flip = abs(edge1[j]) > abs(edge0[j]) + TOLERANCE
                return Stump(int(k), float(self.thresholds[k][j]), int(flip), float(edge1[j] if flip else edge0[j]))
        raise AssertionError("unreachable: the largest edge belongs to some column")

    def _edges(self, first: int, last: int, potentials: np.ndarray) -> np.ndarray:
        """Running sums along the order, at the last row of each value."""
        order: np.ndarray = self.order[first:last]
        return _running(order, potentials)[(order & 1) == 1]


def apply_stump(
    X: np.ndarray, rows: np.ndarray, stump: Stump, weight: float, scores: np.ndarray, first: int, last: int
) -> None:
    """Add `weight * h(X[rows[i]])` to `scores[i]`, i from `first` to `last` - 1, in place."""
    _add_stump(X, rows, stump.feature, stump.threshold, stump.missing, weight, scores, first, last)


class StepFunctions:
    """A weighted sum of stumps as one step function for each feature: a row costs one search a feature.

    Parameters
    ----------
    feature, threshold, missing, weight : arrays (T,)
        The stumps.
    """

    def __init__(self, feature: np.ndarray, threshold: np.ndarray, missing: np.ndarray, weight: np.ndarray) -> None:
        self.columns = np.unique(feature).astype(np.int64)
        steps, values, starts, absent = [], [], [0], []
        for k in self.columns:
            chosen = feature == k
            places, inverse = np.unique(threshold[chosen], return_inverse=True)
            heights = np.bincount(inverse, weights=weight[chosen], minlength=len(places))
            steps.append(places)
            values.append(np.concatenate([[0.0], np.cumsum(heights)]))
            starts.append(starts[-1] + len(places))
            absent.append(float(np.sum(weight[chosen] * missing[chosen])))
        self.steps = np.concatenate([np.empty(0), *steps])
        self.values = np.concatenate([np.empty(0), *values])
        self.starts = np.array(starts, dtype=np.int64)
        self.absent = np.array(absent, dtype=np.float64)

    def predict(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Scores (n,) of the rows of X."""
        scores = np.zeros(X.shape[0])

        def work(first: int, last: int) -> None:
            _add_steps(X, self.columns, self.steps, self.starts, self.values, self.absent, scores, first, last)

        run_blocks(work, row_blocks(X.shape[0]), n_jobs)
        return scores


def _column_ranges(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = X.shape[1]
    lowest, highest, missing = np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p, dtype=np.uint8)
    _scan_ranges(X, rows, lowest, highest, missing)
    return lowest, highest, missing.astype(bool)


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


def _running(order: np.ndarray, potentials: np.ndarray) -> np.ndarray:
    return np.cumsum(potentials[order >> 1])


@kernel
def _scan_ranges(X, rows, lowest, highest, missing):  # type: ignore[no-untyped-def]
    for row in rows:
        for k in range(X.shape[1]):
            x = np.float64(X[row, k])
            if x != x:
                missing[k] = 1
            else:
                lowest[k] = min(lowest[k], x)
                highest[k] = max(highest[k], x)


@kernel
def _code_rows(X, rows, used, thresholds, threshold_start, bin_start, codes, counts, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        row = rows[i]
        for u in range(len(used)):
            k = used[u]
            start = threshold_start[k]
            size = threshold_start[k + 1] - start
            x = np.float64(X[row, k])
            if x != x:
                code = bin_start[k] + size + 1
            else:
                # Number of thresholds below x, by a binary search without branches.
                base = start
                left = size
                while left > 1:
                    half = left >> 1
                    base += half * (thresholds[base + half - 1] < x)
                    left -= half
                code = bin_start[k] + base - start + (thresholds[base] < x)
            codes[i, u] = code
            counts[code] += 1


@kernel
def _leave_out(codes, left_out, starts):  # type: ignore[no-untyped-def]
    """Pack the codes of all rows to the front of their own memory, without the left-out ones; returns their number."""
    n, p = codes.shape
    packed = codes.reshape(n * p)
    size = 0
    for i in range(n):
        starts[i] = size
        for u in range(p):
            code = codes[i, u]
            if left_out[code] == 0:
                packed[size] = code
                size += 1
    starts[n] = size
    return size


@kernel
def _add_potentials(codes, starts, potentials, first, last, sums):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        potential = potentials[i]
        for j in range(starts[i], starts[i + 1]):
            sums[codes[j]] += potential


@kernel
def _best_of_bins(sums, bin_start, n_thresholds, missing_bin, fullest, tolerance):  # type: ignore[no-untyped-def]
    largest = 0.0
    for k in range(len(n_thresholds)):
        n = n_thresholds[k]
        if n == 0:
            continue
        start = bin_start[k]
        sums[fullest[k]] = 0.0
        total = 0.0
        for c in range(start, bin_start[k + 1]):
            total += sums[c]
        sums[fullest[k]] = -total
        absent = sums[start + n + 1] if missing_bin[k] else 0.0
        edge = 0.0
        for j in range(n - 1, -1, -1):
            edge += sums[start + j + 1]
            largest = max(largest, max(abs(edge), abs(edge + absent)))
    if largest <= 0.0:
        return -1, 0, 0, 0.0
    for k in range(len(n_thresholds)):
        n = n_thresholds[k]
        if n == 0:
            continue
        start = bin_start[k]
        absent = sums[start + n + 1] if missing_bin[k] else 0.0
        edge = 0.0
        found = -1
        best = 0.0
        flip = 0
        for j in range(n - 1, -1, -1):
            edge += sums[start + j + 1]
            if max(abs(edge), abs(edge + absent)) >= largest - tolerance:
                found = j
                flip = 1 if abs(edge + absent) > abs(edge) + tolerance else 0
                best = edge + absent if flip else edge
        if found >= 0:
            return k, found, flip, best
    return -1, 0, 0, 0.0


@kernel
def _best_of_sorted(order, places, potentials, first, last):  # type: ignore[no-untyped-def]
    """Largest |r| of each column first … last - 1."""
    result = np.zeros(last - first)
    for k in range(first, last):
        absent = 0.0
        for j in range(places[k, 2], places[k, 3]):
            absent += potentials[order[j] >> 1]
        largest = abs(absent)
        sum_ = absent
        for j in range(places[k, 0], places[k, 1]):
            entry = order[j]
            sum_ += potentials[entry >> 1]
            edge = max(abs(sum_), abs(sum_ - absent)) if entry & 1 else 0.0
            largest = max(largest, edge)
        sum_ = 0.0
        for j in range(places[k, 1], places[k, 2]):
            entry = order[j]
            sum_ += potentials[entry >> 1]
            edge = max(abs(sum_), abs(sum_ + absent)) if entry & 1 else 0.0
            largest = max(largest, edge)
        result[k - first] = largest
    return result


@kernel
def _add_stump(X, rows, feature, threshold, missing, weight, scores, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        x = np.float64(X[rows[i], feature])
        if x > threshold or (missing == 1 and x != x):
            scores[i] += weight


@kernel
def _add_steps(X, columns, steps, starts, values, absent, scores, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        score = 0.0
        for c in range(len(columns)):
            x = np.float64(X[i, columns[c]])
            if x != x:
                score += absent[c]
                continue
            base = starts[c]
            left = starts[c + 1] - base
            while left > 1:
                half = left >> 1
                base += half * (steps[base + half - 1] < x)
                left -= half
            # Column c has one value more than steps, so its values start c places later.
            score += values[base + c + (steps[base] < x)]
        scores[i] = score
