"""Read lists of documents by query from memory: dicts, data frames, objects of ranx, and rows of ir_measures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from truerank.core.checks import as_array, column_labels, is_table
from truerank.core.errors import InvalidInputError
from truerank.core.names import repeated
from truerank.data.grouping import as_ids, id_text, is_missing, offsets_of
from truerank.io.letor.grammar import TEXT


def as_lists(value: object, kind: str, *, repeated: bool = False) -> Mapping[Any, Any] | None:
    """Return `{query: {document: value}}` from a dict, data frame, ranx object or rows of ir_measures; else None.

    `kind` is "score" or "grade", and determines the accepted names of the value column. With `repeated`, documents of
    tables are `{query: [[document, value]]}`. Raises InvalidInputError for a frame without the columns, or a document
    that is listed twice for a query.

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
    if is_table(value):
        from truerank.io.judgements.roles import roles_of, usual

        names = column_labels(value, "the table")
        roles = roles_of(names, kind)
        wanted = [roles.get("query", roles.get("text")), roles.get("document"), roles.get(kind)]
        for role, name in zip(("query", "document", kind), wanted):
            if name is None:
                raise InvalidInputError(
                    f"the table has the columns {', '.join(names)}. Expected one of {usual(role)} for the {role}",
                    code="columns",
                )
        chosen = list(filter(None, wanted))
        columns = [as_array(value[names[name]], name) for name in chosen]
        columns[:2] = [as_ids(column, f"column {name!r}") for column, name in zip(columns[:2], chosen)]
        queries, documents, values = (column.tolist() for column in columns)
        return _grouped(queries, documents, values, repeated)
    if isinstance(value, Iterable):
        rows, fields = list(value), ("query_id", "doc_id", "score" if kind == "score" else "relevance")
        if rows and all(hasattr(row, field) for row in rows for field in fields):
            queries, documents, values = ([getattr(row, field) for row in rows] for field in fields)
            return _grouped(queries, documents, values, repeated)
    return None


def is_ranked(documents: object) -> bool:
    """Return whether a value lists a query's documents, best first, as ids or (id, score) pairs."""
    return isinstance(documents, list | tuple) and bool(documents) and isinstance(documents[0], str | list | tuple)


def _grouped(queries: list[Any], documents: list[Any], values: list[Any], repeated: bool) -> dict[str, Any]:
    lists: dict[str, Any] = {}
    for row, (query, document, value) in enumerate(zip(queries, documents, values), 1):
        for what, part in (("query", query), ("document", document)):
            if is_missing(part):
                raise InvalidInputError(
                    f"row {row} of the table has no {what} id. Remove the row, or add an id", code="no-id"
                )
        topic, name = id_text(query), id_text(document)
        if repeated:
            lists.setdefault(topic, []).append([name, value])
            continue
        inside = lists.setdefault(topic, {})
        if name in inside:
            raise InvalidInputError(
                f"document {name!r} is listed twice for query {topic!r}",
                remedies=["remove one of the rows"],
                code="twice",
            )
        inside[name] = value
    return lists


def from_dict(lists: Mapping[Any, Mapping[Any, Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return topics, offsets, documents and values of `{topic: {document: value}}`."""
    topics, ids = once(map(_as_id, lists), "topic", "as two types"), list[str]()
    for topic, documents in lists.items():
        if not hasattr(documents, "values"):
            raise InvalidInputError(
                f"expected {{topic: {{document: number}}}}, got a {type(documents).__name__} for topic {topic!r}"
            )
        ids += once(map(_as_id, documents), "document", f"for topic {topic!r}, as two types")
    try:
        values = np.array([float(value) for documents in lists.values() for value in documents.values()])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"expected {{topic: {{document: number}}}}: {error}", code="not-a-run") from error
    if not np.isfinite(values).all():
        wrong = int(np.isfinite(values).argmin())
        what = f"document {ids[wrong]!r} has the value {values[wrong]}"
        raise InvalidInputError(f"{what}; expected finite numbers", code="not-finite")
    offsets = offsets_of(list(map(len, lists.values())))
    return np.array(topics, dtype=str), offsets, np.array(ids, dtype=TEXT), values


def _as_id(name: object) -> str:
    """Return an id as text that a file can store."""
    text = id_text(name)
    if is_missing(name) or not text or re.search("[\ud800-\udfff]", text):
        raise InvalidInputError(f"{name!r} is not an id of a topic or document. Expected text or a number")
    return text


def once(ids: Iterable[str], what: str, how: str) -> list[str]:
    """Return ids as a list; raise if an id occurs twice. Ids are compared as text."""
    texts = list(ids)
    if twice := repeated(texts):
        raise InvalidInputError(
            f"{what} {twice[0]!r} is listed twice {how}", remedies=["keep one of them"], code="twice"
        )
    return texts
