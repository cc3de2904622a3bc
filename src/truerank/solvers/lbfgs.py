"""Minimisation of a smooth convex loss: preconditioned L-BFGS, and steps by query."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.threads import one_blas_thread
from truerank.solvers.result import SolverResult, Status

_DENSE_HESSIAN = 512  # largest number of columns for a matrix of second derivatives
_SAMPLE_ROWS = 20_000  # rows of the first queries for the preconditioner
_EPSILON = float(np.finfo(np.float64).eps)


def minimise(problem: Any, tol: float, max_iter: int, after: Callable[[np.ndarray, float], bool]) -> SolverResult:
    """Minimise by L-BFGS in preconditioned coordinates, and by Newton steps if rounding stops the line search.

    `problem` has the methods of `CrossEntropy`. `after(coef, objective)` is called after each iteration, and ends the
    search by returning True. `gap` of the result is the norm of the gradient.
    """
    from scipy.optimize import fmin_l_bfgs_b

    p = problem.n_weights
    dense = problem.has_hessian and p <= _DENSE_HESSIAN
    # With `coef = factor' v` the curvature at v = 0 is about 1.
    factor = _inverse_factor(problem.hessian(np.zeros(p), _SAMPLE_ROWS)) if dense else _inverse_diagonal(problem)
    transpose = np.ascontiguousarray(factor.T)
    latest = {"coef": np.zeros(p), "norm": math.inf, "objective": math.inf}
    seen: dict[bytes, tuple[float, float, float]] = {}
    n_iter, status = 0, Status.NO_PROGRESS

    def evaluate(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem.value_and_gradient(_apply(transpose, v))
        own = _apply(factor, gradient)
        # Half the squared gradient in these coordinates is about how far the objective is above its minimum.
        seen[v.tobytes()] = value, float(np.linalg.norm(gradient)), 0.5 * float(np.sum(own * own))
        return value, own

    def after_iteration(v: np.ndarray) -> None:
        nonlocal n_iter, status
        n_iter += 1
        value, norm, excess = seen.get(v.tobytes(), (math.nan, math.inf, math.inf))
        seen.clear()
        latest.update(coef=_apply(transpose, v), norm=norm, objective=value)
        if norm <= tol:
            status = Status.CONVERGED
        elif n_iter >= max_iter:
            status = Status.MAX_ITERATIONS
        if after(latest["coef"], value):  # type: ignore[arg-type]
            status = Status.VALIDATION
        # If the excess is below the rounding error of the objective, no line search finds a descent: use Newton steps.
        if status is not Status.NO_PROGRESS or (dense and excess < 4 * _EPSILON * abs(value)):
            raise StopIteration

    fmin_l_bfgs_b(
        evaluate, np.zeros(p), m=20, factr=0.0, pgtol=0.0, maxiter=10 * max_iter, maxfun=100 * max_iter,
        callback=after_iteration,
    )  # fmt: skip
    coef: np.ndarray = latest["coef"]  # type: ignore[assignment]
    value, gradient = problem.value_and_gradient(coef)
    norm = float(np.linalg.norm(gradient))
    if status is Status.NO_PROGRESS and norm <= tol:
        status = Status.CONVERGED
    while status is Status.NO_PROGRESS and dense:
        factor = _inverse_factor(problem.hessian(coef))
        trial = coef - _apply(factor.T, _apply(factor, gradient))
        trial_value, trial_gradient = problem.value_and_gradient(trial)
        trial_norm = float(np.linalg.norm(trial_gradient))
        if not trial_norm < norm:
            break
        coef, value, gradient, norm = trial, trial_value, trial_gradient, trial_norm
        n_iter += 1
        if norm <= tol:
            status = Status.CONVERGED
        if after(coef, value):
            status = Status.VALIDATION
    return SolverResult(coef, status, n_iter, value, gap=norm)


def descend(
    problem: Any, learning_rate: float, max_iter: int, after: Callable[[np.ndarray, float], bool]
) -> SolverResult:
    """Run algorithm 1 of the ListNet paper, with a step after each query; `after` gets NaN for the objective."""
    p = problem.n_weights
    coef = np.zeros(p)
    status, n_iter = Status.ALL_ROUNDS, 0
    for n_iter in range(1, max_iter + 1):
        problem.pass_over_queries(coef, learning_rate)
        if not np.isfinite(coef).all():
            raise InvalidInputError(
                f"ListNet: gradient descent diverged in pass {n_iter}. Lower learning_rate (now {learning_rate:g})",
                code="diverged",
            )
        if after(coef, math.nan):
            status = Status.VALIDATION
            break
    value, gradient = problem.value_and_gradient(coef)
    return SolverResult(coef, status, n_iter, value, gap=float(np.linalg.norm(gradient)))


def _inverse_diagonal(problem: Any) -> np.ndarray:
    """Return the diagonal (p,) of a preconditioner like `_inverse_factor`, from bounds of the curvature."""
    curvature = problem.curvature()
    return 1 / np.sqrt(np.maximum(curvature, 1e-10 * max(float(curvature.max(initial=0.0)), 1e-300)))


def _apply(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    # Not BLAS, whose sums depend on its number of threads.
    return matrix * vector if matrix.ndim == 1 else np.einsum("ij,j->i", np.ascontiguousarray(matrix), vector)


def _inverse_factor(matrix: np.ndarray) -> np.ndarray:
    """Return a lower triangular T such that `T' T` is the inverse of a positive semidefinite matrix.

    Directions without curvature get a ten-billionth of the largest curvature, so that T exists.
    """
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    p = len(matrix)
    lift = 1e-10 * float(np.diagonal(matrix).max(initial=0.0)) or 1.0
    with one_blas_thread():
        try:
            factor = cholesky(matrix, lower=True)
        except LinAlgError:
            factor = np.zeros((p, p))
        if float(np.diagonal(factor).min(initial=np.inf)) ** 2 < lift:
            factor = cholesky(matrix + lift * np.eye(p), lower=True)
        return np.asarray(solve_triangular(factor, np.eye(p), lower=True))
