"""Judged rows of given query sizes."""

from __future__ import annotations

import numpy as np


def graded(seed, sizes, n_grades, p=4, decimals=None):
    """Features (n, p), grades without any part in them, offsets and queries."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    X = rng.normal(size=(offsets[-1], p))
    if decimals is not None:
        X = np.round(X, decimals)  # equal rows and equal scores
    y = rng.integers(0, n_grades, offsets[-1]).astype(float)
    return X, y, offsets, np.repeat(np.arange(len(sizes)), sizes)


def judged(seed=0, sizes=(7, 12, 1, 9, 4), n_grades=3, p=5):
    """Features (n, p), grades that follow the first of them, offsets and queries."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    X = rng.normal(size=(offsets[-1], p))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) + 0.5), 0, n_grades - 1)
    return X, y, offsets, np.repeat(np.arange(len(sizes)), sizes)
