"""Products of rows and grades within queries, from which ridge regression is solved."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import one_blas_thread, query_blocks, run_blocks
from truerank.matrices.rows import LinearRows
from truerank.rankers.linear import Problem

_BLOCK_VALUES = 1 << 19  # numbers in a block of rows
_PARTS_BYTES = 1 << 28  # of the blocks' matrices that are held at once, before they are added up


def within_query_moments(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Return `sum_q w_q Xc' Xc` (p, p) and `sum_q w_q Xc' yc` (p,) of centred rows, which add up over partitions."""
    rows, p = problem.rows, problem.n_weights
    weight = np.ones(len(problem.offsets) - 1) if problem.query_weight is None else problem.query_weight
    blocks = query_blocks(problem.offsets, max(64, _BLOCK_VALUES // max(p, 1)))
    gram, moment = np.zeros((p, p)), np.zeros(p)
    at_once = max(4, _PARTS_BYTES // (8 * max(p, 1) ** 2))
    with one_blas_thread():
        for k in range(0, len(blocks), at_once):
            parts = run_blocks(
                lambda a, b: _moments(rows, problem.y, problem.offsets, weight, a, b),
                blocks[k : k + at_once],
                problem.n_jobs,
            )
            for part in parts:
                gram += part[0]
                moment += part[1]
    return gram, moment


def _moments(
    rows: LinearRows, y: np.ndarray, offsets: np.ndarray, weight: np.ndarray, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments of queries first … last - 1."""
    start, stop = int(offsets[first]), int(offsets[last])
    sizes = np.diff(offsets[first : last + 1])
    query, counts = np.repeat(np.arange(last - first), sizes), np.maximum(sizes, 1)
    own = weight[first:last]
    grades = y[start:stop]
    centred = grades - (np.bincount(query, weights=grades, minlength=last - first) / counts)[query]
    X = rows.block(start, stop)
    if not hasattr(X, "tocsr"):
        filled = np.flatnonzero(sizes)
        means = np.zeros((last - first, X.shape[1]))
        if len(filled):
            # First subtract the query's first row, so that a constant column gives exactly 0.
            origin = np.zeros_like(means)
            origin[filled] = X[offsets[first:last][filled] - start]
            _subtract_by_query(X, origin, offsets[first : last + 1])
            means[filled] = np.add.reduceat(X, offsets[first:last][filled] - start, axis=0) / counts[filled, None]
            _subtract_by_query(X, means, offsets[first : last + 1])
        moment = np.einsum("ij,i->j", X, own[query] * centred)
        if (own != 1.0).any():
            X *= np.sqrt(own[query])[:, None]
        return X.T @ X, moment
    # Sparse rows stay sparse: `sum w x x'` less each query's size times w mean mean'.
    from scipy import sparse

    indicator = sparse.csr_matrix(
        (np.ones(len(query)), (query, np.arange(len(query)))), shape=(last - first, len(query))
    )
    means = (indicator @ X).toarray() / counts[:, None]
    gram = (X.T @ X.multiply(own[query][:, None]).tocsr()).toarray()
    gram -= means.T @ (means * (own * sizes)[:, None])
    return gram, np.asarray(X.T @ (own[query] * centred))


@kernel
def _subtract_by_query(X, values, offsets):
    """Subtract `values` (m, p) of each query from its rows; X starts at the first row of the first query."""
    for query in range(len(offsets) - 1):
        for i in range(offsets[query] - offsets[0], offsets[query + 1] - offsets[0]):
            for j in range(X.shape[1]):
                X[i, j] -= values[query, j]
