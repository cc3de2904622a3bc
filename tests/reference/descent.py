"""Stochastic pairwise descent written plainly: whole weight vectors, one step after the other."""

from __future__ import annotations

import numpy as np


def plain_descent(
    X,
    target,
    draws,
    *,
    loss="hinge",
    reg=1e-2,
    rate="pegasos",
    eta0=0.02,
    project=False,
    average_from=np.inf,
    intercept=1.0,
):
    """Weights (p + 1,) after the steps on the given draws (a, b), b = -1 for single rows; the last is the intercept."""
    rows = np.column_stack([np.asarray(X, dtype=np.float64), np.full(len(X), intercept)])
    w = np.zeros(rows.shape[1])
    total, averaged = np.zeros_like(w), 0
    for t, (a, b) in enumerate(zip(*draws), start=1):
        if b >= 0:
            z, u = rows[a] - rows[b], target[a] - target[b] if loss == "squared" else 1.0
        else:
            z, u = rows[a], target[a]
        eta = {"pegasos": 1 / (reg * t) if reg else np.inf, "basic": 10 / (10 + t), "constant": eta0}[rate]
        prediction = w @ z
        if loss == "hinge":
            step = eta * u if u * prediction < 1 else 0.0
        elif loss == "logistic":
            step = eta * u / (1 + np.exp(u * prediction))
        else:
            step = eta * (u - prediction)
        w = (1 - eta * reg) * w + step * z
        if project:
            w = w * min(1.0, 1 / np.sqrt(reg) / max(np.linalg.norm(w), 1e-300))
        if t >= average_from:
            total, averaged = total + w, averaged + 1
    return total / averaged if averaged else w
