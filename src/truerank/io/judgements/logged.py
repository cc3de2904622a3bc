"""Rows of features in JSON: flat, nested, or logged by the LTR plugin in the answers of a search engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from truerank.core.errors import DataFileError
from truerank.io.judgements.roles import roles_of


def logged_rows(value: Mapping[str, Any], about: Mapping[str, Any] = {}) -> Iterator[dict[str, Any]]:
    """Yield a row for each hit of a search engine's answer, with its logged features, else the value as one row.

    `about` contains the query that the engine answered. Raises DataFileError for an answer without a query.

    >>> log = [{"log": [{"name": "title", "value": 2.5}, {"name": "brand"}]}]
    >>> answer = {"took": 3, "hits": {"hits": [{"_id": "d1", "_score": 1.5, "fields": {"_ltrlog": log}}]}}
    >>> list(logged_rows({"query": "tv", "response": answer}))
    [{'query': 'tv', '_id': 'd1', 'title': 2.5, 'brand': 0.0}]
    >>> list(logged_rows({"query": "tv", "doc_id": "d1", "features": {"title": 2.5}}))
    [{'query': 'tv', 'doc_id': 'd1', 'title': 2.5}]
    """
    roles = roles_of(name for name, one in value.items() if not isinstance(one, dict | list))
    about = {**about, **{name: value[name] for role, name in roles.items() if role in ("query", "text")}}
    hits = value.get("hits", next((one for one in value.values() if isinstance(one, dict) and "hits" in one), None))
    if isinstance(hits, dict):
        yield from logged_rows(hits, about)
    elif "responses" in value or (hits is not None and not about):
        what = 'the answer of a search engine has no query. Write a line {"query": …, "response": …} for each answer'
        raise DataFileError(what, code="no-query")
    elif hits is None:
        yield features_of("", value)
    else:
        for hit in hits if isinstance(hits, list) else []:
            fields = hit.get("fields") if isinstance(hit, dict) else None
            if isinstance(fields, dict) and "_ltrlog" in fields:
                yield {**about, "_id": hit.get("_id"), **features_of("", fields["_ltrlog"])}


def features_of(name: str, value: Any) -> dict[str, Any]:
    """Return the features in a value by name, 0 for one that the LTR plugin logged without a value.

    >>> features_of("", {"id": "d1", "vector": [0.5, 2]})
    {'id': 'd1', 'vector_1': 0.5, 'vector_2': 2}
    """
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        if all("name" in one for one in value):
            return {str(one["name"]): one.get("value", 0.0) for one in value}
        value = {key: own for one in value for key, own in one.items()}
    if isinstance(value, dict):
        return {key: own for inner, one in value.items() for key, own in features_of(inner, one).items()}
    if isinstance(value, list):
        return {f"{name}_{place}": one for place, one in enumerate(value, 1) if not isinstance(one, dict | list)}
    return {name: value}
