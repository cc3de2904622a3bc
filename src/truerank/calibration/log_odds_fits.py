"""Maximum likelihood for log-odds that are linear in a few columns: the one solver of all fitted posteriors.

    minimise  Σ_i w_i [log(1 + exp(z_i)) - t_i z_i] + Σ_j ridge_j b_j²/2,   z = D b,   b_j ≥ 0 for j in `lower`

by Newton's method with halved steps; targets t lie in [0, 1]. The problem is convex; with every target inside (0, 1) or
overlapping classes it has a minimum. Sums run row by row in a kernel, so that the bits do not depend on BLAS threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from truerank.core.kernel import kernel
from truerank.solvers.result import Status

_MAX_ITERATIONS = 200
# Rows that the knots of a spline are searched on.
_SUMMARY_ROWS = 400
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


# Where to break a three-piece line of log-odds: search for the two knots of `SplineCalibrator`.


def spline_columns(z: np.ndarray, knots: np.ndarray) -> list[np.ndarray]:
    """The three columns whose coefficients are the slopes left of, between and right of the knots."""
    low, high = knots
    return [np.minimum(z - low, 0.0), np.clip(z, low, high) - low, np.maximum(z - high, 0.0)]


def best_knots(
    z: np.ndarray,
    positive: np.ndarray,
    targets: np.ndarray,
    weight: np.ndarray | None,
    monotone: bool,
    n_candidates: int,
) -> np.ndarray:
    """The two knots with the greatest likelihood on a summary of the rows.

    The rows are summarised as at most 400 means over neighbours (each class counts half in drawing the borders, so
    that a rare class keeps its detail). All pairs of candidate quantiles are tried, then each knot in turn moves
    between its neighbours by SciPy's bounded search.
    """
    z, t, w, half = _summary(z, positive, targets, weight)
    grid = np.unique(_quantiles(z, half, np.linspace(0.02, 0.98, n_candidates)))
    if len(grid) < 2:
        grid = np.array([z[0], z[-1]])
    loss = _Loss(z, t, w, monotone)
    pairs = [(grid[i], grid[j]) for i in range(len(grid)) for j in range(i + 1, len(grid))]
    best = min(pairs, key=loss)
    low, high = best
    span = float(np.max(np.diff(grid))) if len(grid) > 1 else float(z[-1] - z[0])
    for _ in range(2):

        def of_low(place: float, other: float = high) -> float:
            return loss((place, other))

        low = _best_between(of_low, max(z[0], low - span), min(high, low + span), low)

        def of_high(place: float, other: float = low) -> float:
            return loss((other, place))

        high = _best_between(of_high, max(low, high - span), min(z[-1], high + span), high)
        span /= 2.0
    return np.array([low, high])


class _Loss:
    """Least objective for a pair of knots."""

    def __init__(self, z: np.ndarray, targets: np.ndarray, weight: np.ndarray, monotone: bool) -> None:
        self.z, self.targets, self.weight = z, targets, weight
        self.lower = np.array([False, monotone, monotone, monotone])
        self.ridge = 1e-6 * weight.sum() * np.array([0.0, 1.0, 1.0, 1.0])
        self.design = np.ones((len(z), 4))
        self.start = np.zeros(4)

    def __call__(self, knots: tuple[float, float]) -> float:
        for j, column in enumerate(spline_columns(self.z, np.array(knots)), start=1):
            self.design[:, j] = column
        fit = fit_log_odds(
            self.design, self.targets, self.weight, start=self.start, lower=self.lower, ridge=self.ridge, tol=1e-9
        )
        # Neighbouring knots have neighbouring coefficients.
        self.start = fit.coef
        return fit.objective


def _summary(
    z: np.ndarray, positive: np.ndarray, targets: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean score, mean target, weight and class-balanced mass of at most 400 runs of neighbours, by rising score."""
    w = np.ones(len(z)) if weight is None else weight
    plus, minus = float(w[positive].sum()), float(w[~positive].sum())
    share = np.where(positive, 0.5 * w / plus if plus else 0.0, 0.5 * w / minus if minus else 0.0)
    # Equal scores are one row, so that a weight of 2 is two copies here too.
    z, place = np.unique(z, return_inverse=True)
    mass = np.bincount(place, weights=w)
    targets = np.bincount(place, weights=w * targets) / mass
    w, share = mass, np.bincount(place, weights=share)
    if len(z) > _SUMMARY_ROWS:
        group = np.minimum((np.cumsum(share) / share.sum() * _SUMMARY_ROWS).astype(np.int64), _SUMMARY_ROWS - 1)
        start = np.flatnonzero(np.r_[True, np.diff(group) > 0])
    else:
        start = np.arange(len(z))
    mass = np.add.reduceat(w, start)
    return (
        np.add.reduceat(w * z, start) / mass,
        np.add.reduceat(w * targets, start) / mass,
        mass,
        np.add.reduceat(share, start),
    )


def _quantiles(z: np.ndarray, mass: np.ndarray, levels: np.ndarray) -> np.ndarray:
    total = np.cumsum(mass)
    return z[np.minimum(np.searchsorted(total, levels * total[-1]), len(z) - 1)]


def _best_between(function: Callable[[float], float], low: float, high: float, start: float) -> float:
    """A least place of the function between two ends, to .005 of their distance, or `start` if that is better."""
    span = high - low
    found = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 0.005 * span})
    return float(found.x) if found.fun < function(start) else start


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
