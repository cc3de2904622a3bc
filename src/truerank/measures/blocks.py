"""Sort within queries of different lengths: short queries of similar length as rows of a matrix, long ones alone."""

from __future__ import annotations

from typing import Literal

import numpy as np

# Queries with so many documents are sorted by a call of their own, without gathering and padding.
_LONG = 512
# A block costs about as much as sorting so many documents. Padding may cost as much, or 1/8 of the cost of the block.
_OVERHEAD = 1000


class Blocks:
    """The partition of queries for sorting; it depends only on their lengths."""

    __slots__ = ("_blocks", "_long", "_n")

    def __init__(self, offsets: np.ndarray) -> None:
        sizes = np.diff(offsets)
        self._n = int(offsets[-1])
        self._blocks: list[_Block] = []
        self._long: list[tuple[int, int]] = []
        if len(sizes) and (sizes == sizes[0]).all():
            if sizes[0]:
                self._blocks = [_Block(np.arange(len(sizes)), offsets)]  # one block, its rows in their order
            return
        long = np.flatnonzero(sizes >= _LONG)
        self._long = list(zip(offsets[long].tolist(), offsets[long + 1].tolist()))
        queries = np.argsort(-sizes, kind="stable")
        queries = queries[(sizes[queries] > 0) & (sizes[queries] < _LONG)]
        ordered = sizes[queries]
        below = np.concatenate([[0], np.cumsum(ordered)])
        position = 0
        while position < len(queries):
            real = below[position + 1 :] - below[position]
            wasted = ordered[position] * np.arange(1, len(real) + 1) - real
            last = position + int(np.flatnonzero(wasted <= np.maximum(_OVERHEAD, real // 8))[-1]) + 1
            self._blocks.append(_Block(np.sort(queries[position:last]), offsets))
            position = last

    def argsort(self, values: np.ndarray, *, stable: bool = False) -> np.ndarray:
        """Return rows (k, n) in ascending order of values (k, n + 1) within each query.

        The last column of the values must be inf, which pads short queries. `stable` keeps the row order among ties; it
        is required if other values are inf.
        """
        k, n = values.shape[0], self._n
        kind: Literal["stable"] | None = "stable" if stable else None
        if len(self._blocks) == 1 and self._blocks[0].whole:
            block = self._blocks[0]
            rows = np.argsort(values[:, :n].reshape(k, *block.shape), axis=-1, kind=kind)
            rows += block.first[:, None]
            return rows.reshape(k, n)
        out = np.empty((k, n), dtype=np.int64)
        for start, end in self._long:
            piece = np.argsort(values[:, start:end], axis=-1, kind=kind)
            np.add(piece, start, out=out[:, start:end])
        for block in self._blocks:
            rows = np.argsort(values[:, block.index], axis=-1, kind=kind)
            rows += block.first[:, None]
            rows = rows.reshape(k, -1)
            out[:, block.target] = rows if block.full is None else rows[:, block.full]
        return out

    def sort(self, values: np.ndarray) -> np.ndarray:
        """Return values (n,) in ascending order within each query."""
        if len(self._blocks) == 1 and self._blocks[0].whole:
            return np.sort(values.reshape(self._blocks[0].shape), axis=1).ravel()
        out = np.empty_like(values)
        padded = np.append(values, np.inf)
        for start, end in self._long:
            out[start:end] = np.sort(values[start:end])
        for block in self._blocks:
            rows = np.sort(padded[block.index], axis=1).ravel()
            out[block.target] = rows if block.full is None else rows[block.full]
        return out


class _Block:
    """Queries that are sorted as the rows of one matrix.

    `index` (q, length) are rows of the data, n is the padding; `first` (q,) is the first row of each query. `target`
    (r,) are the rows in the order of the matrix, `full` (r,) their flat places in the matrix (None without padding).
    `whole` is True if the block is all rows in their order.
    """

    __slots__ = ("first", "full", "index", "shape", "target", "whole")

    def __init__(self, queries: np.ndarray, offsets: np.ndarray) -> None:
        sizes = offsets[queries + 1] - offsets[queries]
        self.first = offsets[queries]
        length = int(sizes.max())
        self.shape = (len(queries), length)
        index = self.first[:, None] + np.arange(length)
        self.whole = bool(sizes.min() == length and index.size == offsets[-1])
        if sizes.min() == length:
            self.full, self.target, self.index = None, index.ravel(), index
            return
        inside = np.arange(length) < sizes[:, None]
        self.full = np.flatnonzero(inside)
        self.target = index[inside]
        self.index = np.where(inside, index, int(offsets[-1]))
