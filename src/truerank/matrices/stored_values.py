"""Storage of the rows of a linear scorer (dense, sparse or codes), with kernels for scores and sums.

The kernels read any range of positions, in any order and type. SciPy takes the same time for products of a whole CSR
matrix, and three times as long for 60 blocks. BLAS's products of dense rows take 0.8 to 1 times the time of the dense
kernels (`python -m benchmarks libraries`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import row_blocks
from truerank.core.types import SparseMatrix
from truerank.data.grouping import offsets_of
from truerank.matrices.binned import BinnedMatrix

BLOCK = 32_768
_MOST_COLUMNS_PRESENT = 65_536  # whose numbers fit 16 bits


def csr_parts(X: SparseMatrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return values (float32 or float64), column indices and row starts (int64) of a CSR matrix, sorted within rows.

    Indices are uint32, or int64 beyond 2^32 columns; a product with int64 takes a quarter longer.
    """
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    if X.indices.dtype == np.int32:
        indices = X.indices.view(np.uint32)
    else:
        indices = X.indices.astype(np.uint32 if X.shape[1] <= 1 << 32 else np.int64, copy=False)
    parts = X.data, indices, X.indptr.astype(np.int64, copy=False)
    data, indices, starts = (kernel_array(part) for part in parts)
    return data, indices, starts


class DenseValues:
    """A float array (n, p). `scores` and `sums` of all kinds of rows are kernels with the arrays of the rows."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = self.parts = kernel_array(X)
        self.scores: Any = partial(dense_scores, self.X)
        self.sums: Any = partial(dense_sums, self.X)
        self.n_weights, self.by_row = int(X.shape[1]), float(X.shape[1])

    def pair_spread(self, pairs: tuple[np.ndarray, ...], order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        room = np.zeros((6, self.n_weights))
        _add_pair_spread(self.X, order, *pairs, unit, room)
        return room[0]

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        total = np.zeros(self.n_weights)
        for start, stop in row_blocks(len(coefficients), BLOCK // 8):
            rows = slice(start, stop) if order is None else order[start:stop]
            squares = np.square(self.X[rows] * unit)
            total += np.einsum("ij,i->j", squares, coefficients[start:stop])
        return total

    def block(self, rows: slice | np.ndarray, unit: np.ndarray | None) -> np.ndarray:
        X = self.X[rows].astype(np.float64, copy=isinstance(rows, slice))
        return X if unit is None else X * unit


class SparseValues:
    """A CSR matrix (n, p)."""

    def __init__(self, X: SparseMatrix) -> None:
        self.parts = csr_parts(X)
        self.n_weights, self.by_row = int(X.shape[1]), max(1.0, X.nnz / max(1, X.shape[0]))
        self.scores: Any = partial(_sparse_scores, *self.parts)
        self.sums: Any = partial(_sparse_sums, *self.parts, self.n_weights)

    def pair_spread(self, pairs: tuple[np.ndarray, ...], order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        return self.square_sums(_other_ranks(*pairs), order, unit)

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        data, indices, starts = self.parts
        squares = np.square(data * unit[indices])
        return _sparse_sums(squares, indices, starts, self.n_weights, coefficients, order, 0, len(coefficients))

    def block(self, rows: slice | np.ndarray, unit: np.ndarray | None) -> Any:
        from scipy import sparse

        data, indices, starts = self.parts
        whole = sparse.csr_matrix((data, indices, starts), shape=(len(starts) - 1, self.n_weights))
        X = whole[rows].astype(np.float64)
        return X if unit is None else X.multiply(unit[None, :]).tocsr()


class Codes:
    """Codes of bins. If most codes are missing, the missing codes are not stored.

    The kernels read a `table` with the score of each code of each column, float64 (p, codes).
    """

    def __init__(self, X: BinnedMatrix) -> None:
        codes, self.starts = kernel_array(X.codes), X.starts
        self.n_weights, n_codes = int(X.starts[-1]), codes.size
        self.stride = int(np.diff(X.starts).max(initial=0)) + 1
        self.scores: Any = partial(_code_scores, codes)
        self.sums: Any = partial(_code_sums, codes, self.stride)
        n, p = codes.shape
        sizes = np.zeros(n, dtype=np.int64)
        for lo, hi in row_blocks(n, BLOCK):
            sizes[lo:hi] = np.count_nonzero(codes[lo:hi], axis=1)
        if sizes.sum() * 4 <= codes.size and p <= _MOST_COLUMNS_PRESENT:
            row_starts = offsets_of(sizes)
            n_codes = int(row_starts[-1])
            present = np.empty(n_codes, dtype=np.uint8)
            columns = np.empty(n_codes, dtype=np.uint16)
            for lo, hi in row_blocks(n, BLOCK):
                _, column = np.nonzero(codes[lo:hi])
                columns[row_starts[lo] : row_starts[hi]] = column
                present[row_starts[lo] : row_starts[hi]] = codes[lo:hi][codes[lo:hi] > 0]
            self.scores = partial(_present_scores, present, columns, row_starts)
            self.sums = partial(_present_sums, present, columns, row_starts, p, self.stride)
        self.by_row = max(1.0, n_codes / max(1, n))

    def table(self, weights: np.ndarray) -> np.ndarray:
        sizes = np.diff(self.starts)
        table = np.zeros((len(sizes), self.stride))
        for j, size in enumerate(sizes):
            table[j, 1 : 1 + size] = np.cumsum(weights[self.starts[j] : self.starts[j + 1]])
        return table

    def by_feature(self, sums: np.ndarray) -> np.ndarray:
        """Return sums of binary features `code > t` (blocks, n_weights) from sums by code (blocks, p, codes)."""
        from_code = np.cumsum(sums[:, :, ::-1], axis=2)[:, :, ::-1]
        columns = [from_code[:, j, 1 : 1 + size] for j, size in enumerate(np.diff(self.starts))]
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(sums), 0))

    def pair_spread(self, pairs: tuple[np.ndarray, ...], order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        return self.square_sums(_other_ranks(*pairs), order, unit)

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray | None, unit: np.ndarray) -> np.ndarray:
        sums = self.sums(coefficients, order, 0, len(coefficients))  # 0 and 1 are their squares
        return self.by_feature(sums[None])[0] * unit * unit


# Kernels. `order` is the row at each position, or None if positions are rows; results are by position.


@kernel
def _row_at(order, position):
    """Return the row at a position; a separate version for None takes 40 % less time."""
    if order is None:
        return position
    return order[position]


@kernel
def dense_scores(X, weights, order, scores, start, stop):
    p = X.shape[1]
    whole = p - p % 8
    for position in range(start, stop):
        i = _row_at(order, position)
        # Eight sums in flight: one alone would wait for each addition.
        a = b = c = d = e = f = g = h = 0.0
        for j in range(0, whole, 8):
            a += X[i, j] * weights[j]
            b += X[i, j + 1] * weights[j + 1]
            c += X[i, j + 2] * weights[j + 2]
            d += X[i, j + 3] * weights[j + 3]
            e += X[i, j + 4] * weights[j + 4]
            f += X[i, j + 5] * weights[j + 5]
            g += X[i, j + 6] * weights[j + 6]
            h += X[i, j + 7] * weights[j + 7]
        total = ((a + e) + (c + g)) + ((b + f) + (d + h))
        for j in range(whole, p):
            total += X[i, j] * weights[j]
        scores[position] = total


@kernel
def dense_sums(X, coefficients, order, start, stop):
    p = X.shape[1]
    total = np.zeros(p)
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = _row_at(order, position)
            for j in range(p):
                total[j] += c * X[i, j]
    return total


@kernel
def _add_pair_spread(X, rows, order, ranks, offsets, weight, unit, room):
    """Add to `room[0]`. room[1:3] are the sums and sums of squares of the query's rows of lower rank, room[3:5] those
    of the rows of this rank so far, and room[5] is the query's first row.
    """
    p = X.shape[1]
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        if weight[query] == 0.0 or stop - start < 2:
            continue
        first = _row_at(rows, start)
        for j in range(p):
            room[1, j], room[2, j], room[3, j], room[4, j], room[5, j] = 0.0, 0.0, 0.0, 0.0, X[first, j] * unit[j]
        count = 0
        for i in range(start, stop):
            position = order[i]
            if i > start and ranks[position] != ranks[order[i - 1]]:
                count = i - start
                for j in range(p):
                    room[1, j] += room[3, j]
                    room[2, j] += room[4, j]
                    room[3, j], room[4, j] = 0.0, 0.0
            row = _row_at(rows, position)
            for j in range(p):
                x = X[row, j] * unit[j] - room[5, j]
                gap = count * x * x - 2.0 * x * room[1, j] + room[2, j]
                room[0, j] += weight[query] * (gap if gap > 0.0 else 0.0)
                room[3, j] += x
                room[4, j] += x * x


@kernel
def _other_ranks(order, ranks, offsets, weight):
    """Return the weighted number of rows of the same query with another rank, by position."""
    result = np.zeros(len(order))
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        i = start
        while i < stop:
            j = i
            while j < stop and ranks[order[j]] == ranks[order[i]]:
                j += 1
            for k in range(i, j):
                result[order[k]] = weight[query] * (stop - start - (j - i))
            i = j
    return result


@kernel
def _sparse_scores(data, indices, starts, weights, order, scores, start, stop):
    for position in range(start, stop):
        i = _row_at(order, position)
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += data[e] * weights[indices[e]]
        scores[position] = total


@kernel
def _sparse_sums(data, indices, starts, width, coefficients, order, start, stop):
    total = np.zeros(width)
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = _row_at(order, position)
            for e in range(starts[i], starts[i + 1]):
                total[indices[e]] += c * data[e]
    return total


@kernel
def _code_scores(codes, table, order, scores, start, stop):
    p = codes.shape[1]
    for position in range(start, stop):
        i = _row_at(order, position)
        total = 0.0
        for j in range(p):
            code = codes[i, j]
            if code > 0:
                total += table[j, code]
        scores[position] = total


@kernel
def _code_sums(codes, stride, coefficients, order, start, stop):
    p = codes.shape[1]
    total = np.zeros((p, stride))
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = _row_at(order, position)
            for j in range(p):
                code = codes[i, j]
                if code > 0:
                    total[j, code] += c
    return total


@kernel
def _present_scores(present, columns, starts, table, order, scores, start, stop):
    for position in range(start, stop):
        i = _row_at(order, position)
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += table[columns[e], present[e]]
        scores[position] = total


@kernel
def _present_sums(present, columns, starts, p, stride, coefficients, order, start, stop):
    total = np.zeros((p, stride))
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = _row_at(order, position)
            for e in range(starts[i], starts[i + 1]):
                total[columns[e], present[e]] += c
    return total
