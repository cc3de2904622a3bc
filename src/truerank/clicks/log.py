"""A log of impressions as columns of integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import as_array, as_numbers, check_choice
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.grouping import id_texts, is_missing

TEXT = np.dtypes.StringDType()
_DEEPEST = 10_000  # a larger position is a score or an id by mistake


class Coded(NamedTuple):
    """A column of ids: a code for each row, int32 (n,), -1 for a missing id, and the id of each code."""

    codes: np.ndarray
    names: np.ndarray


class Place(NamedTuple):
    """Where the rows come from, for messages: a file, and the line of row 0 or of each row; None counts rows."""

    file: str = ""
    line: int | np.ndarray | None = None


class ClickLog:
    """Shown lists of documents and the clicks on them, one row for each shown document.

    Rows are sorted by impression (in order of first appearance) and position. Ids become integers, so that a row needs
    about 25 bytes.

    Parameters
    ----------
    impression, query, document : array-like (n,) of ids
        The list that was shown, its query, and the document of the row. Ids are compared as text.
    position : array-like (n,) of integers >= 1
        The positions of an impression are 1 to its length; position 1 is at the top.
    clicked : array-like (n,) of 0 and 1
    ranker : array-like (n,) of ids, optional
        What chose the list: a ranker, or a bucket of an experiment.
    propensity : array-like (n,), optional
        Probability in (0, 1] with which that ranker was chosen.
    session : array-like (n,) of ids, optional
        Session or user of the impression.
    time : array-like (n,), optional
        Numbers that grow with time, or dates; ignored if a row has none.
    team : array-like (n,) of ids, optional
        The ranker that contributed this document to an interleaved list; "" for none.
    first_position : {0, 1}, default=1
        The number of the first position in `position`.
    bad : {"error", "skip"}, default="error"
        Raise an error at the first bad row, or leave out its impression and count it in `skipped`. Bad are positions
        that are missing, repeated or below 1, repeated documents, values of `clicked` other than 0 and 1, missing ids,
        and impressions of two queries or two rankers.
    place : Place, optional
        File and line for error messages.

    Attributes
    ----------
    query, document, session, ranker, team : int32 arrays (n,); the last three may be None
        Codes into `query_ids`, `document_ids`, …; -1 for a missing id.
    position : int32 array (n,)
    clicked : bool array (n,)
    propensity : float32 array (n,) or None
    time : int64 array (n,) or None
        Dates as nanoseconds since 1970.
    offsets : int64 array (n_impressions + 1,)
        First row of each impression.
    skipped : dict of str to int
        Impressions that were left out, by reason.

    Raises
    ------
    InvalidInputError, DataFileError
        On a bad row, with its number or line, and on columns of different lengths.

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
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        ranker: Any = None,
        propensity: ArrayLike | None = None,
        session: Any = None,
        time: ArrayLike | None = None,
        team: Any = None,
        first_position: int = 1,
        bad: str = "error",
        place: Place = Place(),  # noqa: B008 (immutable)
    ) -> None:
        check_choice(bad, "bad", ("error", "skip"))
        ids = {"impression": impression, "query": query, "document": document}
        ids |= {"ranker": ranker, "session": session, "team": team}
        coded = {name: coded_ids(values, name) for name, values in ids.items() if values is not None}
        columns = {name: column.codes for name, column in coded.items()}
        columns["position"], columns["clicked"] = _positions(position, 1 - first_position), _clicks(clicked)
        if propensity is not None:
            columns["propensity"] = as_numbers(propensity, "propensity").astype(np.float32)
        if time is not None and (times := _times(time, place)) is not None:
            columns["time"] = times
        n = len(columns["impression"])
        for name, values in columns.items():
            if len(values) != n:
                raise InvalidInputError(f"{name} has {len(values)} entries, but impression has {n}")
        if n == 0:
            raise InvalidInputError("the log has no rows")
        order = _order(columns["impression"], columns["position"])
        if order is not None:
            columns = {name: values[order] for name, values in columns.items()}
        self.skipped: dict[str, int] = {}
        kept = self._check(columns, order, bad, place)
        if kept is not None:
            columns = {name: values[kept] for name, values in columns.items()}
        self.ranker, self.session, self.team = map(columns.get, ("ranker", "session", "team"))
        self.propensity, self.time = columns.get("propensity"), columns.get("time")
        self.query, self.document, self.position = columns["query"], columns["document"], columns["position"]
        self.clicked = columns["clicked"].astype(bool)
        starts = np.flatnonzero(np.diff(columns["impression"], prepend=-2))
        self.offsets = np.append(starts, len(self.query)).astype(np.int64)
        self.query_ids, self.document_ids = coded["query"].names, coded["document"].names
        names = {name: column.names for name, column in coded.items()}
        self.ranker_ids, self.session_ids, self.team_ids = map(names.get, ("ranker", "session", "team"))

    def _check(
        self, columns: dict[str, np.ndarray], order: np.ndarray | None, bad: str, place: Place
    ) -> np.ndarray | None:
        """Return the rows to keep, None for all. Raise at the first bad row, or count the impressions to leave out."""
        impression = columns["impression"]
        lost = np.zeros(len(impression), dtype=bool)
        out = np.zeros(int(impression.max()) + 2, dtype=bool)  # the last is that of missing ids, -1
        for reason, wrong, message in _checks(columns):
            found = np.flatnonzero(wrong() & ~lost)
            if not len(found):
                continue
            if bad == "error":
                given = found if order is None else order[found]
                first = int(given.argmin())
                _refuse(message(int(found[first])), int(given[first]), place)
            gone = np.unique(impression[found])
            self.skipped[reason] = len(gone)
            out[gone] = True
            lost = out[impression]
        if lost.all():
            listed = ", ".join(f"{count} with {reason}" for reason, count in self.skipped.items())
            raise InvalidInputError(f"no impression is left: {listed}")
        return ~lost if self.skipped else None

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
        counts = [(self.n_rows, "row"), (self.n_impressions, "impression"), (queries, "query")]
        counts += [(len(np.unique(self.document)), "document"), (int(self.clicked.sum()), "click")]
        if self.ranker is not None:
            counts.append((len(np.unique(self.ranker)), "ranker"))
        plural = {"query": "queries"}
        texts = [f"{number} {word if number == 1 else plural.get(word, word + 's')}" for number, word in counts]
        return f"ClickLog({', '.join(texts)})"

    def cells(self, *keys: np.ndarray) -> Cells:
        """Add up the rows that share query, document and the `keys`, int arrays (n,) >= 0; O(n log n)."""
        columns = [(self.query, len(self.query_ids)), (self.document, len(self.document_ids))]
        columns += [(key, int(key.max(initial=0)) + 1) for key in keys]
        if np.prod([float(size) for _, size in columns]) >= 2.0**62:
            raise InvalidInputError("the log has too many queries and documents; split it by query")
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
    """Sums over rows of a log, sorted by query, document and keys: arrays (c,), and the cell of each row (n,)."""

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
    columns: dict[str, np.ndarray],
) -> Iterable[tuple[str, Callable[[], np.ndarray], Callable[[int], str]]]:
    """Name, test and message of each fault that sorted rows can have."""
    impression, position = columns["impression"], columns["position"]
    n = len(impression)
    starts = np.flatnonzero(np.diff(impression, prepend=-2))
    first = np.repeat(starts, np.diff(np.append(starts, n)))  # row of each row's impression

    def twice() -> np.ndarray:
        key = impression.astype(np.int64) * (int(columns["document"].max()) + 1) + columns["document"]
        by_key = np.argsort(key, kind="stable")
        again = np.zeros(n, dtype=bool)
        again[by_key[1:]] = key[by_key[1:]] == key[by_key[:-1]]
        return again

    def value(name: str, row: int) -> str:
        return f"{columns[name][row]:g}"

    # fmt: off
    faults: list[tuple[str, Callable[[], np.ndarray], Callable[[int], str]]] = [
        ("missing id", lambda: (impression < 0) | (columns["query"] < 0) | (columns["document"] < 0),
         lambda row: "the impression, query or document is missing; every row needs all three"),
        ("position", lambda: (position < 1) | (position > _DEEPEST),
         lambda row: f"the position must be an integer from 1 to {_DEEPEST}. If the log counts from 0, use "
         "first_position=0 (--first-position 0)"),
        ("clicked", lambda: columns["clicked"] > 1, lambda row: "clicked must be 0 or 1"),
        ("two queries", lambda: columns["query"] != columns["query"][first],
         lambda row: "an earlier row of the impression has another query"),
        ("position twice", lambda: (first != np.arange(n)) & (position == np.roll(position, 1)),
         lambda row: f"the impression has two documents at position {value('position', row)}"),
        ("document twice", twice, lambda row: "the impression shows this document twice"),
        ("gap", lambda: position != np.arange(n) - first + 1,
         lambda row: f"position {row - first[row] + 1} of the impression is missing; the next row has position "
         f"{value('position', row)}. Log all shown documents"),
    ]
    if "propensity" in columns:
        faults.append(("propensity", lambda: ~((columns["propensity"] > 0) & (columns["propensity"] <= 1)),
                       lambda row: f"the propensity must be above 0 and at most 1, got {value('propensity', row)}"))
    if "ranker" in columns:
        faults.append(("two rankers", lambda: columns["ranker"] != columns["ranker"][first],
                       lambda row: "an earlier row of the impression has another ranker. For interleaved lists, "
                       "name the column of the ranker of each document: team=... (--columns team=...)"))
    # fmt: on
    return faults


def coded_ids(values: ArrayLike | Coded, name: str) -> Coded:
    """Return the codes of a column of ids."""
    if isinstance(values, Coded):
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _coded_arrow(values, name)
    array = as_array(values, name)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind in "iub":
        array = array.astype(np.int64)
        if len(array) and (np.diff(array) >= 0).all():  # no sort is needed
            new = np.diff(array, prepend=array[0] - 1) != 0
            return Coded((np.cumsum(new) - 1).astype(np.int32), _texts(array[new].tolist()))
        names, codes = np.unique(array, return_inverse=True)
        return Coded(codes.astype(np.int32), _texts(names.tolist()))
    known: dict[str, int] = {}
    texts = id_texts(array.tolist())
    codes = np.array([-1 if is_missing(value) or not text else known.setdefault(text, len(known))
                      for value, text in zip(array.tolist(), texts)], dtype=np.int32)  # fmt: skip
    return Coded(codes, _texts(list(known)))


def _coded_arrow(values: Any, name: str) -> Coded:
    """The codes of an Arrow column; the names of impressions are not kept."""
    import pyarrow
    from pyarrow import compute

    if pyarrow.types.is_integer(values.type) and values.null_count == 0:
        return coded_ids(values.to_numpy(), name)
    if not pyarrow.types.is_dictionary(values.type):
        values = compute.dictionary_encode(values)
    chunks = values.unify_dictionaries().chunks if isinstance(values, pyarrow.ChunkedArray) else [values]
    if not chunks:
        return Coded(np.zeros(0, np.int32), _texts([]))
    parts = [compute.fill_null(chunk.indices.cast("int32"), -1).to_numpy(zero_copy_only=False) for chunk in chunks]
    codes = np.concatenate(parts)
    dictionary = chunks[0].dictionary
    if str(dictionary.type).endswith("string") and (empty := dictionary.index("").as_py()) >= 0:
        codes = np.where(codes == empty, np.int32(-1), codes)
    return Coded(codes, _texts(id_texts(dictionary.to_pylist()) if name != "impression" else []))


def _texts(names: Iterable[object]) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=TEXT)


def _numbers(values: ArrayLike, name: str) -> np.ndarray:
    """A column as numbers; NaN for values that are not numbers, so that the row is refused by its place."""
    array = as_array(values, name)
    if array.dtype.kind in "OUT":
        return np.array([_number(value) for value in array.tolist()], dtype=np.float64)
    return array if array.dtype.kind in "iub" else as_numbers(array, name)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _positions(values: ArrayLike, shift: int) -> np.ndarray:
    """Positions from 1 as int32; 0, which is refused, for values that are not integers."""
    numbers = _numbers(values, "position")
    if numbers.dtype.kind == "f":
        numbers = np.where(np.isfinite(numbers) & (numbers == np.floor(numbers)), numbers, -shift)
    return np.clip(numbers.astype(np.float64) + shift, -1, _DEEPEST + 1).astype(np.int32)


def _clicks(values: ArrayLike) -> np.ndarray:
    """0 and 1 as int8; 2, which is refused, for other values."""
    numbers = _numbers(values, "clicked")
    return np.where((numbers == 0) | (numbers == 1), numbers, 2).astype(np.int8)


def _times(values: ArrayLike, place: Place) -> np.ndarray | None:
    """Times as int64, dates as nanoseconds; None if a row has none."""
    array = as_array(values, "time")
    if array.dtype.kind == "M":
        return None if np.isnat(array).any() else array.astype("datetime64[ns]").astype(np.int64)
    if array.dtype.kind not in "OUT":
        return None if np.isnan(array).any() else as_numbers(array, "time").astype(np.int64)
    found = np.zeros(len(array), dtype=np.int64)
    for row, value in enumerate(array.tolist()):
        if is_missing(value) or value == "":
            return None
        try:
            found[row] = value if isinstance(value, int | float) else _nanoseconds(str(value))
        except ValueError:
            message = f"time must be a number or a date such as 2026-01-31T12:00:00Z, got {value!r:.40}"
            _refuse(message, row, place)
    return found


def _nanoseconds(text: str) -> int:
    """A date in ISO format, UTC if it names no zone."""
    when = datetime.fromisoformat(text)
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000


def _order(impression: np.ndarray, position: np.ndarray) -> np.ndarray | None:
    """The order by impression and position, None for rows that have it."""
    key = (impression.astype(np.int64) << 20) + position
    return None if (np.diff(key) > 0).all() else np.argsort(key, kind="stable")


def _refuse(message: str, row: int, place: Place) -> None:
    advice = '. Correct the log, or leave such impressions out with bad="skip" (--bad skip)'
    if place.file and place.line is not None:
        line = place.line + row if isinstance(place.line, int) else int(place.line[row])
        raise DataFileError(message + advice, place.file, line)
    text = f"row {row + 1}: {message}{advice}"
    raise DataFileError(text, place.file) if place.file else InvalidInputError(text)
