"""A logistic regression of relevance on features, and the rows of features that belong to shown documents."""

from __future__ import annotations

import numpy as np

from truerank.clicks.log import ClickLog
from truerank.core.errors import InvalidInputError
from truerank.core.types import MatrixLike
from truerank.data.grouping import id_texts
from truerank.data.ranking_data import RankingData

_PENALTY = 1e-3  # of squared coefficients of standardised features, per unit of weight


class LogisticRelevance:
    """P(relevant | x) = σ(x'w + b) of standardised features X (n, p); labels are shares of weights."""

    def __init__(self, X: MatrixLike) -> None:
        dense = np.nan_to_num(np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64))
        spread = dense.std(axis=0)
        scaled = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        self.X = np.column_stack([scaled, np.ones(len(dense))])

    def predict(self, coefficients: np.ndarray) -> np.ndarray:
        """Probabilities (n,)."""
        return 1.0 / (1.0 + np.exp(-np.clip(self.X @ coefficients, -30, 30)))

    def fit(self, liked: np.ndarray, weight: np.ndarray, start: np.ndarray | None = None, steps: int = 2) -> np.ndarray:
        """Return the coefficients after Newton steps; `liked` (n,) is the relevant part of `weight` (n,)."""
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


def pair_codes(
    log: ClickLog, queries: np.ndarray, offsets: np.ndarray, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the log's code of each row's query, and query · (number of documents) + document; -1 if unknown; (n,)."""
    known = [{name: code for code, name in enumerate(ids.tolist())} for ids in (log.query_ids, log.document_ids)]
    query, document = (
        np.array([codes.get(name, -1) for name in id_texts(names.tolist())], dtype=np.int64)
        for codes, names in zip(known, (np.asarray(queries), documents))
    )
    query = np.repeat(query, np.diff(offsets))
    return query, np.where((query >= 0) & (document >= 0), query * len(log.document_ids) + document, -1)


def rows_of_pairs(log: ClickLog, query: np.ndarray, document: np.ndarray, data: RankingData) -> np.ndarray:
    """Return the row of `data` (grouped) of each query and document, codes of the log (c,); -1 for none."""
    if data.doc_ids is None:
        raise InvalidInputError(
            "the features have no document ids; name their column with document=... (--document-column ...)"
        )
    _, code = pair_codes(log, data.query_ids, data.offsets, data.doc_ids)
    order = np.argsort(code, kind="stable")
    wanted = query.astype(np.int64) * len(log.document_ids) + document
    at = order[np.minimum(np.searchsorted(code[order], wanted), len(code) - 1)]
    return np.where(code[at] == wanted, at, -1)
