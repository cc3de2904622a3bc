"""BEIR's qrels with their queries, JSON of ranx, and gold sets of retrieval for language models (JSON lines)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truerank.core.errors import DataFileError
from truerank.core.files import read_text
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, json_rows, whole, write_json, write_lines
from truerank.io.judgements.ratings import Ratings, Row
from truerank.io.judgements.roles import lists_documents, plain
from truerank.io.judgements.tables import has_columns, table_rows, write_rows


def beir_file(folder: Path) -> Path:
    """Return the test qrels in a BEIR folder, or its only qrels."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    chosen = [path for path in files if path.stem == "test"] or files
    if len(chosen) != 1:
        named = ", ".join(path.name for path in files) or "no file qrels/*.tsv"
        raise DataFileError(
            f"expected a folder of BEIR with qrels/test.tsv, but the folder has {named}. Name one file", str(folder)
        )
    return chosen[0]


def _beir_rows(content: Content) -> Iterator[Row]:
    folder = Path(content.name).parent
    path = next((own for own in (folder / "queries.jsonl", folder.parent / "queries.jsonl") if own.is_file()), None)
    lines = [] if path is None else map(json.loads, filter(str.strip, read_text(path).split("\n")))
    texts = {str(one.get("_id")): str(one.get("text")) for one in lines}
    for row in table_rows(content):
        yield row._replace(text=texts.get(row.query))


def _write_beir(ratings: Ratings, target: object) -> None:
    grades = list(map(whole, ratings.grades))
    write_rows({"query-id": ratings.queries, "corpus-id": ratings.documents, "score": grades}, target, "tsv")
    if isinstance(target, str | Path) and target != "-":
        texts = [{"_id": query, "text": ratings.text(query)} for query in ratings.by_query()]
        lines = (json.dumps(one, ensure_ascii=False) for one in texts)
        write_lines(lines, Path(target).parent / "queries.jsonl")


def _is_ranx(content: Content) -> bool:
    lists = list(content.first().values()) if len(content.values) == 1 else []
    maps = [one for one in lists if isinstance(one, dict)]
    return (
        len(lists) > 0 and maps == lists and all(isinstance(own, int | float) for one in maps for own in one.values())
    )


def _lists(ratings: Ratings) -> dict[str, dict[str, Any]]:
    return {
        query: {ratings.documents[row]: whole(ratings.grades[row]) for row in rows}
        for query, rows in ratings.by_query().items()
    }


def _is_gold(content: Content) -> bool:
    keys = content.first()
    return any(lists_documents(plain(key)) and isinstance(value, dict | list) for key, value in keys.items())


def _write_gold(ratings: Ratings, target: object) -> None:
    texts = ({"query": ratings.text(query)} if query in ratings.texts else {} for query in ratings.by_query())
    rows = (
        {"query_id": query} | text | {"relevant": own} for (query, own), text in zip(_lists(ratings).items(), texts)
    )
    write_lines((json.dumps(row, ensure_ascii=False) for row in rows), target)


BEIR = Format("beir", "BEIR's qrels", has_columns("queryid", "corpusid"), _beir_rows, _write_beir)
RANX = Format(
    "ranx", "ranx's JSON", _is_ranx, json_rows, lambda own, target: write_json(_lists(own), target), texts=False
)
GOLD = Format("gold", "a gold set in JSON lines", _is_gold, json_rows, _write_gold)
