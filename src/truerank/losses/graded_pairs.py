"""Pairs of documents with different grades, counted and never listed.

A loss over all pairs `(a, b)` of a query with `y_a > y_b` needs, for each document, how many documents of lower grade
score above `s - 1`, how many of higher grade score below `s + 1`, and sums of values over these two sets. With the
scores sorted both sets grow as one walks along the query, so accumulators by grade (a Fenwick tree for many grades)
give every sum in O(n log n): Joachims (2005) for two grades, Lee & Lin (2014, "Large-scale linear RankSVM", section 3)
for any number.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import sums_by_query

HINGE, SQUARED_HINGE = 0, 1
_FEW_GRADES = 16  # up to here plain running sums by grade, beyond a Fenwick tree
_LONG = 4096  # queries from here on are sorted by NumPy, which uses the processor's vector sorts


class GradedPairs:
    """The pairs of a data set, as grades (n,) ranked within each query; grades come in grouped order.

    Each pair of a query has `query_weight` (m,), None weighs all 1. `n_pairs` (m,) counts the pairs of each query whose
    grades differ, `total_weight` is the sum of their weights.
    """

    def __init__(
        self,
        y: np.ndarray,
        offsets: np.ndarray,
        query_weight: np.ndarray | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.n_jobs = n_jobs
        n = int(self.offsets[-1])
        self.ranks, self.n_grades, self.n_pairs = grade_ranks(y, self.offsets)
        self.set_weight(query_weight)
        self.blocks = query_blocks(self.offsets)
        self.long_queries = np.flatnonzero(np.diff(self.offsets) >= _LONG)
        self.order = np.arange(n, dtype=np.int64)
        self.sorted_scores = np.empty(n)
        self.sorted_ranks = np.empty(n, dtype=np.int32)
        self.degrees = np.zeros(n)

    def set_weight(self, query_weight: np.ndarray | None) -> None:
        """Give each pair of a query this weight (m,); None weighs all 1."""
        m = len(self.n_pairs)
        self.weight = np.ones(m) if query_weight is None else np.ascontiguousarray(query_weight, dtype=np.float64)
        self.total_weight = float(np.sum(self.weight * self.n_pairs))

    def loss(self, scores: np.ndarray, kind: int) -> tuple[float, np.ndarray]:
        """Weighted sum of the pairs' losses `max(0, 1 - (s_a - s_b))` (squared for SQUARED_HINGE) and its derivative.

        The derivative is by score (n,), a subgradient for the hinge, whose pairs at exactly the margin count 0. Keeps
        the order of the scores and the number of violated pairs of each row for `curvature`.
        """
        self._sort(scores)
        derivative = np.empty(len(scores))

        def work(first: int, last: int) -> float:
            return _pair_losses(
                self.sorted_scores, self.sorted_ranks, self.order, self.offsets, self.n_grades, self.weight, first,
                last, kind, derivative, self.degrees,
            )  # fmt: skip

        return float(sum(run_blocks(work, self.blocks, self.n_jobs))), derivative

    def n_violated(self) -> np.ndarray:
        """Pairs of each query within the margin at the scores of the last `loss`, float64 (m,)."""
        # By position, which stays within the query; each pair counts twice.
        return 0.5 * sums_by_query(self.degrees, self.offsets)

    def curvature(self, values: np.ndarray, result: np.ndarray, first: int, last: int) -> None:
        """Second derivative of the squared hinge at the scores of the last `loss`, times `values`, for some queries.

        It is `2 Σ weight (v_a - v_b)(e_a - e_b)` over the violated pairs, the Laplacian of a graph of documents.
        """
        _laplacian_products(
            self.sorted_scores, self.sorted_ranks, self.order, self.offsets, self.n_grades, self.weight,
            self.degrees, values, first, last, result,
        )  # fmt: skip

    def _sort(self, scores: np.ndarray) -> None:
        for query in self.long_queries:
            start, stop = self.offsets[query], self.offsets[query + 1]
            self.order[start:stop] = start + np.argsort(scores[start:stop], kind="stable")

        def work(first: int, last: int) -> None:
            _sort_queries(
                scores, self.ranks, self.offsets, first, last, _LONG, self.order, self.sorted_scores, self.sorted_ranks
            )

        run_blocks(work, self.blocks, self.n_jobs)


def grade_ranks(y: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank of each grade among its query's distinct grades, from 0, int32 (n,); number of grades, int64 (m,), and of
    pairs whose grades differ, float64 (m,), by query.
    """
    n, m = int(offsets[-1]), len(offsets) - 1
    ranks, n_grades, n_pairs = np.zeros(n, dtype=np.int32), np.zeros(m, dtype=np.int64), np.zeros(m)
    _rank_grades(np.ascontiguousarray(y, dtype=np.float64), offsets, ranks, n_grades, n_pairs)
    return ranks, n_grades, n_pairs


def weight_by(
    weighting: str, n_pairs: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray | None
) -> np.ndarray | None:
    """Weight of each pair of a query, (m,), such that queries count by their "pairs", "rows", or as "queries" all the
    same.

    `n_pairs` (m,) are the pairs of each query. Weights are scaled so that the pairs' total weight is what it is for
    "pairs", the number of pairs; None weighs all 1.
    """
    if weighting == "pairs":
        return query_weight
    share, weighed = weight_shares(weighting, n_pairs, offsets, query_weight)
    total = float(share.sum())
    return (weighed / total if total > 0 else 0.0) * share / np.maximum(n_pairs, 1.0)


def weight_shares(
    weighting: str, n_pairs: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """What each query counts (m,), and the weight of all pairs under "pairs", to which `weight_by` scales them."""
    own = np.ones(len(n_pairs)) if query_weight is None else query_weight
    size = np.diff(offsets).astype(np.float64) if weighting == "rows" else np.ones(len(n_pairs))
    return own * np.where(n_pairs > 0, size, 0.0), float(own @ n_pairs)


def order_by_rank(ranks: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Rows of each query from the lowest grade to the highest, equal grades in row order; int64 (n,)."""
    order = np.empty(len(ranks), dtype=np.int64)
    _counting_sort(ranks, offsets, order)
    return order


# Kernels. Positions are places in the sorted order of a query, lowest score first.


@kernel
def _rank_grades(y, offsets, ranks, n_grades, n_pairs):
    few = _FEW_GRADES
    levels, counts = np.empty(few), np.empty(few)
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        k = 0
        same = 0.0  # twice the pairs of equal grade, and the rows
        for i in range(start, stop):  # collect the distinct grades in order, while they are few
            g = 0
            while g < k and levels[g] < y[i]:
                g += 1
            if g == k or levels[g] != y[i]:
                if k == few:
                    k += 1
                    break
                for h in range(k, g, -1):
                    levels[h], counts[h] = levels[h - 1], counts[h - 1]
                levels[g], counts[g] = y[i], 0.0
                k += 1
            counts[g] += 1.0
        if k <= few:
            for i in range(start, stop):
                g = 0
                while levels[g] < y[i]:
                    g += 1
                ranks[i] = g
            for g in range(k):
                same += counts[g] * counts[g]
        else:
            order, keys = np.arange(start, stop), np.empty(stop - start)
            _merge_sort(y, order, keys, 0, stop - start)
            k = 0
            run = 0
            for i in range(stop - start):
                if i > 0 and keys[i] != keys[i - 1]:
                    same += (i - run) * (i - run)
                    run = i
                    k += 1
                ranks[order[i]] = k
            same += (stop - start - run) * (stop - start - run)
            k += 1
        size = float(stop - start)
        n_grades[query] = k
        n_pairs[query] = (size * size - same) / 2.0


@kernel
def _counting_sort(ranks, offsets, order):
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        most = 0
        for i in range(start, stop):
            most = max(most, ranks[i])
        places = np.zeros(most + 2, dtype=np.int64)
        for i in range(start, stop):
            places[ranks[i] + 1] += 1
        for g in range(most):
            places[g + 1] += places[g]
        for i in range(start, stop):
            order[start + places[ranks[i]]] = i
            places[ranks[i]] += 1


@kernel
def _sort_queries(scores, ranks, offsets, first, last, long, order, sorted_scores, sorted_ranks):
    """Sort each query by score, from the order of the last call, which is nearly right when the scores moved little."""
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        if stop - start < long:
            _merge_sort(scores, order, sorted_scores, start, stop)
        else:
            for i in range(start, stop):
                sorted_scores[i] = scores[order[i]]
        for i in range(start, stop):
            sorted_ranks[i] = ranks[order[i]]


@kernel
def _merge_sort(scores, order, keys, start, stop):
    run = 16
    for low in range(start, stop, run):
        high = min(low + run, stop)
        for i in range(low, high):
            row = order[i]
            key = scores[row]
            j = i - 1
            while j >= low and keys[j] > key:
                keys[j + 1] = keys[j]
                order[j + 1] = order[j]
                j -= 1
            keys[j + 1] = key
            order[j + 1] = row
    if stop - start <= run:
        return
    old_keys = np.empty(stop - start)
    old_order = np.empty(stop - start, dtype=np.int64)
    while run < stop - start:
        for low in range(start, stop - run, 2 * run):
            middle, high = low + run, min(low + 2 * run, stop)
            if keys[middle - 1] <= keys[middle]:
                continue
            for i in range(low, middle):
                old_keys[i - low] = keys[i]
                old_order[i - low] = order[i]
            i, j, k = 0, middle, low
            while i < run and j < high:
                if keys[j] < old_keys[i]:
                    keys[k], order[k] = keys[j], order[j]
                    j += 1
                else:
                    keys[k], order[k] = old_keys[i], old_order[i]
                    i += 1
                k += 1
            while i < run:
                keys[k], order[k] = old_keys[i], old_order[i]
                i += 1
                k += 1
        run *= 2


@kernel
def _add(sums, rank, n_grades, few, x, y, z):
    """Add (x, y, z) at a rank: to each sum over lower ranks that it belongs to, or into the Fenwick tree."""
    if few:
        for g in range(rank + 1, n_grades):
            sums[g, 0] += x
            sums[g, 1] += y
            sums[g, 2] += z
    else:
        g = rank + 1
        while g <= n_grades:
            sums[g, 0] += x
            sums[g, 1] += y
            sums[g, 2] += z
            g += g & -g


@kernel
def _below(sums, rank, few):
    """Sums over the ranks lower than `rank`."""
    if few:
        return sums[rank, 0], sums[rank, 1], sums[rank, 2]
    x = y = z = 0.0
    g = rank
    while g > 0:
        x += sums[g, 0]
        y += sums[g, 1]
        z += sums[g, 2]
        g -= g & -g
    return x, y, z


@kernel
def _pair_losses(s, ranks, order, offsets, n_grades, weight, first, last, kind, derivative, degrees):
    """Loss of queries `first:last`; writes derivative by row and degrees (violated pairs) by position."""
    most = 1
    for query in range(first, last):
        most = max(most, n_grades[query])
    sums = np.empty((most + 1, 3))
    total = 0.0
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        k = n_grades[query]
        few = k <= _FEW_GRADES
        if k < 2 or weight[query] == 0.0:
            for i in range(start, stop):
                derivative[order[i]] = 0.0
                degrees[i] = 0.0
            continue
        shift = s[start + (stop - start) // 2]  # sums of squares around the middle of the scores cancel less
        loss = 0.0
        sums[: k + 1] = 0.0
        j = stop - 1
        for i in range(stop - 1, start - 1, -1):  # the better document of a pair
            while j >= start and s[i] - s[j] < 1.0:
                t = s[j] - shift
                _add(sums, ranks[j], k, few, 1.0, t, t * t)
                j -= 1
            count, total_t, total_tt = _below(sums, ranks[i], few)
            c = 1.0 - (s[i] - shift)
            if kind == SQUARED_HINGE:
                loss += c * (c * count + total_t) + (c * total_t + total_tt)
                derivative[order[i]] = -2.0 * (c * count + total_t)
            else:
                loss += c * count + total_t
                derivative[order[i]] = -count
            degrees[i] = count
        sums[: k + 1] = 0.0
        j = start
        for i in range(start, stop):  # the worse document; ranks count from the top here
            while j < stop and s[j] - s[i] < 1.0:
                t = s[j] - shift
                _add(sums, k - 1 - ranks[j], k, few, 1.0, t, 0.0)
                j += 1
            count, total_t, total_tt = _below(sums, k - 1 - ranks[i], few)
            if kind == SQUARED_HINGE:
                derivative[order[i]] += 2.0 * ((1.0 + (s[i] - shift)) * count - total_t)
            else:
                derivative[order[i]] += count
            degrees[i] += count
            derivative[order[i]] *= weight[query]
        total += weight[query] * loss
    return total


@kernel
def _laplacian_products(s, ranks, order, offsets, n_grades, weight, degrees, values, first, last, result):
    """`2 weight (degree_i v_i - Σ v_j)` over the violated pairs of each row."""
    most = 1
    for query in range(first, last):
        most = max(most, n_grades[query])
    sums = np.empty(most + 1)
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        k = n_grades[query]
        if k < 2 or weight[query] == 0.0:
            for i in range(start, stop):
                result[order[i]] = 0.0
            continue
        few = k <= _FEW_GRADES
        scale = 2.0 * weight[query]
        sums[: k + 1] = 0.0
        j = stop - 1
        for i in range(stop - 1, start - 1, -1):
            while j >= start and s[i] - s[j] < 1.0:
                _add_one(sums, ranks[j], k, few, values[order[j]])
                j -= 1
            row = order[i]
            result[row] = scale * (degrees[i] * values[row] - _below_one(sums, ranks[i], few))
        sums[: k + 1] = 0.0
        j = start
        for i in range(start, stop):
            while j < stop and s[j] - s[i] < 1.0:
                _add_one(sums, k - 1 - ranks[j], k, few, values[order[j]])
                j += 1
            result[order[i]] -= scale * _below_one(sums, k - 1 - ranks[i], few)


@kernel
def _add_one(sums, rank, n_grades, few, x):
    if few:
        for g in range(rank + 1, n_grades):
            sums[g] += x
    else:
        g = rank + 1
        while g <= n_grades:
            sums[g] += x
            g += g & -g


@kernel
def _below_one(sums, rank, few):
    if few:
        return sums[rank]
    x = 0.0
    g = rank
    while g > 0:
        x += sums[g]
        g -= g & -g
    return x
