"""Scores of all retrieval functions under all analysers, at their defaults: one pass over a query's postings."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from functools import cache

import numpy as np

from truerank.core.kernel import kernel
from truerank.text.index import ALL, Index
from truerank.text.retrieval import offer
from truerank.text.retrieval_functions import (
    BM25,
    TFIDF,
    Cosine,
    Dirichlet,
    JelinekMercer,
    length_norm,
    query_terms,
)

_N_FUNCTIONS = 5
_WINDOW = 4096
"""Documents that are scored at a time: what is known of them stays in the processor's cache."""
_TABLE = 16
"""Counts whose logarithms are taken once."""
_LENGTHS = 512
"""Lengths whose logarithms are taken once."""
_BINS = 1024
"""Parts of a function's range that its best documents are counted in."""


class JointScores:
    """What each of `FUNCTIONS`, at its defaults and under each analyser, gives every document that has a query's term.

    The bits are those of each function by itself.

    Parameters
    ----------
    index : Index
    weights : mapping of str to mapping of int to float
        q_t of the query's terms by number, as `query_weights` makes them, of each analyser of the index.
    field : str, default "all"

    Attributes
    ----------
    numbers : int64 array (n,)
        Documents that have a term of the query under some analyser, in the order of their first posting.
    values : float64 array (n, 5 · analysers)
        Their scores: for each analyser columns in the order of `FUNCTIONS`. A document without the terms of an
        analyser has tf = 0 in its language models, and 0 of its other functions.
    found : uint8 array (n, analysers)
        1 where the document has a term of the query under the analyser.

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
    >>> index = build_index(documents, tempfile.mkdtemp() + "/index", analysers=["plain"])
    >>> JointScores(index, {"plain": {index.terms("heat", "plain")[0]: 1.0}}).numbers.tolist()
    [0]
    """

    def __init__(self, index: Index, weights: Mapping[str, Mapping[int, float]], field: str = ALL) -> None:
        n = index.n_documents
        documents, counts, sizes, constants = [], [], [], []
        self._likelihood = np.zeros((len(index.analysers), 3))
        for row, analyser in enumerate(index.analysers):
            postings = index.postings(analyser, field)
            cosine, tfidf, bm25, dirichlet, jelinek_mercer = _functions(analyser, field)
            terms = query_terms(postings, weights[analyser])
            priors, mixed = dirichlet.priors(terms, postings.n_tokens), jelinek_mercer.priors(terms, postings.n_tokens)
            self._likelihood[row, :2] = dirichlet.without_terms(terms, priors)
            self._likelihood[row, 2] = jelinek_mercer.without_terms(terms, mixed)
            factors = (each.factors(n, terms) for each in (cosine, tfidf, bm25))
            for term, *rest in zip(terms, *factors, priors, mixed):
                documents.append(postings.documents[term.start : term.stop])
                counts.append(postings.counts[term.start : term.stop])
                sizes.append((row, term.stop - term.start))
                constants.append((*rest[:4], (1 - jelinek_mercer.lam) / rest[4], term.weight))
        self._beside = _beside_counts(index, field)
        most = min(n, sum(size for _, size in sizes))
        self.numbers = np.empty(most, dtype=np.int64)
        self.found = np.empty((most, len(index.analysers)), dtype=np.uint8)
        self.values = np.empty((most, _N_FUNCTIONS * len(index.analysers)))
        size = 0
        if most:
            size = _score_jointly(
                np.array(sizes, dtype=np.int64), np.concatenate(documents), np.concatenate(counts),
                np.array(constants), *self._beside, self._likelihood, self.numbers, self.found, self.values,
            )  # fmt: skip
        self.numbers, self.found, self.values = self.numbers[:size], self.found[:size], self.values[:size]

    def best(self, depth: int) -> np.ndarray:
        """Documents that are among the best `depth` of a function, equal scores by number; int64, in any order."""
        if len(self.numbers) <= depth:
            return self.numbers
        chosen = np.zeros(len(self.numbers), dtype=np.uint8)
        for analyser in range(self.found.shape[1]):
            _choose_best(self.numbers, self.found, self.values, analyser, depth, chosen)
        return self.numbers[chosen != 0]

    def of(self, documents: np.ndarray) -> np.ndarray:
        """Scores of any different documents, float64 (m, 5 · analysers)."""
        values = np.zeros((len(documents), self.values.shape[1]))
        place = _borrow(len(self._beside[0]))
        _look_up(self.numbers, self.values, documents, *self._beside, self._likelihood, place, values)
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


def _beside_counts(index: Index, field: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a document's scores need beside its counts: lengths and cosine norms; the constants; logarithms.

    `documents` (n_documents, analysers, 2): the cosine norm and |d|, side by side, so that one look finds both.
    `saturation` (analysers, 4): k1, b, avdl, μ. `logs` (analysers, lengths): ln(|d| + μ) of lengths from 0.
    """

    def make() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        documents = np.empty((index.n_documents, len(index.analysers), 2))
        parameters, logs = np.empty((len(index.analysers), 4)), np.empty((len(index.analysers), _LENGTHS))
        for row, analyser in enumerate(index.analysers):
            postings = index.postings(analyser, field)
            cosine, _, bm25, dirichlet, _ = _functions(analyser, field)
            documents[:, row, 0], documents[:, row, 1] = cosine.norms(index), postings.lengths
            parameters[row] = bm25.k1, bm25.b, postings.mean_length, dirichlet.mu
            _fill_logs(dirichlet.mu, logs[row])
        return documents, parameters, logs

    found: tuple[np.ndarray, np.ndarray, np.ndarray] = index.held(("beside-counts", field), None, make)
    return found


@kernel
def _fill_logs(mu, values):
    for length in range(len(values)):
        values[length] = math.log(length + mu)


@kernel
def _count_tables(constants):
    """Of small counts: the factor of cosine, and what each term gives under Dirichlet."""
    logs, gains = np.empty(_TABLE), np.empty((len(constants), _TABLE))
    for c in range(1, _TABLE):
        logs[c] = 1.0 + math.log(c)
        for t in range(len(constants)):
            gains[t, c] = constants[t, 5] * math.log1p(c / constants[t, 3])
    return logs, gains


@kernel
def _score_jointly(
    sizes, documents, counts, constants, beside, parameters, logs, likelihood, numbers, found, values
):  # fmt: skip
    """Fill `numbers`, `found` and `values` with the documents of the postings; returns how many.

    `sizes` (terms, 2): analyser and number of postings of each term, which stand one behind the other in `documents`
    and `counts`, ascending. `constants` (terms, 6): the weights of cosine, tf-idf and BM25, the prior of Dirichlet, the
    ratio of Jelinek-Mercer, q_t; `likelihood` (analysers, 3): Σ q_t and the constants of the two models.
    Many arguments: five retrieval functions are scored in one pass, and each has its own constants.
    """
    n_terms = len(sizes)
    stops = np.cumsum(sizes[:, 1])
    heads = stops - sizes[:, 1]
    ends = np.empty(n_terms, dtype=np.int64)  # of what is scored at a time
    near = np.empty((_WINDOW, beside.shape[1], 2))
    logs_of_counts, gains = _count_tables(constants)
    of_length = np.full((n_terms, _LENGTHS), np.nan)  # what a single occurrence in a document of some length gives
    place = np.full(_WINDOW, -1, dtype=np.int32)
    size = 0
    while True:
        base = len(beside)
        for t in range(n_terms):
            if heads[t] < stops[t]:
                base = min(base, documents[heads[t]])
        if base == len(beside):
            return size
        first = size
        for t in range(n_terms):
            i = heads[t]
            while i < stops[t] and documents[i] < base + _WINDOW:
                d = documents[i]
                if place[d - base] < 0:
                    place[d - base] = size
                    numbers[size] = d
                    size += 1
                i += 1
            ends[t] = i
        for slot in range(first, size):  # by itself, so that many looks into memory are under way at once
            near[slot - first] = beside[numbers[slot]]
        found[first:size] = 0
        values[first:size] = 0.0
        for t in range(n_terms):
            a = sizes[t, 0]
            k1, b, mean = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            of_cosine, of_tfidf, of_bm25 = constants[t, 0], constants[t, 1], constants[t, 2]
            prior, ratio, weight = constants[t, 3], constants[t, 4], constants[t, 5]
            column = _N_FUNCTIONS * a
            for i in range(heads[t], ends[t]):
                slot, count = place[documents[i] - base], counts[i]
                row = values[slot]
                found[slot, a] = 1
                norm, length = near[slot - first, a, 0], near[slot - first, a, 1]
                if count < _TABLE:
                    row[column] += of_cosine * logs_of_counts[count] / norm
                    row[column + 3] += gains[t, count]
                else:
                    row[column] += of_cosine * (1.0 + math.log(count)) / norm
                    row[column + 3] += weight * math.log1p(count / prior)
                saturation = count + length_norm(length, mean, k1, b)
                row[column + 1] += of_tfidf * count / saturation
                row[column + 2] += of_bm25 * count / saturation
                if count == 1 and length < _LENGTHS:
                    if math.isnan(of_length[t, int(length)]):
                        of_length[t, int(length)] = weight * math.log1p(ratio / length)
                    row[column + 4] += of_length[t, int(length)]
                else:
                    row[column + 4] += weight * math.log1p(ratio * count / length)
            heads[t] = ends[t]
        for slot in range(first, size):
            place[numbers[slot] - base] = -1
            _add_without_terms(near[slot - first], parameters, logs, likelihood, values[slot])


@kernel
def _add_without_terms(beside, parameters, logs, likelihood, row):
    """What a document has in the language models apart from its counts."""
    for a in range(len(likelihood)):
        row[_N_FUNCTIONS * a + 3] += likelihood[a, 1]
        if likelihood[a, 0] != 0.0:
            length = beside[a, 1]
            log = logs[a, int(length)] if length < _LENGTHS else math.log(length + parameters[a, 3])
            row[_N_FUNCTIONS * a + 3] -= likelihood[a, 0] * log
        row[_N_FUNCTIONS * a + 4] += likelihood[a, 2]


@kernel
def _choose_best(numbers, found, values, analyser, depth, chosen):
    """Mark the documents that are among the best `depth` of a function under an analyser, equal scores by number.

    Values are counted by bins of their range: what lies above the bin where `depth` is reached is taken, and of that
    bin what a heap of the places that are left keeps.
    """
    n, first = len(numbers), _N_FUNCTIONS * analyser
    matched, low, high = 0, np.full(_N_FUNCTIONS, np.inf), np.full(_N_FUNCTIONS, -np.inf)
    for i in range(n):
        if found[i, analyser]:
            matched += 1
            for k in range(_N_FUNCTIONS):
                low[k] = min(low[k], values[i, first + k])
                high[k] = max(high[k], values[i, first + k])
    if matched <= depth:
        for i in range(n):
            chosen[i] |= found[i, analyser]
        return
    bins, counts = np.full((n, _N_FUNCTIONS), -1, dtype=np.int16), np.zeros((_N_FUNCTIONS, _BINS), dtype=np.int32)
    for i in range(n):
        if found[i, analyser]:
            for k in range(_N_FUNCTIONS):
                if high[k] > low[k]:
                    bins[i, k] = int((values[i, first + k] - low[k]) / (high[k] - low[k]) * (_BINS - 1))
                else:
                    bins[i, k] = 0
                counts[k, bins[i, k]] += 1
    last, room = np.full(_N_FUNCTIONS, _BINS - 1), np.full(_N_FUNCTIONS, depth)
    for k in range(_N_FUNCTIONS):
        while counts[k, last[k]] <= room[k]:
            room[k] -= counts[k, last[k]]
            last[k] -= 1
    sizes = np.zeros(_N_FUNCTIONS, dtype=np.int64)
    last_numbers = np.empty((_N_FUNCTIONS, room.max()), dtype=np.int64)
    last_values = np.empty((_N_FUNCTIONS, room.max()))
    for i in range(n):
        for k in range(_N_FUNCTIONS):
            if bins[i, k] > last[k]:
                chosen[i] = 1
            elif bins[i, k] == last[k] and room[k] > 0:
                sizes[k] = offer(
                    last_numbers[k, : room[k]], last_values[k], sizes[k], numbers[i], values[i, first + k]
                )  # fmt: skip
    for i in range(n):
        for k in range(_N_FUNCTIONS):
            if bins[i, k] == last[k] and room[k] > 0:
                value, cut = values[i, first + k], last_values[k, 0]
                if value > cut or (value == cut and numbers[i] <= last_numbers[k, 0]):
                    chosen[i] = 1


@kernel
def _look_up(numbers, scores, documents, beside, parameters, logs, likelihood, place, values):
    """The row of each document, or what one without the query's terms has; `values` are zeros."""
    for i in range(len(documents)):
        place[documents[i]] = i
    for slot in range(len(numbers)):
        i = place[numbers[slot]]
        if i >= 0:
            values[i] = scores[slot]
            place[numbers[slot]] = -1
    for i in range(len(documents)):
        if place[documents[i]] >= 0:
            place[documents[i]] = -1
            _add_without_terms(beside[documents[i]], parameters, logs, likelihood, values[i])
