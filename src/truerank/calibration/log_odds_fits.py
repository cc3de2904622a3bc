"""Maximum likelihood for log-odds that are linear in a few columns: the one solver of all fitted posteriors.

    minimise  Σ_i w_i [log(1 + exp(z_i)) - t_i z_i] + Σ_j ridge_j b_j²/2,   z = D b,   b_j ≥ 0 for j in `lower`

by Newton's method with halved steps; targets t lie in [0, 1]. The problem is convex; with every target inside (0, 1) or
overlapping classes it has a minimum. Sums run row by row in a kernel, so that the bits do not depend on BLAS threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.solvers.result import Status

_MAX_ITERATIONS = 200
# Relative rounding error of the objective, whose terms are added up with compensation.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class LogOddsFit:
    """Coefficients, why the solver stopped, and the objective there."""

    coef: np.ndarray
    status: Status
    n_iter: int
    objective: float


def fit_log_odds(
    design: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray | None,
    *,
    start: np.ndarray | None = None,
    lower: np.ndarray | None = None,
    ridge: np.ndarray | None = None,
    tol: float = 1e-13,
) -> LogOddsFit:
    """Solve the problem above.

    Parameters
    ----------
    design : float64 array (n, k), C-contiguous
        Columns of about unit scale (the caller standardises).
    targets : float64 array (n,)
    weight : float64 array (n,) or None
    start : float64 array (k,), optional
    lower : bool array (k,), optional
        Coefficients that must not be negative.
    ridge : float64 array (k,), optional

    Returns
    -------
    LogOddsFit
        Converged when a full Newton step would lower the objective by less than `tol` of it.
    """
    k = design.shape[1]
    coef = np.zeros(k) if start is None else np.array(start, dtype=np.float64)
    lower = np.zeros(k, dtype=bool) if lower is None else lower
    ridge = np.zeros(k) if ridge is None else ridge
    weights = np.empty(0) if weight is None else weight
    coef[lower] = np.maximum(coef[lower], 0.0)
    value, gradient, hessian = _objective(design, targets, weights, coef, ridge)
    for iteration in range(1, _MAX_ITERATIONS + 1):
        # Held at the bound are the coefficients that stand there and would be pushed further out.
        free = ~(lower & (coef <= 0.0) & (gradient >= 0.0))
        if not free.any():
            return LogOddsFit(coef, Status.CONVERGED, iteration, value)
        step = _newton_step(hessian, gradient, free, lower & (coef <= 0.0))
        decrement = -float(gradient @ step)
        if decrement <= tol * max(abs(value), 1e-300):
            return LogOddsFit(coef, Status.CONVERGED, iteration, value)
        # At most to the first bound in the way, which the next round then holds.
        falling = lower & (step < 0.0)
        scale = min(1.0, float(np.min(coef[falling] / -step[falling]))) if falling.any() else 1.0
        while True:
            trial = coef + scale * step
            trial[lower] = np.maximum(trial[lower], 0.0)
            if scale < 1.0:
                trial[falling & (trial <= 1e-15 * coef)] = 0.0
            new = _objective(design, targets, weights, trial, ridge)
            # Near the minimum the values differ by less than their rounding, but the step is right: let it through.
            if new[0] <= value - 1e-4 * scale * decrement + _ROUNDING * abs(value):
                break
            scale /= 2.0
            if scale < 1e-12:
                # No step lowers the objective any more: that is as far as floats go.
                return LogOddsFit(coef, Status.CONVERGED, iteration, value)
        coef = trial
        value, gradient, hessian = new
    return LogOddsFit(coef, Status.MAX_ITERATIONS, _MAX_ITERATIONS, value)


def _newton_step(hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray, at_bound: np.ndarray) -> np.ndarray:
    """Newton's step among the free coefficients; one that stands at its bound and would leave it is held too."""
    free = free.copy()
    while free.any():
        step = np.zeros(len(gradient))
        block = hessian[np.ix_(free, free)]
        damping = 1e-14 * float(np.trace(block)) + 1e-300
        step[free] = -np.linalg.solve(block + damping * np.eye(int(free.sum())), gradient[free])
        leaving = free & at_bound & (step < 0.0)
        if not leaving.any():
            return step
        free[leaving] = False
    return np.zeros(len(gradient))


def _objective(
    design: np.ndarray, targets: np.ndarray, weights: np.ndarray, coef: np.ndarray, ridge: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    k = len(coef)
    gradient, hessian = np.zeros(k), np.zeros((k, k))
    loss = _statistics(design, targets, weights, coef, gradient, hessian)
    return (
        loss + 0.5 * float(ridge @ (coef * coef)),
        gradient + ridge * coef,
        hessian + np.triu(hessian, 1).T + np.diag(ridge),
    )


@kernel
def _statistics(design, targets, weights, coef, gradient, hessian):
    """Loss; adds to the gradient (k,) and the upper triangle of the Hessian (k, k)."""
    n, k = design.shape
    weighted = len(weights) > 0
    loss, lost = 0.0, 0.0
    for i in range(n):
        z = 0.0
        for j in range(k):
            z += design[i, j] * coef[j]
        e = math.exp(-abs(z))
        large = 1.0 / (1.0 + e)
        p = large if z >= 0.0 else e * large
        w = weights[i] if weighted else 1.0
        # Kahan's sum: over a million rows plain sums would hide the last steps in rounding.
        term = w * (math.log1p(e) + max(z, 0.0) - targets[i] * z) - lost
        total = loss + term
        lost = (total - loss) - term
        loss = total
        residual = w * (p - targets[i])
        curvature = w * e * large * large
        for j in range(k):
            gradient[j] += residual * design[i, j]
            cj = curvature * design[i, j]
            for m in range(j, k):
                hessian[j, m] += cj * design[i, m]
    return loss
