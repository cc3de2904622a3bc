"""Fit RankBoost by sums over parts of the rows, without listing pairs.

Each round sums a histogram of potentials by bin and sends back the best stump. A part keeps codes, scores and
potentials of its rows. Thresholds are evenly spaced over the range of each column in all parts."""

from __future__ import annotations

import math

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import mixed_queries
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part, RowSource, ask
from truerank.data.rows import beside, joined
from truerank.measures.kernel import QueryMeasure
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.stumps import GridStumps, SortedStumps, Stump, apply_stump, column_ranges

Ranges = tuple[np.ndarray, np.ndarray, np.ndarray]
_WIDEST = 600.0  # range of a query's scores up to which exp(f(a) - f(b)) is computed as a product


class PairPotentials:
    """The weights D of the pairs of a part, as potentials of documents, for the queries that have pairs.

    Rows are sorted by query and grade; the rows of one query and grade are a segment. With `low_g` and `high_g` the
    smallest and largest score of segment g, `p_g = ln sum exp f(a)` and `q_g = ln sum exp(-f(b))` over the segment,

        pi(x) = exp(-f(x)) sum_(g' < g) exp(p_g') - exp(f(x)) sum_(g' > g) exp(q_g'),    divided by Z.

    It is computed from exp(low_g - f(x)) and exp(f(x) - high_g), which are at most 1, so that no score overflows. If
    the scores of no query span more than 600, exp(f - c) and its inverse suffice, with c the middle of these scores.

    A block of queries gives (M, Z_b, h_b): its largest exponent, and its sum of pair weights and histogram of
    potentials, both divided by e^M. Sums and histograms, multiplied by e^(M - max M), add up over blocks. `rows`
    (n_rows,) are the rows that belong to some pair.
    """

    def __init__(self, data: RankingData, n_jobs: int | None) -> None:
        self.n_jobs, self._X = n_jobs, data.X
        y, offsets = data.y, data.offsets
        assert y is not None  # Ranker.fit has checked
        weight = data.weight_by_query
        mixed = mixed_queries(y, offsets) & (weight > 0)
        query = data.query_index
        chosen = np.flatnonzero(mixed[query])
        query, grade = query[chosen], y[chosen]
        order = np.lexsort((grade, query))
        self.rows = chosen[order]
        self.n_rows = len(self.rows)
        query, grade = query[order], grade[order]
        new_query = np.ones(self.n_rows, dtype=bool)
        new_query[1:] = query[1:] != query[:-1]
        new_segment = new_query.copy()
        new_segment[1:] |= grade[1:] != grade[:-1]
        segment_starts = np.flatnonzero(new_segment)
        self._segments = np.append(segment_starts, self.n_rows)
        self._queries = np.append(np.flatnonzero(new_query[segment_starts]), len(segment_starts))
        self._rows_of_query = self._segments[self._queries]
        self._query_weight = np.ascontiguousarray(weight[mixed])
        self._blocks = query_blocks(self._rows_of_query)
        self._scores = np.zeros(self.n_rows)
        self._up, self._down, self._potentials = (np.empty(self.n_rows) for _ in range(3))
        self._exponents = np.zeros(0)  # of the blocks, in the last round

    def prepare(self, thresholds: int | str, ranges: Ranges | None) -> None:
        """Prepare the search for stumps over `rows`: a grid over the ranges of columns, or all thresholds."""
        if ranges is None:
            self.search: GridStumps | SortedStumps = SortedStumps(self._X, self.rows, self.n_jobs)
        else:
            self.search = GridStumps(self._X, self.rows, int(thresholds), self.n_jobs, ranges)
        self._X = self._X[:0]  # a grid has codes instead

    def sums(self) -> tuple[float, float, np.ndarray]:
        """Update the potentials; return M, Z and the sums of potentials by bin of a grid, for `add_scaled`."""
        grid = self.search if isinstance(self.search, GridStumps) else None
        parts = run_blocks(lambda a, b: self._statistics(a, b, grid), self._blocks, self.n_jobs)
        if not parts:
            return -math.inf, 0.0, np.zeros(0 if grid is None else int(grid.bin_start[-1]))
        self._exponents = np.array([part[0] for part in parts])
        largest = float(self._exponents.max())
        scales = np.exp(self._exponents - largest)
        total = float(np.sum(scales * np.array([part[1] for part in parts])))
        if grid is None:
            return largest, total, np.zeros(0)
        histogram = parts[0][2] * scales[0]
        for part, scale in zip(parts[1:], scales[1:]):
            histogram += part[2] * scale
        return largest, total, grid.sums_by_bin(histogram)

    def best_of_all(self, largest: float, total: float) -> Stump | None:
        """Return the stump with the largest |r| among all thresholds, for (M, Z) of `sums`."""
        for (a, b), exponent in zip(self._blocks, self._exponents):
            rows = slice(self._rows_of_query[a], self._rows_of_query[b])
            self._potentials[rows] *= math.exp(exponent - largest) / total
        assert isinstance(self.search, SortedStumps)
        return self.search.best(self._potentials)

    def apply(self, stump: Stump, weight: float) -> None:
        """Add `weight * h` to the scores."""
        self.search.apply(stump, weight, self._scores)

    def _statistics(
        self, first_query: int, last_query: int, grid: GridStumps | None
    ) -> tuple[float, float, np.ndarray | None]:
        first, last = int(self._rows_of_query[first_query]), int(self._rows_of_query[last_query])
        arrays = (self._segments, self._queries, first_query, last_query)
        up, down = self._up[first:last], self._down[first:last]
        widest = _shift_by_query(self._scores, *arrays, self._up)
        if widest <= _WIDEST:
            np.exp(up, out=up)
            np.divide(1.0, up, out=down)
            exponent = 0.0
            total = _potentials_of_narrow(self._up, self._down, self._query_weight, *arrays, self._potentials)
        else:
            ranges = _shift_by_segment(self._scores, *arrays, self._up, self._down)
            np.exp(up, out=up)
            np.exp(down, out=down)
            exponent, total = _potentials(
                self._up, self._down, ranges, np.log(self._query_weight), *arrays, self._potentials
            )
        return exponent, total, None if grid is None else grid.histogram(self._potentials, first, last)


def add_scaled(
    a: tuple[float, float, np.ndarray], b: tuple[float, float, np.ndarray]
) -> tuple[float, float, np.ndarray]:
    """Add (M, Z, h) of two sets of queries, each divided by its own e^M."""
    largest = max(a[0], b[0])
    if largest == -math.inf:
        return a
    first, second = math.exp(a[0] - largest), math.exp(b[0] - largest)
    return largest, first * a[1] + second * b[1], first * a[2] + second * b[2]


class PairWeights:
    """The weights D of all pairs: `n_rows` rows belong to some pair.

    `exponential_loss` is the mean of exp(f(a) - f(b)) over pairs at the last call of `best_stump`.
    """

    def __init__(self, data: RowSource) -> None:
        self._rows, self._n_features = data, data.n_features
        self.n_rows = int(data.statistics(_open, data.part_jobs, keep=True))
        self._first = math.nan
        self.exponential_loss = 1.0

    def prepare(self, thresholds: int | str) -> None:
        """Prepare the search for stumps: a number of thresholds by column, or "all"."""
        self._grid: GridStumps | None = None
        ranges = None
        if not isinstance(thresholds, str):
            ranges = self._rows.statistics(_ranges, merge=_wider)
            self._grid = GridStumps(np.zeros((0, self._n_features)), np.zeros(0, np.int64), thresholds, 1, ranges)
        elif self._rows.alone is None:
            raise InvalidInputError(
                'thresholds="all" requires all rows in memory. On a cluster, pass a number, such as thresholds=1000',
                argument="thresholds",
            )
        self._rows.statistics(_prepare, thresholds, ranges, keep=True)

    def best_stump(self) -> Stump | None:
        """Update the potentials and return the stump with the largest |r|."""
        exponent, total, sums = self._rows.statistics(ask, "pairs", "sums", merge=add_scaled)
        log_total = exponent + math.log(total)
        if math.isnan(self._first):
            self._first = log_total
        self.exponential_loss = math.exp(min(log_total - self._first, 700.0))
        if self._grid is None:
            stump: Stump | None = self._rows.statistics(ask, "pairs", "best_of_all", exponent, total)
            return stump
        return self._grid.best_of_bins(np.array(sums) / total)

    def apply(self, stump: Stump, weight: float) -> None:
        """Add `weight * h` to the scores."""
        self._rows.statistics(ask, "pairs", "apply", stump, weight, keep=True)


class StumpScores:
    """Scores of validation queries, and their measure after each stump."""

    def __init__(self, valid: RowSource, curve: EarlyStopping) -> None:
        self._rows, self._measure, self._weight = valid, curve.measure, valid.query_weight
        valid.statistics(_open_scores, curve, keep=True)

    def value_with(self, stump: Stump, weight: float) -> float:
        """Add `weight * h` to the scores; return the mean of the measure."""
        by_query = self._rows.statistics(_measured, stump, weight, merge=beside, keep=True)
        return float(self._measure.aggregate(joined(by_query), self._weight))


# Statistics of a part.


def _wider(a: Ranges, b: Ranges) -> Ranges:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] | b[2]


def _open(part: Part, n_jobs: int | None) -> int:
    pairs = part.memory["pairs"] = PairPotentials(part.data, n_jobs)
    return pairs.n_rows


def _ranges(part: Part) -> Ranges:
    pairs = part.memory["pairs"]
    return column_ranges(part.data.X, pairs.rows, pairs.n_jobs)


def _prepare(part: Part, thresholds: int | str, ranges: Ranges | None) -> None:
    own = None if ranges is None else (np.array(ranges[0]), np.array(ranges[1]), np.array(ranges[2]))
    part.memory["pairs"].prepare(thresholds, own)


def _open_scores(part: Part, curve: EarlyStopping) -> None:
    part.memory["scores"] = part.data.X, QueryMeasure(part.data, curve.measure), np.zeros(part.data.n_rows)


def _measured(part: Part, stump: Stump, weight: float) -> list[np.ndarray]:
    X, measure, scores = part.memory["scores"]
    apply_stump(X, stump, weight, scores)
    return [np.asarray(measure.of_scores(scores))]


@kernel
def _shift_by_query(scores, segments, queries, first_query, last_query, up):
    """Set `up = f - c` with c the middle of the query's scores; return the widest range of a query's scores."""
    widest = 0.0
    for query in range(first_query, last_query):
        start = segments[queries[query]]
        stop = segments[queries[query + 1]]
        low = np.inf
        high = -np.inf
        for i in range(start, stop):
            low = min(low, scores[i])
            high = max(high, scores[i])
        middle = 0.5 * (low + high)
        for i in range(start, stop):
            up[i] = scores[i] - middle
        widest = max(widest, high - low)
    return widest


@kernel
def _potentials_of_narrow(up, down, weight, segments, queries, first_query, last_query, potentials):
    """Set the potentials of a block, times Z; return the Z of the block. `up = exp(f - c)` and `down` is its inverse.

    exp(f(a) - f(b)) = up(a) down(b) for any c, and is finite if no query's scores are too wide.
    """
    total = 0.0
    for query in range(first_query, last_query):
        w = weight[query]
        first = queries[query]
        last = queries[query + 1]
        below = 0.0
        for g in range(first, last):
            sum_up = 0.0
            sum_down = 0.0
            for i in range(segments[g], segments[g + 1]):
                potentials[i] = below * down[i]
                sum_up += up[i]
                sum_down += down[i]
            total += below * sum_down
            below += w * sum_up
        above = 0.0
        for g in range(last - 1, first - 1, -1):
            sum_down = 0.0
            for i in range(segments[g], segments[g + 1]):
                potentials[i] -= above * up[i]
                sum_down += down[i]
            above += w * sum_down
    return total


@kernel
def _shift_by_segment(scores, segments, queries, first_query, last_query, up, down):
    """Set `up = f - high_g` and `down = low_g - f`; return (low_g, high_g) of the block's segments."""
    first = queries[first_query]
    ranges = np.empty((queries[last_query] - first, 2))
    for g in range(first, queries[last_query]):
        low = np.inf
        high = -np.inf
        for i in range(segments[g], segments[g + 1]):
            low = min(low, scores[i])
            high = max(high, scores[i])
        for i in range(segments[g], segments[g + 1]):
            up[i] = scores[i] - high
            down[i] = low - scores[i]
        ranges[g - first, 0] = low
        ranges[g - first, 1] = high
    return ranges


@kernel
def _log_add(a, b):
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    return max(a, b) + np.log1p(np.exp(-abs(a - b)))


@kernel
def _potentials(up, down, ranges, log_weight, segments, queries, first_query, last_query, potentials):
    """Set the potentials of a block, times Z / e^M; return M and the block's Z / e^M."""
    first = queries[first_query]
    n = len(ranges)
    p = np.empty(n)  # becomes ln sum_(g' < g) exp(p_g'), plus the query's log weight
    q = np.empty(n)  # becomes ln sum_(g' > g) exp(q_g'), plus the query's log weight
    exponent = -np.inf
    own = np.empty(n)  # q_g of the segment itself
    for query in range(first_query, last_query):
        lower = log_weight[query]
        running = -np.inf
        for g in range(queries[query] - first, queries[query + 1] - first):
            sum_up = 0.0
            sum_down = 0.0
            for i in range(segments[g + first], segments[g + first + 1]):
                sum_up += up[i]
                sum_down += down[i]
            own[g] = np.log(sum_down) - ranges[g, 0]
            p[g] = running + lower
            running = _log_add(running, np.log(sum_up) + ranges[g, 1])
            exponent = max(exponent, p[g] + own[g])
        running = -np.inf
        for g in range(queries[query + 1] - first - 1, queries[query] - first - 1, -1):
            q[g] = running + lower
            running = _log_add(running, own[g])
    total = 0.0
    for g in range(n):
        total += np.exp(p[g] + own[g] - exponent)
        below = np.exp(p[g] - ranges[g, 0] - exponent)
        above = np.exp(q[g] + ranges[g, 1] - exponent)
        for i in range(segments[g + first], segments[g + first + 1]):
            potentials[i] = down[i] * below - up[i] * above
    return exponent, total
