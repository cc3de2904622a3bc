"""Values that measures derive from the judgements alone, computed once and cached with them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.data.grouping import at_places, offsets_of, query_of_rows
from truerank.data.ranking_data import Judgements
from truerank.measures.blocks import Blocks

LARGEST_EXPONENT = 1000  # 2^grade and sums of it stay finite
SMALLEST = 5e-324  # "relevant" at this level is every positive grade


class Hits:
    """The documents that can contribute to a measure, for example the relevant ones.

    `mask` (n,) marks them among the rows; rankings cache their ranks under `key`. In query order (h,): the `query` of
    each, its `ordinal` 1, 2, … in the query, and the `first_row` of the query. `queries` are those with such documents,
    `starts` where they begin in arrays (h,). `ranked` and `total` (m,) count them among the rows, and with those not
    retrieved.
    """

    __slots__ = ("first_row", "key", "mask", "ordinal", "queries", "query", "ranked", "starts", "total")

    def __init__(self, offsets: np.ndarray, mask: np.ndarray, key: object, missing: np.ndarray | int = 0) -> None:
        self.mask, self.key = mask, key
        bounds = np.searchsorted(np.flatnonzero(mask), offsets)
        self.ranked = np.diff(bounds)
        self.total = self.ranked + missing
        self.queries = np.flatnonzero(self.ranked)
        self.starts = bounds[self.queries]
        self.query = np.repeat(np.arange(len(offsets) - 1), self.ranked)
        self.ordinal = segment_range(self.ranked) + 1
        self.first_row = offsets[self.query]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Return sums by query (k, m) of values (k, h), added one after another."""
        k, m = len(values), len(self.ranked)
        query = self.query if k == 1 else (self.query + m * np.arange(k)[:, None]).ravel()
        return np.bincount(query, weights=values.ravel(), minlength=k * m).reshape(k, m)


class TieOrder(NamedTuple):
    """A total order within queries: `rank[row]`, and its inverse `row[rank]`."""

    rank: np.ndarray
    row: np.ndarray


def hits_of(judgements: Judgements, rel: float) -> Hits:
    """Return the documents of grade `rel` and above, cached."""
    key = ("hits", float(rel))
    if key not in judgements.cache:
        mask, missing = judgements.grades >= rel, missing_count(judgements, rel)
        known: list[Hits] = judgements.cache.setdefault("all hits", [])
        for one in known:  # two levels without a grade between them share one object, and its ranks
            if np.array_equal(one.mask, mask) and np.array_equal(one.total - one.ranked, missing):
                break
        else:
            one = Hits(judgements.offsets, mask, key, missing)
            known.append(one)
        judgements.cache[key] = one
    return judgements.cache[key]


def tie_order(judgements: Judgements, ties: str) -> TieOrder | None:
    """Return the order among ties under a rule, cached; None means row order."""
    if ties == "stable":
        return None
    key = ("ties", ties)
    if key not in judgements.cache:
        n, query = judgements.n_rows, query_of_row(judgements)
        if ties == "trec":
            row = _falling_within(np.asarray(judgements.tie_keys), judgements.offsets)
        else:
            sign = -1.0 if ties == "optimistic" else 1.0
            row = np.lexsort((np.arange(n), sign * judgements.grades, query))
        judgements.cache[key] = TieOrder(at_places(np.arange(n), row), row)
    return judgements.cache[key]


def _falling_within(keys: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return rows in descending order of their keys within each query; equal keys keep their order."""
    row = np.empty(len(keys), dtype=np.int64)
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        if end - start > 1:  # a stable sort of the reversed rows, reversed
            row[start:end] = end - 1 - np.argsort(keys[start:end][::-1], kind="stable")[::-1]
        else:
            row[start:end] = start
    return row


def query_of_row(judgements: Judgements) -> np.ndarray:
    """Return the number of each row's query, int64 (n,), cached."""
    if "query_of_row" not in judgements.cache:
        judgements.cache["query_of_row"] = query_of_rows(judgements.offsets)
    return judgements.cache["query_of_row"]


def ranks(judgements: Judgements) -> np.ndarray:
    """Return the rank (from 1) of each place, int64 (n,), cached."""
    if "ranks" not in judgements.cache:
        first = judgements.offsets[query_of_row(judgements)]
        judgements.cache["ranks"] = np.arange(1, judgements.n_rows + 1) - first
    return judgements.cache["ranks"]


def ideal_grades(judgements: Judgements) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive grades of all judged documents, descending within each query, and offsets (m + 1,)."""
    if "ideal" not in judgements.cache:
        positive = np.flatnonzero(judgements.grades > 0)
        kept, sizes = judgements.grades[positive], np.diff(np.searchsorted(positive, judgements.offsets))
        if judgements.missing_grades is not None and judgements.missing_offsets is not None:
            positive = np.flatnonzero(judgements.missing_grades > 0)
            absent = judgements.missing_grades[positive]
            absent_sizes = np.diff(np.searchsorted(positive, judgements.missing_offsets))
            query = np.concatenate([np.repeat(np.arange(judgements.n_queries), part) for part in (sizes, absent_sizes)])
            kept, sizes = np.concatenate([kept, absent])[np.argsort(query, kind="stable")], sizes + absent_sizes
        offsets = offsets_of(sizes)
        judgements.cache["ideal"] = (-Blocks(offsets).sort(-kept), offsets)
    return judgements.cache["ideal"]


def best_grade(judgements: Judgements) -> np.ndarray:
    """Return the largest grade of each query (m,), 0 without positive grades."""
    grades, offsets = ideal_grades(judgements)
    result = np.zeros(judgements.n_queries)
    full = offsets[1:] > offsets[:-1]
    result[full] = grades[offsets[:-1][full]]
    return result


def top_of(offsets: np.ndarray, cutoff: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the first `cutoff` places of each segment, ranks from 0, starts of segments, and nonempty segments."""
    sizes = np.minimum(np.diff(offsets), cutoff)
    ends = np.cumsum(sizes)
    rank = segment_range(sizes)
    places = np.repeat(offsets[:-1], sizes) + rank
    queries = np.flatnonzero(sizes)
    return places, rank, (ends - sizes)[queries], queries


def segment_range(sizes: np.ndarray) -> np.ndarray:
    """Return 0, 1, …, size - 1 for each size, one after another."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def missing_count(judgements: Judgements, rel: float) -> np.ndarray:
    """Return the number of judged documents (m,) of grade `rel` and above that are not among the rows."""
    if judgements.missing_grades is None or judgements.missing_offsets is None:
        return np.zeros(judgements.n_queries, dtype=np.int64)
    return np.diff(np.searchsorted(np.flatnonzero(judgements.missing_grades >= rel), judgements.missing_offsets))
