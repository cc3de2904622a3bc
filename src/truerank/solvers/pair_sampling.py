"""Drawing pairs of documents, or single ones, in O(1) after an index of O(n).

Rows are ordered by query and grade, so that the better and the worse documents of a block of pairs (one query, one
grade against all lower ones) are two ranges of rows. A draw takes a block from an alias table (Walker 1977, Vose 1991)
with probability proportional to its number of pairs, then a row from each range: uniform over the pairs, and no drawn
pair is ever thrown away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.losses.graded_pairs import grade_ranks, order_by_rank

SAMPLINGS = (
    "rank", "row-norm-rank", "query-norm-rank", "roc", "combined-ranking", "combined-roc", "stochastic",
    "balanced-stochastic",
)  # fmt: skip
NEEDS_PAIRS = (
    "rank",
    "row-norm-rank",
    "query-norm-rank",
    "roc",
    "combined-ranking",
    "combined-roc",
    "balanced-stochastic",
)
NEEDS_CLASSES = ("roc", "combined-roc", "balanced-stochastic")

# Forms of a draw, as the kernels know them.
_PAIRS_OF_A_BLOCK, _INDEPENDENT_PAIRS, _ALTERNATING_ROWS = 0, 1, 2


@dataclass(frozen=True)
class Sampler:
    """An index to draw from.

    Attributes
    ----------
    rows : int64 array
        Rows by query and grade; blocks are ranges of it.
    first, second, single : (float64 array (B, 2), int64 array (B, 4)) each
        Alias table and blocks. A block is (start and size of the better rows, start and size of the worse ones).
        Pairs come from `first`, or their better row from `first` and their worse one from `second`; single rows come
        from `single`.
    form : int
        How the tables are read.
    pair_share : float
        Probability that a step takes a pair.
    weight : float
        Total weight of what can be drawn (pairs, or rows where only rows are drawn); 0 when there is nothing.
    """

    rows: np.ndarray
    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]
    single: tuple[np.ndarray, np.ndarray]
    form: int
    pair_share: float
    weight: float

    def draw(self, state: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next n draws, rows (a, b); b is -1 where a single row is drawn. Advances the state."""
        a, b = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        draw_batch(self.rows, *self.first, *self.second, *self.single, self.form, self.pair_share, state, 0, a, b, n)
        return a, b


def make_sampler(
    sampling: str,
    y: np.ndarray,
    offsets: np.ndarray,
    query_weight: np.ndarray | None,
    relevant: np.ndarray | None,
    pair_probability: float = 0.5,
) -> Sampler:
    """The index for one way of drawing.

    Parameters
    ----------
    sampling : str
        One of `SAMPLINGS`.
    y : float64 array (n,)
        Grades, in grouped order.
    offsets : int64 array (m + 1,)
    query_weight : float64 array (m,), optional
        Weight of each pair or row of a query; in "query-norm-rank" the weight of the query, in "row-norm-rank" of
        each row that the query counts.
    relevant : bool array (n,), optional
        The better class, for the samplings in `NEEDS_CLASSES`.
    pair_probability : float
        Probability of a pair in the combined samplings.

    Notes
    -----
    O(n) time and memory: a permutation of the rows and 48 bytes for each block.
    """
    nothing = alias_table(np.zeros(0)), np.zeros((0, 4), dtype=np.int64)
    weight = np.ones(len(offsets) - 1) if query_weight is None else query_weight
    share = pair_probability if sampling.startswith("combined") else 1.0
    if sampling in NEEDS_CLASSES:
        rows, better, worse = _class_blocks(np.asarray(relevant), offsets, weight, query_weight is None)
        total = better[2] * worse[2]
        first, second = (alias_table(better[1]), better[0]), (alias_table(worse[1]), worse[0])
        single = _row_blocks(len(y), offsets, weight, query_weight is None) if share < 1.0 else nothing
        form = _ALTERNATING_ROWS if sampling == "balanced-stochastic" else _INDEPENDENT_PAIRS
        return Sampler(rows, first, second, single, form, share, total)
    if sampling == "stochastic":
        single = _row_blocks(len(y), offsets, weight, query_weight is None)
        rows = np.arange(len(y), dtype=np.int64)
        return Sampler(rows, nothing, nothing, single, _PAIRS_OF_A_BLOCK, 0.0, float(weight @ np.diff(offsets)))
    ranks, _, n_pairs = grade_ranks(y, offsets)
    rows = order_by_rank(ranks, offsets)
    blocks, query = _pair_blocks(ranks, rows, offsets)
    if sampling == "query-norm-rank":
        weight = weight / np.maximum(n_pairs, 1.0)
    elif sampling == "row-norm-rank":
        weight = weight * np.diff(offsets) / np.maximum(n_pairs, 1.0)
    block_weight = weight[query] * blocks[:, 1].astype(np.float64) * blocks[:, 3]
    first = alias_table(block_weight), blocks
    single = _row_blocks(len(y), offsets, weight, query_weight is None) if share < 1.0 else nothing
    return Sampler(rows, first, nothing, single, _PAIRS_OF_A_BLOCK, share, float(block_weight.sum()))


def _pair_blocks(ranks: np.ndarray, rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks (B, 4) of one grade of a query against all lower ones, and the query of each."""
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


def _class_blocks(
    relevant: np.ndarray, offsets: np.ndarray, weight: np.ndarray, equal: bool
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, float], tuple[np.ndarray, np.ndarray, float]]:
    """Rows with the relevant ones first, and for each class its blocks by query, their weights and the total weight."""
    rows = np.concatenate([np.flatnonzero(relevant), np.flatnonzero(~relevant)]).astype(np.int64)
    result = []
    start = 0
    for positive in (True, False):
        counts = np.add.reduceat(np.append(relevant == positive, False), offsets[:-1], dtype=np.int64)
        counts[np.diff(offsets) == 0] = 0
        sizes = np.array([counts.sum()]) if equal else counts
        weights = sizes * (1.0 if equal else weight)
        starts = start + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        start += int(sizes.sum())
        kept = weights > 0
        blocks = np.column_stack([starts, sizes, starts, sizes])[kept].astype(np.int64)
        result.append((np.ascontiguousarray(blocks), weights[kept].astype(np.float64), float(weights.sum())))
    return rows, result[0], result[1]


def _row_blocks(n: int, offsets: np.ndarray, weight: np.ndarray, equal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Table and blocks of single rows: all rows, or the rows of each query by its weight."""
    starts, sizes = (np.zeros(1, np.int64), np.array([n])) if equal else (offsets[:-1], np.diff(offsets))
    blocks = np.column_stack([starts, sizes, starts, sizes]).astype(np.int64)
    return alias_table(sizes * (np.ones(1) if equal else weight)), np.ascontiguousarray(blocks)


def alias_table(weight: np.ndarray) -> np.ndarray:
    """Vose's alias table: entry j is kept with probability `table[j, 0]`, else `table[j, 1]` is taken; (B, 2).

    Drawing j uniformly then yields k with probability `weight[k] / sum(weight)`. Entries of weight 0 are never drawn.
    """
    table = np.zeros((len(weight), 2))
    if len(weight):
        _fill_alias_table(np.ascontiguousarray(weight, dtype=np.float64), table)
    return table


# Kernels. Random numbers: xoroshiro128+ (Blackman & Vigna 2018), state uint64 (2,). Additions modulo 2^64 are done in
# halves, so that the kernels give the same numbers, and no overflow, as plain Python.


@kernel
def _fill_alias_table(weight, table):  # type: ignore[no-untyped-def]
    n = len(weight)
    total = 0.0
    largest = 0
    for j in range(n):
        total += weight[j]
        if weight[j] > weight[largest]:
            largest = j
    share = np.empty(n)
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n_small = n_large = 0
    for j in range(n):
        share[j] = weight[j] * n / total if total > 0.0 else 1.0
        table[j, 1] = j
        if share[j] < 1.0:
            small[n_small] = j
            n_small += 1
        else:
            large[n_large] = j
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        j, k = small[n_small], large[n_large - 1]
        table[j, 0] = share[j]
        table[j, 1] = k
        share[k] -= 1.0 - share[j]
        if share[k] < 1.0:
            n_large -= 1
            small[n_small] = k
            n_small += 1
    while n_large > 0:
        n_large -= 1
        table[large[n_large], 0] = 1.0
    while n_small > 0:  # left over by rounding: whole, unless nothing may draw them
        n_small -= 1
        j = small[n_small]
        if weight[j] > 0.0:
            table[j, 0] = 1.0
        else:
            table[j, 0] = 0.0
            table[j, 1] = largest


@kernel
def _next(s0, s1):  # type: ignore[no-untyped-def]
    """A uniform number in [0, 1) of 53 bits, and the next state."""
    half, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
    low = (s0 & low_bits) + (s1 & low_bits)
    high = (s0 >> half) + (s1 >> half) + (low >> half)
    word = ((high & low_bits) << half) | (low & low_bits)
    s1 = s1 ^ s0
    s0 = ((s0 << np.uint64(24)) | (s0 >> np.uint64(40))) ^ s1 ^ (s1 << np.uint64(16))
    s1 = (s1 << np.uint64(37)) | (s1 >> np.uint64(27))
    return np.float64(word >> np.uint64(11)) * 1.1102230246251565e-16, s0, s1


@kernel
def _pick(table, s0, s1):  # type: ignore[no-untyped-def]
    """An entry of an alias table: one random number gives both the entry and the coin."""
    if len(table) == 1:
        return 0, s0, s1
    u, s0, s1 = _next(s0, s1)
    place = u * len(table)
    j = int(place)
    if place - j >= table[j, 0]:
        j = int(table[j, 1])
    return j, s0, s1


@kernel
def draw_batch(  # type: ignore[no-untyped-def]
    rows, first, first_blocks, second, second_blocks, single, single_blocks, form, pair_share, state, turn, a, b, n
):
    """Write n draws to a and b. `turn` is the number of rows drawn before, for the alternating form."""
    s0, s1 = state[0], state[1]
    for i in range(n):
        if form == 2:
            if (turn + i) % 2 == 0:
                k, s0, s1 = _pick(first, s0, s1)
                start, size = first_blocks[k, 0], first_blocks[k, 1]
            else:
                k, s0, s1 = _pick(second, s0, s1)
                start, size = second_blocks[k, 2], second_blocks[k, 3]
            u, s0, s1 = _next(s0, s1)
            a[i], b[i] = rows[start + int(u * size)], -1
            continue
        pair = pair_share > 0.0
        if pair and pair_share < 1.0:
            u, s0, s1 = _next(s0, s1)
            pair = u < pair_share
        if not pair:
            k, s0, s1 = _pick(single, s0, s1)
            u, s0, s1 = _next(s0, s1)
            a[i], b[i] = single_blocks[k, 0] + int(u * single_blocks[k, 1]), -1
            continue
        k, s0, s1 = _pick(first, s0, s1)
        u, s0, s1 = _next(s0, s1)
        a[i] = rows[first_blocks[k, 0] + int(u * first_blocks[k, 1])]
        u, s0, s1 = _next(s0, s1)
        if form == 1:
            k, s0, s1 = _pick(second, s0, s1)
            b[i] = rows[second_blocks[k, 2] + int(u * second_blocks[k, 3])]
        else:
            b[i] = rows[first_blocks[k, 2] + int(u * first_blocks[k, 3])]
    state[0], state[1] = s0, s1
