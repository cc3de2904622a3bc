"""Sums over pairs of documents with different grades, without a list of the pairs.

A loss over all pairs `(a, b)` of a query with `y_a > y_b` requires, for each document, the number of documents of lower
grade with a score above `s - 1`, of documents of higher grade with a score below `s + 1`, and sums of values over both
sets. In the order of the scores, both sets only grow, so that running sums by grade (a Fenwick tree for many grades)
give every sum in O(n log n). Joachims (2005) shows this for two grades, and Lee and Lin (2014, "Large-scale linear
RankSVM", section 3) for any number.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import query_of_rows, sums_by_query
from truerank.matrices.sorting import longest_query, room_to_sort, sort_descending

HINGE, SQUARED_HINGE = 0, 1
_FEW_GRADES = 16  # up to here plain running sums by grade, beyond a Fenwick tree
_STEP = 32  # places at a time in the search for the margin
_LONG = 4096  # queries from here on are sorted by NumPy, which uses the processor's vector sorts


class GradedPairs:
    """The pairs of documents with different grades in each query, from grouped grades y (n,).

    Each pair of a query has the weight `query_weight` (m,), or 1 for None. `n_pairs` (m,) counts the pairs of each
    query, and `total_weight` is the sum of their weights. A query without pairs is not `kept` (m,).

    >>> pairs = GradedPairs(np.array([2.0, 1.0, 0.0]), np.array([0, 3]))
    >>> loss, coefficients = pairs(np.array([1.8, 0.9, 0.0]))
    >>> loss.tolist(), coefficients.tolist(), round(float(loss[0] + coefficients @ [1.8, 0.9, 0.0]), 12)
    ([2.0], [-1.0, 0.0, 1.0], 0.2)
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
        n, self.longest = int(self.offsets[-1]), int(np.diff(self.offsets).max(initial=0))
        _, self.ranks, self.n_grades, self.n_pairs = sort_grades(y, self.offsets)
        self.kept = self.n_pairs > 0
        self.set_weight(query_weight)
        self.blocks = query_blocks(self.offsets)
        self.long_queries = np.flatnonzero(np.diff(self.offsets) >= _LONG)
        self.order = np.arange(n, dtype=np.int64)
        self.sorted_scores = np.empty(n)
        self.sorted_ranks = np.empty(n, dtype=np.int32)
        self.degrees = np.zeros(n)
        # How many of its query's positions stand within the margin of each: from the highest score down, and back.
        self.reach = np.zeros((2, n), dtype=np.int64)

    def set_weight(self, query_weight: np.ndarray | None) -> None:
        """Set the weight (m,) of the pairs of each query; None means 1."""
        m = len(self.n_pairs)
        self.weight = np.ones(m) if query_weight is None else np.ascontiguousarray(query_weight, dtype=np.float64)
        self.total_weight = float(np.sum(self.weight * self.n_pairs))
        self.counts = self.kept & (self.weight != 0.0)
        self.row_scale = np.repeat(np.where(self.counts, 2.0 * self.weight, 0.0), np.diff(self.offsets))

    def loss(self, scores: np.ndarray, kind: int) -> tuple[float, np.ndarray]:
        """Return the weighted sum of `max(0, 1 - (s_a - s_b))` over pairs, or of squares, and its derivative (n,).

        For the hinge this is a subgradient, to which pairs at exactly the margin add 0. The order of the scores and
        each row's violated pairs are stored for `curvature`.
        """
        self._sort(scores)
        derivative = np.empty(len(scores))

        def work(first: int, last: int) -> float:
            n, u = self.offsets[last] - self.offsets[first], np.empty(self.longest + _STEP)
            x, sums = np.ones((3, n)), np.empty((2, 3 if kind == SQUARED_HINGE else 2, n))
            _within_margin(self.sorted_scores, self.offsets, self.counts, first, last, self.reach, x, u)
            self._sum_over_pairs(x, first, last, sums)
            return _losses(
                x, sums, self.order, self.offsets, self.counts, self.weight, first, last, kind == SQUARED_HINGE,
                derivative, self.degrees,
            )  # fmt: skip

        return float(sum(run_blocks(work, self.blocks, self.n_jobs))), derivative

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the violated pairs (m,) and the coefficients (n,) of the scores in `Σ_violated (1 - s_a + s_b)`.

        If all pairs have weight 1, this is the oracle of RankSVM's hinge: the worst outcome is a set of violated pairs,
        and with three or more grades not a ranking.
        """
        self.n_jobs = n_jobs
        _, coefficients = self.loss(np.ascontiguousarray(scores, dtype=np.float64), HINGE)
        # By position, which stays within the query; each pair counts twice.
        return 0.5 * sums_by_query(self.degrees, self.offsets), coefficients

    def curvature(self, values: np.ndarray, result: np.ndarray, first: int, last: int) -> None:
        """Write the squared hinge's second derivative at the last scores, multiplied by `values`, for some queries.

        The product is `2 Σ weight (v_a - v_b)(e_a - e_b)` over the violated pairs, a Laplacian of documents.
        """
        own = slice(self.offsets[first], self.offsets[last])
        rows = self.order[own]
        x = values[rows]
        sums = np.zeros((2, 1, len(x)))
        self._sum_over_pairs(x[None], first, last, sums)
        lower, higher = sums[:, 0]
        np.subtract(self.degrees[own] * x, lower, out=lower)
        sums *= self.row_scale[own]
        result[rows] = lower - higher

    def _sum_over_pairs(self, x: np.ndarray, first: int, last: int, sums: np.ndarray) -> None:
        ranks, room = np.empty(self.longest, dtype=np.int32), np.empty((8, self.longest + 1))
        _sums_over_lower(
            x, self.sorted_ranks, self.n_grades, self.offsets, self.counts, first, last, self.reach, ranks, room, sums
        )

    def _sort(self, scores: np.ndarray) -> None:
        for query in self.long_queries:
            start, stop = self.offsets[query], self.offsets[query + 1]
            self.order[start:stop] = start + np.argsort(scores[start:stop], kind="stable")
        falling = -scores

        def work(first: int, last: int) -> None:
            _sort_queries(
                falling, self.ranks, self.offsets, first, last, _LONG, self.order, self.sorted_scores, self.sorted_ranks
            )

        run_blocks(work, self.blocks, self.n_jobs)


class HingeOracle:
    """The loss `Σ_i c_i max(0, 1 - z_i s_i)` of all rows as one query, with `signs` z = ±1 and `weight` c >= 0 (n,)."""

    def __init__(self, signs: np.ndarray, weight: np.ndarray) -> None:
        self._gain = signs * weight
        self.signs, self.weight = signs, weight
        self.offsets = np.array([0, len(signs)], dtype=np.int64)
        self.kept = np.array([True])

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the summed weight of the rows within the margin (1,), and the coefficients (n,) of the scores."""
        inside = self.signs * scores < 1.0
        return np.array([self.weight[inside].sum()]), np.where(inside, -self._gain, 0.0)


def sort_grades(y: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of each query by ascending grade, equal grades in row order, int64 (n,); ranks of grades within
    queries, from 0, int32 (n,); and numbers of grades and of mixed pairs by query (m,).
    """
    n, m = len(y), len(offsets) - 1
    order, places, ranks = np.arange(n), np.arange(n), np.zeros(n, dtype=np.int32)
    grades, no_ranks = np.empty(n), np.empty(n, dtype=np.int32)
    _sort_queries(np.negative(y, dtype=np.float64), ranks, offsets, 0, m, n + 1, order, grades, no_ranks)
    query = query_of_rows(offsets)
    starts = offsets[query]
    rises = (places > starts) & np.append(False, grades[1:] != grades[:-1])
    steps = np.cumsum(rises)
    ranks[order] = steps - steps[starts]
    lower = np.maximum.accumulate(np.where(rises, places, starts)) - starts  # rows of lower grades
    n_grades = np.bincount(query[rises], minlength=m) + (np.diff(offsets) > 0)
    return order, ranks, n_grades, np.bincount(query, lower, minlength=m)


def weight_shares(
    weighting: str, n_pairs: np.ndarray, offsets: np.ndarray, query_weight: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Return the share of each query (m,), by "rows" or equal, and the total weight of the pairs.

    `n_pairs` (m,) is the number of pairs of each query. The share of a query in the total weight is divided by its
    number of pairs.
    """
    own = np.ones(len(n_pairs)) if query_weight is None else query_weight
    size = np.diff(offsets).astype(np.float64) if weighting == "rows" else np.ones(len(n_pairs))
    return own * np.where(n_pairs > 0, size, 0.0), float(own @ n_pairs)


# Kernels. A position is an index in a query's rows sorted by ascending score.


@kernel
def _sort_queries(falling, ranks, offsets, first, last, long, order, sorted_scores, sorted_ranks):
    """Sort each query by ascending score, `-falling`, starting from the order of the last call."""
    spare = room_to_sort(longest_query(offsets, first, last))
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        if stop - start < long:
            sort_descending(falling, order[start:stop], stop - start, spare)
        for i in range(start, stop):
            sorted_scores[i], sorted_ranks[i] = -falling[order[i]], ranks[order[i]]


@kernel
def _within_margin(s, offsets, counts, first, last, reach, x, u):
    """Write how many scores are above s - 1, from the highest down, and below s + 1, from the lowest up, to `reach`.

    x[1] is the score minus the middle one of its query, around which sums of squares cancel less, and x[2] its square.
    u is scratch. The search within 32 positions avoids branches, which processors cannot predict.
    """
    for query in range(first, last):
        if not counts[query]:
            continue
        start, n, i = offsets[query], offsets[query + 1] - offsets[query], offsets[query] - offsets[first]
        middle = s[start + n // 2]
        for j in range(n):
            u[n - 1 - j] = s[start + j]
            x[1, i + j] = s[start + j] - middle
            x[2, i + j] = x[1, i + j] * x[1, i + j]
            reach[1, start + j] = 0
        for j in range(n, n + _STEP):
            u[j] = -np.inf
        near = 0
        for i in range(n):
            while u[i] - u[near + _STEP - 1] < 1.0:
                near += _STEP
            j, half = near, _STEP // 2
            while half > 0:
                j += half * (u[i] - u[j + half - 1] < 1.0)
                half >>= 1
            j = max(j, 1)  # where scores are not finite, too
            reach[0, start + n - 1 - i] = j
            reach[1, start + n - j] += 1  # the places up to j are those that see i
        for i in range(start + 1, start + n):
            reach[1, i] += reach[1, i - 1]


@kernel
def _sums_over_lower(x, ranks, n_grades, offsets, counts, first, last, reach, own, room, sums):
    """Write `sums[0, c] = Σ x[c]` over the rows of lower grade within the margin of each row, by position.

    `sums[1, c]` has those over the rows of higher grade, for c < 2. x and sums begin at the first row of the queries.
    Up to 16 grades, running sums of four grades at a time avoid unpredictable branches, which halves the time.
    """
    for query in range(first, last):
        start, n, k = offsets[query], offsets[query + 1] - offsets[query], n_grades[query]
        if not counts[query]:
            continue
        here = start - offsets[first]
        for side in range(2):  # from the highest score down, and back, where ranks count from the top
            columns, begin, step = (sums.shape[1], n - 1, -1) if side == 0 else (min(2, sums.shape[1]), 0, 1)
            near = reach[side, start : start + n]
            for i in range(n):
                own[i] = ranks[start + i] if side == 0 else k - 1 - ranks[start + i]
            if k > _FEW_GRADES:
                _sums_by_tree(x, k, n, begin, step, here, columns, own, near, room, sums[side])
                continue
            for column in range(columns):
                values, result = x[column, here : here + n], sums[side, column, here : here + n]
                for low in range(0, k, 4):
                    for g in range(4):
                        for j in range(n):
                            room[g, j] = values[j] if own[j] < low + g else 0.0
                    a = b = c = d = 0.0
                    i = begin
                    for j in range(n):
                        room[4, j], room[5, j], room[6, j], room[7, j] = a, b, c, d
                        a += room[0, i]
                        b += room[1, i]
                        c += room[2, i]
                        d += room[3, i]
                        i += step
                    room[4, n], room[5, n], room[6, n], room[7, n] = a, b, c, d
                    for i in range(n):
                        if low <= own[i] < low + 4:
                            result[i] = room[4 + own[i] - low, near[i]]


@kernel
def _sums_by_tree(x, k, n, begin, step, here, columns, own, near, room, sums):
    """Compute the sums of `_sums_over_lower` by a Fenwick tree over the k grades, in `room[:columns]`."""
    for g in range(k + 1):
        for c in range(columns):
            room[c, g] = 0.0
    i = j = begin
    for _ in range(n):
        while (j - begin) * step < near[i]:
            g = own[j] + 1
            while g <= k:
                for c in range(columns):
                    room[c, g] += x[c, here + j]
                g += g & -g
            j += step
        for c in range(columns):
            total, g = 0.0, own[i]
            while g > 0:
                total += room[c, g]
                g -= g & -g
            sums[c, here + i] = total
        i += step


@kernel
def _losses(x, sums, order, offsets, counts, weight, first, last, squared, derivative, degrees):
    """Return the loss of the queries `first:last`; write derivatives by row, and violated pairs by position."""
    total = 0.0
    for query in range(first, last):
        loss = 0.0
        for position in range(offsets[query + 1] - 1, offsets[query] - 1, -1):
            slope, degrees[position] = 0.0, 0.0
            if counts[query]:
                i = position - offsets[first]
                lower, higher, c = sums[0, 0, i], sums[1, 0, i], 1.0 - x[1, i]
                degrees[position] = lower + higher
                if squared:
                    slack = c * lower + sums[0, 1, i]
                    loss += c * slack + (c * sums[0, 1, i] + sums[0, 2, i])
                    slope = -2.0 * slack + 2.0 * ((1.0 + x[1, i]) * higher - sums[1, 1, i])
                else:
                    loss += c * lower + sums[0, 1, i]
                    slope = higher - lower
            derivative[order[position]] = slope * weight[query]
        total += weight[query] * loss
    return total
