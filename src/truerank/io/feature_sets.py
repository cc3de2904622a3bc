"""Feature sets: definitions of features that a search engine computes, from files, engines or an index.

A file (JSON, or YAML if its name ends in .yaml or .yml) has the feature set of LTR plugins (`_ltr/_featureset`) and its
requests:

    {"index": "products",                                             # optional, as everything but "featureset"
     "id": "sku",                                                     # field of the document ids, by default _id
     "base": {"match": {"title": "{{query}}"}},                       # the query that finds documents
     "params": {"keywords": "{{query}}"},                             # texts of the parameters of the features
     "featureset": {"name": "products", "features": [
       {"name": "title", "params": ["keywords"], "template": {"match": {"title": "{{keywords}}"}}}]}}

Features of Solr have "class" and "params", as in its feature store. Also accepted: the answer of `GET
_ltr/_featureset/NAME`, the list of a Solr store, and `features: {name: query}` in place of the feature set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from truerank.core.errors import DataFileError, EngineError, InvalidInputError, Remedy
from truerank.core.files import read_text
from truerank.core.types import PathLike
from truerank.io.engine import Engine, checked, filled, quoted, told

_SOLR = "org.apache.solr.ltr.feature."
_TEXTS = ("query", "keywords", "text", "q", "query_text", "querytext", "user_query", "userquery")
_NUMBERS = ("long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long")


@dataclass(frozen=True)
class FeatureSet:
    """Features that an engine computes, and the requests that use them.

    Attributes
    ----------
    name : str
        Name of the set in the LTR plugin, or of a store of Solr.
    features : list of dict
        Definitions in the engine's format.
    index : str or None
    id : str or None
        Field of the document ids; None for `_id` (Solr: id).
    base : query of the engine, or parameters of Solr, or None
        Query that finds documents, with {{query}} in place of the text.
    params : dict of str to str
        The texts of the features' parameters.
    """

    name: str
    features: list[dict[str, Any]]
    index: str | None
    id: str | None
    base: Any
    params: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [own["name"] for own in self.features]

    @property
    def for_solr(self) -> bool:
        """Return whether the features are Solr's."""
        return "class" in self.features[0]

    @property
    def needs_plugin(self) -> bool:
        """Return whether a feature is not a query, so that only the LTR plugin can compute it."""
        return any(self._query(own) is None for own in self.features)

    def _query(self, own: dict[str, Any]) -> Any:
        if own.get("template_language", "mustache") != "mustache":
            return None
        try:
            template = json.loads(own["template"]) if isinstance(own["template"], str) else own["template"]
            return filled(template, {name: str(text) for name, text in self.params.items()})
        except (ValueError, InvalidInputError):  # parts of Mustache that are no names
            return None

    def requests(self) -> dict[str, Any]:
        """Return the requests of `verify`."""
        if self.for_solr:
            return {"base": self.base, "efi": self.params, "store": self.name}
        queries = {own["name"]: query for own in self.features if (query := self._query(own)) is not None}
        return {"base": self.base, "params": self.params, "features": queries}

    def spec(self, *, logged: bool) -> dict[str, Any]:
        """Return the specification for `engine_features`; `logged` means that the LTR plugin has the features."""
        own = {"index": self.index, "batch": 200} | ({} if self.id is None else {"id": self.id})
        if self.for_solr:
            return own | {"kind": "solr", "store": self.name, "efi": self.params, "features": self.names}
        if not logged:
            return own | {"kind": "named-queries", "features": self.requests()["features"]}
        return own | {"kind": "ltr-log", "featureset": self.name, "params": self.params, "features": self.names}

    def as_json(self) -> dict[str, Any]:
        """Return the content of a file."""
        own = {"index": self.index, "id": self.id, "base": self.base, "params": self.params}
        features = {"featureset": {"name": self.name, "features": self.features}}
        return {key: value for key, value in own.items() if value} | features


def read_feature_set(path: PathLike) -> FeatureSet:
    """Read the features of a file; raise DataFileError for another form, or features without a name or a query."""
    name = os.fspath(path)
    text = read_text(name)
    try:
        if name.endswith((".yaml", ".yml")):
            import yaml

            value = yaml.safe_load(text)
            json.dumps(value, allow_nan=False)
        else:
            value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataFileError(f"not JSON ({error})", name, code="not-json") from error
    except Exception as error:  # yaml.YAMLError is no ValueError
        raise DataFileError(f"not YAML ({error})", name, code="not-yaml") from error
    try:
        return feature_set(value, name)
    except InvalidInputError as error:
        raise DataFileError(error, name, code=error.code) from error


def feature_set(value: Any, place: str = "the feature set") -> FeatureSet:
    """Return the feature set of a JSON value in a form of files; raise InvalidInputError for another form."""
    own = value if isinstance(value, dict) else {"features": value}
    own = own.get("_source", own)
    stored = own.get("featureset", own) if isinstance(own, dict) else {}
    features = stored.get("features") if isinstance(stored, dict) else None
    if isinstance(features, dict):
        features = [{"name": feature, "params": ["query"], "template": query} for feature, query in features.items()]
    if not isinstance(features, list) or not features or not all(isinstance(one, dict) for one in features):
        raise InvalidInputError(
            'no features were found. Expected {"featureset": {"name": NAME, "features": [{"name": …, "params": […], '
            '"template": query}, …]}}, the list of a Solr store, or {"index": NAME, "features": {name: query}}',
            code="no-features",
        )
    names = [one.get("name") for one in features]
    for one, name in zip(features, names):
        if not isinstance(name, str) or names.count(name) > 1:
            raise InvalidInputError(f"the names of the features must differ, got {name!r:.80}", code="feature-names")
        if not isinstance(one.get("template", one.get("class")), str | dict):
            raise InvalidInputError(f"the feature {name!r:.80} has no template (Solr: class)", code="no-query")
    if len({"class" in one for one in features}) > 1:
        raise InvalidInputError("features of Solr and the LTR plugin are mixed. Use one kind in a file", code="mixed")
    title = stored.get("name") or features[0].get("store") or own.get("index") or "features"
    params = own.get("params") or _parameters(features)
    return FeatureSet(str(title), features, own.get("index"), own.get("id"), own.get("base"), params)


def _parameters(features: list[dict[str, Any]]) -> dict[str, str]:
    """Return `{{query}}` for each parameter; raise if one of several parameters is not the text of the query."""
    if "class" in features[0]:
        return {"query": "{{query}}"}
    names = {name: one["name"] for one in features for name in one.get("params", ())}
    for name, feature in names.items():
        if len(names) > 1 and name not in _TEXTS:
            raise InvalidInputError(
                f"the feature {feature!r:.80} has the parameter {name!r:.80}, which is not the text of a query. Add "
                f'"params": {{{json.dumps(name)}: VALUE, …}} with a value for every parameter, or remove the feature',
                code="parameter",
            )
    return dict.fromkeys(names, "{{query}}")


def stored_set(engine: Engine, name: str, *, solr: bool) -> FeatureSet | None:
    """Return the feature set that the LTR plugin or Solr stores under a name; None if the set or plugin is missing."""
    place = f"schema/feature-store/{quoted(name)}" if solr else f"_ltr/_featureset/{quoted(name)}"
    form: Any = {"features": [dict]} if solr else {"_source": {"featureset": {"features": [dict]}}}
    try:
        found = engine.request("GET", place, missing_ok=True)
    except EngineError as error:
        if error.code != "engine-refused" or "status" not in str(error):
            raise
        return None
    if found is None or (not solr and checked(found, {"found?": bool}).get("found") is False):
        return None
    held = checked(found, form)
    if solr and not held["features"]:
        return None
    try:
        return feature_set(held["features"] if solr else held)
    except InvalidInputError as error:
        raise EngineError(f"{engine.url}: the answer has an unexpected form: {told(error, 300)}") from error


def agreed(engine: Engine, own: FeatureSet, *, put: bool) -> bool:
    """Return whether the engine holds the features of `own`; with `put`, store features that the engine lacks.

    Raises InvalidInputError if the engine has other features under the name, or lacks features that need it.
    """
    held = stored_set(engine, own.name, solr=own.for_solr)
    if held is not None:
        theirs = {one["name"]: _comparable(one) for one in held.features}
        other = [one["name"] for one in own.features if theirs.get(one["name"]) != _comparable(one)]
        if other or len(theirs) > len(own.features):
            odd = other[0] if other else min(theirs.keys() - set(own.names))
            raise InvalidInputError(
                f"the engine already has features under the name {told(own.name, 80)!r}, and {told(odd, 80)!r} "
                "differs. Models may use them. Give the features another name in their file",
                code="other-features",
            )
        return True
    if put:
        _put(engine, own)
    elif own.for_solr or own.needs_plugin:
        raise InvalidInputError(
            f"the engine has no features {told(own.name, 80)!r}, and only the engine can compute them",
            remedies=[Remedy("to store them there", put=True)],
            code="not-stored",
        )
    return put


def _put(engine: Engine, own: FeatureSet) -> None:
    if own.for_solr:
        engine.request("PUT", "schema/feature-store", [one | {"store": own.name} for one in own.features])
        return
    if not engine.request("GET", "_ltr", form={"stores": dict})["stores"]:
        engine.request("PUT", "_ltr")
    features = [{"template_language": "mustache"} | one for one in own.features]
    engine.request(
        "PUT", f"_ltr/_featureset/{quoted(own.name)}", {"featureset": {"name": own.name, "features": features}}
    )


def _comparable(one: Mapping[str, Any]) -> Any:
    """Return what a feature computes, without the store of Solr and the format of a template."""
    template = one.get("template")
    if isinstance(template, str):
        with suppress(ValueError):
            template = json.loads(template)
    if "class" in one:
        return one["class"], one.get("params") or {}
    return one.get("template_language", "mustache"), sorted(one.get("params", ())), template


def has_plugin(engine: Engine) -> bool:
    """Return whether the engine has the LTR plugin."""
    try:
        return isinstance(engine.request("GET", "_ltr"), dict)
    except EngineError as error:
        if error.code == "engine-refused":
            return False
        raise


def made_of_index(engine: Engine, index: str | None, name: str | None, *, solr: bool) -> tuple[FeatureSet, list[str]]:
    """Generate features from the fields of an index; also return the reason of each field that is left out.

    A text field gives its score (BM25 by default) and its score for the query as a phrase. A number or truth value
    gives its value. A date gives a number that is 1 now and halves with each year (Solr: 1 / (1 + years)). A document
    without the field has the value 0. The first feature, `base`, searches all text fields at once.
    """
    fields = dict(sorted(_solr_fields(engine) if solr else _fields(engine, str(index))))
    texts = [field for field, kind in fields.items() if kind == "text"]
    if not texts:
        raise InvalidInputError("the index has no text field to search. Write features in a file")
    numbers = [field for field, kind in fields.items() if kind in ("number", "date")]
    lowest = {} if solr else _lowest(engine, str(index), numbers)
    define = _of_solr if solr else _of_search
    base: Any = {"multi_match": {"query": "{{query}}", "fields": texts}}
    base = f"{{!dismax qf='{' '.join(texts)}' mm=1 v=$words}}" if solr else base
    features, skipped = [define("base", "base", base)], []
    for field, kind in fields.items():
        least = lowest.get(field, 0.0)
        if kind not in ("text", "number", "date", "boolean"):
            skipped.append(f"{field} ({kind})")
        elif least is None:
            skipped.append(f"{field} (no document has a value)")
        elif kind == "number" and least < 0:
            skipped.append(f"{field} (has the value {least:g}, and the engine's scores cannot be negative)")
        else:
            features.append(define(_named(field, features), kind, field))
            if kind == "text":
                features.append(define(_named(f"{field}_phrase", features), "phrase", field))
    found = {"query": "{{query}}"}
    own = FeatureSet(name or str(index or "features"), features, None if solr else index, None, base, found)
    return (replace(own, base={"q": base, "words": "{{query}}"}) if solr else own), skipped


def _named(field: str, features: list[dict[str, Any]]) -> str:
    """Return a name without dots and blanks that no feature has."""
    name = "".join(one if one.isalnum() or one == "_" else "_" for one in field)
    taken = {one["name"] for one in features}
    return next(own for own in (name, *(f"{name}_{k}" for k in range(2, 999))) if own not in taken)


def _fields(engine: Engine, index: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of an index, or of the indices of an alias, and their kinds."""
    answer = engine.request("GET", f"{quoted(index)}/_mapping", form={...: {"mappings": {"properties?": dict}}})

    def walk(properties: Any, before: str) -> Iterator[tuple[str, str]]:
        for name, own in properties.items() if isinstance(properties, dict) else ():
            kind, inside = str(own.get("type", "object")), own.get("properties")
            if kind == "object":
                yield from walk(inside, f"{before}{name}.")
            else:
                yield before + name, "number" if kind in _NUMBERS else "date" if kind == "date_nanos" else kind
            yield from ((f, k) for f, k in walk(own.get("fields"), f"{before}{name}.") if k == "text")

    for own in answer.values():
        yield from walk(own["mappings"].get("properties"), "")


def _lowest(engine: Engine, index: str, fields: list[str]) -> dict[str, float | None]:
    """Return the lowest value of each field, or None for a field without values."""
    if not fields:
        return {}
    asked = {str(k): {"min": {"field": field}} for k, field in enumerate(fields)}
    form = {"aggregations": {...: {"value?": None}}}
    answer = engine.request("POST", f"{quoted(index)}/_search", {"size": 0, "aggs": asked}, form=form)
    return {field: answer["aggregations"][str(k)].get("value") for k, field in enumerate(fields)}


def _of_search(name: str, kind: str, field: Any) -> dict[str, Any]:
    """Return a search feature in the format of the LTR plugin."""
    has = {"exists": {"field": field}}
    value: dict[str, Callable[[], Any]] = {
        "base": lambda: field,
        "text": lambda: {"match": {field: "{{query}}"}},
        "phrase": lambda: {"match_phrase": {field: "{{query}}"}},
        "number": lambda: _function(has, {"field_value_factor": {"field": field}}),
        "date": lambda: _function(has, {"exp": {field: {"origin": "now/d", "scale": "365d"}}}),
        "boolean": lambda: {"constant_score": {"filter": {"term": {field: True}}}},
    }
    return {"name": name, "params": ["query"], "template_language": "mustache", "template": value[kind]()}


def _function(query: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    return {"function_score": {"query": query, **function, "boost_mode": "replace"}}


def _solr_fields(engine: Engine) -> Iterator[tuple[str, str]]:
    """Yield the fields of a collection that have one value each, and their kinds."""
    schema = engine.request("GET", "schema", form={"schema": {"fields": [dict], "fieldTypes": [dict]}})["schema"]
    types = {str(own.get("name")): own for own in schema["fieldTypes"]}
    for own in schema["fields"]:
        name, kind = str(own.get("name")), types.get(str(own.get("type")), {})
        last = str(kind.get("class", "")).rpartition(".")[2]
        is_number = last.endswith("PointField") and "Date" not in last and "Lat" not in last
        found = {"TextField": "text", "DatePointField": "date", "BoolField": "boolean"}.get(last)
        found = found or ("number" if is_number else last)
        several = own.get("multiValued", kind.get("multiValued", False)) and found != "text"
        if not name.startswith("_") and own.get("indexed", True) in (True, "true"):
            yield name, f"several values of {found}" if several else found


def _of_solr(name: str, kind: str, field: Any) -> dict[str, Any]:
    """Return a feature in the format of Solr's feature store."""
    if kind in ("number", "boolean"):
        return {"name": name, "class": f"{_SOLR}FieldValueFeature", "params": {"field": field}}
    query = {
        "base": field.replace(" v=$words}", "}${query}"),
        "text": f"{{!dismax qf={field} mm=1}}${{query}}",
        "phrase": f"{{!field f={field}}}${{query}}",
        "date": f"{{!func}}if(exists({field}),recip(ms(NOW/DAY,{field}),3.16e-11,1,1),0)",
    }
    return {"name": name, "class": f"{_SOLR}SolrFeature", "params": {"q": query[kind]}}
