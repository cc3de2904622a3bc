"""The content of a file of judgements or of a run: JSON, JSON lines, a table, or lines of text."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from truerank.core.errors import DataFileError
from truerank.core.names import repeated
from truerank.core.printing import counted
from truerank.io.delimited import dialect
from truerank.io.first_bytes import LZ4, TABLES, is_yaml
from truerank.io.judgements.roles import listed_alone, lists_documents, plain, roles_of
from truerank.io.letor.grammar import NUMBER, check_bytes
from truerank.io.streams import Source

_KINDS = ("grade", "score")
_GRADES = re.compile(r"(relevance|rating|grade|label|judge?ment|variance)$")
_TRUTH = {"", "0", "1", "0.0", "1.0", "true", "false", "yes", "no"}
_BULK = {"index", "create", "update", "delete"}


class Content(NamedTuple):
    """The content of a file. Its `kind` determines which of `values` (JSON with lines), `table` and `text` is set."""

    name: str
    kind: str  # "json", "table" or "text"
    text: str = ""
    values: list[tuple[int | None, Any]] = []  # noqa: RUF012 - not changed
    header: list[str] = []  # noqa: RUF012
    rows: list[tuple[int | None, list[Any]]] = []  # noqa: RUF012
    delimiter: str = ","
    decimal: str = "."

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the words and numbers of the lines that are not blank or comments."""
        for number, line in enumerate(self.text.split("\n"), 1):
            words = [word.decode("utf-8") for word in line.encode("utf-8").split()]  # an id may contain other blanks
            if words and not words[0].startswith("#"):
                yield number, words

    def first(self) -> dict[str, Any]:
        """Return the first JSON object, or {} if the file does not start with an object."""
        one = self.values[0][1] if self.values else None
        while isinstance(one, list) and one:
            one = one[0]
        return one if isinstance(one, dict) else {}

    def line_of(self, *ids: str) -> int | None:
        """Return the line of JSON that has the last of some texts, each found after the previous text."""
        place = 0
        for one in ids:
            place = max(place, *(self.text.find(json.dumps(one, ensure_ascii=way), place) for way in (True, False)))
        return self.text.count("\n", 0, place) + 1 if self.kind == "json" else None


def read_content(source: Source) -> Content:
    """Return what an open file holds. Raises DataFileError, with the line, for damaged JSON and tables."""
    head, name = source.peek(), source.name
    kind = next((kind for magic, kind in TABLES.items() if head.startswith(magic)), None)
    if kind is not None:
        return _of_arrow(source, kind)
    if head.startswith(LZ4):
        from truerank.io.tables import _arrow

        arrow = _arrow()
        raw = b"".join(source.pieces())
        try:
            data = arrow.input_stream(arrow.BufferReader(raw), compression="lz4").read()
        except OSError as error:
            raise DataFileError(
                f"the lz4 archive is damaged ({error}). Download the file again", name, code="damaged-archive"
            ) from error
    else:
        data = b"".join(source.line_blocks())
    return of_text(data, name)


def of_text(data: bytes, name: str) -> Content:
    """Return the content of the bytes of a text."""
    check_bytes(data, name, 1)
    text = data.decode("utf-8")
    start = text.lstrip()[:1]
    if not start:
        raise DataFileError("the file holds no rows", name)
    if start in "{[":
        values = [(line, one) for line, value in _json_values(text, name) for one in _records(value)]
        return Content(name, "json", text, values)
    if is_yaml(text):
        return Content(name, "json", text, [(None, one) for one in _records(_yaml_value(text, name))])
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    if _is_text(first):
        text = _without_titles(text)
        if not text:
            return Content(name, "text", data.decode("utf-8"))
    return _of_delimited(text, data, name)


def _is_text(line: str) -> bool:
    """Return whether a line is not JSON, nor the header or a row of a table."""
    words = line.encode("utf-8").split()
    if re.search(r"(^|\s)qid:\S", line) or line.lstrip().startswith("<"):
        return True
    if len(words) in (4, 6) and NUMBER.fullmatch(words[3 if len(words) == 4 else 4]):
        return True
    return not re.search(r"[,;\t]", line)


def _without_titles(text: str) -> str:
    """Return a table whose leading title lines are blank; "" if its columns are not columns of judgements."""
    found = re.match(r"((?:[^,;\t\n]{0,200}\n){1,5})([^\n]*[,;\t][^\n]*)\n", text)
    roles = roles_of(re.split("[,;\t]", found[2]), like=True) if found else {}
    if found is None or "document" not in roles or not {"query", "text"} & roles.keys():
        return ""
    return "\n" * found[1].count("\n") + text[found.end(1) :]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise for a duplicate key, of which Python keeps the last value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = repeated(name for name, _ in pairs)[0]
        raise DataFileError(f"an object has the key {twice!r:.80} twice. Keep one of them")
    return listed_alone(found)


def _json_values(text: str, name: str) -> list[tuple[int | None, Any]]:
    """Return the value of a JSON text, or the values of its lines without the action lines of `_bulk`."""
    try:
        return [(None, json.loads(text, object_pairs_hook=_once))]
    except RecursionError as error:
        raise DataFileError("the JSON is nested too deeply", name) from error
    except ValueError as error:
        whole = error
    if len(text.split("\n", 1)[0].strip()) <= 1 and "Extra data" in str(whole):
        return _indented_values(text, name)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    values = list[tuple[int | None, Any]]()
    for place, (number, line) in enumerate(lines):
        try:
            value = json.loads(line, object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            if place and isinstance(error, ValueError):
                raise DataFileError(
                    f"expected one JSON value in each line, got invalid JSON ({error})", name, number
                ) from error
            message, at = getattr(whole, "msg", str(whole)), getattr(whole, "lineno", 1)
            raise DataFileError(f"the JSON is damaged: {message}", name, at) from whole
        if not is_action(value):
            values.append((number, value))
    return values


def _yaml_value(text: str, name: str) -> Any:
    """Return the value of YAML with only the types of JSON."""
    import yaml

    try:
        return json.loads(json.dumps(yaml.safe_load(text), default=str), object_pairs_hook=_once)
    except yaml.YAMLError as error:
        at = getattr(error, "problem_mark", None)
        what = f"the YAML is damaged: {getattr(error, 'problem', error)}"
        raise DataFileError(what, name, None if at is None else at.line + 1) from error


def _records(value: Any) -> list[Any]:
    """Return the elements of an array, the rows of a table by column (pandas), or the value itself.

    >>> _records({"columns": ["query", "doc_id"], "data": [["tv", "d1"]]})
    [{'query': 'tv', 'doc_id': 'd1'}]
    >>> _records({"questions": ["tv"], "documents": [["d1"]], "run": "a"})
    [{'question': 'tv', 'documents': ['d1']}]
    """
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    if not isinstance(value, dict):
        return [value]
    names, rows = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        return [dict(zip(map(str, names), row)) for row in rows]
    asked = {"questions": "question", "queries": "query"}
    known: dict[str, Any] = {str(asked.get(name, name)): own for name, own in value.items()}
    roles = roles_of(known)
    first = known.get(roles.get("query", roles.get("text", "")))
    if isinstance(first, dict) and all(isinstance(one, dict) and one.keys() == first.keys() for one in known.values()):
        return [{name: own[key] for name, own in known.items()} for key in first]
    if isinstance(first, list) and all(isinstance(one, str | int) for one in first):
        columns = {name: own for name, own in known.items() if isinstance(own, list) and len(own) == len(first)}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]
    return [value]


def _with_lists(content: Content) -> Content:
    """Return records from a table that lists the documents of a query in a cell, as in a|b or ["a", "b"]."""
    roles = roles_of(content.header)
    if "document" in roles or not {"query", "text"} & roles.keys():
        return content
    lists = [k for k, name in enumerate(content.header) if any(lists_documents(plain(name), own) for own in _KINDS)]
    grades = {k for k in lists if _GRADES.search(plain(content.header[k]))}
    grades = {k for k in grades if not any(re.search(r"[][{|;,]", row[k]) for _, row in content.rows if row[k:])}
    grades |= {k for k in lists if {row[k].strip().lower() for _, row in content.rows if row[k:]} <= _TRUTH}
    lists = [k for k in lists if k not in grades]
    if not lists:
        return content
    values = []
    for line, row in content.rows:
        cells = [listed_in(cell) if k in lists else cell for k, cell in enumerate(row)]
        values.append((line, dict(zip(content.header, cells))))
    return content._replace(kind="json", values=values)


def listed_in(cell: str) -> Any:
    """Return the list in a cell; a number or a sentence is returned unchanged.

    >>> listed_in("d1|d2"), listed_in("['d 1', 'd2']"), listed_in("d1"), listed_in("A text, as it is"), listed_in("0.5")
    (['d1', 'd2'], ['d 1', 'd2'], ['d1'], 'A text, as it is', '0.5')
    """
    if cell[:1] in ("[", "{"):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(cell)
        return cell
    parts = re.split(r"\s*[|;,]\s*", cell.strip())
    if re.fullmatch(r"[-+]?\d*\.\d+", cell) or any(re.search(r"\s", part) for part in parts):
        return cell
    return [part for part in parts if part]


def _indented_values(text: str, name: str) -> list[tuple[int | None, Any]]:
    """Return JSON values that span several lines, each with the number of its first line."""
    values, place, decoder = list[tuple[int | None, Any]](), 0, json.JSONDecoder(object_pairs_hook=_once)
    while rest := re.compile(r"\S").search(text, place):
        try:
            value, place = decoder.raw_decode(text, rest.start())
        except json.JSONDecodeError as error:
            raise DataFileError(f"the JSON is damaged: {error.msg}", name, error.lineno) from error
        values.append((text.count("\n", 0, rest.start()) + 1, value))
    return values


def is_action(value: object) -> bool:
    """Return whether a line of JSON is the action of a `_bulk` request, whose document is the next line."""
    return isinstance(value, dict) and len(value) == 1 and any(isinstance(value.get(name), dict) for name in _BULK)


def _of_arrow(source: Source, kind: str) -> Content:
    from truerank.io.tables import read_file

    if not os.path.isfile(source.name):
        raise DataFileError(f"{kind} cannot be read from a stream. Write it to a file, and give its path", source.name)
    table = read_file(source.name, kind, ())
    columns = [column.to_pylist() for column in table.columns]
    rows: list[tuple[int | None, list[Any]]] = [(None, list(row)) for row in zip(*columns)]
    header = list(map(str, table.column_names))
    nested = {name for name, column in zip(header, columns) if isinstance(next(iter(column), None), dict | list)}
    roles = roles_of(header)
    if nested and nested.isdisjoint(roles[role] for role in ("query", "document") if role in roles):  # as in JSON
        return Content(source.name, "json", values=[(None, dict(zip(header, row))) for _, row in rows])
    return Content(source.name, "table", header=header, rows=rows)


def _of_delimited(text: str, data: bytes, name: str) -> Content:
    """Return a table of text; tables with tabs and no doubled quotation marks have plain marks in cells."""
    body = re.sub(r"\A(?:#.*\n|\s*\n|sep=.\r?\n)+", "", text)  # a spreadsheet may name the separator
    delimiter, decimal = dialect("csv", body.encode("utf-8"))
    skipped = text.count("\n") - body.count("\n")
    for quoted in (True, False) if delimiter == "\t" else (True,):
        lines = io.StringIO(body, newline="")
        if quoted:
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
        else:
            reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        rows = list[tuple[int | None, list[Any]]]()
        line = skipped + 1
        try:
            for row in reader:
                if any(map(str.strip, row)):
                    rows.append((line, row))
                line = skipped + reader.line_num + 1
            break
        except csv.Error as error:
            wrong = DataFileError(f"a cell is damaged ({error}). Check the quotation marks", name, line)
    else:
        raise wrong
    while len(rows) > 2 and _filled(rows[0][1]) < 2 <= _filled(rows[1][1]):  # a title above the names
        del rows[0]
    header = [cell.strip() for cell in rows[0][1]]
    for number, row in rows[1:]:
        if len(row) > len(header) and any(map(str.strip, row[len(header) :])):
            what = f"the row has {counted(len(row), 'cell')}, but the header has {len(header)}"
            raise DataFileError(f"{what}. Quote cells that contain separators", name, number)
    if rows[0][1] != header or any(row[1:2] and row[1][:1] == " " for _, row in rows[1:3]):
        rows = [(number, [cell.strip() for cell in row]) for number, row in rows]
    return _with_lists(Content(name, "table", text, [], header, rows[1:], delimiter, decimal))


def _filled(row: list[str]) -> int:
    """Return the number of cells that are not empty."""
    return sum(bool(cell.strip()) for cell in row)
