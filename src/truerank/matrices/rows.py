"""Scores `X @ w` and sums `X[block].T @ c[block]` of dense, sparse and binned rows, the same bits on any machine load.

Rows are cut into fixed blocks whose sums are added in order, so the number of threads does not show in the result;
BLAS makes no such promise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks

BLOCK = 32_768


class LinearRows:
    """Rows of a linear scorer: dense, CSR or binned, with the two products that training needs.

    Parameters
    ----------
    X : float32 or float64 array (n, p), CSR matrix (n, p), or BinnedMatrix
    n_jobs : int, optional
        Threads.

    Attributes
    ----------
    n_rows, n_weights : int
        Rows, and weights of a scorer: the columns, or the binary features of a `BinnedMatrix`.
    """

    def __init__(self, X: Any, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.n_rows = int(X.shape[0])
        self.starts: np.ndarray | None = None
        if getattr(X, "is_binned_matrix", False):
            self.starts = X.starts
            self.n_weights = int(X.n_binary)
            self._arrays: tuple[np.ndarray, ...] = _present_codes(X.codes)
        elif hasattr(X, "tocsr"):
            self.n_weights = int(X.shape[1])
            self._arrays = (
                np.ascontiguousarray(X.data, dtype=np.float64),
                np.ascontiguousarray(X.indices, dtype=np.int64),
                np.ascontiguousarray(X.indptr, dtype=np.int64),
            )
        else:
            self.n_weights = int(X.shape[1])
            # An aligned, writable view keeps numba at one compilation for each dtype.
            self._arrays = (writable_view(np.ascontiguousarray(X)),)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """`X @ weights`, float64 (n,)."""
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != (self.n_weights,):
            raise InvalidInputError(f"X has {self.n_weights} features and the weights have shape {weights.shape}")
        scores = np.empty(self.n_rows)
        arrays = self._arrays
        if self.starts is not None:
            table = bin_table(self.starts, weights)

            def work(lo: int, hi: int) -> None:
                if len(arrays) == 1:
                    _binned_scores(arrays[0], table, scores, lo, hi)
                else:
                    _present_scores(*arrays, table, scores, lo, hi)

        elif len(arrays) == 3:

            def work(lo: int, hi: int) -> None:
                _csr_scores(*arrays, weights, scores, lo, hi)

        else:

            def work(lo: int, hi: int) -> None:
                _dense_scores(arrays[0], weights, scores, lo, hi)

        run_blocks(work, row_blocks(self.n_rows, BLOCK), self.n_jobs)
        return scores

    def block_sums(self, coefficients: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Sums over blocks of rows, `X[bounds[b]:bounds[b + 1]].T @ coefficients[…]`, float64 (blocks, n_weights).

        Rows whose coefficient is 0 are not read. Cost: one pass over the other rows.
        """
        coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        pieces = []
        for b, (start, stop) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist())):
            pieces += [(b, start + lo, start + hi) for lo, hi in row_blocks(stop - start, BLOCK)]
        arrays, width = self._arrays, self.n_weights
        if self.starts is not None:
            shape: tuple[int, ...] = (len(self.starts) - 1, int(np.diff(self.starts).max(initial=0)) + 1)

            def work(b: int, lo: int, hi: int) -> np.ndarray:
                if len(arrays) == 1:
                    return _binned_sums(arrays[0], coefficients, shape[1], lo, hi)
                return _present_sums(*arrays, coefficients, shape[0], shape[1], lo, hi)

        elif len(arrays) == 3:
            shape = (width,)

            def work(b: int, lo: int, hi: int) -> np.ndarray:
                return _csr_sums(*arrays, coefficients, width, lo, hi)

        else:
            shape = (width,)

            def work(b: int, lo: int, hi: int) -> np.ndarray:
                return _dense_sums(arrays[0], coefficients, lo, hi)

        total = np.zeros((len(bounds) - 1, *shape))
        for (b, _, _), part in zip(pieces, run_blocks(work, pieces, self.n_jobs)):
            total[b] += part
        return total if self.starts is None else _binary_sums(total, self.starts)


def _present_codes(codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """The codes, or, where most are missing, the others row by row: codes, columns, and where each row starts."""
    n, p = codes.shape
    sizes = np.zeros(n, dtype=np.int64)
    pieces = row_blocks(n, BLOCK)
    for lo, hi in pieces:
        sizes[lo:hi] = np.count_nonzero(codes[lo:hi], axis=1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if starts[-1] * 4 > codes.size or p > 65_536:
        return (codes,)
    present = np.empty(starts[-1], dtype=np.uint8)
    columns = np.empty(starts[-1], dtype=np.uint16)
    for lo, hi in pieces:
        _, column = np.nonzero(codes[lo:hi])
        columns[starts[lo] : starts[hi]] = column
        present[starts[lo] : starts[hi]] = codes[lo:hi][codes[lo:hi] > 0]
    return present, columns, starts


def writable_view(array: np.ndarray) -> np.ndarray:
    """The array itself, or a copy where it is read-only (numba compiles read-only arrays apart)."""
    return array if array.flags.writeable else array.copy()


def _binary_sums(by_code: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of binary features `code > t` (blocks, n_binary) from sums by code (blocks, p, codes)."""
    from_code = np.cumsum(by_code[:, :, ::-1], axis=2)[:, :, ::-1]
    columns = [from_code[:, j, 1 : 1 + size] for j, size in enumerate(np.diff(starts))]
    return np.concatenate(columns, axis=1) if columns else np.zeros((len(by_code), 0))


def bin_table(starts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Score of each code of each column, float64 (p, codes): the sum of the weights of the features that are 1."""
    sizes = np.diff(starts)
    table = np.zeros((len(sizes), int(sizes.max(initial=0)) + 1))
    for j, size in enumerate(sizes):
        table[j, 1 : 1 + size] = np.cumsum(weights[starts[j] : starts[j + 1]])
    return table


@kernel
def _dense_scores(X, weights, scores, start, stop):  # type: ignore[no-untyped-def]
    p = X.shape[1]
    whole = p - p % 8
    for i in range(start, stop):
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
        scores[i] = total


@kernel
def _dense_sums(X, coefficients, start, stop):  # type: ignore[no-untyped-def]
    p = X.shape[1]
    total = np.zeros(p)
    for i in range(start, stop):
        c = coefficients[i]
        if c != 0.0:
            for j in range(p):
                total[j] += c * X[i, j]
    return total


@kernel
def _csr_scores(data, indices, indptr, weights, scores, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        a = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            a += data[e] * weights[indices[e]]
        scores[i] = a


@kernel
def _csr_sums(data, indices, indptr, coefficients, width, start, stop):  # type: ignore[no-untyped-def]
    total = np.zeros(width)
    for i in range(start, stop):
        c = coefficients[i]
        if c != 0.0:
            for e in range(indptr[i], indptr[i + 1]):
                total[indices[e]] += c * data[e]
    return total


@kernel
def _binned_scores(codes, table, scores, start, stop):  # type: ignore[no-untyped-def]
    p = codes.shape[1]
    for i in range(start, stop):
        a = 0.0
        for j in range(p):
            code = codes[i, j]
            if code > 0:
                a += table[j, code]
        scores[i] = a


@kernel
def _binned_sums(codes, coefficients, stride, start, stop):  # type: ignore[no-untyped-def]
    p = codes.shape[1]
    total = np.zeros((p, stride))
    for i in range(start, stop):
        c = coefficients[i]
        if c != 0.0:
            for j in range(p):
                code = codes[i, j]
                if code > 0:
                    total[j, code] += c
    return total


@kernel
def _present_scores(present, columns, starts, table, scores, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        a = 0.0
        for e in range(starts[i], starts[i + 1]):
            a += table[columns[e], present[e]]
        scores[i] = a


@kernel
def _present_sums(present, columns, starts, coefficients, p, stride, start, stop):  # type: ignore[no-untyped-def]
    total = np.zeros((p, stride))
    for i in range(start, stop):
        c = coefficients[i]
        if c != 0.0:
            for e in range(starts[i], starts[i + 1]):
                total[columns[e], present[e]] += c
    return total
