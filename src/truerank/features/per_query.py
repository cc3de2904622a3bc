"""Transformers within the query, for scores whose scale differs between queries."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.fitting import fits_whole
from truerank.core.schema import COLUMNS
from truerank.core.types import ArrayLike, MatrixLike
from truerank.data.grouping import group_rows, offsets_of, query_of_rows
from truerank.features.columns import unit_of


class _InQuery(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers that map each column within each query; `fit` stores only the number of columns.

    `qid` has the query of each row, in any order; None means that all rows are one query. In a scikit-learn pipeline
    enable metadata routing and pass `qid=` to the pipeline. NaN remains NaN and does not affect other values.
    """

    model_attributes: ClassVar[dict[str, str]] = COLUMNS
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, Any]] = {"qid": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @fits_whole
    def fit(self, X: MatrixLike, y: ArrayLike | None = None, *, qid: ArrayLike | None = None) -> Any:
        """Check X (n, p) and store its columns. `y` and `qid` are not used."""
        validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        return self

    def fit_transform(self, X: MatrixLike, y: ArrayLike | None = None, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Fit to X, and return `transform(X)`."""
        return self.fit(X).transform(X, qid=qid)

    def transform(self, X: MatrixLike, *, qid: ArrayLike | None = None) -> np.ndarray:
        """Return float64 (n, p): each value of X mapped within its query and column, rows in the caller's order."""
        check_is_fitted(self, "n_features_in_")
        values: np.ndarray = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        grouping = group_rows(qid, len(values))
        return grouping.restore(self._map(grouping.grouped(values), grouping.offsets)) if len(values) else values

    def _map(self, X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class PercentileInQuery(_InQuery):
    """Share of the query's other values that are lower; a tie counts half. The lowest value gets 0, the highest 1.

    This is the feature map of SVM-acc3 before binning. A single value in a query becomes 0.

    Examples
    --------
    >>> X = [[3.0], [1.0], [2.0], [7.0], [7.0]]
    >>> PercentileInQuery().fit_transform(X, qid=[1, 1, 1, 2, 2]).ravel().tolist()
    [1.0, 0.0, 0.5, 0.5, 0.5]
    """

    def _map(self, X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        query, m = query_of_rows(offsets), len(offsets) - 1
        result = np.full(X.shape, np.nan)
        for j in range(X.shape[1]):
            there = np.flatnonzero(~np.isnan(X[:, j]))
            if not len(there):
                continue
            q, x = query[there], X[there, j]
            order = np.lexsort((x, q))
            q, x = q[order], x[order]
            count = np.bincount(q, minlength=m)
            place = np.arange(len(q)) - offsets_of(count)[q]
            new = np.concatenate([[True], (np.diff(x) != 0) | (np.diff(q) != 0)])
            run = np.cumsum(new) - 1
            mean_place = np.bincount(run, weights=place) / np.bincount(run)
            result[there[order], j] = mean_place[run] / np.maximum(count[q] - 1, 1)
        return result


class MinMaxInQuery(_InQuery):
    """`(x - min) / (max - min)` within the query, 0 if all values are equal. This is the feature map of SVM-acc4.

    Examples
    --------
    >>> MinMaxInQuery().fit_transform([[2.0], [7.0], [6.0], [5.0]], qid=[1, 1, 1, 2]).ravel().tolist()
    [0.0, 1.0, 0.8, 0.0]
    """

    def _map(self, X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        lowest, highest = np.fmin.reduceat(X, offsets[:-1]), np.fmax.reduceat(X, offsets[:-1])
        sizes = np.diff(offsets)
        # Halves keep the range finite near the largest float.
        spread = highest / 2 - lowest / 2
        with np.errstate(invalid="ignore"):
            scale = np.repeat(np.where(spread > 0, spread, 1.0), sizes, axis=0)
            return np.clip((X / 2 - np.repeat(lowest / 2, sizes, axis=0)) / scale, 0.0, 1.0)


class ZScoreInQuery(_InQuery):
    """`(x - mean) / standard deviation` within the query (population deviation), 0 if all values are equal.

    Examples
    --------
    >>> ZScoreInQuery().fit_transform([[1.0], [3.0], [5.0]], qid=["a", "a", "b"]).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """

    def _map(self, X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        sizes, starts = np.diff(offsets), offsets[:-1]
        there = ~np.isnan(X)
        unit = unit_of(np.maximum.reduceat(np.abs(np.where(there, X, 0.0)), starts))  # z-scores do not depend on it
        X = X / np.repeat(unit, sizes, axis=0)
        count = np.maximum(np.add.reduceat(there.astype(np.float64), starts), 1.0)
        mean = np.add.reduceat(np.where(there, X, 0.0), starts) / count
        centred = X - np.repeat(mean, sizes, axis=0)
        variance = np.add.reduceat(np.where(there, centred, 0.0) ** 2, starts) / count
        equal = np.fmax.reduceat(X, starts) == np.fmin.reduceat(X, starts)
        deviation = np.where(equal | (variance == 0), 1.0, np.sqrt(variance))
        return np.where(np.repeat(equal, sizes, axis=0) & there, 0.0, centred / np.repeat(deviation, sizes, axis=0))
