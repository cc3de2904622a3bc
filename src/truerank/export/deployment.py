"""A model is put into a live engine. Nothing is deleted or overwritten without `replace`."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from truerank.core.checks import check_choice
from truerank.core.errors import EngineError, InvalidInputError
from truerank.export.form import form_of
from truerank.export.formats import export_model
from truerank.export.ranklib import with_places
from truerank.io.engine import Engine

KINDS = ("painless", "ltr", "solr")


def deploy(
    model: Any,
    url: str,
    name: str,
    *,
    kind: str | None = None,
    feature_names: Sequence[str] | None = None,
    feature_set: str | None = None,
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
        Of the stored script or model.
    kind : {"painless", "ltr", "solr"}, optional
        A stored Painless script whose parameters go along with each request (OpenSearch, Elasticsearch, no plugin);
        the LTR plugin's model store, which needs `feature_set`; Solr's model store. By default "solr" for an address
        with /solr/ in it, else "painless".
    feature_names : sequence of str, optional
        What the engine calls the columns.
    feature_set : str, optional
        The LTR plugin's feature set, with all features that the model uses in any order; Solr's feature store.
    certify : RankingData, optional
        Rows as the engine logs them, for the certificate of the export: a model that puts one of their documents in
        another place is refused, after other roundings were tried (`export_model`).
    replace : bool, default False
        Overwrite what has this name; what was there is put back when the engine refuses the new model.
    timeout : float, default 30
        Seconds for each request.

    Returns
    -------
    dict
        "kind", "name", "url", "replaced", "times" (the engine's scores are the model's times this number), and for
        painless "params".

    Raises
    ------
    EngineError
        When the engine refuses or does not answer.
    InvalidInputError
        When the name is taken and `replace` is False, and when the feature set lacks a feature.
    """
    engine = Engine(url, timeout)
    kind = kind_of(kind, url)
    if not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):  # it stands in addresses as it is
        raise InvalidInputError(
            f"the name must be of letters a to z, digits, '_', '-' and '.', and begin with none of the last two, "
            f"got {name!r}"
        )
    if kind == "ltr" and not feature_set:
        raise InvalidInputError("the LTR plugin keeps models by feature set: pass feature_set (--feature-set)")
    export = export_model(model, {"ltr": "opensearch"}.get(kind, kind), feature_names, name=name, certify=certify)
    body = json.loads(export)
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
    """The kind of engine that was named, or the one that an address says."""
    return check_choice(kind or ("solr" if "/solr/" in url else "painless"), "kind", KINDS)


def _taken(name: str, where: str) -> InvalidInputError:
    return InvalidInputError(
        f"{where} already has {name!r}; nothing was changed. Pass replace=True (--replace) to do so"
    )


def _put_script(engine: Engine, name: str, script: Any, replace: bool) -> dict[str, Any]:
    there = engine.request("GET", f"_scripts/{name}", missing_ok=True)
    old = there.get("script") if isinstance(there, dict) and there.get("found", True) else None
    same = old is not None and old.get("source") == script["source"]
    if old is not None and not same and not replace:
        raise _taken(name, "the engine's script store")
    if not same:
        engine.request("PUT", f"_scripts/{name}", {"script": {"lang": "painless", "source": script["source"]}})
    return {"replaced": old is not None and not same, "params": script["params"]}


def _order_features(
    engine: Engine, feature_set: str, stored: dict[str, Any], model: Any, names: Sequence[str] | None
) -> None:
    """RankLib's models know features by their places, which become those of the feature set."""
    there = engine.request("GET", f"_ltr/_featureset/{urllib.parse.quote(feature_set)}", missing_ok=True)
    if there is None:
        raise InvalidInputError(f"the LTR plugin has no feature set {feature_set!r}; put it to _ltr/_featureset first")
    known = [own["name"] for own in there["_source"]["featureset"]["features"]]
    form = form_of(model, names, calibrated=False)
    used = [form.names[k] for k in form.used]
    lacking = [own for own in used if own not in known]
    if lacking:
        raise InvalidInputError(
            f"the feature set {feature_set!r} lacks {lacking[0]!r}, which the model uses; it has: {', '.join(known)}. "
            "Add it there, or name the model's columns as there (--features)"
        )
    if stored["type"] == "model/ranklib":
        places = {column: known.index(form.names[column]) for column in form.used.tolist()}
        stored["definition"] = with_places(stored["definition"], places)


def _put_into_plugin(engine: Engine, name: str, feature_set: str, body: Any, replace: bool) -> dict[str, Any]:
    there = engine.request("GET", f"_ltr/_model/{name}", missing_ok=True)
    old = there["_source"]["model"] if isinstance(there, dict) and there.get("found", True) else None
    if old is not None and not replace:
        raise _taken(name, "the LTR plugin's store")
    place = f"_ltr/_model/{name}"
    new = ("POST", f"_ltr/_featureset/{urllib.parse.quote(feature_set)}/_createmodel", body)
    return _exchanged(engine, place, new, None if old is None else ("PUT", place, {"model": old}))


def _put_into_solr(engine: Engine, name: str, body: Any, replace: bool) -> dict[str, Any]:
    there = engine.request("GET", "schema/model-store") or {}
    old = next((own for own in there.get("models", []) if own.get("name") == name), None)
    if old is not None and not replace:
        raise _taken(name, "Solr's model store")
    store = "schema/model-store"
    return _exchanged(engine, f"{store}/{name}", ("PUT", store, body), None if old is None else ("PUT", store, old))


def _exchanged(
    engine: Engine, place: str, new: tuple[str, str, Any], old: tuple[str, str, Any] | None
) -> dict[str, Any]:
    """Put a model in the place of an old one (None: of none), which is put back where the engine refuses the new."""
    if old is not None:
        engine.request("DELETE", place)
    try:
        engine.request(*new)
    except EngineError:
        if old is not None:
            engine.request(*old)
        raise
    return {"replaced": old is not None}
