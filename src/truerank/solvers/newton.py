"""Newton's method with conjugate gradients for the squared hinge over pairs (Chapelle & Keerthi 2010)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.rounds import tell
from truerank.core.threads import one_blas_thread, query_blocks, run_blocks
from truerank.losses.graded_pairs import SQUARED_HINGE, GradedPairs, sort_grades
from truerank.matrices.rows import LinearRows
from truerank.solvers.result import SolverResult, Status

_MOST_COLUMNS = 1000  # largest number of columns for the matrix of a system
_BLOCK_VALUES = 1 << 17  # numbers in a block of rows, which stay in the cache for a second pass


class PairSums:
    """Sums over the pairs of queries for Newton's method, at given weights and along a direction.

    Sums over partitions have the same methods.
    """

    def __init__(self, rows: LinearRows, pairs: GradedPairs) -> None:
        self.rows, self.pairs = rows.lay_out(), pairs
        self.n_weights, self.total_weight = rows.n_weights, pairs.total_weight
        self.n_pairs = float(np.sum(pairs.n_pairs))
        self._blocks = query_blocks(pairs.offsets, max(64, int(_BLOCK_VALUES / rows.values_by_row)))
        self._bounds = [(int(pairs.offsets[first]), int(pairs.offsets[last])) for first, last in self._blocks]
        n = rows.n_rows
        self._scores, self._values, self._products = np.zeros(n), np.empty(n), np.empty(n)
        self._derivative = self._trial = np.zeros(n)

    def spread(self) -> np.ndarray:
        """Return `Σ weight (x_a - x_b)²` over all pairs, by feature (p,)."""
        order = sort_grades(self.pairs.ranks, self.pairs.offsets)[0]
        return self.rows.pair_spread(order, self.pairs.ranks, self.pairs.offsets, self.pairs.weight)

    def begin(self, w: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Set the weights to w; return the loss, its gradient (p,), and twice the number of violated pairs."""
        self._scores[:] = 0.0
        if np.any(w):
            self._write_scores(w, self._scores)
        loss, self._derivative = self.pairs.loss(self._scores, SQUARED_HINGE)
        return loss, self._gradient(), float(np.sum(self.pairs.degrees))

    def product(self, direction: np.ndarray) -> np.ndarray:
        """Return the product of the second derivatives at the current weights with a direction (p,)."""
        offsets = self.pairs.offsets

        def work(first: int, last: int) -> np.ndarray:
            lo, hi = int(offsets[first]), int(offsets[last])
            self.rows.write_scores(direction, self._values, lo, hi)
            self.pairs.curvature(self._values, self._products, first, last)
            return self.rows.sums(self._products, lo, hi)

        return sum(run_blocks(work, self._blocks, self.pairs.n_jobs), np.zeros(self.n_weights))

    def along(self, direction: np.ndarray) -> float:
        """Set the direction (p,) of the line search; return the derivative of the loss along the direction."""
        self._write_scores(direction, self._values)
        return float(self._derivative @ self._values)

    def trial(self, t: float) -> tuple[float, float]:
        """Return the loss and its derivative along the direction after a step of length t."""
        loss, self._trial = self.pairs.loss(self._scores + t * self._values, SQUARED_HINGE)
        return loss, float(self._trial @ self._values)

    def accept(self, t: float) -> tuple[np.ndarray, float]:
        """Take the step of the last trial; return the gradient (p,) and twice the number of violated pairs after it."""
        self._scores += t * self._values
        self._derivative = self._trial
        return self._gradient(), float(np.sum(self.pairs.degrees))

    def _write_scores(self, weights: np.ndarray, result: np.ndarray) -> None:
        run_blocks(lambda lo, hi: self.rows.write_scores(weights, result, lo, hi), self._bounds, self.pairs.n_jobs)

    def _gradient(self) -> np.ndarray:
        sums = run_blocks(lambda lo, hi: self.rows.sums(self._derivative, lo, hi), self._bounds, self.pairs.n_jobs)
        return sum(sums, np.zeros(self.n_weights))


def minimise_pairs(
    sums: Any, C: float, tol: float, max_iter: int = 1000, start: np.ndarray | None = None
) -> SolverResult:
    """Minimise `½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))²` by Newton's method with conjugate gradients.

    `sums` has the methods of `PairSums`. The search stops at `½‖gradient‖² <= tol · objective`; the left side bounds
    the duality gap (see `RankSVM`).

    The objective is once differentiable and piecewise quadratic; its generalised Hessian at w is `I + 2C Σ_violated
    weight z zᵀ` (Chapelle & Keerthi 2010, section 3). Conjugate gradients are preconditioned by the diagonal over all
    pairs, scaled by the share of violated pairs, because columns may have very different scales. If the conjugate
    gradients need more than p products (p <= 1000), the whole Hessian is computed, and its Cholesky factor solves this
    step and preconditions later ones. Scores are linear in the step, so the line search requires no pass over X.
    """
    p = sums.n_weights
    w = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    if sums.total_weight == 0.0:
        zero = np.zeros(p)
        return SolverResult(zero, Status.NOTHING_TO_LEARN, 0, 0.0, 0.0, 0.0, {"gradient_norm": 0.0})

    def hessian_product(direction: np.ndarray) -> np.ndarray:
        return direction + C * sums.product(direction)

    spread = sums.spread()
    loss, gradient, degrees = sums.begin(w)
    objective = 0.5 * float(w @ w) + C * loss
    gradient = w + C * gradient
    squared = float(gradient @ gradient)
    first_squared = max(squared, np.finfo(float).tiny)
    preconditioner: Callable[[np.ndarray], np.ndarray] | None = None
    status, n_iter, n_products = Status.MAX_ITERATIONS, 0, 0
    while True:
        if 0.5 * squared <= tol * objective:
            status = Status.CONVERGED
            break
        if n_iter == max_iter:
            break
        if n_iter and tell(n_iter, max_iter, objective=objective, gap=0.5 * squared):
            status = Status.CALLBACK
            break
        n_iter += 1
        share = degrees / max(1.0, 2.0 * sums.n_pairs)
        if preconditioner is None:
            diagonal = 1.0 + 2.0 * C * share * spread
            precondition: Callable[[np.ndarray], np.ndarray] = lambda r: r / diagonal  # noqa: B023, E731
        else:
            precondition = preconditioner
        forcing = min(0.1, (squared / first_squared) ** 0.25)
        # Half the residual that the tolerance asks for is enough for the last step.
        goal = max(forcing * np.sqrt(squared), 0.5 * np.sqrt(2.0 * tol * objective))
        most = max(50, p if p <= _MOST_COLUMNS else 200)
        direction, used = _conjugate_gradients(hessian_product, gradient, precondition, goal, most)
        n_products += used
        if used == most and p <= _MOST_COLUMNS:
            preconditioner = _inverse(hessian_product, p)
            direction = -preconditioner(gradient)
            n_products += p
        step = _line_search(sums, C, w, objective, direction)
        if step is None:
            status = Status.NO_PROGRESS
            break
        t, objective = step
        w = w + t * direction
        gradient, degrees = sums.accept(t)
        gradient = w + C * gradient
        squared = float(gradient @ gradient)
    gap = 0.5 * squared
    details = {"gradient_norm": float(np.sqrt(squared)), "n_products": n_products}
    return SolverResult(w, status, n_iter, objective, objective - gap, gap, details)


def _conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    goal: float,
    max_products: int,
) -> tuple[np.ndarray, int]:
    """Solve `H d = -gradient` until the residual's norm is at most `goal`; return d and the number of products."""
    from scipy.sparse.linalg import LinearOperator, cg

    used = 0

    def count(_: np.ndarray) -> None:
        nonlocal used
        used += 1

    shape = len(gradient), len(gradient)
    direction, _ = cg(
        LinearOperator(shape, matvec=product, dtype=np.float64), -gradient, rtol=0.0, atol=goal, maxiter=max_products,
        M=LinearOperator(shape, matvec=precondition, dtype=np.float64), callback=count,
    )  # fmt: skip
    return direction, used


def _inverse(product: Callable[[np.ndarray], np.ndarray], p: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return the product with the inverse of a positive definite (p, p) operator, by a Cholesky factor."""
    from scipy.linalg import cho_factor, cho_solve

    matrix = np.array([product(column) for column in np.eye(p)])
    matrix = 0.5 * (matrix + matrix.T)
    # Columns of very different scale lose no digits when the diagonal is brought to 1 first.
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(matrix), 1.0))  # of I + …; rounding may leave less
    scaled = matrix * scale * scale[:, None]
    jitter = 0.0
    while True:
        try:
            with one_blas_thread():
                factor = cho_factor(scaled + jitter * np.eye(p), lower=True)
            break
        except np.linalg.LinAlgError:  # rounding; the result is still a preconditioner
            jitter = max(10.0 * jitter, 1e-14)

    def solve(vector: np.ndarray) -> np.ndarray:
        with one_blas_thread():
            return np.asarray(scale * cho_solve(factor, scale * vector))

    return solve


def _line_search(
    sums: Any, C: float, w: np.ndarray, objective: float, direction: np.ndarray
) -> tuple[float, float] | None:
    """Return the step t and the objective at `w + t direction`, or None if floating point finds no descent.

    If the full step fails, the secant rule brings the derivative along the direction, which increases, towards 0.
    """
    ww, wd, dd = float(w @ w), float(w @ direction), float(direction @ direction)
    slope = wd + C * sums.along(direction)
    if not slope < 0.0:
        return None
    t = 1.0
    for _ in range(30):
        loss, along = sums.trial(t)
        trial = 0.5 * (ww + 2.0 * t * wd + t * t * dd) + C * loss
        trial_slope = wd + t * dd + C * along
        # The second test is for the last steps, whose gain is below the rounding error of the objective.
        if trial_slope <= 0.5 * abs(slope) and trial <= objective * (1.0 + 1e-13):
            return t, trial
        # Too far: the slope has turned steeply upwards.
        t *= max(0.05, min(0.95, slope / (slope - trial_slope))) if trial_slope > 0.0 else 0.5
        if t * np.sqrt(dd) <= 1e-16 * np.sqrt(ww):
            break
    return None
