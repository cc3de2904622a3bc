"""Rows of a linear scorer, dense, sparse or binned, with scores `X @ w` and sums `X.T @ c`.

BLAS is not used, because the bits of its products depend on the number of threads, on alignment and on neighbouring
rows. In this module, a score depends only on its row, and sums run over fixed blocks of rows that are added in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.threads import row_blocks, run_blocks
from truerank.core.types import Matrix
from truerank.matrices.binned import BinnedMatrix, StoredMatrix
from truerank.matrices.content import inverse_scales
from truerank.matrices.stored_values import BLOCK, Codes, DenseValues, SparseValues, csr_parts

FEW = 16  # largest number of nonzero weights for which `linear_scores` reads only their columns
_FEW_BLOCK_VALUES = 1 << 19  # numbers in a block of rows: 4 MB as float64, which fit a processor's cache
_COPIED_BYTES = 256_000_000  # of rows that are copied into their order, which makes passes two to four times as fast


class LinearRows:
    """The documents of a training problem, in the order and units of a learner.

    X is a float array (n, p), a CSR matrix or a BinnedMatrix, and is not changed; float32 values are widened on
    reading. `order` int64 (n,) is the row of X at each position, None for the order of X. A small sparse or binned X is
    copied into this order, a small array by `lay_out`; a large X is read in place. Results have the same bits with and
    without a copy. The learner sees `X / scale`, float64 (p,), where 0 leaves a column out; not for a BinnedMatrix. A
    nonzero `intercept` is the value of a further feature, the last one.

    `n_weights` is the number of columns, or of binary features of a BinnedMatrix, plus the intercept; `values_by_row`
    is the mean number of values of a row that a pass reads. `is_dense` is True for an array without an intercept.

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
        X: StoredMatrix,
        *,
        order: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        intercept: float = 0.0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_jobs, self.n_rows = n_jobs, int(X.shape[0])
        if order is not None and not isinstance(X, np.ndarray) and _bytes_of(X) <= _COPIED_BYTES:
            X, order = X[order], None
        kind: Any = Codes if isinstance(X, BinnedMatrix) else DenseValues if isinstance(X, np.ndarray) else SparseValues
        self._values = kind(X)
        self._order = None if order is None else np.ascontiguousarray(order, dtype=np.int64)
        self._unit = None if scale is None else inverse_scales(scale)
        self._intercept = intercept
        self.n_weights = self._values.n_weights + int(intercept != 0)
        self.values_by_row = self._values.by_row
        self.is_dense = kind is DenseValues and not intercept

    def lay_out(self) -> LinearRows:
        """Copy a small array into the order, for several passes over it; return self."""
        if self._order is not None and isinstance(self._values, DenseValues) and self._values.X.nbytes <= _COPIED_BYTES:
            self._values, self._order = DenseValues(np.take(self._values.X, self._order, axis=0)), None
        return self

    def coef(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights (p,) of the columns of X, without the intercept, from the learner's weights."""
        weights = weights[: self._values.n_weights]
        return weights.copy() if self._unit is None else weights * self._unit

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of each position, float64 (n,)."""
        table = self._table(weights)
        if not np.any(weights):  # the start of solvers
            return np.zeros(self.n_rows)
        result = np.empty(self.n_rows)
        # In the order of memory, which is two to four times as fast.
        run_blocks(partial(self._values.scores, table, None, result), row_blocks(self.n_rows, BLOCK), self.n_jobs)
        if self._intercept:
            result += self._intercept * float(weights[-1])
        return result if self._order is None else result[self._order]

    def write_scores(self, weights: np.ndarray, result: np.ndarray, start: int, stop: int) -> None:
        """Write the scores of positions to `result[start:stop]`."""
        self._values.scores(self._table(weights), self._order, result, start, stop)
        if self._intercept:
            result[start:stop] += self._intercept * float(weights[-1])

    def sums(self, coefficients: np.ndarray, start: int, stop: int) -> np.ndarray:
        """Return `Σ_i coefficients[i] x_i` over positions, float64 (n_weights,); skip rows with coefficient 0."""
        total = self._values.sums(coefficients, self._order, start, stop)
        return self._finished(total[None], coefficients, [(start, stop)])[0]

    def block_sums(self, coefficients: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Return `Σ_i coefficients[i] x_i` over each block `bounds[b]:bounds[b + 1]`, float64 (blocks, n_weights)."""
        coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))
        pieces, owners = [], []
        for b, (start, stop) in enumerate(blocks):
            for lo, hi in row_blocks(stop - start, BLOCK):
                pieces.append((start + lo, start + hi))
                owners.append(b)
        parts = run_blocks(partial(self._values.sums, coefficients, self._order), pieces, self.n_jobs)
        total = np.zeros((len(blocks), *self._values.sums(coefficients, self._order, 0, 0).shape))
        for b, part in zip(owners, parts):
            total[b] += part
        return self._finished(total, coefficients, blocks)

    def pair_spread(self, order: np.ndarray, ranks: np.ndarray, offsets: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return `Σ weight (x_a - x_b)²` over all pairs of a query with different ranks, by feature (n_weights,).

        `order` int64 (n,) are the positions of each query from the lowest to the highest of the `ranks`, and `weight`
        (m,) are the weights of queries. For sparse and binned rows, the products `x_a x_b` are left out. The spread of
        the intercept is 0.
        """
        spread = self._values.pair_spread((order, ranks, offsets, weight), self._order, self._units())
        return np.append(spread, 0.0) if self._intercept else spread

    def _units(self) -> np.ndarray:
        """Return the factors of columns (p,), which are applied before squaring so that nothing overflows."""
        return np.ones(self._values.n_weights) if self._unit is None else self._unit

    def square_sums(self, coefficients: np.ndarray) -> np.ndarray:
        """Return `Σ_i coefficients[i] x_i²` over all positions, by feature, float64 (n_weights,)."""
        total = self._values.square_sums(coefficients, self._order, self._units())
        return np.append(total, self._intercept**2 * coefficients.sum()) if self._intercept else total

    def block(self, start: int, stop: int) -> Any:
        """Return the positions `start:stop` in the learner's units, a float64 copy: (stop - start, p), or CSR."""
        rows = slice(start, stop) if self._order is None else self._order[start:stop]
        return self._values.block(rows, self._unit)

    def parts(self) -> tuple[Any, np.ndarray | None]:
        """Return the arrays of X (one, or three of CSR) in the learner's units, and each row or None."""
        if self._unit is None:
            return self._values.parts, self._order
        X = self.block(0, self.n_rows)
        return csr_parts(X) if hasattr(X, "tocsr") else X, None

    def dense_parts(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return a dense X, the row at each position (None: rows are positions) and the factors of columns."""
        return self._values.X, self._order, self._units()

    def _table(self, weights: np.ndarray) -> np.ndarray:
        """Return the table of the learner's weights that the kernels read."""
        if np.shape(weights) != (self.n_weights,):
            raise InvalidInputError(
                f"there are {self.n_weights} features, but the weights have shape {np.shape(weights)}",
                code="different-shapes",
            )
        own = np.ascontiguousarray(self.coef(weights), dtype=np.float64)
        return self._values.table(own) if isinstance(self._values, Codes) else own

    def _finished(self, sums: np.ndarray, coefficients: np.ndarray, blocks: list[tuple[int, int]]) -> np.ndarray:
        if isinstance(self._values, Codes):
            sums = self._values.by_feature(sums)
        if self._unit is not None:
            sums = sums * self._unit
        if not self._intercept:
            return sums
        totals = [self._intercept * coefficients[start:stop].sum() for start, stop in blocks]
        return np.column_stack([sums, totals])


def linear_scores(X: Matrix, coef: np.ndarray) -> np.ndarray:
    """Return `X @ coef`, float64 (n,), for a float array, a CSR matrix or a BinnedMatrix.

    The score of a row does not depend on other rows, on addresses or on the number of threads, so that equal rows tie.
    With at most `FEW` nonzero weights, only their columns are read. The cost is O(n p); X is not copied. Sums of a
    dense and a sparse matrix agree up to rounding.

    Examples
    --------
    >>> linear_scores(np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([0.5, 0.25])).tolist()
    [1.0, 1.0]
    """
    coef, rows = np.ascontiguousarray(coef, dtype=np.float64), cast(Any, X)
    if hasattr(rows, "linear_scores"):  # rows that live elsewhere
        scores: np.ndarray = rows.linear_scores(coef)
        return scores
    used = np.flatnonzero(coef)
    if not isinstance(X, np.ndarray) or len(used) > FEW:
        return LinearRows(rows).scores(coef)
    scores = np.zeros(X.shape[0])
    if len(used):
        for start, stop in row_blocks(X.shape[0], max(1, _FEW_BLOCK_VALUES // X.shape[1])):
            scores[start:stop] = combine_columns(X[start:stop, used].T, coef[used])
    return scores


def combine_columns(columns: Sequence[np.ndarray] | np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return `Σ_k weights[k] columns[k]`, float64 (n,), column by column, as `linear_scores` for few weights."""
    total = np.multiply(columns[0], weights[0], dtype=np.float64)
    term = np.empty_like(total)
    for column, weight in zip(columns[1:], weights[1:]):
        np.multiply(column, weight, out=term, dtype=np.float64)
        total += term
    return total


def _bytes_of(X: StoredMatrix) -> int:
    return X.nbytes if isinstance(X, np.ndarray | BinnedMatrix) else int(X.data.nbytes + X.indices.nbytes)
