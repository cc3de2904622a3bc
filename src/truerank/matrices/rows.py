"""Rows of a linear scorer, dense, sparse or binned: scores `X @ w` and sums `X.T @ c`, the same bits on any load.

BLAS is not used: the bits of its products change with the number of threads, with alignment and with the rows beside a
row. Here a score depends on its row's values alone, and sums run over fixed blocks of rows that are added in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.data.grouping import offsets_of

BLOCK = 32_768
FEW = 16  # columns with a weight up to which `linear_scores` does not even read the others
_FEW_BLOCK_VALUES = 1 << 19  # numbers in a block of rows: 4 MB as float64, which stays in a processor's cache
# Up to here rows are copied into the order that is asked for, which makes each later pass twice as fast: a row's
# neighbours in the order are then its neighbours in memory.
_COPIED_BYTES = 256_000_000
_MOST_COLUMNS_PRESENT = 65_536  # whose numbers fit 16 bits


class LinearRows:
    """The documents of a training problem, in the order and the units in which a learner wants them.

    Parameters
    ----------
    X : float32 or float64 array (n, p), CSR matrix (n, p), or BinnedMatrix
        Kept as it is, float32 values are widened as they are read.
    order : int64 array (n,), optional
        Row of X at each position; everything below speaks of positions. None keeps the order of X. A small X is copied
        into this order, the rows of a large one are read where they lie; the bits are the same.
    scale : float64 array (p,), optional
        What 1 means in each column, 0 to leave a column out: the learner sees `X / scale`. Not for a BinnedMatrix.
    intercept : float, default 0
        Value of one more feature, the last one, the same in every row; 0 for none.
    n_jobs : int, optional
        Threads of `scores` and `block_sums`.

    Attributes
    ----------
    n_rows, n_weights : int
        Rows, and weights of a scorer: the columns, or the binary features of a `BinnedMatrix`, and the intercept.
    values_by_row : float
        Numbers that a pass reads of a row, in the mean.

    Examples
    --------
    >>> rows = LinearRows(np.array([[1.0, 20.0], [3.0, 40.0]]), order=np.array([1, 0]), scale=np.array([1.0, 10.0]))
    >>> rows.scores(np.array([1.0, 1.0])).tolist()
    [7.0, 3.0]
    >>> rows.coef(np.array([1.0, 1.0])).tolist()
    [1.0, 0.1]
    """

    def __init__(
        self,
        X: Any,
        *,
        order: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        intercept: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_jobs, self.n_rows = n_jobs, int(X.shape[0])
        if order is not None and _bytes_of(X) <= _COPIED_BYTES:
            X, order = X[order], None
        if getattr(X, "is_binned_matrix", False):
            self._values: _Values = _binned(X)
        elif hasattr(X, "tocsr"):
            self._values = _Sparse(X)
        else:
            self._values = _Dense(X)
        self._moved = order is not None
        self._order = np.arange(self.n_rows) if order is None else np.ascontiguousarray(order, dtype=np.int64)
        self._unit = None if scale is None else np.divide(1.0, scale, out=np.zeros(len(scale)), where=scale > 0)
        self._intercept = intercept
        self.n_weights = self._values.n_weights + int(intercept != 0)
        self.values_by_row = self._values.by_row

    def coef(self, weights: np.ndarray) -> np.ndarray:
        """Weights (p,) for the columns of X as they are, from those of the learner (without the intercept)."""
        weights = weights[: self._values.n_weights]
        return weights.copy() if self._unit is None else weights * self._unit

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Score of each position, float64 (n,)."""
        result = np.empty(self.n_rows)
        read = self._read(weights)
        run_blocks(lambda lo, hi: read(result, lo, hi), row_blocks(self.n_rows, BLOCK), self.n_jobs)
        return result

    def write_scores(self, weights: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        """`result[start:stop]`: the scores of these positions."""
        self._read(weights)(result, start, stop)

    def sums(self, coefficients: np.ndarray, start: int, stop: int) -> np.ndarray:
        """`Σ_i coefficients[i] x_i` over the positions `start:stop`, float64 (n_weights,).

        Rows whose coefficient is 0 are not read.
        """
        total = self._values.sums(coefficients, self._order, start, stop)
        return self._finished(total[None], coefficients, [(start, stop)])[0]

    def block_sums(self, coefficients: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """The same over the positions of each block `bounds[b]:bounds[b + 1]`, float64 (blocks, n_weights)."""
        coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))
        pieces = [(b, start + lo, start + hi) for b, (start, stop) in enumerate(blocks) for lo, hi in
                  row_blocks(stop - start, BLOCK)]  # fmt: skip
        parts = run_blocks(lambda b, lo, hi: self._values.sums(coefficients, self._order, lo, hi), pieces, self.n_jobs)
        total = np.zeros((len(blocks), *self._values.sums(coefficients, self._order, 0, 0).shape))
        for (b, _, _), part in zip(pieces, parts):
            total[b] += part
        return self._finished(total, coefficients, blocks)

    def pair_spread(self, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """`Σ weight (x_a - x_b)²` over all pairs of a query with different ranks, by feature, float64 (n_weights,).

        For sparse and binned rows the products `x_a x_b` are left out. The intercept has none.

        Parameters
        ----------
        order : int64 array (n,)
            Positions of each query from the lowest rank to the highest.
        ranks : int32 array (n,)
        offsets : int64 array (m + 1,)
        weight : float64 array (m,)
        """
        spread = self._values.pair_spread(self._order, order, ranks, offsets, weight)
        if self._unit is not None:
            spread = spread * self._unit * self._unit
        return np.append(spread, 0.0) if self._intercept else spread

    def square_sums(self, coefficients: np.ndarray) -> np.ndarray:
        """`Σ_i coefficients[i] x_i²` over all positions, by feature, float64 (n_weights,)."""
        total = self._values.square_sums(coefficients, self._order)
        if self._unit is not None:
            total = total * self._unit * self._unit
        return np.append(total, self._intercept**2 * coefficients.sum()) if self._intercept else total

    @property
    def is_dense(self) -> bool:
        """Whether X is an array and there is no intercept: then `block` is an array and `dense_parts` may be asked."""
        return isinstance(self._values, _Dense) and not self._intercept

    def block(self, start: int, stop: int) -> Any:
        """The positions `start:stop` as the learner sees them, a float64 copy: (stop - start, p), or CSR."""
        return self._values.block(self._order[start:stop], self._unit)

    def parts(self) -> tuple[Any, np.ndarray | None]:
        """An array, or the three arrays of a CSR matrix, as the learner sees them, and the row at each position.

        Scaled rows are copied. The second is None where positions are rows.
        """
        if self._unit is None:
            return self._values.arrays(), self._order if self._moved else None
        X = self.block(0, self.n_rows)
        return csr_parts(X) if hasattr(X, "tocsr") else X, None

    def dense_parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, the row at each position, and what each column is multiplied by, for kernels."""
        assert isinstance(self._values, _Dense)
        unit = np.ones(self.n_weights) if self._unit is None else self._unit
        return self._values.X, self._order, unit

    def _read(self, weights: np.ndarray) -> _Reader:
        if np.shape(weights) != (self.n_weights,):
            raise InvalidInputError(
                f"there are {self.n_weights} features and the weights have shape {np.shape(weights)}"
            )
        table = self._values.table(np.ascontiguousarray(self.coef(weights), dtype=np.float64))
        bias = self._intercept * float(weights[-1]) if self._intercept else 0.0

        def read(result: np.ndarray, start: int, stop: int) -> None:
            self._values.scores(table, self._order, result, start, stop)
            if self._intercept:
                result[start:stop] += bias

        return read

    def _finished(self, sums: np.ndarray, coefficients: np.ndarray, blocks: list[tuple[int, int]]) -> np.ndarray:
        sums = self._values.by_feature(sums)
        if self._unit is not None:
            sums = sums * self._unit
        if not self._intercept:
            return sums
        totals = [self._intercept * coefficients[start:stop].sum() for start, stop in blocks]
        return np.column_stack([sums, totals])


def linear_scores(X: Any, coef: np.ndarray) -> np.ndarray:
    """Scores `X @ coef`, float64 (n,), whose bits depend on a row's values alone.

    A row has the same score alone or among others, wherever its memory starts, and with any number of threads, so that
    equal rows tie and a prediction can be repeated. With at most `FEW` weights that are not zero only their columns
    are read.

    Parameters
    ----------
    X : float32 or float64 array (n, p), CSR matrix (n, p), or BinnedMatrix
    coef : float64 array (p,)

    Notes
    -----
    O(n p), X is never copied. The sums of a dense and a sparse matrix run in different orders and agree to rounding.

    Examples
    --------
    >>> linear_scores(np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([0.5, 0.25])).tolist()
    [1.0, 1.0]
    """
    coef = np.ascontiguousarray(coef, dtype=np.float64)
    if hasattr(X, "linear_scores"):  # rows that live elsewhere
        return X.linear_scores(coef)
    used = np.flatnonzero(coef)
    dense = not hasattr(X, "tocsr") and not getattr(X, "is_binned_matrix", False)
    if not dense or len(used) > FEW:
        return LinearRows(X).scores(coef)
    scores = np.zeros(X.shape[0])
    if len(used):
        for start, stop in row_blocks(X.shape[0], max(1, _FEW_BLOCK_VALUES // X.shape[1])):
            scores[start:stop] = combine_columns([X[start:stop, k] for k in used], coef[used])
    return scores


def combine_columns(columns: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """`Σ_k weights[k] columns[k]`, float64 (n,), added column by column, as `linear_scores` does for few weights."""
    total = np.multiply(columns[0], weights[0], dtype=np.float64)
    term = np.empty_like(total)
    for column, weight in zip(columns[1:], weights[1:]):
        np.multiply(column, weight, out=term, dtype=np.float64)
        total += term
    return total


def csr_parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (float32 or float64), column indices and row starts (int64) of a CSR matrix, sorted within rows."""
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    parts = X.data, X.indices.astype(np.int64, copy=False), X.indptr.astype(np.int64, copy=False)
    data, indices, starts = (writable_view(np.ascontiguousarray(part)) for part in parts)
    return data, indices, starts


def _bytes_of(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes if hasattr(X, "tocsr") else X.nbytes)


def writable_view(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy where it is read-only (numba compiles read-only arrays apart)."""
    return array if array.flags.writeable else array.copy()


# How values are kept. `table` turns weights into what the kernels of one kind read, `by_feature` turns their sums back.


class _Reader(Protocol):
    def __call__(self, result: np.ndarray, start: int, stop: int) -> None: ...


class _Values(Protocol):
    n_weights: int
    by_row: float

    def table(self, weights: np.ndarray) -> np.ndarray: ...

    def scores(self, table: np.ndarray, order: np.ndarray, result: np.ndarray, start: int, stop: int) -> None: ...

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray: ...

    def by_feature(self, sums: np.ndarray) -> np.ndarray: ...

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray) -> np.ndarray: ...

    def block(self, rows: np.ndarray, unit: np.ndarray | None) -> Any: ...

    def arrays(self) -> Any: ...

    def pair_spread(
        self, rows: np.ndarray, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray
    ) -> np.ndarray: ...


class _ByColumn:
    """One weight for each column."""

    def table(self, weights: np.ndarray) -> np.ndarray:
        return weights

    def by_feature(self, sums: np.ndarray) -> np.ndarray:
        return sums


class _Dense(_ByColumn):
    def __init__(self, X: np.ndarray) -> None:
        self.X = writable_view(np.ascontiguousarray(X))
        self.n_weights, self.by_row = int(X.shape[1]), float(X.shape[1])

    def scores(self, table: np.ndarray, order: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        dense_scores(self.X, table, order, result, start, stop)

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        return dense_sums(self.X, coefficients, order, start, stop)

    def pair_spread(
        self, rows: np.ndarray, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        return _dense_pair_spread(self.X, rows, order, ranks, offsets, weight)

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray) -> np.ndarray:
        total = np.zeros(self.n_weights)
        for start, stop in row_blocks(len(order), BLOCK // 8):
            squares = np.square(self.X[order[start:stop]], dtype=np.float64)
            total += np.einsum("ij,i->j", squares, coefficients[start:stop])
        return total

    def arrays(self) -> np.ndarray:
        return self.X

    def block(self, rows: np.ndarray, unit: np.ndarray | None) -> np.ndarray:
        X = self.X[rows].astype(np.float64)
        return X if unit is None else X * unit


class _Sparse(_ByColumn):
    def __init__(self, X: Any) -> None:
        self.parts = csr_parts(X)
        self.n_weights, self.by_row = int(X.shape[1]), max(1.0, X.nnz / max(1, X.shape[0]))

    def scores(self, table: np.ndarray, order: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        _sparse_scores(*self.parts, table, order, result, start, stop)

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        return _sparse_sums(*self.parts, coefficients, order, self.n_weights, start, stop)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.parts

    def block(self, rows: np.ndarray, unit: np.ndarray | None) -> Any:
        from scipy import sparse

        data, indices, starts = self.parts
        whole = sparse.csr_matrix((data, indices, starts), shape=(len(starts) - 1, self.n_weights))
        X = whole[rows].astype(np.float64)
        return X if unit is None else X.multiply(unit[None, :]).tocsr()

    def pair_spread(
        self, rows: np.ndarray, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        return self.square_sums(_other_ranks(order, ranks, offsets, weight), rows)

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray) -> np.ndarray:
        data, indices, starts = self.parts
        squares = np.square(data, dtype=np.float64)
        return _sparse_sums(squares, indices, starts, coefficients, order, self.n_weights, 0, len(order))


class _Codes:
    """Codes of bins; a table has the score of each code of each column, float64 (p, codes)."""

    def __init__(self, starts: np.ndarray, n_rows: int, n_codes: int) -> None:
        self.starts = starts
        self.n_weights, self.by_row = int(starts[-1]), max(1.0, n_codes / max(1, n_rows))
        self.stride = int(np.diff(starts).max(initial=0)) + 1

    def table(self, weights: np.ndarray) -> np.ndarray:
        sizes = np.diff(self.starts)
        table = np.zeros((len(sizes), self.stride))
        for j, size in enumerate(sizes):
            table[j, 1 : 1 + size] = np.cumsum(weights[self.starts[j] : self.starts[j + 1]])
        return table

    def by_feature(self, sums: np.ndarray) -> np.ndarray:
        """Sums of binary features `code > t` (blocks, n_weights) from sums by code (blocks, p, codes)."""
        from_code = np.cumsum(sums[:, :, ::-1], axis=2)[:, :, ::-1]
        columns = [from_code[:, j, 1 : 1 + size] for j, size in enumerate(np.diff(self.starts))]
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(sums), 0))

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        raise NotImplementedError

    def block(self, rows: np.ndarray, unit: np.ndarray | None) -> Any:
        raise NotImplementedError("binned rows are not unpacked")

    def arrays(self) -> Any:
        raise NotImplementedError("binned rows have no array of values")

    def pair_spread(
        self, rows: np.ndarray, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        return self.square_sums(_other_ranks(order, ranks, offsets, weight), rows)

    def square_sums(self, coefficients: np.ndarray, order: np.ndarray) -> np.ndarray:
        return self.by_feature(self.sums(coefficients, order, 0, len(order))[None])[0]  # 0 and 1 are their squares


class _EveryCode(_Codes):
    def __init__(self, codes: np.ndarray, starts: np.ndarray) -> None:
        super().__init__(starts, len(codes), codes.size)
        self.codes = writable_view(codes)

    def scores(self, table: np.ndarray, order: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        _code_scores(self.codes, table, order, result, start, stop)

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        return _code_sums(self.codes, coefficients, order, self.stride, start, stop)


class _PresentCodes(_Codes):
    """Where most codes are missing: the others row by row, their columns, and where each row starts."""

    def __init__(self, codes: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> None:
        row_starts = offsets_of(sizes)
        super().__init__(starts, len(codes), int(row_starts[-1]))
        present = np.empty(row_starts[-1], dtype=np.uint8)
        columns = np.empty(row_starts[-1], dtype=np.uint16)
        for lo, hi in row_blocks(len(codes), BLOCK):
            _, column = np.nonzero(codes[lo:hi])
            columns[row_starts[lo] : row_starts[hi]] = column
            present[row_starts[lo] : row_starts[hi]] = codes[lo:hi][codes[lo:hi] > 0]
        self.parts = present, columns, row_starts

    def scores(self, table: np.ndarray, order: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        _present_scores(*self.parts, table, order, result, start, stop)

    def sums(self, coefficients: np.ndarray, order: np.ndarray, start: int, stop: int) -> np.ndarray:
        shape = len(self.starts) - 1, self.stride
        return _present_sums(*self.parts, coefficients, order, *shape, start, stop)


def _binned(X: Any) -> _Values:
    n, p = X.codes.shape
    sizes = np.zeros(n, dtype=np.int64)
    for lo, hi in row_blocks(n, BLOCK):
        sizes[lo:hi] = np.count_nonzero(X.codes[lo:hi], axis=1)
    if sizes.sum() * 4 > X.codes.size or p > _MOST_COLUMNS_PRESENT:
        return _EveryCode(X.codes, X.starts)
    return _PresentCodes(X.codes, X.starts, sizes)


# Kernels. `order` has the row at each position; results stand by position.


@kernel
def dense_scores(X, weights, order, scores, start, stop):
    p = X.shape[1]
    whole = p - p % 8
    for position in range(start, stop):
        i = order[position]
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
            i = order[position]
            for j in range(p):
                total[j] += c * X[i, j]
    return total


@kernel
def _dense_pair_spread(X, rows, order, ranks, offsets, weight):
    p = X.shape[1]
    total = np.zeros(p)
    lower = np.zeros((2, p))  # sums and sums of squares of the rows of lower rank
    equal = np.zeros((2, p))  # and of the rows of this rank so far
    origin = np.zeros(p)
    for query in range(len(offsets) - 1):
        start, stop = offsets[query], offsets[query + 1]
        if weight[query] == 0.0 or stop - start < 2:
            continue
        lower[:] = 0.0
        equal[:] = 0.0
        for j in range(p):
            origin[j] = X[rows[start], j]
        count = 0
        for i in range(start, stop):
            position = order[i]
            if i > start and ranks[position] != ranks[order[i - 1]]:
                count = i - start
                lower += equal
                equal[:] = 0.0
            for j in range(p):
                x = X[rows[position], j] - origin[j]
                total[j] += weight[query] * max(0.0, count * x * x - 2.0 * x * lower[0, j] + lower[1, j])
                equal[0, j] += x
                equal[1, j] += x * x
    return total


@kernel
def _other_ranks(order, ranks, offsets, weight):
    """Weighted number of rows of the same query with another rank, by position."""
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
        i = order[position]
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += data[e] * weights[indices[e]]
        scores[position] = total


@kernel
def _sparse_sums(data, indices, starts, coefficients, order, width, start, stop):
    total = np.zeros(width)
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = order[position]
            for e in range(starts[i], starts[i + 1]):
                total[indices[e]] += c * data[e]
    return total


@kernel
def _code_scores(codes, table, order, scores, start, stop):
    p = codes.shape[1]
    for position in range(start, stop):
        i = order[position]
        total = 0.0
        for j in range(p):
            code = codes[i, j]
            if code > 0:
                total += table[j, code]
        scores[position] = total


@kernel
def _code_sums(codes, coefficients, order, stride, start, stop):
    p = codes.shape[1]
    total = np.zeros((p, stride))
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = order[position]
            for j in range(p):
                code = codes[i, j]
                if code > 0:
                    total[j, code] += c
    return total


@kernel
def _present_scores(present, columns, starts, table, order, scores, start, stop):
    for position in range(start, stop):
        i = order[position]
        total = 0.0
        for e in range(starts[i], starts[i + 1]):
            total += table[columns[e], present[e]]
        scores[position] = total


@kernel
def _present_sums(present, columns, starts, coefficients, order, p, stride, start, stop):
    total = np.zeros((p, stride))
    for position in range(start, stop):
        c = coefficients[position]
        if c != 0.0:
            i = order[position]
            for e in range(starts[i], starts[i + 1]):
                total[columns[e], present[e]] += c
    return total
