"""Read click logs from Parquet, Arrow and CSV tables, JSON lines, and OpenSearch's User Behavior Insights (UBI)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from truerank.clicks.log import NO_LIST, NO_QUERY, NOT_SHOWN, OTHER, ClickLog, Place, can_be_coded, coded_ids
from truerank.core.checks import check_choice
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, TruerankError
from truerank.core.names import nearest
from truerank.core.types import PathLike
from truerank.data.grouping import id_text
from truerank.io import tables
from truerank.io.columnar import first_line, open_columnar
from truerank.io.judgements.content import is_action, read_content
from truerank.io.streams import COMPRESSED, Source

REQUIRED = ("impression", "query", "document", "position", "clicked")
OPTIONAL = ("ranker", "propensity", "session", "time", "team")
_IDS = ("impression", "query", "document", "ranker", "session", "team")
_UBI = {"query": "user_query", "session": "client_id", "time": "timestamp"}
_LONGEST = 16 << 20  # bytes of a JSON line


def read_clicks(
    source: object,
    queries: PathLike | None = None,
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
        One row for each shown document. The suffix of a path determines the format: .parquet, .pq, .arrow, .feather,
        .csv, .tsv, .jsonl, .ndjson (text also .gz, .xz, .zst). With `format="ubi"`: the events of OpenSearch's UBI as
        JSON lines. A line is an event, a search hit (`{"_source": {...}}`) or a search response.
    queries : path, optional
        UBI's queries as JSON lines, whose `query_response_hit_ids` are the shown lists. For a query without shown
        lists, and without this file, the events named `shown_action` are the shown documents. `ClickLog.skipped` counts
        queries without shown documents, and events without a query.
    format : "table", "json-lines", "ubi" or None, default None
        Default: by the suffix, or "ubi" for JSON whose first object has an `action_name`, and with `queries`.
    columns : dict of str to str, optional
        Columns, or dotted paths in JSON (`attributes.bucket`), whose names differ from the names in `ClickLog`. For
        UBI: "query" (default `user_query`), "session" (`client_id`), "time" (`timestamp`) and "ranker" (none).
    first_position : {0, 1}, default=1
        Number of the first position in the log.
    bad : {"error", "skip"}, default="error"
        As in `ClickLog`; errors name the file, and the line of a text file. For UBI, clicks on unshown documents are
        also bad.
    shown_action, click_action : str, default="impression", "click"
        UBI's `action_name` of a shown and of a clicked document. Other events are ignored.

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
        raise InvalidInputError(argument="first_position", expected="0 or 1", value=first_position)
    path = source if isinstance(source, str | os.PathLike) else None
    kind = format or ("table" if path is None else "ubi" if queries is not None else _kind(path))
    check_choice(kind, "format", ("table",) if path is None else ("table", "json-lines", "ubi"))
    if queries is not None and kind != "ubi":
        raise InvalidInputError(
            "queries requires a UBI log", argument="queries", remedies=[Remedy(format="ubi"), "leave queries out"]
        )
    known, columns = (*_UBI, "ranker") if kind == "ubi" else (*REQUIRED, *OPTIONAL), columns or {}
    for name in sorted(set(columns) - set(known)):
        near = nearest(name, known, f"Choose among: {', '.join(known)}")
        raise InvalidInputError(f"columns has the unknown name {name!r}{near}")
    if path is not None and kind == "ubi":
        return _read_ubi(path, queries, _UBI | columns, (shown_action, click_action), first_position, bad)
    named, required = {name: name for name in known} | columns, {*REQUIRED, *columns}
    if path is None:
        names, column = tables._columns(source)
        found: dict[str, Any] = {name: column(own) for name, own in _present(named, required, names).items()}
        return ClickLog(**found, first_position=first_position, bad=bad)
    line: int | np.ndarray | None = None
    try:
        if kind == "json-lines":
            found, line = _json_columns(path, named, required)
        else:
            found = _file_columns(path, named, required)
            line = 2 if tables.table_kind(path) in ("csv", "tsv") else None
    except InvalidInputError as error:
        raise DataFileError(error, os.fspath(path)) from error
    return ClickLog(**found, first_position=first_position, bad=bad, place=Place(os.fspath(path), line))


def _kind(path: PathLike) -> str:
    endings = [ending.lower() for ending in Path(path).suffixes if ending.lower() not in COMPRESSED]
    if endings and endings[-1] in (".jsonl", ".ndjson", ".json"):
        first = next(_json_rows(path), None) if os.path.isfile(path) else None  # a pipe can be read once
        return "ubi" if first is not None and "action_name" in first[1] else "json-lines"
    if tables.table_kind(path) is None:
        raise DataFileError(
            "the file name of a click log must end in .parquet, .arrow, .feather, .csv, .tsv, .jsonl or .ndjson",
            os.fspath(path),
            remedies=[Remedy("for events of UBI", format="ubi")],
            code="file-name",
        )
    return "table"


def _present(named: dict[str, str], required: set[str], there: list[str]) -> dict[str, str]:
    """Return the columns to read; raise if a required column is missing."""
    for name in sorted(required):
        if named[name] not in there:
            shown = ", ".join(map(repr, there[:12])) + (", ..." if len(there) > 12 else "")
            near = nearest(named[name], there, f"Its columns are {shown}")
            raise InvalidInputError(
                f"the log has no column {named[name]!r}{near}",
                argument="columns",
                value=named[name],
                remedies=[Remedy(f"to name the column of the {name}", columns={name: ...})],
                code="no-column",
            )
    return {name: column for name, column in named.items() if column in there}


def _file_columns(path: PathLike, named: dict[str, str], required: set[str]) -> dict[str, Any]:
    """Return the columns of a table file. In Parquet files, ids become codes before the next column is read."""
    name, found = os.fspath(path), dict[str, Any]()
    try:
        if tables.table_kind(path) != "parquet":
            table = tables.read_file(path, tables.table_kind(path), [named[key] for key in _IDS])
            return {key: table.column(own) for key, own in _present(named, required, table.column_names).items()}
        arrow = tables._arrow()
        with open_columnar(path, "parquet") as (whole, _):
            there = _present(named, required, whole.names)
        for key, own in there.items():
            coded = key in _IDS and can_be_coded(whole.field(own).type)
            with open_columnar(path, "parquet", columns=[own], coded=coded) as (schema, batches):
                held = list(map(_coded_batch, batches) if coded else batches)
                column = arrow.Table.from_batches(held, held[0].schema if held else schema).column(0)
            found[key] = coded_ids(column, key) if key in _IDS else column.to_numpy()
        return found
    except (OSError, ValueError, OverflowError) as error:
        if isinstance(error, TruerankError) or getattr(error, "filename", None) is not None:
            raise
        raise DataFileError(f"cannot be read as a table: {first_line(error)}", name) from error


def _coded_batch(batch: Any) -> Any:
    """Return a batch of one column of ids that holds each value once."""
    column = batch.column(0)
    encoded = column if hasattr(column, "indices") else column.dictionary_encode()
    return type(batch).from_arrays([encoded], names=batch.schema.names)


def _json_rows(path: PathLike) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    """Yield JSON objects with file and line; search responses and hits are replaced by their `_source`.

    The text is one object on each line, also of a `_bulk` request with its action lines, or one JSON value.
    """
    with Source(path) as stream:
        for line, row in _values(stream, os.fspath(path)):
            place = os.fspath(path), line
            hits = row["hits"].get("hits") if isinstance(row, dict) and isinstance(row.get("hits"), dict) else [row]
            for hit in hits if isinstance(hits, list) else [None]:
                source = hit.get("_source", hit) if isinstance(hit, dict) else None
                if not isinstance(source, dict):
                    raise DataFileError(f"expected one JSON object per line, got {hit!r:.60}", *place, code="not-json")
                yield place, source


def _values(stream: Source, name: str) -> Iterator[tuple[int, Any]]:
    """Yield values of JSON lines with their lines, or the items of a JSON array on any number of lines."""
    head = stream.peek().lstrip()
    if head.startswith(b"[") or head.partition(b"\n")[0].strip() == b"{":
        for _, value in read_content(stream).values:
            yield from ((1, one) for one in (value if isinstance(value, list) else [value]))
        return
    for line, text in stream.lines(_LONGEST):
        if text is not None and not text.strip():
            continue
        try:
            row = json.loads(text) if text is not None else None
        except (ValueError, RecursionError) as error:
            message = f"expected one JSON object per line, got invalid JSON ({first_line(error)})"
            raise DataFileError(message, name, line, code="not-json") from error
        if not is_action(row):
            yield line, row


def _at(row: object, path: str) -> Any:
    """Return the value at a dotted path through nested objects, names with dots, and objects in text, or None."""
    if isinstance(row, str) and row.startswith("{"):
        with suppress(ValueError, RecursionError):
            row = json.loads(row)
    if not isinstance(row, dict) or path in row:
        return row[path] if isinstance(row, dict) else None
    steps = path.split(".")
    for count in range(1, len(steps)):
        if (head := ".".join(steps[:count])) in row:
            return _at(row[head], ".".join(steps[count:]))
    return None


def _id_at(row: dict[str, Any], path: str, place: tuple[str, int]) -> str | None:
    """Return the id at a dotted path as text, or None without an id."""
    value = _at(row, path)
    return None if value is None else _text(value, path, place)


def _text(value: object, name: str, place: tuple[str, int]) -> str:
    if not isinstance(value, str | int | float):
        raise DataFileError(f"{name} must be text or a number, got {value!r:.60}", *place)
    return id_text(value)


def _json_columns(path: PathLike, named: dict[str, str], required: set[str]) -> tuple[dict[str, Any], np.ndarray]:
    """Return the columns of JSON lines, and the line of each row."""
    columns: dict[str, list[Any]] = {name: [] for name in named}
    lines, keys = list[int](), dict[str, None]()
    for place, row in _json_rows(path):
        keys |= dict.fromkeys(row)
        lines.append(place[1])
        for name, own in named.items():
            value = _id_at(row, own, place) if name in _IDS else _at(row, own)
            columns[name].append(intern(value) if isinstance(value, str) else value)
    if not lines:
        raise DataFileError("the file has no rows", os.fspath(path))
    seen = [name for name, values in columns.items() if any(value is not None for value in values)]
    _present(named, required - set(seen), list(keys))
    return {name: columns[name] for name in columns if name in seen or name in REQUIRED}, np.asarray(lines)


def _read_ubi(
    source: PathLike,
    queries: PathLike | None,
    paths: dict[str, str],
    actions: tuple[str, str],
    first_position: int,
    bad: str,
) -> ClickLog:
    """Join UBI's events, and its queries if given, to rows of shown documents."""
    about: dict[str, dict[str, Any]] = {}  # query, session, time and ranker of each query_id
    rows: dict[tuple[str, str], int] = {}
    shown: list[tuple[str, str, Any, int]] = []  # query_id, document, position, line
    clicks: list[tuple[tuple[str, str], tuple[str, int]]] = []
    listed, lost = set[str](), dict.fromkeys((NO_LIST, NO_QUERY, NOT_SHOWN, OTHER), 0)

    def described(row: dict[str, Any], place: tuple[str, int]) -> str:
        name = _text(row["query_id"], "query_id", place)
        known = about.setdefault(name, dict.fromkeys(paths))
        for key, path in paths.items():
            if known[key] is None:
                known[key] = _at(row, path) if key == "time" else _id_at(row, path, place)
        return name

    def show(name: str, document: str, position: object, line: int) -> None:
        row = rows.setdefault((name, document), len(shown))
        if row == len(shown) or shown[row][2] != position:  # else the user scrolled to it again
            shown.append((name, document, position, line))

    for place, row, hits in _query_rows(queries) if queries is not None else ():
        name = described(row, place)
        if hits:
            listed.add(name)
        for position, hit in enumerate(hits, start=first_position):
            show(name, _text(hit, "query_response_hit_ids", place), position, place[1])
    for place, row, document in _event_rows(source, actions, lost):
        name = described(row, place)
        if row["action_name"] == actions[1]:
            clicks.append(((name, document), place))
        elif name not in listed:
            show(name, document, _at(row, "event_attributes.position.ordinal"), place[1])
    if not shown:
        raise DataFileError(
            f"no event has the action_name {actions[0]!r}",
            os.fspath(source),
            argument="shown_action",
            remedies=[
                Remedy("to name the event of a shown document", shown_action=...),
                Remedy("to add the queries with their hits", queries=...),
            ],
            code="nothing-shown",
        )
    clicked = np.zeros(len(shown), dtype=np.int8)
    found = _rows_of(clicks, rows, bad)
    clicked[found] = 1
    lost[NOT_SHOWN] = len(clicks) - len(found)
    impression, documents, positions, lines = zip(*shown)
    columns = {key: [about[name][key] for name in impression] for key in paths}
    columns = {key: values for key, values in columns.items() if key in ("query", "time") or any(values)}
    origin = Place(os.fspath(source if queries is None else queries), np.asarray(lines))
    log = ClickLog(impression, document=documents, position=positions, clicked=clicked, **columns,
                   first_position=first_position, bad=bad, place=origin)  # fmt: skip
    lost[NO_LIST] = len(about) - len(set(impression))
    log.skipped |= {reason: count for reason, count in lost.items() if count}
    return log


def _query_rows(path: PathLike) -> Iterator[tuple[tuple[str, int], dict[str, Any], list[Any]]]:
    """Yield UBI's queries with their lines and hits."""
    for place, row in _json_rows(path):
        hits = row.get("query_response_hit_ids") or []
        if row.get("query_id") is None:
            raise DataFileError("the query has no query_id. Add it, or remove the line", *place)
        if not isinstance(hits, list):
            raise DataFileError(f"query_response_hit_ids must be a list, got {hits!r:.60}", *place)
        yield place, row, hits


def _event_rows(
    path: PathLike, actions: tuple[str, str], lost: dict[str, int]
) -> Iterator[tuple[tuple[str, int], dict[str, Any], str]]:
    """Yield UBI's events of these actions with their lines and documents; events without a query are counted."""
    for place, row in _json_rows(path):
        action = row.get("action_name")
        if action not in actions:
            lost[OTHER] += 1
            continue
        if row.get("query_id") is None:
            lost[NO_QUERY] += 1
            continue
        document = _id_at(row, "event_attributes.object.object_id", place)
        if document is None:
            raise DataFileError(
                f"the {action} has no event_attributes.object.object_id. Add it, or remove the line", *place
            )
        yield place, row, document


def _rows_of(
    clicks: list[tuple[tuple[str, str], tuple[str, int]]], rows: dict[tuple[str, str], int], bad: str
) -> list[int]:
    """Return the clicked rows; clicks on documents that were not shown are an error, or left out with `bad="skip"`."""
    for key, place in clicks:
        if key not in rows and bad != "skip":
            raise DataFileError(
                f"the clicked document {key[1]!r} was not shown for query_id {key[0]!r}",
                *place,
                remedies=["log all shown documents", Remedy("to leave such clicks out", bad="skip")],
                code="not-shown",
            )
    return [rows[key] for key, _ in clicks if key in rows]
