"""Slow, obvious maximum likelihood of two-sided densities: log likelihoods as written, a numerical optimiser over all
three parameters from many starts."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar


def log_likelihood(family, x, weight, theta, left, right):
    """Sum of weighted log densities; `left` and `right` are scales."""
    d = x - theta
    below = d <= 0
    scale = np.where(below, left, right)
    c = np.sqrt(np.pi / 2)
    if family == "laplace":
        terms = -np.log(left + right) - np.abs(d) / scale
    elif family == "gaussian":
        terms = -np.log(c * (left + right)) - d * d / (2 * scale**2)
    else:  # hybrid: exponential left, Gaussian right
        terms = -np.log(left + c * right) - np.where(below, -d / left, d * d / (2 * right**2))
    return float((weight * terms).sum())


def optimise(family, x, weight=None, starts=20):
    """(log likelihood, θ, left, right): the best of many local searches over all three parameters."""
    x = np.asarray(x, dtype=float)
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=float)
    pivot = float(np.median(x))
    z = x - pivot
    spread = float(np.ptp(z))
    candidates = np.unique(np.concatenate([np.quantile(z, np.linspace(0, 1, starts)), np.linspace(z[0], z[-1], 3)]))
    best = (-np.inf, 0.0, 0.0, 0.0)
    for theta in candidates:
        for ratio in (0.3, 3.0):
            scale = max(float(np.average(np.abs(z - theta), weights=weight)), 1e-6 * spread)

            def loss(p):
                left, right = np.exp(np.clip(p[1:], np.log(spread) - 27, np.log(spread) + 3))
                return -log_likelihood(family, z, weight, p[0] * spread, left, right)

            start = np.array([theta / spread, np.log(scale * ratio), np.log(scale / ratio)])
            result = minimize(
                loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 900}
            )
            if -result.fun > best[0]:
                left, right = np.exp(np.clip(result.x[1:], np.log(spread) - 27, np.log(spread) + 3))
                best = (-result.fun, result.x[0] * spread, left, right)
    # Polish the scales with θ held, so that "scales equal" is a fair question.
    value, scales = best[0], best[2:]
    for _ in range(3):
        for k in (0, 1):

            def along(log_scale, k=k, held=scales):
                pair = list(held)
                pair[k] = np.exp(log_scale)
                return -log_likelihood(family, z, weight, best[1], *pair)

            centre = np.log(scales[k])
            found = minimize_scalar(
                along, bounds=(centre - 0.5, centre + 0.5), method="bounded", options={"xatol": 1e-12}
            )
            if -found.fun >= value:
                value, scales = -found.fun, tuple(np.exp(found.x) if j == k else scales[j] for j in (0, 1))
    return value, best[1] + pivot, *scales


def every_theta(family, x, weight=None, points=10):
    """Brute force over θ: all scores and `points` places in each gap (ends included), scales by formula.

    The paper's equations (3) to (5), term by term.
    """
    x = np.sort(np.asarray(x, dtype=float))
    weight = np.ones(len(x)) if weight is None else np.asarray(weight, dtype=float)
    n = weight.sum()
    best = (-np.inf, 0.0, 0.0, 0.0)
    for a, b in zip(x[:-1], x[1:]):
        for theta in np.linspace(a, b, points):
            below = x <= theta
            power = 1 if family == "laplace" else 2
            dl = float((weight[below] * (theta - x[below]) ** power).sum())
            dr = float((weight[~below] * (x[~below] - theta) ** power).sum())
            if family == "laplace":
                left, right = (dl + np.sqrt(dl * dr)) / n, (dr + np.sqrt(dl * dr)) / n
            else:
                left = np.sqrt((dl + dl ** (2 / 3) * dr ** (1 / 3)) / n)
                right = np.sqrt((dr + dr ** (2 / 3) * dl ** (1 / 3)) / n)
            if left + right == 0:
                continue
            tiny = 1e-13 * np.ptp(x)
            value = log_likelihood(family, x, weight, theta, max(left, tiny), max(right, tiny))
            if value > best[0]:
                best = (value, theta, left, right)
    return best


def constrained(family, x, smallest, points=8):
    """The log likelihood at the best of all scores and `points` places a gap, scales searched above `smallest`.

    The scales are searched on a grid of their logarithms, which is narrowed around its best point ten times.
    """
    weight = np.ones(len(x))
    distinct = np.unique(x)
    places = np.concatenate([np.linspace(a, b, points) for a, b in zip(distinct[:-1], distinct[1:])])
    low, high = np.log(smallest), np.log(10 * np.ptp(x) + smallest)
    best = -np.inf
    for theta in np.unique(places):
        below = x <= theta
        first, last = (low, low), (high, high)
        for _ in range(10):
            grid = [np.linspace(max(a, low), min(b, high), 41) for a, b in zip(first, last)]
            left, right = np.meshgrid(*(np.exp(logs) for logs in grid), indexing="ij")
            # The terms of `log_likelihood` for all pairs of scales: the sum over the scores on each side.
            values = sum(
                log_likelihood_of_side(family, x[side], theta, left, right) for side in (below, ~below) if side.any()
            )
            at = np.unravel_index(np.argmax(values), values.shape)
            centre = [logs[k] for logs, k in zip(grid, at)]
            width = [2 * (logs[1] - logs[0]) for logs in grid]
            first = [c - w for c, w in zip(centre, width)]
            last = [c + w for c, w in zip(centre, width)]
        best = max(best, log_likelihood(family, x, weight, theta, *np.exp(centre)))
    return best


def log_likelihood_of_side(family, x, theta, left, right):
    """`log_likelihood` of scores that all lie on one side of θ, for arrays of scales."""
    total = np.zeros(left.shape)
    for score in x:
        d = score - theta
        scale = left if d <= 0 else right
        if family == "laplace":
            total += -np.log(left + right) - abs(d) / scale
        elif family == "gaussian":
            total += -np.log(np.sqrt(np.pi / 2) * (left + right)) - d * d / (2 * scale**2)
        else:
            total += -np.log(left + np.sqrt(np.pi / 2) * right) - (-d / left if d <= 0 else d * d / (2 * right**2))
    return total
