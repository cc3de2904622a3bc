"""Judgements of search tools: Quepid, `_rank_eval`, the Rated Ranking Evaluator (RRE), Search Relevance Workbench."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truerank.core.errors import DataFileError, InvalidInputError
from truerank.io.judgements.content import Content
from truerank.io.judgements.formats import Format, json_rows, whole, write_json
from truerank.io.judgements.nested import rows_of
from truerank.io.judgements.ratings import Ratings, Row
from truerank.io.judgements.roles import has
from truerank.io.judgements.tables import lacking, table_rows, write_csv


def _is_book(content: Content) -> bool:
    is_table = content.kind == "table" and lacking(content) is None
    return is_table and has(content.header, "query", "docid") and not has(content.header, "queryid")


def _is_quepid(content: Content) -> bool:
    keys = content.first()
    if "query_doc_pairs" in keys:
        return True
    queries = keys.get("queries")
    return isinstance(queries, list) and any(isinstance(one, dict) and "ratings" in one for one in queries)


def _write_book(ratings: Ratings, target: object) -> None:
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


def _write_quepid(ratings: Ratings, target: object) -> None:
    """Write a book as JSON."""
    pairs = []
    for (query, document), own in ratings.pairs().items():
        judges = [{} if ratings.judges is None else {"user_email": ratings.judges[row]} for row in own]
        given = [{"rating": whole(ratings.grades[row]), "unrateable": False} | judge for row, judge in zip(own, judges)]
        key = {"query_id": query} if query in ratings.texts else {}
        pairs.append(key | {"query_text": ratings.text(query), "doc_id": document, "judgements": given})
    write_json({"name": "book", "query_doc_pairs": pairs}, target)


QUEPID = Format("quepid", "Quepid's CSV", _is_book, table_rows, _write_book, judges=True, texts=False)
QUEPID_JSON = Format("quepid-json", "Quepid's JSON", _is_quepid, json_rows, _write_quepid, judges=True)


def _is_rank_eval(content: Content) -> bool:
    requests = content.first().get("requests")
    return isinstance(requests, list) and any(isinstance(one, dict) and "ratings" in one for one in requests)


def _write_rank_eval(ratings: Ratings, target: object) -> None:
    wrong = next((grade for grade in ratings.grades if grade != int(grade) or grade < 0), None)
    if wrong is not None:
        raise InvalidInputError(f"_rank_eval requires integer grades >= 0, got {wrong:g}")
    requests = [
        {
            "id": query,
            "request": {"query": {"simple_query_string": {"query": ratings.text(query)}}},
            "ratings": [
                {"_index": "INDEX", "_id": ratings.documents[row], "rating": whole(ratings.grades[row])} for row in rows
            ],
        }
        for query, rows in ratings.by_query().items()
    ]
    write_json({"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}}, target)


RANK_EVAL = Format("rank-eval", "a _rank_eval request", _is_rank_eval, json_rows, _write_rank_eval)


def _is_rre(content: Content) -> bool:
    return content.kind == "json" and '"relevant_documents"' in content.text and '"placeholders"' in content.text


def _rre_rows(content: Content) -> Iterator[Row]:
    """Yield the rows; each query of a group has all documents of the group."""
    for line, value in content.values:
        for group in _groups(value):
            queries = group["queries"] if isinstance(group.get("queries"), list) else [group]
            for query in queries:
                text = _placeholder(query.get("placeholders"), content.name)
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


def _placeholder(placeholders: object, name: str) -> str:
    texts = {str(key): str(text) for key, text in placeholders.items()} if isinstance(placeholders, dict) else {}
    found = texts.get("$query") or texts.get("query") or (next(iter(texts.values())) if len(texts) == 1 else None)
    if found is None:
        raise DataFileError(f"expected a query with the placeholder $query, got {placeholders!r:.60}", name)
    return found


def _write_rre(ratings: Ratings, target: object) -> None:
    groups = []
    for query, rows in ratings.by_query().items():
        documents: dict[str, list[str]] = {}
        for row in sorted(rows, key=lambda row: -ratings.grades[row]):
            documents.setdefault(str(whole(ratings.grades[row])), []).append(ratings.documents[row])
        queries = [{"template": "template.json", "placeholders": {"$query": ratings.text(query)}}]
        groups.append({"name": query, "queries": queries, "relevant_documents": documents})
    write_json({"index": "INDEX", "id_field": "id", "query_groups": groups}, target)


RRE = Format("rre", "RRE's ratings", _is_rre, _rre_rows, _write_rre, texts=False)


def _write_workbench(ratings: Ratings, target: object) -> None:
    lists = [
        {
            "query": ratings.text(query),
            "ratings": [{"docId": ratings.documents[row], "rating": str(whole(ratings.grades[row]))} for row in rows],
        }
        for query, rows in ratings.by_query().items()
    ]
    write_json({"name": "judgements", "description": "", "type": "IMPORT_JUDGMENT", "judgmentRatings": lists}, target)


SEARCH_RELEVANCE = Format(
    "search-relevance", "a judgement list of the Search Relevance Workbench",
    lambda content: content.kind == "json" and '"judgmentRatings"' in content.text, json_rows,
    _write_workbench, texts=False,
)  # fmt: skip
