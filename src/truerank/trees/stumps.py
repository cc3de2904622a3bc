"""Threshold stumps on one feature: search for a stump, application of a stump, and scores from a sum of stumps.

A stump is `h(x) = 1[x_k > θ]`, and `missing` (0 or 1) if x_k is NaN. Its edge over documents with potentials π, which
add up to 0, is `r = Σ_x π(x) h(x)`. `GridStumps` and `SortedStumps` find the stump with the largest |r|. Candidates
within `TOLERANCE` of the largest |r| are ties: the lowest feature, threshold and `missing` win, in this order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.binning import MAX_BORDERS, MISSING, code_rows
from truerank.matrices.content import reduced_columns

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
    """A search for stumps over the `rows` int64 (n,) of X (N, p), which may hold NaN; potentials have the same order.

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
        """Return the stump with the largest |r|, or None if no |r| is above `TOLERANCE`."""
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
        """Return scores (n,) of the rows of X."""
        scores = np.zeros(X.shape[0])

        def work(first: int, last: int) -> None:
            _add_steps(X, self.columns, self.steps, self.starts, self.values, self.absent, scores, first, last)

        run_blocks(work, row_blocks(X.shape[0]), n_jobs)
        return scores

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return each feature's contribution to the scores of the rows of X, float64 (n, p); rows sum to `predict`."""
        result = np.zeros(X.shape)
        for c, k in enumerate(self.columns.tolist()):
            first, stop = self.starts[c], self.starts[c + 1]
            x = np.asarray(X[:, k], dtype=np.float64)
            above = np.searchsorted(self.steps[first:stop], x)  # steps below x
            result[:, k] = np.where(np.isnan(x), self.absent[c], self.values[first + c : stop + c + 1][above])
        return result


_SAMPLE = 16_384  # rows by which columns are paired
_PAIR_BINS = 1024  # largest number of joint bins of a pair of columns
_PAIR_BINS_ALL = 32_768  # and of all pairs: 256 KB, which fit the cache of a processor
_LARGE, _SHRINK = 1e290, 2.0**-60  # thresholds of larger values are computed on a smaller scale, so as not to overflow


def grid_thresholds(lowest: np.ndarray, highest: np.ndarray, with_missing: np.ndarray, n: int) -> list[np.ndarray]:
    """Return `n` evenly spaced thresholds for each column, from the smallest value up, without the largest value.

    A column with missing values also has the threshold -inf, which separates present from missing. A constant column
    has no other threshold. A column without values (`lowest` > `highest`) has no threshold.
    """
    result = []
    for low, high, missing in zip(lowest.tolist(), highest.tolist(), with_missing.tolist()):
        grid = [-np.inf] if missing and low <= high else []
        if low < high:
            shrunk = _SHRINK if max(-low, high) > _LARGE else 1.0
            start, span = low * shrunk, high * shrunk - low * shrunk
            grid += [(start + j * span / n) / shrunk for j in range(n)]
        result.append(np.array(grid))
    return result


class GridStumps:
    """A search for stumps over the `rows` int64 (n,) of X (N, p), which may hold NaN; potentials have the same order.

    Each column has `n_thresholds` evenly spaced thresholds. `ranges`, from `column_ranges`, are the ranges of all rows
    if `rows` are a part of them. Rows are coded once. Two columns with few thresholds share one code for the pair of
    their intervals. The codes leave out the fullest bin of a pair, because all bins of a pair add up to 0: on LETOR
    data, a quarter of the additions remain.
    """

    def __init__(
        self,
        X: np.ndarray,
        rows: np.ndarray,
        n_thresholds: int,
        n_jobs: int | None,
        ranges: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.n_jobs = n_jobs
        n = len(rows)
        lowest, highest, with_missing = column_ranges(X, rows, n_jobs) if ranges is None else ranges
        thresholds = grid_thresholds(lowest, highest, with_missing, n_thresholds)
        # Code each row by column: the number of thresholds below its value, or the last bin if it is missing.
        counts = np.array([len(t) for t in thresholds], dtype=np.int64)
        self.columns = np.flatnonzero(counts)
        self.n_thresholds = counts[self.columns]
        self.thresholds = [thresholds[k] for k in self.columns]
        self.missing_bin = with_missing[self.columns].astype(np.int64)
        self.n_bins = self.n_thresholds + 1 + self.missing_bin
        self.bin_start = offsets_of(self.n_bins)
        largest = int(self.n_bins.max(initial=1))
        self.codes = np.empty((len(self.columns), n), dtype=np.min_scalar_type(largest - 1))
        coded = largest <= MAX_BORDERS

        def code(first: int, last: int) -> None:
            part = X[rows[first:last]]
            codes = code_rows(part, thresholds, 1) if coded else None
            for u, k in enumerate(self.columns.tolist()):
                if codes is not None:
                    self.codes[u, first:last] = codes.column(k)
                    if self.missing_bin[u]:
                        self.codes[u, first:last][codes.column(k) == MISSING] = self.n_thresholds[u] + 1
                else:  # more thresholds than a byte can number
                    below = np.searchsorted(self.thresholds[u], part[:, k].astype(np.float64))
                    self.codes[u, first:last] = below + np.isnan(part[:, k])

        run_blocks(code, row_blocks(n), n_jobs)
        self._pair()

    def _pair(self) -> None:
        """Set the codes by row, one for each pair of columns, without the codes of the pairs' fullest bins."""
        self.pairs = _pair_columns(self.codes[:, :_SAMPLE], self.n_bins)
        self.pair_start = offsets_of([self.n_bins[a] * (self.n_bins[b] if b >= 0 else 1) for a, b in self.pairs])
        kind = np.uint16 if self.pair_start[-1] <= 2**16 else np.uint32
        joined = np.empty((len(self.pairs), self.codes.shape[1]), dtype=kind)
        self.fullest = self.pair_start[:-1].copy()

        def join(q: int) -> None:
            a, b = self.pairs[q]
            codes = self.codes[a].astype(np.int64)
            if b >= 0:
                codes = codes * self.n_bins[b] + self.codes[b]
            self.fullest[q] += np.argmax(np.bincount(codes, minlength=1))
            joined[q] = codes + self.pair_start[q]

        run_blocks(join, [(q,) for q in range(len(self.pairs))], self.n_jobs)
        paired = np.ascontiguousarray(joined.T)
        stays = paired != self.fullest.astype(kind)
        self.row_start, self.row_codes = offsets_of(np.count_nonzero(stays, axis=1)), paired[stays]

    def histogram(self, potentials: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return the sums of the potentials of rows first … last - 1 by pair bin, 0 for each pair's fullest bin."""
        sums = np.zeros(int(self.pair_start[-1]))
        _add_potentials(self.row_codes, self.row_start, potentials, first, last, sums)
        return sums

    def sums_by_bin(self, histogram: np.ndarray) -> np.ndarray:
        """Return the sums by bin of each column; sums add up over parts with grids of equal ranges."""
        sums = _sums_by_column(histogram, self.pairs, self.pair_start, self.fullest, self.n_bins, self.bin_start)
        return np.asarray(sums)

    def best_of_bins(self, sums: np.ndarray) -> Stump | None:
        """Return the stump with the largest |r|, from sums by bin."""
        k, j, missing, edge = _best_of_bins(sums, self.bin_start, self.n_thresholds, self.missing_bin, TOLERANCE)
        return None if k < 0 else Stump(int(self.columns[k]), float(self.thresholds[k][j]), missing, edge)

    def apply(self, stump: Stump, weight: float, scores: np.ndarray) -> None:
        """Add `weight * h` to the scores (n,), in place."""
        k = int(np.searchsorted(self.columns, stump.feature))
        j = int(np.searchsorted(self.thresholds[k], stump.threshold))
        absent = int(self.n_bins[k]) - 1 if self.missing_bin[k] else -1
        arrays = (self.codes[k], j, absent, weight, weight * stump.missing, scores)
        run_blocks(lambda a, b: _add_above(*arrays, a, b), row_blocks(len(scores)), self.n_jobs)


def _pair_columns(codes: np.ndarray, n_bins: np.ndarray) -> np.ndarray:
    """Pair the columns that leave their fullest bins in the same rows; int64 (q, 2), with -1 for no partner.

    Greedy: the column that is outside its fullest bin most often gets the partner that is outside at the same time
    most often. A column is not paired if every pair with it would have too many bins.
    """
    p = len(n_bins)
    outside = np.stack(
        [column != np.argmax(np.bincount(column, minlength=1)) for column in codes] or [np.zeros(0, dtype=bool)]
    ).astype(np.float32)
    together = outside @ outside.T  # whole numbers below 2^24: exact in float32
    left = [] if p == 0 else np.argsort(-together.diagonal(), kind="stable").tolist()
    may_pair = np.sum(n_bins) * n_bins.max(initial=1) <= 2 * _PAIR_BINS_ALL
    pairs = []
    while left:
        a = left.pop(0)
        partners = [b for b in left if may_pair and n_bins[a] * n_bins[b] <= _PAIR_BINS]
        b = max(partners, key=lambda b: together[a, b], default=-1)
        if b >= 0:
            left.remove(b)
        pairs.append((a, b))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def column_ranges(
    X: np.ndarray, rows: np.ndarray, n_jobs: int | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the smallest and largest value of each column (infinite without values), and whether it has NaN."""

    def look(first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        part = X[rows[first:last]]
        lowest = reduced_columns(np.minimum, part, np.inf)
        highest = reduced_columns(np.maximum, part, -np.inf)
        missing = np.isnan(lowest)
        lowest[missing] = np.fmin.reduce(part[:, missing], axis=0, initial=np.inf)
        highest[missing] = np.fmax.reduce(part[:, missing], axis=0, initial=-np.inf)
        return lowest.astype(np.float64), highest.astype(np.float64), missing

    lowest, highest, with_missing = zip(*run_blocks(look, row_blocks(max(1, len(rows))), n_jobs))
    return np.min(lowest, axis=0), np.max(highest, axis=0), np.any(with_missing, axis=0)


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


@kernel
def _add_potentials(codes, starts, potentials, first, last, sums):
    for i in range(first, last):
        potential = potentials[i]
        for j in range(starts[i], starts[i + 1]):
            sums[codes[j]] += potential


@kernel
def _sums_by_column(sums, pairs, pair_start, fullest, n_bins, bin_start):
    """Compute the sums by bin of each column from sums by joint bin of the pairs; fill in the fullest joint bins."""
    result = np.zeros(bin_start[-1])
    for q in range(len(pairs)):
        start = pair_start[q]
        total = 0.0
        for c in range(start, pair_start[q + 1]):
            total += sums[c]
        sums[fullest[q]] -= total
        a, b = pairs[q]
        width = n_bins[b] if b >= 0 else 1
        for i in range(n_bins[a]):
            row = 0.0
            for j in range(width):
                value = sums[start + i * width + j]
                row += value
                if b >= 0:
                    result[bin_start[b] + j] += value
            result[bin_start[a] + i] = row
    return result


@kernel
def _best_of_bins(sums, bin_start, n_thresholds, missing_bin, tolerance):
    """Return the column (-1 for none), threshold, side of NaN and edge of the best stump."""
    largest, least = 0.0, np.inf
    for _attempt in range(2):  # first the largest |r|, then the lowest column and threshold near it
        for k in range(len(n_thresholds)):
            n, start = n_thresholds[k], bin_start[k]
            absent = sums[start + n + 1] if missing_bin[k] else 0.0
            edge, found, best, flip = 0.0, -1, 0.0, 0
            for j in range(n - 1, -1, -1):
                edge += sums[start + j + 1]
                size = max(abs(edge), abs(edge + absent))
                largest = max(largest, size)
                if size >= least:
                    found = j
                    flip = 1 if abs(edge + absent) > abs(edge) + tolerance else 0
                    best = edge + absent if flip else edge
            if found >= 0:
                return k, found, flip, best
        if largest <= 0.0:
            break
        least = largest - tolerance
    return -1, 0, 0, 0.0


@kernel
def _add_above(codes, threshold, absent, weight, absent_weight, scores, first, last):
    for i in range(first, last):
        code = np.int64(codes[i])
        step = weight if code > threshold else 0.0
        scores[i] += absent_weight if code == absent else step
