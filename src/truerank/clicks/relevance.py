"""A logistic regression of relevance on features, and which rows of features belong to shown documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.clicks.log import ClickLog
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import id_texts
from truerank.data.ranking_data import RankingData

_PENALTY = 1e-3  # of squared coefficients of standardised features, by unit of weight


class LogisticRelevance:
    """P(relevant | x) = σ(x'w + b) over standardised features X (n, p), with shares of weights as labels."""

    def __init__(self, X: Any) -> None:
        X = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype=np.float64)
        X = np.nan_to_num(X)
        spread = X.std(axis=0)
        self.X = np.column_stack([(X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), np.ones(len(X))])
        self.n_rows = len(X)

    def predict(self, coefficients: np.ndarray) -> np.ndarray:
        """Probabilities (n,)."""
        return 1.0 / (1.0 + np.exp(-np.clip(self.X @ coefficients, -30, 30)))

    def fit(self, liked: np.ndarray, weight: np.ndarray, start: np.ndarray | None = None, steps: int = 2) -> np.ndarray:
        """Coefficients after Newton steps towards the most likely ones, `liked` (n,) being a part of `weight` (n,)."""
        w = np.zeros(self.X.shape[1]) if start is None else start
        penalty = np.full(len(w), _PENALTY * weight.sum())
        penalty[-1] = 1e-9
        for _ in range(steps):
            p = self.predict(w)
            gradient = self.X.T @ (liked - weight * p) - penalty * w
            curved = (weight * p * (1.0 - p))[:, None] * self.X
            step = np.linalg.solve(self.X.T @ curved + np.diag(penalty), gradient)
            w = w + step * min(1.0, 3.0 / max(np.abs(step).max(), 1e-300))
        return w


def rows_of_pairs(log: ClickLog, query: np.ndarray, document: np.ndarray, data: RankingData) -> np.ndarray:
    """Row of `data` (grouped) of each query and document, numbers of the log (c,); -1 where there is none."""
    if data.doc_ids is None:
        raise InvalidInputError(
            "the features have no document ids; name their column with document=... (--document-column ...)"
        )
    own, row = coded_pairs(log, id_texts(data.query_ids.tolist()), data.offsets, data.doc_ids)
    order = np.argsort(own, kind="stable")
    wanted = query.astype(np.int64) * len(log.document_ids) + document
    at = np.minimum(np.searchsorted(own[order], wanted), max(len(own) - 1, 0))
    if not len(own):
        return np.full(len(wanted), -1)
    return np.where(own[order][at] == wanted, row[order][at], -1)


def coded_pairs(
    log: ClickLog, queries: list[str], offsets: np.ndarray, documents: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (query · documents of the log + document) of the rows that the log knows, and these rows."""
    known_queries = {name: number for number, name in enumerate(log.query_ids.tolist())}
    known_documents = {name: number for number, name in enumerate(log.document_ids.tolist())}
    query = np.repeat([known_queries.get(name, -1) for name in queries], np.diff(offsets)).astype(np.int64)
    document = np.array([known_documents.get(name, -1) for name in documents.tolist()], dtype=np.int64)
    both = (query >= 0) & (document >= 0)
    return query[both] * len(log.document_ids) + document[both], np.flatnonzero(both)
