"""A log of impressions, stored as columns of integers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

import numpy as np

from truerank.core.checks import as_array, as_numbers, check_choice
from truerank.core.errors import DataFileError, InvalidInputError, Message, Remedy
from truerank.core.printing import counted
from truerank.core.types import ArrayLike
from truerank.data.grouping import as_ids, id_texts, is_missing
from truerank.data.ranking_data import RankingData

TEXT = np.dtypes.StringDType()
_DEEPEST = 10_000  # a larger position is a score or an id by mistake
_LATEST = 2**63 - 1024  # a time in nanoseconds, year 2262
NO_LIST, NO_QUERY = "queries without hits and without shown documents", "events without query_id"
NOT_SHOWN, OTHER = "clicks on documents that were not shown", "events with unknown action names"
NO_TIME = "all times, because some rows have no time"
# What to do about what `ClickLog.skipped` counts; `_CORRECT` where there is nothing special.
_REMEDIES: dict[str, tuple[Remedy | str, ...]] = {
    "position": (Remedy("if the log counts from 0", first_position=0),),
    "gap": ("log all shown documents",),
    "two rankers": (Remedy("to name the ranker of each document of interleaved lists", columns={"team": ...}),),
    NO_LIST: ("log query_response_hit_ids", Remedy("to name the event of a shown document", shown_action=...)),
    NO_QUERY: ("log the query_id of each event",),
    NOT_SHOWN: ("log all shown documents",),
    OTHER: (Remedy("if they are clicks", click_action=...), Remedy("if they show documents", shown_action=...)),
    NO_TIME: ("fill in the times, or leave these rows out",),
}
_CORRECT = (Remedy("to see the first such row", bad="error"),)


class Coded(NamedTuple):
    """A column of ids as codes. `codes`, int32 (n,), has -1 for a missing id; `names` has the id of each code."""

    codes: np.ndarray
    names: np.ndarray


class Place(NamedTuple):
    """The source of the rows for messages, a file and the line of row 0 or of each row (None if rows are counted)."""

    file: str = ""
    line: int | np.ndarray | None = None


class ClickLog:
    """A log of displayed lists of documents and their clicks, with one row for each shown document.

    Rows are sorted by impression (in order of first appearance) and position, and take about 25 bytes each.

    Parameters
    ----------
    impression, query, document : array-like (n,) of ids, compared as text
    position : array-like (n,) of integers, from 1 (at the top) to the number of documents of the impression
    clicked : array-like (n,) of 0 and 1
    ranker : array-like (n,) of ids of the rankers (or buckets of an experiment) that chose the lists, optional
    propensity : array-like (n,) of the probabilities in (0, 1] with which these rankers were chosen, optional
    session : array-like (n,) of ids of sessions or users, optional
    time : array-like (n,) of dates, or of numbers that grow with time, optional
        The column is not used if a row has no time; `skipped` counts such rows.
    team : array-like (n,) of ids, optional
        The ranker that contributed the document to an interleaved list; "" for none.
    first_position : {0, 1}, default=1
        Number of the first position in `position`.
    bad : {"error", "skip"}, default="error"
        Whether to raise an error at the first bad row, or to leave out its impression and count it in `skipped`. A row
        is bad if an id is missing, `clicked` is not 0 or 1, the position or the document is repeated, a position is
        missing, or the impression has another query or ranker in an earlier row.
    place : Place, optional
        File and line for error messages.

    Attributes
    ----------
    query, document, session, ranker, team : int32 arrays (n,); the last three may be None
        Codes into `query_ids`, `document_ids`, …; -1 for a missing id.
    position, clicked, propensity, time : int32, bool, float32 and int64 arrays (n,); the last two may be None
        Dates are nanoseconds since 1970.
    offsets : int64 array (n_impressions + 1,)
        First row of each impression.
    skipped : dict of str to int
        Number of impressions, queries or events that were left out, by reason, and of rows of omitted columns.

    Raises
    ------
    InvalidInputError, DataFileError
        For a bad row, with its number or line, and for columns of different lengths.

    Examples
    --------
    >>> ClickLog([1, 1, 2], ["cat", "cat", "dog"], ["a", "b", "a"], [1, 2, 1], [0, 1, 0], ranker=["x", "x", "y"])
    ClickLog(3 rows, 2 impressions, 2 queries, 2 documents, 1 click, 2 rankers)
    """

    def __init__(
        self,
        impression: ArrayLike | Coded,
        query: ArrayLike | Coded,
        document: ArrayLike | Coded,
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        ranker: ArrayLike | Coded | None = None,
        propensity: ArrayLike | None = None,
        session: ArrayLike | Coded | None = None,
        time: ArrayLike | None = None,
        team: ArrayLike | Coded | None = None,
        first_position: int = 1,
        bad: str = "error",
        place: Place = Place(),  # noqa: B008 (immutable)
    ) -> None:
        check_choice(bad, "bad", ("error", "skip"))
        ids: dict[str, Any] = {"impression": impression, "query": query, "document": document}
        ids |= {"ranker": ranker, "session": session, "team": team}
        coded = {name: coded_ids(values, name) for name, values in ids.items() if values is not None}
        columns = {name: column.codes for name, column in coded.items()}
        columns["position"], columns["clicked"] = _positions(position, 1 - first_position), _clicks(clicked)
        if propensity is not None:
            columns["propensity"] = as_numbers(propensity, "propensity").astype(np.float32)
        times, untimed = (None, 0) if time is None else _times(time, place)
        if times is not None:
            columns["time"] = times
        n = len(columns["impression"])
        for name, values in columns.items():
            if len(values) != n:
                raise InvalidInputError(
                    f"{name} must have {n} entries, as impression has, got {len(values)}", argument=name
                )
        if n == 0:
            raise InvalidInputError("the log has no rows", code="no-rows")
        order = None
        key = (columns["impression"].astype(np.int64) << 20) + columns["position"]
        if (np.diff(key) <= 0).any():
            order = np.argsort(key, kind="stable")
            columns = {name: values[order] for name, values in columns.items()}
        self.skipped, kept = _check(columns, order, bad, place)
        if self.skipped:
            columns = {name: values[kept] for name, values in columns.items()}
        self.skipped |= {NO_TIME: untimed} if untimed else {}
        self.ranker, self.session, self.team = map(columns.get, ("ranker", "session", "team"))
        self.propensity, self.time = columns.get("propensity"), columns.get("time")
        self.query, self.document, self.position = columns["query"], columns["document"], columns["position"]
        self.clicked = columns["clicked"].astype(bool)
        starts = np.flatnonzero(np.diff(columns["impression"], prepend=-2))
        self.offsets = np.append(starts, len(self.query)).astype(np.int64)
        self.query_ids, self.document_ids = coded["query"].names, coded["document"].names
        names = {name: column.names for name, column in coded.items()}
        self.ranker_ids, self.session_ids, self.team_ids = map(names.get, ("ranker", "session", "team"))

    @property
    def n_rows(self) -> int:
        """The number of shown documents."""
        return len(self.query)

    @property
    def n_impressions(self) -> int:
        """The number of shown lists."""
        return len(self.offsets) - 1

    @property
    def impression(self) -> np.ndarray:
        """The impression number of each row, int32 (n,)."""
        return np.repeat(np.arange(self.n_impressions, dtype=np.int32), np.diff(self.offsets))

    def __repr__(self) -> str:
        numbers = {"row": self.n_rows, "impression": self.n_impressions, "query": len(np.unique(self.query))}
        numbers |= {"document": len(np.unique(self.document)), "click": int(self.clicked.sum())}
        if self.ranker is not None:
            numbers["ranker"] = len(np.unique(self.ranker))
        return f"ClickLog({', '.join(counted(number, noun) for noun, number in numbers.items())})"

    def cells(self, *keys: np.ndarray) -> Cells:
        """Sum the rows that share query, document and the `keys`, int arrays (n,) >= 0; O(n log n)."""
        sizes = [len(self.query_ids), len(self.document_ids), *(int(key.max(initial=0)) + 1 for key in keys)]
        if math.prod(sizes) >= 2**62:
            many = f"{sizes[0]} queries and {sizes[1]} documents"
            raise InvalidInputError(f"the log has {many}, too many for 64-bit keys. Split the log by query")
        codes, of_row = np.unique(np.ravel_multi_index((self.query, self.document, *keys), sizes), return_inverse=True)
        query, document, *rest = np.unravel_index(codes, sizes)
        n, clicks = np.bincount(of_row), np.bincount(of_row, weights=self.clicked)
        return Cells(query, document, rest, n.astype(np.float64), clicks, of_row)


class Cells(NamedTuple):
    """Sums over the rows of each cell (c,), sorted by query, document and keys, and the cell of each row (n,)."""

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


def pair_codes(
    log: ClickLog, queries: np.ndarray, offsets: np.ndarray, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row (n,) the log's query code, and query · (number of documents) + document; -1 if unknown."""
    known = [{name: code for code, name in enumerate(ids.tolist())} for ids in (log.query_ids, log.document_ids)]
    query, document = (
        np.array([codes.get(name, -1) for name in id_texts(names.tolist())], dtype=np.int64)
        for codes, names in zip(known, (np.asarray(queries), documents))
    )
    query = np.repeat(query, np.diff(offsets))
    return query, np.where((query >= 0) & (document >= 0), query * len(log.document_ids) + document, -1)


def rows_of_pairs(log: ClickLog, query: np.ndarray, document: np.ndarray, data: RankingData) -> np.ndarray:
    """Return the row of `data` (grouped) of each query and document, codes of the log (c,); -1 for none."""
    if data.doc_ids is None:
        raise InvalidInputError(
            "the features have no document ids", remedies=[Remedy("to name their column", document=...)], code="no-ids"
        )
    _, code = pair_codes(log, data.query_ids, data.offsets, data.doc_ids)
    order = np.argsort(code, kind="stable")
    wanted = query.astype(np.int64) * len(log.document_ids) + document
    at = order[np.minimum(np.searchsorted(code[order], wanted), len(code) - 1)]
    return np.where(code[at] == wanted, at, -1)


def _check(
    columns: dict[str, np.ndarray], order: np.ndarray | None, bad: str, place: Place
) -> tuple[dict[str, int], np.ndarray]:
    """Raise an error at the first bad row, or count bad impressions by reason and return the good rows, bool (n,)."""
    impression = columns["impression"]
    starts = np.flatnonzero(np.diff(impression, prepend=-2))
    first = np.repeat(starts, np.diff(np.append(starts, len(impression))))  # row of each row's impression
    columns = columns | {"wanted": np.arange(len(impression)) - first + 1}
    kept, skipped = np.ones(len(impression), dtype=bool), dict[str, int]()
    for reason, wrong, message in _faults(columns, first):
        found = np.flatnonzero(wrong & kept)
        if not len(found):
            continue
        if bad == "error":
            given = found if order is None else order[found]
            row = int(given.argmin())
            text = message.format(**{name: values[found[row]] for name, values in columns.items()})
            _refuse(reason, text, given[row], place)
        skipped[reason] = len(np.unique(impression[found]))
        kept &= ~np.isin(impression, impression[found])
    if not kept.any():
        raise InvalidInputError(f"no impression is left. {'. '.join(left_out(skipped))}", code="no-impression")
    return skipped, kept


def left_out(skipped: dict[str, int]) -> list[Message]:
    """Return a message for each reason why parts of a log were left out, with their number and remedies.

    >>> left_out({"position": 3})
    ['left out (position): 3. Pass first_position=0 if the log counts from 0']
    """
    return [
        Message(f"left out ({reason}): {count}", *_REMEDIES.get(reason, _CORRECT)) for reason, count in skipped.items()
    ]


def _faults(columns: dict[str, np.ndarray], first: np.ndarray) -> Iterator[tuple[str, np.ndarray, str]]:
    """Yield each possible fault of sorted rows: its name, the bad rows, and a message with columns in braces."""
    impression, query, document, position = (columns[name] for name in ("impression", "query", "document", "position"))
    missing = (impression < 0) | (query < 0) | (document < 0)
    yield "missing id", missing, "the impression, query or document is missing; every row requires all three"
    wrong = (position < 1) | (position > _DEEPEST)
    yield "position", wrong, f"the position must be an integer from 1 to {_DEEPEST}"
    yield "clicked", columns["clicked"] > 1, "clicked must be 0 or 1"
    yield "two queries", query != query[first], "an earlier row of the impression has another query"
    again = (columns["wanted"] > 1) & (position == np.roll(position, 1))
    yield "position twice", again, "the impression has two documents at position {position}"
    key = impression.astype(np.int64) * (int(document.max()) + 1) + document
    by_key = np.argsort(key, kind="stable")
    twice = np.zeros(len(key), dtype=bool)
    twice[by_key[1:]] = np.diff(key[by_key]) == 0
    yield "document twice", twice, "the impression shows this document twice"
    gap = "position {wanted} of the impression is missing; the next row has position {position}"
    yield "gap", position != columns["wanted"], gap
    if (chance := columns.get("propensity")) is not None:
        message = "the propensity must be above 0 and at most 1, got {propensity:g}"
        yield "propensity", ~((chance > 0) & (chance <= 1)), message
    if (ranker := columns.get("ranker")) is not None:
        yield "two rankers", ranker != ranker[first], "an earlier row of the impression has another ranker"


def _refuse(reason: str, message: str, row: int, place: Place) -> NoReturn:
    code = reason.replace(" ", "-")
    remedies = (*_REMEDIES.get(reason, ("correct the log",)), Remedy("to leave such impressions out", bad="skip"))
    if place.file and place.line is not None:
        line = place.line + row if isinstance(place.line, int) else place.line[row]
        raise DataFileError(message, place.file, int(line), remedies=remedies, code=code)
    error = InvalidInputError(f"row {row + 1}: {message}", remedies=remedies, code=code)
    raise DataFileError(error, place.file) if place.file else error


def coded_ids(values: ArrayLike | Coded, name: str) -> Coded:
    """Return the codes of a column of ids."""
    if isinstance(values, Coded):
        return values
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return _coded_arrow(values, name)
    array = as_ids(as_array(values, name), name)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, got shape {array.shape}", argument=name)
    if array.dtype.kind in "iub":
        names, codes = np.unique(array.astype(np.int64), return_inverse=True)
        return Coded(codes.astype(np.int32), _texts(names.tolist()))
    known: dict[str, int] = {}
    numbers = [known.setdefault(text, len(known)) if text else -1 for text in id_texts(array.tolist())]
    return Coded(np.array(numbers, dtype=np.int32), _texts(known))


def can_be_coded(kind: Any) -> bool:
    """Return whether ids of this Arrow type become codes without a Python object for each row."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_primitive(kind) or types.is_string(kind) or types.is_large_string(kind))


def _coded_arrow(values: Any, name: str) -> Coded:
    """Return the codes of an Arrow column; names of impressions are not kept."""
    import pyarrow
    from pyarrow import compute

    if not can_be_coded(values.type):
        return coded_ids(as_array(values, name), name)
    if pyarrow.types.is_integer(values.type) and values.null_count == 0:
        return coded_ids(values.to_numpy(), name)
    if not pyarrow.types.is_dictionary(values.type):
        values = compute.dictionary_encode(values)
    if isinstance(values, pyarrow.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    codes = compute.fill_null(values.indices.cast("int32"), -1).to_numpy(zero_copy_only=False)
    if str(values.dictionary.type).endswith("string") and (empty := values.dictionary.index("").as_py()) >= 0:
        codes = np.where(codes == empty, np.int32(-1), codes)
    return Coded(codes, _texts(id_texts(values.dictionary.to_pylist()) if name != "impression" else []))


def _texts(names: Iterable[object]) -> np.ndarray:
    return np.array([str(name) for name in names], dtype=TEXT)


def _numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return a column as numbers; NaN for values that are not numbers, so that the error names their row."""
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
    """Return positions from 1 as int32, and 0, which is rejected, for values that are not integers."""
    numbers = _numbers(values, "position")
    if numbers.dtype.kind == "f":
        numbers = np.where(np.isfinite(numbers) & (numbers == np.floor(numbers)), numbers, -shift)
    return np.clip(numbers.astype(np.float64) + shift, -1, _DEEPEST + 1).astype(np.int32)


def _clicks(values: ArrayLike) -> np.ndarray:
    """Return 0 and 1 as int8, and 2, which is rejected, for other values."""
    numbers = _numbers(values, "clicked")
    return np.where((numbers == 0) | (numbers == 1), numbers, 2).astype(np.int8)


def _times(values: ArrayLike, place: Place) -> tuple[np.ndarray | None, int]:
    """Return times as int64 (dates in nanoseconds), or None and the number of rows without a time, if any."""
    array = as_array(values, "time")
    texts = array.dtype.kind in "OUT"
    absent = sum(is_missing(value) or value == "" for value in array.tolist()) if texts else int(np.isnan(array).sum())
    if absent:
        return None, absent if absent < len(array) else 0
    if texts:
        return np.array([_time(value, row, place) for row, value in enumerate(array.tolist())], dtype=np.int64), 0
    numbers = array.astype("datetime64[ns]") if array.dtype.kind == "M" else as_numbers(array, "time")
    limited = numbers if array.dtype.kind in "Mi" else np.clip(numbers, -_LATEST, _LATEST)
    return limited.astype(np.int64), 0


def _time(value: object, row: int, place: Place) -> int | float:
    """Return a number, or the nanoseconds of a date in ISO format, which is UTC if it names no zone."""
    if isinstance(value, int | float):
        return value
    try:
        when = datetime.fromisoformat(str(value))
    except ValueError:
        _refuse("time", f"time must be a number or a date such as 2026-01-31T12:00:00Z, got {value!r:.40}", row, place)
    return min(round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e6) * 1000, _LATEST)
