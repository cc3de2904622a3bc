"""Retrieval functions: scores of documents from the counts of the query's terms.

Symbols for a query term t: q_t is its count (or weight) in the query, tf its count in document d, cf its count in the
collection, df the number of documents with t, |d| the number of terms of d, avdl its mean, |C| its sum, n the number of
documents. Documents without any query term are not retrieved. Terms without documents have no effect. Ties keep the
order of the documents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.text.analysers import STEMMED_AND_STOPPED
from truerank.text.index import ALL, Index, Postings


@dataclass(frozen=True)
class RetrievalFunction:
    """A retrieval function over a field under an analyser, whose `score` adds values to a vector of documents."""

    analyser: str = STEMMED_AND_STOPPED
    field: str = ALL

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        """Add the scores of all documents with a term of the query to `scores`, float64 (n_documents,).

        `weights` are the q_t of the query's terms, by number (see `query_weights`). `matched`, uint8 (n_documents,),
        becomes 1 for documents with a term of the query. Documents with a 1 from an earlier call are also scored;
        without a query term, tf = 0.
        """
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The name with analyser and field, for columns and runs."""
        return f"{type(self).__name__.lower()}.{self.analyser}.{self.field}"


class QueryTerm(NamedTuple):
    """A query term with at least one document: its documents and counts, q_t and cf."""

    documents: np.ndarray
    counts: np.ndarray
    weight: float
    occurrences: float


@dataclass(frozen=True)
class _Saturated(RetrievalFunction):
    """A sum over the terms of a factor times tf/(tf + k1 (1 - b + b |d|/avdl))."""

    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        check_number(self.k1, "k1", "[0, inf)")
        check_number(self.b, "b", "[0, 1]")

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        postings = index.postings(self.analyser, self.field)
        terms, mean = query_terms(postings, weights), postings.mean_length
        for term, factor in zip(terms, self.factors(index.n_documents, terms)):
            _add_saturated(*term[:2], postings.lengths, mean, float(self.k1), float(self.b), factor, scores, matched)

    def factors(self, n: int, terms: Sequence[QueryTerm]) -> list[float]:
        """Return the factor of each term in a collection of n documents."""
        raise NotImplementedError


def lucene_idf(n: int, df: int) -> float:
    """Return ln(1 + (n - df + ½)/(df + ½)) of a term in df of n documents."""
    return math.log1p((n - df + 0.5) / (df + 0.5))


@dataclass(frozen=True)
class BM25(_Saturated):
    """Okapi BM25 (Robertson & Zaragoza 2009, equation 3.15; Lemur's query part).

        Σ_t idf_t · tf (k1 + 1)/(tf + k1 (1 - b + b |d|/avdl)) · q_t (k3 + 1)/(q_t + k3)

    `idf`: "lucene" is ln(1 + (n - df + ½)/(df + ½)), never negative; "robertson" ln((n - df + ½)/(df + ½)), as in
    Lemur, negative for words of more than half of the documents; "atire" ln(n/df). Lucene (from version 8) omits the
    constant factor k1 + 1. `k3=inf` counts repeated query terms in full, as Lucene does.
    """

    k3: float = 7.0
    idf: str = "lucene"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.idf, "idf", ("lucene", "robertson", "atire"))
        if not self.k3 >= 0:
            raise InvalidInputError(argument="k3", expected="a number >= 0", value=self.k3)

    def factors(self, n: int, terms: Sequence[QueryTerm]) -> list[float]:
        result = []
        for documents, _, weight, _ in terms:
            df = len(documents)
            odds = (n - df + 0.5) / (df + 0.5)
            idf = math.log1p(odds) if self.idf == "lucene" else math.log(n / df if self.idf == "atire" else odds)
            of_query = weight if math.isinf(self.k3) else weight * (self.k3 + 1) / (weight + self.k3)
            result.append(idf * of_query * (self.k1 + 1))
        return result


@dataclass(frozen=True)
class TFIDF(_Saturated):
    """Tf-idf of Lemur and Indri (Zhai 2001, notes on the Lemur TFIDF model): the tf part of BM25 times a squared idf.

    Σ_t q_t · k1 tf/(tf + k1 (1 - b + b |d|/avdl)) · ln(n/df)²
    """

    def factors(self, n: int, terms: Sequence[QueryTerm]) -> list[float]:
        idfs = [math.log(n / len(term.documents)) for term in terms]
        return [term.weight * idf * idf * self.k1 for term, idf in zip(terms, idfs)]


@dataclass(frozen=True)
class Cosine(RetrievalFunction):
    """Cosine of tf-idf vectors, (1 + ln tf)(1 + ln(n/df)) on both sides (Salton & Buckley 1988, "ltc").

    The scores equal scikit-learn's `TfidfVectorizer(sublinear_tf=True, smooth_idf=False)`.
    """

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        postings, norms = index.postings(self.analyser, self.field), self.norms(index)
        terms = query_terms(postings, weights)
        for term, factor in zip(terms, self.factors(index.n_documents, terms)):
            _add_cosine(*term[:2], norms, factor, scores, matched)

    def norms(self, index: Index) -> np.ndarray:
        """Return the length of every document's tf-idf vector, float64, which the index stores."""
        number = 0 if self.field == ALL or len(index.fields) == 1 else 1 + index.fields.index(self.field)

        def make() -> np.ndarray:
            postings, squares = index.postings(self.analyser, self.field), np.zeros(index.n_documents)
            _add_squares(postings.starts, postings.documents, postings.counts, index.n_documents, squares)
            return np.sqrt(squares)

        return index.derived(f"{self.analyser}.{number}.cosine-norms", make)

    def factors(self, n: int, terms: Sequence[QueryTerm]) -> list[float]:
        """Return the factor of 1 + ln tf of each term in a collection of n documents."""
        idfs = [1 + math.log(n / len(term.documents)) for term in terms]
        vector = [
            (1 + math.log(term.weight) if term.weight >= 1 else term.weight) * idf for term, idf in zip(terms, idfs)
        ]
        norm = math.sqrt(math.fsum(value * value for value in vector))
        return [value * idf / norm for value, idf in zip(vector, idfs)]


@dataclass(frozen=True)
class Dirichlet(RetrievalFunction):
    """Query likelihood with a Dirichlet prior (Zhai & Lafferty 2004, equation 6).

    Σ_t q_t ln[(tf + μ cf/|C|)/(|d| + μ)]
    """

    mu: float = 2500.0

    def __post_init__(self) -> None:
        check_number(self.mu, "mu", "(0, inf)")

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        postings, found = index.postings(self.analyser, self.field), matched.copy()
        terms = query_terms(postings, weights)
        priors = [self.mu * term.occurrences / postings.n_tokens for term in terms]  # μ cf/|C|
        for term, prior in zip(terms, priors):
            _add_dirichlet(*term[:2], prior, term.weight, scores, found)
        total = math.fsum(term.weight for term in terms)
        _add_length_part(found, postings.lengths, self.mu, total, _log_priors(terms, priors), scores, matched)


@dataclass(frozen=True)
class JelinekMercer(RetrievalFunction):
    """Query likelihood mixed with the likelihood in the collection (Zhai and Lafferty 2004, equation 5).

    Σ_t q_t ln[(1 - λ) tf/|d| + λ cf/|C|]
    """

    lam: float = 0.4

    def __post_init__(self) -> None:
        check_number(self.lam, "lam", "(0, 1)")

    def score(self, index: Index, weights: Mapping[int, float], scores: np.ndarray, matched: np.ndarray) -> None:
        postings, found = index.postings(self.analyser, self.field), matched.copy()
        terms = query_terms(postings, weights)
        priors = [self.lam * term.occurrences / postings.n_tokens for term in terms]  # λ cf/|C|
        for term, prior in zip(terms, priors):
            _add_jelinek_mercer(*term[:2], postings.lengths, (1 - self.lam) / prior, term.weight, scores, found)
        _add_length_part(found, postings.lengths, 1.0, 0.0, _log_priors(terms, priors), scores, matched)


FUNCTIONS: dict[str, type[RetrievalFunction]] = {
    "cosine": Cosine,
    "tfidf": TFIDF,
    "bm25": BM25,
    "dirichlet": Dirichlet,
    "jelinek-mercer": JelinekMercer,
}


def query_weights(index: Index, text: str, analyser: str) -> dict[int, float]:
    """Return q_t, the count of each known term in a query, by number, in the order of first appearance."""
    return term_weights(index.terms(text, analyser))


def term_weights(terms: Sequence[int]) -> dict[int, float]:
    """Return q_t of the terms of a query, in the order of first appearance."""
    return {term: float(count) for term, count in Counter(terms).items()}


def query_terms(postings: Postings, weights: Mapping[int, float]) -> list[QueryTerm]:
    """Return the terms of a query with at least one document, from their q_t by number."""
    terms = [QueryTerm(*postings.of(term), weight, float(postings.totals[term])) for term, weight in weights.items()]
    return [term for term in terms if len(term.documents)]


def _log_priors(terms: Sequence[QueryTerm], priors: Sequence[float]) -> float:
    """Return Σ q_t ln prior."""
    return math.fsum(term.weight * math.log(prior) for term, prior in zip(terms, priors))


@kernel
def _add_saturated(documents, counts, lengths, mean, k1, b, weight, scores, matched):
    """Add weight · tf/(tf + k1 (1 - b + b |d|/avdl)) to the scores."""
    for i in range(len(documents)):
        d = documents[i]
        norm = k1 * (1.0 - b + b * (lengths[d] / mean))
        scores[d] += weight * counts[i] / (counts[i] + norm)
        matched[d] = 1


@kernel
def _add_cosine(documents, counts, norms, weight, scores, matched):
    """Add weight · (1 + ln tf)/norm to the scores."""
    for i in range(len(documents)):
        d = documents[i]
        scores[d] += weight * (1.0 + math.log(counts[i])) / norms[d]
        matched[d] = 1


@kernel
def _add_dirichlet(documents, counts, prior, weight, scores, matched):
    """Add weight · ln(1 + tf/prior), prior = μ cf/|C|: the difference from tf = 0."""
    for i in range(len(documents)):
        scores[documents[i]] += weight * math.log1p(counts[i] / prior)
        matched[documents[i]] = 1


@kernel
def _add_jelinek_mercer(documents, counts, lengths, ratio, weight, scores, matched):
    """Add weight · ln(1 + ratio · tf/|d|), ratio = (1 - λ)|C|/(λ cf)."""
    for i in range(len(documents)):
        d = documents[i]
        scores[d] += weight * math.log1p(ratio * counts[i] / lengths[d])
        matched[d] = 1


@kernel
def _add_length_part(found, lengths, mu, total, constant, scores, matched):
    """Add constant - total · ln(|d| + μ) for each found document."""
    for d in range(len(found)):
        if found[d]:
            matched[d] = 1
            scores[d] += constant
            if total != 0.0:
                scores[d] -= total * math.log(lengths[d] + mu)


@kernel
def _add_squares(starts, documents, counts, n, squares):
    """Add ((1 + ln tf)(1 + ln(n/df)))² of each term to each document."""
    for t in range(len(starts) - 1):
        if starts[t + 1] > starts[t]:
            idf = 1.0 + math.log(n / (starts[t + 1] - starts[t]))
            for i in range(starts[t], starts[t + 1]):
                value = (1.0 + math.log(counts[i])) * idf
                squares[documents[i]] += value * value
