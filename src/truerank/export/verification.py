"""Rerank test queries with a model in a live engine, and compare orders and scores, without changing the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import EngineError, InvalidInputError, Remedy
from truerank.core.printing import shown
from truerank.core.types import Scorer
from truerank.export.certificate import constant_left_out, ties
from truerank.export.compared_rows import reference_scores
from truerank.export.deployment import kind_of, rescored
from truerank.export.form import ModelForm, form_of
from truerank.export.formats import FORMATS
from truerank.export.painless import write as write_painless
from truerank.io.engine import Engine, filled, told
from truerank.io.engine_features import (
    NAMED_SCORES,
    check_unique,
    dense_values,
    logged_values,
    logging_by_plugin,
    named_scores,
    select,
)


@dataclass(frozen=True)
class Verification:
    """The comparison of a live engine with the model on test queries.

    Attributes
    ----------
    queries, documents : int
        Numbers of compared queries and documents.
    empty : int
        Further queries that found no document.
    orders_equal : int
        Queries whose documents came in the model's order; tied documents may come in any order.
    neighbours, ties_made : int
        Neighbours with different scores in the model, and how many of them tie in the engine's float32.
    tied : float
        Share of documents that tie with another one in float32.
    largest_difference : float
        Largest difference between the engine's scores, without the shift, and the model's on the logged features.
    largest_score : float
        The largest magnitude of the scores, with and without the shift.
    tolerance : float
        The largest accepted `share`.
    took_base, took_rescored : float
        Median milliseconds of a query as the engine reports them, without and with the model.
    request_bytes : int
        Size of the largest rescoring request.
    rankings : dict of str to dict
        The engine's scores by query and document, as "without-NAME" and "with-NAME" of the model.
    """

    queries: int
    documents: int
    empty: int
    orders_equal: int
    neighbours: int
    ties_made: int
    tied: float
    largest_difference: float
    largest_score: float
    tolerance: float
    took_base: float
    took_rescored: float
    request_bytes: int
    rankings: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict, repr=False)

    @property
    def share(self) -> float:
        """Largest difference as a share of the largest score, 0 without a difference."""
        return self.largest_difference and self.largest_difference / (self.largest_score or 5e-324)

    @property
    def says_order(self) -> bool:
        """Whether the model has neighbours with different scores, and at least half of them differ in the engine."""
        return 0 < self.neighbours >= 2 * self.ties_made

    @property
    def passed(self) -> bool:
        """Whether all orders are equal, `share` is at most `tolerance`, and `says_order` is true."""
        return self.says_order and self.orders_equal == self.queries and self.share <= self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict for JSON, without the rankings."""
        own = {name: value for name, value in vars(self).items() if name != "rankings"}
        return own | {"share": self.share, "says_order": self.says_order, "passed": self.passed}


def verify(
    model: Scorer,
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
    tolerance: float = 1e-5,
    timeout: float = 30.0,
) -> Verification:
    """Rerank queries with a deployed model, and compare its scores with truerank's on the engine's logged features.

    Each query is sent three times: with logging of the features of the first `window` documents, unchanged, and
    reranked. A Painless script receives the scores of named queries as parameters. The LTR plugin and Solr compute
    features from the queries of their feature stores. Nothing is changed in the engine.

    Parameters
    ----------
    model : fitted ranker
    url, name : str
        Address of the engine (for Solr with the collection), and name of the stored script or model.
    index : str or None
        Index to search; None for Solr.
    queries : dict
        Requests with {{query}} in place of the text. Painless: {"base": query, "features": {name: query}}. LTR plugin:
        {"base": query, "params": {name: text}} with the parameters of its features. Solr: {"base": {"q": …}} with
        other parameters, and "efi": {name: text} and "store": feature store if the features need them.
    texts : sequence of str
        Test queries.
    kind, feature_names
        As in `deploy`.
    key : str, default "id"
        A keyword field that identifies a document.
    window : int, default 200
        Documents that are rescored.
    times : float, default 1
        The factor of the engine's scores that `deploy` returned.
    tolerance : float, default 1e-5
        Largest accepted share, see `Verification`. Engines compute in float32.
    timeout : float, default 30
        Seconds for each request.

    Raises
    ------
    EngineError
        If the engine refuses, does not answer, or logs other features than the model's; or if not every document can
        be compared: no query finds a document, an answer repeats a document, or two answers to a query differ.
    InvalidInputError
        If `queries` lacks a part that this kind of engine needs.
    """
    check_number(times, "times", "(0, inf)")
    check_number(tolerance, "tolerance", "[0, 1]")
    engine, kind = Engine(url, timeout), kind_of(kind, url)
    form = form_of(model, feature_names, calibrated=kind == "painless")
    _check_queries(kind, queries, form.names, index)
    way = _WAYS[kind](engine, form, name, str(index), queries, window, key)
    compared: list[tuple[Any, ...]] = []
    rankings: dict[str, dict[str, dict[str, float]]] = {f"without-{name}": {}, f"with-{name}": {}}
    for text in texts:
        found, rows = way.logged(text)
        if found:
            *row, base, ranked = _compared(way, text, found, rows, reference_scores(form, rows), times)
            compared.append(tuple(row))
            for ranking, answer in zip(rankings.values(), (base, ranked)):
                ranking[text] = answer.as_dict()
    if not compared:
        raise EngineError(f"{engine.url}: none of the {len(texts)} queries found a document. Pass other queries")
    documents, in_orders, neighbours, kept, tied, differences, scales, took_base, took, sizes = zip(*compared)
    difference, largest = float(np.max(differences)), float(np.max(scales))  # nan where one is
    if not np.isfinite(difference + largest):
        raise EngineError(f"{engine.url}: some scores are not finite or overflow, and cannot be compared")
    return Verification(
        queries=len(compared),
        documents=sum(documents),
        empty=len(texts) - len(compared),
        orders_equal=sum(in_orders),
        neighbours=sum(neighbours),
        ties_made=max(sum(neighbours) - sum(kept), 0),
        tied=sum(tied) / sum(documents),
        largest_difference=difference,
        largest_score=largest,
        tolerance=tolerance,
        took_base=float(np.median(took_base)),
        took_rescored=float(np.median(took)),
        request_bytes=max(sizes),
        rankings=rankings,
    )


def _check_queries(kind: str, queries: dict[str, Any], names: Sequence[str], index: str | None) -> None:
    """Raise an error if the requests lack a part that this kind of engine requires."""
    if kind == "solr":
        if "q" not in queries.get("base", {}):
            raise InvalidInputError(
                "queries has no parameter q in its base query, which Solr requires. "
                'Pass queries={"base": {"q": "{{query}}"}} or one with further parameters',
                argument="queries",
            )
        return
    lacking = [own for own in names if own not in queries.get("features", {})] if kind == "painless" else []
    if lacking:
        raise InvalidInputError(
            f'queries["features"] lacks {lacking[:5]}. Pass a query for each feature of the model', argument="queries"
        )
    if "base" not in queries:
        raise InvalidInputError("queries has no base query. Pass queries={'base': {'match': {...}}, ...}")
    if not index:
        raise InvalidInputError("the index to search is missing", argument="index", remedies=[Remedy(index=...)])


def _compared(way: Any, text: str, found: Any, rows: np.ndarray, scores: np.ndarray, times: float) -> tuple[Any, ...]:
    """Compare the scores (n,) of the documents of a query with the engine's; the columns are named in `verify`."""
    ranked, shift, size = way.reranked(text, found, rows, scores)
    base = way.base(text)
    for answer in (ranked, base):
        _check_same(found, answer.documents, text)
    place = {document: i for i, document in enumerate(found)}
    ours = scores[[place[document] for document in ranked.documents]]
    rounded = ((ours + shift) * times).astype(np.float32)
    in_order = bool((rounded[1:] <= rounded[:-1]).all())
    different, _ = ties(ours, [0, len(ours)])
    still, alike = ties(rounded, [0, len(rounded)])
    off = np.abs(ranked.scores / times - shift - ours).max()
    most = max(np.abs(ours).max(), np.abs(ours + shift).max())
    return len(found), in_order, different, still, alike, off, most, base.took, ranked.took, size, base, ranked


def _check_same(found: list[str], others: list[str], text: str) -> None:
    """Raise an error if two answers to one query contain different documents."""
    odd = set(found) ^ set(others)
    if odd:
        raise EngineError(
            f"two answers to the query {shown(text)[:80]!r} differ in {len(odd)} documents, such as "
            f"{told(min(odd), 80)!r}, so that not all were compared. Rescoring works by shard",
            remedies=[
                "verify an index of one shard into which nothing is written meanwhile",
                Remedy("of at least the number of hits", window=...),
            ],
            code="answers-differ",
        )


class _Ranked(NamedTuple):
    """Documents and scores of an answer, and the milliseconds that the engine reports (nan if it reports none)."""

    documents: list[str]
    scores: np.ndarray
    took: float

    def as_dict(self) -> dict[str, float]:
        return dict(zip(self.documents, self.scores.tolist()))


@dataclass
class _Way:
    """One model in one kind of engine: answers with and without it, and logged documents with features (n, p).

    `reranked` returns the reranked documents, the shift of their scores and the bytes of the request.
    """

    engine: Engine
    form: ModelForm
    name: str
    index: str
    queries: dict[str, Any]
    window: int
    key: str

    def shift(self, format: str) -> float:
        """Return the constant that the engine's scores have in addition to the model's."""
        return -constant_left_out(self.form, format, FORMATS[format])


class _Search(_Way):
    def _body(self, text: str) -> dict[str, Any]:
        base = filled(self.queries["base"], {"query": text})
        return {"size": self.window, "_source": False, "docvalue_fields": [self.key], "query": base}

    def base(self, text: str) -> _Ranked:
        return _asked(self.engine, self.index, self._body(text), self.key)[0]

    def _rescored(self, text: str, query: dict[str, Any]) -> tuple[_Ranked, int]:
        body = rescored(self._body(text), query, self.window)
        return _asked(self.engine, self.index, body, self.key)[0], len(json.dumps(body))


class _Painless(_Search):
    """A stored script, which finds the features in its parameters."""

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        return log_features(self.engine, self.index, self.queries, self.form.names, text, self.window, self.key)

    def reranked(self, text: str, found: list[str], rows: np.ndarray, scores: np.ndarray) -> tuple[_Ranked, float, int]:
        params = json.loads(write_painless(self.form, self.name, "decimal", float(scores.min())))["script"]["params"]
        params |= {"table": dict(zip(found, rows.tolist())), "key": self.key}
        script = {"id": self.name, "params": params}
        ranked, size = self._rescored(text, {"script_score": {"query": {"match_all": {}}, "script": script}})
        return ranked, float(params["shift"]), size


class _Plugin(_Search):
    """A model in the LTR plugin's store, asked by an `sltr` query."""

    def _asked(self, text: str) -> dict[str, Any]:
        return {"model": self.name, "params": filled(self.queries.get("params", {}), {"query": text})}

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        used = self.form.used
        names = [self.form.names[k] for k in used]
        found, logged = logged_by_plugin(self.engine, self.index, self._body(text), self._asked(text), names)
        rows = np.zeros((len(found), self.form.n_features))
        rows[:, used] = logged
        return found, rows

    def reranked(self, text: str, *_: Any) -> tuple[_Ranked, float, int]:
        ranked, size = self._rescored(text, {"sltr": self._asked(text)})
        return ranked, self.shift("opensearch-ltr"), size


class _Solr(_Way):
    def base(self, text: str) -> _Ranked:
        return self._ask(_solr_request(self.queries, text, self.window)[0])

    def _ask(self, params: dict[str, Any]) -> _Ranked:
        found, took = select(self.engine, params | {"fl": f"{self.key},score"}, {self.key: None, "score": float})
        names = _keys([own[self.key] for own in found], self.key)
        return _Ranked(names, np.array([float(own["score"]) for own in found]), took)

    def logged(self, text: str) -> tuple[list[str], np.ndarray]:
        return logged_by_solr(self.engine, self.queries, self.form.names, text, self.window, self.key)

    def reranked(self, text: str, *_: Any) -> tuple[_Ranked, float, int]:
        params, efi = _solr_request(self.queries, text, self.window)
        params["rq"] = f"{{!ltr model={self.name} reRankDocs={self.window} {efi}}}"
        return self._ask(params), self.shift("solr"), len(json.dumps({"params": params}))


_WAYS: dict[str, Any] = {"painless": _Painless, "ltr": _Plugin, "solr": _Solr}


def log_features(
    engine: Engine, index: str, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray]:
    """Documents of a query's base ranking, and the engine's scores of each named query (n, p).

    A document that a named query does not match has 0. `queries` is {"base": query, "features": {name: query}}, with
    {{query}} in place of the text. OpenSearch 2.12 or Elasticsearch 8.8 is required.
    """
    words = {"query": text}
    base = filled(queries["base"], words)
    features = {name: filled(queries["features"][name], words) for name in names}
    body: dict[str, Any] = {"size": window, "_source": False, "docvalue_fields": [key]}
    should = [{"bool": {"must": [query], "_name": name}} for name, query in features.items()]
    named = body | {"query": {"bool": {"must": [base], "should": [{"bool": {"should": should, "boost": 0.0}}]}}}
    ranked, hits = _asked(engine, index, named, key, NAMED_SCORES)
    rows = [[named_scores(hit).get(name, 0.0) for name in names] for hit in hits]
    return ranked.documents, np.array(rows).reshape(len(rows), len(names))


def logged_by_plugin(
    engine: Engine, index: str, body: dict[str, Any], features: dict[str, Any], names: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Return the documents of a request of one field, and the features that the LTR plugin logs for them (n, p).

    `features` names a model or a feature set, and the parameters of its queries.
    """
    key = body["docvalue_fields"][0]
    ranked, hits = _asked(engine, index, body | logging_by_plugin(body["query"], features), key)
    rows = [list(logged_values(hit, names).values()) for hit in hits]
    return ranked.documents, np.array(rows).reshape(len(rows), len(names))


def logged_by_solr(
    engine: Engine, queries: dict[str, Any], names: Sequence[str], text: str, window: int, key: str
) -> tuple[list[str], np.ndarray]:
    """Return the documents of a query's base ranking, and the features that Solr logs for them (n, p)."""
    params, efi = _solr_request(queries, text, window)
    store = f"store={queries['store']} " if queries.get("store") else ""
    fields = f"{key},truerank_logged:[features {store}format=dense {efi}]"
    found, _ = select(engine, params | {"fl": fields}, {key: None, "truerank_logged?": str})
    rows = [list(dense_values(own.get("truerank_logged", ""), names).values()) for own in found]
    return _keys([own[key] for own in found], key), np.array(rows).reshape(len(rows), len(names))


def _solr_request(queries: dict[str, Any], text: str, window: int) -> tuple[dict[str, Any], str]:
    """Return the parameters of the base query and of the features, and the local parameters that refer to them."""
    words = {"query": text}
    efi = filled(queries.get("efi", {}), words)
    params = filled(queries["base"], words) | {"rows": window, "wt": "json"}
    params |= {f"truerank.{name}": value for name, value in efi.items()}
    return params, " ".join(f"efi.{name}=$truerank.{name}" for name in efi)


def _keys(values: list[Any], key: str) -> list[str]:
    names = []
    for value in values:
        one = value[0] if isinstance(value, list) and len(value) == 1 else value
        if type(one) not in (str, int):
            raise EngineError(f"a document's {key!r} must be one text or integer, got {told(json.dumps(value), 80)}")
        names.append(str(one))
    check_unique(names)
    return names


def _asked(
    engine: Engine, index: str, body: dict[str, Any], key: str, parameters: str = ""
) -> tuple[_Ranked, list[Any]]:
    """Return the documents, scores and time of the answer of OpenSearch or Elasticsearch, and its hits."""
    hits, took = engine.search(index, body, {"fields": {key: None}, "_score": float}, parameters)
    names = _keys([hit["fields"][key] for hit in hits], key)
    return _Ranked(names, np.array([float(hit["_score"]) for hit in hits]), took), hits
