"""Threshold stumps on one feature: a stump, applying it, scoring with a sum of them.

A stump is `h(x) = 1[x_k > θ]`, and `missing` (0 or 1) if x_k is NaN. Its edge over documents with potentials π, which
add up to 0, is `r = Σ_x π(x) h(x)`. `grid_stumps` and `SortedStumps` find the stump with the largest |r|. Candidates
within `TOLERANCE` of it are ties: the lowest feature wins, then the lowest threshold, then `missing = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks

TOLERANCE = 1e-12
_COLUMNS = 8  # columns in a block of the threaded search
_UNIT = 2.0**-60  # of potentials, whose magnitudes add up to 2
_TOLERANCE = round(TOLERANCE / _UNIT)


@dataclass(frozen=True)
class Stump:
    """A weak ranker with its edge r."""

    feature: int
    threshold: float
    missing: int
    edge: float


class SortedStumps:
    """Search for stumps over the `rows` int64 (n,) of X (N, p), which may hold NaN; potentials have the same order.

    The thresholds of a column are its values except the largest, and -inf if values are missing. Each column's rows
    are sorted once; the edges of its stumps are then the running sums of potentials from its largest value down.
    Potentials are rounded to multiples of 2^-60, whose sums are exact in any order.
    """

    def __init__(self, X: np.ndarray, rows: np.ndarray, n_jobs: int | None) -> None:
        self.n_jobs, self._X, self._rows = n_jobs, X, rows
        # An entry is twice a place in `rows`, plus 1 for the last row above a threshold. Missing values come last.
        kind = np.uint16 if len(rows) < 2**15 else np.uint32 if len(rows) < 2**31 else np.int64
        self.order = np.empty((X.shape[1], len(rows)), dtype=kind)
        self.present = np.empty(X.shape[1], dtype=np.int64)

        def sort(k: int) -> None:
            column = X[rows, k]
            order = np.argsort(-column)  # nan last
            values = column[order]
            n = len(values) - int(np.isnan(values).sum())
            ends = np.zeros(len(values), dtype=np.int64)
            if n:
                ends[: n - 1] = values[1:n] != values[: n - 1]
                ends[n - 1] = n < len(values)
            self.order[k], self.present[k] = 2 * order + ends, n

        run_blocks(sort, [(k,) for k in range(X.shape[1])], n_jobs)

    def best(self, potentials: np.ndarray) -> Stump | None:
        """Return the stump with the largest |r|; None if none is above `TOLERANCE`."""
        units = np.rint(potentials / _UNIT).astype(np.int64)
        blocks = row_blocks(len(self.order), _COLUMNS)
        parts = run_blocks(lambda a, b: _largest_edges(self.order, self.present, units, a, b), blocks, self.n_jobs)
        edges = np.concatenate([np.empty(0, dtype=np.int64), *parts])
        least = int(edges.max(initial=0)) - _TOLERANCE
        if least <= 0:
            return None
        k = int(np.argmax(edges >= least))
        # The running sums of this column once more, for the lowest threshold with such an edge.
        order, n = self.order[k], int(self.present[k])
        sums = np.cumsum(units[order >> 1])
        absent = int(sums[-1] - sums[n - 1])
        edges = np.maximum(np.abs(sums[:n]), np.abs(sums[:n] + absent)) * (order[:n] & 1)
        at = int(np.flatnonzero(edges >= least)[-1])
        edge = int(sums[at])
        flip = abs(edge + absent) > abs(edge) + _TOLERANCE
        threshold = float(self._X[self._rows[order[at + 1] >> 1], k]) if at + 1 < n else -np.inf
        return Stump(k, threshold, int(flip), float(edge + absent if flip else edge) * _UNIT)

    def apply(self, stump: Stump, weight: float, scores: np.ndarray) -> None:
        """Add `weight * h` to the scores (n,), in place."""
        column = self._X[self._rows, stump.feature]
        above = column > stump.threshold
        if stump.missing:
            above |= np.isnan(column)
        scores += weight * above


def apply_stump(X: np.ndarray, stump: Stump, weight: float, scores: np.ndarray) -> None:
    """Add `weight * h` of the rows of X (n, p) to the scores (n,), in place."""
    _add_stump(X, stump.feature, stump.threshold, stump.missing, weight, scores)


class StepFunctions:
    """A weighted sum of stumps, given as arrays (T,), as one step function for each feature."""

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

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return what each feature adds to the scores of the rows of X, float64 (n, p); rows sum to `predict`."""
        result = np.zeros(X.shape)
        for c, k in enumerate(self.columns.tolist()):
            first, stop = self.starts[c], self.starts[c + 1]
            x = np.asarray(X[:, k], dtype=np.float64)
            above = np.searchsorted(self.steps[first:stop], x)  # steps below x
            result[:, k] = np.where(np.isnan(x), self.absent[c], self.values[first + c : stop + c + 1][above])
        return result


@kernel
def _add_stump(X, feature, threshold, missing, weight, scores):
    for i in range(len(scores)):
        x = np.float64(X[i, feature])
        if x > threshold or (missing == 1 and x != x):
            scores[i] += weight


@kernel
def _add_steps(X, columns, steps, starts, values, absent, scores, first, last):
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


@kernel
def _largest_edges(order, present, units, first, last):
    """Return the largest |r| of each column first … last - 1, int64; one instruction compares many of 256 sums."""
    result = np.zeros(last - first, dtype=np.int64)
    sums = np.empty(256, dtype=np.int64)
    for k in range(first, last):
        if present[k] == 0:
            continue
        absent = np.int64(0)
        for j in range(present[k], order.shape[1]):
            absent += units[np.uint64(order[k, j]) >> np.uint64(1)]
        highest, lowest, total = np.int64(0), np.int64(0), np.int64(0)
        for start in range(0, present[k], 256):
            some = order[k, start : min(start + 256, present[k])]
            for i in range(some.size):
                total += units[np.uint64(some[i]) >> np.uint64(1)]
                sums[i] = total
            for i in range(some.size):
                edge = sums[i] * np.int64(some[i] & 1)
                highest = max(highest, edge)
                lowest = min(lowest, edge)
        result[k - first] = max(max(highest, -lowest), max(abs(highest + absent), abs(lowest + absent)))
    return result
