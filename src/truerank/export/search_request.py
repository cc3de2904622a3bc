"""A search request that uses an exported model: its body, to copy, and its size, which every search pays."""

from __future__ import annotations

import json
from typing import Any

WINDOW = 100
"""Documents of the first ranking that the request reranks."""
LARGE = 200_000
"""Bytes from which a request slows searches down; the model should be smaller, or live in the engine."""
SMALLER = (
    "Make it smaller with fewer or shallower trees (--set n_estimators=50 depth=4) or constant leaves (--set "
    "leaves=constant), or keep the model in the engine, in the format opensearch-ltr, elasticsearch-ltr or solr"
)


def search_request(content: str | bytes, format: str, name: str = "model") -> dict[str, Any] | None:
    """Return the body of a request that searches and reranks 100 documents; None for formats without an engine.

    `content` is what `export_model` returned. With "painless" the body contains the whole model; with the formats of
    the LTR plugins and Solr it names the model, which the engine stores. Replace the field `title` and the text
    `{{query}}` by your own. Solr's parameters may be sent as JSON.
    """
    if format == "solr":
        rerank = f"{{!ltr model={name} reRankDocs={WINDOW} efi.query='{{{{query}}}}'}}"
        return {"params": {"q": "title:({{query}})", "rq": rerank, "fl": "id,score"}}
    if format == "painless":
        script = json.loads(content)["script"]
        query: dict[str, Any] = {"script_score": {"query": {"match_all": {}}, "script": script}}
    elif format in ("opensearch-ltr", "elasticsearch-ltr"):
        query = {"sltr": {"model": name, "params": {"query": "{{query}}"}}}
    else:
        return None
    rescore = {"rescore_query": query, "query_weight": 0.0, "rescore_query_weight": 1.0}
    return {"query": {"match": {"title": "{{query}}"}}, "rescore": {"window_size": WINDOW, "query": rescore}}
