"""The sampled rows of a tree during its growth."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers
from truerank.data.grouping import offsets_of
from truerank.matrices.binning import CodedMatrix
from truerank.matrices.exact_sums import exact_total
from truerank.trees.histogram import PackedGradients, accumulate, accumulate_all, blocks_of_rows


class SampledRows:
    """The sampled rows of a tree during its growth: their leaves, and the histograms of one child of each leaf."""

    def __init__(self, matrix: CodedMatrix, packed: PackedGradients, workers: Workers) -> None:
        self.matrix, self.rows, self.words, self._workers = matrix, packed.rows, packed.words, workers
        n_blocks, n, _ = matrix.codes.shape
        self._codes = matrix.codes.view(np.uint64).reshape(n_blocks, n)
        self.leaf = np.zeros(len(self.rows), dtype=np.int32)
        self._all = len(self.rows) == n
        self._blocks = blocks_of_rows(len(self.rows)) or [(0, 0)]  # a partition may have no row of the sample
        self.bounds = np.append(0, np.array(self._blocks)[:, 1])  # int64: where the blocks start and end
        self.counts = np.diff(self.bounds)[:, None]  # int64: rows by block and leaf
        self._level = self.rows, self.words, self.counts

    def ask(self, level: int, feature: int, code: int, side: bool) -> np.ndarray:
        """Answer a question; return the number of rows in each leaf of the next level, int64 (2^(level + 1),)."""
        self._level = self.rows[:0], self.words[:0], self.counts[:0]  # memory
        codes, shift = self.matrix.codes_at(feature)

        self.counts = np.empty((len(self._blocks), 2 << level), dtype=np.int64)

        def divide(start: int, stop: int, counts: np.ndarray) -> None:
            leaf = self.leaf[start:stop]
            if self._all:
                answer(codes[start:stop], shift, self.rows[:0], leaf, level, code, side)
            else:
                answer(codes, shift, self.rows[start:stop], leaf, level, code, side)
            count_rows(leaf, counts)

        self._workers.run(divide, self._blocks, self.counts)
        total: np.ndarray = self.counts.sum(axis=0)
        return total

    def gather(self, level: int, small_is_right: np.ndarray) -> None:
        """Gather the rows of one child of each leaf of the previous level; all rows at level 0."""
        if level == 0:
            return
        half = 1 << (level - 1)
        chosen = np.arange(half) + half * small_is_right
        counts = self.counts.take(chosen, axis=1)  # indexed so it would lie by columns, for kernels another layout
        ends = offsets_of(counts.sum(axis=1)).tolist()
        rows, words = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.int64)
        self._level = rows, words, counts

        def gather(start: int, stop: int, first: int, last: int, own: np.ndarray) -> None:
            here = slice(start, stop)
            places = rows[first:last], words[first:last]
            gather_rows(self.rows[here], self.words[here], self.leaf[here], chosen, own, *places)

        self._workers.run(gather, self._blocks, ends, ends[1:], counts)

    def of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return words, int64 (n,), and leaves, uint16 (n,), of all rows, 0 for a row outside the sample."""
        n = self.matrix.n_rows
        small = self.leaf.astype(np.uint16)  # read in random order, so that it should fit the cache
        if len(self.rows) == n:
            return self.words, small
        words, leaf = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint16)
        words[self.rows], leaf[self.rows] = self.words, small
        return words, leaf

    def fill(self, block: int, fresh: np.ndarray) -> None:
        """Add the gathered rows' words to the histograms (leaves, 8 * 256) of one block of features."""
        rows, words, counts = self._level
        if len(fresh) == 1 and len(rows) == self._codes.shape[1]:  # the root, or a whole partition in its smaller child
            accumulate_all(self._codes[block], words, fresh[0])
        elif len(rows):
            accumulate(self._codes[block], rows, words, counts, fresh)


def squared_losses(packed: PackedGradients) -> np.ndarray:
    """Return g²/h of each sampled row in packed units."""
    shift = packed.scales.shift
    low = packed.words & ((1 << shift) - 1)
    g = ((packed.words - low) >> shift).astype(np.float64)
    return g * g / np.maximum(low.astype(np.float64), 1.0)


def loss_unit_of(parts: np.ndarray, total: np.ndarray, shift: int) -> float:
    """Return Σg²/Σh in packed units, from `exact_parts` of the squared losses and the sum of all words (1,)."""
    hessian = float(int(total[0]) & ((1 << shift) - 1))
    return exact_total(parts) / hessian if hessian > 0 else 0.0


@kernel
def answer(codes, shift, rows, leaf, level, code, missing_right):
    """Set bit `level` of the leaves of `rows` (empty: all) if their code, eight bits from `shift`, is above `code`."""
    last = np.int64(255 if missing_right else 254)
    if rows.size:
        for i in range(rows.size):
            c = np.int64(codes[np.uint32(rows[i])] >> shift) & 255
            leaf[i] |= np.int32((c > code) & (c <= last)) << level
        return
    for i in range(leaf.size):
        c = np.int64(codes[i] >> shift) & 255
        leaf[i] |= np.int32((c > code) & (c <= last)) << level


@kernel
def count_rows(leaf, result):
    """Count the rows of each leaf by four counters, so that neighbours in one leaf do not wait for each other."""
    counts = np.zeros((4, result.size), dtype=np.int64)
    a, b, c, d = counts
    fours = leaf.size - leaf.size % 4
    for i in range(0, fours, 4):
        a[np.uint32(leaf[i])] += 1
        b[np.uint32(leaf[i + 1])] += 1
        c[np.uint32(leaf[i + 2])] += 1
        d[np.uint32(leaf[i + 3])] += 1
    for i in range(fours, leaf.size):
        a[leaf[i]] += 1
    for q in range(result.size):
        result[q] = a[q] + b[q] + c[q] + d[q]


@kernel
def gather_rows(rows, words, leaf, chosen, counts, out_rows, out_words):
    """Write the rows and words of the chosen leaves, one leaf after the other; `counts` are the rows of each.

    No branch depends on a row: each row is written to `taken`, and overwritten by the next one unless it is chosen.
    """
    place = np.full(2 * chosen.size, -1)
    first = np.int64(0)
    for q in range(chosen.size):
        place[chosen[q]] = first
        first += counts[q]
    here = place >= 0
    taken = np.empty(rows.size + 1, dtype=np.int32)
    k = np.int64(0)
    for i in range(rows.size):
        taken[k] = i
        k += here[np.uint32(leaf[i])]
    for i in taken[:k]:
        own = np.uint32(leaf[i])
        at = place[own]
        out_rows[at] = rows[i]
        out_words[at] = words[i]
        place[own] = at + 1
