"""The best documents of queries under a retrieval function, each by a heap of as many as are asked for."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.kernel import kernel
from truerank.core.names import read_value
from truerank.core.threads import run_blocks
from truerank.data.grouping import offsets_of
from truerank.io.documents import Document
from truerank.io.trec import Run
from truerank.text.index import Index
from truerank.text.latent import Latent
from truerank.text.retrieval_functions import FUNCTIONS, RetrievalFunction, query_weights


def parse_function(text: str) -> RetrievalFunction:
    """A retrieval function by name: `NAME`, or `NAME(key=value, …)`.

    Examples
    --------
    >>> parse_function("bm25(k1=0.9, b=0.4, analyser=porter)")
    BM25(analyser='porter', field='all', k1=0.9, b=0.4, k3=7.0, idf='lucene')
    """
    function: RetrievalFunction = read_value(
        re.sub(r"\blambda(?=\s*=)", "lam", text), FUNCTIONS | {"latent": Latent}, "retrieval function"
    )
    return function


def retrieve(
    index: Index,
    queries: Iterable[Document] | Mapping[str, str],
    function: RetrievalFunction | str = "bm25",
    *,
    depth: int = 1000,
    n_jobs: int | None = None,
) -> Run:
    """The best documents of each query under a retrieval function.

    Parameters
    ----------
    index : Index
    queries : iterable of Document (see `read_queries`), or dict of query id to text
    function : RetrievalFunction or str, default "bm25"
        A value, or a name with parameters as `parse_function` reads it.
    depth : int, default 1000
        Documents of each query, at most.
    n_jobs : int, optional
        Threads; None means 1. The result does not depend on it.

    Returns
    -------
    Run
        Documents by descending score, equal scores in the order of the index. A query that finds nothing stands in
        the run without documents.

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
    """A run from each query's document numbers and scores."""
    offsets = offsets_of([len(documents) for documents, _ in found])
    documents = np.concatenate([documents for documents, _ in found]) if found else np.zeros(0, np.int64)
    scores = np.concatenate([values for _, values in found]) if found else np.zeros(0)
    return Run(np.array([query.id for query in queries]), offsets, index.ids.take(documents), scores, tag)


def as_documents(queries: Iterable[Document] | Mapping[str, str]) -> list[Document]:
    """Queries as documents, however they were given."""
    if isinstance(queries, Mapping):
        return [Document(str(name), {"text": text}, {}, {}) for name, text in queries.items()]
    return list(queries)


def best_of(
    index: Index, function: RetrievalFunction, depth: int, weights: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scores of the best `depth` documents of a query (q_t by number), best first, equal ones by number."""
    postings = index.postings(function.analyser, function.field)
    terms = np.fromiter(weights, dtype=np.int64, count=len(weights))
    scores, matched = _borrow(index.n_documents)
    function.score(index, weights, scores, matched)
    if (
        not function.beyond_terms
        and int((postings.starts[terms + 1] - postings.starts[terms]).sum()) < index.n_documents
    ):
        kept = min(depth, index.n_documents)
        numbers, values = np.empty(kept, dtype=np.int64), np.empty(kept)
        size = _take_best(postings.starts, postings.documents, terms, scores, matched, numbers, values)
        found = numbers[:size], values[:size]
    else:
        found = best_documents(scores, matched, depth)
        scores[:], matched[:] = 0.0, 0
    _held.scores, _held.matched = scores, matched
    return found


_held = threading.local()


def _borrow(n_documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeros for the scores of all documents, this thread's from its last query; whoever is stopped gives none back."""
    scores, matched = getattr(_held, "scores", None), getattr(_held, "matched", None)
    _held.scores = _held.matched = None
    if scores is None or matched is None or len(scores) != n_documents:
        return np.zeros(n_documents), np.zeros(n_documents, dtype=np.uint8)
    return scores, matched


def best_documents(scores: np.ndarray, matched: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scores of the best `depth` matched documents, best first, equal scores by number."""
    depth = min(depth, len(scores))
    numbers, values = np.empty(depth, dtype=np.int64), np.empty(depth)
    size = _keep_best(scores, matched, numbers, values)
    return numbers[:size], values[:size]


@kernel
def _keep_best(scores, matched, numbers, values):
    """The best matched documents, best first, equal scores by number; returns how many."""
    size = 0
    for d in range(len(scores)):
        if matched[d] != 0:
            size = offer(numbers, values, size, d, scores[d])
    _sort_heap(numbers, values, size)
    return size


@kernel
def _take_best(starts, documents, terms, scores, matched, numbers, values):
    """As `_keep_best`, over the documents of the terms alone; `scores` and `matched` become zeros there."""
    size = 0
    for term in terms:
        for i in range(starts[term], starts[term + 1]):
            d = documents[i]
            if matched[d] != 0:
                size = offer(numbers, values, size, d, scores[d])
                matched[d] = 0
                scores[d] = 0.0
    _sort_heap(numbers, values, size)
    return size


@kernel
def offer(numbers, values, size, number, value):
    """Give a document to a heap whose root is the worst that is kept; returns the heap's new size."""
    if size < len(numbers):
        child = size
        while child > 0:
            parent = (child - 1) // 2
            if values[parent] < value or (values[parent] == value and numbers[parent] > number):
                break
            values[child] = values[parent]
            numbers[child] = numbers[parent]
            child = parent
        values[child] = value
        numbers[child] = number
        return size + 1
    if value > values[0] or (value == values[0] and number < numbers[0]):
        _sink(numbers, values, size, number, value)
    return size


@kernel
def _sink(numbers, values, size, number, value):
    """Put a document in the place of the heap's root."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            values[right] < values[child] or (values[right] == values[child] and numbers[right] > numbers[child])
        ):
            child = right
        if values[child] > value or (values[child] == value and numbers[child] < number):
            break
        values[place] = values[child]
        numbers[place] = numbers[child]
        place = child
    values[place] = value
    numbers[place] = number


@kernel
def _sort_heap(numbers, values, size):
    """The heap in order, best first: the worst that is left goes to the end."""
    for last in range(size - 1, 0, -1):
        number, value = numbers[last], values[last]
        numbers[last], values[last] = numbers[0], values[0]
        _sink(numbers, values, last, number, value)
