"""What linear rankers share: scores `X w`, weights by feature name, the check of a loaded model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from truerank.core.blocked import row_blocks
from truerank.core.errors import ModelFileError
from truerank.rankers.base import Ranker

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


class LinearRanker(Ranker):
    """Base class of rankers whose score is `X @ coef_`; `_fit` sets `coef_`.

    Attributes
    ----------
    coef_ : float64 array (n_features_in_,)
        Weight of each column.
    """

    model_attributes: ClassVar[tuple[str, ...]] = (*Ranker.model_attributes, "coef_")
    allow_sparse = True

    coef_: np.ndarray

    def _predict(self, X: Any) -> np.ndarray:
        return linear_scores(X, self.coef_)

    def feature_weights(self) -> dict[str, float]:
        """Weights that are not zero by feature name, largest magnitude first (equal ones in column order).

        Columns without names are called "feature 1", "feature 2" and so on, as LETOR counts them.
        """
        names = getattr(self, "feature_names_in_", None)
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        return {
            f"feature {k + 1}" if names is None else str(names[k]): float(self.coef_[k])
            for k in order
            if self.coef_[k] != 0
        }

    def check_model(self) -> None:
        """Called after loading: one finite weight for each column."""
        super().check_model()
        coef = getattr(self, "coef_", None)
        if not isinstance(coef, np.ndarray) or coef.shape != (self.n_features_in_,):
            shape = getattr(coef, "shape", None)
            raise ModelFileError(
                f"{type(self).__name__}: coef_ must hold {self.n_features_in_} weights, got shape {shape}"
            )
        if coef.dtype != np.float64 or not np.isfinite(coef).all():
            raise ModelFileError(f"{type(self).__name__}: coef_ must hold finite float64 weights")
