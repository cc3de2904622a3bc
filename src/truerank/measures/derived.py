"""Cache values that measures derive from the judgements alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Literal, NamedTuple, TypeVar, TypeVarTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.grouping import at_places, offsets_of, query_of_rows
from truerank.data.ranking_data import Judgements
from truerank.measures.conventions import GRADES

BY_ID = ("trec", "ascending")  # rules for ties that require document ids, and are row order without them
LARGEST_EXPONENT = 1000  # 2^grade and sums of it stay finite
# What `conventions.GRADES` says of each rule.
_CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "any": lambda grades: grades,
    "truncated": np.trunc,
    "relevant": lambda grades: np.where(grades >= 1, grades, 0.0),
    "at most 2": lambda grades: np.minimum(grades, 2),
    "at most 4": lambda grades: np.minimum(grades, 4),
    "not negative": lambda grades: np.maximum(grades, 0),
    "none": lambda grades: np.full(len(grades), np.nan),
}
SMALLEST = 5e-324  # "relevant" at this level is every positive grade
# Queries with so many documents are sorted by a call of their own, without gathering and padding.
_LONG = 512
# A block costs about as much as sorting so many documents. Padding may cost as much, or 1/8 of the cost of the block.
_OVERHEAD = 1000
_Key = TypeVarTuple("_Key")
_Value = TypeVar("_Value")


def kept(function: Callable[[Judgements, *_Key], _Value], slot: str = "cache") -> Callable[[Judgements, *_Key], _Value]:
    """Decorate a function of judgements and hashable values so that its results are cached with the judgements."""

    @wraps(function)
    def known(judgements: Judgements, *key: *_Key) -> _Value:
        place, cache = (function.__name__, *key), getattr(judgements, slot)
        if place not in cache:
            cache[place] = function(judgements, *key)
        found: _Value = cache[place]
        return found

    return known


def kept_by_rows(function: Callable[[Judgements, *_Key], _Value]) -> Callable[[Judgements, *_Key], _Value]:
    """Decorate a function that does not read grades: judgements with other grades of the rows share the results."""
    return kept(function, "row_cache")


class Hits:
    """The documents that can contribute to a measure, for example the relevant ones.

    `mask` (n,) marks them among the rows. For each hit, in query order (h,): its `query`, its `ordinal` 1, 2, … in the
    query, and the `first_row` of the query. `queries` are the queries with hits, and `starts` their first positions in
    arrays (h,). `ranked` (m,) counts the hits among the rows, `total` (m,) also unretrieved documents.
    """

    __slots__ = ("first_row", "mask", "ordinal", "queries", "query", "ranked", "starts", "total")

    def __init__(self, offsets: np.ndarray, mask: np.ndarray, missing: np.ndarray | int = 0) -> None:
        self.mask = mask
        bounds = np.searchsorted(np.flatnonzero(mask), offsets)
        self.ranked = np.diff(bounds)
        self.total = self.ranked + missing
        self.queries = np.flatnonzero(self.ranked)
        self.starts = bounds[self.queries]
        self.query = np.repeat(np.arange(len(offsets) - 1), self.ranked)
        self.ordinal = segment_range(self.ranked) + 1
        self.first_row = offsets[self.query]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Return sums by query (k, m) of values (k, h), added in order."""
        k, m = len(values), len(self.ranked)
        query = self.query if k == 1 else (self.query + m * np.arange(k)[:, None]).ravel()
        return np.bincount(query, weights=values.ravel(), minlength=k * m).reshape(k, m)


class TieOrder(NamedTuple):
    """A total order within queries, as `rank[row]` and its inverse `row[rank]`."""

    rank: np.ndarray
    row: np.ndarray


class Blocks:
    """The partition of queries for sorting; it depends only on their lengths."""

    __slots__ = ("_blocks", "_long", "_n")

    def __init__(self, offsets: np.ndarray) -> None:
        sizes = np.diff(offsets)
        self._n = int(offsets[-1])
        self._blocks: list[_Block] = []
        self._long: list[tuple[int, int]] = []
        if len(sizes) and (sizes == sizes[0]).all():
            if sizes[0]:
                self._blocks = [_Block(np.arange(len(sizes)), offsets)]  # one block, its rows in their order
            return
        long = np.flatnonzero(sizes >= _LONG)
        self._long = list(zip(offsets[long].tolist(), offsets[long + 1].tolist()))
        queries = np.argsort(-sizes, kind="stable")
        queries = queries[(sizes[queries] > 0) & (sizes[queries] < _LONG)]
        ordered = sizes[queries]
        below = np.concatenate([[0], np.cumsum(ordered)])
        position = 0
        while position < len(queries):
            real = below[position + 1 :] - below[position]
            wasted = ordered[position] * np.arange(1, len(real) + 1) - real
            last = position + int(np.flatnonzero(wasted <= np.maximum(_OVERHEAD, real // 8))[-1]) + 1
            self._blocks.append(_Block(np.sort(queries[position:last]), offsets))
            position = last

    def argsort(self, values: np.ndarray, *, stable: bool = False) -> np.ndarray:
        """Return rows (k, n) in ascending order of values (k, n + 1) within each query.

        The last column of the values must be inf, the padding of short queries. `stable` keeps the row order of ties,
        and is required if other values are inf.
        """
        k, n = values.shape[0], self._n
        kind: Literal["stable"] | None = "stable" if stable else None
        if len(self._blocks) == 1 and self._blocks[0].whole:
            block = self._blocks[0]
            rows = np.argsort(values[:, :n].reshape(k, *block.shape), axis=-1, kind=kind)
            rows += block.first[:, None]
            return rows.reshape(k, n)
        out = np.empty((k, n), dtype=np.int64)
        for start, end in self._long:
            piece = np.argsort(values[:, start:end], axis=-1, kind=kind)
            np.add(piece, start, out=out[:, start:end])
        for block in self._blocks:
            rows = np.argsort(values[:, block.index], axis=-1, kind=kind)
            rows += block.first[:, None]
            rows = rows.reshape(k, -1)
            out[:, block.target] = rows if block.full is None else rows[:, block.full]
        return out


class _Block:
    """A block of queries that are sorted as the rows of one matrix.

    `index` (q, length) are rows of the data, n is the padding; `first` (q,) is the first row of each query. `target`
    (r,) has the rows in the order of the matrix, and `full` (r,) their flat positions (None without padding). `whole`
    is True if the block holds all rows in their order.
    """

    __slots__ = ("first", "full", "index", "shape", "target", "whole")

    def __init__(self, queries: np.ndarray, offsets: np.ndarray) -> None:
        sizes = offsets[queries + 1] - offsets[queries]
        self.first = offsets[queries]
        length = int(sizes.max())
        self.shape = (len(queries), length)
        index = self.first[:, None] + np.arange(length)
        self.whole = bool(sizes.min() == length and index.size == offsets[-1])
        if sizes.min() == length:
            self.full, self.target, self.index = None, index.ravel(), index
            return
        inside = np.arange(length) < sizes[:, None]
        self.full = np.flatnonzero(inside)
        self.target = index[inside]
        self.index = np.where(inside, index, int(offsets[-1]))


def read_grades(grades: np.ndarray, rule: str) -> np.ndarray:
    """Return grades (n,) as a program reads them; the errors are the errors of `as_read`."""
    changed, reason = _CHANGES[rule](grades), GRADES[rule]
    if reason and not np.array_equal(changed, grades):
        raise InvalidInputError(
            f"a grade of {grades[changed != grades][0]:g} has no value under this convention: {reason}",
            remedies=["choose another convention", "write nDCG(grades='any') for truerank's own value"],
            code="grade",
        )
    return changed


@kept
def as_read(judgements: Judgements, rule: str) -> Judgements | None:
    """Return the judgements with the grades that a program reads (`grades` of measures), or None if no grade changes.

    Raise InvalidInputError for a grade that the program treats in a way that has no counterpart here.
    """
    if rule == "any":
        return None
    grades, missing = judgements.grades, judgements.missing_grades
    grades = grades if missing is None else np.concatenate([grades, missing])
    changed = read_grades(grades, rule)
    if np.array_equal(changed, grades):
        return None
    n = judgements.n_rows
    return judgements.with_grades(changed[:n], judgements.judged, None if missing is None else changed[n:])


@kept_by_rows
def blocks_of(judgements: Judgements) -> Blocks:
    """Return the partition of the queries for sorting."""
    return Blocks(judgements.offsets)


@kept
def hits_of(judgements: Judgements, rel: float) -> Hits:
    """Return the documents with a grade of at least `rel`."""
    mask = judgements.grades >= rel
    missing = 0 if judgements.missing_grades is None else missing_count(judgements, rel)
    known: list[Hits] = judgements.cache.setdefault("all hits", [])
    for one in known:  # two levels without a grade between them share one object, and its ranks
        if np.array_equal(one.mask, mask) and (one.total - one.ranked == missing).all():
            return one
    known.append(Hits(judgements.offsets, mask, missing))
    return known[-1]


def tie_order(judgements: Judgements, ties: str) -> TieOrder | None:
    """Return the order of tied documents under a rule, or None for row order."""
    if ties == "stable":
        return None
    return _order_of_ids(judgements, ties) if ties in BY_ID else _order_of_grades(judgements, ties)


@kept_by_rows
def _order_of_ids(judgements: Judgements, ties: str) -> TieOrder:
    row = _falling_within(np.asarray(judgements.tie_keys), judgements.offsets, ascending=ties == "ascending")
    return TieOrder(at_places(np.arange(len(row)), row), row)


@kept
def _order_of_grades(judgements: Judgements, ties: str) -> TieOrder:
    sign = -1.0 if ties == "optimistic" else 1.0
    row = np.lexsort((np.arange(judgements.n_rows), sign * judgements.grades, query_of_row(judgements)))
    return TieOrder(at_places(np.arange(len(row)), row), row)


def _falling_within(keys: np.ndarray, offsets: np.ndarray, *, ascending: bool = False) -> np.ndarray:
    """Return rows in descending order of their keys within each query; equal keys keep their order."""
    row = np.empty(len(keys), dtype=np.int64)
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        if ascending:
            row[start:end] = start + np.argsort(keys[start:end], kind="stable")
        elif end - start > 1:  # a stable sort of the reversed rows, reversed
            row[start:end] = end - 1 - np.argsort(keys[start:end][::-1], kind="stable")[::-1]
        else:
            row[start:end] = start
    return row


@kept_by_rows
def query_of_row(judgements: Judgements) -> np.ndarray:
    """Return the number of each row's query, int64 (n,)."""
    return query_of_rows(judgements.offsets)


@kept
def ideal_grades(judgements: Judgements) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive grades of all judged documents, descending in each query, and offsets (m + 1,)."""
    positive = np.flatnonzero(judgements.grades > 0)
    grades, sizes = judgements.grades[positive], np.diff(np.searchsorted(positive, judgements.offsets))
    if judgements.missing_grades is not None and judgements.missing_offsets is not None:
        positive = np.flatnonzero(judgements.missing_grades > 0)
        absent = judgements.missing_grades[positive]
        absent_sizes = np.diff(np.searchsorted(positive, judgements.missing_offsets))
        query = np.concatenate([np.repeat(np.arange(judgements.n_queries), part) for part in (sizes, absent_sizes)])
        grades, sizes = np.concatenate([grades, absent])[np.argsort(query, kind="stable")], sizes + absent_sizes
    offsets = offsets_of(sizes)
    return grades[Blocks(offsets).argsort(np.append(-grades, np.inf)[None])[0]], offsets


def best_grade(judgements: Judgements) -> np.ndarray:
    """Return the largest grade of each query (m,), or 0 without positive grades."""
    grades, offsets = ideal_grades(judgements)
    result = np.zeros(judgements.n_queries)
    full = offsets[1:] > offsets[:-1]
    result[full] = grades[offsets[:-1][full]]
    return result


def segment_range(sizes: np.ndarray) -> np.ndarray:
    """Return 0, 1, …, size - 1 for each size, one after another."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def missing_count(judgements: Judgements, rel: float) -> np.ndarray:
    """Return the number of judged documents (m,) with a grade of at least `rel` that are not among the rows."""
    if judgements.missing_grades is None or judgements.missing_offsets is None:
        return np.zeros(judgements.n_queries, dtype=np.int64)
    return np.diff(np.searchsorted(np.flatnonzero(judgements.missing_grades >= rel), judgements.missing_offsets))
