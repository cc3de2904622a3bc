"""Relevance propagation: mix the relevance of a page and of linked pages (Qin and others 2005).

Ten variants: of scores or of term counts, along hyperlinks in three ways or along the tree of the site in two. The
source does not print its list; the variants follow its models and the models of Shakery and Zhai (2003). S is the
propagated value (a score >= 0, or the count of a term), h the result, α the page's own share:

    weighted-in-link     h(p) = α S(p) + (1 - α) Σ_{q → p} h(q) S(p)/Σ_{q → r} S(r)
    weighted-out-link    h(p) = α S(p) + (1 - α) Σ_{p → q} h(q) S(p)/Σ_{r → q} S(r)
    uniform-out-link     h(p) = α S(p) + (1 - α) mean of h(q) over p → q
    uniform-child        h(p) = α S(p) + (1 - α) mean of h(c) over the children c of p
    weighted-child       h(p) = α S(p) + (1 - α) Σ_c h(c) S(c)/Σ_c S(c)

A page without such pages keeps S. Only pages that a query retrieves, and links between them, are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.io.documents import Document
from truerank.io.trec import Run
from truerank.links.graph import LinkGraph
from truerank.text.analysers import STEMMED_AND_STOPPED
from truerank.text.index import Index
from truerank.text.retrieval import as_documents, as_run, best_of
from truerank.text.retrieval_functions import BM25, lucene_idf, query_weights

ALONG_LINKS = ("weighted-in-link", "weighted-out-link", "uniform-out-link")
ALONG_TREE = ("uniform-child", "weighted-child")
VARIANTS = tuple(f"{level}-{way}" for level in ("score", "term") for way in (*ALONG_LINKS, *ALONG_TREE))

_ROUNDS, _SMALL = 200, 1e-12


def propagate(values: ArrayLike, way: str, *, links: Any = None, parents: Any = None, alpha: float = 0.8) -> np.ndarray:
    """Propagate the values S, and return h of every page, float64 (n,).

    `values` (n,) are >= 0, `alpha` is in [0, 1]. A way of `ALONG_LINKS` requires the CSR matrix `links` (n, n), with
    `links[v, u]` = 1 if u links to v. A way of `ALONG_TREE` requires `parents` (n,), the result of `site_parents`.

    >>> import scipy.sparse
    >>> links = scipy.sparse.csr_matrix([[0, 1.0], [0, 0]])  # page 1 links to page 0
    >>> propagate([1.0, 2.0], "weighted-in-link", links=links, alpha=0.5).tolist()
    [1.5, 2.0]
    """
    S = np.asarray(values, dtype=np.float64)
    check_choice(way, "way", (*ALONG_LINKS, *ALONG_TREE))
    check_number(alpha, "alpha", "[0, 1]")
    if S.ndim != 1 or not (S >= 0).all() or not np.isfinite(S).all():
        got = f"got {S.tolist()!r:.80}"
        raise InvalidInputError(f"values must be finite numbers >= 0, one for each page, {got}", argument="values")
    if way in ALONG_TREE:
        matrix = _of_children(S, np.asarray(parents, dtype=np.int64), way)
    else:
        matrix = _of_links(S, sparse.csr_matrix(links), way)
    h, alone = S.copy(), np.diff(matrix.indptr) == 0
    for _ in range(_ROUNDS):
        new = np.where(alone, S, alpha * S + (1 - alpha) * (matrix @ h))
        change = float(np.abs(new - h).max(initial=0.0))
        h = new
        if change <= _SMALL * max(1.0, float(S.max(initial=0.0))):
            break
    return h


def propagated_run(
    index: Index,
    queries: Iterable[Document] | Mapping[str, str],
    graph: LinkGraph,
    variant: str,
    *,
    parents: Any = None,
    alpha: float = 0.8,
    analyser: str = STEMMED_AND_STOPPED,
    depth: int = 1000,
) -> Run:
    """Rerank the best documents of each query by BM25 with propagated relevance.

    Parameters
    ----------
    index : Index
    queries : iterable of Document, or dict of id to text
    graph : LinkGraph
        Nodes are the documents of the index in its order (`graph_of_index`).
    variant : one of `VARIANTS`
        "score-…" propagates BM25 scores. "term-…" propagates the counts of each query term and computes BM25.
    parents : int array (n_documents,), for variants along the tree
    depth : int, default 1000
        Number of documents of each query to rerank.
    """
    check_choice(variant, "variant", VARIANTS)
    level, way = variant.split("-", 1)
    if graph.n_nodes != index.n_documents:
        raise InvalidInputError(
            f"the graph has {graph.n_nodes} nodes, but the index has {index.n_documents} documents. "
            "Pass graph=graph_of_index(graph, index)"
        )
    if way in ALONG_TREE and parents is None:
        raise InvalidInputError(
            f"{variant} requires the parents of the pages. Pass parents=site_parents(urls)", argument="parents"
        )
    asked = as_documents(queries)
    found = []
    for query in asked:
        weights = query_weights(index, query.text["text"], analyser)
        documents, best = best_of(index, BM25(analyser), depth, weights)
        links = graph.into[documents][:, documents] if way in ALONG_LINKS else None
        tree = None if links is not None else _parents_among(np.asarray(parents), documents)
        spread = partial(propagate, way=way, links=links, parents=tree, alpha=alpha)
        values = spread(best) if level == "score" else _term_level(index, weights, documents, analyser, spread)
        order = np.argsort(-values, kind="stable")
        found.append((documents[order], values[order]))
    return as_run(index, asked, found, variant)


def graph_of_index(graph: LinkGraph, index: Index) -> LinkGraph:
    """Return the links between documents of an index, by the index's numbers; other nodes are left out."""
    if graph.names is None:
        raise InvalidInputError(
            "the graph has no names, which identify documents of the index. Read the graph with read_links(path)"
        )
    number = np.array([index.document_number(name) for name in graph.names], dtype=np.int64)
    edges = graph.into.tocoo()
    targets, sources = number[edges.row], number[edges.col]
    known = (targets >= 0) & (sources >= 0)
    return LinkGraph(sources[known], targets[known], index.n_documents)


def _of_links(S: np.ndarray, into: sparse.csr_matrix, way: str) -> sparse.csr_matrix:
    """Return the matrix of the sums over linked pages."""
    if way == "uniform-out-link":
        matrix = into.T.tocsr()
        return sparse.diags(1.0 / np.maximum(np.diff(matrix.indptr), 1)) @ matrix
    matrix = into if way == "weighted-in-link" else into.T.tocsr()
    totals = matrix.T @ S
    shares = np.divide(1.0, totals, out=np.zeros(len(S)), where=totals > 0)
    return sparse.csr_matrix(sparse.diags(S) @ matrix @ sparse.diags(shares))


def _of_children(S: np.ndarray, parents: np.ndarray, way: str) -> sparse.csr_matrix:
    n = len(S)
    children = np.flatnonzero(parents >= 0)
    weight = np.ones(len(children)) if way == "uniform-child" else S[children]
    totals = np.bincount(parents[children], weights=weight, minlength=n)
    shares = np.divide(weight, totals[parents[children]], out=np.zeros(len(children)), where=weight > 0)
    return sparse.csr_matrix((shares, (parents[children], children)), shape=(n, n))


def _parents_among(parents: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Return parents as positions in `documents`; -1 if `documents` lacks the parent."""
    place = np.full(len(parents) + 1, -1, dtype=np.int64)
    place[documents] = np.arange(len(documents))
    return place[parents[documents]]


def _term_level(index: Index, weights: Mapping[int, float], documents: np.ndarray, analyser: str, spread: Any) -> Any:
    """Return BM25 (k1 = 1.2, b = 0.75, k3 = 7) of propagated counts, with lengths and frequencies of the index."""
    postings, n = index.postings(analyser), index.n_documents
    norms = 1.2 * (0.25 + 0.75 * postings.lengths[documents] / (postings.n_tokens / n))
    values = np.zeros(len(documents))
    for term, weight in weights.items():
        there, found = postings.of(term)
        counts = np.zeros(n)
        counts[there] = found
        tf = spread(counts[documents])
        values += lucene_idf(n, len(there)) * tf * 2.2 / (tf + norms) * weight * 8.0 / (weight + 7.0)
    return values
