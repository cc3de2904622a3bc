"""Find the best documents of queries under a retrieval function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.names import read_value
from truerank.core.threads import run_blocks
from truerank.data.grouping import offsets_of
from truerank.io.documents import Document
from truerank.io.trec import Run
from truerank.text.index import Index
from truerank.text.latent import Latent
from truerank.text.retrieval_functions import FUNCTIONS, RetrievalFunction, query_weights


def parse_function(text: str) -> RetrievalFunction:
    """Parse the name of a retrieval function, `NAME` or `NAME(key=value, …)`, and return the function.

    >>> parse_function("bm25(k1=0.9, b=0.4, analyser=porter)")
    BM25(analyser='porter', field='all', k1=0.9, b=0.4, k3=7.0, idf='lucene')
    """
    return read_value(re.sub(r"\blambda(?=\s*=)", "lam", text), FUNCTIONS | {"latent": Latent}, "retrieval function")


def retrieve(
    index: Index,
    queries: Iterable[Document] | Mapping[str, str],
    function: RetrievalFunction | str = "bm25",
    *,
    depth: int = 1000,
    n_jobs: int | None = None,
) -> Run:
    """Return the best documents of each query under a retrieval function.

    Parameters
    ----------
    index : Index
    queries : iterable of Document (see `read_queries`), or dict of query id to text
    function : RetrievalFunction or str, default "bm25"
        A function, or a name with parameters (see `parse_function`).
    depth : int, default 1000
        Maximum number of documents of a query.
    n_jobs : int, optional
        Number of threads; None means 1. The result does not depend on the number of threads.

    Returns
    -------
    Run
        Ties keep the order of the index. A query without matches has no documents.

    Examples
    --------
    >>> import tempfile
    >>> from truerank.text.index import build_index
    >>> documents = [Document("a", {"text": "heat flow"}, {}, {}), Document("b", {"text": "flow"}, {}, {})]
    >>> index = build_index(documents, tempfile.mkdtemp() + "/index")
    >>> retrieve(index, {"1": "flow of heat", "2": "sound"}).to_dict()
    {'1': {'a': 0.7704124888714319, 'b': 0.21110917102457907}, '2': {}}
    """
    check_positive_int(depth, "depth")
    chosen = parse_function(function) if isinstance(function, str) else function
    asked = as_documents(queries)
    weighted = [(query_weights(index, query.text["text"], chosen.analyser),) for query in asked]
    found = run_blocks(partial(best_of, index, chosen, depth), weighted, n_jobs)
    return as_run(index, asked, found, str(function) if isinstance(function, str) else chosen.name)


def as_run(index: Index, queries: Sequence[Document], found: Sequence[tuple[np.ndarray, ...]], tag: str) -> Run:
    """Return a run from the document numbers and scores of each query."""
    offsets = offsets_of([len(documents) for documents, _ in found])
    documents = np.concatenate([documents for documents, _ in found]) if found else np.zeros(0, np.int64)
    scores = np.concatenate([values for _, values in found]) if found else np.zeros(0)
    return Run(np.array([query.id for query in queries]), offsets, index.ids.take(documents), scores, tag)


def as_documents(queries: Iterable[Document] | Mapping[str, str]) -> list[Document]:
    """Return queries as a list of documents."""
    if isinstance(queries, Mapping):
        return [Document(str(name), {"text": text}, {}, {}) for name, text in queries.items()]
    return list(queries)


def best_of(
    index: Index, function: RetrievalFunction, depth: int, weights: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and scores of the best `depth` documents of a query (q_t by term), best first, ties by number."""
    return best_documents(*all_scores(index, function, weights), depth)


def all_scores(
    index: Index, function: RetrievalFunction, weights: Mapping[int, float], documents: Any = slice(0)
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of all documents, and 1 for documents with a term of the query and for `documents`."""
    scores, matched = np.zeros(index.n_documents), np.zeros(index.n_documents, dtype=np.uint8)
    matched[documents] = 1
    function.score(index, weights, scores, matched)
    return scores, matched


def best_documents(scores: np.ndarray, matched: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and scores of the best `depth` matched documents, best first; of ties, the lowest number."""
    numbers = np.flatnonzero(matched)
    values = scores[numbers]
    if len(numbers) > depth:
        kept = values >= np.partition(values, -depth)[-depth]
        numbers, values = numbers[kept], values[kept]
    order = np.argsort(-values, kind="stable")[:depth]
    return numbers[order], values[order]
