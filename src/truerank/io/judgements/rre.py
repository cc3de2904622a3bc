"""Ratings of the Rated Ranking Evaluator (RRE), and Quepid's export for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truerank.core.errors import DataFileError
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, whole, write_json
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.ratings import Ratings, Row


def _matches(content: Content) -> bool:
    return content.kind == "json" and '"relevant_documents"' in content.text and '"placeholders"' in content.text


def _rows(content: Content) -> Iterator[Row]:
    """Yield the rows; each query of a group has all documents of the group."""
    for line, value in content.values:
        for group in _groups(value):
            queries = group["queries"] if isinstance(group.get("queries"), list) else [group]
            for query in queries:
                text = _text(query.get("placeholders"), content.name)
                rated = {"query": text, "relevant_documents": group["relevant_documents"]}
                yield from rows_of(rated, line)


def _groups(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for one in node:
            yield from _groups(one)
    elif isinstance(node, dict):
        if isinstance(node.get("relevant_documents"), dict | list):
            yield node
        else:
            for one in node.values():
                yield from _groups(one)


def _text(placeholders: object, name: str) -> str:
    texts = {str(key): str(text) for key, text in placeholders.items()} if isinstance(placeholders, dict) else {}
    found = texts.get("$query") or texts.get("query") or (next(iter(texts.values())) if len(texts) == 1 else None)
    if found is None:
        raise DataFileError(f"expected a query with the placeholder $query, got {placeholders!r:.60}", name)
    return found


def _write(ratings: Ratings, target: object) -> None:
    groups = []
    for query, rows in ratings.by_query().items():
        documents: dict[str, list[str]] = {}
        for row in sorted(rows, key=lambda row: -ratings.grades[row]):
            documents.setdefault(str(whole(ratings.grades[row])), []).append(ratings.documents[row])
        queries = [{"template": "template.json", "placeholders": {"$query": ratings.text(query)}}]
        groups.append({"name": query, "queries": queries, "relevant_documents": documents})
    write_json({"index": "INDEX", "id_field": "id", "query_groups": groups}, target)


RRE = Format("rre", "RRE's ratings", _matches, _rows, _write, texts=False)
