"""Runs in tables and JSON, with a score or a rank for each document of a query."""

from __future__ import annotations

from typing import Any, NoReturn

from truerank.core.errors import DataFileError
from truerank.io.judgements.content import Content, read_content
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.others import looks_like
from truerank.io.judgements.proposals import survey
from truerank.io.judgements.ratings import Row, read_grade
from truerank.io.judgements.roles import roles_of
from truerank.io.judgements.tables import lacking, table_rows
from truerank.io.streams import Source


def read_lists(stream: Source) -> dict[str, dict[str, float]]:
    """Return `{query: {document: score}}` from a file that is not a TREC run.

    Raises DataFileError for a file that is not a run (with its apparent format), scores that are not numbers, and
    repeated documents.
    """
    content = read_content(stream)
    lists: dict[str, dict[str, float]] = {}
    for row in rows_in(content):
        score, own = read_grade(row.grade, content.decimal), lists.setdefault(row.query, {})
        if score is None or row.document in own:
            pair = f"document {row.document!r:.80} for query {row.query!r:.80}"
            place = row.line or content.line_of(row.query, row.document)
            if score is None:
                what = f"the score of {pair} is {row.grade!r:.80}; expected a number"
                raise DataFileError(what, content.name, place)
            what = f"{pair} is listed twice"
            raise DataFileError(what, content.name, place, remedies=["remove one of its rows"], code="twice")
        own[row.document] = score
    if not lists:
        _refuse(content)
    return lists


def score_rows(stream: Source) -> list[Row]:
    """Return the rows of a file that is not a TREC run, in which a document may occur several times.

    Raises DataFileError as `read_lists` does, and for a JSON value without results unless its list of results is empty.
    """
    content = read_content(stream)
    rows = []
    for row in rows_in(content):
        number = read_grade(row.grade, content.decimal)
        rows.append(row if number is None else row._replace(grade=number))
    if not rows and not any(map(_is_empty, content.values)):
        _refuse(content)
    for line, value in content.values:
        if not _is_empty((line, value)) and next(rows_of(value, line, "score"), None) is None:
            raise DataFileError("found no results. Expected a query and a list such as results", content.name, line)
    return rows


def _is_empty(value: tuple[int | None, Any]) -> bool:
    """Return whether a numbered value of JSON has an empty list of results."""
    return isinstance(value[1], dict) and [] in value[1].values()


def rows_in(content: Content) -> list[Row]:
    """Return the rows of a table or JSON with scores or ranks, or [] for other files."""
    if content.kind == "text" or (content.kind == "table" and not roles_of(content.header)):
        return _ranking(content)
    if content.kind == "table":
        return [] if lacking(content, "score") else list(table_rows(content, "score"))
    return [row for line, value in content.values for row in rows_of(value, line, "score")]


def _ranking(content: Content) -> list[Row]:
    """Return the rows (query, document, rank and maybe score) of unnamed columns of MS MARCO and ColBERT, else []."""
    rows = list(content.lines()) if content.kind == "text" else [(1, content.header), *content.rows]
    ranks: dict[str, list[int]] = {}
    for _, row in rows:
        if len(row) not in (3, 4) or not str(row[2]).isdecimal():
            return []
        ranks.setdefault(row[0], []).append(int(row[2]))
    if any(sorted(own) not in (list(range(len(own))), list(range(1, len(own) + 1))) for own in ranks.values()):
        return []
    return [Row(row[0], row[1], -float(row[2]), line=line) for line, row in rows]


def _refuse(content: Content) -> NoReturn:
    looks, advice = looks_like(content) or (survey(content).looks, "")
    judged = next((row for line, value in content.values for row in rows_of(value, line)), None) is not None
    if judged or (content.kind == "table" and lacking(content) is None):
        looks, advice = "judgements (with grades)", "Name it as judgements"
    raise DataFileError(
        f"expected a run, but this looks like {looks}. {advice.rstrip('?')}{'. ' * bool(advice)}A run has the columns "
        "'topic Q0 docno rank score tag', or is a table with columns such as query_id, doc_id and score",
        content.name,
        value=looks,
        code="no-run",
    )
