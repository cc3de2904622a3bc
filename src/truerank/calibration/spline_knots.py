"""Where to break a three-piece line of log-odds: search for the two knots."""

from __future__ import annotations

import numpy as np

from truerank.calibration.log_odds_fits import fit_log_odds

_SUMMARY_ROWS = 400


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
    between its neighbours by golden sections.
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
        low = _golden(lambda k, other=high: loss((k, other)), max(z[0], low - span), min(high, low + span), low)
        high = _golden(lambda k, other=low: loss((other, k)), max(low, high - span), min(z[-1], high + span), high)
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


def _golden(function, low: float, high: float, start: float) -> float:
    """The best place of a golden-section search, or `start` where that is better."""
    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    best, best_value = start, function(start)
    a, b = low, high
    t1, t2 = b - ratio * (b - a), a + ratio * (b - a)
    f1, f2 = function(t1), function(t2)
    for _ in range(11):
        if f1 <= f2:
            b, t2, f2 = t2, t1, f1
            t1 = b - ratio * (b - a)
            f1 = function(t1)
        else:
            a, t1, f1 = t1, t2, f2
            t2 = a + ratio * (b - a)
            f2 = function(t2)
    t, f = (t1, f1) if f1 <= f2 else (t2, f2)
    return float(t) if f < best_value else float(best)
