"""Runs in tables and JSON: a score or a rank for each document of a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truerank.core.errors import DataFileError
from truerank.data.grouping import id_text, is_missing
from truerank.io.judgements.content import Content, read_content
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.ratings import Row, read_grade
from truerank.io.judgements.roles import has, roles_of
from truerank.io.streams import Source


def read_lists(stream: Source) -> dict[str, dict[str, float]]:
    """Return `{query: {document: score}}` of a file that is no TREC run.

    DataFileError: a file that is no run, with what it looks like, a score that is no number, and a document that is
    listed twice.
    """
    content = read_content(stream)
    lists: dict[str, dict[str, float]] = {}
    for row in _rows(content):
        score = read_grade(row.grade)
        if score is None:
            what = f"the score of document {row.document!r} for query {row.query!r} is {row.grade!r}; expected a number"
            raise DataFileError(what, content.name, row.line)
        own = lists.setdefault(row.query, {})
        if row.document in own:
            what = f"document {row.document!r} is listed twice for query {row.query!r}; a query lists a document once"
            raise DataFileError(what, content.name, row.line)
        own[row.document] = score
    if not lists:
        _refuse(content)
    return lists


def score_rows(stream: Source) -> list[Row]:
    """Return the rows of a file that is no TREC run; a document may occur several times.

    DataFileError: as `read_lists`, and a JSON value without results, unless its list of results is empty.
    """
    content = read_content(stream)
    if content.kind == "table":
        return list(_of_table(content))
    rows = list[Row]()
    for line, value in content.values:
        own = list(rows_of(value, line, "score"))
        if not own and not (isinstance(value, dict) and [] in value.values()):
            if not rows:
                _refuse(content)
            raise DataFileError("no results; expected a query and a list such as results", content.name, line)
        rows += own
    return rows


def _rows(content: Content) -> Iterator[Row]:
    if content.kind == "table":
        return _of_table(content)
    return (row for line, value in content.values for row in rows_of(value, line, "score"))


def _of_table(content: Content) -> Iterator[Row]:
    header = content.header
    roles = {role: header.index(name) for role, name in roles_of(header, "score").items()}
    if has(header, "impression", "clicked") or "document" not in roles or not {"query", "text"} & set(roles):
        _refuse(content)
    query, document = roles.get("query", roles.get("text")), roles["document"]
    if "score" not in roles and "rank" not in roles:
        _refuse(content)
    value = roles.get("score", roles.get("rank"))
    for line, row in content.rows:
        cells: list[Any] = [row[k] if k is not None and k < len(row) else None for k in (query, document, value)]
        if any(is_missing(cell) or cell == "" for cell in cells):
            raise DataFileError("the row has no query, document or score", content.name, line)
        score = cells[2] if "score" in roles or read_grade(cells[2]) is None else -float(cells[2])
        yield Row(id_text(cells[0]), id_text(cells[1]), score, line=line)


def _refuse(content: Content) -> None:
    from truerank.io.judgements.registry import other_kind, recognised

    judgements = recognised(content)
    looks, advice = other_kind(content) or ("another file", "")
    if judgements is not None and judgements.name not in ("ratings", "json"):
        looks, advice = f"judgements ({judgements.title})", "Name it as judgements"
    raise DataFileError(
        f"expected a run, but this looks like {looks}. {advice}{'. ' * bool(advice)}A run has the columns 'topic Q0 "
        "docno rank score tag', or is a table with columns such as query_id, doc_id and score",
        content.name,
    )
