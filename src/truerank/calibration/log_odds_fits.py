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
_SUMMARY_ROWS = 200
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
    converged, value = _minimise(
        np.ascontiguousarray(design, dtype=np.float64), np.ascontiguousarray(targets, dtype=np.float64),
        np.ascontiguousarray(weights, dtype=np.float64), coef, lower, np.ascontiguousarray(ridge), tol,
    )  # fmt: skip
    return LogOddsFit(coef, Status.CONVERGED if converged else Status.MAX_ITERATIONS, value)


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
    design, coef = np.ones((len(z), 4)), np.zeros(4)  # neighbouring knots have neighbouring coefficients

    def loss(place: float, knots: np.ndarray, moved: int) -> float:
        """Return the least objective with one knot moved to a position."""
        low, high = (knots[0], place) if moved else (place, knots[1])
        return _spline_loss(z, low, high, design, targets, weight, coef, lower, ridge, 1e-6)

    pairs = [np.array([low, high]) for i, low in enumerate(grid) for high in grid[i + 1 :]]
    knots = min(pairs, key=lambda pair: loss(pair[0], pair, 0))
    span = float(np.max(np.diff(grid)))
    for _ in range(2):
        for moved in (0, 1):
            place, ends = knots[moved], np.array([z[0], *knots, z[-1]])
            low, high = max(ends[moved], place - span), min(ends[moved + 2], place + span)
            found = minimize_scalar(
                loss, args=(knots, moved), bounds=(low, high), method="bounded", options={"xatol": 0.02 * (high - low)}
            )
            if found.fun < loss(place, knots, moved):
                knots[moved] = found.x
        span /= 2.0
    return knots


def _summary(
    z: np.ndarray, positive: np.ndarray, targets: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean score, mean target, weight and class-balanced mass of at most 200 groups of neighbours, ascending."""
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
def _spline_loss(z, low, high, design, targets, weights, coef, lower, ridge, tol):
    """Return the least objective of a spline with two knots; overwrite the design (n, 4) and the coefficients (4,)."""
    for i in range(len(z)):
        design[i, 1] = min(z[i] - low, 0.0)
        design[i, 2] = min(max(z[i], low), high) - low
        design[i, 3] = max(z[i] - high, 0.0)
    return _minimise(design, targets, weights, coef, lower, ridge, tol)[1]


@kernel
def _minimise(design, targets, weights, coef, lower, ridge, tol):
    """Move the coefficients (k,) to the minimum; return whether they have reached it, and the objective."""
    k = len(coef)
    gradient, hessian, step, trial = np.empty(k), np.empty((k, k)), np.empty(k), np.empty(k)
    next_gradient, next_hessian = np.empty(k), np.empty((k, k))
    free, at_bound = np.empty(k, np.bool_), np.empty(k, np.bool_)
    value = _objective(design, targets, weights, coef, ridge, gradient, hessian)
    for _ in range(_MAX_ITERATIONS):
        # Coefficients at their bound stay there if the gradient points outwards.
        for j in range(k):
            at_bound[j] = lower[j] and coef[j] <= 0.0
            free[j] = not (at_bound[j] and gradient[j] >= 0.0)
        _newton_step(hessian, gradient, free, at_bound, step)
        decrement, scale = 0.0, 1.0
        for j in range(k):
            decrement -= gradient[j] * step[j]
            # Go at most to the first bound, where the next iteration holds the coefficient.
            if lower[j] and step[j] < 0.0:
                scale = min(scale, coef[j] / -step[j])
        if decrement <= tol * max(abs(value), 1e-300):
            return True, value
        while True:
            for j in range(k):
                trial[j] = coef[j] + scale * step[j]
                if lower[j]:
                    reached = scale < 1.0 and step[j] < 0.0 and trial[j] <= 1e-15 * coef[j]
                    trial[j] = 0.0 if reached else max(trial[j], 0.0)
            found = _objective(design, targets, weights, trial, ridge, next_gradient, next_hessian)
            # Near the minimum, values differ by less than their rounding error. Accept the step.
            if found <= value - 1e-4 * scale * decrement + _ROUNDING * abs(value):
                break
            scale /= 2.0
            if scale < 1e-12:
                # No step lowers the objective in floating point.
                return True, value
        value = found
        coef[:], gradient[:], hessian[:] = trial, next_gradient, next_hessian
    return False, value


@kernel
def _newton_step(hessian, gradient, free, at_bound, step):
    """Set Newton's step (k,) of the free coefficients, without those that would leave their bound."""
    k = len(gradient)
    factor = np.empty((k, k))
    while True:
        trace = 0.0
        for j in range(k):
            trace += hessian[j, j] if free[j] else 0.0
        # Cholesky's factor of the Hessian of the free coefficients, with ones for the others.
        for j in range(k):
            step[j] = -gradient[j] if free[j] else 0.0
            for m in range(j + 1):
                value = hessian[m, j] if free[j] and free[m] else 0.0
                if j == m:
                    value = value + 1e-14 * trace + 1e-300 if free[j] else 1.0
                for i in range(m):
                    value -= factor[j, i] * factor[m, i]
                factor[j, m] = math.sqrt(max(value, 1e-300)) if j == m else value / factor[m, m]
        for j in range(k):
            for i in range(j):
                step[j] -= factor[j, i] * step[i]
            step[j] /= factor[j, j]
        for j in range(k - 1, -1, -1):
            for i in range(j + 1, k):
                step[j] -= factor[i, j] * step[i]
            step[j] /= factor[j, j]
        leaving = False
        for j in range(k):
            if free[j] and at_bound[j] and step[j] < 0.0:
                free[j], leaving = False, True
        if not leaving:
            return


@kernel
def _objective(design, targets, weights, coef, ridge, gradient, hessian):
    """Return the objective, and set its gradient (k,) and the upper triangle of its Hessian (k, k)."""
    gradient[:], hessian[:] = 0.0, 0.0
    loss = _statistics(design, targets, weights, coef, gradient, hessian)
    for j in range(len(coef)):
        loss += 0.5 * ridge[j] * coef[j] * coef[j]
        gradient[j] += ridge[j] * coef[j]
        hessian[j, j] += ridge[j]
    return loss


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
