"""Exhaustive retrieval by vectors, and features of their similarities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of
from truerank.data.ranking_data import RankingData
from truerank.io.rows import RowsLike, rows_of
from truerank.io.trec import Run
from truerank.io.vectors import Vectors, read_vectors

SIMILARITIES = ("inner-product", "cosine")
FEATURES = ("inner-product", "cosine", "rank", "gap", "z-score")
_ROWS, _QUERIES = 1 << 13, 1 << 10  # of a block of scores: 32 MB
_SPARE = 16  # documents that are kept beyond the depth, because scores of blocks are rounded to float32


def retrieve_vectors(
    documents: Any,
    queries: Any,
    *,
    depth: int = 1000,
    similarity: str = "inner-product",
    tag: str = "dense",
) -> Run:
    """Return the documents with the largest inner products with each query, by exhaustive search.

    Parameters
    ----------
    documents, queries : Vectors, path, mapping of id to vector, or array-like
        See `read_vectors`. Values of files are mapped into memory.
    depth : int, default 1000
        Maximum number of documents of a query.
    similarity : {"inner-product", "cosine"}
        The cosine with a vector of zeros is 0.
    tag : str, default "dense"
        Name of the run.

    Raises
    ------
    InvalidInputError
        For vectors of different lengths, or values that are not finite.

    Returns
    -------
    Run
        Scores are computed in float64. Equal scores keep the order of the documents.

    Notes
    -----
    Blocks of documents are multiplied by blocks of queries in float32, and the best documents are scored again in
    float64. The cost is the cost of a matrix product, and the memory is 0.1 GB plus 32 bytes for each result.

    Examples
    --------
    >>> retrieve_vectors({"a": [1.0, 0.0], "b": [0.6, 0.8]}, {"q": [0.0, 2.0]}, depth=1).to_dict()
    {'q': {'b': 1.6}}
    """
    check_choice(similarity, "similarity", SIMILARITIES)
    depth = check_positive_int(depth, "depth")
    held, asked = _pair(read_vectors(documents), read_vectors(queries))
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for start in range(0, len(asked.values), _QUERIES):
        block = _unit(_float64(asked, slice(start, start + _QUERIES)), similarity)
        rows = _nearest(held, block, depth + _SPARE, similarity)
        found += [_scored(held, own, query, depth, similarity) for own, query in zip(rows, block)]
    offsets = offsets_of([len(rows) for rows, _ in found])
    places = np.concatenate([rows for rows, _ in found]) if found else np.zeros(0, dtype=np.int64)
    scores = np.concatenate([scores for _, scores in found]) if found else np.zeros(0)
    return Run(np.array(asked.ids.texts.tolist(), dtype=str), offsets, held.ids.take(places), scores, tag)


def vector_features(data: RowsLike, encoders: Mapping[str, tuple[Any, Any]]) -> RankingData:
    """Return judged rows with columns for the similarities between query and document.

    Parameters
    ----------
    data : RankingData with `doc_ids`
        Candidates, such as the rows of `join_runs` or `TextFeatures`; their columns come first.
    encoders : mapping of name to (documents, queries)
        Vectors of each encoder, in any form of `read_vectors`.

    Returns
    -------
    RankingData
        With columns `NAME.inner-product`, `NAME.cosine`, `NAME.rank` (1 is the largest inner product of the query; tied
        documents have their mean rank), `NAME.gap` (inner product minus the next document's inner product, 0 for the
        last document) and `NAME.z-score` (within the query). Without a vector, a document has the lowest values of its
        query, or 0.

    Raises
    ------
    InvalidInputError
        For rows without document ids, or a query without a vector.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0]], [0, 1], ["q", "q"], doc_ids=["a", "b"])
    >>> found = vector_features(data, {"mini": ({"a": [1.0, 0.0], "b": [0.6, 0.8]}, {"q": [0.0, 2.0]})})
    >>> found.feature_names[1:], found.X[:, 1:].round(2).tolist()
    (['mini.inner-product', 'mini.cosine', 'mini.rank', 'mini.gap', 'mini.z-score'], [[0.0, 0.0, 2.0, 0.0, -1.0], \
[1.6, 0.8, 1.0, 1.6, 1.0]])
    """
    from truerank.data.columns import names_of

    data = rows_of(data)
    if data.doc_ids is None:
        raise InvalidInputError(
            "the rows have no doc_ids, but document vectors are looked up by id. Pass doc_ids to RankingData",
            argument="data",
        )
    blocks, names = [data.X.toarray() if hasattr(data.X, "toarray") else np.asarray(data.X)], list(names_of(data))
    for name, (documents, queries) in encoders.items():
        held, asked = _pair(read_vectors(documents), read_vectors(queries))
        inner, cosine = _similarities(data, held, asked)
        rank, gap = _ranks_and_gaps(inner, data.offsets)
        blocks.append(np.column_stack([inner, cosine, rank, gap, _z_scores(inner, data.offsets)]))
        names += [f"{name}.{feature}" for feature in FEATURES]
    X = np.concatenate(blocks, axis=1, dtype=np.float64 if blocks[0].dtype == np.float64 else np.float32)
    return data.replaced(X=X, feature_names=names)


def _pair(documents: Vectors, queries: Vectors) -> tuple[Vectors, Vectors]:
    p, other = documents.values.shape[1], queries.values.shape[1]
    if p != other:
        raise InvalidInputError(
            f"document vectors have {p} dimensions, but query vectors have {other}. Use the same encoder for both",
            code="length",
        )
    return documents, queries


def _float64(vectors: Vectors, rows: Any) -> np.ndarray:
    """Return the values of rows (a slice or numbers), which must be finite."""
    block = np.asarray(vectors.values[rows], dtype=np.float64)
    finite = np.isfinite(block).all(axis=-1)
    if not finite.all():
        name = vectors.ids.texts[rows][~finite][0]
        raise InvalidInputError(
            f"{vectors.name}: the vector of {name!r} contains nan or infinity. Compute it again", code="not-finite"
        )
    return block


def _unit(vectors: np.ndarray, similarity: str) -> np.ndarray:
    """Return vectors scaled to length 1, zeros unchanged. Lengths are exact for very large and small numbers."""
    if similarity != "cosine":
        return vectors
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    return np.asarray(scaled / np.maximum(np.sqrt((scaled**2).sum(axis=-1, keepdims=True)), 1.0))


def _nearest(held: Vectors, queries: np.ndarray, k: int, similarity: str) -> list[np.ndarray]:
    """Return at least the k best rows for each query (m, p), or all rows if there are fewer, in order of rows."""
    m, columns = len(queries), np.ascontiguousarray(queries.T, dtype=np.float32)
    least = np.full(m, -np.inf, dtype=np.float32)  # the k-th best score so far; later rows must exceed it
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    size = 0
    for start in range(0, len(held.values), _ROWS):
        part = slice(start, start + _ROWS)
        values = _unit(_float64(held, part), similarity) if similarity == "cosine" else held.values[part]
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(values, dtype=np.float32) @ columns
        if not np.isfinite(scores).all():
            _float64(held, part)
            raise InvalidInputError(
                f"{held.name}: inner products are too large for float32. Divide the vectors by their largest value",
                code="not-finite",
            )
        rows, query = np.nonzero(scores > least)
        kept.append((query, rows + start, scores[rows, query]))
        size += len(rows)
        if size > 3 * m * k:
            kept, least = _cut(kept, m, k)
            size = len(kept[0][0])
    kept, _ = _cut(kept, m, k)
    query, rows, _ = kept[0]
    ends = np.searchsorted(query, np.arange(m + 1))
    return [np.sort(rows[a:b]) for a, b in zip(ends, ends[1:])]


def _cut(kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]], m: int, k: int) -> tuple[Any, np.ndarray]:
    """Return the k best rows of each query by descending score, and the k-th score of each query (m,)."""
    query, rows, scores = map(np.concatenate, zip(*kept))
    order = np.lexsort((rows, -scores, query))
    query, rows, scores = query[order], rows[order], scores[order]
    starts = np.searchsorted(query, np.arange(m + 1))
    best = np.arange(len(query)) - starts[query] < k
    last = np.full(m, -np.inf, dtype=np.float32)
    full = np.diff(starts) >= k
    last[full] = scores[starts[:-1][full] + k - 1]
    return [(query[best], rows[best], scores[best])], last


def _scored(
    held: Vectors, rows: np.ndarray, query: np.ndarray, depth: int, similarity: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best rows of a query and their scores, from candidates in row order."""
    vectors = _unit(_float64(held, rows), similarity)
    scores = np.einsum("ij,j->i", vectors, query)  # a score does not depend on the other candidates
    order = np.argsort(-scores, kind="stable")[:depth]
    return rows[order], scores[order]


def _similarities(data: RankingData, held: Vectors, asked: Vectors) -> tuple[np.ndarray, np.ndarray]:
    """Return inner product and cosine of each row (n,); a row without a vector gets the lowest values of its query."""
    place, query_place = held.places(), asked.places()
    texts = list(map(str, data.doc_ids.tolist()))  # type: ignore[union-attr]
    inner, cosine = np.zeros(data.n_rows), np.zeros(data.n_rows)
    for query, (start, stop) in zip(map(str, data.query_ids.tolist()), zip(data.offsets, data.offsets[1:])):
        if query not in query_place:
            raise InvalidInputError(
                f"{asked.name}: query {query!r} has no vector. Add a vector for each query", code="query"
            )
        rows = np.array([place.get(name, -1) for name in texts[start:stop]])
        there = rows >= 0
        vectors = _float64(held, rows[there])
        own = _float64(asked, slice(query_place[query], query_place[query] + 1))[0]
        for values, similarity in ((inner, "inner-product"), (cosine, "cosine")):
            found = np.einsum("ij,j->i", _unit(vectors, similarity), _unit(own, similarity))
            part = np.full(stop - start, found.min(initial=np.inf) if there.any() else 0.0)
            part[there] = found
            values[start:stop] = part
    return inner, cosine


def _ranks_and_gaps(values: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.stats import rankdata

    rank, gap = np.empty(len(values)), np.zeros(len(values))
    for start, stop in zip(offsets, offsets[1:]):
        own = values[start:stop]
        rank[start:stop] = rankdata(-own)
        order = start + np.argsort(-own, kind="stable")
        gap[order[:-1]] = values[order[:-1]] - values[order[1:]]
    return rank, gap


def _z_scores(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return z-scores within queries (n,); 0 if all values of a query are equal."""
    sizes = np.diff(offsets)
    centred = values - np.repeat(np.add.reduceat(values, offsets[:-1]) / sizes, sizes)
    deviation = np.repeat(np.sqrt(np.add.reduceat(centred**2, offsets[:-1]) / sizes), sizes)
    flat = np.repeat(np.maximum.reduceat(values, offsets[:-1]) == np.minimum.reduceat(values, offsets[:-1]), sizes)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))
