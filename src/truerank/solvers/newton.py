"""Newton's method with conjugate gradients for the squared hinge over pairs (Chapelle & Keerthi 2010)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from truerank.core.threads import one_blas_thread, query_blocks, run_blocks
from truerank.losses.graded_pairs import SQUARED_HINGE, GradedPairs, order_by_rank
from truerank.matrices.rows import LinearRows
from truerank.solvers.result import SolverResult, Status

_MOST_COLUMNS = 1000  # up to here a stubborn system is solved by its matrix
_BLOCK_VALUES = 1 << 17  # numbers in a block of rows: its second pass finds them in the cache


def solve_squared_hinge(
    rows: LinearRows,
    pairs: GradedPairs,
    C: float,
    tol: float,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
) -> SolverResult:
    """Minimise `½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))²` by Newton's method with conjugate gradients.

    Stops when `½‖gradient‖² <= tol · objective`; the left side is the duality gap (see `RankSVM`).

    Notes
    -----
    The objective is once differentiable and piecewise quadratic; its generalised Hessian at w is
    `I + 2C Σ_violated weight z zᵀ` (Chapelle & Keerthi 2010, section 3). Conjugate gradients are preconditioned by
    the diagonal over all pairs, scaled by the share that is violated, so that columns of very different scale do not
    slow them; where they need more than p products all the same (p <= 1000), as many give the whole Hessian, whose
    Cholesky factor takes the step and preconditions the ones to come. Along the direction the scores are linear in
    the step, so a line search needs no pass over X.
    """
    n, p = rows.n_rows, rows.n_weights
    offsets = pairs.offsets
    w = np.zeros(p) if start is None else np.array(start, dtype=np.float64)
    if pairs.total_weight == 0.0:
        zero = np.zeros(p)
        return SolverResult(zero, Status.NOTHING_TO_LEARN, 0, 0.0, 0.0, 0.0, {"gradient_norm": 0.0})
    blocks = query_blocks(offsets, max(64, int(_BLOCK_VALUES / rows.values_by_row)))
    scores, values, products = np.zeros(n), np.empty(n), np.empty(n)
    bounds = [(int(offsets[first]), int(offsets[last])) for first, last in blocks]

    def sum_rows(coefficients: np.ndarray) -> np.ndarray:
        return _in_order(run_blocks(lambda lo, hi: rows.sums(coefficients, lo, hi), bounds, pairs.n_jobs), p)

    def hessian_product(direction: np.ndarray) -> np.ndarray:
        def work(first: int, last: int) -> np.ndarray:
            lo, hi = int(offsets[first]), int(offsets[last])
            rows.write_scores(direction, values, lo, hi)
            pairs.curvature(values, products, first, last)
            return rows.sums(products, lo, hi)

        return direction + C * _in_order(run_blocks(work, blocks, pairs.n_jobs), p)

    if np.any(w):
        run_blocks(lambda lo, hi: rows.write_scores(w, scores, lo, hi), bounds, pairs.n_jobs)
    spread = rows.pair_spread(order_by_rank(pairs.ranks, offsets), pairs.ranks, offsets, pairs.weight)
    loss, derivative = pairs.loss(scores, SQUARED_HINGE)
    objective = 0.5 * float(w @ w) + C * loss
    gradient = w + C * sum_rows(derivative)
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
        n_iter += 1
        share = float(np.sum(pairs.degrees)) / max(1.0, 2.0 * float(np.sum(pairs.n_pairs)))
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
            # As many products more give the whole matrix, which also preconditions the steps to come.
            preconditioner = _inverse(hessian_product, p)
            direction = -preconditioner(gradient)
            n_products += p
        run_blocks(lambda lo, hi: rows.write_scores(direction, values, lo, hi), bounds, pairs.n_jobs)  # noqa: B023
        step = _line_search(pairs, C, w, scores, objective, derivative, direction, values)
        if step is None:
            status = Status.NO_PROGRESS
            # The counts kept by the pairs belong to a trial step; nothing reads them again.
            break
        t, objective, derivative = step
        w = w + t * direction
        scores += t * values
        gradient = w + C * sum_rows(derivative)
        squared = float(gradient @ gradient)
    gap = 0.5 * squared
    details = {"gradient_norm": float(np.sqrt(squared)), "n_products": n_products}
    return SolverResult(w, status, n_iter, objective, objective - gap, gap, details)


def _in_order(parts: list[np.ndarray], p: int) -> np.ndarray:
    total = np.zeros(p)
    for part in parts:
        total += part
    return total


def _conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    goal: float,
    max_products: int,
) -> tuple[np.ndarray, int]:
    """Approximate solution of `H d = -gradient`, until the residual's norm is at most `goal`; products used."""
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
    """The product with the inverse of a positive definite (p, p) operator, by a Cholesky factor of its matrix."""
    from scipy.linalg import cho_factor, cho_solve

    matrix = np.array([product(column) for column in np.eye(p)])
    matrix = 0.5 * (matrix + matrix.T)
    # Columns of very different scale lose no digits when the diagonal is brought to 1 first.
    scale = 1.0 / np.sqrt(np.diagonal(matrix))
    scaled = matrix * scale * scale[:, None]
    jitter = 0.0
    while True:
        try:
            with one_blas_thread():
                factor = cho_factor(scaled + jitter * np.eye(p), lower=True)
            break
        except np.linalg.LinAlgError:  # rounding; what is solved is then a preconditioner still
            jitter = max(10.0 * jitter, 1e-14)

    def solve(vector: np.ndarray) -> np.ndarray:
        with one_blas_thread():
            return np.asarray(scale * cho_solve(factor, scale * vector))

    return solve


def _line_search(
    pairs: GradedPairs,
    C: float,
    w: np.ndarray,
    scores: np.ndarray,
    objective: float,
    derivative: np.ndarray,
    direction: np.ndarray,
    values: np.ndarray,
) -> tuple[float, float, np.ndarray] | None:
    """Step t, objective and loss derivative at `w + t direction`, or None where floating point finds no descent.

    The full step nearly always does; else the derivative along the direction, which is increasing, is brought towards
    0 by the secant rule.
    """
    ww, wd, dd = float(w @ w), float(w @ direction), float(direction @ direction)
    slope = wd + C * float(derivative @ values)
    if not slope < 0.0:
        return None
    t = 1.0
    for _ in range(30):
        loss, trial_derivative = pairs.loss(scores + t * values, SQUARED_HINGE)
        trial = 0.5 * (ww + 2.0 * t * wd + t * t * dd) + C * loss
        trial_slope = wd + t * dd + C * float(trial_derivative @ values)
        # The second test is for the last steps, where the gain drowns in the rounding of the objective.
        if trial_slope <= 0.5 * abs(slope) and trial <= objective * (1.0 + 1e-13):
            return t, trial, trial_derivative
        # Too far: the slope has turned steeply upwards.
        t *= max(0.05, min(0.95, slope / (slope - trial_slope))) if trial_slope > 0.0 else 0.5
        if t * np.sqrt(dd) <= 1e-16 * np.sqrt(ww):
            break
    return None
