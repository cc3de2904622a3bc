"""Scores `X w` of a linear ranker, the same bits for a row wherever it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.threads import row_blocks

_BLOCK_VALUES = 1 << 19  # numbers in a block of rows: 4 MB as float64, which stays in a processor's cache
FEW = 16  # columns with a weight up to which the others are not even read


def linear_scores(X: Any, coef: np.ndarray) -> np.ndarray:
    """Scores `X @ coef`, float64 (n,), whose bits depend on a row's values alone.

    A row has the same score alone or among others, wherever its memory starts, and with any number of BLAS threads
    (a BLAS product keeps none of the three), so that equal rows tie and a prediction can be repeated. Rows are taken
    in blocks: float32 values are widened a block at a time, and X is never copied whole. With at most `FEW` weights
    that are not zero only their columns are read.

    Parameters
    ----------
    X : float32 or float64 array (n, p), or CSR matrix (n, p)
    coef : float64 array (p,)

    Notes
    -----
    O(n p), 0.4 ns a value. The sums of a dense and a sparse matrix run in different orders and agree to rounding.

    Examples
    --------
    >>> linear_scores(np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([0.5, 0.25])).tolist()
    [1.0, 1.0]
    """
    n, p = X.shape
    coef = np.ascontiguousarray(coef, dtype=np.float64)
    scores = np.zeros(n)
    if hasattr(X, "tocsr"):
        for start, stop in row_blocks(n):
            scores[start:stop] = X[start:stop] @ coef
        return scores
    used = np.flatnonzero(coef)
    if len(used) == 0:
        return scores
    for start, stop in row_blocks(n, max(1, _BLOCK_VALUES // p)):
        if len(used) <= FEW:
            scores[start:stop] = combine_columns([X[start:stop, k] for k in used], coef[used])
        else:
            block = np.ascontiguousarray(X[start:stop], dtype=np.float64)
            np.einsum("ij,j->i", block, coef, out=scores[start:stop])
    return scores


def combine_columns(columns: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """`Σ_k weights[k] columns[k]`, float64 (n,), added column by column, as `linear_scores` does for few weights."""
    total = np.multiply(columns[0], weights[0], dtype=np.float64)
    term = np.empty_like(total)
    for column, weight in zip(columns[1:], weights[1:]):
        np.multiply(column, weight, out=term, dtype=np.float64)
        total += term
    return total
