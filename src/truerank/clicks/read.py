"""Click logs from Parquet, Arrow and CSV tables, JSON lines, and OpenSearch's User Behavior Insights (UBI)."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truerank.clicks.log import ClickLog, Coded
from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.names import nearest
from truerank.core.types import PathLike
from truerank.data.grouping import id_text
from truerank.io import tables
from truerank.io.streams import COMPRESSED, Source

REQUIRED = ("impression", "query", "document", "position", "clicked")
OPTIONAL = ("ranker", "propensity", "session", "time", "team")
_IDS = ("impression", "query", "document", "ranker", "session", "team")
_LONGEST = 16 << 20  # bytes of a JSON line
_TEXT = np.dtypes.StringDType()


def read_clicks(
    source: Any,
    queries: Any = None,
    *,
    format: str | None = None,
    columns: dict[str, str] | None = None,
    first_position: int = 1,
    bad: str = "error",
    shown_action: str = "impression",
    click_action: str = "click",
) -> ClickLog:
    """Read a log of impressions and clicks.

    Parameters
    ----------
    source : path, pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One row a shown document. A path's ending says what it is: .parquet, .pq, .arrow, .feather, .csv, .tsv, .jsonl,
        .ndjson (text also .gz, .xz, .zst). With `format="ubi"` the events of OpenSearch's UBI as JSON lines, one event
        a line, or as `_search` and exporters give them (`{"_source": {...}}`).
    queries : path, optional
        UBI's queries as JSON lines. Their `query_response_hit_ids` are the shown lists, so that no event need say what
        was shown.
    format : {"table", "json-lines", "ubi"}, optional
        Default: by the ending.
    columns : dict of str to str, optional
        Names of the columns, or dotted paths in JSON (`attributes.bucket`), where they differ from "impression",
        "query", "document", "position", "clicked", and of the optional "ranker", "propensity", "session", "time",
        "team" (see `ClickLog`), which are read where they are there. For UBI, "query" (default `user_query`), "ranker"
        and "session" (default `client_id`) may be named.
    first_position : {0, 1}, default=1
        What the log calls the first position.
    bad : {"error", "skip"}, default="error"
        Raise at the first bad row, or leave such impressions out and count them in `skipped` (see `ClickLog`). Of UBI
        also clicks on documents that were not shown.
    shown_action, click_action : str, default="impression", "click"
        UBI's `action_name` of both. Other events are ignored.

    Raises
    ------
    DataFileError
        On a file that cannot be read, a column that is not there, and bad rows, with the line.
    MissingExtraError
        When a table file needs pyarrow, which is not installed.

    Notes
    -----
    Memory is about 25 bytes a row beside the ids; a Parquet file is read column by column.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"impression": [7, 7], "query": ["cat", "cat"], "document": ["a", "b"],
    ...                           "position": [1, 2], "clicked": [0, 1]})
    >>> read_clicks(frame)
    ClickLog(2 rows, 1 impression, 1 query, 2 documents, 1 click)
    """
    check_choice(bad, "bad", ("error", "skip"))
    if isinstance(first_position, bool) or first_position not in (0, 1):
        raise InvalidInputError(f"first_position must be 0 or 1, got {first_position!r}")
    known = (*REQUIRED, *OPTIONAL)
    for name in sorted(set(columns or {}) - set(known)):
        raise InvalidInputError(f"columns has {name!r}{nearest(name, known)}; it names {', '.join(known)}")
    is_path = isinstance(source, str | os.PathLike)
    kind = format or _kind(source) if is_path else "table"
    check_choice(kind, "format", ("table", "json-lines", "ubi"))
    if queries is not None and kind != "ubi":
        raise InvalidInputError('queries are of UBI: give format="ubi" (--format ubi), or leave them out')
    named = {name: name for name in known} | (columns or {})
    asked = {*REQUIRED, *(columns or {})}
    if kind == "ubi":
        return _read_ubi(source, queries, columns or {}, first_position, bad, (shown_action, click_action))
    place: tuple[str, Any] = (os.fspath(source), None) if is_path else ("", None)
    if kind == "json-lines":
        found, place = _json_columns(source, named, asked), (place[0], 1)
    else:
        if is_path and tables.table_kind(source) in ("csv", "tsv"):
            place = (place[0], 2)
        found = _table_columns(source, named, asked) if not is_path else _file_columns(source, named, asked)
    found["position"] = _counted_from(found["position"], first_position)
    return ClickLog(**found, bad=bad, place=place)


def _kind(path: PathLike) -> str:
    endings = [ending.lower() for ending in Path(path).suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    if endings and endings[-1] in (".jsonl", ".ndjson", ".json"):
        return "json-lines"
    if tables.table_kind(path) is None:
        raise DataFileError(
            "a click log's file name ends in .parquet, .arrow, .feather, .csv, .tsv, .jsonl or .ndjson; for events of "
            'UBI give format="ubi" (--format ubi)', os.fspath(path)
        )  # fmt: skip
    return "table"


def _counted_from(position: Any, first: int) -> Any:
    if first == 1:
        return position
    return np.asarray(position.to_numpy() if hasattr(position, "to_numpy") else position) + 1


def _present(named: dict[str, str], asked: set[str], there: list[str]) -> dict[str, str]:
    """The columns to read by what they are, or an error that names one that is not there."""
    for name in sorted(asked):
        if named[name] not in there:
            shown = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            raise InvalidInputError(
                f"the log has no column {named[name]!r}{nearest(named[name], there)}; it has {shown}; name the "
                f'column of the {name} with columns={{"{name}": "..."}} (--columns {name}=...)'
            )
    return {name: column for name, column in named.items() if column in there}


def _table_columns(source: object, named: dict[str, str], asked: set[str]) -> dict[str, Any]:
    names, column = tables._columns(source)
    return {name: column(own) for name, own in _present(named, asked, names).items()}


def _file_columns(path: PathLike, named: dict[str, str], asked: set[str]) -> dict[str, Any]:
    """Columns of a table file; of Parquet one by one, ids made numbers before the next is read."""
    from truerank.clicks.log import coded_ids

    name = os.fspath(path)
    try:
        if tables.table_kind(path) != "parquet":
            ids = [named[key] for key in _IDS]
            table = tables.read_file(path, tables.table_kind(path), ids)
            return {key: table.column(own) for key, own in _present(named, asked, table.column_names).items()}
        arrow = tables._arrow()
        with open(path, "rb"), arrow.OSFile(name) as file:
            from pyarrow import parquet

            held = parquet.ParquetFile(file)
            found: dict[str, Any] = {}
            for key, own in _present(named, asked, held.schema_arrow.names).items():
                batches = held.iter_batches(batch_size=1 << 16, columns=[own])
                encoded = map(_coded_batch, batches) if key in _IDS else batches
                schema = arrow.schema([held.schema_arrow.field(own)])
                if key in _IDS:
                    schema = arrow.schema([(own, arrow.dictionary(arrow.int32(), schema.field(0).type))])
                column = tables._bounded(encoded, schema, file.size(), name).column(0)
                found[key] = coded_ids(column, key) if key in _IDS else column.to_numpy()
            return found
    except InvalidInputError as error:
        raise DataFileError(str(error), name) from error
    except (OSError, ValueError, OverflowError) as error:
        if isinstance(error, DataFileError) or (isinstance(error, OSError) and error.filename is not None):
            raise
        raise DataFileError(f"cannot be read as a table: {tables.first_line(error)}", name) from error


def _coded_batch(batch: Any) -> Any:
    """A batch of one column of ids whose values are held once."""
    batch.validate(full=True)  # a damaged file names places outside of its columns
    column = batch.column(0)
    encoded = column if hasattr(column, "indices") else column.dictionary_encode()
    return type(batch).from_arrays([encoded], names=batch.schema.names)


class _Ids:
    """Ids that become numbers as they come."""

    def __init__(self) -> None:
        self.codes, self.known = array("i"), dict[str, int]()

    def add(self, value: object) -> int:
        """Append an id, and return its number, -1 for none."""
        text = "" if value is None else id_text(value)
        code = self.known.setdefault(text, len(self.known)) if text else -1
        self.codes.append(code)
        return code

    def coded(self) -> Coded:
        return Coded(np.frombuffer(self.codes, dtype=np.int32), np.array(list(self.known), dtype=_TEXT))


def _json_rows(path: PathLike) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of JSON lines with their line numbers; what an exporter wraps in `_source` is unwrapped."""
    with Source(path) as stream:
        for line, text in stream.lines(_LONGEST):
            if text is not None and not text.strip():
                continue
            try:
                row = json.loads(text) if text is not None else None
            except (ValueError, RecursionError) as error:
                raise DataFileError(
                    f"the line is no JSON ({tables.first_line(error)})", os.fspath(path), line
                ) from error
            row = row.get("_source", row) if isinstance(row, dict) else None
            if not isinstance(row, dict):
                raise DataFileError("expected a JSON object of one row", os.fspath(path), line)
            yield line, row


def _at(row: object, path: list[str]) -> Any:
    """The value at a path, as nested objects or with dots in its name; None where there is none."""
    value = row
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return row.get(".".join(path)) if isinstance(row, dict) else None
        value = value[step]
    return value


def _json_columns(path: PathLike, named: dict[str, str], asked: set[str]) -> dict[str, Any]:
    ids = {name: _Ids() for name in _IDS}
    others: dict[str, list[Any]] = {name: [] for name in named if name not in _IDS}
    paths = {name: own.split(".") for name, own in named.items()}
    seen: set[str] = set()
    for line, row in _json_rows(path):
        for name, steps in paths.items():
            value = _at(row, steps)
            if value is not None:
                seen.add(name)
            elif name in asked and name not in seen:
                try:
                    _present(named, {name}, list(row))
                except InvalidInputError as error:
                    raise DataFileError(str(error), os.fspath(path), line) from error
            if name not in _IDS:
                others[name].append(value)
                continue
            try:
                ids[name].add(value)
            except TypeError as error:
                raise DataFileError(
                    f"{named[name]} must be text or a number, got {value!r:.60}", os.fspath(path), line
                ) from error
    if not seen:
        raise DataFileError("the file holds no rows", os.fspath(path))
    found: dict[str, Any] = {name: ids[name].coded() for name in ids if name in seen or name in REQUIRED}
    for name, values in others.items():
        if name in seen or name in REQUIRED:
            numbers = name != "time" or not any(isinstance(value, str) for value in values)
            found[name] = _numbers(values, named[name], path) if numbers else np.array(values, dtype=object)
    return found


def _numbers(values: list[Any], name: str, path: PathLike) -> np.ndarray:
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    except (TypeError, ValueError):
        place = next(at for at, value in enumerate(values) if not isinstance(value, int | float | None))
        raise DataFileError(f"{name} must be a number, got {values[place]!r:.60}", os.fspath(path), place + 1) from None


def _read_ubi(
    source: Any, queries: Any, columns: dict[str, str], first: int, bad: str, actions: tuple[str, str]
) -> ClickLog:
    """Join UBI's events, and its queries where they are given, to rows of shown documents."""
    query_path = columns.get("query", "user_query").split(".")
    session_path = columns.get("session", "client_id").split(".")
    ranker_path = columns["ranker"].split(".") if "ranker" in columns else None
    rows: dict[tuple[str, str], int] = {}  # row of an impression and a document
    impression, query, document, session, ranker = (_Ids() for _ in range(5))
    position, time, lines = array("i"), [], array("q")
    about: dict[str, list[Any]] = {}  # query, session, ranker and time of each impression

    def show(name: str, item: object, place: int, line: int) -> None:
        own = about[name]
        rows[name, id_text(item)] = len(position)
        for column, value in zip((impression, query, document, session, ranker), (name, own[0], item, *own[1:3])):
            column.add(value)
        position.append(place)
        time.append(own[3])
        lines.append(line)

    def remember(row: dict[str, Any], name: str) -> None:
        own = about.setdefault(name, [None] * 4)
        found = (
            _at(row, query_path),
            _at(row, session_path),
            _at(row, ranker_path) if ranker_path else None,
            row.get("timestamp"),
        )
        about[name] = [old if old is not None else new for old, new in zip(own, found)]

    if queries is not None:
        for line, row in _json_rows(queries):
            name = row.get("query_id")
            if name is None:
                raise DataFileError("the query has no query_id", os.fspath(queries), line)
            remember(row, id_text(name))
            for place, item in enumerate(row.get("query_response_hit_ids") or (), start=1):
                show(id_text(name), item, place, line)
    clicked: list[tuple[tuple[str, str], int]] = []
    for line, row in _json_rows(source):
        action = row.get("action_name")
        if action not in actions or row.get("query_id") is None:
            continue
        name = id_text(row["query_id"])
        item = _at(row, ["event_attributes", "object", "object_id"])
        if item is None:
            raise DataFileError(f"the {action} has no event_attributes.object.object_id", os.fspath(source), line)
        remember(row, name)
        if action == actions[1]:
            clicked.append(((name, id_text(item)), line))
        elif queries is None:
            place = _at(row, ["event_attributes", "position", "ordinal"])
            number = int(place) + 1 - first if isinstance(place, int | float) and place == place // 1 else 0
            if (known := rows.get((name, id_text(item)))) is None or position[
                known
            ] != number:  # else it was scrolled to again
                show(name, item, number, line)
    if not len(position):
        raise DataFileError(
            f"no event has the action_name {actions[0]!r}. Name the event of a shown document with shown_action=... "
            "(--shown-action ...), or give the queries with their hits (--queries FILE)", os.fspath(source)
        )  # fmt: skip
    hits = np.zeros(len(position), dtype=np.int8)
    lost = 0
    for key, line in clicked:
        if key in rows:
            hits[rows[key]] = 1
        elif bad == "skip":
            lost += 1
        else:
            raise DataFileError(
                f"a click on {key[1]!r}, which was not shown for query_id {key[0]!r}. Log all shown documents, or "
                'leave such clicks out with bad="skip" (--bad skip)', os.fspath(source), line
            )  # fmt: skip
    stamps = None if any(stamp is None for stamp in time) else np.array(time)
    if stamps is not None and stamps.dtype.kind == "U":
        stamps = np.char.rstrip(stamps, "Z")
    log = ClickLog(
        impression.coded(), query.coded(), document.coded(), np.frombuffer(position, dtype=np.int32), hits,
        session=session.coded() if session.known else None, ranker=ranker.coded() if ranker.known else None,
        time=stamps, bad=bad,
        place=(os.fspath(source if queries is None else queries), np.frombuffer(lines, dtype=np.int64)),
    )  # fmt: skip
    if lost:
        log.skipped["clicks on documents that were not shown"] = lost
    return log
