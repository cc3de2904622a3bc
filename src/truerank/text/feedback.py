"""Add terms of the best documents to a query (pseudo-relevance feedback)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from truerank.text.index import ALL, Index
from truerank.text.retrieval import all_scores, best_of
from truerank.text.retrieval_functions import BM25, Dirichlet, lucene_idf

TERMS = 40  # that feedback adds


def rocchio(index: Index, weights: Mapping[int, float], documents: np.ndarray, analyser: str) -> dict[int, float]:
    """Return Rocchio's query (Rocchio 1971, without negative examples) in the BM25 space.

        q' = ½ q/|q|₁ + ½ e/|e|₁,
        e_t = Σ_{d ∈ documents} tf (k1 + 1)/(tf + k1 (1 - b + b |d|/avdl)) idf_t

    e keeps its `TERMS` largest entries; k1 = 1.2, b = 0.75, idf = ln(1 + (n - df + ½)/(df + ½)). `weights` are the
    query's terms, and `documents` (int) are the documents that count as relevant.
    """
    postings, n = index.postings(analyser), index.n_documents
    mean = postings.n_tokens / n
    gains: defaultdict[int, float] = defaultdict(float)
    for document in documents.tolist():
        norm = 1.2 * (0.25 + 0.75 * float(postings.lengths[document]) / mean)
        for term, count in zip(*_counts(index, document, analyser)):
            gains[term] += count * 2.2 / (count + norm)
    for term in gains:
        gains[term] *= lucene_idf(n, postings.documents_with(term))
    return _mixed(weights, gains)


def relevance_model(
    index: Index, weights: Mapping[int, float], documents: np.ndarray, log_likelihoods: np.ndarray, analyser: str
) -> dict[int, float]:
    """Return the query of RM3 (Abdul-Jaleel and others 2004; Lavrenko and Croft 2001, model 1).

        q' = ½ q/|q|₁ + ½ e/|e|₁,    e_t = Σ_d P(q | d) tf/|d|

    e keeps its `TERMS` largest entries. `log_likelihoods` are the documents' ln P(q | d), up to a constant.
    """
    postings = index.postings(analyser)
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(initial=-math.inf))
    gains: defaultdict[int, float] = defaultdict(float)
    for document, likelihood in zip(documents.tolist(), likelihoods.tolist()):
        length = float(postings.lengths[document])
        for term, count in zip(*_counts(index, document, analyser)):
            gains[term] += likelihood * count / length
    return _mixed(weights, gains)


def feedback_scores(index: Index, weights: Mapping[int, float], n_documents: int, analyser: str) -> np.ndarray:
    """Return the BM25 scores of all documents for Rocchio's query over the best `n_documents` of BM25; float64."""
    best, _ = best_of(index, BM25(analyser), n_documents, weights)
    return all_scores(index, BM25(analyser, k3=math.inf), rocchio(index, weights, best, analyser))[0]


def relevance_model_scores(index: Index, weights: Mapping[int, float], n_documents: int, analyser: str) -> np.ndarray:
    """Return query likelihoods (Dirichlet, μ the mean length) of all documents for RM3's query."""
    postings = index.postings(analyser)
    function = Dirichlet(analyser, ALL, mu=max(1.0, postings.n_tokens / index.n_documents))
    best, likelihoods = best_of(index, function, n_documents, weights)
    return all_scores(index, function, relevance_model(index, weights, best, likelihoods, analyser), slice(None))[0]


def _counts(index: Index, document: int, analyser: str) -> tuple[list[int], list[int]]:
    """Return the terms of a document, ascending, and their counts."""
    tokens = index.tokens[index.ends[document] : index.ends[document + 1]]
    terms, counts = np.unique(index.term_of_word(analyser)[tokens], return_counts=True)
    kept = terms >= 0
    return terms[kept].tolist(), counts[kept].tolist()


def _mixed(weights: Mapping[int, float], gains: dict[int, float]) -> dict[int, float]:
    """Return half of the query plus half of the best gains, each with weights of sum 1."""
    best = sorted(gains.items(), key=lambda item: (-item[1], item[0]))[:TERMS]
    of_query, of_documents = math.fsum(weights.values()), math.fsum(gain for _, gain in best)
    mixed = {term: 0.5 * weight / of_query for term, weight in weights.items()}
    for term, gain in best:
        if gain > 0:
            mixed[term] = mixed.get(term, 0.0) + 0.5 * gain / of_documents
    return mixed
