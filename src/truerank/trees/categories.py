"""Categorical features as numbers: ordered target statistics within queries.

A category c becomes the weighted mean of its rows' grades, centred within queries and shrunk to 0:

    s(c) = Σ_{rows of c} w (y - ȳ_query) / (Σ_{rows of c} w + PRIOR).

A training row must not use its own grade: its statistic uses only the queries before its own query in a random order.
New rows have the statistic of all queries. A category that is not in the training data becomes 0, and NaN remains NaN.

References: L. Prokhorenkova et al., CatBoost: unbiased boosting with categorical features, NeurIPS 2018, section 3.2
(where the order is over rows).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from truerank.core.errors import ModelFileError
from truerank.core.kernel import kernel
from truerank.core.schema import check_fields
from truerank.data.grouping import query_of_rows

PRIOR = 10.0  # weight of the mean 0 in every category


@dataclass(frozen=True)
class CategoryTables:
    """Statistics of the categories of some features, concatenated."""

    features: np.ndarray  # int64 (u,): columns, ascending
    sizes: np.ndarray  # int64 (u,): categories of each
    values: np.ndarray = field(repr=False)  # float64 (Σ sizes,): the categories, ascending within each feature
    statistics: np.ndarray = field(repr=False)  # float64 (Σ sizes,)

    FIELDS: ClassVar[dict[str, str]] = {
        "features": "int[categorical] in [0, p) rising",
        "sizes": "int[categorical] in [0, inf]",
        "values statistics": "float[table_rows]",
    }

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return a copy of X (n, p) with statistics in place of categories."""
        result = X.copy()
        start = 0
        for feature, size in zip(self.features.tolist(), self.sizes.tolist()):
            values, statistics = self.values[start : start + size], self.statistics[start : start + size]
            column, found = X[:, feature].astype(np.float64), np.zeros(len(X))
            if size:
                place = np.minimum(np.searchsorted(values, column), size - 1)
                found = np.where(values[place] == column, statistics[place], 0.0)
            result[:, feature] = np.where(np.isnan(column), np.nan, found)
            start += size
        return result

    def check(self, n_features: int) -> None:
        """Raise `ModelFileError` if arrays from a file do not fit together."""
        check_fields(self, self.FIELDS, p=n_features, table_rows=int(self.sizes.sum()))
        if any((np.diff(part) <= 0).any() for part in np.split(self.values, np.cumsum(self.sizes)[:-1])):
            raise ModelFileError(
                "ObliviousBoosting: the tables of the categorical features must have ascending values", code="tables"
            )


def fit_categories(
    X: np.ndarray,
    y: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray | None,
    features: np.ndarray,
    order: np.ndarray,
) -> tuple[CategoryTables, np.ndarray]:
    """Return tables of the columns `features` (u,), and X with each row's statistic of earlier queries by `order`."""
    sizes = np.diff(offsets)
    w = np.ones(len(y)) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    query = query_of_rows(offsets)
    total = np.bincount(query, w, minlength=len(sizes))
    mean = np.bincount(query, w * y, minlength=len(sizes)) / np.where(total > 0, total, 1.0)
    centred = w * (y - mean[query])
    result = X.copy()
    values, statistics = [], []
    for feature in features.tolist():
        column = X[:, feature].astype(np.float64)
        known = ~np.isnan(column)
        own, code = np.unique(column[known], return_inverse=True)
        codes = np.full(len(column), -1, dtype=np.int64)
        codes[known] = code
        found, last = ordered_statistics(codes, centred, w, offsets, order, len(own), PRIOR)
        result[:, feature] = found
        values.append(own)
        statistics.append(last)
    empty = [np.empty(0)]
    tables = CategoryTables(
        features.astype(np.int64),
        np.array([len(one) for one in values], dtype=np.int64),
        np.concatenate(empty + values),
        np.concatenate(empty + statistics),
    )
    return tables, result


@kernel
def ordered_statistics(codes, centred, weight, offsets, order, size, prior):
    """Return the statistic of each row from earlier queries (n,), NaN without a category, and of all (size,)."""
    sums, counts = np.zeros(size), np.zeros(size)
    found = np.full(codes.size, np.nan)
    for q in order:
        for i in range(offsets[q], offsets[q + 1]):
            if codes[i] >= 0:
                found[i] = sums[codes[i]] / (counts[codes[i]] + prior)
        for i in range(offsets[q], offsets[q + 1]):
            if codes[i] >= 0:
                sums[codes[i]] += centred[i]
                counts[codes[i]] += weight[i]
    return found, sums / (counts + prior)
