"""Losses over listed pairs, and their exact minima: the slow, obvious version of RankSVM and its samplers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def listed_pairs(y, offsets, weight=None):
    """Rows (a, b) with y[a] > y[b] in the same query, and the weight of each pair."""
    pairs, weights = [], []
    for q in range(len(offsets) - 1):
        for a in range(offsets[q], offsets[q + 1]):
            for b in range(offsets[q], offsets[q + 1]):
                if y[a] > y[b]:
                    pairs.append((a, b))
                    weights.append(1.0 if weight is None else weight[q])
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array(weights)


def pair_objective(w, X, y, offsets, C, weight=None, power=2):
    """`½‖w‖² + C Σ weight max(0, 1 - w·(x_a - x_b))^power` and its gradient (a subgradient for power 1)."""
    pairs, weights = listed_pairs(y, offsets, weight)
    z = X[pairs[:, 0]] - X[pairs[:, 1]]
    slack = np.maximum(0.0, 1.0 - z @ w)
    inner = power * weights * np.where(slack > 0, slack ** (power - 1), 0.0)
    return 0.5 * w @ w + C * np.sum(weights * slack**power), w - C * z.T @ inner


def squared_hinge_minimum(X, y, offsets, C, weight=None):
    """Minimum of the squared-hinge objective by L-BFGS on the listed pairs."""
    result = minimize(
        pair_objective, np.zeros(X.shape[1]), args=(X, y, offsets, C, weight), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-16, "gtol": 1e-10},
    )  # fmt: skip
    return result.x, result.fun


def hinge_minimum(X, y, offsets, C, weight=None):
    """Minimum of the hinge objective as a quadratic program in (w, slacks): dual box problem by L-BFGS-B, exact primal.

    Returns w and its primal objective, and the dual objective, a lower bound.
    """
    pairs, weights = listed_pairs(y, offsets, weight)
    z = X[pairs[:, 0]] - X[pairs[:, 1]]

    def negative_dual(alpha):
        v = z.T @ alpha
        return 0.5 * v @ v - alpha.sum(), z @ v - 1.0

    upper = C * weights
    result = minimize(
        negative_dual, upper / 2, jac=True, method="L-BFGS-B", bounds=[(0.0, u) for u in upper],
        options={"maxiter": 20000, "maxfun": 200000, "ftol": 1e-16, "gtol": 1e-10},
    )  # fmt: skip
    w = z.T @ result.x
    return w, pair_objective(w, X, y, offsets, C, weight, power=1)[0], -result.fun


def pair_probabilities(sampling, y, offsets, weight):
    """Each pair that can be drawn, with its probability, by listing them."""
    listed, own = listed_pairs(y, offsets, weight)
    query = np.searchsorted(offsets, listed[:, 0], side="right") - 1
    if sampling != "rank":
        own = own / np.bincount(query, minlength=len(offsets))[query]
    if sampling == "row-norm-rank":
        own = own * np.diff(offsets)[query]
    pairs = {(int(a), int(b)): v for (a, b), v in zip(listed, own) if v > 0}
    total = sum(pairs.values())
    return {pair: value / total for pair, value in pairs.items()}
