"""Latent semantic similarity: cosines in the space of a truncated singular value decomposition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import sparse

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.threads import one_blas_thread
from truerank.text.index import ALL, Index
from truerank.text.retrieval_functions import RetrievalFunction

DIMENSIONS = 300  # a smaller space has the first dimensions


@dataclass(frozen=True)
class Latent(RetrievalFunction):
    """The cosine of query and document in the first `dimensions` dimensions of the latent space, if positive.

    The latent space also finds documents without a word of the query. The space is computed from all fields together.
    """

    dimensions: int = DIMENSIONS

    def __post_init__(self) -> None:
        check_positive_int(self.dimensions, "dimensions", 1, DIMENSIONS)
        check_choice(self.field, "field", (ALL,))

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        """Add the cosines of all documents."""
        vector = query_vector(index, weights, self.analyser)[: self.dimensions]
        values = cosines(document_vectors(index, self.analyser)[:, : self.dimensions], vector)
        scores += values
        matched[values > 0] = 1


def document_vectors(index: Index, analyser: str) -> np.ndarray:
    """Return U S of the decomposition of the tf-idf matrix, float32 (n_documents, k), which the index stores.

    The matrix has rows of unit length with entries (1 + ln tf) ln(n/df) (Deerwester and others 1990; Salton and Buckley
    1988, "ltc"); k = min(`DIMENSIONS`, documents - 1, terms - 1). scikit-learn's randomised solver has a fixed seed and
    one thread, for the same bits on all machines. Cost: O(postings · k).
    """
    return _space(index, analyser)[0]


def query_vector(index: Index, weights: Mapping[int, float], analyser: str) -> np.ndarray:
    """Return the coordinates of a query in the space, float64 (k,): q_t ln(n/df) times V."""
    terms = _space(index, analyser)[1]
    vector = np.zeros(terms.shape[1])
    postings, n = index.postings(analyser), index.n_documents
    for term, weight in weights.items():
        df = postings.documents_with(term)
        if df:
            vector += weight * math.log(n / df) * terms[term].astype(np.float64)
    return vector


def cosines(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the cosine of each row (n, k) with `vector` (k,), float64; 0 if either has length 0."""
    values = rows.astype(np.float64)
    length = math.sqrt(float((vector * vector).sum()))
    lengths = np.sqrt((values * values).sum(axis=1))
    return np.divide(
        (values * vector).sum(axis=1), lengths * length, out=np.zeros(len(rows)), where=lengths * length > 0
    )


def add_documents(vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return Rocchio's step in the latent space, v/‖v‖ + m/‖m‖ with m = Σ_d d/‖d‖ over `rows` (n, k); float64 (k,)."""
    units = [_unit(row) for row in rows.astype(np.float64)]
    return _unit(vector) + _unit(np.sum(units, axis=0) if units else np.zeros(len(vector)))


def _unit(vector: np.ndarray) -> np.ndarray:
    length = math.sqrt(float((vector * vector).sum()))
    return vector / length if length > 0 else vector


def _space(index: Index, analyser: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of the documents and of the terms, from the index or from a decomposition."""
    decomposed = cache(partial(_decomposed, index, analyser))
    documents = index.derived(f"{analyser}.latent-documents", lambda: decomposed()[0])
    return documents, index.derived(f"{analyser}.latent-terms", lambda: decomposed()[1])


def _decomposed(index: Index, analyser: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    postings, n, n_terms = index.postings(analyser), index.n_documents, index.n_terms(analyser)
    k = min(DIMENSIONS, n - 1, n_terms - 1)
    if k < 1:
        return np.zeros((n, 1), dtype=np.float32), np.zeros((n_terms, 1), dtype=np.float32)
    df = np.diff(postings.starts)
    values = (1 + np.log(postings.counts)) * np.repeat(np.log(n / np.maximum(df, 1)), df)
    matrix = sparse.csc_matrix((values, postings.documents, postings.starts), shape=(n, n_terms))
    matrix = normalize(matrix.tocsr(), copy=False)
    with one_blas_thread():
        solver = TruncatedSVD(k, algorithm="randomized", n_iter=7, random_state=0)
        rows = solver.fit_transform(matrix)
    return _without_rounding(rows), _without_rounding(solver.components_.T)


def _without_rounding(coordinates: np.ndarray) -> np.ndarray:
    """Return float32 (n, k) in C order, with 0 for coordinates below 1e-6, which are rounding errors of the solver."""
    return np.where(np.abs(coordinates) < 1e-6, 0, coordinates).astype(np.float32, order="C")
