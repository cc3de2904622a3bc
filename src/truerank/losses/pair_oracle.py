"""The pairwise hinge as an oracle of the cutting-plane solver: each pair of grades is violated on its own."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.matrices.sorting import sort_descending


class PairHingeOracle:
    """`Σ max(0, 1 - (s_a - s_b))` over a query's pairs with grade a above grade b: RankSVM's loss, as a sum.

    For three or more grades the worst outcome is a set of pairs and no ranking. Cost: O(n log n) for the sort and
    O(n log L) for L grades.

    Parameters
    ----------
    grades : float64 array (n,)
    offsets : int64 array (m + 1,)

    Attributes
    ----------
    n_pairs : int64 array (m,)
        Pairs with different grades of each query; none means that the query is left out.

    Examples
    --------
    >>> oracle = PairHingeOracle(np.array([2.0, 1.0, 0.0]), np.array([0, 3]))
    >>> loss, coefficients = oracle(np.array([1.8, 0.9, 0.0]))
    >>> loss.tolist(), coefficients.tolist(), round(float(loss[0] + coefficients @ [1.8, 0.9, 0.0]), 12)
    ([2.0], [-1.0, 0.0, 1.0], 0.2)
    """

    def __init__(self, grades: np.ndarray, offsets: np.ndarray) -> None:
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        sizes = np.diff(self.offsets)
        query = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((grades, query))
        # Level of each row: rank of its grade among the grades of its query.
        new = np.ones(len(order), dtype=np.int64)
        new[1:] = (np.diff(np.asarray(grades)[order]) != 0) | (np.diff(query[order]) != 0)
        run = np.cumsum(new) - 1
        self.level = np.empty(len(order), dtype=np.int64)
        if len(order):
            self.level[order] = run - run[np.minimum(self.offsets[:-1], len(run) - 1)][query[order]]
        counts = np.bincount(run, minlength=0).astype(np.int64)
        run_query = query[order][np.flatnonzero(new)]
        same = np.bincount(run_query, weights=counts * (counts - 1) / 2, minlength=len(sizes)).astype(np.int64)
        self.n_pairs = sizes * (sizes - 1) // 2 - same
        self.kept = self.n_pairs > 0

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Number of violated pairs (m,) and coefficients (n,) of the scores in `Σ_violated (1 - s_a + s_b)`."""
        loss, coefficients = np.zeros(len(self.kept)), np.zeros(len(scores))
        scores = np.ascontiguousarray(scores, dtype=np.float64)

        def work(first: int, last: int) -> None:
            _violated_pairs(scores, self.level, self.offsets, first, last, loss, coefficients)

        run_blocks(work, query_blocks(self.offsets, 16_384), n_jobs)
        return loss, coefficients


@kernel
def _violated_pairs(scores, level, offsets, first, last, loss, coefficients):  # type: ignore[no-untyped-def]
    longest = 0
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    order = np.empty(longest, dtype=np.int64)
    spare = np.empty(longest, dtype=np.int64)
    tree = np.zeros(longest + 1, dtype=np.int64)  # Fenwick tree of counts by level
    for q in range(first, last):
        start, size = offsets[q], offsets[q + 1] - offsets[q]
        n_levels = 0
        for i in range(size):
            order[i] = start + i
            n_levels = max(n_levels, level[start + i] + 1)
        if n_levels < 2:
            continue
        sort_descending(scores, order, size, spare)
        # Row b is in a violated pair below a where level a > level b and s_a - s_b < 1. In descending order of b the
        # rows a with s_a - s_b >= 1 form a growing prefix; count the others: all minus the prefix.
        tree[: n_levels + 1] = 0
        total, prefix = 0, 0
        sizes = spare[:n_levels]  # rows by level; the sort is done with `spare`
        sizes[:] = 0
        for i in range(size):
            sizes[level[start + i]] += 1
        for c in range(n_levels - 2, -1, -1):
            sizes[c] += sizes[c + 1]  # rows at level c or higher
        for i in range(size):
            b = order[i]
            while scores[order[prefix]] - scores[b] >= 1.0:
                _add(tree, n_levels, level[order[prefix]])
                prefix += 1
            higher = sizes[level[b] + 1] if level[b] + 1 < n_levels else 0
            violated = higher - (prefix - _count_up_to(tree, level[b]))
            coefficients[b] = violated
            total += violated
        # The reverse: rows b below a with s_a - s_b >= 1 form a suffix, growing as a ascends from the end.
        tree[: n_levels + 1] = 0
        suffix = size - 1
        for i in range(size - 1, -1, -1):
            a = order[i]
            while scores[a] - scores[order[suffix]] >= 1.0:
                _add(tree, n_levels, level[order[suffix]])
                suffix -= 1
            lower = size - sizes[level[a]]
            kept = _count_up_to(tree, level[a] - 1)
            coefficients[a] -= lower - kept
        loss[q] = total


@kernel
def _add(tree, n_levels, at):  # type: ignore[no-untyped-def]
    i = at + 1
    while i <= n_levels:
        tree[i] += 1
        i += i & -i


@kernel
def _count_up_to(tree, at):  # type: ignore[no-untyped-def]
    i, total = at + 1, 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total
