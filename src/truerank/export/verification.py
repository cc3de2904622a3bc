"""Test queries are reranked by a model in a live engine; orders and scores are compared. Nothing is changed there."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.certificate import constant_left_out, reference_scores
from truerank.export.deployment import kind_of
from truerank.export.form import ModelForm, form_of
from truerank.export.formats import FORMATS
from truerank.export.painless import write as write_painless
from truerank.io.engine import Engine, filled
from truerank.io.engine_features import dense_values, logged_values, logging_by_plugin

_NAMED_SCORES = "include_named_queries_score"


@dataclass(frozen=True)
class Verification:
    """What a live engine did with test queries.

    Attributes
    ----------
    queries, documents : int
    orders_equal : int
        Queries whose documents came in the model's order (equal scores in any).
    largest_difference : float
        Of the engine's scores, less the shift, from the model's on the features that the engine logged.
    took_base, took_rescored : float
        Median milliseconds of a query that the engine states, without and with the model.
    request_bytes : int
        Of the largest rescoring request.
    """

    queries: int
    documents: int
    orders_equal: int
    largest_difference: float
    took_base: float
    took_rescored: float
    request_bytes: int

    def as_dict(self) -> dict[str, Any]:
        """As a dict, for JSON."""
        return asdict(self)


def verify(
    model: Any,
    url: str,
    name: str,
    index: str | None,
    queries: dict[str, Any],
    texts: Sequence[str],
    *,
    kind: str | None = None,
    key: str = "id",
    window: int = 200,
    feature_names: Sequence[str] | None = None,
    times: float = 1.0,
    timeout: float = 30.0,
) -> Verification:
    """Rerank queries with a deployed model, and compare with ours on the features that the engine logs.

    Each query is asked three times: with the features of the first `window` documents logged, as it is, and reranked. A
    Painless script finds the features of named queries in its parameters; the LTR plugin and Solr compute them
    themselves, by the queries of their feature stores, and log them. Nothing is changed there.

    Parameters
    ----------
    model : fitted ranker
    url, name : str
        Engine (Solr's with the collection), and stored script or model.
    index : str or None
        Index to search; None for Solr.
    queries : dict
        With {{query}} where the text goes. For Painless {"base": query, "features": {name: query}}; for the LTR plugin
        {"base": query, "params": {name: text}} with the parameters of its features; for Solr
        {"base": {"q": …, other parameters}, "efi": {name: text}, "store": feature store}, the last two as the features
        need them.
    texts : sequence of str
        Test queries.
    kind : {"painless", "ltr", "solr"}, optional
        As in `deploy`.
    key : str, default "id"
        A keyword field that identifies a document.
    window : int, default 200
        Documents that are rescored.
    feature_names : sequence of str, optional
        As in `deploy`.
    times : float, default 1
        What `deploy` said that the engine's scores are multiplied by.
    timeout : float, default 30
        Seconds for each request.

    Raises
    ------
    EngineError
        When the engine refuses, does not answer, or logs other features than the model's.
    InvalidInputError
        When `queries` lacks what this kind of engine needs.
    """
    engine = Engine(url, timeout)
    way = _WAYS[kind_of(kind, url)](engine, model, name, index, queries, feature_names, window, key)
    equal = documents = largest_request = 0
    difference, plain, rescored = 0.0, [], []
    for text in texts:
        found, rows = way.logged(text)
        if not found:
            equal += 1
            continue
        scores = reference_scores(way.form, rows)
        ranked, shift, size = way.reranked(text, found, rows, scores)
        plain.append(way.base_time(text))
        rescored.append(ranked.took)
        largest_request = max(largest_request, size)
        place = {document: i for i, document in enumerate(found)}
        ours = scores[[place[document] for document in ranked.documents]]
        difference = max(difference, float(np.abs(ranked.scores / times - shift - ours).max()))
        rounded = ((ours + shift) * times).astype(np.float32)
        equal += int(len(ours) == len(found) and bool((rounded[1:] <= rounded[:-1]).all()))
        documents += len(found)
    middle = [float(np.median(own)) if own else 0.0 for own in (plain, rescored)]
    return Verification(len(texts), documents, equal, difference, middle[0], middle[1], largest_request)


@dataclass(frozen=True)
class _Ranked:
    """Documents and scores of an answer, and the milliseconds that the engine states."""

    documents: list[str]
    scores: np.ndarray
    took: float


class _Way:
    """One kind of engine at work on one model; `check` refuses queries that lack a part."""

    kind: str

    def __init__(
        self, engine: Engine, model: Any, name: str, index: str | None, queries: dict[str, Any],
        feature_names: Sequence[str] | None, window: int, key: str,
    ) -> None:  # fmt: skip
        self.form: ModelForm = form_of(model, feature_names, calibrated=self.kind == "painless")
        self.engine, self.name, self.index, self.queries = engine, name, index, queries
        self.window, self.key = window, key
        self.check()

    def check(self) -> None:
        """Refuse queries that lack a part."""
        raise NotImplementedError


class _Search(_Way):
    """OpenSearch or Elasticsearch: what their two ways of rescoring share."""

    def check(self) -> None:
        if "base" not in self.queries:
            raise InvalidInputError("the queries lack base; they need base and what the features need")
        if not self.index:
            raise InvalidInputError("an index to search must be named (--index)")

    def _body(self, text: str) -> dict[str, Any]:
        base = filled(self.queries["base"], {"query": text})
        return {"size": self.window, "_source": False, "docvalue_fields": [self.key], "query": base}

    def _ask(self, body: dict[str, Any]) -> _Ranked:
        return _asked(self.engine, str(self.index), body, self.key)[0]

    def base_time(self, text: str) -> float:
        """Milliseconds of the query without the model."""
        return self._ask(self._body(text)).took

    def _rescored(self, text: str, query: dict[str, Any]) -> tuple[_Ranked, int]:
        rescore = {"rescore_query": query, "query_weight": 0.0, "rescore_query_weight": 1.0}
        body = self._body(text) | {"rescore": {"window_size": self.window, "query": rescore}}
        return self._ask(body), len(json.dumps(body))


class _Painless(_Search):
    """A stored script, which finds the features in its parameters."""

    kind = "painless"

    def check(self) -> None:
        lacking = [own for own in self.form.names if own not in self.queries.get("features", {})]
        if lacking:
            raise InvalidInputError(f"the queries lack {lacking[:5]}; they need base and one for each feature")
        super().check()

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        """Documents of the base ranking, and their features (n, p)."""
        return log_features(self.engine, str(self.index), self.queries, self.form.names, text, self.window, self.key)

    def reranked(self, text: str, found: list[str], rows: np.ndarray, scores: np.ndarray) -> tuple[_Ranked, float, int]:
        """The reranked documents, the shift of their scores, and the bytes of the request."""
        params = json.loads(write_painless(self.form, self.name, False, float(scores.min())))["script"]["params"]
        params |= {"table": dict(zip(found, rows.tolist())), "key": self.key}
        script = {"id": self.name, "params": params}
        ranked, size = self._rescored(text, {"script_score": {"query": {"match_all": {}}, "script": script}})
        return ranked, float(params["shift"]), size


class _Plugin(_Search):
    """A model in the LTR plugin's store, asked by an `sltr` query."""

    kind = "ltr"

    def _asked(self, text: str) -> dict[str, Any]:
        return {"model": self.name, "params": filled(self.queries.get("params", {}), {"query": text})}

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        """Documents of the base ranking, and their features (n, p)."""
        used = self.form.used
        names = [self.form.names[k] for k in used]
        found, logged = logged_by_plugin(self.engine, str(self.index), self._body(text), self._asked(text), names)
        rows = np.zeros((len(found), self.form.n_features))
        rows[:, used] = logged
        return found, rows

    def reranked(self, text: str, *_: Any) -> tuple[_Ranked, float, int]:
        """The reranked documents, the shift of their scores, and the bytes of the request."""
        ranked, size = self._rescored(text, {"sltr": self._asked(text)})
        return ranked, -constant_left_out(self.form, "opensearch", FORMATS["opensearch"]), size


class _Solr(_Way):
    """A model in Solr's store, asked by `{!ltr}`."""

    kind = "solr"

    def check(self) -> None:
        if "q" not in self.queries.get("base", {}):
            raise InvalidInputError("the base query of Solr must be an object of request parameters with q")

    def base_time(self, text: str) -> float:
        """Milliseconds of the query without the model."""
        return _selected(self.engine, _solr_request(self.queries, text, self.window)[0] | {"fl": self.key})[1]

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        """Documents of the base ranking, and their features (n, p)."""
        return logged_by_solr(self.engine, self.queries, self.form.names, text, self.window, self.key)

    def reranked(self, text: str, *_: Any) -> tuple[_Ranked, float, int]:
        """The reranked documents, the shift of their scores, and the bytes of the request."""
        params, efi = _solr_request(self.queries, text, self.window)
        rerank = f"{{!ltr model={self.name} reRankDocs={self.window} {efi}}}"
        params |= {"fl": f"{self.key},score", "rq": rerank}
        found, took = _selected(self.engine, params)
        scores = np.array([float(own["score"]) for own in found])
        shift = -constant_left_out(self.form, "solr", FORMATS["solr"])
        return _Ranked([str(own[self.key]) for own in found], scores, took), shift, len(json.dumps({"params": params}))


_WAYS: dict[str, Any] = {"painless": _Painless, "ltr": _Plugin, "solr": _Solr}


def log_features(
    engine: Engine, index: str, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray]:
    """Documents of a query's base ranking, and the engine's scores of each named query (n, p).

    A document that a named query does not match has 0. `queries` is {"base": query, "features": {name: query}}, with
    {{query}} where the text goes. Engines before OpenSearch 2.11 and Elasticsearch 8.8 refuse to give scores of named
    queries, or list their names alone; they are asked once more for each feature.
    """
    words = {"query": text}
    base = filled(queries["base"], words)
    features = {name: filled(queries["features"][name], words) for name in names}
    body: dict[str, Any] = {"size": window, "_source": False, "docvalue_fields": [key]}
    should = [{"bool": {"must": [query], "_name": name}} for name, query in features.items()]
    named = body | {"query": {"bool": {"must": [base], "should": [{"bool": {"should": should, "boost": 0.0}}]}}}
    scores: list[dict[str, float]] | None = None
    try:
        ranked, hits = _asked(engine, index, named, key, f"?{_NAMED_SCORES}=true")
        matched = [hit.get("matched_queries", {}) for hit in hits]
        if all(isinstance(own, dict) for own in matched):
            found, scores = ranked.documents, matched
    except EngineError as error:
        if _NAMED_SCORES not in str(error).partition(": status 400: ")[2]:
            raise
    if scores is None:
        found = _asked(engine, index, body | {"query": base}, key)[0].documents
        scores = [{} for _ in found]
        for name, query in features.items():
            one = body | {"query": {"bool": {"must": [query], "filter": [{"terms": {key: found}}]}}}
            ranked, _ = _asked(engine, index, one, key)
            for document, value in zip(ranked.documents, ranked.scores.tolist()):
                scores[found.index(document)][name] = value
    rows = [[float(own.get(name, 0.0)) for name in names] for own in scores]
    return found, np.array(rows).reshape(len(found), len(names))


def logged_by_plugin(
    engine: Engine, index: str, body: dict[str, Any], features: dict[str, Any], names: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Documents of a request of one field, and the features that the LTR plugin logs for them (n, p).

    `features` names a model or a feature set, and the parameters of its queries.
    """
    key = body["docvalue_fields"][0]
    ranked, hits = _asked(engine, index, body | logging_by_plugin(body["query"], features), key)
    rows = [list(logged_values(hit, names).values()) for hit in hits]
    return ranked.documents, np.array(rows).reshape(len(rows), len(names))


def logged_by_solr(
    engine: Engine, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray]:
    """Documents of a query's base ranking, and the features that Solr logs for them (n, p)."""
    params, efi = _solr_request(queries, text, window)
    store = f"store={queries['store']} " if queries.get("store") else ""
    fields = f"{key},truerank_logged:[features {store}format=dense {efi}]"
    found, _ = _selected(engine, params | {"fl": fields})
    rows = [list(dense_values(str(own.get("truerank_logged", "")), names).values()) for own in found]
    return [str(own[key]) for own in found], np.array(rows).reshape(len(rows), len(names))


def _solr_request(queries: dict[str, Any], text: str, window: int) -> tuple[dict[str, Any], str]:
    """Parameters of the base query, with those that features refer to, and the local parameters that name these."""
    words = {"query": text}
    efi = filled(queries.get("efi", {}), words)
    params = filled(queries["base"], words) | {"rows": window, "wt": "json"}
    params |= {f"truerank.{name}": value for name, value in efi.items()}
    return params, " ".join(f"efi.{name}=$truerank.{name}" for name in efi)


def _selected(engine: Engine, params: dict[str, Any]) -> tuple[list[Any], float]:
    """Solr's documents, and the milliseconds that it states."""
    answer = engine.request("POST", "select", {"params": params})
    return answer["response"]["docs"], float(answer["responseHeader"]["QTime"])


def _asked(
    engine: Engine, index: str, body: dict[str, Any], key: str, parameters: str = ""
) -> tuple[_Ranked, list[Any]]:
    """OpenSearch's answer: documents, scores and time, and the hits themselves."""
    answer = engine.request("POST", f"{urllib.parse.quote(index)}/_search{parameters}", body)
    hits = answer["hits"]["hits"]
    names = [str(hit["fields"][key][0]) for hit in hits]
    return _Ranked(names, np.array([float(hit["_score"]) for hit in hits]), float(answer["took"])), hits
