"""Fusion by majority votes of the runs over pairs of documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.core.kernel import kernel
from truerank.features.run_pool import RunPool


def condorcet(pool: RunPool) -> np.ndarray:
    """Condorcet-fuse: `weighted_condorcet` with one vote for each run."""
    return weighted_condorcet(pool, np.ones(pool.n_runs))


def weighted_condorcet(pool: RunPool, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    """Weighted Condorcet-fuse (Montague, Aslam 2002, Condorcet fusion for improved retrieval, CIKM).

    Documents are sorted by majority; of N documents the first gets N, the last 1. `a` beats `b` if the runs that
    rank a above b have a larger sum of weights than those that rank b above a. A run ranks its own documents above all
    others, and does not compare the others. Ties break by descending document id. If majorities are circular, the order
    is that of a merge sort from descending ids. No document loses to the next. Each topic costs O(r N log N).

    >>> runs = {"a": {"1": {"d1": 3.0, "d2": 2.0}}, "b": {"1": {"d2": 2.0}}, "c": {"1": {"d2": 9.0, "d3": 8.0}}}
    >>> pool = RunPool(runs)
    >>> pool.doc_ids.tolist(), weighted_condorcet(pool, [1, 1, 1]).tolist()
    (['d3', 'd2', 'd1'], [2.0, 3.0, 1.0])
    >>> weighted_condorcet(pool, [3, 1, 1]).tolist()
    [1.0, 2.0, 3.0]
    """
    result = np.empty(pool.n_rows)
    _sort_by_majority(pool.offsets, pool.list_offsets, pool.rows, pool.checked_weights(weights), result)
    return result


@kernel
def _beats(a, b, places, weights):
    margin = 0.0
    for j in range(len(weights)):
        if places[a, j] < places[b, j]:
            margin += weights[j]
        elif places[a, j] > places[b, j]:
            margin -= weights[j]
    return margin > 0.0


@kernel
def _merge(order, first, middle, last, places, weights, merged):
    """Merge two sorted neighbours of `order` into `merged`; on equal votes the left document comes first."""
    left, right = first, middle
    for k in range(first, last):
        if left < middle and (right == last or not _beats(order[right], order[left], places, weights)):
            merged[k] = order[left]
            left += 1
        else:
            merged[k] = order[right]
            right += 1


@kernel
def _sort_by_majority(offsets, lists, rows, weights, result):
    """Write the place of each row, from the end, in its topic's order by majority."""
    r = len(weights)
    for i in range(len(offsets) - 1):
        start, n = offsets[i], offsets[i + 1] - offsets[i]
        places = np.full((n, r), n, dtype=np.int64)
        for j in range(r):
            for k in range(lists[i * r + j], lists[i * r + j + 1]):
                places[rows[k] - start, j] = k - lists[i * r + j]
        order, merged = np.arange(n), np.empty(n, dtype=np.int64)
        width = 1
        while width < n:
            for first in range(0, n, 2 * width):
                _merge(order, first, min(first + width, n), min(first + 2 * width, n), places, weights, merged)
            order, merged = merged, order
            width *= 2
        for k in range(n):
            result[start + order[k]] = n - k
