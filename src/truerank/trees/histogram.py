"""Sums of gradients and hessians by leaf, feature and code, as integers.

For each tree, the gradient and hessian of a row are rounded to integers and packed into a 64-bit word: the gradient in
the high bits, the hessian, which is never negative, in the low bits. Adding words adds both, and the sums do not depend
on the order of the rows. A leaf's histogram is its parent's histogram minus its sibling's histogram.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import Workers, row_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.binning import MISSING, CodedMatrix
from truerank.matrices.exact_sums import MAGNITUDE, add_numbers, exact_total

ROWS = 32_768  # rows in a task of a thread: their codes, 256 KB, stay in the cache
_HESSIAN_BITS = 30
_FINE = 4096  # units of an average row; with fewer, rows are rounded up and down in turn
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 times the golden ratio's fraction
_LEAST_SUM, _LARGEST_SUM = 1e-130, 1e130
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PackingScales:
    """Scales with which the gradients and hessians of a tree become integers."""

    shift: int  # bits of the hessian's sum
    gradient_scale: float
    hessian_scale: float
    # whether the integers of single rows are small; they are then rounded up and down in turn
    coarse_gradients: bool = False
    coarse_hessians: bool = False

    @classmethod
    def of(cls, sizes: GradientSizes) -> PackingScales:
        """Return scales with which no sum of words overflows: the magnitudes add up to less than 2^63.

        Integer hessians (squared error without weights) are exact; all other hessians are rounded to 2^-30 of their
        sum. Gradients are rounded to about 2^-44 of the sum of their magnitudes with integer hessians, and to 2^-31
        otherwise.

        Raise `InvalidInputError` if squares of the sums would overflow; sums below 1e-130 count as 0.
        """
        total_g, total_h = exact_total(sizes.gradients), exact_total(sizes.hessians)
        n = sizes.n_rows
        if not max(total_g, total_h) < _LARGEST_SUM:
            raise InvalidInputError(
                f"the gradients and hessians of the loss add up to {total_g:g} and {total_h:g}: training diverges. "
                "Lower learning_rate, or divide the grades or the weights by their largest value",
                code="diverged",
            )
        whole = bool(sizes.whole) and total_h < 2**_HESSIAN_BITS
        h_scale = 1.0 if whole or total_h <= _LEAST_SUM else 2.0**_HESSIAN_BITS / total_h
        # Rounding moves a value by less than 1.
        most = int(total_h) if whole else (2**_HESSIAN_BITS if total_h > _LEAST_SUM else 0) + n
        shift = max(1, most.bit_length())
        room = 2.0 ** (62 - shift) - n
        g_scale = 1.0 if total_g <= _LEAST_SUM else min(room, 2.0**52) / total_g
        return cls(shift, g_scale, h_scale, room < _FINE * n, not whole and _FINE * n > 2.0**_HESSIAN_BITS)

    def unpack(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of gradients and of hessians, float64, from sums of words."""
        low = words & ((1 << self.shift) - 1)
        return ((words - low) >> self.shift) / self.gradient_scale, low / self.hessian_scale


@dataclass(frozen=True)
class GradientSizes:
    """Exact sums of magnitudes, from which the scales are computed; the sums can be added over rows."""

    n_rows: int
    gradients: np.ndarray = field(repr=False)  # int64 (2, 2048): `exact_parts` of the magnitudes
    hessians: np.ndarray = field(repr=False)
    whole: bool  # whether all hessians are integers

    @classmethod
    def of(cls, g: np.ndarray, h: np.ndarray, workers: Workers) -> GradientSizes:
        """Return the sizes of gradients and hessians (n,), weights and draws included."""
        blocks = blocks_of_sums(len(g))
        parts = np.zeros((len(blocks), 2, 2, 2048), dtype=np.int64)

        def add(start: int, stop: int, own: np.ndarray) -> bool:
            some = for_kernel(h[start:stop])
            add_numbers(kernel_array(g[start:stop]).view(np.uint64), MAGNITUDE, own[0])
            add_numbers(some.view(np.uint64), MAGNITUDE, own[1])
            own[1] *= (stop - start) // len(some)  # one number may stand for all
            return bool((some == np.rint(some)).all())

        whole = all(workers.run(add, blocks, parts))
        return cls(len(g), parts[:, 0].sum(axis=0), parts[:, 1].sum(axis=0), whole)


@dataclass(frozen=True)
class PackedGradients:
    """Gradients and hessians of the sampled rows as packed integers."""

    rows: np.ndarray = field(repr=False)  # int32 (s,): the sampled rows, ascending
    # int64 (s,): `(round(g * gradient_scale) << shift) + round(h * hessian_scale)`
    words: np.ndarray = field(repr=False)
    scales: PackingScales


def blocks_of_rows(n: int) -> list[tuple[int, int]]:
    """Return ranges of at most `ROWS` rows: equal ranges, or ranges of a multiple of four rows if there are more."""
    return row_blocks(n, ROWS if n <= ROWS else -(-n // (4 * -(-n // (4 * ROWS)))))


def blocks_of_sums(n: int) -> list[tuple[int, int]]:
    """Return few ranges of rows, because `exact_parts` are large; totals do not depend on the ranges."""
    return row_blocks(n, max(ROWS, -(-n // 16)))


def drawn_rows(
    gradients: np.ndarray, hessians: np.ndarray, multiplicity: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the drawn rows, int32 (s,), and their gradients and hessians (s,) times their draws."""
    if multiplicity is None:
        return np.arange(len(gradients), dtype=np.int32), gradients, hessians
    rows = np.flatnonzero(multiplicity).astype(np.int32)
    drawn = multiplicity[rows]
    return rows, gradients[rows] * drawn, hessians[rows] * drawn


def pack_rows(
    rows: np.ndarray, g: np.ndarray, h: np.ndarray, scales: PackingScales, workers: Workers, first_row: int = 0
) -> PackedGradients:
    """Pack `rows` (s,); row 0 of this part has the number `first_row` in the training set."""
    words = np.empty(len(rows), dtype=np.int64)
    pack = partial(
        _pack, rows, for_kernel(g), for_kernel(h), scales.gradient_scale, scales.hessian_scale, scales.shift,
        scales.coarse_gradients, scales.coarse_hessians, first_row, words,
    )  # fmt: skip
    workers.run(pack, blocks_of_rows(len(rows)))
    return PackedGradients(rows, words, scales)


def for_kernel(values: np.ndarray) -> np.ndarray:
    """Return float64 values (n,) for a kernel, or (1,) for one broadcast number."""
    return kernel_array(values[:1] if values.strides == (0,) else values)


class SampledRows:
    """The sampled rows of a tree during growth: their leaves, and the histograms of one child of each leaf."""

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
        """Answer a question, and return the number of rows in each leaf of the next level, int64 (2^(level + 1),)."""
        self._level = self.rows[:0], self.words[:0], self.counts[:0]  # memory
        self.counts = np.empty((len(self._blocks), 2 << level), dtype=np.int64)
        rows = self.rows[:0] if self._all else self.rows
        ask = partial(answer_and_count, *self.matrix.codes_at(feature), rows, self.leaf, level, code, side)
        self._workers.run(ask, self._blocks, self.counts)
        total: np.ndarray = self.counts.sum(axis=0)
        return total

    def gather(self, level: int, small_is_right: np.ndarray) -> int:
        """Gather the rows of one child of each leaf of the previous level, all rows at level 0; return their number."""
        if level == 0:
            return len(self.rows)
        half = 1 << (level - 1)
        chosen = np.arange(half) + half * small_is_right
        counts = self.counts.take(chosen, axis=1)  # indexed so it would lie by columns, for kernels another layout
        ends = offsets_of(counts.sum(axis=1)).tolist()
        rows, words = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1], dtype=np.int64)
        self._level = rows, words, counts
        gather = partial(gather_rows, self.rows, self.words, self.leaf, chosen, rows, words)
        self._workers.run(gather, self._blocks, ends, counts)
        return len(rows)

    def of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return words, int64 (n,), and leaves, uint16 (n,), of all rows, 0 for a row outside the sample."""
        n = self.matrix.n_rows
        small = self.leaf.astype(np.uint16)  # read in random order, so that it should fit the cache
        if len(self.rows) == n:
            return self.words, small
        words, leaf = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint16)
        words[self.rows], leaf[self.rows] = self.words, small
        return words, leaf

    def fill(
        self, blocks: np.ndarray, hist: np.ndarray, places: np.ndarray, first: int = 0, used: np.ndarray = _NONE
    ) -> None:
        """Add the words of the gathered rows to histograms of some blocks of features; see `accumulate`."""
        accumulate(self._codes, blocks, *self._level, hist, places, first, used)


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
def _pack(rows, g, h, g_scale, h_scale, shift, coarse_g, coarse_h, first_row, words, start, stop):
    """Write words int64 (s,) of some of the `rows` with gradients and hessians g, h, (s,) or (1,)."""
    g_step, h_step = np.int64(g.size == rows.size), np.int64(h.size == rows.size)
    for i in range(start, stop):
        number = np.uint64(np.int64(rows[i]) + first_row)
        word = _rounded(g[i * g_step] * g_scale, number, coarse_g) << shift
        words[i] = word + _rounded(h[i * h_step] * h_scale, number, coarse_h)


@kernel
def _rounded(value, number, coarse):
    """Round `value` to an integer that depends on the value and the number of its row only.

    Millions of equal small values would all be rounded to the same side. Coarse values are therefore rounded up if
    their fraction is at least 1 - u_i, where u_i, the multiples of the golden ratio modulo 1, cover [0, 1) evenly.
    """
    if coarse:
        turn = np.float64((number * _GOLDEN) >> np.uint64(11)) * 2.0**-53
        return np.int64(np.floor(value + turn))
    return np.int64(np.rint(value))


@kernel
def accumulate(codes, blocks, rows, words, counts, hist, places, first, used):
    """Add each row's word to the histograms of its slot, for every block of features in `blocks`.

    `codes` uint64 (all blocks, n) hold the eight codes of a row; `rows` int32 (s,) and `words` int64 (s,) are in runs,
    and by slot within a run; `counts` int64 (runs, slots) are the rows of each. Histograms of block i are
    `hist[places[i], first:]`, int64 (places, leaves, 8 * 256). They are cleared before, unless `used` (8 places,), the
    number of codes of each feature in use, is empty.

    Within a slot one histogram, 16 KB, stays in the first-level cache. The codes of a run of rows are copied first, in
    a loop that does not wait for sums, because the rows are not neighbours in memory.
    """
    slots = counts.shape[1]
    everyone = slots == 1 and rows.size == codes.shape[1]
    eight = np.empty(min(rows.size, ROWS + 4), dtype=np.uint64)
    for i in range(blocks.size):
        here, out = codes[blocks[i]], hist[places[i]]
        if used.size:
            for q in range(first, first + slots):
                own = out[q]
                for k in range(8):
                    for at in range(256 * k, 256 * k + used[8 * places[i] + k]):
                        own[np.uint64(at)] = 0
                    own[256 * k + MISSING] = 0
        if everyone:
            own = out[first]
            for at in range(words.size):
                _add_eight(here[at], words[at], own)
            continue
        start = np.int64(0)
        for r in range(counts.shape[0]):
            size = np.int64(0)
            for q in range(slots):
                size += counts[r, q]
            for k in range(size):
                eight[np.uint64(k)] = here[np.uint32(rows[np.uint64(start + k)])]
            done = np.int64(0)
            for q in range(slots):
                own = out[first + q]
                for _ in range(counts[r, q]):
                    _add_eight(eight[np.uint64(done)], words[np.uint64(start + done)], own)
                    done += 1
            start += size


@kernel
def _add_eight(eight, word, hist):
    for k in range(8):
        hist[np.uint64(256 * k) + ((eight >> np.uint64(8 * k)) & np.uint64(255))] += word


@kernel
def split_histograms(hist, blocks, used, small_is_right):
    """Turn the parents in `hist[block, :n_parents]` into left children, and the smaller children after them into right
    children; `used` (8 blocks,) is the number of codes in use besides the last one, of missing values.
    """
    n_parents = small_is_right.size
    for block in blocks:
        for q in range(n_parents):
            left, right = hist[block, q], hist[block, q + n_parents]
            for k in range(8):
                start = np.uint64(256 * k)
                stop = start + np.uint64(used[8 * block + k])
                if small_is_right[q]:
                    for j in range(start, stop):
                        left[j] -= right[j]
                    left[start + np.uint64(MISSING)] -= right[start + np.uint64(MISSING)]
                    continue
                for j in range(start, stop):
                    small = right[j]
                    right[j] = left[j] - small
                    left[j] = small
                small = right[start + np.uint64(MISSING)]
                right[start + np.uint64(MISSING)] = left[start + np.uint64(MISSING)] - small
                left[start + np.uint64(MISSING)] = small


@kernel
def answer(codes, shift, rows, leaf, level, code, missing_right, start, stop):
    """Set bit `level` of a range of leaves of `rows` (empty: all) if the code, 8 bits from `shift`, is above `code`."""
    last = np.int64(255 if missing_right else 254)
    leaf = leaf[start:stop]
    if rows.size:
        rows = rows[start:stop]
        for i in range(rows.size):
            c = np.int64(codes[np.uint32(rows[i])] >> shift) & 255
            leaf[i] |= np.int32((c > code) & (c <= last)) << level
        return
    codes = codes[start:stop]
    for i in range(leaf.size):
        c = np.int64(codes[i] >> shift) & 255
        leaf[i] |= np.int32((c > code) & (c <= last)) << level


@kernel
def answer_and_count(codes, shift, rows, leaf, level, code, missing_right, start, stop, result):
    """Set bit `level` of a range of leaves as `answer` does, and count the rows of each leaf.

    Four counters, so that neighbouring rows of one leaf cause no waits.
    """
    answer(codes, shift, rows, leaf, level, code, missing_right, start, stop)
    leaf = leaf[start:stop]
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
def gather_rows(rows, words, leaf, chosen, out_rows, out_words, start, stop, first, counts):
    """Write the rows and words of the chosen leaves in a range from `first` on, one leaf after the other; `counts` are
    the rows of each.

    No branch depends on a row: each row is written to `taken`, and overwritten by the next one unless it is chosen.
    """
    rows, words, leaf = rows[start:stop], words[start:stop], leaf[start:stop]
    place = np.full(2 * chosen.size, -1)
    for q in range(chosen.size):
        place[chosen[q]] = first
        first += counts[q]
    here = place >= 0
    taken = np.empty(rows.size + 1, dtype=np.int32)
    k = np.int64(0)
    for i in range(rows.size):
        taken[np.uint64(k)] = i
        k += here[np.uint32(leaf[i])]
    for i in taken[:k]:
        row = np.uint32(i)
        own = np.uint32(leaf[row])
        at = place[own]
        out_rows[np.uint64(at)] = rows[row]
        out_words[np.uint64(at)] = words[row]
        place[own] = at + 1
