"""Checks of judged rankings, their scores and runs, which return remarks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import warn
from truerank.core.printing import counted
from truerank.data.grouping import mixed_queries, queries_with_mixed_ties, query_of_rows
from truerank.data.rank_columns import are_ranks, are_row_labels, count_rows, is_unnamed
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import NOTE, Remark, RemarkWarning, in_order
from truerank.data.row_source import Part, Rows

_NAMED = 8  # queries or features that a remark names
_HUGE_GRADE = 15
_SCALE = 8.0  # ratio of a feature's spreads in two files above which other documents are no explanation
_DEVIATING = 20  # values that the spread of a feature in a file requires
_BY_CHANCE = 0.001  # expected random features that order all documents as the grades do, above which we are silent
FIRST_IDS = 1000  # of documents, that are looked at for those of spreadsheets
_FIRST_QUERIES = 30  # tried before all queries, since most features already fail here
_Seen = tuple[str, tuple[int, list[Any]]]  # code, how many, queries


@dataclass
class Look:
    """The results for some whole queries. Results for different queries can be added."""

    n_rows: int
    log_chance: float  # logarithm of the probability that random numbers order every query as its grades do
    names: list[str]  # of the features
    seen: dict[str, tuple[int, list[Any]]]  # remarks on queries and rows by code: their number, and the queries
    columns: list[Column]  # empty without rows
    answers: np.ndarray | None  # see `_answers`
    positions: dict[str, list[str]]  # features that are positions in all parts, by code

    def __add__(self, other: Look) -> Look:
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        seen = dict(self.seen)
        for code, (count, items) in other.seen.items():
            before, earlier = seen.get(code, (0, []))
            seen[code] = before + count, earlier + items
        answers = None if self.answers is None or other.answers is None else self.answers & other.answers
        columns = [one.beside(two) for one, two in zip(self.columns, other.columns, strict=True)]
        positions = {code: [k for k in own if k in other.positions[code]] for code, own in self.positions.items()}
        n_rows, log_chance = self.n_rows + other.n_rows, self.log_chance + other.log_chance
        return Look(n_rows, log_chance, self.names, seen, columns, answers, positions)


def warn_of_rows(data: RankingData) -> None:
    """Warn in Python about properties of these rows that change a fit or prevent it.

    Warnings do not name queries, so that the folds of a cross-validation do not repeat them. Grades below 0, such as
    the labels -1 and 1, and fractional targets are usual in a fit.
    """
    found = []
    for code, (count, _) in _queries(data):
        found.append(Remark(code, "", count))
    for code, names in _positions(data, _feature_names(data)).items():
        if names:
            found.append(Remark(code, _list("feature", names), len(names), names))
    for remark in found:
        if remark.severity != NOTE and remark.code not in ("negative-grade", "fractional-grade"):
            warn(RemarkWarning(remark))


def _look(part: Part, quick: bool) -> Look:
    """Return the results for the rows of a part; the quick look compares no rows, and features only with positions."""
    data = part.data
    seen = dict([*_queries(data), *(() if quick else _rows(data))])
    if not data.n_features:
        return Look(data.n_rows, 0.0, [], seen, [], None, {})
    names = _feature_names(data)
    if quick:
        return Look(data.n_rows, 0.0, names, seen, [], None, _positions(data, names))
    columns = list((_sparse_columns if is_sparse(data.X) else _dense_columns)(data)) if data.n_rows else []
    mixed = np.zeros(0, np.bool_) if data.y is None else mixed_queries(data.y, data.offsets)
    answers = _answers(data, mixed)
    return Look(data.n_rows, _log_chance(data), names, seen, columns, answers, _positions(data, names))


def _positions(data: RankingData, names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"counting-feature": [], "rank-feature": []}
    if data.n_rows < 2:
        return found
    X, places = data.X, np.arange(len(names))
    if is_sparse(X):  # most positions are not 0
        places = np.flatnonzero(np.bincount(X.tocsr().indices, minlength=len(names)) >= data.n_rows / 2)
        X = X[:, places].tocsc()
    first = data.restore(np.arange(data.n_rows))[:2]
    for k, place in enumerate(places.tolist()):
        name = names[place]
        values = X[:, [k]].toarray().ravel() if is_sparse(X) else np.asarray(X[:, k])
        counts = float(values[first[1]]) - float(values[first[0]]) == 1.0 and count_rows(data.restore(values))
        if counts or (is_unnamed(name) and are_row_labels(values)):
            found["counting-feature"].append(name)
        elif are_ranks(values, data.offsets, len(names)):
            found["rank-feature"].append(name)
    return found


def examine(data: Rows, *, quick: bool = False) -> list[Remark]:
    """Return the remarks on one data set, a RankingData or a RowSource, in the order of `CODES`.

    The quick check is O(n log n + p) and omits the comparison of rows and most properties of features.
    """
    whole: Look = data.statistics(_look, quick)
    if (
        whole.n_rows
        and not quick
        and not data.n_features
        and (several := whole.seen.pop("conflicting-documents", None))
    ):
        whole.seen.pop("duplicate-document", None)  # which are judgements of several judges
        whole.seen["several-grades"] = several
    found = _about_queries(whole.seen.items())
    if data.n_features:
        found += _of_features(whole, getattr(data, "category_names", None) or {})
    elif whole.n_rows:
        found.append(Remark("no-features", counted(whole.n_rows, "row"), whole.n_rows))
    return in_order(found)


def of_judged_rows(data: RankingData) -> list[Remark]:
    """Return the remarks on queries, grades and documents of rows whose features nobody reads."""
    return in_order(_about_queries(_queries(data)))


def of_grades(grades: np.ndarray, offsets: np.ndarray, query_ids: np.ndarray, doc_ids: np.ndarray) -> list[Remark]:
    """Return the remarks on grades (n,) of judgements by query, such as qrels, and on the first documents."""
    return _about_queries([*_grades(grades, offsets, query_ids), *_rounded(doc_ids, offsets, query_ids)])


def scored(data: RankingData, scores: np.ndarray) -> list[Remark]:
    """Return the remarks on scores (n,) of the rows of `data`, in grouped order."""
    if data.y is None or not data.n_rows:
        return []
    names, tied = data.query_ids, queries_with_mixed_ties(scores, data.y, data.offsets)
    constant = ~mixed_queries(scores, data.offsets) & (data.group_sizes > 1)
    return _about_queries(
        [*_named("constant-scores", names, constant), *_named("tied-scores", names, tied & ~constant)]
    )


def _about_queries(found: Iterable[_Seen]) -> list[Remark]:
    return [Remark(code, _list("query", items) if items else counted(count, "query"), count, items)
            for code, (count, items) in found]  # fmt: skip


def ranks_as_scores(scores: Mapping[str, np.ndarray], offsets: np.ndarray) -> list[Remark]:
    """Return the remark on systems whose scores (n,), in grouped order, are ranks within queries or of all rows."""
    names = []
    for name, values in scores.items():
        if are_ranks(values, offsets) or are_ranks(values, offsets[[0, -1]]):
            names.append(name)
    return [Remark("ranks-as-scores", ", ".join(names), len(names), names)] if names else []


def fold_scales(names: Sequence[str], parts: Sequence[dict[str, float]]) -> list[Remark]:
    """Return features whose spread in one file is above 8 times the spread in another, from the `spreads` of files."""
    found: dict[str, list[float]] = {}
    for part in parts:
        for feature, spread in part.items():
            found.setdefault(feature, []).append(spread)
    several = {feature: values for feature, values in found.items() if len(values) > 1}
    apart = [feature for feature, values in several.items() if max(values) > _SCALE * min(values)]
    # Heavy tails may explain a single feature. Another normalisation affects most of them.
    if len(apart) < max(2, len(several) // 4):
        return []
    return [Remark("fold-scale", f"{', '.join(names)}: {_list('feature', apart)}", len(apart), apart)]


def spreads(data: RankingData) -> dict[str, float]:
    """Return the 0.9 quantile of the nonzero distances from the median, for features with at least 20 of them."""
    if is_sparse(data.X) or not data.n_rows:
        return {}
    result = {}
    for k, name in enumerate(_feature_names(data)):
        column = np.asarray(data.X[:, k], dtype=np.float64)
        column = column[np.isfinite(column)]
        distances = np.abs(column - np.median(column)) if len(column) else column
        distances = distances[distances > 0]
        if len(distances) >= _DEVIATING:
            result[name] = float(np.quantile(distances, 0.9))
    return result


def shared_queries(names: Sequence[str], parts: Sequence[np.ndarray]) -> list[Remark]:
    """Return the queries in more than one file, from the query ids of each file."""
    owner: dict[Any, str] = {}
    shared: dict[tuple[str, str], list[Any]] = {}
    for name, part in zip(names, parts):
        # The id 7 of one file equals "7" of another that has text ids. One file may hold both.
        for text, query in {str(query): query for query in part.tolist()}.items():
            if text in owner:
                shared.setdefault((owner[text], name), []).append(query)
            else:
                owner[text] = name
    return [
        Remark("shared-query", f"{a} and {b}: {_list('query', queries)}", len(queries), queries)
        for (a, b), queries in shared.items()
    ]


def _feature_names(data: RankingData) -> list[str]:
    return data.feature_names or [str(k + 1) for k in range(data.n_features)]


def _queries(data: RankingData) -> Iterable[_Seen]:
    names = data.query_ids
    if data.n_joined:
        yield "joined-query", (data.n_joined, [])
    yield from _named("single-document-query", names, data.group_sizes == 1)
    if data.y is not None and data.n_rows:
        highest = np.maximum.reduceat(data.y, data.offsets[:-1])
        yield from _named("query-without-pairs", names, ~mixed_queries(data.y, data.offsets))
        yield from _named("query-without-relevant", names, highest <= 0)
        yield from _grades(data.y, data.offsets, data.query_ids)
    if data.doc_ids is not None:
        yield from _documents(data.doc_ids, data.y, data.offsets, data.query_ids)


def _documents(
    ids: np.ndarray, grades: np.ndarray | None, offsets: np.ndarray, query_ids: np.ndarray
) -> Iterable[_Seen]:
    yield from _rounded(ids, offsets, query_ids)
    keys_of = lambda start, stop: ids[start:stop].tolist()  # noqa: E731
    count, doubled, _, conflicting = _repeats(keys_of, grades, offsets, query_ids)
    if count:
        yield "duplicate-document", (count, doubled)
    if conflicting:
        yield "conflicting-documents", (len(conflicting), conflicting)


def _rounded(ids: np.ndarray, offsets: np.ndarray, query_ids: np.ndarray) -> Iterable[_Seen]:
    found = [bool(re.fullmatch(r"\d(\.\d+)?E\+\d\d", str(one))) for one in ids[:FIRST_IDS].tolist()]
    if any(found):
        queries = query_ids[np.unique(query_of_rows(offsets)[: len(found)][found])].tolist()
        yield "rounded-ids", (sum(found), queries)


def _grades(grades: np.ndarray, offsets: np.ndarray, query_ids: np.ndarray) -> Iterable[_Seen]:
    for code, rows in (
        ("negative-grade", grades < 0),
        ("fractional-grade", grades != np.floor(grades)),
        ("huge-grade", grades > _HUGE_GRADE),
    ):
        if rows.any():
            yield code, (int(rows.sum()), query_ids[np.unique(query_of_rows(offsets)[rows])].tolist())


def _answers(data: RankingData, mixed: np.ndarray) -> np.ndarray | None:
    """Return features that order every query as its grades do, bool (p,); None for sparse rows or without grades."""
    if data.y is None or not data.n_rows or is_sparse(data.X):
        return None
    query = data.query_index
    judged = np.flatnonzero(mixed)
    few = np.isin(query, judged[:_FIRST_QUERIES])
    every = np.isin(query, judged)
    y = data.y

    def orders(rows: np.ndarray, k: int) -> bool:
        x, grades, group = np.asarray(data.X[rows, k], dtype=np.float64), y[rows], query[rows]
        order = np.lexsort((grades, x, group))
        same_query = np.diff(group[order]) == 0
        higher = np.diff(x[order]) > 0
        step = np.diff(grades[order])
        # Within a query grades never fall as the feature rises, and never differ where it is equal.
        return not (same_query & ((step < 0) | ((step != 0) & ~higher))).any()

    return np.array([orders(few, k) and orders(every, k) for k in range(data.n_features)], dtype=np.bool_)


def _log_chance(data: RankingData) -> float:
    """Return log P(random orders sort all queries by grade): Σ log(Π_g n_g! / n!), with n_g documents of grade g."""
    if data.y is None:
        return 0.0
    y = data.y[np.lexsort((data.y, data.query_index))]
    starts = np.union1d(data.offsets[:-1], np.flatnonzero(np.diff(y)) + 1)  # of the rows of one grade in a query
    log_factorial = np.concatenate([[0.0], np.log(np.arange(1, data.group_sizes.max(initial=0) + 1)).cumsum()])
    same_grade = np.diff(starts, append=data.n_rows)
    return float(log_factorial[same_grade].sum() - log_factorial[data.group_sizes].sum())


def _rows(data: RankingData) -> Iterable[_Seen]:
    if not data.n_features:
        return
    keys_of = lambda start, stop: _row_keys(data.X[start:stop])  # noqa: E731
    repeated, repeated_in, conflicting, conflicts_in = _repeats(keys_of, data.y, data.offsets, data.query_ids)
    if repeated:
        yield "identical-rows", (repeated, repeated_in)
    if conflicting:
        yield "conflicting-grades", (conflicting, conflicts_in)


def _repeats(
    keys_of: Callable[[int, int], Sequence[Any]], grades: np.ndarray | None, offsets: np.ndarray, query_ids: np.ndarray
) -> tuple[int, list[Any], int, list[Any]]:
    """Compare the keys of the rows of each query; "" is not a key.

    Returns the number of rows with an earlier key of their query, and the queries; then the number of keys with
    different grades, and the queries.
    """
    repeated, conflicting = 0, 0
    repeated_in: list[Any] = []
    conflicts_in: list[Any] = []
    y = np.zeros(offsets[-1]) if grades is None else grades
    for name, start, stop in zip(query_ids.tolist(), offsets[:-1].tolist(), offsets[1:].tolist()):
        keys = keys_of(start, stop)
        if len(set(keys)) == len(keys):
            continue
        found: dict[Any, list[float]] = {}
        for key, grade in zip(keys, y[start:stop].tolist()):
            if key:
                found.setdefault(key, []).append(grade)
        more = sum(len(own) - 1 for own in found.values())
        conflicts = sum(len(set(own)) > 1 for own in found.values())
        repeated, conflicting = repeated + more, conflicting + conflicts
        repeated_in += [name] * bool(more)
        conflicts_in += [name] * bool(conflicts)
    return repeated, repeated_in, conflicting, conflicts_in


def _of_features(whole: Look, texts: Collection[str]) -> Iterable[Remark]:
    """Yield the remarks on features, of which `texts` are numbered texts."""
    constant, query_level, duplicate, pairs = [], [], [], []
    empty: dict[str, dict[str, int]] = {"missing-value": {}, "missing-category": {}}
    first: dict[bytes, str] = {}
    for name, column in zip(whole.names, whole.columns):
        if column.n_missing:
            empty["missing-category" if name in texts else "missing-value"][name] = column.n_missing
        if column.constant:
            constant.append(name)
            continue
        if column.query_level:
            query_level.append(name)
        if first.setdefault(column.digest, name) != name:
            duplicate.append(name)
            pairs.append(f"{name} = {first[column.digest]}")
    answers: list[str] = []
    if whole.answers is not None and len(whole.names) * math.exp(whole.log_chance) < _BY_CHANCE:
        answers = [whole.names[k] for k in np.flatnonzero(whole.answers)]
    for code, features, shown, count in (
        *((code, names, names, len(names)) for code, names in whole.positions.items()),
        ("constant-feature", constant, constant, len(constant)),
        ("query-level-feature", query_level, query_level, len(query_level)),
        ("feature-equals-grade", answers, answers, len(answers)),
        ("duplicate-feature", duplicate, pairs, len(duplicate)),
        *((code, list(own), list(own), sum(own.values())) for code, own in empty.items()),
    ):
        if features:
            yield Remark(code, _list("feature", shown), count, features)


class Column(NamedTuple):
    """Properties of a feature. Columns with equal digests are equal, and `value` is the value in the first row."""

    n_missing: int
    constant: bool
    value: float
    query_level: bool
    digest: bytes

    def beside(self, other: Column) -> Column:
        """Return the properties of the rows of both columns together."""
        return Column(
            self.n_missing + other.n_missing,
            self.constant and other.constant and self.value == other.value,
            self.value,
            self.query_level and other.query_level,
            blake2b(self.digest + b"|" + other.digest, digest_size=16).digest(),
        )


def _dense_columns(data: RankingData) -> Iterable[Column]:
    for k in range(data.n_features):
        column = np.asarray(data.X[:, k], dtype=np.float64) + 0.0  # adding 0 makes -0 equal to 0
        absent = np.isnan(column)
        level = np.where(absent, np.inf, column)  # a query with missing and present values is not constant
        query_level = not mixed_queries(level, data.offsets).any()
        constant = bool((level == level[0]).all())
        digest = blake2b(level.tobytes(), digest_size=16).digest()
        yield Column(int(absent.sum()), constant, float(level[0]), query_level, digest)


def _sparse_columns(data: RankingData) -> Iterable[Column]:
    X = data.X.tocsc().astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    query, sizes = data.query_index, data.group_sizes
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()):
        if start == stop:
            yield Column(0, True, 0.0, True, b"")
            continue
        values, rows = X.data[start:stop], X.indices[start:stop]
        absent = np.isnan(values)
        level = np.where(absent, np.inf, values)
        # A query with stored values is constant if all its rows have the same one.
        queries, first, counts = np.unique(query[rows], return_index=True, return_counts=True)
        query_level = np.array_equal(counts, sizes[queries]) and bool((level == np.repeat(level[first], counts)).all())
        constant = stop - start == data.n_rows and bool((level == level[0]).all())
        digest = blake2b(rows.tobytes() + b"|" + level.tobytes(), digest_size=16).digest()
        yield Column(int(absent.sum()), constant, float(level[0]) if rows[0] == 0 else 0.0, query_level, digest)


def _row_keys(X: Any) -> list[bytes]:
    """Return the bytes of each row; equal rows have equal bytes."""
    if not is_sparse(X):
        return [row.tobytes() for row in np.ascontiguousarray(X + 0.0)]
    X = X.tocsr().copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = X.indptr.tolist()
    return [X.indices[a:b].tobytes() + b"|" + X.data[a:b].tobytes() for a, b in zip(ends, ends[1:])]


def _named(code: str, query_ids: np.ndarray, chosen: np.ndarray) -> list[_Seen]:
    """Return the chosen queries (bool (m,)), if there are any."""
    queries = query_ids[chosen].tolist()
    return [(code, (len(queries), queries))] if queries else []


def _list(kind: str, items: Sequence[Any]) -> str:
    plural = {"query": "queries", "feature": "features"}[kind] if len(items) > 1 else kind
    shown = ", ".join(map(str, items[:_NAMED]))
    return f"{plural} {shown}" + (f" and {len(items) - _NAMED} more" if len(items) > _NAMED else "")
