"""Grouping of rows by query."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np

from truerank.core.checks import LARGEST_EXACT, as_array, check_not_masked
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike

ONE_LIST = 1_000  # rows above which a missing qid is an error: the usual depth of a single result list


def offsets_of(sizes: ArrayLike) -> np.ndarray:
    """Return the starts of the groups and the end, int64 (m + 1,), from the sizes of the groups (m,)."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, np.ndarray) and bool(value != value)


def id_text(value: object) -> str:
    """Return an id as text: "7" for 7.0, since integers with missing values are often floats, and "true" for True."""
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidInputError(f"{value!r:.60} is not UTF-8 text. Convert it, such as by value.hex()") from error
    if not (isinstance(value, float | np.floating) and value.is_integer()):
        return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
    if abs(float(value)) >= LARGEST_EXACT:
        raise InvalidInputError(
            f"the id {value!r} is a float, and floats from 2^53 on do not represent every integer. Pass ids as text, "
            "or as nullable integers (pandas: Int64)",
            code="float-id",
        )
    return str(int(value))


def id_texts(values: Iterable[Any]) -> list[str]:
    """Return ids as text, with "" for missing ids."""
    return ["" if is_missing(value) else id_text(value) for value in values]


def refuse_nested(values: np.ndarray, name: str) -> None:
    """Raise an InvalidInputError if a cell of a column (n,) holds several values (list, struct)."""
    for row, cell in enumerate(values.tolist() if values.dtype.kind == "O" else []):
        if isinstance(cell, list | dict | np.ndarray):
            raise InvalidInputError(
                f"column {name!r} must have one value in each row, but row {row + 1} has {cell!r:.60}",
                value=name,
                code="not-numeric",
            )


def as_ids(values: np.ndarray, name: str) -> np.ndarray:
    """Return a column of ids (n,) that keeps their text. All columns of ids are converted by this function.

    Bytes (UTF-8) and UUIDs become text, and whole floats among other values become integers. Other ids are kept.

    Raises
    ------
    InvalidInputError
        For other bytes, for lists and similar values, and for several types, because 1 and "1" would be two ids. The
        message names the column and the rows, from 1.
    """
    cells = values.tolist() if values.dtype.kind in "OS" else []
    if set(map(type, cells)) <= {str}:
        return values
    first: dict[str, int] = {}  # a row of each type
    for row, cell in enumerate(cells):
        if is_missing(cell):
            continue
        try:
            hash(cell)
            if isinstance(cell, bytes | UUID):
                cells[row] = id_text(cell)
            elif isinstance(cell, float | np.floating) and cell.is_integer():
                cells[row] = int(id_text(cell))
        except (InvalidInputError, TypeError) as error:
            lists = f"a {type(cell).__name__} is not an id ({error}). Use numbers or text"
            what = lists if isinstance(error, TypeError) else error
            raise InvalidInputError(f"{name}, row {row + 1}: {what}", argument=name) from error
        kinds = (kind for kind, types in (("number", Number), ("text", str)) if isinstance(cells[row], types))
        first.setdefault(next(kinds, type(cell).__name__), row)
    if len(first) > 1:
        shown = " and ".join(f"{cells[row]!r:.60} in row {row + 1} ({kind})" for kind, row in list(first.items())[:2])
        raise InvalidInputError(f"{name} mixes types: {shown}. Convert ids to one type, such as text", argument=name)
    return np.fromiter(cells, dtype=object, count=len(cells))


def places_of(offsets: np.ndarray, groups: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the elements of some groups, in this order, and the groups' starts, int64 (g + 1,)."""
    chosen = np.asarray(groups, dtype=np.int64)
    sizes = np.diff(offsets)[chosen]
    starts = offsets_of(sizes)
    return np.repeat(offsets[:-1][chosen] - starts[:-1], sizes) + np.arange(starts[-1]), starts


def query_of_rows(offsets: np.ndarray) -> np.ndarray:
    """Return the query number of each grouped row, int64 (n,)."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def sums_by_query(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return sums by query `(m, …)` of the values `(n, …)` of grouped rows; 0 for a query without rows."""
    filled = np.flatnonzero(np.diff(offsets))
    result = np.zeros((len(offsets) - 1, *values.shape[1:]), dtype=values.dtype)
    if len(filled):
        result[filled] = np.add.reduceat(values, offsets[filled], axis=0)
    return result


def queries_of_sizes(sizes: ArrayLike, name: str, least: int) -> np.ndarray:
    """Return the query number of each row, int64 (n,), from the number of rows of each query, at least `least`."""
    values = np.asarray(sizes)
    if (
        values.ndim != 1
        or values.dtype.kind not in "iuf"
        or not np.isfinite(values).all()
        or (values != np.floor(values)).any()
        or (values < least).any()
    ):
        raise InvalidInputError(
            f"{name} must hold the number of rows of each query, integers >= {least}, such as [120, 85], got "
            f"{sizes!r:.80}. Pass the query of each row as qid",
            argument=name,
        )
    return query_of_rows(offsets_of(values))


def mixed_queries(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return which queries have different values (n,), such as grades; bool (m,)."""
    filled = np.flatnonzero(np.diff(offsets))
    result = np.zeros(len(offsets) - 1, dtype=bool)
    if len(filled):
        result[filled] = np.minimum.reduceat(values, offsets[filled]) < np.maximum.reduceat(values, offsets[filled])
    return result


def queries_with_mixed_ties(scores: np.ndarray, grades: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return which queries have rows of different grades (n,) with equal scores (n,); bool (m,)."""
    query = query_of_rows(offsets)
    order = np.lexsort((grades, scores, query))
    q, s, g = query[order], scores[order], grades[order]
    # Sorted by grade within equal scores, so that different grades are neighbours.
    apart = (q[1:] == q[:-1]) & (s[1:] == s[:-1]) & (g[1:] != g[:-1])
    return np.bincount(q[1:][apart], minlength=len(offsets) - 1) > 0


def ranks_by_query(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the rank of each grouped row within its query, int64 (n,), from 1, with equal scores in row order."""
    query = query_of_rows(offsets)
    order = np.lexsort((-np.asarray(scores, dtype=np.float64), query))
    return at_places(np.arange(len(scores)) - offsets[query] + 1, order)


def at_places(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return an array with `values[i]` at `places[i]`, the inverse of `values[places]`."""
    result = np.empty_like(values)
    result[places] = values
    return result


class RowsByQuery:
    """Base of classes with rows of queries between `offsets`, int64 (m + 1,)."""

    __slots__ = ()

    offsets: np.ndarray

    @property
    def n_rows(self) -> int:
        """The number of rows n (documents)."""
        return int(self.offsets[-1])

    @property
    def n_queries(self) -> int:
        """The number of queries (topics) m."""
        return len(self.offsets) - 1


class Grouping(RowsByQuery):
    """The assignment of rows to queries.

    Attributes
    ----------
    offsets : int64 array (m + 1,)
        Rows of query i, in order of first appearance, are `offsets[i]:offsets[i + 1]`.
    query_ids : array (m,)
        Names of the queries, int64 or str if all have this type, else object.
    order : int64 array (n,) or None
        Row of the caller at each grouped position; None if no row was moved.
    n_joined : int
        Number of queries whose rows were not adjacent and were joined.
    """

    __slots__ = ("n_joined", "offsets", "order", "query_ids")

    def __init__(self, offsets: np.ndarray, query_ids: np.ndarray, order: np.ndarray | None, n_joined: int) -> None:
        self.offsets, self.query_ids, self.order, self.n_joined = offsets, query_ids, order, n_joined

    @property
    def group_sizes(self) -> np.ndarray:
        """Number of rows of each query, int64 (m,), called `group` in LightGBM and XGBoost."""
        return np.diff(self.offsets)

    @property
    def query_index(self) -> np.ndarray:
        """Number of each row's query, int64 (n,), in grouped order."""
        return query_of_rows(self.offsets)

    @property
    def qid(self) -> np.ndarray:
        """Name of each row's query (n,), in grouped order."""
        return np.repeat(self.query_ids, self.group_sizes)

    def grouped(self, values: Any) -> Any:
        """Return the caller's values `(n, …)` in grouped order; `values` is returned if no row was moved."""
        return values if self.order is None else values[self.order]

    def restore(self, values: ArrayLike) -> np.ndarray:
        """Return values `(n, …)` of the grouped rows in the caller's row order."""
        values = np.asarray(values)
        if len(values) != self.n_rows:
            raise InvalidInputError(f"restore requires one value for each of the {self.n_rows} rows, got {len(values)}")
        return values if self.order is None else at_places(values, self.order)


def in_query_order(given: Any, rows: Grouping, what: str, *others: Any) -> Any:
    """Return values of queries in the order of `rows` from a mapping or Series by query id, or an array unchanged.

    `others` are the other arguments: a Series with their index has values by row. Values of other queries are ignored.
    """
    if not isinstance(given, Mapping):
        index = getattr(given, "index", None)
        if index is None or callable(index) or not hasattr(given, "to_numpy"):
            return given
        labels, places = list(index), [range(rows.n_rows), *(getattr(part, "index", None) for part in others)]
        if rows.n_rows != rows.n_queries and any(labels == list(p) for p in places if isinstance(p, Collection)):
            return given
        by_id = dict(zip(labels, given.to_numpy()))
        if labels == list(range(rows.n_queries)) and not all(query in by_id for query in rows.query_ids.tolist()):
            return given
        given = by_id if len(by_id) == len(labels) else {}
    lacking = [query for query in rows.query_ids.tolist() if query not in given]
    if lacking:
        raise InvalidInputError(
            f"{what} has no entry for {len(lacking)} of {rows.n_queries} queries, such as {lacking[0]!r}. Use query "
            f"ids as its index, or pass an array with an entry for each row: {what}.to_numpy()",
            argument=what,
        )
    return [given[query] for query in rows.query_ids.tolist()]


def value_of_each_query(given: Any, rows: Grouping, what: str, *others: Any) -> np.ndarray:
    """Return values of queries (m,) from a mapping or Series by query id, or from an array by row (n,)."""
    found = in_query_order(given, rows, what, *others)
    if found is not given:
        values = np.empty(len(found), dtype=object)
        values[:] = found
        return values
    by_row = np.asarray(given)
    if by_row.shape != (rows.n_rows,):
        raise InvalidInputError(
            f"{what} must have {rows.n_rows} entries, one for each row, or be a mapping or Series by query id, got the "
            f"shape {by_row.shape}. Pass frame.groupby(query)[column].first(), with your columns",
            argument=what,
        )
    by_row = rows.grouped(by_row)
    first = by_row[rows.offsets[:-1]]
    repeated = np.repeat(first, np.diff(rows.offsets))
    if len(wrong := np.flatnonzero((by_row != repeated) & ((by_row == by_row) | (repeated == repeated)))):
        found = f"query {rows.qid[wrong[0]]} has several values, such as {by_row[wrong[0]]}"
        raise InvalidInputError(f"{what} must be constant within a query, but {found}", argument=what)
    return first


def one_query(n_rows: int) -> Grouping:
    """Return all rows as one query with the name 0, or no query without rows."""
    m = 1 if n_rows else 0
    return Grouping(offsets_of([n_rows] * m), np.zeros(m, dtype=np.int64), None, 0)


def refuse_one_long_list(n_rows: int, who: str = "", advice: str = "qid=…") -> None:
    """Raise an error for more than `ONE_LIST` rows without query ids."""
    if n_rows > ONE_LIST:
        raise InvalidInputError(
            f"{who}{' ' if who else ''}got {n_rows} rows without qid, so that all rows would be one result list. Pass "
            f"the query of each row: {advice}. For a single query, pass qid=np.zeros({n_rows})",
            argument="qid",
        )


def group_rows(qid: ArrayLike | None, n_rows: int | None = None) -> Grouping:
    """Group rows by query id, in O(n) if the rows are already grouped, otherwise in O(n log n).

    Parameters
    ----------
    qid : array-like (n,) of any hashable values, or None
        None means one query with the name 0, which is an error for more than 1,000 rows.
    n_rows : int, optional
        The required length of `qid`.

    Raises
    ------
    InvalidInputError
        On a wrong length, two dimensions, a missing id (NaN, None), more than 1,000 rows without ids, and as `as_ids`.
    """
    if qid is None:
        if n_rows is None:
            raise InvalidInputError("qid=None requires the number of rows. Pass n_rows=len(X)", argument="qid")
        refuse_one_long_list(n_rows)
        return one_query(n_rows)
    if isinstance(qid, str | bytes):
        raise InvalidInputError(f"qid must hold one query id for each row, got the text {qid!r}", argument="qid")
    codes, names = _codes(qid)
    n = len(codes)
    if n_rows is not None and n != n_rows:
        raise InvalidInputError(f"qid must have one query id for each of the {n_rows} rows, got {n}", argument="qid")
    if n == 0:
        return Grouping(np.zeros(1, dtype=np.int64), codes if names is None else names[:0], None, 0)
    bounds = np.concatenate([[0], np.flatnonzero(codes[1:] != codes[:-1]) + 1, [n]]).astype(np.int64)
    unique_codes, first_piece, inverse = np.unique(codes[bounds[:-1]], return_index=True, return_inverse=True)
    appearance = np.argsort(first_piece, kind="stable")
    query_ids = unique_codes[appearance] if names is None else names[unique_codes[appearance]]
    if len(unique_codes) == len(inverse):
        return Grouping(bounds, query_ids, None, 0)
    query_of_piece = at_places(np.arange(len(appearance)), appearance)[inverse]
    query_of_row = np.repeat(query_of_piece, np.diff(bounds))
    order = np.argsort(query_of_row, kind="stable").astype(np.int64)
    n_joined = int(np.sum(np.bincount(query_of_piece) > 1))
    return Grouping(offsets_of(np.bincount(query_of_row)), query_ids, order, n_joined)


def name_order(query_ids: np.ndarray) -> np.ndarray:
    """Return the numbers of the queries (m,) in the order of their names, for draws that do not depend on row order.

    Numbers are ordered by value, and all other names by their text.

    >>> name_order(np.array(["q2", "q10", "q1"])).tolist()
    [2, 1, 0]
    """
    if query_ids.dtype.kind in "iufUS":
        return np.argsort(query_ids, kind="stable")
    keys = [(type(name).__name__, str(name)) for name in query_ids.tolist()]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def _codes(qid: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Return an integer code of each row's query, and the names by code, or None if the codes are the names."""
    check_not_masked(qid, "qid")
    values = qid if isinstance(qid, np.ndarray) else _as_array(qid)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # a column, as frame[["query"]] gives it
    if values.ndim != 1:
        raise InvalidInputError(
            f"qid must be one-dimensional, one query id for each row, got the shape {values.shape}", argument="qid"
        )
    if values.dtype.kind in "OS":
        values = as_ids(values, "qid")
    if values.dtype.kind in "iub" and (values.dtype != np.uint64 or values.max(initial=0) <= np.iinfo(np.int64).max):
        return values.astype(np.int64, copy=False), None
    if values.dtype.kind == "f":
        values = values.astype(np.float64, copy=False)  # the bound below is beyond float16
        if np.isnan(values).any():
            row = int(np.flatnonzero(np.isnan(values))[0])
            raise InvalidInputError(f"qid is missing (nan) in row {row + 1}. Give every row a query id", argument="qid")
        if values.size and np.all(values == np.floor(values)) and np.all(np.abs(values) < LARGEST_EXACT):
            return values.astype(np.int64), None
    if values.dtype.kind in "ufU":
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), names
    seen: dict[Hashable, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        if is_missing(value):
            raise InvalidInputError(
                f"qid is missing ({value!r}) in row {row + 1}. Give every row a query id", argument="qid"
            )
        codes[row] = seen.setdefault(value, len(seen))
    names = np.empty(len(seen), dtype=object)
    names[:] = list(seen)
    if seen and all(isinstance(name, str) for name in seen):
        names = names.astype(str)
    return codes, names


def _as_array(qid: Iterable[Any]) -> np.ndarray:
    """Return `qid` as a one-dimensional array of the caller's values, which may be tuples."""
    if hasattr(qid, "to_numpy"):
        return as_array(qid, "qid")
    if hasattr(qid, "__array__"):
        return np.asarray(qid)  # gathers Dask arrays, with an entry for each row
    values: Sequence[Any] = list(qid)
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, float, str, bool, bytes}:
        return np.array(values)
    if kinds and all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
