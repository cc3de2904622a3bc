"""Formats of Quepid: book CSV and JSON, case CSV and JSON, snapshot JSON."""

from __future__ import annotations

from typing import Any

from truerank.core.errors import InvalidInputError
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, json_rows, whole, write_json
from truerank.io.judgements.ratings import Ratings
from truerank.io.judgements.roles import has
from truerank.io.judgements.tables import lacking, table_rows, write_csv


def _is_csv(content: Content) -> bool:
    is_table = content.kind == "table" and lacking(content) is None
    return is_table and has(content.header, "query", "docid") and not has(content.header, "queryid")


def _is_json(content: Content) -> bool:
    keys = content.first()
    if "query_doc_pairs" in keys:
        return True
    queries = keys.get("queries")
    return isinstance(queries, list) and any(isinstance(one, dict) and "ratings" in one for one in queries)


def _write_csv(ratings: Ratings, target: object) -> None:
    """Write a book as CSV, with a column for each judge, or `rating`."""
    judges = list(dict.fromkeys(ratings.judges or ["rating"]))
    rows: list[list[Any]] = [["query", "docid", *(judge or "Unknown" for judge in judges)]]
    for (query, document), own in ratings.pairs().items():
        given: dict[str, Any] = {}
        for row in own:
            judge = judges[0] if ratings.judges is None else ratings.judges[row]
            if judge in given:
                what = f"{judge!r:.80} graded document {document!r:.80} twice for query {query!r:.80}"
                raise InvalidInputError(f"{what}. Remove one of the grades")
            given[judge] = whole(ratings.grades[row])
        text = ratings.text(query)
        rows.append(
            [f" {text}" if text[:1] in tuple("-=+@") else text, document, *(given.get(one, "") for one in judges)]
        )
    write_csv(rows, target)


def _write_json(ratings: Ratings, target: object) -> None:
    """Write a book as JSON."""
    pairs = []
    for (query, document), own in ratings.pairs().items():
        judges = [{} if ratings.judges is None else {"user_email": ratings.judges[row]} for row in own]
        given = [{"rating": whole(ratings.grades[row]), "unrateable": False} | judge for row, judge in zip(own, judges)]
        key = {"query_id": query} if query in ratings.texts else {}
        pairs.append(key | {"query_text": ratings.text(query), "doc_id": document, "judgements": given})
    write_json({"name": "book", "query_doc_pairs": pairs}, target)


CSV = Format("quepid", "Quepid's CSV", _is_csv, table_rows, _write_csv, judges=True, texts=False)
JSON = Format("quepid-json", "Quepid's JSON", _is_json, json_rows, _write_json, judges=True)
