"""Passes over the rows of a matrix for solvers that make many: scores, sums of rows, spread of pairs by column.

All sums run in an order that depends on the data alone, so a result has the same bits with any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.matrices.rows import _csr_scores, _csr_sums, _dense_scores, _dense_sums, writable_view


class RowPasses:
    """A matrix prepared once for passes over ranges of its rows.

    Parameters
    ----------
    X : float32 or float64 array (n, p), or CSR matrix (n, p)
        Kept as it is; float32 values are widened as they are read.
    """

    def __init__(self, X: Any) -> None:
        self.shape = X.shape
        self.sparse = hasattr(X, "tocsr")
        if self.sparse:
            self.parts = csr_parts(X)
            self.values_by_row = max(1.0, X.nnz / max(1, X.shape[0]))
        else:
            self.matrix = writable_view(np.ascontiguousarray(X))
            self.values_by_row = float(X.shape[1])

    def scores(self, weights: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        """`result[start:stop] = X[start:stop] @ weights`."""
        if self.sparse:
            _csr_scores(*self.parts, weights, result, start, stop)
        else:
            _dense_scores(self.matrix, weights, result, start, stop)

    def sums(self, coefficients: np.ndarray, start: int, stop: int) -> np.ndarray:
        """`X[start:stop].T @ coefficients[start:stop]`, float64 (p,); rows whose coefficient is 0 are not read."""
        if self.sparse:
            return _csr_sums(*self.parts, coefficients, self.shape[1], start, stop)
        return _dense_sums(self.matrix, coefficients, start, stop)

    def pair_spread(self, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """`Σ weight (x_a - x_b)²` over all pairs of a query with different ranks, by column, float64 (p,).

        For sparse rows the products `x_a x_b`, mostly 0, are left out.
        """
        if self.sparse:
            data, indices, _ = self.parts
            row = np.repeat(np.arange(self.shape[0]), np.diff(self.parts[2]))
            others = _other_ranks(order, ranks, offsets, weight)
            return np.bincount(indices, weights=others[row] * data.astype(np.float64) ** 2, minlength=self.shape[1])
        return _pair_spread(self.matrix, order, ranks, offsets, weight)


def csr_parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values (float32 or float64), column indices and row starts (int64) of a CSR matrix, sorted within rows."""
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    parts = X.data, X.indices.astype(np.int64, copy=False), X.indptr.astype(np.int64, copy=False)
    data, indices, starts = (writable_view(np.ascontiguousarray(part)) for part in parts)
    return data, indices, starts


@kernel
def _pair_spread(X, order, ranks, offsets, weight):  # type: ignore[no-untyped-def]
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
            origin[j] = X[start, j]
        count = 0
        for i in range(start, stop):
            row = order[i]
            if i > start and ranks[row] != ranks[order[i - 1]]:
                count = i - start
                lower += equal
                equal[:] = 0.0
            for j in range(p):
                x = X[row, j] - origin[j]
                total[j] += weight[query] * max(0.0, count * x * x - 2.0 * x * lower[0, j] + lower[1, j])
                equal[0, j] += x
                equal[1, j] += x * x
    return total


@kernel
def _other_ranks(order, ranks, offsets, weight):  # type: ignore[no-untyped-def]
    """Weighted number of rows of the same query with another rank, by row."""
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
