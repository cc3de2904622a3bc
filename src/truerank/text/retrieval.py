"""The best documents of queries under a retrieval function."""

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
        A function, or a name with parameters (see `parse_function`).
    depth : int, default 1000
        Most documents of a query.
    n_jobs : int, optional
        Threads; None means 1. They do not change the result.

    Returns
    -------
    Run
        Documents by descending score, ties in the order of the index. A query that finds nothing has no documents.

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
    """Queries as a list of documents."""
    if isinstance(queries, Mapping):
        return [Document(str(name), {"text": text}, {}, {}) for name, text in queries.items()]
    return list(queries)


def best_of(
    index: Index, function: RetrievalFunction, depth: int, weights: Mapping[int, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scores of the best `depth` documents of a query (q_t by term), best first, ties by number."""
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
    """Zeros for the scores of all documents, reused from this thread's last query unless that was interrupted."""
    scores, matched = getattr(_held, "scores", None), getattr(_held, "matched", None)
    _held.scores = _held.matched = None
    if scores is None or matched is None or len(scores) != n_documents:
        return np.zeros(n_documents), np.zeros(n_documents, dtype=np.uint8)
    return scores, matched


def best_documents(scores: np.ndarray, matched: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and scores of the best `depth` matched documents, best first, ties by number."""
    depth = min(depth, len(scores))
    numbers, values = np.empty(depth, dtype=np.int64), np.empty(depth)
    size = _keep_best(scores, matched, numbers, values)
    return numbers[:size], values[:size]


@kernel
def _keep_best(scores, matched, numbers, values):
    """Fill in the best matched documents, best first, ties by number; returns their number."""
    size = 0
    for d in range(len(scores)):
        if matched[d] != 0:
            size = offer(numbers, values, size, d, scores[d])
    _sort_heap(numbers, values, size)
    return size


@kernel
def _take_best(starts, documents, terms, scores, matched, numbers, values):
    """`_keep_best` for the documents of the terms, whose `scores` and `matched` are reset to zeros."""
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
    """Offer a document to a heap whose root is the worst kept document; returns the new size of the heap."""
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
    """Replace the root of the heap."""
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
    """Sort the heap, best first, by moving its root to the end."""
    for last in range(size - 1, 0, -1):
        number, value = numbers[last], values[last]
        numbers[last], values[last] = numbers[0], values[0]
        _sink(numbers, values, last, number, value)
