"""Polynomial leaves: in each region a polynomial of the tree's own features, held close to its neighbours'.

In a leaf with rows R the coefficients y of all monomials x of degree ≤ q in the tree's distinct features solve, with
gradients g and hessians h (squared error: h = 1, -g the residual),

    first round    (Σ_R h x xᵀ + l2 I) y = -Σ_R g x
    refitted       (Σ_R h x xᵀ + (l2 + λ k) I) y = -Σ_R g x + λ Σ_n y_n^first

with n over the k leaves whose numbers differ from the leaf's in one bit and that have rows, λ = `neighbour_penalty`.
(Equation 8 of the thesis is misprinted.) Features are standardised, clipped to their training range unless told not to,
and a missing one stands at the mean. A singular system, as with fewer rows than monomials, has its minimum-norm
solution.
"""

from __future__ import annotations

from contextlib import nullcontext
from math import comb

import numpy as np
from threadpoolctl import threadpool_limits

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import Workers, run_blocks
from truerank.trees.ensemble import Ensemble, pad_tree
from truerank.trees.grower import TreeStructure
from truerank.trees.leaves.constant import empty_leaves
from truerank.trees.rows import Rows, Sample
from truerank.trees.scaling import Scaling

_SINGULAR = 1e-10  # eigenvalues below this share of the largest count as zero
_MOST_MONOMIALS = 500
_SMALL_SYSTEM = 32
_ROWS = 65_536


def monomial_table(n_variables: int, degree: int) -> np.ndarray:
    """All monomials of at most `degree` as products of an earlier one and a variable, int64 (M, 2).

    Row j is (earlier monomial, variable); row 0 is the constant 1. M = C(n_variables + degree, degree).

    Examples
    --------
    >>> monomial_table(2, 2).tolist()  # 1, a, b, aa, ab, bb
    [[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]
    """
    if comb(n_variables + degree, degree) > _MOST_MONOMIALS:
        raise InvalidInputError(
            f"polynomial leaves of degree {degree} in trees of depth {n_variables} have "
            f"{comb(n_variables + degree, degree)} coefficients, more than {_MOST_MONOMIALS}; lower degree or depth"
        )
    rows, last = [(0, 0)], [(0, 0)]  # monomials of the degree before: (number, largest variable)
    for _ in range(degree):
        following = []
        for number, largest in last:
            for variable in range(largest, n_variables):
                following.append((len(rows), variable))
                rows.append((number, variable))
        last = following
    return np.array(rows, dtype=np.int64)


class PolynomialLeaves:
    """Fits and evaluates polynomial leaves.

    Parameters
    ----------
    l2 : float
    degree : int
    neighbour_penalty : float
        λ.
    depth : int
        Depth of whole trees, to which coefficients are padded.
    scaling : Scaling
    workers : Workers
    """

    needs_sample = True

    def __init__(
        self, l2: float, degree: int, neighbour_penalty: float, depth: int, scaling: Scaling, workers: Workers
    ) -> None:
        self.l2, self.neighbour_penalty, self.depth = l2, neighbour_penalty, depth
        self.scaling, self.workers = scaling, workers
        self.degree, self.table = degree, monomial_table(depth, degree)

    def fit(self, tree: TreeStructure, rows: Rows, sample: Sample) -> np.ndarray:
        """Coefficients (2^d, M); those of a feature's second level in the tree are 0."""
        table, active = self._table(tree)
        leaf = rows.leaf_numbers(tree, self.workers)
        size, m = 1 << tree.depth, len(table)
        features = tree.features.astype(np.int64)

        def work(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            g, h = sample.block(start, stop)
            z = self.scaling.take(rows.X[start:stop], features)
            return _normal_sums(z, leaf[start:stop], g, h, table, size)

        matrix, right = np.zeros((size, m, m)), np.zeros((size, m))
        blocks = [(i, min(i + _ROWS, len(leaf))) for i in range(0, len(leaf), _ROWS)]
        at_once = self.workers.n_threads  # a block's sums may take many megabytes
        for i in range(0, len(blocks), at_once):
            for a, b in self.workers.run(work, blocks[i : i + at_once]):
                matrix += a
                right += b
        matrix += np.tril(matrix, -1).transpose(0, 2, 1)
        values = np.zeros((size, len(self.table)))
        values[:, active] = fit_neighbours(matrix, right, self.l2, self.neighbour_penalty)
        return values

    def add(self, tree: TreeStructure, rows: Rows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's value of every row to the scores (n,)."""
        padded = pad_tree(tree, values, rows.matrix.borders, self.depth)
        single = Ensemble(*(part[None] for part in padded))
        PolynomialPredictor(single, self.scaling, self.degree).predict(rows.X, self.workers.n_threads, scores)

    def _table(self, tree: TreeStructure) -> tuple[np.ndarray, np.ndarray]:
        """The monomials of the tree's distinct features, and their places in the padded table."""
        features = tree.features.tolist()
        first = [k not in features[:t] for t, k in enumerate(features)] + [False] * (self.depth - len(features))
        active, renumbered, table = [0], {0: 0}, [(0, 0)]
        for j, (earlier, variable) in enumerate(self.table.tolist()):
            if j and first[variable] and earlier in renumbered:
                renumbered[j] = len(active)
                active.append(j)
                table.append((renumbered[earlier], variable))
        return np.array(table, dtype=np.int64), np.array(active)


def fit_neighbours(matrix: np.ndarray, right: np.ndarray, l2: float, penalty: float) -> np.ndarray:
    """Coefficients (leaves, M) of both rounds from the normal equations (leaves, M, M) and (leaves, M)."""
    size, m = right.shape
    full = ~empty_leaves(matrix[:, 0, 0])  # by the hessian in the leaf
    first = np.zeros((size, m))
    first[full] = least_norm_solutions(matrix[full] + l2 * np.eye(m), right[full])
    if penalty == 0:
        return first
    number = np.arange(size)
    around = np.zeros((size, m))
    k = np.zeros(size)
    for level in range(max(0, size.bit_length() - 1)):
        other = number ^ (1 << level)
        around += np.where(full[other, None], first[other], 0.0)
        k += full[other]
    if not np.isfinite(penalty):
        return np.where(k[:, None] > 0, around / np.maximum(k, 1)[:, None], first)
    return least_norm_solutions(
        matrix + (l2 + penalty * k)[:, None, None] * np.eye(m), np.where(full[:, None], right, 0.0) + penalty * around
    )


def least_norm_solutions(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solutions of symmetric positive semi-definite systems, of minimum norm where a system is singular."""
    if not len(matrix):
        return np.zeros_like(right)
    # A large system's bits change with the number of threads of LAPACK.
    with threadpool_limits(1, user_api="blas") if matrix.shape[1] > _SMALL_SYSTEM else nullcontext():
        roots, vectors = np.linalg.eigh(matrix)
    keep = roots > _SINGULAR * np.maximum(roots[:, -1:], 0.0)
    along = np.einsum("lij,li->lj", vectors, right)
    return np.einsum("lij,lj->li", vectors, np.where(keep, along / np.where(keep, roots, 1.0), 0.0))


class PolynomialPredictor:
    """Scores from polynomial leaves."""

    def __init__(self, ensemble: Ensemble, scaling: Scaling, degree: int) -> None:
        self.used = np.unique(ensemble.features).astype(np.int64)
        self.columns = np.searchsorted(self.used, ensemble.features).astype(np.int64)
        self.scaling = scaling
        self.table = monomial_table(ensemble.depth, degree)
        self.borders, self.missing_right, self.values = ensemble.borders, ensemble.missing_right, ensemble.values

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these."""

        def work(start: int, stop: int) -> None:
            x = np.ascontiguousarray(X[start:stop].T[self.used], dtype=np.float64)
            z = self.scaling.standardise(x, self.used)
            _add_polynomials(
                x, z, self.columns[trees], self.borders[trees], self.missing_right[trees], self.values[trees],
                self.table, scores[start:stop],
            )  # fmt: skip

        run_blocks(work, [(i, min(i + 4_096, len(X))) for i in range(0, len(X), 4_096)], n_jobs)
        return scores


@kernel
def _normal_sums(z, leaf, g, h, table, size):
    """Lower triangles of Σ h x xᵀ (leaves, M, M) and -Σ g x (leaves, M)."""
    m = table.shape[0]
    matrix = np.zeros((size, m, m))
    right = np.zeros((size, m))
    x = np.empty(m)
    x[0] = 1.0
    for i in range(leaf.size):
        if g[i] == 0.0 and h[i] == 0.0:
            continue
        q = leaf[i]
        for j in range(1, m):
            x[j] = x[table[j, 0]] * z[table[j, 1], i]
        for j in range(m):
            right[q, j] -= g[i] * x[j]
            weight = h[i] * x[j]
            row = matrix[q, j]
            for k in range(j + 1):
                row[k] += weight * x[k]
    return matrix, right


@kernel
def _add_polynomials(x, z, columns, borders, missing_right, values, table, scores):
    """Add every tree's polynomial to the scores; x and z are (used features, n)."""
    n = scores.size
    n_trees, depth = columns.shape
    m = table.shape[0]
    leaf = np.empty(64, dtype=np.int64)
    monomials = np.empty((m, 64))
    total = np.empty(64)
    for start in range(0, n, 64):
        rows = min(64, n - start)
        for tree in range(n_trees):
            leaf[:] = 0
            for level in range(depth):
                value = x[columns[tree, level]]
                c = borders[tree, level]
                bit = 1 << level
                if missing_right[tree, level]:
                    for i in range(rows):
                        leaf[i] |= 0 if value[start + i] <= c else bit
                else:
                    for i in range(rows):
                        leaf[i] |= bit if value[start + i] > c else 0
            for i in range(rows):
                monomials[0, i] = 1.0
                total[i] = values[tree, leaf[i], 0]
            for j in range(1, m):
                earlier = monomials[table[j, 0]]
                factor = z[columns[tree, table[j, 1]]]
                own = monomials[j]
                for i in range(rows):
                    own[i] = earlier[i] * factor[start + i]
                    total[i] += values[tree, leaf[i], j] * own[i]
            for i in range(rows):
                scores[start + i] += total[i]
