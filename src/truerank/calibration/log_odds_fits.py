"""Maximum likelihood for log-odds that are linear in a few columns.

    minimise  Σ_i w_i [log(1 + exp(z_i)) - t_i z_i] + Σ_j ridge_j b_j²/2,   z = D b,   b_j ≥ 0 for j in `lower`

by Newton's method with halved steps. Targets t are in [0, 1]. The problem is convex. The loss has a minimum if the
targets are inside (0, 1) or the classes overlap. A kernel adds row by row, so the bits do not depend on threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from truerank.calibration.base import unit_of
from truerank.core.kernel import kernel
from truerank.solvers.result import Status

_MAX_ITERATIONS = 200
# Rows that the knots of a spline are searched on.
_SUMMARY_ROWS = 400
# Relative rounding error of the objective, whose terms are added up with compensation.
_ROUNDING = 1e-14


class LogOddsFit(NamedTuple):
    """Coefficients, the reason why the solver stopped, and objective."""

    coef: np.ndarray
    status: Status
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
    """Return the solution of the problem at the top of this module, for a `design` (n, k) of about unit scale.

    `lower` (k,) marks the coefficients that must not be negative. The fit has converged if a full Newton step would
    lower the objective by less than the share `tol`.
    """
    k = design.shape[1]
    coef = np.zeros(k) if start is None else np.array(start, dtype=np.float64)
    lower = np.zeros(k, dtype=bool) if lower is None else lower
    ridge = np.zeros(k) if ridge is None else ridge
    weights = np.empty(0) if weight is None else weight
    coef[lower] = np.maximum(coef[lower], 0.0)
    value, gradient, hessian = _objective(design, targets, weights, coef, ridge)
    for _ in range(_MAX_ITERATIONS):
        # Coefficients at their bound stay there if the gradient points outwards.
        free = ~(lower & (coef <= 0.0) & (gradient >= 0.0))
        if not free.any():
            return LogOddsFit(coef, Status.CONVERGED, value)
        step = _newton_step(hessian, gradient, free, lower & (coef <= 0.0))
        decrement = -float(gradient @ step)
        if decrement <= tol * max(abs(value), 1e-300):
            return LogOddsFit(coef, Status.CONVERGED, value)
        # Go at most to the first bound, where the next iteration holds the coefficient.
        falling = lower & (step < 0.0)
        scale = min(1.0, float(np.min(coef[falling] / -step[falling]))) if falling.any() else 1.0
        while True:
            trial = coef + scale * step
            trial[lower] = np.maximum(trial[lower], 0.0)
            if scale < 1.0:
                trial[falling & (trial <= 1e-15 * coef)] = 0.0
            new = _objective(design, targets, weights, trial, ridge)
            # Near the minimum, values differ by less than their rounding error. Accept the step.
            if new[0] <= value - 1e-4 * scale * decrement + _ROUNDING * abs(value):
                break
            scale /= 2.0
            if scale < 1e-12:
                # No step lowers the objective in floating point.
                return LogOddsFit(coef, Status.CONVERGED, value)
        coef = trial
        value, gradient, hessian = new
    return LogOddsFit(coef, Status.MAX_ITERATIONS, value)


def fit_standardised(
    columns: np.ndarray, targets: np.ndarray, weight: np.ndarray | None, ridge: float, ridge_of_intercept: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coefficients (k + 1,) of standardised columns (n, k), the intercept last, and their centre and scale."""
    units = np.array([unit_of(column) for column in columns.T])
    spread = (columns / units).std(axis=0) * units
    centre, scale = columns.mean(axis=0), np.where(spread > 0, spread, 1.0)
    design = np.ascontiguousarray(np.hstack([(columns - centre) / scale, np.ones((len(columns), 1))]))
    penalty = np.append(np.full(columns.shape[1], ridge), ridge_of_intercept)
    return fit_log_odds(design, targets, weight, ridge=penalty).coef, centre, scale


def _newton_step(hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray, at_bound: np.ndarray) -> np.ndarray:
    """Return Newton's step of the free coefficients, without those that would leave their bound."""
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


def spline_columns(z: np.ndarray, knots: np.ndarray) -> list[np.ndarray]:
    """Return three columns, whose coefficients are the slopes left of, between and right of the knots."""
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
    """Return the two knots with the greatest likelihood on a summary of the rows.

    All pairs of candidate quantiles are tried. Then SciPy's bounded search moves each knot in turn between its
    neighbours.
    """
    z, targets, weight, half = _summary(z, positive, targets, weight)
    total = np.cumsum(half)
    places = np.searchsorted(total, np.linspace(0.02, 0.98, n_candidates) * total[-1])
    grid = np.unique(z[np.minimum(places, len(z) - 1)])
    if len(grid) < 2:
        grid = np.array([z[0], z[-1]])
    lower = np.array([False, monotone, monotone, monotone])
    ridge = 1e-6 * weight.sum() * np.array([0.0, 1.0, 1.0, 1.0])
    design, start = np.ones((len(z), 4)), np.zeros(4)

    def loss(place: float, knots: np.ndarray, moved: int) -> float:
        """Least objective with one knot moved to a place."""
        design[:, 1:] = np.stack(spline_columns(z, np.where(np.arange(2) == moved, place, knots)), axis=1)
        fit = fit_log_odds(design, targets, weight, start=start, lower=lower, ridge=ridge, tol=1e-9)
        start[:] = fit.coef  # neighbouring knots have neighbouring coefficients
        return fit.objective

    pairs = [np.array([low, high]) for i, low in enumerate(grid) for high in grid[i + 1 :]]
    knots = min(pairs, key=lambda pair: loss(pair[0], pair, 0))
    span = float(np.max(np.diff(grid)))
    for _ in range(2):
        for moved in (0, 1):
            place, ends = knots[moved], np.array([z[0], *knots, z[-1]])
            low, high = max(ends[moved], place - span), min(ends[moved + 2], place + span)
            found = minimize_scalar(
                loss, args=(knots, moved), bounds=(low, high), method="bounded", options={"xatol": 0.005 * (high - low)}
            )
            if found.fun < loss(place, knots, moved):
                knots[moved] = found.x
        span /= 2.0
    return knots


def _summary(
    z: np.ndarray, positive: np.ndarray, targets: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean score, mean target, weight and class-balanced mass of at most 400 groups of neighbours, ascending."""
    w = np.ones(len(z)) if weight is None else weight
    plus, minus = float(w[positive].sum()), float(w[~positive].sum())
    # Each class counts half in the choice of the groups, so that a rare class keeps its detail.
    share = np.where(positive, 0.5 * w / plus if plus else 0.0, 0.5 * w / minus if minus else 0.0)
    # Equal scores become one row, so that a weight of 2 equals two copies.
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


@kernel
def _statistics(design, targets, weights, coef, gradient, hessian):
    """Return the loss, and add to the gradient (k,) and to the upper triangle of the Hessian (k, k)."""
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
        # Kahan's sum. Over a million rows, the rounding of plain sums would hide the last steps.
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
