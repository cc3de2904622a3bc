"""Put models into live engines; an old model is replaced only with `replace`, after a copy to a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from truerank.core.checks import check_choice
from truerank.core.errors import EngineError, InvalidInputError, Remedy
from truerank.core.files import atomic_write, interrupts_held_back
from truerank.core.printing import note
from truerank.core.types import Scorer
from truerank.export.form import form_of
from truerank.export.formats import export_model
from truerank.export.search_engines import with_places
from truerank.io.engine import Engine, checked, quoted, told
from truerank.io.feature_sets import FeatureSet, agreed

KINDS = ("painless", "ltr", "solr")
WINDOW = 100
"""Number of documents of the first ranking that a search request reranks."""
LARGE = 200_000
"""Size in bytes from which a request slows searches down."""
SMALLER = (
    "Make it smaller with fewer or shallower trees (n_estimators=50, depth=4) or constant leaves "
    "(leaves=constant), or keep the model in the engine, in the format opensearch-ltr, elasticsearch-ltr or solr"
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
    return rescored({"query": {"match": {"title": "{{query}}"}}}, query, WINDOW)


def rescored(body: dict[str, Any], query: dict[str, Any], window: int) -> dict[str, Any]:
    """Return a request whose first documents are ranked by the scores of `query` alone."""
    rescore = {"rescore_query": query, "query_weight": 0.0, "rescore_query_weight": 1.0}
    return body | {"rescore": {"window_size": window, "query": rescore}}


def deploy(
    model: Scorer,
    url: str,
    name: str,
    *,
    kind: str | None = None,
    feature_names: Sequence[str] | None = None,
    feature_set: str | FeatureSet | None = None,
    certify: Any = None,
    replace: bool = False,
    timeout: float = 30.0,
) -> dict[str, Any]:
    """Put a model into an engine.

    Parameters
    ----------
    model : fitted ranker
    url : str
    name : str
        Name of the stored script or model.
    kind : "painless", "ltr", "solr" or None, default None
        "painless" stores a script for OpenSearch or Elasticsearch without a plugin; each request carries the
        parameters. "ltr" uses the model store of the LTR plugin and requires `feature_set`. "solr" uses Solr's model
        store. By default "solr" for an address that contains /solr/, else "painless".
    feature_names : sequence of str, optional
        The engine's names of the columns.
    feature_set : str or FeatureSet, optional
        The LTR plugin's feature set, which must contain all features of the model; or Solr's feature store. The
        features of a `FeatureSet` are stored if the engine lacks them, unless the export is refused.
    certify : RankingData, optional
        Rows as the engine logs them, for the certificate of the export (see `export_model`). The deployment is refused
        if the export ranks a document differently and no other rounding helps.
    replace : bool, default False
        Replace the model of this name. The old model is first written to NAME.DIGEST.json in the working folder. It
        is restored if the new model is refused or not confirmed, or if the deployment is interrupted.
    timeout : float, default 30
        Seconds for each request.

    Returns
    -------
    dict
        "kind", "name", "url", "replaced", "previous" (file of the old model, or None), "times" (factor between the
        engine's scores and the model's), and for Painless "params".

    Raises
    ------
    EngineError
        If the engine refuses, does not answer, or later returns a model that differs from the sent model.
    InvalidInputError
        If the name is taken and `replace` is False, the feature set lacks a feature, or the engine has other features
        under its name.
    """
    engine = Engine(url, timeout)
    kind = kind_of(kind, url)
    if not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):  # it becomes part of addresses
        raise InvalidInputError(
            "the name must consist of letters a to z, digits, '_', '-' and '.', and must not begin with '-' or '.', "
            f"got {name!r}",
            argument="name",
        )
    if kind == "ltr" and not feature_set:
        raise InvalidInputError(
            "the LTR plugin stores models by feature set, and none was named",
            argument="feature_set",
            remedies=[Remedy(features=...), Remedy(feature_set=...)],
        )
    export = export_model(model, {"ltr": "opensearch-ltr"}.get(kind, kind), feature_names, name=name, certify=certify)
    body = json.loads(export)
    if isinstance(feature_set, FeatureSet) and kind != "painless":
        agreed(engine, feature_set, put=True)
        feature_set = feature_set.name
    if kind == "painless":
        result = _put_script(engine, name, body["script"], replace)
    elif kind == "ltr":
        _order_features(engine, str(feature_set), body["model"]["model"], model, feature_names)
        result = _put_into_plugin(engine, name, str(feature_set), body, replace)
    else:
        result = _put_into_solr(engine, name, body | ({"store": feature_set} if feature_set else {}), replace)
    times = export.certificate.policy.get("times", 1.0)
    return {"kind": kind, "name": name, "url": engine.url, "times": times} | result


def kind_of(kind: str | None, url: str) -> str:
    """Return the given kind of engine, or derive it from the address."""
    return check_choice(kind or ("solr" if "/solr/" in url else "painless"), "kind", KINDS)


def _put_script(engine: Engine, name: str, script: Any, replace: bool) -> dict[str, Any]:
    place = f"_scripts/{name}"
    old = _there(engine, place, {"script": {"source": str}}, lambda there: there["script"])
    source = script["source"]
    if old is not None and old["source"] == source:
        return {"replaced": False, "previous": None, "params": script["params"]}

    def put(body: Any) -> None:
        _confirm(engine.request("PUT", place, body, form={"acknowledged": bool})["acknowledged"], "stored", name)
        there = engine.request("GET", place, form={"script": {"source": str}})
        _confirm(there["script"]["source"] == body["script"]["source"], "holds", name)

    new = {"script": {"lang": "painless", "source": source}}
    previous = old and {"script": old}
    done = _exchanged(name, "the engine's script store", replace, lambda: put(new), put, previous)
    return done | {"params": script["params"]}


def _there(engine: Engine, place: str, form: object, part: Callable[[Any], Any]) -> Any:
    """Return `part` of the content that an engine stores at an address, or None."""
    answer = engine.request("GET", place, missing_ok=True, form={"found?": bool})
    return None if answer is None or not answer.get("found", True) else part(checked(answer, form))


def _confirm(holds: Any, what: str, name: str) -> None:
    if not holds:
        raise EngineError(
            f"the engine did not confirm that it {what} {name!r}. Check what it has under this name, and deploy again",
            code="not-confirmed",
        )


def _order_features(
    engine: Engine, feature_set: str, stored: dict[str, Any], model: Scorer, names: Sequence[str] | None
) -> None:
    """Check the feature set, and renumber the features of a RankLib model by their positions in it."""
    form = {"_source": {"featureset": {"features": [{"name": str}]}}}
    there = _there(engine, f"_ltr/_featureset/{quoted(feature_set)}", form, lambda there: there["_source"])
    if there is None:
        raise InvalidInputError(
            f"the LTR plugin has no feature set {feature_set!r}. Create it with PUT _ltr/_featureset/NAME first",
            argument="feature_set",
        )
    known = [own["name"] for own in there["featureset"]["features"]]
    own_form = form_of(model, names, calibrated=False)
    used = [own_form.names[k] for k in own_form.used]
    lacking = [own for own in used if own not in known]
    if lacking:
        raise InvalidInputError(
            f"the feature set {feature_set!r} lacks {lacking[0]!r}, which the model uses. It has: "
            f"{told(', '.join(known))}",
            argument="feature_set",
            remedies=["add it there", Remedy("to name the model's columns as there", feature_names=[...])],
        )
    if stored["type"] == "model/ranklib":
        places = {column: known.index(own_form.names[column]) for column in own_form.used.tolist()}
        stored["definition"] = with_places(stored["definition"], places)


def _put_into_plugin(engine: Engine, name: str, feature_set: str, body: object, replace: bool) -> dict[str, Any]:
    place = f"_ltr/_model/{name}"
    old = _there(engine, place, {"_source": {"model": {"name": str}}}, lambda there: there["_source"]["model"])

    def put(body: Any, method: str = "PUT", to: str = place) -> None:
        result = engine.request(method, to, body, form={"result": str})["result"]
        _confirm(result in ("created", "updated"), "stored", name)
        form = {"_source": {"model": {"model": {"type": str, "definition": None}}}}
        held = engine.request("GET", place, form=form)["_source"]["model"]["model"]
        sent = body["model"]["model"]
        _confirm(all(held[part] == sent[part] for part in ("type", "definition")), "holds", name)

    def new() -> None:
        if old is not None:
            engine.request("DELETE", place)
        put(body, "POST", f"_ltr/_featureset/{quoted(feature_set)}/_createmodel")

    return _exchanged(name, "the LTR plugin's store", replace, new, put, old and {"model": old})


def _put_into_solr(engine: Engine, name: str, body: object, replace: bool) -> dict[str, Any]:
    store = "schema/model-store"

    def there() -> Any:
        models = engine.request("GET", store, form={"models": [{"name": str, "class": str}]})["models"]
        return next((own for own in models if own["name"] == name), None)

    old = there()

    def put(body: Any) -> None:
        found = None if old is None else there()
        if found == body:  # the old model, which was never deleted
            return
        if found is not None:  # Solr overwrites nothing
            engine.request("DELETE", f"{store}/{name}")
        answer = engine.request("PUT", store, body, form={"responseHeader": {"status": float}})
        _confirm(answer["responseHeader"]["status"] == 0, "stored", name)
        found = there() or {}
        _confirm(all(found.get(part) == body.get(part) for part in ("class", "params")), "holds", name)

    return _exchanged(name, "Solr's model store", replace, lambda: put(body), put, old)


def _exchanged(
    name: str, where: str, replace: bool, new: Callable[[], None], put: Callable[[Any], None], old: Any
) -> dict[str, Any]:
    """Replace the old model (a request body, or None) by the new one after a copy of the old one to a file."""
    if old is not None and not replace:
        raise InvalidInputError(
            f"{where} already has {name!r}, and nothing was changed",
            argument="name",
            value=name,
            remedies=[Remedy("to replace it", replace=True)],
            code="exists",
        )
    path = None
    if old is not None:
        text = json.dumps(old)
        path = f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:8]}.json"
        with atomic_write(path) as stream:
            stream.write(text)
    try:
        new()
    except BaseException as error:
        if old is not None:
            with interrupts_held_back():
                _put_back(put, old, path, error)
        raise
    return {"replaced": old is not None, "previous": path}


def _put_back(put: Callable[[Any], None], old: Any, path: Any, error: BaseException) -> None:
    try:
        put(old)
    except Exception as failed:
        text = f"the old model could not be restored ({failed}), and the engine may be without one; it is in {path}"
        if isinstance(error, Exception):
            raise EngineError(f"{error}; {text}") from error
        note(f"truerank: {text}")  # of an interrupt, which may end the process before anything else is printed
