"""Draw pairs of documents, or single documents, without a list of pairs: the index costs O(n), and a draw O(1).

Rows are sorted by query and grade, so that the better and the worse documents of a block of pairs (one query, one
grade against all lower ones) are two ranges of rows. A draw selects a block with a probability proportional to its
number of pairs, then one of its pairs. A guide table (Chen & Asau 1974) finds blocks in a third of the time of a
binary search.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.losses.graded_pairs import sort_grades

SAMPLINGS = ("rank", "row-norm-rank", "query-norm-rank", "combined-ranking")


class Blocks:
    """Ranges of rows that are drawn with probabilities in proportion to their weights (B,).

    A row of `ranges`, int64 (B, 4), holds start and size of the better rows, then start and size of the worse rows.
    """

    def __init__(self, ranges: np.ndarray, weight: np.ndarray) -> None:
        drawn = np.flatnonzero(weight > 0)
        self.ranges = np.ascontiguousarray(ranges[drawn], dtype=np.int64)
        self.ends = np.cumsum(np.asarray(weight[drawn], dtype=np.float64))
        self.weight = float(self.ends[-1]) if len(drawn) else 0.0
        # The block at the start of each of as many equal parts of [0, weight), from which a draw searches.
        parts = np.arange(len(drawn)) / max(len(drawn), 1) * self.weight
        self.guide = np.minimum(np.searchsorted(self.ends, parts, side="right"), max(len(drawn) - 1, 0))

    def draw(self, u: np.ndarray) -> np.ndarray:
        """Return blocks (n, 4) for uniform numbers (n,) in [0, 1)."""
        number = np.searchsorted(self.ends, u * self.weight, side="right")
        return self.ranges[np.minimum(number, len(self.ends) - 1)]


@dataclass(frozen=True)
class Sampler:
    """An index of the pairs or rows that can be drawn."""

    rows: np.ndarray  # int64 (n,): rows by query and grade; the blocks of pairs are ranges of it
    pairs: Blocks
    single: Blocks | None  # of single rows, whose ranges are of row numbers; None if only pairs are drawn
    pair_share: float  # probability that a step draws a pair

    @property
    def n_numbers(self) -> int:
        return 2 if self.single is None else 3

    def draw(self, generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next n draws, rows (a, b), b = -1 for a single row; each uses `n_numbers` random numbers."""
        u = generator.random((n, self.n_numbers))
        if self.pair_share <= 0.0:
            return self._single(u), np.full(n, -1, dtype=np.int64)
        a, b = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        _draw_pairs(u, self.pairs.ends, self.pairs.guide, self.pairs.ranges, self.rows, a, b)
        if self.pair_share < 1.0:
            alone = u[:, -1] >= self.pair_share
            a, b = np.where(alone, self._single(u), a), np.where(alone, -1, b)
        return a, b

    def _single(self, u: np.ndarray) -> np.ndarray:
        assert self.single is not None
        block = self.single.draw(u[:, 0])
        start, count = block[:, 0], block[:, 1]
        return start + np.minimum((u[:, 1] * count).astype(np.int64), count - 1)


def make_sampler(
    sampling: str,
    y: np.ndarray,
    offsets: np.ndarray,
    query_weight: np.ndarray | None,
    pair_probability: float = 0.5,
) -> Sampler:
    """Return the index for one of `SAMPLINGS`, in O(n) time and memory.

    `query_weight` (m,) is the weight of each pair or row of a query; in "query-norm-rank" of the query, in
    "row-norm-rank" of each of its rows. `pair_probability` is the probability of a pair in "combined-ranking".
    """
    weight = np.ones(len(offsets) - 1) if query_weight is None else query_weight
    rows, ranks, _, n_pairs = sort_grades(y, offsets)
    ranges, query = _pair_ranges(ranks, rows, offsets)
    single = _single_rows(len(y), offsets, query_weight) if sampling == "combined-ranking" else None
    if sampling == "query-norm-rank":
        weight = weight / np.maximum(n_pairs, 1.0)
    elif sampling == "row-norm-rank":
        weight = weight * np.diff(offsets) / np.maximum(n_pairs, 1.0)
    pairs = Blocks(ranges, weight[query] * ranges[:, 1].astype(np.float64) * ranges[:, 3])
    return Sampler(rows, pairs, single, 1.0 if single is None else pair_probability)


def _pair_ranges(ranks: np.ndarray, rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranges (B, 4) of each grade of a query against all lower grades, and the query of each range."""
    n = len(rows)
    sorted_ranks = ranks[rows]
    starts_group = np.ones(n, dtype=bool)
    starts_group[1:] = sorted_ranks[1:] != sorted_ranks[:-1]
    sizes = np.diff(offsets)
    starts_group[offsets[:-1][sizes > 0]] = True
    group_start = np.flatnonzero(starts_group)
    group_size = np.diff(np.append(group_start, n))
    query = np.searchsorted(offsets, group_start, side="right") - 1
    kept = sorted_ranks[group_start] > 0
    group_start, group_size, query = group_start[kept], group_size[kept], query[kept]
    blocks = np.column_stack([group_start, group_size, offsets[query], group_start - offsets[query]])
    return np.ascontiguousarray(blocks, dtype=np.int64), query


def _single_rows(n: int, offsets: np.ndarray, query_weight: np.ndarray | None) -> Blocks:
    """Return all rows as one block, or the rows of each query by its weight."""
    if query_weight is None:
        return Blocks(np.array([[0, n, 0, n]]), np.array([float(n)]))
    sizes = np.diff(offsets)
    return Blocks(np.column_stack([offsets[:-1], sizes, offsets[:-1], sizes]), sizes * query_weight)


@kernel
def _draw_pairs(u, ends, guide, ranges, rows, a, b):
    """Draw a block by the first random number of each row of u, and a pair of the block by the second."""
    last = len(ends) - 1
    for i in range(len(u)):
        at = u[i, 0] * ends[last]
        k = guide[min(int(u[i, 0] * len(guide)), last)]
        while k > 0 and ends[k - 1] > at:  # the guide's rounding
            k -= 1
        while k < last and ends[k] <= at:
            k += 1
        count = ranges[k, 1] * ranges[k, 3]
        pair = min(int(u[i, 1] * count), count - 1)
        better = int(pair / float(ranges[k, 3]))  # exact below 2^53, in a third of the time of whole numbers
        a[i] = rows[ranges[k, 0] + better]
        b[i] = rows[ranges[k, 2] + pair - better * ranges[k, 3]]
