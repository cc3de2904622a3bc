"""Candidate borders of each feature, and the codes of values between them.

A question of a tree is `x ≤ c` with c a border. A value's *code* is the number of its feature's borders below it, so
that `x ≤ borders[k]` is `code ≤ k`. NaN has the code 255.

Codes are stored in blocks of eight features, with the eight codes of a row side by side. A histogram pass reads them as
one word, and consecutive additions go to different features, so that frequent values do not delay the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.matrices.steps import StepIndex, count_below

MISSING = 255
MAX_BORDERS = 254
CELLS_A_BORDER = 4.0  # of the index for `code_columns`: most cells then have one border at most
BLOCK = 8  # features in a block of codes

_FEW = 1 << 16  # values that NumPy codes in some milliseconds: a first small fit compiles no kernel for them
_ROWS = 4_096  # rows that are copied or coded at once
_COLUMN_BYTES = 32 << 20  # columns that are copied at once


def find_borders(values: np.ndarray, parts: int, ends: np.ndarray | None = None) -> np.ndarray:
    """Return candidate borders of a feature (Belous 2015): the smallest and largest value of `parts` equal parts.

    A feature with at most `parts` different values has a border at each value, although the thesis would leave out rare
    values. With more than 127 parts, the smallest values are left out, because a code has room for 254 borders. The
    overall largest value is not a border.

    `values` (n,) are the observed values in ascending order. `ends` int64 (n,), for values that count more than
    once, is the number of copies up to each value; parts then have equal numbers of copies.

    >>> find_borders(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 2).tolist()
    [1.0, 3.0, 4.0]
    """
    if len(values) == 0:
        return np.empty(0)
    # Usually a part of the values shows that there are more than `parts` different ones.
    if len(_different(values[:: 1 + len(values) // (4 * parts)])) <= parts:
        different = _different(values)
        if len(different) <= parts:
            return different[:-1].astype(np.float64)
    return borders_among(values_at(border_ranks(count_of(values, ends), parts), values, ends), values[-1])


def _different(values: np.ndarray) -> np.ndarray:
    """Return the distinct values of a sorted array, at least one."""
    return values[np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))]


def count_of(values: np.ndarray, ends: np.ndarray | None) -> int:
    """Return the number of copies; for `ends` see `find_borders`."""
    return len(values) if ends is None or not len(ends) else int(ends[-1])


def values_at(ranks: np.ndarray, values: np.ndarray, ends: np.ndarray | None) -> np.ndarray:
    """Return the values of the copies at some ranks, from 0; for `ends` see `find_borders`."""
    return values[ranks if ends is None else np.searchsorted(ends, ranks, side="right")]


def border_ranks(n: int, parts: int) -> np.ndarray:
    """Return the ranks of candidate borders among n sorted values: the start and end of each of `parts` equal parts."""
    edges = (np.arange(parts + 1) * n) // parts
    start, stop = edges[:-1], edges[1:]
    start, stop = start[start < stop], stop[start < stop]
    return stop - 1 if 2 * len(stop) > MAX_BORDERS + 1 else np.concatenate([start, stop - 1])


def borders_among(candidates: np.ndarray, largest: float) -> np.ndarray:
    """Return the candidates as borders: float64, sorted, distinct, and below the largest value of all."""
    different = np.unique(candidates.astype(np.float64))
    return different[different < largest]


def scan_columns(
    X: np.ndarray,
    look: Callable[[int, np.ndarray, np.ndarray | None], Any],
    n_jobs: int | None = None,
    copies: np.ndarray | None = None,
) -> list[Any]:
    """Return `look(k, sorted observed values of column k, ends)` for every column, in column order.

    With `copies` (n,) of each row, `ends` are as in `find_borders`, and rows without a copy are left out; else `ends`
    is None. Columns are copied a few at a time, so that a row-major X is read in whole cache lines.
    """
    n, p = X.shape
    width = max(1, min(16, _COLUMN_BYTES // max(1, n * X.itemsize)))

    def work(start: int, stop: int) -> list[Any]:
        columns = np.empty((stop - start, n), dtype=X.dtype)
        for first, last in row_blocks(n, _ROWS):
            columns[:, first:last] = X[first:last, start:stop].T
        found = []
        for k in range(start, stop):
            column, ends = columns[k - start], None
            if copies is None:
                column.sort()
                column = _observed(column)
            else:
                column, ends = sort_with_copies(column, copies)
            found.append(look(k, column, ends))
        return found

    blocks = row_blocks(p, width)
    return list(chain.from_iterable(run_blocks(work, blocks, n_jobs)))


def sort_with_copies(values: np.ndarray, copies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the observed values (n,) with copies in ascending order, and the number of copies up to each value."""
    order = np.argsort(values)
    ordered = _observed(values[order])
    own = copies[order[: len(ordered)]]
    if not own.all():
        ordered, own = ordered[own > 0], own[own > 0]
    return ordered, np.cumsum(own, dtype=np.int64)


def _observed(ordered: np.ndarray) -> np.ndarray:
    """Return sorted values without the NaN at the end; -0.0, which sorts as 0.0, becomes 0.0 in place."""
    zero = ordered.dtype.type(0)
    ordered[ordered.searchsorted(zero) : ordered.searchsorted(zero, side="right")] = zero
    return ordered[: len(ordered) - int(np.isnan(ordered).sum())] if np.isnan(ordered[-1:]).any() else ordered


@dataclass
class CodedMatrix:
    """Rows as codes, in blocks of eight features."""

    # uint8 (ceil(p / 8), n, 8): `codes[s // 8, i, s % 8]` is the code in row i of the feature with slot s; 0 beyond p
    codes: np.ndarray = field(repr=False)
    borders: list[np.ndarray] = field(repr=False)  # of each feature
    n_bins: np.ndarray = field(repr=False)  # int32 (p,): number of borders + 1
    has_missing: np.ndarray = field(repr=False)  # bool (p,): features with a missing value

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[1])

    @property
    def n_features(self) -> int:
        return len(self.borders)

    @cached_property
    def slots(self) -> np.ndarray:
        """The slot of each feature, int64 (p,)."""
        return column_slots(self.n_bins)

    def column(self, feature: int) -> np.ndarray:
        """Return the codes (n,) of one feature, a strided view."""
        slot = int(self.slots[feature])
        return self.codes[slot // BLOCK, :, slot % BLOCK]

    def codes_at(self, feature: int) -> tuple[np.ndarray, np.uint64]:
        """Return unsigned numbers (n,) that are contiguous, and the position of the feature's eight bits in them."""
        slot = int(self.slots[feature])
        return self.codes.view(np.uint64)[slot // BLOCK, :, 0], np.uint64(8 * (slot % BLOCK))


def column_slots(n_bins: np.ndarray) -> np.ndarray:
    """Return the position of each feature among the codes, int64 (p,); features without borders are last."""
    return np.argsort(np.argsort(n_bins == 1, kind="stable"))


def code_rows(X: np.ndarray, borders: list[np.ndarray], n_jobs: int | None = None) -> CodedMatrix:
    """Return the codes of X under given borders. Time is O(n p log borders), and memory is one byte for each value."""
    n, p = X.shape
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    n_bins = np.array(list(map(len, borders)), dtype=np.int32) + np.int32(1)
    slots = column_slots(n_bins)
    order = np.argsort(slots)
    codes = np.zeros((-(-p // BLOCK), n, BLOCK), dtype=np.uint8)
    if X.size <= _FEW:
        return CodedMatrix(codes, borders, n_bins, _code_few(X.astype(dtype, copy=False), borders, slots, codes))
    index = StepIndex.of([borders[k] for k in order.tolist()], CELLS_A_BORDER).of_type(dtype)

    def work(start: int, stop: int) -> np.ndarray:
        columns = np.ascontiguousarray(X[start:stop].T[order], dtype=dtype)
        return code_columns(columns, index, codes, start)[slots]

    parts = run_blocks(work, row_blocks(n, _ROWS), n_jobs)
    missing = np.zeros(p, dtype=bool)
    for part in parts:
        missing |= part
    return CodedMatrix(codes, borders, n_bins, missing)


def _code_few(X: np.ndarray, borders: list[np.ndarray], slots: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Write the codes of X; return which columns have NaN."""
    missing = np.isnan(X)
    for k, slot in enumerate(slots.tolist()):
        codes[slot // BLOCK, :, slot % BLOCK] = np.where(missing[:, k], MISSING, np.searchsorted(borders[k], X[:, k]))
    return missing.any(axis=0)


@kernel
def code_columns(columns, index, codes, first):
    """Write the codes of `columns` (p, rows) to `codes` (blocks, n, 8) from row `first`; return which have NaN."""
    p, rows = columns.shape
    missing = np.zeros(p, dtype=np.bool_)
    found = np.empty(rows, dtype=np.uint16)
    for k in range(p):
        count_below(columns[k], np.int64(0), rows, index, k, np.int64(255), found)
        some = False
        for i in range(rows):
            codes[k >> 3, first + i, k & 7] = found[i]
        for i in range(rows):
            some |= found[i] == 255
        missing[k] = some
    return missing
