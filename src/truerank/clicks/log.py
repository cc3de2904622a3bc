"""A log of impressions as columns of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import as_array, as_numbers, check_choice
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import id_texts, is_missing

_TEXT = np.dtypes.StringDType()
_DEEPEST = 10_000  # a position beyond is a mistake: of a score, of an id


class Coded(NamedTuple):
    """A column of ids: a number for each row, int32 (n,), -1 where there is none, and the id of each number."""

    codes: np.ndarray
    names: np.ndarray


class ClickLog:
    """Shown lists of documents and the clicks on them, one row a shown document.

    Rows are kept in order of impressions (by first appearance) and positions, ids as integers: about 25 bytes a row.

    Parameters
    ----------
    impression, query, document : array-like (n,) of ids
        The list that was shown, its query, and the document of the row. Ids are compared as text.
    position : array-like (n,) of integers >= 1
        1 was shown first. The positions of an impression are 1 ... its length.
    clicked : array-like (n,) of 0 and 1
    ranker : array-like (n,) of ids, optional
        What chose the list: a ranker, or a bucket of an experiment.
    propensity : array-like (n,), optional
        Probability in (0, 1] with which that ranker was chosen.
    session : array-like (n,) of ids, optional
        Session or user of the impression.
    time : array-like (n,), optional
        Numbers that grow with time, or dates.
    team : array-like (n,) of ids, optional
        The ranker that contributed this document to an interleaved list; "" for none.
    bad : {"error", "skip"}, default="error"
        What to do with an impression with a position below 1, given twice or left out, a document twice, a value of
        `clicked` other than 0 and 1, a missing id, or two queries: raise, or leave the impression out and count it.
    place : tuple of str and int or int64 array (n,), optional
        For messages: the name of the file, and its line that holds row 0, or that of each row; None speaks of rows.

    Attributes
    ----------
    impression, query, document, session, ranker, team : int32 arrays (n,); the last three may be None
        Numbers of `n_impressions` lists and of the ids below; -1 where there is none.
    position : int32 array (n,)
    clicked : bool array (n,)
    propensity : float32 array (n,) or None
    time : int64 array (n,) or None
        Nanoseconds for dates.
    query_ids, document_ids, ranker_ids, session_ids, team_ids : StringDType arrays
    offsets : int64 array (n_impressions + 1,)
        Where the rows of each impression start.
    skipped : dict of str to int
        Impressions that were left out, by reason.

    Raises
    ------
    InvalidInputError, DataFileError
        On what `bad` names, with the row or line; on columns of different lengths.

    Examples
    --------
    >>> log = ClickLog([1, 1, 2], ["cat", "cat", "dog"], ["a", "b", "a"], [1, 2, 1], [0, 1, 0], ranker=["x", "x", "y"])
    >>> log
    ClickLog(3 rows, 2 impressions, 2 queries, 2 documents, 1 click, 2 rankers)
    """

    def __init__(
        self,
        impression: Any,
        query: Any,
        document: Any,
        position: Any,
        clicked: Any,
        *,
        ranker: Any = None,
        propensity: Any = None,
        session: Any = None,
        time: Any = None,
        team: Any = None,
        bad: str = "error",
        place: tuple[str, Any] = ("", None),
    ) -> None:
        check_choice(bad, "bad", ("error", "skip"))
        ids = {"impression": impression, "query": query, "document": document}
        ids |= {name: values for name, values in (("ranker", ranker), ("session", session), ("team", team))
                if values is not None}  # fmt: skip
        coded = {name: coded_ids(values, name) for name, values in ids.items()}
        n = len(coded["impression"].codes)
        numbers = {"position": _whole(position, "position"), "clicked": _clicks(clicked)}
        if propensity is not None:
            numbers["propensity"] = as_numbers(propensity, "propensity").astype(np.float32)
        if time is not None:
            numbers["time"] = _times(time)
        for name, length in {
            **{k: len(v.codes) for k, v in coded.items()},
            **{k: len(v) for k, v in numbers.items()},
        }.items():
            if length != n:
                raise InvalidInputError(f"{name} has {length} entries and impression has {n}; each needs one a row")
        columns = {name: column.codes for name, column in coded.items()} | numbers
        order = _order(columns["impression"], columns["position"])
        if order is not None:
            columns = {name: values[order] for name, values in columns.items()}
        self.skipped: dict[str, int] = {}
        kept = self._check(columns, order, bad, place)
        if kept is not None:
            columns = {name: values[kept] for name, values in columns.items()}
        for name in ("ranker", "session", "team", "propensity", "time"):
            setattr(self, name, columns.get(name))
        self.query, self.document = columns["query"], columns["document"]
        self.position, self.clicked = columns["position"].astype(np.int32), columns["clicked"].astype(bool)
        starts = np.flatnonzero(np.diff(columns["impression"], prepend=-2))
        self.offsets = np.append(starts, len(self.query)).astype(np.int64)
        self.query_ids, self.document_ids = coded["query"].names, coded["document"].names
        for name in ("ranker", "session", "team"):
            setattr(self, f"{name}_ids", coded[name].names if name in coded else None)

    ranker: np.ndarray | None
    session: np.ndarray | None
    team: np.ndarray | None
    propensity: np.ndarray | None
    time: np.ndarray | None
    ranker_ids: np.ndarray | None
    session_ids: np.ndarray | None
    team_ids: np.ndarray | None

    def _check(
        self, columns: dict[str, np.ndarray], order: np.ndarray | None, bad: str, place: tuple[str, Any]
    ) -> np.ndarray | None:
        """Rows to keep, None for all; raises at the first bad row, or counts the impressions that are left out."""
        impression = columns["impression"]
        n = len(impression)
        if n == 0:
            raise InvalidInputError("the log holds no rows")
        out = np.zeros(int(impression.max(initial=0)) + 1, dtype=bool)
        lost = np.zeros(n, dtype=bool)
        starts = np.flatnonzero(np.diff(impression, prepend=-2))
        first = np.repeat(starts, np.diff(np.append(starts, n)))
        for reason, wrong, message in _checks(columns, first):
            found = wrong() & ~lost
            if not found.any():
                continue
            if bad == "error":
                rows = np.flatnonzero(found)
                own = rows if order is None else order[rows]
                at = int(own.argmin())
                _refuse(message(int(rows[at])), int(own[at]), place)
            gone = np.unique(impression[found])
            self.skipped[reason] = len(gone)
            out[gone[gone >= 0]] = True
            lost |= np.where(impression >= 0, out[impression], True)
        if not lost.any():
            return None
        if lost.all():
            listed = ", ".join(f"{count} with {reason}" for reason, count in self.skipped.items())
            raise InvalidInputError(f"no impression is left: {listed}")
        return ~lost

    @property
    def n_rows(self) -> int:
        """Number of shown documents."""
        return len(self.query)

    @property
    def n_impressions(self) -> int:
        """Number of shown lists."""
        return len(self.offsets) - 1

    @property
    def impression(self) -> np.ndarray:
        """Number of each row's impression, int32 (n,)."""
        return np.repeat(np.arange(self.n_impressions, dtype=np.int32), np.diff(self.offsets))

    def __repr__(self) -> str:
        queries = len(np.unique(self.query[self.offsets[:-1]]))
        counts = [(self.n_rows, "row"), (self.n_impressions, "impression"), (queries, "query"),
                  (len(np.unique(self.document)), "document"), (int(self.clicked.sum()), "click")]  # fmt: skip
        if self.ranker is not None:
            counts.append((len(np.unique(self.ranker)), "ranker"))
        return f"ClickLog({', '.join(f'{number} {_plural(word, number)}' for number, word in counts)})"

    def cells(self, *keys: np.ndarray) -> Cells:
        """Add up the rows that share query, document and the `keys`, int arrays (n,) >= 0; O(n log n)."""
        columns = [(self.query, len(self.query_ids)), (self.document, len(self.document_ids))]
        columns += [(key, int(key.max(initial=0)) + 1) for key in keys]
        if np.prod([float(size) for _, size in columns]) >= 2.0**62:
            raise InvalidInputError("the log has too many queries and documents to be numbered together")
        code = np.zeros(self.n_rows, dtype=np.int64)
        for values, size in columns:
            code *= size
            code += values
        codes, of_row = np.unique(code, return_inverse=True)
        found = []
        for _, size in reversed(columns):
            found.append(codes % size)
            codes = codes // size
        query, document, *rest = found[::-1]
        n, clicks = np.bincount(of_row), np.bincount(of_row, weights=self.clicked)
        return Cells(query, document, rest, n.astype(np.float64), clicks, of_row)


class Cells(NamedTuple):
    """Rows of a log added up, in order of query, document and keys: arrays (c,), and the cell of each row (n,)."""

    query: np.ndarray
    document: np.ndarray
    keys: list[np.ndarray]
    n: np.ndarray
    clicks: np.ndarray
    of_row: np.ndarray

    @property
    def pair(self) -> np.ndarray:
        """A number for each query and document, ascending, int64 (c,)."""
        new = (np.diff(self.query, prepend=-1) != 0) | (np.diff(self.document, prepend=-1) != 0)
        return np.cumsum(new) - 1


def _checks(
    columns: dict[str, np.ndarray], first: np.ndarray
) -> Iterable[tuple[str, Callable[[], np.ndarray], Callable[[int], str]]]:
    """What can be wrong with rows (n,) by impression and position: its name, where it is so (n,), what to say of a row.

    `first` (n,) is the first row of each row's impression.
    """
    impression, position = columns["impression"], columns["position"]
    n = len(impression)
    same = np.zeros(n, dtype=bool)
    same[1:] = impression[1:] == impression[:-1]

    def twice() -> np.ndarray:
        key = impression.astype(np.int64) * (int(columns["document"].max()) + 1) + columns["document"]
        by_key = np.argsort(key, kind="stable")
        again = np.zeros(n, dtype=bool)
        again[by_key[1:]] = key[by_key[1:]] == key[by_key[:-1]]
        return again

    def value(name: str, row: int) -> str:
        return f"{columns[name][row]:g}"

    return (
        ("missing id", lambda: (impression < 0) | (columns["query"] < 0) | (columns["document"] < 0),
         lambda row: "the impression, query or document is missing; give each row all three"),
        ("position", lambda: (position < 1) | (position > _DEEPEST),
         lambda row: f"the position must be an integer from 1 to {_DEEPEST}, got {value('position', row)}. "
         "If the log counts from 0, use first_position=0 (--first-position 0)"),
        ("clicked", lambda: (columns["clicked"] != 0) & (columns["clicked"] != 1),
         lambda row: f"clicked must be 0 or 1, got {value('clicked', row)}"),
        ("propensity", lambda: ~((columns["propensity"] > 0) & (columns["propensity"] <= 1))
         if "propensity" in columns else np.zeros(n, dtype=bool),
         lambda row: f"the propensity must be a probability above 0, got {value('propensity', row)}"),
        ("two queries", lambda: columns["query"] != columns["query"][first],
         lambda row: "an earlier row of the impression has another query; an impression has one"),
        ("two rankers", lambda: columns["ranker"] != columns["ranker"][first]
         if "ranker" in columns else np.zeros(n, dtype=bool),
         lambda row: "an earlier row of the impression has another ranker. For interleaved lists, name the column "
         "that says which ranker a document is from with team=... (--columns team=...)"),
        ("position twice", lambda: same & (position == np.roll(position, 1)),
         lambda row: f"the impression has two documents at position {value('position', row)}"),
        ("document twice", twice, lambda row: "the impression shows this document twice"),
        ("gap", lambda: position != np.arange(n) - first + 1,
         lambda row: f"position {row - first[row] + 1} of the impression is missing: its next is "
         f"{value('position', row)}. Log all shown documents"),
    )  # fmt: skip


def coded_ids(values: ArrayLike, name: str) -> Coded:
    """A column of ids as numbers, in order of the ids or of their appearance."""
    if isinstance(values, Coded):
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _coded_arrow(values, name)
    array = as_array(values, name)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, one entry a row; got shape {array.shape}")
    if array.dtype.kind in "iub":
        array = array.astype(np.int64)
        if len(array) and (np.diff(array) >= 0).all():  # one pass in place of a sort
            new = np.diff(array, prepend=array[0] - 1) != 0
            return Coded((np.cumsum(new) - 1).astype(np.int32), _texts(array[new]))
        names, codes = np.unique(array, return_inverse=True)
        return Coded(codes.astype(np.int32), _texts(names))
    if array.dtype.kind == "U":
        names, codes = np.unique(array, return_inverse=True)
        return Coded(codes.astype(np.int32), _texts(names))
    known: dict[str, int] = {}
    texts = id_texts(array.tolist())
    codes = np.array([-1 if is_missing(own) or not text else known.setdefault(text, len(known))
                      for own, text in zip(array.tolist(), texts)], dtype=np.int32)  # fmt: skip
    return Coded(codes, _texts(list(known)))


def _coded_arrow(values: Any, name: str) -> Coded:
    """The same of a column of Arrow's; the names of impressions are not kept."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_integer(values.type) and values.null_count == 0:
        return coded_ids(values.to_numpy(), "")
    if not pyarrow.types.is_dictionary(values.type):
        values = compute.dictionary_encode(values)
    if isinstance(values, pyarrow.ChunkedArray):
        values = values.unify_dictionaries()
        chunks = values.chunks
    else:
        chunks = [values]
    empty = (
        chunks[0].dictionary.index("").as_py() if chunks and str(chunks[0].dictionary.type).endswith("string") else -1
    )
    parts = [compute.fill_null(chunk.indices.cast("int32"), -1).to_numpy(zero_copy_only=False) for chunk in chunks]
    names = chunks[0].dictionary.to_pylist() if chunks and name != "impression" else []
    codes = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    if empty >= 0:
        codes = np.where(codes == empty, -1, codes)
    return Coded(codes.astype(np.int32), _texts(id_texts(names)))


def _texts(names: Any) -> np.ndarray:
    return np.array([str(name) for name in (names.tolist() if hasattr(names, "tolist") else names)], dtype=_TEXT)


def _whole(values: ArrayLike, name: str) -> np.ndarray:
    """Positions as int32; what is no integer becomes 0, which no position is."""
    numbers = as_array(values, name)
    if numbers.dtype.kind in "iu":
        return np.clip(numbers, -1, _DEEPEST + 1).astype(np.int32)
    numbers = as_numbers(numbers, name)
    ok = np.isfinite(numbers) & (numbers == np.floor(numbers))
    return np.where(ok, np.clip(np.nan_to_num(numbers), -1, _DEEPEST + 1), 0).astype(np.int32)


def _clicks(values: ArrayLike) -> np.ndarray:
    numbers = as_array(values, "clicked")
    if numbers.dtype.kind == "b":
        return numbers.astype(np.int8)
    numbers = as_numbers(numbers, "clicked")
    return np.where((numbers == 0) | (numbers == 1), np.nan_to_num(numbers), 2).astype(np.int8)


def _times(values: ArrayLike) -> np.ndarray:
    array = as_array(values, "time")
    if array.dtype.kind == "M":
        return array.astype("datetime64[ns]").astype(np.int64)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind in "OUT":
        try:
            return np.array(array.astype(str), dtype="datetime64[ns]").astype(np.int64)
        except ValueError as error:
            raise InvalidInputError(f"time must be numbers or dates such as 2026-01-31T12:00:00: {error}") from error
    return as_numbers(array, "time").astype(np.int64)


def _order(impression: np.ndarray, position: np.ndarray) -> np.ndarray | None:
    """Rows by impression and position, or None where they are in that order."""
    later = impression[1:] > impression[:-1]
    if (later | ((impression[1:] == impression[:-1]) & (position[1:] > position[:-1]))).all():
        return None
    return np.argsort((impression.astype(np.int64) << 20) + position, kind="stable")


def _refuse(message: str, row: int, place: tuple[str, Any]) -> None:
    name, line = place
    advice = '. Correct the log, or leave such impressions out with bad="skip" (--bad skip)'
    if name and line is not None:
        raise DataFileError(message + advice, name, line + row if isinstance(line, int) else int(line[row]))
    text = f"row {row + 1}: {message}{advice}"
    raise DataFileError(text, name) if name else InvalidInputError(text)


def _plural(word: str, number: int) -> str:
    return word if number == 1 else "queries" if word == "query" else word + "s"
