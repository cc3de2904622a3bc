"""Boosted oblivious trees the slow way: floats, every border tried by a mask, every leaf's share by the formula."""

from __future__ import annotations

import itertools

import numpy as np


def level_search(X, borders, g, h, depth, l2=0.0):
    """Questions [(feature, border)] that greedily maximise Σ G²/(H + l2); the first of equal ones wins."""
    n, p = X.shape
    leaf = np.zeros(n, dtype=int)
    questions = []
    before = score(g, h, leaf, l2)
    for level in range(depth):
        best = None
        for k in range(p):
            for c in borders[k]:
                value = score(g, h, leaf + ((X[:, k] > c) << level), l2)
                if best is None or value > best[0] + 1e-9 * abs(best[0]):
                    best = value, k, c
        if best is None or best[0] <= before + 1e-9 * abs(before):
            break
        before, k, c = best
        questions.append((k, float(c)))
        leaf += (X[:, k] > c) << level
    return questions


def score(g, h, leaf, l2):
    return sum(g[leaf == q].sum() ** 2 / (h[leaf == q].sum() + l2) for q in np.unique(leaf))


def leaf_of(X, questions):
    return sum(((X[:, k] > c).astype(int) << t for t, (k, c) in enumerate(questions)), np.zeros(len(X), dtype=int))


def plain_values(g, h, leaf, n_leaves, l2=0.0):
    return np.array(
        [-g[leaf == q].sum() / (h[leaf == q].sum() + l2) if (leaf == q).any() else 0 for q in range(n_leaves)]
    )


def swap_matrix(n, p):
    """Probability that the value at place i truly stands at place j, (n, n)."""
    weight = p ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)).astype(float))
    return weight / weight.sum(axis=1, keepdims=True)


def right_share(train, x, c, p, ties="near"):
    """P(x stands right of border c), from the matrix of swaps over the sorted training values."""
    values = np.sort(train)
    n, b = len(values), int((values <= c).sum())
    swaps = swap_matrix(n, p)
    lo, hi = int((values < x).sum()), int((values <= x).sum())
    if ties == "average" and hi > lo:
        return float(swaps[lo:hi, b:].sum(axis=1).mean())
    place = lo if x > c else hi - 1
    return float(swaps[min(max(place, 0), n - 1), b:].sum())


def leaf_shares(train, X, questions, p, ties="near"):
    """P(row in leaf) (n, 2^d): every leaf's product of its levels' shares."""
    right = np.array([[right_share(train[:, k], x[k], c, p, ties) for k, c in questions] for x in X])
    d = len(questions)
    shares = np.ones((len(X), 1 << d))
    for q, t in itertools.product(range(1 << d), range(d)):
        shares[:, q] *= right[:, t] if q >> t & 1 else 1 - right[:, t]
    return shares


def monomials(Z, degree):
    """Columns of all products of at most `degree` columns of Z, by degree, then lexicographically."""
    columns = [np.ones(len(Z))]
    for q in range(1, degree + 1):
        for chosen in itertools.combinations_with_replacement(range(Z.shape[1]), q):
            columns.append(np.prod(Z[:, chosen], axis=1))
    return np.stack(columns, axis=1)


def joint_polynomials(features, leaf, target, weight, n_leaves, penalty, l2=0.0):
    """Coefficients (leaves, M) of minimum norm that minimise, over all leaves at once,

    Σ_l Σ_(rows of l) weight (target - x·y_l)² + l2 Σ ‖y_l‖² + penalty Σ_(leaves one bit apart) ‖y_l - y_n‖².
    """
    m = features.shape[1]
    lines, right = [], []
    for x, q, value, w in zip(features, leaf, target, weight):
        line = np.zeros((n_leaves, m))
        line[q] = np.sqrt(w) * x
        lines.append(line.ravel())
        right.append(np.sqrt(w) * value)
    for q, j in itertools.product(range(n_leaves), range(m)):
        line = np.zeros((n_leaves, m))
        line[q, j] = np.sqrt(l2)
        lines.append(line.ravel())
        right.append(0.0)
        for other in range(q + 1, n_leaves):
            if (q ^ other).bit_count() == 1:
                line = np.zeros((n_leaves, m))
                line[q, j], line[other, j] = np.sqrt(penalty), -np.sqrt(penalty)
                lines.append(line.ravel())
                right.append(0.0)
    return np.linalg.lstsq(np.array(lines), np.array(right), rcond=1e-9)[0].reshape(n_leaves, m)


def place_marginals(n, p):
    """P(the value at place i is at place j) under P(permutation) ∝ p^inversions, an n × n list of rows.

    Values are inserted one by one: the k-th (from 0) into slot s of k + 1 with probability ∝ p^(k - s); that adds k - s
    inversions. A value moves up by one place when a later one is inserted at or before it.
    """
    rows = []
    for i in range(n):
        z = sum(p**t for t in range(i + 1))
        at = [p ** (i - s) / z for s in range(i + 1)]
        for k in range(i + 1, n):
            z = sum(p**t for t in range(k + 1))
            after = [0.0] * (k + 1)
            for place, share in enumerate(at):
                moved = sum(p ** (k - s) for s in range(place + 1)) / z
                after[place] += share * (1 - moved)
                after[place + 1] += share * moved
            at = after
        rows.append(at)
    return rows


def place_formula(n, p):
    """The same as equation 4 has it: ∝ p^|i - j|."""
    return [[p ** abs(i - j) / sum(p ** abs(i - k) for k in range(n)) for j in range(n)] for i in range(n)]
