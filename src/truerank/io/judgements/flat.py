"""Convert a file to one table, whose columns options can name: columns of a table, keys of JSON, or numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from truerank.core.errors import DataFileError, Remedy
from truerank.core.names import nearest
from truerank.io.judgements.content import Content, listed_in
from truerank.io.judgements.ratings import read_grade
from truerank.io.judgements.roles import few, lists_documents, plain, roles_of

ALL = "all"
"""The word of `grades` for the grade of every row of a table that has no grades."""
_USUAL = {"query": "qid", "document": "docid", "grade": "rating"}
_MOST = 200  # keys of a record


def has_names(content: Content) -> bool:
    """Return whether the first row of a table has the names of its columns rather than cells."""
    if roles_of(content.header):
        return True
    columns = list(zip(content.header, *(row for _, row in content.rows[:1000] if len(row) == len(content.header))))
    return bool(columns) and not any(
        (name and name in own) or (read_grade(name) is not None and all(read_grade(cell) is not None for cell in own))
        for name, *own in columns
    )


def as_table(content: Content, wanted: Collection[str] = ()) -> Content:
    """Return the table of what a file holds; its columns are 1, 2, … if they have no names or all `wanted` are numbers.

    A row of JSON is an object that holds no other objects in lists, with the values of the objects around it; names are
    joined by points. Keys that are ids are cells of columns with numbers.

    >>> case = {"of": "shop", "cases": [{"frage": "tv", "treffer": [{"nr": "d1", "note": 2}, {"nr": "d2", "note": 0}]}]}
    >>> as_table(Content("file", "json", values=[(None, case)])).header
    ['of', 'cases.frage', 'cases.treffer.nr', 'cases.treffer.note']
    """
    if content.kind == "json":
        found = [(line, row) for line, value in content.values for row in _records(value, {}, "")]
        header = list(dict.fromkeys(name for _, row in found for name in row))
        rows: list[tuple[int | None, list[Any]]] = [(line, [row.get(name) for name in header]) for line, row in found]
        return content._replace(kind="table", values=[], header=header, rows=rows)
    if content.kind == "table":
        by_number = wanted and all(map(str.isdecimal, wanted)) and not {*wanted} <= {*content.header}
        if not by_number and (wanted or has_names(content)):
            return _with_lists(content)
    rows = [*content.lines()] if content.kind == "text" else [(1, content.header), *content.rows]
    width = max((len(row) for _, row in rows), default=0)
    rows = [(line, [*row, *[""] * (width - len(row))]) for line, row in rows]
    return content._replace(kind="table", header=[str(k) for k in range(1, width + 1)], rows=rows)


def _with_lists(content: Content) -> Content:
    """Return the table with lists in the cells of columns whose names mean several documents, like `relevant_ids`."""
    several = {k for k, name in enumerate(content.header) if lists_documents(plain(name)) and plain(name).endswith("s")}
    rows = [[listed_in(cell) if k in several and isinstance(cell, str) else cell for k, cell in enumerate(row)]
            for _, row in content.rows]  # fmt: skip
    if not any(isinstance(cell, list) and len(cell) > 1 for row in rows for cell in row):
        return content
    return content._replace(rows=[(line, row) for (line, _), row in zip(content.rows, rows)])


def _records(value: Any, around: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Yield the rows within a JSON value; keys that are ids become cells of a numbered column."""
    if isinstance(value, list):
        for one in value:
            yield from _records(one, around, key)
        return
    if not isinstance(value, dict):
        return
    if _is_map(value):
        level = 1 + sum(name.isdecimal() for name in around)
        for name, one in value.items():
            own = around | {str(level): name}
            if isinstance(one, list) and not _has_objects(one):
                yield from (own | {str(level + 1): document} for document in one)
            elif isinstance(one, dict) and not _nests(one) and not _same_keys(value):
                yield from (own | {str(level + 1): document, str(level + 2): grade} for document, grade in one.items())
            else:
                yield from _records(one, own, key)
        return
    flat, nested = dict(around), dict[str, Any]()

    def add(record: dict[str, Any], prefix: str) -> None:
        for name, one in record.items():
            place = f"{prefix}{name}"
            if _has_objects(one) or (isinstance(one, dict) and _is_map(one)):
                nested[place] = one
            elif isinstance(one, dict) and len(flat) < _MOST:
                add(one, f"{place}.")
            else:
                flat[place] = one[0] if isinstance(one, list) and len(one) == 1 else one

    add(value, key)
    for place, one in nested.items():
        yield from _records(one, flat, f"{place}.")
    if not nested:
        yield flat


def _has_objects(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _is_map(value: dict[str, Any]) -> bool:
    """Return whether the keys of an object are ids: all of its values are objects, or lists of ids."""
    inside = list(value.values())
    kind = next((kind for kind in (dict, list) if all(isinstance(one, kind) for one in inside)), None)
    nests = kind is list and any(isinstance(one, list) for own in inside for one in own)
    return len(inside) > 1 and kind is not None and not nests and not (kind is list and all(map(_has_objects, inside)))


def _nests(value: dict[str, Any]) -> bool:
    return any(isinstance(one, dict | list) for one in value.values())


def _same_keys(value: dict[str, Any]) -> bool:
    keys = [one.keys() for one in value.values() if isinstance(one, dict)]
    return all(one == keys[0] for one in keys)


def named(content: Content, names: Mapping[str, str], *, ungraded: bool = False) -> Content:
    """Return the table whose columns have the usual names of their roles; `names` are columns by role.

    The grade may be several columns with commas between them, one for each judge. A list of documents in a cell becomes
    rows. With `ungraded`, each row has the grade `ALL`. DataFileError: If there is no such column.
    """
    table = as_table(content, [part for name in names.values() for part in name.split(",")])
    grades = names.get("grade")
    judges = [] if grades is None else [grades] if grades in table.header else grades.split(",")
    chosen = {names[role]: usual for role, usual in _USUAL.items() if role in names and role != "grade"}
    if absent := [name for name in (*chosen, *judges) if name not in table.header]:
        role = next((role for role, name in names.items() if name == absent[0]), "grade")
        near = nearest(absent[0], table.header, f"Its columns are {few(table.header)}")
        text = f"the file has no column {absent[0]!r} ({role}){near}"
        raise DataFileError(text, table.name, remedies=[Remedy(**{role: ...})])
    # A column that has the usual name already keeps its cells, and has no role.
    new = {*chosen.values(), *["rating"] * (bool(judges) or ungraded), *["judge"] * (len(judges) > 1)}
    kept = [name for name in table.header if name not in judges]
    header = [chosen.get(name, f"{name} (unused)" if name in new else name) for name in kept]
    header += [name for name in ("rating", "judge") if name in new]
    rows = list[tuple[int | None, list[Any]]]()
    for line, row in table.rows:
        cells = dict(zip(table.header, row))
        for judge in judges or [ALL]:
            grade = cells.get(judge) if judges else ALL
            own = [*map(cells.get, kept), *[grade, judge][: len(header) - len(kept)]]
            rows += [(line, one) for one in _listed(own, header)]
    if content.kind == "json":  # objects of other lists have no document
        need = [header.index(usual) for usual in chosen.values()]
        rows = [(line, row) for line, row in rows if all(row[k] not in (None, "", []) for k in need)]
    return table._replace(header=header, rows=rows)


def _listed(row: list[Any], header: list[str]) -> list[list[Any]]:
    """Return a row for each document of a list, with its own grade if the grades are a list of the same length."""
    at = header.index("docid") if "docid" in header else None
    if at is None or not isinstance(row[at], list):
        return [row]
    size = len(row[at])
    cells = [own if isinstance(own, list) and len(own) == size else [own] * size for own in row]
    return [list(one) for one in zip(*cells)]
