"""A check-up of judged rankings: what in them may surprise a learner or an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from truerank.data.ranking_data import RankingData

_NAMED = 8  # places that a finding names in words

EXPLANATIONS = {
    "joined-query": "queries whose rows were not adjacent; they were joined",
    "shared-query": "queries that stand in more than one file; training and test must not share any",
    "different-width": "files with different numbers of features",
    "query-without-pairs": "queries whose documents all have one grade; they teach a ranker nothing",
    "query-without-relevant": "queries without a document of a positive grade; measures count them 0, 1 or not at all",
    "single-document-query": "queries with one document",
    "constant-feature": "features with one value in all rows",
    "query-level-feature": "features that are constant within every query; alone they cannot order documents",
    "duplicate-feature": "features equal to an earlier one in all rows",
    "missing-value": "features with missing values, by rows",
    "duplicate-document": "documents that stand twice in a query",
    "identical-rows": "rows that repeat the features of an earlier row of their query; every ranker ties them",
    "conflicting-grades": "identical rows of a query with different grades; no ranker can tell them apart",
    "negative-grade": "rows with a negative grade",
    "fractional-grade": "rows whose grade is no whole number",
}
"""What each code of a finding means."""


@dataclass
class Finding:
    """One thing that was found.

    Attributes
    ----------
    code : str
        A key of `EXPLANATIONS`.
    where : str
        The places in words, the first few of them.
    count : int
        How many there are.
    items : list
        All places: names of features or queries.
    """

    code: str
    where: str
    count: int
    items: list[Any] = field(default_factory=list)


def examine(data: RankingData) -> list[Finding]:
    """Findings on one data set, in the order of `EXPLANATIONS`.

    Parameters
    ----------
    data : RankingData

    Notes
    -----
    O(n p) time; hashes each column and each row.
    """
    found = [*_queries(data), *_features(data), *_rows(data)]
    order = list(EXPLANATIONS)
    return sorted(found, key=lambda finding: order.index(finding.code))


def shared_queries(names: Sequence[str], parts: Sequence[np.ndarray]) -> list[Finding]:
    """Queries that stand in more than one of several files that should share none.

    Parameters
    ----------
    names : sequence of str
        Names of the files.
    parts : sequence of arrays
        Query ids of each.
    """
    owner: dict[Any, str] = {}
    shared: dict[tuple[str, str], list[Any]] = {}
    for name, part in zip(names, parts):
        for query in part.tolist():
            if query in owner:
                shared.setdefault((owner[query], name), []).append(query)
            else:
                owner[query] = name
    return [
        Finding("shared-query", f"{a} and {b}: {_list('query', queries)}", len(queries), queries)
        for (a, b), queries in shared.items()
    ]


def _queries(data: RankingData) -> Iterable[Finding]:
    names = data.query_ids.tolist()
    sizes = np.diff(data.offsets)
    if data.n_joined:
        yield Finding("joined-query", f"{data.n_joined} queries", data.n_joined)
    yield from _of_queries("single-document-query", names, sizes == 1)
    if data.y is not None and data.n_rows:
        lowest = np.minimum.reduceat(data.y, data.offsets[:-1])
        highest = np.maximum.reduceat(data.y, data.offsets[:-1])
        yield from _of_queries("query-without-pairs", names, lowest == highest)
        yield from _of_queries("query-without-relevant", names, highest <= 0)
        for code, rows in (("negative-grade", data.y < 0), ("fractional-grade", data.y != np.floor(data.y))):
            if rows.any():
                queries = [names[q] for q in np.unique(data.query_index[rows])]
                yield Finding(code, _list("query", queries), int(rows.sum()), queries)
    if data.doc_ids is not None:
        doubled: list[Any] = []
        count = 0
        for name, start, stop in _slices(data):
            ids = [document for document in data.doc_ids[start:stop].tolist() if document]
            if len(set(ids)) < len(ids):
                doubled.append(name)
                count += len(ids) - len(set(ids))
        if count:
            yield Finding("duplicate-document", _list("query", doubled), count, doubled)


def _features(data: RankingData) -> Iterable[Finding]:
    if not data.n_rows:
        return
    names = data.feature_names or [str(k + 1) for k in range(data.n_features)]
    constant, query_level, duplicate, pairs, missing = [], [], [], [], []
    n_missing = 0
    first: dict[bytes, str] = {}
    for name, column in zip(names, _sparse_columns(data) if hasattr(data.X, "tocsr") else _dense_columns(data)):
        if column.n_missing:
            missing.append(name)
            n_missing += column.n_missing
        if column.constant:
            constant.append(name)
            continue
        if column.query_level:
            query_level.append(name)
        if first.setdefault(column.digest, name) != name:
            duplicate.append(name)
            pairs.append(f"{name} = {first[column.digest]}")
    for code, features in (("constant-feature", constant), ("query-level-feature", query_level)):
        if features:
            yield Finding(code, _list("feature", features), len(features), features)
    if duplicate:
        yield Finding("duplicate-feature", _list("feature", pairs), len(duplicate), duplicate)
    if missing:
        yield Finding("missing-value", _list("feature", missing), n_missing, missing)


def _rows(data: RankingData) -> Iterable[Finding]:
    if not data.n_features:
        return
    repeated, conflicting = 0, 0
    repeated_in: list[Any] = []
    conflicts_in: list[Any] = []
    for name, start, stop in _slices(data):
        grades: dict[bytes, set[float]] = {}
        keys = _row_keys(data.X[start:stop])
        for key, grade in zip(keys, [0.0] * (stop - start) if data.y is None else data.y[start:stop].tolist()):
            grades.setdefault(key, set()).add(grade)
        if len(grades) < stop - start:
            repeated += stop - start - len(grades)
            repeated_in.append(name)
            conflicts = sum(len(kinds) > 1 for kinds in grades.values())
            if conflicts:
                conflicting += conflicts
                conflicts_in.append(name)
    if repeated:
        yield Finding("identical-rows", _list("query", repeated_in), repeated, repeated_in)
    if conflicting:
        yield Finding("conflicting-grades", _list("query", conflicts_in), conflicting, conflicts_in)


class _Column(NamedTuple):
    """What a check-up asks of a feature; columns with one digest are equal."""

    n_missing: int
    constant: bool
    query_level: bool
    digest: bytes


def _dense_columns(data: RankingData) -> Iterable[_Column]:
    starts = data.offsets[:-1]
    for k in range(data.n_features):
        column = np.asarray(data.X[:, k], dtype=np.float64) + 0.0  # adding 0 makes -0 equal to 0
        absent = np.isnan(column)
        level = np.where(absent, np.inf, column)  # a query with missing and other values is not constant
        query_level = np.array_equal(np.minimum.reduceat(level, starts), np.maximum.reduceat(level, starts))
        constant = bool((level == level[0]).all())
        yield _Column(int(absent.sum()), constant, query_level, blake2b(level.tobytes(), digest_size=16).digest())


def _sparse_columns(data: RankingData) -> Iterable[_Column]:
    """The same of a sparse matrix, in time that goes by its stored values."""
    X = data.X.tocsc().astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    query, sizes = data.query_index, np.diff(data.offsets)
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()):
        if start == stop:
            yield _Column(0, True, True, b"")
            continue
        values, rows = X.data[start:stop], X.indices[start:stop]
        absent = np.isnan(values)
        level = np.where(absent, np.inf, values)
        # In a query that has stored values all rows have one, and the same.
        queries, first, counts = np.unique(query[rows], return_index=True, return_counts=True)
        query_level = np.array_equal(counts, sizes[queries]) and bool((level == np.repeat(level[first], counts)).all())
        constant = stop - start == data.n_rows and bool((level == level[0]).all())
        digest = blake2b(rows.tobytes() + b"|" + level.tobytes(), digest_size=16).digest()
        yield _Column(int(absent.sum()), constant, query_level, digest)


def _row_keys(X: Any) -> list[bytes]:
    """Bytes of each row; equal rows have equal bytes."""
    if not hasattr(X, "tocsr"):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]
    X = X.tocsr().copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = X.indptr.tolist()
    return [X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in zip(ends, ends[1:])]


def _slices(data: RankingData) -> Iterable[tuple[Any, int, int]]:
    return zip(data.query_ids.tolist(), data.offsets[:-1].tolist(), data.offsets[1:].tolist())


def _of_queries(code: str, names: list[Any], chosen: np.ndarray) -> Iterable[Finding]:
    if chosen.any():
        queries = [names[place] for place in np.flatnonzero(chosen)]
        yield Finding(code, _list("query", queries), len(queries), queries)


def _list(kind: str, items: Sequence[Any]) -> str:
    plural = {"query": "queries", "feature": "features"}[kind] if len(items) > 1 else kind
    shown = ", ".join(map(str, items[:_NAMED]))
    return f"{plural} {shown}" + (f" and {len(items) - _NAMED} more" if len(items) > _NAMED else "")
