"""Convert runs and qrels of other libraries: data frames, ranx, ir_measures, PyTerrier."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from truerank.core.checks import as_array, column_labels
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import id_text, is_missing

# Usual names of columns and fields, the most usual first.
_QUERY = ("query_id", "q_id", "qid", "topic", "topic_id", "query")
_DOCUMENT = ("doc_id", "docno", "docid", "document_id", "document", "doc")
_VALUE = {
    "score": ("score", "scores", "sim", "similarity"),
    "grade": ("relevance", "grade", "label", "rel", "y", "score", "judgment", "judgement"),
}


def as_lists(value: object, kind: str) -> Mapping[Any, Mapping[Any, Any]] | None:
    """Return `{query: {document: value}}` from a dict, data frame, ranx object or rows of ir_measures; else None.

    `kind` is "score" or "grade"; it decides which names the column of values may have. InvalidInputError: a frame
    without the columns, or a document that is listed twice for a query.

    >>> import pandas
    >>> as_lists(pandas.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "score": [2.0, 1.0]}), "score")
    {'1': {'a': 2.0, 'b': 1.0}}
    """
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str | os.PathLike) or hasattr(value, "read"):
        return None
    if type(value).__module__.partition(".")[0] == "ranx" and hasattr(value, "to_dict"):
        return dict(value.to_dict())
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        names = column_labels(value, "the table")
        chosen = (_column(names, known) for known in (_QUERY, _DOCUMENT, _VALUE[kind]))
        return _grouped(*(as_array(value[name], str(name)).tolist() for name in chosen))
    if isinstance(value, Iterable):
        rows = list(value)
        field = {"score": "score", "grade": "relevance"}[kind]
        if rows and all(hasattr(row, "query_id") and hasattr(row, "doc_id") and hasattr(row, field) for row in rows):
            return _grouped(
                [row.query_id for row in rows], [row.doc_id for row in rows], [getattr(row, field) for row in rows]
            )
    return None


def _column(names: dict[str, Any], known: tuple[str, ...]) -> Any:
    for name in known:
        if name in names:
            return names[name]
    raise InvalidInputError(f"the table has the columns {', '.join(names)}; expected one of {', '.join(known)}")


def _grouped(queries: list[Any], documents: list[Any], values: list[Any]) -> dict[str, dict[str, Any]]:
    lists: dict[str, dict[str, Any]] = {}
    for row, (query, document, value) in enumerate(zip(queries, documents, values)):
        for what, part in (("query", query), ("document", document)):
            if is_missing(part):
                raise InvalidInputError(f"row {row} of the table has no {what} id; remove the row, or give it an id")
        topic, name = id_text(query), id_text(document)
        inside = lists.setdefault(topic, {})
        if name in inside:
            raise InvalidInputError(f"document {name!r} is listed twice for query {topic!r}; remove one of the rows")
        inside[name] = value
    return lists
