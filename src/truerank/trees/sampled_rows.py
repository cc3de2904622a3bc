"""The sampled rows of a tree while it grows."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.binning import CodedMatrix
from truerank.matrices.exact_sums import exact_total
from truerank.trees.histogram import LARGE, ROWS, RUN, PackedGradients, accumulate, accumulate_all


class SampledRows:
    """The sampled rows of a tree while it grows: the leaf of each, and the histograms of one child of each leaf."""

    def __init__(self, matrix: CodedMatrix, packed: PackedGradients, workers: Workers) -> None:
        self.matrix, self.rows, self.words, self._workers = matrix, packed.rows, packed.words, workers
        n_blocks, n, _ = matrix.codes.shape
        self._codes = matrix.codes.view(np.uint64).reshape(n_blocks, n)
        self.leaf = np.zeros(len(self.rows), dtype=np.int32)
        self._blocks = row_blocks(len(self.rows), ROWS) or [(0, 0)]  # a partition may have no row of the sample
        self._level = self.rows, self.words, np.zeros(len(self.rows), dtype=np.int32)

    def ask(self, level: int, feature: int, code: int, side: bool) -> np.ndarray:
        """Answer a question; returns how many rows are in each leaf of the next level, int64 (2^(level + 1),)."""
        self._level = (self.rows[:0],) * 3  # memory
        column = self.matrix.column(feature)

        def divide(start: int, stop: int) -> np.ndarray:
            counts: np.ndarray = _divide(column, self.rows[start:stop], self.leaf[start:stop], level, code, side)
            return counts

        self._counts = np.array(self._workers.run(divide, self._blocks))  # by block and leaf
        total: np.ndarray = self._counts.sum(axis=0)
        return total

    def gather(self, level: int, small_is_right: np.ndarray) -> None:
        """Take the rows of one child of each leaf of the level before; all rows at level 0."""
        if level == 0:
            return
        half = 1 << (level - 1)
        taken = np.where(small_is_right, self._counts[:, half:], self._counts[:, :half]).sum(axis=1)
        ends = offsets_of(taken).tolist()
        rows, words, slots = (np.empty(ends[-1], dtype=kind) for kind in (np.int32, np.int64, np.int32))
        self._level = rows, words, slots

        def gather(start: int, stop: int, first: int, last: int) -> None:
            here = (of[start:stop] for of in (self.rows, self.words, self.leaf))
            out = (of[first:last] for of in (rows, words, slots))
            _gather(*here, level - 1, small_is_right, self.matrix.n_rows > LARGE, *out)

        self._workers.run(gather, [(*block, *place) for block, place in zip(self._blocks, zip(ends, ends[1:]))])

    def of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Words, int64 (n,), and leaves, uint16 (n,), of all rows, 0 where a row is not in the sample."""
        n = self.matrix.n_rows
        small = self.leaf.astype(np.uint16)  # what is read here and there is to stay in the cache
        if len(self.rows) == n:
            return self.words, small
        words, leaf = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint16)
        words[self.rows], leaf[self.rows] = self.words, small
        return words, leaf

    def fill(self, block: int, fresh: np.ndarray) -> None:
        """Add the gathered rows' words to the histograms (leaves, 8 * 256) of one block of features."""
        rows, words, slots = self._level
        if len(fresh) == 1 and len(rows) == self.matrix.n_rows:  # the root, or a whole partition in its smaller child
            accumulate_all(self._codes[block], words, fresh[0])
        else:
            accumulate(self._codes[block], rows, words, slots, fresh)


def squared_losses(packed: PackedGradients) -> np.ndarray:
    """g²/h of each sampled row in packed units: of a row drawn twice its squared residual times the draws."""
    shift = packed.scales.shift
    low = packed.words & ((1 << shift) - 1)
    g = ((packed.words - low) >> shift).astype(np.float64)
    return g * g / np.maximum(low.astype(np.float64), 1.0)


def loss_unit_of(parts: np.ndarray, total: np.ndarray, shift: int) -> float:
    """Σg²/Σh in units of the packed gain, from `exact_parts` of the squared losses and the sum of all words (1,)."""
    hessian = float(int(total[0]) & ((1 << shift) - 1))
    return exact_total(parts) / hessian if hessian > 0 else 0.0


@kernel
def _divide(column, rows, leaf, level, code, missing_right):
    """Answer the sampled rows' question; returns the number of rows in each leaf of the next level.

    No branch depends on a row: half of them would be mispredicted.
    """
    bit = 1 << level
    count = np.zeros(2 * bit, dtype=np.int64)
    for i in range(rows.size):
        c = np.int32(column[rows[i]])
        right = np.int32(c > code) if missing_right else np.int32(c > code) & np.int32(c != 255)
        q = leaf[i] | (right << level)
        leaf[i] = q
        count[q] += 1
    return count


@kernel
def _gather(rows, words, leaf, level, small_is_right, by_parent, out_rows, out_words, out_slots):
    """Rows, words and parents of the rows in the chosen child of each leaf, in row order, or of each run by parent.

    No branch depends on a row: every row is noted, and the next one over it unless it belongs here.
    """
    bit = 1 << level
    small = np.empty(bit, dtype=np.int32)
    for q in range(bit):
        small[q] = 1 if small_is_right[q] else 0
    group = np.int32(bit - 1 if by_parent else 0)
    place = np.empty(group + 1, dtype=np.int64)
    taken = np.empty(RUN, dtype=np.int32)
    first = np.int64(0)
    for start in range(0, rows.size, RUN):
        k = np.int64(0)
        for i in range(start, min(start + RUN, rows.size)):
            taken[k] = i
            k += np.int64((leaf[i] >> level) == small[leaf[i] & (bit - 1)])
        place[:] = 0
        for i in taken[:k]:
            place[leaf[i] & group] += 1
        for q in range(place.size):
            place[q], first = first, first + place[q]
        for i in taken[:k]:
            q = leaf[i] & (bit - 1)
            at = place[q & group]
            out_rows[at] = rows[i]
            out_words[at] = words[i]
            out_slots[at] = q
            place[q & group] = at + 1
