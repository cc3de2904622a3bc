"""Numerical maximum likelihood, with no formula of the fits: θ and scales of densities, coefficients of log-odds.

Log likelihoods are written as the densities are; gradients are theirs. Scores are divided by their range about a pivot
first, so that an optimiser's tolerances mean the same for every sample.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize, minimize_scalar

C = math.sqrt(math.pi / 2)
# Family -> width of a unit of scale left and right, power of the distance left and right, whether both scales are one.
FAMILIES = {
    "gaussian": (C, C, 2, 2, True),
    "asymmetric-gaussian": (C, C, 2, 2, False),
    "laplace": (1.0, 1.0, 1, 1, True),
    "asymmetric-laplace": (1.0, 1.0, 1, 1, False),
    "hybrid": (1.0, C, 1, 2, False),
}


def density_log_likelihood(family, x, theta, left, right):
    """Σ log p(x): 1/(c_l left + c_r right) · exp(-(|d|/scale)^power/power), c and power by side."""
    c_left, c_right, power_left, power_right, _ = FAMILIES[family]
    d = x - theta
    ratio = np.where(d <= 0, np.abs(d) / left, np.abs(d) / right)
    power = np.where(d <= 0, power_left, power_right)
    return float(-len(x) * math.log(c_left * left + c_right * right) - (ratio**power / power).sum())


def best_scales(family, x, theta):
    """The log likelihood for a fixed θ and the logarithms of the scales that maximise it.

    In the logarithms the negative log likelihood is convex (log-sum-exp and exponentials): Newton's method with halved
    steps. A side without spread is held at 1e-13.
    """
    c_left, c_right, power_left, power_right, one = FAMILIES[family]
    d = theta - x
    far_left = float((np.where(d >= 0, d, 0.0) ** power_left).mean())
    far_right = float((np.where(d < 0, -d, 0.0) ** power_right).mean())
    tie = np.ones((2, 1)) if one else np.eye(2)

    def loss(u):
        log_left, log_right = tie @ u
        width = c_left * math.exp(log_left) + c_right * math.exp(log_right)
        share = np.array([c_left * math.exp(log_left), c_right * math.exp(log_right)]) / width
        pull = np.array([far_left * math.exp(-power_left * log_left), far_right * math.exp(-power_right * log_right)])
        value = math.log(width) + pull[0] / power_left + pull[1] / power_right
        hessian = np.diag(share + pull * (power_left, power_right)) - np.outer(share, share)
        return value, tie.T @ (share - pull), tie.T @ hessian @ tie

    u = np.full(tie.shape[1], math.log(max(float(np.abs(d).mean()), 1e-12)))
    value, gradient, hessian = loss(u)
    for _ in range(100):
        step = np.clip(np.linalg.solve(hessian + 1e-15 * np.eye(len(u)), gradient), -3, 3)
        scale = 1.0
        while scale > 1e-9:
            trial = np.clip(u - scale * step, math.log(1e-13), 5)
            new = loss(trial)
            if new[0] <= value:
                break
            scale /= 2
        else:
            break
        moved, u = np.abs(trial - u).max(), trial
        value, gradient, hessian = new
        if moved < 1e-14:
            break
    return -len(x) * value, tie @ u


def maximise_density(family, x, n_starts=9):
    """(log likelihood, θ, left, right), the best of searches from many modes: scores, gaps, a grid.

    θ by a bounded scalar search between neighbouring candidates, the scales by `best_scales` for each θ.
    """
    x = np.sort(np.asarray(x, dtype=float))
    candidates = np.unique(
        np.concatenate([np.quantile(x, np.linspace(0, 1, n_starts)), np.linspace(x[0], x[-1], 5), x])
    )

    def value_at(theta):
        return best_scales(family, x, theta)

    values = [value_at(theta)[0] for theta in candidates]
    best = (-np.inf, 0.0, 0.0, 0.0)
    for k in np.argsort(values)[::-1][:3]:
        spots = [candidates[k]]
        for a, b in (
            (candidates[max(k - 1, 0)], candidates[k]),
            (candidates[k], candidates[min(k + 1, len(values) - 1)]),
        ):
            if b > a:
                spots.append(
                    minimize_scalar(
                        lambda t: -value_at(t)[0], bounds=(a, b), method="bounded", options={"xatol": 1e-10 * (b - a)}
                    ).x
                )
        for theta in spots:
            value, log_scales = value_at(theta)
            if value > best[0]:
                best = (value, float(theta), *np.exp(log_scales).tolist())
    return best


def maximise_log_odds(columns, targets, *, ridge=0.0, starts=5, seed=0):
    """(objective, coefficients, intercept first): the least Σ cross-entropy + ridge/2 · slopes², from several starts.

    `columns` (n, k) of unit scale.
    """
    design = np.column_stack([np.ones(len(targets)), columns])
    penalty = np.r_[0.0, np.full(design.shape[1] - 1, ridge)]

    def loss(b):
        z = design @ b
        p = 1 / (1 + np.exp(-np.clip(z, -700, 700)))
        value = (np.logaddexp(0, z) - targets * z).sum() + 0.5 * (penalty * b * b).sum()
        return value / len(targets), (design.T @ (p - targets) + penalty * b) / len(targets)

    def curvature(b):
        p = 1 / (1 + np.exp(-np.clip(design @ b, -700, 700)))
        return (design.T * (p * (1 - p))) @ design / len(targets) + np.diag(penalty) / len(targets)

    rng = np.random.default_rng(seed)
    best = (np.inf, np.zeros(design.shape[1]))
    for k in range(starts):
        start = rng.normal(size=design.shape[1]) * (k > 0)
        found = minimize(loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-13})
        if found.fun < best[0]:
            best = (float(found.fun), found.x)
    return len(targets) * best[0], best[1]
