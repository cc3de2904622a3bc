"""Scores of all retrieval functions at once, at their defaults: one pass over a query's postings."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from functools import cache

import numpy as np

from truerank.core.kernel import kernel
from truerank.text.index import ALL, Index
from truerank.text.retrieval import (
    BM25,
    TFIDF,
    Cosine,
    Dirichlet,
    JelinekMercer,
    query_terms,
)


class JointScores:
    """What each of `FUNCTIONS`, at its defaults, gives every document that has a term of a query; the same bits.

    Parameters
    ----------
    index : Index
    weights : mapping of int to float
        q_t of the query's terms by number, as `query_weights` makes them.
    analyser : str
    field : str, default "all"

    Attributes
    ----------
    numbers : int64 array (n,)
        Documents that have a term of the query, in the order of their first posting.
    values : float64 array (n, 5)
        Their scores, columns in the order of `FUNCTIONS`.

    Notes
    -----
    Memory and time go with the query's postings, apart from four bytes for each document of the index, which a thread
    keeps from query to query.

    Examples
    --------
    >>> import tempfile
    >>> from truerank.io.documents import Document
    >>> from truerank.text.index import build_index
    >>> documents = [Document("a", {"text": "heat flow"}, {}, {}), Document("b", {"text": "sound"}, {}, {})]
    >>> index = build_index(documents, tempfile.mkdtemp() + "/index")
    >>> JointScores(index, {index.terms("heat", "plain")[0]: 1.0}, "plain").numbers.tolist()
    [0]
    """

    def __init__(self, index: Index, weights: Mapping[int, float], analyser: str, field: str = ALL) -> None:
        postings = index.postings(analyser, field)
        cosine, tfidf, bm25, dirichlet, jelinek_mercer = _functions(analyser, field)
        terms = query_terms(postings, weights)
        priors = dirichlet.priors(terms, postings.n_tokens)
        mixed = jelinek_mercer.priors(terms, postings.n_tokens)
        columns = [
            cosine.factors(index.n_documents, terms),
            tfidf.factors(index.n_documents, terms),
            bm25.factors(index.n_documents, terms),
            priors,
            [(1 - jelinek_mercer.lam) / prior for prior in mixed],
            [term.weight for term in terms],
        ]
        ranges = np.array([(term.start, term.stop) for term in terms], dtype=np.int64).reshape(-1, 2)
        self._likelihood = np.array(
            [*dirichlet.without_terms(terms, priors), jelinek_mercer.without_terms(terms, mixed)]
        )
        self._lengths = _log_lengths(index, analyser, field, dirichlet.mu)
        most = min(index.n_documents, int((ranges[:, 1] - ranges[:, 0]).sum()))
        numbers, values = np.empty(most, dtype=np.int64), np.empty((most, 5))
        self._n_documents = index.n_documents
        place = _borrow(index.n_documents)
        size = _score_jointly(
            ranges, postings.documents, postings.counts, postings.lengths, cosine.norms(index),
            tfidf.norms(index), bm25.norms(index), self._lengths, np.array(columns).reshape(6, -1), self._likelihood,
            place, numbers, values,
        )  # fmt: skip
        _give_back(place)
        self.numbers, self.values = numbers[:size], values[:size]

    def best(self, depth: int) -> np.ndarray:
        """Documents that are among the best `depth` of a function, equal scores by number; int64, in any order."""
        surplus = len(self.numbers) - depth
        if surplus <= 0:
            return self.numbers
        cuts = np.partition(self.values, surplus, axis=0)[surplus]
        chosen = np.zeros(len(self.numbers), dtype=np.uint8)
        for column in np.flatnonzero(_choose_above(self.values, cuts, depth, chosen)).tolist():
            equal = np.flatnonzero(self.values[:, column] == cuts[column])
            room = depth - int((self.values[:, column] > cuts[column]).sum())
            chosen[equal[np.argsort(self.numbers[equal])[:room]]] = 1
        return self.numbers[chosen != 0]

    def of(self, documents: np.ndarray) -> np.ndarray:
        """Scores of any documents, float64 (n, 5); one without the query's terms has tf = 0 in the language models."""
        values = np.empty((len(documents), 5))
        place = _borrow(self._n_documents)
        _look_up(self.numbers, self.values, documents, self._lengths, self._likelihood, place, values)
        _give_back(place)
        return values


@cache
def _functions(analyser: str, field: str) -> tuple[Cosine, TFIDF, BM25, Dirichlet, JelinekMercer]:
    """The functions at their defaults, in the order of `FUNCTIONS`."""
    return (
        Cosine(analyser, field),
        TFIDF(analyser, field),
        BM25(analyser, field),
        Dirichlet(analyser, field),
        JelinekMercer(analyser, field),
    )


_held = threading.local()


def _borrow(n_documents: int) -> np.ndarray:
    """-1 for every document, this thread's vector from its last query; whoever is stopped gives none back."""
    place: np.ndarray | None = getattr(_held, "place", None)
    _held.place = None
    return np.full(n_documents, -1, dtype=np.int32) if place is None or len(place) != n_documents else place


def _give_back(place: np.ndarray) -> None:
    _held.place = place


def _log_lengths(index: Index, analyser: str, field: str, mu: float) -> np.ndarray:
    """ln(|d| + μ) of every document; the last ones of each field are held."""

    def make() -> np.ndarray:
        values = np.empty(index.n_documents)
        _fill_log_lengths(index.postings(analyser, field).lengths, mu, values)
        return values

    found: np.ndarray = index.held(("log-lengths", analyser, field), mu, make)
    return found


@kernel
def _fill_log_lengths(lengths, mu, values):
    for d in range(len(lengths)):
        values[d] = math.log(lengths[d] + mu)


@kernel
def _score_jointly(
    ranges, documents, counts, lengths, cosine_norms, tfidf_norms, bm25_norms, log_lengths, constants, likelihood,
    place, numbers, values,
):  # fmt: skip
    """Fill `numbers` and `values` with the documents of the postings; returns how many.

    `constants` (6, terms): the weights of cosine, tf-idf and BM25, the prior of Dirichlet, the ratio of Jelinek-Mercer,
    q_t; `likelihood`: Σ q_t and the constants of the two models. `place` (n_documents,) is -1 before and after.
    Many arguments: five retrieval functions are scored in one pass, and each has its own norms.
    """
    size = 0
    tables = 16  # logarithms of small counts are taken once
    logs, gains = np.empty(tables), np.empty(tables)
    lengths_held = 512
    of_length = np.empty(lengths_held)  # what a single occurrence in a document of some length gives
    for c in range(1, tables):
        logs[c] = 1.0 + math.log(c)
    for t in range(len(ranges)):
        of_cosine, of_tfidf, of_bm25 = constants[0, t], constants[1, t], constants[2, t]
        of_length[:] = np.nan
        prior, ratio, weight = constants[3, t], constants[4, t], constants[5, t]
        for c in range(1, tables):
            gains[c] = weight * math.log1p(c / prior)
        for i in range(ranges[t, 0], ranges[t, 1]):
            d = documents[i]
            count = counts[i]
            slot = place[d]
            if slot < 0:
                slot = size
                size += 1
                place[d] = slot
                numbers[slot] = d
                values[slot, :] = 0.0
            if count < tables:
                values[slot, 0] += of_cosine * logs[count] / cosine_norms[d]
                values[slot, 3] += gains[count]
            else:
                values[slot, 0] += of_cosine * (1.0 + math.log(count)) / cosine_norms[d]
                values[slot, 3] += weight * math.log1p(count / prior)
            values[slot, 1] += of_tfidf * count / (count + tfidf_norms[d])
            values[slot, 2] += of_bm25 * count / (count + bm25_norms[d])
            length = lengths[d]
            if count == 1 and length < lengths_held:
                if math.isnan(of_length[length]):
                    of_length[length] = weight * math.log1p(ratio / length)
                values[slot, 4] += of_length[length]
            else:
                values[slot, 4] += weight * math.log1p(ratio * count / length)
    for slot in range(size):
        d = numbers[slot]
        place[d] = -1
        values[slot, 3] += likelihood[1]
        if likelihood[0] != 0.0:
            values[slot, 3] -= likelihood[0] * log_lengths[d]
        values[slot, 4] += likelihood[2]
    return size


@kernel
def _choose_above(values, cuts, depth, chosen):
    """Mark rows with a value at or above its column's cut; a column with more than `depth` marks only those above.

    Returns 1 for each such column: which of the equal ones are left to the caller.
    """
    n, k = values.shape
    reached = np.zeros(k, dtype=np.int64)
    for i in range(n):
        for column in range(k):
            if values[i, column] >= cuts[column]:
                reached[column] += 1
    ties = np.zeros(k, dtype=np.uint8)
    for column in range(k):
        if reached[column] > depth:
            ties[column] = 1
    for i in range(n):
        for column in range(k):
            if values[i, column] > cuts[column] or (values[i, column] == cuts[column] and ties[column] == 0):
                chosen[i] = 1
                break
    return ties


@kernel
def _look_up(numbers, scores, documents, log_lengths, likelihood, place, values):
    """The row of each document, or what one without the query's terms has."""
    for slot in range(len(numbers)):
        place[numbers[slot]] = slot
    for i in range(len(documents)):
        d = documents[i]
        slot = place[d]
        if slot >= 0:
            values[i, :] = scores[slot, :]
        else:
            values[i, :3] = 0.0
            values[i, 3] = likelihood[1]
            if likelihood[0] != 0.0:
                values[i, 3] -= likelihood[0] * log_lengths[d]
            values[i, 4] = likelihood[2]
    for slot in range(len(numbers)):
        place[numbers[slot]] = -1
