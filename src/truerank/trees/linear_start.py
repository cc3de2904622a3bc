"""A linear ranker as the start of boosting, because trees require many rounds to approximate a straight line by steps.

With features z standardised over the rows, the weights w minimise

    Σ_i v_i (y'_i - w z'_i)² + penalty · Σ_i v_i · |w|²

over the rows i with weights v_i, where y' and z' are grades and features minus their means within the query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import one_blas_thread, query_blocks, row_blocks, run_blocks
from truerank.trees.leaves.polynomial import least_norm_solutions
from truerank.trees.training_columns import Scaling

_ROWS = 16_384


@dataclass(frozen=True)
class LinearStart:
    """Scores `w z`, with features standardised and clipped by `scaling`; a missing value adds 0."""

    weights: np.ndarray = field(repr=False)  # float64 (p,)
    scaling: Scaling

    def scores(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return scores (n,) of the rows of X, float32 or float64; the score of a row does not depend on other rows."""
        scores = np.zeros(len(X))
        low, high, mean = self.scaling.low, self.scaling.high, self.scaling.mean
        slope = self.weights / self.scaling.scale

        def work(start: int, stop: int) -> None:
            _add_linear(kernel_array(X[start:stop]), slope, mean, low, high, scores[start:stop])

        run_blocks(work, row_blocks(len(X), _ROWS), n_jobs)
        return scores


@dataclass(frozen=True)
class Start:
    """Scores before the first tree: a constant, and a linear ranker or None."""

    constant: float
    linear: LinearStart | None

    def scores(self, X: Any, n_jobs: int | None = None) -> np.ndarray:
        """Return the scores (n,) of the rows of X, which may be sparse without a linear ranker."""
        constant = np.full(X.shape[0], self.constant)
        return constant if self.linear is None else constant + self.linear.scores(X, n_jobs)


def linear_start_sums(
    X: np.ndarray, y: np.ndarray, offsets: np.ndarray, row_weight: np.ndarray | None, scaling: Scaling
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return `Σ v z z'` (p, p), `Σ v z y'` (p,) and `Σ v`, which can be summed over queries."""
    p = X.shape[1]
    matrix, right, total = np.zeros((p, p)), np.zeros(p), 0.0
    every = np.arange(p)
    with one_blas_thread():
        for first, last in query_blocks(offsets, _ROWS):
            rows = slice(int(offsets[first]), int(offsets[last]))
            starts = offsets[first:last] - offsets[first]
            z, grades = scaling.take(X[rows], every), y[rows].copy()
            v = np.ones(len(grades)) if row_weight is None else row_weight[rows]
            sizes = np.diff(offsets[first : last + 1])
            # Empty queries have no rows to add up.
            starts, sizes = starts[sizes > 0], sizes[sizes > 0]
            mass = np.add.reduceat(v, starts)
            mass = np.where(mass > 0, mass, 1.0)
            grades -= np.repeat(np.add.reduceat(v * grades, starts) / mass, sizes)
            z -= np.repeat(np.add.reduceat(v * z, starts, axis=1) / mass, sizes, axis=1)
            weighted = z * v
            matrix += weighted @ z.T
            right += weighted @ grades
            total += float(v.sum())
    return matrix, right, total


def solve_linear_start(
    matrix: np.ndarray,
    right: np.ndarray,
    total: float,
    scaling: Scaling,
    penalty: float,
    monotone: np.ndarray | None,
) -> LinearStart:
    """Return the weights, with signs that `monotone` (p,) permits, from the `linear_start_sums` of all queries."""
    matrix = matrix + np.diag(np.full(len(right), penalty * total))
    with one_blas_thread():
        if monotone is None or not monotone.any():
            weights = least_norm_solutions(matrix[None], right[None])[0]
        else:
            weights = _of_signs(matrix, right, monotone)
    return LinearStart(weights, scaling)


def _of_signs(matrix: np.ndarray, right: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Minimise w A w / 2 - b w with w_k ≥ 0 where the sign is 1 and w_k ≤ 0 where it is -1."""
    roots, vectors = np.linalg.eigh(matrix)
    keep = roots > 1e-10 * max(float(roots[-1]), 0.0)
    if not keep.any():
        return np.zeros(len(right))
    root = np.sqrt(roots[keep])[:, None] * vectors[:, keep].T  # its square is the matrix
    target = (vectors[:, keep].T @ right) / np.sqrt(roots[keep])
    low, high = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    found = lsq_linear(root, target, (low, high), method="bvls").x
    return np.clip(found, low, high)


@kernel
def _add_linear(X, slope, mean, low, high, scores):
    """Add the linear scores of the rows of X."""
    n, p = X.shape
    for i in range(n):
        total = 0.0
        for k in range(p):
            x = np.float64(X[i, k])
            if x == x and slope[k] != 0.0:
                total += slope[k] * (min(max(x, low[k]), high[k]) - mean[k])
        scores[i] += total
