"""Worst rankings by enumeration, and the structural SVM by the paper's own algorithms."""

from __future__ import annotations

import itertools

import numpy as np


def ranking_loss(measure, relevant, order, cutoff=None, discount="log2"):
    """1 - measure of the ranking `order` (rows, best first) of one query with a relevant and another document."""
    hits = relevant[order]
    ranks = np.flatnonzero(hits) + 1
    R, N = len(ranks), int((~relevant).sum())
    if measure == "AP":
        return 1 - np.mean(np.arange(1, R + 1) / ranks)
    if measure == "RR":
        return 1 - 1 / ranks[0]
    if measure == "ROC":
        return sum((~hits[: rank - 1]).sum() for rank in ranks) / (R * N)
    depth = len(order) if cutoff is None else cutoff

    def weight(r):
        if discount == "letor":
            return 1.0 if r <= 2 else 1 / np.log2(r)
        return 1 / np.log2(1 + r)

    ideal = sum(weight(r) for r in range(1, min(R, depth) + 1))
    return 1 - sum(weight(r) for r in ranks if r <= depth) / ideal


def joint_feature_difference(relevant, order):
    """Coefficients of the scores in `w·Ψ(y) - w·Ψ(y*)`, from the definition over pairs."""
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    coefficients = np.zeros(len(order))
    R, N = int(relevant.sum()), int((~relevant).sum())
    for i in np.flatnonzero(relevant):
        for j in np.flatnonzero(~relevant):
            y = 1 if place[i] < place[j] else -1
            coefficients[i] += (y - 1) / (R * N)
            coefficients[j] -= (y - 1) / (R * N)
    return coefficients


def worst_by_enumeration(measure, relevant, scores, cutoff=None, discount="log2"):
    """`max_y Δ(y) + w·Ψ(y) - w·Ψ(y*)` over all rankings of one query."""
    return max(
        ranking_loss(measure, relevant, np.array(order), cutoff, discount)
        + joint_feature_difference(relevant, np.array(order)) @ scores
        for order in itertools.permutations(range(len(scores)))
    )


def ramp_by_enumeration(grades, scores, cutoff, gain, discount):
    """max_y [Δ(y) + s·ψ(y)] and max_y s·ψ(y) of graded nDCG over all rankings of one query, from the definitions."""
    rank = np.arange(1, len(grades) + 1)
    weights = 1 / np.log2(np.maximum(rank, 2)) if discount == "letor" else 1 / np.log2(1 + rank)
    weights[len(grades) if cutoff is None else cutoff :] = 0.0
    gains = grades if gain == "linear" else 2.0**grades - 1
    rankings = [list(order) for order in itertools.permutations(range(len(grades)))]
    ideal = max(weights @ gains[order] for order in rankings)
    worst = max(1 - weights @ gains[order] / ideal + weights @ scores[order] for order in rankings)
    return worst, max(weights @ scores[order] for order in rankings)


def places_of_algorithm_2(s, t, R, N):
    """Yue et al., Algorithm 2: for each other document the best place, by the sums of δ_j; s, t sorted, raw scores."""
    places = np.empty(N, dtype=int)
    k = np.arange(1, R + 1)
    for j in range(1, N + 1):
        terms = (j / (j + k) - (j - 1) / (j + k - 1)) / R - 2 * (s - t[j - 1]) / (R * N)
        delta = np.append(np.cumsum(terms[::-1])[::-1], 0.0)
        places[j - 1] = int(np.argmax(delta)) + 1
    return places


def closed_form_delta(s, t, j, i):
    """δ_j(i) by harmonic numbers; s, t already divided by R·N."""
    R = len(s)

    def h(a):
        return sum(1 / q for q in range(1, a + 1))

    loss = (j * (h(j + R) - h(j + i - 1)) - (j - 1) * (h(j + R - 1) - h(j + i - 2))) / R
    return loss - 2 * (s[i - 1 :].sum() - (R - i + 1) * t[j - 1])


def average_precision_oracle(relevant, scores):
    """(loss, coefficients) of one query's worst ranking under AP, by Algorithm 2, O(n log n + R N)."""
    rel_rows, other_rows = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    rel_rows = rel_rows[np.argsort(-scores[rel_rows], kind="stable")]
    other_rows = other_rows[np.argsort(-scores[other_rows], kind="stable")]
    R, N = len(rel_rows), len(other_rows)
    places = places_of_algorithm_2(scores[rel_rows], scores[other_rows], R, N)
    before = np.searchsorted(places, np.arange(1, R + 1), side="right")
    coefficients = np.zeros(len(scores))
    coefficients[rel_rows] = -2 * before / (R * N)
    coefficients[other_rows] = 2 * (R - (places - 1)) / (R * N)
    loss = 1 - np.mean(np.arange(1, R + 1) / (np.arange(1, R + 1) + before))
    return loss, coefficients


def exact_qp(H, q, group, C):
    """max qᵀα - ½αᵀHα over α >= 0, Σ_{group} α <= C, by SciPy's SLSQP-free route: an active set on the KKT system.

    Plain and slow: solves the equality-constrained problem on the free variables, drops those that would turn negative,
    adds the one that violates its condition most.
    """
    n, groups = len(q), int(group.max()) + 1
    # One slack variable for each group turns the limits into equations.
    big = np.zeros((n + groups, n + groups))
    big[:n, :n] = H
    linear = np.append(q, np.zeros(groups))
    member = np.zeros((groups, n + groups))
    member[group, np.arange(n)] = 1
    member[np.arange(groups), n + np.arange(groups)] = 1
    x = np.append(np.zeros(n), np.full(groups, float(C)))
    free = np.append(np.zeros(n, dtype=bool), np.ones(groups, dtype=bool))
    scale = max(1.0, np.abs(H).max())
    for _ in range(200 * (n + groups)):
        index = np.flatnonzero(free)
        k = len(index)
        system = np.zeros((k + groups, k + groups))
        system[:k, :k] = big[np.ix_(index, index)] + 1e-13 * scale * np.eye(k)
        system[:k, k:], system[k:, :k] = member[:, index].T, member[:, index]
        right = np.append(linear[index], np.full(groups, float(C)))
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
        step, multipliers = solution[:k] - x[index], solution[k:]
        falling = np.flatnonzero(step < -1e-15 * C)
        ratios = -x[index[falling]] / step[falling]
        t = min(1.0, ratios.min()) if len(falling) else 1.0
        x[index] += t * step
        if t < 1.0:
            out = index[falling[int(np.argmin(ratios))]]
            x[out], free[out] = 0.0, False
            continue
        x[index] = np.maximum(x[index], 0.0)
        reduced = linear - big @ x - member.T @ multipliers
        reduced[free] = -np.inf
        entering = int(np.argmax(reduced))
        if reduced[entering] <= 1e-11 * max(1.0, np.abs(q).max()):
            break
        free[entering] = True
    return x[:n]


def n_slack(X, y, offsets, C, epsilon, rel=1, oracle=average_precision_oracle, qp=exact_qp, max_passes=10_000):
    """Yue et al., Algorithm 1: working sets, one constraint at a time, the quadratic program solved after each.

    Returns w, the objective at w with the true slacks, and the number of constraints.
    """
    queries = [np.arange(a, b) for a, b in zip(offsets[:-1], offsets[1:])]
    queries = [rows for rows in queries if 0 < (y[rows] >= rel).sum() < len(rows)]
    m = len(queries)
    w = np.zeros(X.shape[1])
    G, losses, owner = np.zeros((0, X.shape[1])), np.zeros(0), np.zeros(0, dtype=int)
    for _ in range(max_passes):
        added = False
        for i, rows in enumerate(queries):
            loss, coefficients = oracle(y[rows] >= rel, X[rows] @ w)
            g = coefficients @ X[rows]
            mine = owner == i
            slack = max(0.0, (losses[mine] + G[mine] @ w).max()) if mine.any() else 0.0
            if loss + g @ w > slack + epsilon:
                G, losses, owner = np.vstack([G, g]), np.append(losses, loss), np.append(owner, i)
                renamed = np.unique(owner, return_inverse=True)[1]
                alpha = qp(G @ G.T, losses, renamed, C / m)
                w = -alpha @ G
                added = True
        if not added:
            break
    risk = 0.0
    for rows in queries:
        loss, coefficients = oracle(y[rows] >= rel, X[rows] @ w)
        risk += max(0.0, loss + coefficients @ (X[rows] @ w)) / m
    return w, 0.5 * w @ w + C * risk, len(losses)
