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
_LONG = 4096  # queries from here on are sorted by NumPy, which uses the processor's vector sorts


class GradedPairs:
    """The pairs of grouped grades y (n,).

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
        n = int(self.offsets[-1])
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

    def loss(self, scores: np.ndarray, kind: int) -> tuple[float, np.ndarray]:
        """Return the weighted sum of `max(0, 1 - (s_a - s_b))` over pairs, or of squares, and its derivative (n,).

        For the hinge this is a subgradient, to which pairs at exactly the margin add 0. The order of the scores and
        each row's violated pairs are stored for `curvature`.
        """
        self._sort(scores)
        derivative = np.empty(len(scores))

        def work(first: int, last: int) -> float:
            return _pair_losses(
                self.sorted_scores, self.sorted_ranks, self.order, self.offsets, self.n_grades, self.weight, first,
                last, kind, derivative, self.degrees, self.reach,
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
        _laplacian_products(
            self.sorted_ranks, self.order, self.offsets, self.n_grades, self.weight, self.degrees, self.reach, values,
            first, last, result,
        )  # fmt: skip

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
    """Return the rows of each query by rising grade, equal grades in row order, int64 (n,); ranks of grades within
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
    """Sort each query by rising score, `-falling`, from the order of the last call."""
    spare = room_to_sort(longest_query(offsets, first, last))
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        if stop - start < long:
            sort_descending(falling, order[start:stop], stop - start, spare)
        for i in range(start, stop):
            sorted_scores[i], sorted_ranks[i] = -falling[order[i]], ranks[order[i]]


@kernel
def _within_margin(u, above, below):
    """Write the numbers of the falling u[:n] above u[i] - 1, and, from the last one back, below u[n - 1 - i] + 1.

    u[n:] holds 32 times -inf. The search within 32 places avoids branches, which processors cannot predict.
    """
    n, first = len(above), 0
    below[:] = 0
    for i in range(n):
        while u[i] - u[first + 31] < 1.0:
            first += 32
        j, half = first, 16
        while half > 0:
            j += half * (u[i] - u[j + half - 1] < 1.0)
            half >>= 1
        above[i] = j = max(j, 1)  # 1 where scores are not finite, too
        below[n - j] += 1  # the places up to j are those that see i
    for i in range(1, n):
        below[i] += below[i - 1]


@kernel
def _sums_over_lower(x, ranks, n_grades, reach, columns, room, result):
    """Write `result[i, c] = Σ x[j, c]` over the j < reach[i] of lower rank than i, for c < columns.

    x and result are (n, >= columns), room is (9, >= n + 1).
    """
    if n_grades <= _FEW_GRADES:
        _sums_by_table(x, ranks, n_grades, reach, columns, room, result)
    else:
        _sums_by_tree(x, ranks, n_grades, reach, columns, result)


@kernel
def _sums_by_table(x, ranks, n_grades, reach, columns, room, result):
    """Look up running sums for four grades at a time: no branch depends on the data, which halves the time."""
    n = len(ranks)
    for column in range(columns):
        for j in range(n):
            room[8, j] = x[j, column]
        for low in range(0, n_grades, 4):
            for g in range(4):
                for j in range(n):
                    room[g, j] = room[8, j] if ranks[j] < low + g else 0.0
            a = b = c = d = 0.0
            for j in range(n):
                room[4, j], room[5, j], room[6, j], room[7, j] = a, b, c, d
                a += room[0, j]
                b += room[1, j]
                c += room[2, j]
                d += room[3, j]
            room[4, n], room[5, n], room[6, n], room[7, n] = a, b, c, d
            for i in range(n):
                if low <= ranks[i] < low + 4:
                    result[i, column] = room[4 + ranks[i] - low, reach[i]]


@kernel
def _sums_by_tree(x, ranks, n_grades, reach, columns, result):
    """Use a Fenwick tree over the grades."""
    tree = np.zeros((n_grades + 1, columns))
    j = 0
    for i in range(len(ranks)):
        while j < reach[i]:
            g = ranks[j] + 1
            while g <= n_grades:
                for c in range(columns):
                    tree[g, c] += x[j, c]
                g += g & -g
            j += 1
        result[i] = 0.0
        g = ranks[i]
        while g > 0:
            for c in range(columns):
                result[i, c] += tree[g, c]
            g -= g & -g


@kernel
def _pair_losses(s, ranks, order, offsets, n_grades, weight, first, last, kind, derivative, degrees, reach):
    """Return the loss of the queries `first:last`; write derivatives by row, violated pairs and reach by position."""
    longest = longest_query(offsets, first, last)
    all_u, all_ranks = np.empty(longest + 32), np.empty(longest, dtype=np.int32)
    all_x, all_sums, room = np.ones((longest, 3)), np.empty((longest, 3)), np.empty((9, longest + 1))
    total = 0.0
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        k, n = n_grades[query], stop - start
        if k < 2 or weight[query] == 0.0:
            for i in range(start, stop):
                derivative[order[i]] = 0.0
                degrees[i] = 0.0
            continue
        u, own, x, sums = all_u[: n + 32], all_ranks[:n], all_x[:n], all_sums[:n]
        u[n:] = -np.inf
        shift = s[start + n // 2]  # sums of squares around the middle of the scores cancel less
        loss = 0.0
        for i in range(n):  # the better document of a pair, from the highest score down
            u[i], own[i] = s[stop - 1 - i], ranks[stop - 1 - i]
            x[i, 1] = u[i] - shift
            x[i, 2] = x[i, 1] * x[i, 1]
        _within_margin(u, reach[0, start:stop], reach[1, start:stop])
        _sums_over_lower(x, own, k, reach[0, start:stop], np.int64(3 if kind == SQUARED_HINGE else 2), room, sums)
        for i in range(n):
            count, total_t, position = sums[i, 0], sums[i, 1], stop - 1 - i
            c = 1.0 - x[i, 1]
            if kind == SQUARED_HINGE:
                loss += c * (c * count + total_t) + (c * total_t + sums[i, 2])
                derivative[order[position]] = -2.0 * (c * count + total_t)
            else:
                loss += c * count + total_t
                derivative[order[position]] = -count
            degrees[position] = count
        for i in range(n):  # the worse document, from the lowest score up; ranks count from the top here
            own[i] = k - 1 - ranks[start + i]
            x[i, 1] = s[start + i] - shift
        _sums_over_lower(x, own, k, reach[1, start:stop], np.int64(2), room, sums)
        for i in range(n):
            count, row = sums[i, 0], order[start + i]
            if kind == SQUARED_HINGE:
                derivative[row] += 2.0 * ((1.0 + x[i, 1]) * count - sums[i, 1])
            else:
                derivative[row] += count
            degrees[start + i] += count
            derivative[row] *= weight[query]
        total += weight[query] * loss
    return total


@kernel
def _laplacian_products(ranks, order, offsets, n_grades, weight, degrees, reach, values, first, last, result):
    """Write `2 weight (degree_i v_i - Σ v_j)` over the violated pairs of each row."""
    longest = longest_query(offsets, first, last)
    all_ranks, all_x, all_sums = np.empty(longest, dtype=np.int32), np.empty((longest, 1)), np.empty((longest, 1))
    room = np.empty((9, longest + 1))
    for query in range(first, last):
        start, stop = offsets[query], offsets[query + 1]
        k, n = n_grades[query], stop - start
        if k < 2 or weight[query] == 0.0:
            for i in range(start, stop):
                result[order[i]] = 0.0
            continue
        own, x, sums = all_ranks[:n], all_x[:n], all_sums[:n]
        scale = 2.0 * weight[query]
        for i in range(n):
            x[i, 0], own[i] = values[order[stop - 1 - i]], ranks[stop - 1 - i]
        _sums_over_lower(x, own, k, reach[0, start:stop], np.int64(1), room, sums)
        for i in range(n):
            position = stop - 1 - i
            result[order[position]] = scale * (degrees[position] * x[i, 0] - sums[i, 0])
        for i in range(n):
            x[i, 0], own[i] = values[order[start + i]], k - 1 - ranks[start + i]
        _sums_over_lower(x, own, k, reach[1, start:stop], np.int64(1), room, sums)
        for i in range(n):
            result[order[start + i]] -= scale * sums[i, 0]
