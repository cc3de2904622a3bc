"""A live engine: a model is put there, test queries are reranked there, and orders and scores are compared.

Nothing is deleted or overwritten without `replace`. Credentials come from the environment: TRUERANK_ENGINE_USER and
TRUERANK_ENGINE_PASSWORD, or TRUERANK_ENGINE_API_KEY. Every request has a time limit; redirects are not followed.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.certificate import constant_left_out, reference_scores
from truerank.export.form import ModelForm, form_of
from truerank.export.formats import FORMATS, export_model
from truerank.export.painless import write as write_painless

KINDS = ("painless", "ltr", "solr")
_PLACE = "{{query}}"
_NAMED_SCORES = "include_named_queries_score"
_MOST_BYTES = 1 << 28


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Engine:
    """JSON over HTTP with one engine.

    Parameters
    ----------
    url : str
        Address, http or https; of Solr with the collection, `http://host:8983/solr/NAME`.
    timeout : float, default 30
        Seconds for each request.
    """

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.username:
            raise InvalidInputError(
                f"the engine's address must be http://… or https://… without a password in it, got {parts.scheme!r}; "
                "credentials are read from TRUERANK_ENGINE_USER and TRUERANK_ENGINE_PASSWORD"
            )
        if not timeout > 0:
            raise InvalidInputError(f"timeout must be a number of seconds > 0, got {timeout!r}")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def request(self, method: str, path: str, body: Any = None, missing_ok: bool = False) -> Any:
        """The answer as JSON; None for 404 where that is expected."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        _authorise(request)
        try:
            with self._opener.open(request, timeout=self.timeout) as answer:
                content = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as error:
            if error.code == 404 and missing_ok:
                return None
            detail = error.read(2000).decode("utf-8", "replace")
            raise EngineError(f"{method} {self.url}/{path}: status {error.code}: {detail[:600]}") from error
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise EngineError(f"{method} {self.url}/{path}: no answer within {self.timeout:g} s: {reason}") from error
        if len(content) > _MOST_BYTES:
            raise EngineError(f"{method} {self.url}/{path}: the answer has more than {_MOST_BYTES} bytes")
        try:
            return json.loads(content or b"null")
        except ValueError as error:
            raise EngineError(f"{method} {self.url}/{path}: the answer is no JSON") from error


def _authorise(request: urllib.request.Request) -> None:
    key = os.environ.get("TRUERANK_ENGINE_API_KEY")
    user, password = os.environ.get("TRUERANK_ENGINE_USER"), os.environ.get("TRUERANK_ENGINE_PASSWORD")
    if key:
        request.add_header("Authorization", f"ApiKey {key}")
    elif user:
        word = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
        request.add_header("Authorization", f"Basic {word}")


def deploy(
    model: Any,
    url: str,
    name: str,
    *,
    kind: str | None = None,
    feature_names: Sequence[str] | None = None,
    feature_set: str | None = None,
    replace: bool = False,
    timeout: float = 30.0,
) -> dict[str, Any]:
    """Put a model into an engine.

    Parameters
    ----------
    model : fitted ranker
    url : str
    name : str
        Of the stored script or model.
    kind : {"painless", "ltr", "solr"}, optional
        A stored Painless script whose parameters go along with each request (OpenSearch, Elasticsearch, no plugin);
        the LTR plugin's model store, which needs `feature_set`; Solr's model store. By default "solr" for an address
        with /solr/ in it, else "painless".
    feature_names : sequence of str, optional
        What the engine calls the columns.
    feature_set : str, optional
        The LTR plugin's feature set.
    replace : bool, default False
        Overwrite what has this name.
    timeout : float, default 30
        Seconds for each request.

    Returns
    -------
    dict
        "kind", "name", "replaced", and for painless "params".

    Raises
    ------
    EngineError
        When the engine refuses or does not answer.
    InvalidInputError
        When the name is taken and `replace` is False.
    """
    engine = Engine(url, timeout)
    kind = _kind(kind, url, KINDS)
    if not name or any(not (c.isalnum() or c in "-_.") for c in name):
        raise InvalidInputError(f"the name must be of letters, digits, '-', '_' and '.', got {name!r}")
    put = {"painless": _deploy_painless, "ltr": _deploy_ltr, "solr": _deploy_solr}[kind]
    if kind == "ltr" and not feature_set:
        raise InvalidInputError("the LTR plugin keeps models by feature set: pass feature_set (--feature-set)")
    result = put(engine, model, name, feature_names, feature_set or "", replace)
    return {"kind": kind, "name": name, "url": engine.url} | result


def _kind(kind: str | None, url: str, known: tuple[str, ...]) -> str:
    return check_choice(kind or ("solr" if "/solr/" in url else "painless"), "kind", known)


def _taken(name: str, where: str) -> InvalidInputError:
    return InvalidInputError(
        f"{where} already has {name!r}; nothing was changed. Pass replace=True (--replace) to do so"
    )


def _deploy_painless(
    engine: Engine, model: Any, name: str, names: Sequence[str] | None, feature_set: str, replace: bool
) -> dict[str, Any]:
    script = json.loads(export_model(model, "painless", names))["script"]
    there = engine.request("GET", f"_scripts/{name}", missing_ok=True)
    old = there.get("script") if isinstance(there, dict) and there.get("found", True) else None
    same = old is not None and old.get("source") == script["source"]
    if old is not None and not same and not replace:
        raise _taken(name, "the engine's script store")
    if not same:
        engine.request("PUT", f"_scripts/{name}", {"script": {"lang": "painless", "source": script["source"]}})
    return {"replaced": old is not None and not same, "params": script["params"]}


def _deploy_ltr(
    engine: Engine, model: Any, name: str, names: Sequence[str] | None, feature_set: str, replace: bool
) -> dict[str, Any]:
    body = json.loads(export_model(model, "opensearch", names, name=name))
    there = engine.request("GET", f"_ltr/_model/{name}", missing_ok=True)
    found = isinstance(there, dict) and there.get("found", True)
    if found and not replace:
        raise _taken(name, "the LTR plugin's store")
    if found:
        engine.request("DELETE", f"_ltr/_model/{name}")
    engine.request("POST", f"_ltr/_featureset/{urllib.parse.quote(feature_set)}/_createmodel", body)
    return {"replaced": bool(found)}


def _deploy_solr(
    engine: Engine, model: Any, name: str, names: Sequence[str] | None, feature_set: str, replace: bool
) -> dict[str, Any]:
    body = json.loads(export_model(model, "solr", names, name=name))
    if feature_set:
        body["store"] = feature_set
    there = engine.request("GET", "schema/model-store") or {}
    found = any(own.get("name") == name for own in there.get("models", []))
    if found and not replace:
        raise _taken(name, "Solr's model store")
    if found:
        engine.request("DELETE", f"schema/model-store/{name}")
    engine.request("PUT", "schema/model-store", body)
    return {"replaced": found}


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


def log_features(
    engine: Engine, index: str, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray, float]:
    """Documents of a query's base ranking, the engine's scores of each named query (n, p), and the time it took.

    A document that a named query does not match has 0. `queries` is {"base": query, "features": {name: query}}, with
    {{query}} where the text goes. Engines before OpenSearch 2.11 and Elasticsearch 8.8 give no scores of named queries;
    they are asked once more for each feature.
    """
    base = _filled(queries["base"], text)
    features = {name: _filled(queries["features"][name], text) for name in names}
    body: dict[str, Any] = {"size": window, "_source": False, "docvalue_fields": [key]}
    should = [{"bool": {"must": [query], "_name": name}} for name, query in features.items()]
    named = body | {"query": {"bool": {"must": [base], "should": [{"bool": {"should": should, "boost": 0.0}}]}}}
    try:
        answer = engine.request("POST", f"{index}/_search?{_NAMED_SCORES}=true", named)
        found, *_ = _hits(answer, key)
        scores = [hit.get("matched_queries", {}) for hit in answer["hits"]["hits"]]
    except EngineError as error:
        if _NAMED_SCORES not in str(error).partition(": status 400: ")[2]:
            raise
        answer = engine.request("POST", f"{index}/_search", body | {"query": base})
        found, *_ = _hits(answer, key)
        scores = [{} for _ in found]
        for name, query in features.items():
            asked = body | {"query": {"bool": {"must": [query], "filter": [{"terms": {key: found}}]}}}
            documents, values, _ = _hits(engine.request("POST", f"{index}/_search", asked), key)
            for document, value in zip(documents, values.tolist()):
                scores[found.index(document)][name] = value
    rows = [[float(own.get(name, 0.0)) for name in names] for own in scores]
    return found, np.array(rows).reshape(len(found), len(names)), float(answer["took"])


def _filled(query: Any, text: str) -> Any:
    if isinstance(query, str):
        return query.replace(_PLACE, text)
    if isinstance(query, dict):
        return {name: _filled(part, text) for name, part in query.items()}
    if isinstance(query, list):
        return [_filled(part, text) for part in query]
    return query


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
    timeout: float = 30.0,
) -> Verification:
    """Rerank queries with a deployed model, and compare with ours on the features that the engine logs.

    Each query is asked three times: with the features of the first `window` documents logged, as it is, and reranked. A
    Painless script finds the features of named queries in its parameters; Solr computes them itself, by the feature
    store of its LTR module. Nothing is changed there.

    Parameters
    ----------
    model : fitted ranker
    url, name : str
        Engine (Solr's with the collection), and stored script or model.
    index : str or None
        Index to search; None for Solr.
    queries : dict
        With {{query}} where the text goes. For Painless {"base": query, "features": {name: query}}; for Solr
        {"base": {"q": …, other parameters}, "efi": {name: text}, "store": feature store}, the last two as the features
        need them.
    texts : sequence of str
        Test queries.
    kind : {"painless", "solr"}, optional
        As in `deploy`.
    key : str, default "id"
        A keyword field that identifies a document.
    window : int, default 200
        Documents that are rescored.
    feature_names : sequence of str, optional
        As in `deploy`.
    timeout : float, default 30
        Seconds for each request.

    Raises
    ------
    EngineError
        When the engine refuses, does not answer, or logs other features than the model's.
    """
    engine = Engine(url, timeout)
    kind = _kind(kind, url, ("painless", "solr"))
    form = form_of(model, feature_names, calibrated=kind == "painless")
    lacking = [own for own in form.names if own not in queries.get("features", {})] if kind == "painless" else []
    if lacking or "base" not in queries:
        raise InvalidInputError(f"the queries lack {lacking[:5] or 'base'}; they need base and one for each feature")
    if kind == "painless" and not index:
        raise InvalidInputError("an index to search must be named (--index)")
    equal = documents = largest_request = 0
    difference, plain, rescored = 0.0, [], []
    shift = -constant_left_out(form, "solr", FORMATS["solr"])
    for text in texts:
        if kind == "solr":
            found, rows, took = _logged_by_solr(engine, queries, form.names, text, window, key)
        else:
            found, rows, took = log_features(engine, str(index), queries, form.names, text, window, key)
        if not found:
            equal += 1
            continue
        scores = reference_scores(form, rows)
        if kind == "solr":
            answer, size = _reranked_by_solr(engine, name, queries, text, window, key)
        else:
            base = {"size": window, "_source": False, "query": _filled(queries["base"], text)}
            took = float(engine.request("POST", f"{index}/_search", base)["took"])
            body, shift = _rescoring(form, name, queries, text, window, key, found, rows, float(scores.min()))
            answer, size = _hits(engine.request("POST", f"{index}/_search", body), key), len(json.dumps(body))
        plain.append(took)
        rescored.append(answer[2])
        largest_request = max(largest_request, size)
        place = {document: i for i, document in enumerate(found)}
        order = np.array([place[document] for document in answer[0]])
        ours = scores[order]
        difference = max(difference, float(np.abs(answer[1] - shift - ours).max()))
        rounded = (ours + shift).astype(np.float32)
        equal += int(len(order) == len(found) and bool((rounded[1:] <= rounded[:-1]).all()))
        documents += len(found)
    middle = [float(np.median(times)) if times else 0.0 for times in (plain, rescored)]
    return Verification(len(texts), documents, equal, difference, middle[0], middle[1], largest_request)


_Ranked = tuple[list[str], np.ndarray, float]


def _hits(answer: Any, key: str) -> _Ranked:
    """Documents and scores of OpenSearch's answer, and the milliseconds that it states."""
    hits = answer["hits"]["hits"]
    return (
        [str(hit["fields"][key][0]) for hit in hits], np.array([float(hit["_score"]) for hit in hits]),
        float(answer["took"]),
    )  # fmt: skip


def _solr_request(queries: dict[str, Any], text: str, window: int) -> tuple[dict[str, Any], str]:
    """Parameters of the base query, with those that features refer to, and the local parameters that name these."""
    efi = _filled(queries.get("efi", {}), text)
    params = _filled(queries["base"], text) | {"rows": window, "wt": "json"}
    if "q" not in params:
        raise InvalidInputError("the base query of Solr must be an object of request parameters with q")
    params |= {f"truerank.{name}": value for name, value in efi.items()}
    return params, " ".join(f"efi.{name}=$truerank.{name}" for name in efi)


def _logged_by_solr(
    engine: Engine, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray, float]:
    """Documents of the base ranking, the features that Solr logs (n, p), and the time of the query without them."""
    params, efi = _solr_request(queries, text, window)
    took = float(engine.request("POST", "select", {"params": params | {"fl": key}})["responseHeader"]["QTime"])
    store = f"store={queries['store']} " if queries.get("store") else ""
    fields = f"{key},truerank_logged:[features {store}format=dense {efi}]"
    answer = engine.request("POST", "select", {"params": params | {"fl": fields}})
    documents, rows = [], []
    for own in answer["response"]["docs"]:
        values = dict(part.rpartition("=")[::2] for part in str(own.get("truerank_logged", "")).split(",") if part)
        lacking = [name for name in names if name not in values]
        if lacking:
            raise EngineError(
                f"Solr logs no feature {lacking[0]!r}; put it into the feature store (schema/feature-store), or name "
                "the model's columns as there (--features)"
            )
        documents.append(str(own[key]))
        rows.append([float(values[name]) for name in names])
    return documents, np.array(rows).reshape(len(rows), len(names)), took


def _reranked_by_solr(
    engine: Engine, name: str, queries: dict[str, Any], text: str, window: int, key: str
) -> tuple[_Ranked, int]:
    """Documents, scores and time of `{!ltr}`, and the bytes of the request."""
    params, efi = _solr_request(queries, text, window)
    params |= {"fl": f"{key},score", "rq": f"{{!ltr model={name} reRankDocs={window} {efi}}}"}
    answer = engine.request("POST", "select", {"params": params})
    found = answer["response"]["docs"]
    ranked = [str(own[key]) for own in found], np.array([float(own["score"]) for own in found])
    return (*ranked, float(answer["responseHeader"]["QTime"])), len(json.dumps({"params": params}))


def _rescoring(
    form: ModelForm, name: str, queries: dict[str, Any], text: str, window: int, key: str, found: list[str],
    rows: np.ndarray, least: float,
) -> tuple[dict[str, Any], float]:  # fmt: skip
    """The request that rescores `window` documents, and the shift of its scores."""
    params = json.loads(write_painless(form, name, False, least))["script"]["params"]
    params |= {"table": dict(zip(found, rows.tolist())), "key": key}
    script = {"id": name, "params": params}
    body = {
        "size": window, "_source": False, "docvalue_fields": [key], "query": _filled(queries["base"], text),
        "rescore": {"window_size": window, "query": {
            "rescore_query": {"script_score": {"query": {"match_all": {}}, "script": script}},
            "query_weight": 0.0, "rescore_query_weight": 1.0,
        }},
    }  # fmt: skip
    return body, float(params["shift"])
