"""Polynomial leaves: each region has a polynomial of the tree's features, which is kept close to its neighbours.

With gradients g and hessians h (squared error: h = 1, -g the residual), x the monomials of degree ≤ q in the tree's
distinct features, A_l = Σ_(rows of l) h x xᵀ and b_l = -Σ_(rows of l) g x, the coefficients y of all leaves minimise

    Σ_l (½ y_lᵀ A_l y_l - b_lᵀ y_l + ½ alpha ‖y_l‖²) + ½ λ Σ_(neighbours l, n) ‖y_l - y_n‖²

over all leaves at once ("joint"); the numbers of neighbours differ in one bit, and each pair counts once. For squared
error this is half of `Σ_l ‖r_l - X_l y_l‖² + λ Σ ‖y_l - y_n‖²`. Zero is a candidate, so that the training error
decreases with every tree at any rate ε below 2. With K the whole matrix, yᵀ A y ≤ yᵀ K y = bᵀ y, and a step ε y changes
the loss by -ε bᵀ y + ½ ε² yᵀ A y ≤ -(ε - ½ ε²) bᵀ y. This holds for all iterates of conjugate gradients.

The thesis solves its equations in two rounds ("two-rounds"), with fixed neighbours in the second round:

    first round    (A_l + alpha I) y_l = b_l
    refitted       (A_l + (alpha + λ k) I) y_l = b_l + λ Σ_n y_n^first

over the k neighbours that have rows. (Equation 8 of the thesis is misprinted.) The rounds diverge over many trees,
because leaves with few rows have enormous first coefficients, and their neighbours are pulled towards these.

Features are standardised and, by default, clipped to their training range; missing values are at the mean. A singular
system, as with fewer rows than monomials, has its minimum-norm solution.

The joint system has 2^d M unknowns and is never formed. Conjugate gradients are preconditioned by the block of each
leaf and, for the common part of all leaves, by the sum of the A_l. The sums cost O(n M²), and each of some tens of
iterations O(2^d M(M+d)).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import Workers, one_blas_thread, row_blocks, run_blocks
from truerank.trees.ensemble import Ensemble, pad_tree
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.kept_parts import kept
from truerank.trees.leaves.base import Leaves, TreesForm
from truerank.trees.leaves.constant import empty_leaves
from truerank.trees.rows import Sample, TrainingRows
from truerank.trees.training_columns import Scaling, TrainingColumns

_SINGULAR = 1e-10  # eigenvalues below this share of the largest count as zero
_SHARE = 0.1  # λ by default, as a share of the rows
_MOST_MONOMIALS = 500
_MOST_NUMBERS = 1 << 27  # of all A_l: a gigabyte
_SMALL_SYSTEM = 32
_TOLERANCE = 1e-10  # of the residual, in the preconditioner's norm, as a share of the right side's
_MOST_ROUNDS = 2_000
_FLOOR = 1e-12  # of a block's trace
_TASK = 16_384  # rows of one task of a thread
SOLUTIONS = ("joint", "two-rounds")


def monomial_table(n_variables: int, degree: int) -> np.ndarray:
    """Return all monomials of at most `degree` as products of an earlier monomial and a variable, int64 (M, 2).

    Row j is (earlier monomial, variable); row 0 is the constant 1. There are M = C(n_variables + degree, degree) rows.

    >>> monomial_table(2, 2).tolist()  # 1, a, b, aa, ab, bb
    [[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]
    """
    if comb(n_variables + degree, degree) > _MOST_MONOMIALS:
        raise InvalidInputError(
            f"polynomial leaves of degree {degree} in trees of depth {n_variables} have "
            f"{comb(n_variables + degree, degree)} coefficients, more than {_MOST_MONOMIALS}. Lower degree or depth",
            code="too-many-coefficients",
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


@dataclass(frozen=True)
class PolynomialLeaves(Leaves):
    """Leaves that hold a polynomial of the tree's own features: `ObliviousBoosting(leaves=PolynomialLeaves(...))`.

    Parameters
    ----------
    degree : int >= 0, default 1
    smoothing : float >= 0 or inf, optional
        λ pulls the polynomials of neighbouring leaves together, in units of the mean hessian of a row (1 for squared
        error). With inf and "joint", the whole tree has one polynomial. None means a tenth of the tree's rows.
    solution : {"joint", "two-rounds"}, default "joint"
        All leaves at once, or the thesis's two rounds, which diverge over many trees and then stop with a warning.

    Examples
    --------
    >>> PolynomialLeaves(degree=2)
    PolynomialLeaves(degree=2, smoothing=None, solution='joint')
    """

    degree: int = 1
    smoothing: float | None = None
    solution: str = "joint"

    name: ClassVar[str] = "polynomial"
    needs_scaling: ClassVar[bool] = True
    keeps_monotone: ClassVar[bool] = False
    scored_by: ClassVar[tuple[str, ...]] = ("degree",)

    def check(self) -> None:
        check_positive_int(self.degree, "degree", 0)
        if self.smoothing is not None and self.smoothing != np.inf:
            check_number(self.smoothing, "smoothing", "[0, inf)")
        check_choice(self.solution, "solution", SOLUTIONS)

    def fitter(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> PolynomialFitter:
        assert columns.scaling is not None
        return PolynomialFitter(rules.alpha, self, rules.depth, columns.scaling, workers)

    def predictor(self, ensemble: Ensemble, model: Any) -> PolynomialPredictor:
        return PolynomialPredictor(ensemble, kept(model, Scaling), self.degree)

    def form(self, ensemble: Ensemble, model: Any) -> Polynomial:
        return Polynomial(ensemble, kept(model, Scaling), self.degree)

    def n_values(self, depth: int) -> int:
        return len(monomial_table(depth, self.degree))


@dataclass(frozen=True)
class Polynomial(TreesForm):
    """Oblivious trees of polynomial leaves in standardised features."""

    scaling: Scaling
    degree: int
    kind = "polynomial"

    def monomials(self) -> np.ndarray:
        return monomial_table(self.trees.depth, self.degree)

    def variables(self, columns: np.ndarray, features: np.ndarray) -> np.ndarray:
        return self.scaling.standardise(columns, features.astype(np.int64)).T


class PolynomialFitter:
    """A fitter and evaluator of polynomial leaves, with coefficients padded to trees of `depth` levels."""

    needs_sample = True

    def __init__(self, alpha: float, leaves: PolynomialLeaves, depth: int, scaling: Scaling, workers: Workers) -> None:
        self.alpha, self.leaves, self.depth = alpha, leaves, depth
        self.scaling, self.workers = scaling, workers
        self.table = monomial_table(depth, leaves.degree)
        size = len(self.table) ** 2 << depth
        if size > _MOST_NUMBERS:
            raise InvalidInputError(
                f"polynomial leaves of degree {leaves.degree} in trees of depth {depth} require sums of {size:.2g} "
                f"numbers, more than {_MOST_NUMBERS:.2g}. Lower degree or depth"
            )

    def sums(self, tree: TreeStructure, rows: TrainingRows, sample: Sample) -> tuple[np.ndarray, np.ndarray]:
        """Return Σ h x xᵀ, lower triangles (2^d, m, m), and -Σ g x (2^d, m), which can be summed over partitions."""
        table, _ = self._table(tree)
        leaf = rows.leaf_numbers(tree, self.workers)
        size, m = 1 << tree.depth, len(table)
        features = tree.features.astype(np.int64)

        def work(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
            g, h = sample.block(start, stop)
            z = self.scaling.take(rows.X[start:stop], features)
            return _normal_sums(z, leaf[start:stop], g, h, table, size)

        matrix, right = np.zeros((size, m, m)), np.zeros((size, m))
        blocks = row_blocks(len(leaf))
        at_once = self.workers.n_threads  # a block's sums may take many megabytes
        for i in range(0, len(blocks), at_once):
            for a, b in self.workers.run(work, blocks[i : i + at_once]):
                matrix += a
                right += b
        return matrix, right

    def values(self, tree: TreeStructure, matrix: np.ndarray, right: np.ndarray, unit: float) -> np.ndarray:
        """Return coefficients (2^d, M) from the sums over all rows, whose mean hessian is `unit`."""
        _, active = self._table(tree)
        matrix = matrix + np.tril(matrix, -1).transpose(0, 2, 1)
        values = np.zeros((1 << tree.depth, len(self.table)))
        penalty = _SHARE * float(matrix[:, 0, 0].sum())  # of the sampled rows' hessians
        if self.leaves.smoothing is not None:
            penalty = self.leaves.smoothing * unit
        solve = solve_jointly if self.leaves.solution == "joint" else solve_in_two_rounds
        values[:, active] = solve(matrix, right, self.alpha, penalty)
        return values

    def add(self, tree: TreeStructure, rows: TrainingRows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's value of every row to the scores (n,)."""
        padded = pad_tree(tree, values, rows.matrix.borders, self.depth)
        single = Ensemble(*(part[None] for part in padded))
        PolynomialPredictor(single, self.scaling, self.leaves.degree).predict(rows.X, self.workers.n_threads, scores)

    def _table(self, tree: TreeStructure) -> tuple[np.ndarray, np.ndarray]:
        """Return the monomials of the tree's distinct features, and their columns in the padded table."""
        features = tree.features.tolist()
        first = [k not in features[:t] for t, k in enumerate(features)] + [False] * (self.depth - len(features))
        active, renumbered, table = [0], {0: 0}, [(0, 0)]
        for j, (earlier, variable) in enumerate(self.table.tolist()):
            if j and first[variable] and earlier in renumbered:
                renumbered[j] = len(active)
                active.append(j)
                table.append((renumbered[earlier], variable))
        return np.array(table, dtype=np.int64), np.array(active)


def solve_jointly(matrix: np.ndarray, right: np.ndarray, alpha: float, penalty: float) -> np.ndarray:
    """Return the coefficients of all leaves at once, with minimum norm, from A (leaves, M, M) and b (leaves, M)."""
    size, m = right.shape
    if penalty == 0 or size == 1:
        full = ~empty_leaves(matrix[:, 0, 0])  # by the hessian in the leaf
        values = np.zeros((size, m))
        values[full] = least_norm_solutions(matrix[full] + alpha * np.eye(m), right[full])
        return values
    own = matrix + alpha * np.eye(m)
    together = own.sum(axis=0)
    if not np.isfinite(penalty):
        return np.repeat(least_norm_solutions(together[None], right.sum(axis=0)[None]), size, axis=0)
    levels = size.bit_length() - 1
    with _one_thread(m):
        roots, vectors = np.linalg.eigh(together)
        seen = roots > _SINGULAR * max(roots[-1], 0.0)
        coarse = (vectors[:, seen] / roots[seen]) @ vectors[:, seen].T
        # A block may be as good as singular where λ is tiny; its inverse only has to be positive definite.
        floor = penalty * levels + _FLOOR * np.trace(own, axis1=1, axis2=2)
        blocks = own + np.maximum(floor, np.finfo(float).tiny)[:, None, None] * np.eye(m)
        inverse = np.linalg.inv(blocks)
    inverse += inverse.transpose(0, 2, 1)
    inverse *= 0.5
    values = _conjugate_gradients(own, right, inverse, np.ascontiguousarray(coarse), penalty, _TOLERANCE, _MOST_ROUNDS)
    # What no row sees is alike in all leaves: without it the norm is least.
    unseen = vectors[:, ~seen]
    values -= (values.mean(axis=0) @ unseen) @ unseen.T
    return values


def solve_in_two_rounds(matrix: np.ndarray, right: np.ndarray, alpha: float, penalty: float) -> np.ndarray:
    """Return the coefficients of the thesis's two rounds from A (leaves, M, M) and b (leaves, M)."""
    size, m = right.shape
    full = ~empty_leaves(matrix[:, 0, 0])  # by the hessian in the leaf
    first = np.zeros((size, m))
    first[full] = least_norm_solutions(matrix[full] + alpha * np.eye(m), right[full])
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
        matrix + (alpha + penalty * k)[:, None, None] * np.eye(m),
        np.where(full[:, None], right, 0.0) + penalty * around,
    )


def least_norm_solutions(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve symmetric positive semi-definite systems, with minimum norm for a singular system."""
    if not len(matrix):
        return np.zeros_like(right)
    with _one_thread(matrix.shape[1]):
        roots, vectors = np.linalg.eigh(matrix)
    keep = roots > _SINGULAR * np.maximum(roots[:, -1:], 0.0)
    along = np.einsum("lij,li->lj", vectors, right)
    return np.einsum("lij,lj->li", vectors, np.where(keep, along / np.where(keep, roots, 1.0), 0.0))


def _one_thread(size: int) -> Any:
    """Limit LAPACK to one thread for large systems, whose bits depend on the number of threads."""
    return one_blas_thread() if size > _SMALL_SYSTEM else nullcontext()


class PolynomialPredictor:
    """Scores from polynomial leaves."""

    def __init__(self, ensemble: Ensemble, scaling: Scaling, degree: int) -> None:
        self.used = np.unique(ensemble.features).astype(np.int64)
        self.columns = np.searchsorted(self.used, ensemble.features).astype(np.int64)
        own = (scaling.low, scaling.high, scaling.mean, scaling.scale)
        self.scaling = np.ascontiguousarray(np.stack([part[self.used] for part in own]))
        self.table = monomial_table(ensemble.depth, degree)
        self.borders, self.missing_right = ensemble.borders, ensemble.missing_right
        self.values = np.ascontiguousarray(ensemble.values.transpose(0, 2, 1))  # a monomial's, leaf by leaf

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,), and return the scores."""

        def work(start: int, stop: int) -> None:
            _add_polynomials(
                kernel_array(X[start:stop]), self.used, self.scaling, self.columns[trees], self.borders[trees],
                self.missing_right[trees], self.values[trees], self.table, scores[start:stop],
            )  # fmt: skip

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores


@kernel
def _normal_sums(z, leaf, g, h, table, size):
    """Return the lower triangles of Σ h x xᵀ (leaves, M, M), and -Σ g x (leaves, M)."""
    m = table.shape[0]
    matrix, right = np.zeros((size, m, m)), np.zeros((size, m))
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
def _conjugate_gradients(own, right, inverse, coarse, penalty, tolerance, most_rounds):
    """Solve own_l y_l + penalty Σ_n (y_l - y_n) = right_l for all leaves l (leaves, M), from zero.

    The preconditioner is `inverse` (leaves, M, M) of the diagonal blocks, plus `coarse` (M, M), the inverse of Σ own,
    on the sum over leaves: a large penalty has little effect on the common part of all leaves.
    """
    size, m = right.shape
    y, residual = np.zeros((size, m)), right.copy()
    step, product = np.empty((size, m)), np.empty((size, m))
    together, common = np.empty(m), np.empty(m)
    before, enough = 0.0, 0.0
    for rounds in range(most_rounds):
        _precondition(inverse, coarse, residual, together, common, product)
        now = _inner(product, residual)
        if rounds == 0:
            enough = tolerance * tolerance * now
        if not now > enough:
            break
        ratio = now / before if rounds else 0.0
        before = now
        for q in range(size):
            for j in range(m):
                step[q, j] = product[q, j] + ratio * step[q, j] if rounds else product[q, j]
        _multiply(own, penalty, step, product)
        curvature = _inner(product, step)
        if not curvature > 0.0:
            break
        length = now / curvature
        for q in range(size):
            for j in range(m):
                y[q, j] += length * step[q, j]
                residual[q, j] -= length * product[q, j]
    return y


@kernel
def _precondition(inverse, coarse, residual, together, common, result):
    """Write `inverse` of each leaf's residual plus `coarse` of their sum; `together` and `common` are scratch."""
    size, m = residual.shape
    together[:] = 0.0
    for q in range(size):
        for j in range(m):
            together[j] += residual[q, j]
    for j in range(m):
        total = 0.0
        for k in range(m):
            total += coarse[j, k] * together[k]
        common[j] = total
    for q in range(size):
        for j in range(m):
            total = common[j]
            row = inverse[q, j]
            for k in range(m):
                total += row[k] * residual[q, k]
            result[q, j] = total


@kernel
def _multiply(own, penalty, y, result):
    """Write own_l y_l + penalty Σ_n (y_l - y_n) for all leaves l, whose neighbours n differ in one answer."""
    size, m = y.shape
    for q in range(size):
        for j in range(m):
            total = 0.0
            row = own[q, j]
            for k in range(m):
                total += row[k] * y[q, k]
            apart = 0.0
            bit = 1
            while bit < size:
                apart += y[q, j] - y[q ^ bit, j]
                bit <<= 1
            result[q, j] = total + penalty * apart


@kernel
def _inner(a, b):
    total = 0.0
    for q in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[q, j] * b[q, j]
    return total


@kernel
def _add_polynomials(X, used, scaling, columns, borders, missing_right, values, table, scores):
    """Add every tree's polynomial to the scores, 128 rows at a time; `values` is (trees, monomials, leaves)."""
    n = scores.size
    n_trees, depth = columns.shape
    m = table.shape[0]
    x, z = np.empty((used.size, 136)), np.empty((used.size, 136))
    leaf = np.empty(128, dtype=np.uint16)
    products, total = np.empty((m, 128)), np.empty(128)
    zero = np.uint16(0)
    for start in range(0, n, 128):
        rows = min(128, n - start)
        # Stage 1. Copy the columns of the block, unchanged (x) and standardised (z).
        for i in range(rows):
            own = X[start + i]
            for k in range(used.size):
                x[k, i] = own[used[k]]
        for k in range(used.size):
            low, high, mean, scale = scaling[0, k], scaling[1, k], scaling[2, k], scaling[3, k]
            here, out = x[k], z[k]
            for i in range(rows):
                value = here[i]
                value = low if value < low else value
                value = high if value > high else value
                value = (value - mean) / scale
                out[i] = value if value == value else 0.0
        for tree in range(n_trees):
            # Stage 2. Find the leaf of each row: bit t is set if the answer at level t is no.
            for i in range(rows):
                leaf[i] = zero
            for level in range(depth):
                here = x[columns[tree, level]]
                c = borders[tree, level]
                bit = np.uint16(1 << level)
                if missing_right[tree, level]:
                    for i in range(rows):
                        leaf[i] |= zero if here[i] <= c else bit
                else:
                    for i in range(rows):
                        leaf[i] |= bit if here[i] > c else zero
            # Stage 3. Multiply the monomials x_j, each an earlier one times a variable, by their coefficients.
            coefficients = values[tree, 0]
            for i in range(rows):
                total[i] = coefficients[leaf[i]]
            for j in range(1, m):
                x_j = z[columns[tree, table[j, 1]]]
                if table[j, 0] > 0:
                    earlier, out = products[table[j, 0]], products[j]
                    for i in range(rows):
                        out[i] = earlier[i] * x_j[i]
                    x_j = out
                elif m > depth + 1:  # of a higher degree: a factor of later monomials
                    for i in range(rows):
                        products[j, i] = x_j[i]
                coefficients = values[tree, j]
                for i in range(rows):
                    total[i] += coefficients[leaf[i]] * x_j[i]
            for i in range(rows):
                scores[start + i] += total[i]
