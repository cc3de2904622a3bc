"""Estimates from few judgements, document by document: every prediction is a regression of its own."""

from __future__ import annotations

import itertools

import numpy as np


def predictions(codes: np.ndarray, penalties: np.ndarray, judged: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Ridge regression on columns of 0 and 1 for each document anew, without the document's own value."""
    found = np.zeros(len(codes))
    for document in range(len(codes)):
        rows = [row for row in range(len(codes)) if judged[row] and row != document]
        x = np.zeros((len(rows), len(penalties)))
        for place, row in enumerate(rows):
            x[place, codes[row]] = 1.0
        if rows:
            left = np.vstack([x, np.diag(np.sqrt(penalties))])
            right = np.append(values[rows], np.zeros(len(penalties)))
            found[document] = np.linalg.lstsq(left, right, rcond=None)[0][codes[document]].sum()
    return found


def total(weights, gains, drawn, chances, predicted) -> float:
    """Σ w b + Σ_(drawn) w (g - b) / π."""
    value = 0.0
    for w, g, inside, chance, b in zip(weights, gains, drawn, chances, predicted):
        value += w * b
        if inside:
            value += w * (g - b) / chance
    return value


def samples(chances: np.ndarray):
    """Every set of documents that independent draws can give, as a mask, with its probability."""
    for mask in itertools.product((False, True), repeat=len(chances)):
        drawn = np.array(mask)
        yield drawn, float(np.where(drawn, chances, 1.0 - chances).prod())


def kappa(x, y, disagreement) -> float:
    """Cohen's kappa of two lists of grades by every pair of documents."""
    observed = np.mean([disagreement(a, b) for a, b in zip(x, y)])
    return 1.0 - observed / np.mean([disagreement(a, b) for a in x for b in y])


def alpha(x, y) -> float:
    """Krippendorff's ordinal alpha of two judges, by every pair of the grades given."""
    pooled = [*x, *y]

    def ordinal(a, b):
        a, b = min(a, b), max(a, b)
        return (sum(a <= g <= b for g in pooled) - (pooled.count(a) + pooled.count(b)) / 2) ** 2 if a != b else 0.0

    n = len(pooled)
    observed = sum(ordinal(a, b) for a, b in zip(x, y)) / len(x)
    expected = sum(ordinal(a, b) for i, a in enumerate(pooled) for j, b in enumerate(pooled) if i != j)
    return 1.0 - observed / (expected / (n * (n - 1)))
