"""RankBoost as its definition reads: every pair listed, every weak ranker tried. Slow and obvious."""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-12
CAP = 1e-12


def grid_thresholds(column, n_thresholds):
    values = column[~np.isnan(column)]
    extra = [-np.inf] if len(values) and len(values) < len(column) else []
    if not len(values) or values.min() == values.max():
        return extra
    low, high = float(values.min()), float(values.max())
    return extra + [low + j * (high - low) / n_thresholds for j in range(n_thresholds)]


def all_thresholds(column):
    values = column[~np.isnan(column)]
    extra = [-np.inf] if len(values) and len(values) < len(column) else []
    return extra + [float(v) for v in np.unique(values)[:-1]]


def rank_boost(X, y, qid, n_estimators, thresholds, query_weight=None):
    """List of (feature, threshold, missing value, r, alpha); `thresholds` is a number or "all"."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    queries = list(dict.fromkeys(qid))
    weight = dict.fromkeys(queries, 1.0) if query_weight is None else dict(zip(queries, query_weight))
    qid = np.asarray(qid)
    pairs, start = [], []
    for query in queries:
        rows = np.flatnonzero(qid == query)
        for a in rows:
            for b in rows:
                if y[a] < y[b] and weight[query] > 0:
                    pairs.append((a, b))
                    start.append(weight[query])
    rounds = []
    if not pairs:
        return rounds
    a, b = np.array(pairs).T
    log_d = np.log(start)
    used = np.unique(np.concatenate([a, b]))  # thresholds come from the rows that stand in some pair
    for _ in range(n_estimators):
        d = np.exp(log_d - log_d.max())
        d /= d.sum()
        tried = []
        for k in range(X.shape[1]):
            column = X[used, k]
            grid = all_thresholds(column) if thresholds == "all" else grid_thresholds(column, thresholds)
            for theta in sorted(grid):
                options = []
                for q in (0, 1):
                    h = weak(X[:, k], theta, q)
                    options.append((float(np.sum(d * (h[b] - h[a]))), q))
                (r0, _), (r1, _) = options
                r, q = (r1, 1) if abs(r1) > abs(r0) + TOLERANCE else (r0, 0)
                tried.append((k, theta, q, r))
        if not tried:
            break
        largest = max(abs(r) for *_, r in tried)
        if largest <= TOLERANCE:
            break
        k, theta, q, r = next(t for t in tried if abs(t[3]) >= largest - TOLERANCE)
        perfect = abs(r) >= 1 - CAP
        r = float(np.clip(r, -1 + CAP, 1 - CAP))
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        rounds.append((k, theta, q, r, alpha))
        if perfect:
            break
        h = weak(X[:, k], theta, q)
        log_d = log_d + alpha * (h[a] - h[b])
    return rounds


def weak(column, theta, q):
    return np.where(np.isnan(column), float(q), (column > theta).astype(float))


def predict(X, rounds):
    X = np.asarray(X, dtype=np.float64)
    scores = np.zeros(len(X))
    for k, theta, q, _, alpha in rounds:
        scores += alpha * weak(X[:, k], theta, q)
    return scores
