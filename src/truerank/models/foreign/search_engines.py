"""Models of Solr's LTR, and of the LTR plugins of Elasticsearch and OpenSearch. Features and sums are float32.

Of Solr, LinearModel and MultipleAdditiveTreesModel are read, with normalisers. A question is `x <= threshold + 1e-6f`.
An absent feature has the value 0, or with `isNullSameAsZero` false it goes to the node's side `missing`. Of the
plugins, the body of `_createmodel` is read, or the stored model, of `model/linear`, `model/ranklib`,
`model/xgboost+json` and `model/xgboost+json+raw`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import Linear, ModelForm, Normalizers, Plain
from truerank.models.foreign import text_formats, xgboost
from truerank.models.foreign.model import ForeignModel, Keys, Leaf, Reader, Split, TreeBuilder, at_most

SLACK = np.float32(1e-6)  # NODE_SPLIT_SLACK
PACKAGE = "org.apache.solr.ltr."
# Objectives without a link function, or with a sigmoid, which does not change the order.
_OBJECTIVES = (
    "binary:logitraw", "rank:ndcg", "rank:map", "rank:pairwise", "reg:linear", "binary:logistic", "reg:logistic",
)  # fmt: skip

_SOLR, _FEATURE, _NORM = (
    Keys("class features params", names="name store"),
    Keys("name norm store"),
    Keys("class params"),
)
_NORM_PARAMS = {
    "MinMaxNormalizer": Keys("min max"), "StandardNormalizer": Keys("avg std"), "IdentityNormalizer": Keys(""),
}  # fmt: skip
_TREES, _TREE = Keys("trees isNullSameAsZero"), Keys("weight root")
_SPLIT, _LEAF = Keys("feature threshold left right missing value"), Keys("value")
_STORED = Keys(  # `validation` is a query that tries the model
    "_source model feature_set", training="validation",
    names="_index _type _id _score _version _seq_no _primary_term found name type",
)  # fmt: skip
_DEFINED = Keys("type definition feature_normalizers", names="name")
_SET = Keys("features", training="validation", names="name type")
_SET_FEATURE = Keys("name", training="params template_language template")
_PLUGIN_NORMS = {"min_max": ("minimum", "maximum"), "standard": ("mean", "standard_deviation")}
_PLUGIN_TREES = Keys("objective splits")


def read_solr(value: object, reader: Reader) -> ForeignModel:
    """Read a JSON object of the model store."""
    kind = reader.part(reader.known(value, _SOLR, ""), "class", str, "").removeprefix(PACKAGE)
    features = reader.part(value, "features", list, "")
    for k, feature in enumerate(features):
        reader.known(feature, _FEATURE, f"features[{k}]")
    reader.fail_if(not features, "features", "the model lists no feature")
    names = reader.names([reader.part(f, "name", str, f"features[{k}]") for k, f in enumerate(features)], "features")
    normalizers = _solr_normalizers(features, reader)
    params = reader.part(value, "params", dict, "")
    absent, rule = 0.0, ""
    if kind == "model.LinearModel":
        reader.known(params, Keys("weights"), "params")
        weights = reader.part(params, "weights", dict, "params")
        lacking = [name for name in names if name not in weights]
        reader.fail_if(lacking, "params.weights", f"the model has no weight for {lacking[:5]}")
        coef = np.array([reader.number(weights[name], f"params.weights.{name}") for name in names])
        form = ModelForm(names, Linear(coef), normalizers=normalizers, allow_nan=False, float32_sums=True)
    elif kind == "model.MultipleAdditiveTreesModel":
        columns = {name: k for k, name in enumerate(names)}
        if not _flag(reader.known(params, _TREES, "params"), "isNullSameAsZero", True, "params", reader):
            absent, rule = np.nan, "missing values go to the side `missing` of each split, by default right"
        builder = TreeBuilder(reader)
        for number, tree in enumerate(reader.part(params, "trees", list, "params")):
            place = f"params.trees[{number}]"
            weight = reader.float32(reader.part(tree, "weight", (str, int, float), place), f"{place}.weight")
            reader.known(tree, _TREE, place)
            builder.add(reader.part(tree, "root", dict, place), _look(place, weight, columns, reader))
        form = ModelForm(names, Plain(builder.trees()), normalizers=normalizers, float32_sums=True)
    else:
        raise reader.fail("class", f"expected model.LinearModel or model.MultipleAdditiveTreesModel, got {kind!r}")
    return ForeignModel("solr", form, float32=True, absent=absent, missing=rule)


def _flag(value: dict[str, Any], key: str, default: bool, place: str, reader: Reader) -> bool:
    """Return a flag that the file holds as a bool or as its text."""
    found = str(value.get(key, default)).lower()
    return bool(reader.choice(found, ("true", "false"), f"{place}.{key}") == "true")


def _solr_normalizers(features: list[Any], reader: Reader) -> Normalizers | None:
    subtract, divide = np.zeros(len(features)), np.ones(len(features))
    for k, feature in enumerate(features):
        norm = feature.get("norm")
        if norm is None:
            continue
        place = f"features[{k}].norm"
        kind = reader.part(reader.known(norm, _NORM, place), "class", str, place).removeprefix(f"{PACKAGE}norm.")
        params = reader.part(norm, "params", dict, place) if norm.get("params") else {}
        reader.known(params, _NORM_PARAMS[reader.choice(kind, _NORM_PARAMS, place)], f"{place}.params")
        if kind == "MinMaxNormalizer":
            low = reader.float32(params.get("min", "-inf"), f"{place}.params.min")
            high = reader.float32(params.get("max", "inf"), f"{place}.params.max")
            subtract[k], divide[k] = reader.number(params["min"], place), high - low
        elif kind == "StandardNormalizer":
            subtract[k] = reader.number(params.get("avg", 0), f"{place}.params.avg")
            divide[k] = reader.number(params.get("std", 1), f"{place}.params.std")
        reader.fail_if(divide[k] == 0, place, "the normalizer divides by 0")
    if (subtract == 0).all() and (divide == 1).all():
        return None
    return Normalizers(subtract, divide)


def _look(place: str, weight: np.float32, columns: dict[str, int], reader: Reader) -> Any:
    def look(node: Any) -> Leaf | Split:
        is_split = isinstance(node, dict) and "feature" in node
        node = reader.known(node, _SPLIT if is_split else _LEAF, place)
        if not is_split:
            return Leaf(float(reader.float32(node.get("value"), f"{place}, value") * weight))
        name = reader.choice(reader.part(node, "feature", str, place), columns, place)
        threshold = reader.float32(node.get("threshold"), f"{place}, threshold") + SLACK
        children = [reader.part(node, side, dict, place) for side in ("left", "right")]
        side = reader.choice(node.get("missing", "right"), ("left", "right"), f"{place}, missing")
        return Split(columns[name], at_most(threshold), children[0], children[1], missing_right=side == "right")

    return look


def read_plugin(value: Any, reader: Reader, names: list[str] | None = None) -> ForeignModel:
    """Read a JSON object with `type` and `definition`, at any depth of `model` and `_source`.

    `names` are the features of the feature set, in order, if the object does not contain it; by default the features
    that the model names, in its order.
    """
    feature_set = None
    while isinstance(value, dict) and "definition" not in value and ("model" in value or "_source" in value):
        feature_set = reader.known(value, _STORED, "").get("feature_set", feature_set)
        value = value.get("model", value.get("_source"))
    kind = reader.part(reader.known(value, _DEFINED, "model"), "type", str, "model")
    definition = reader.part(value, "definition", (str, dict, list), "model")
    if isinstance(feature_set, dict):
        features = reader.part(reader.known(feature_set, _SET, "feature_set"), "features", list, "feature_set")
        features = [reader.known(feature, _SET_FEATURE, "feature_set.features") for feature in features]
        names = list(reader.names([reader.part(f, "name", str, "feature_set") for f in features], "feature_set"))
    parsed = reader.json(definition) if isinstance(definition, str) and kind != "model/ranklib" else definition
    if kind == "model/linear":
        model = _linear(parsed, names, reader)
    elif kind == "model/ranklib":
        reader.fail_if(not isinstance(definition, str), "model.definition", "expected RankLib's text")
        model = text_formats.read_ranklib(definition, reader, None if names is None else len(names))
        model = replace(model, form=replace(model.form, names=tuple(names or model.form.names)))
    elif kind in ("model/xgboost+json", "model/xgboost+json+raw"):
        model = _plugin_trees(parsed, kind.endswith("raw"), names, reader)
    else:
        raise reader.fail("model.type", f"expected model/linear, /ranklib or /xgboost+json[+raw], got {kind!r}")
    form = model.form
    normalizers = _plugin_normalizers(value.get("feature_normalizers"), form.names, reader)
    return replace(model, tool="elasticsearch", form=replace(form, normalizers=normalizers))


def _plugin_trees(parsed: Any, raw: bool, names: list[str] | None, reader: Reader) -> ForeignModel:
    place, as_zero = "model.definition", False
    if isinstance(parsed, dict):
        as_zero = _flag(parsed, "missing_as_zero", False, place, reader)
        parsed = {key: value for key, value in parsed.items() if key != "missing_as_zero"}
    if raw:
        model = xgboost.read_saved(parsed, reader, plugin=True)
        objective = (parsed["learner"].get("objective") or {}).get("name")
    else:
        objective = None
        if isinstance(parsed, dict):
            objective = reader.known(parsed, _PLUGIN_TREES, place).get("objective")
            parsed = reader.part(parsed, "splits", list, place)
        model = xgboost.read_dump(parsed, reader, names, plugin=True)
    if objective is not None and objective not in _OBJECTIVES:
        raise reader.fail(f"{place}.objective", f"expected one of {_OBJECTIVES}, got {objective!r}", code="objective")
    if as_zero:
        return replace(model, absent=0.0, missing="")
    return replace(
        model, missing=f"{model.missing}, as in OpenSearch's plugin since 3.8; older ones send them right, or count 0"
    )


def _linear(parsed: Any, names: list[str] | None, reader: Reader) -> ForeignModel:
    right = isinstance(parsed, dict) and parsed
    reader.expect(right, "model.definition", "an object of weights by feature that is not empty", parsed)
    columns = list(parsed) if names is None else names
    known = set(columns)
    unknown = next((name for name in parsed if name not in known), None)
    reader.fail_if(unknown is not None, "model.definition", f"feature {unknown!r} is not among {columns[:10]}")
    coef = np.array([reader.number(parsed.get(name, 0.0), f"model.definition.{name}") for name in columns])
    form = ModelForm(reader.names(columns, "model.definition"), Linear(coef), allow_nan=False, float32_sums=True)
    return ForeignModel("elasticsearch", form, float32=True, absent=0.0)


def _plugin_normalizers(value: Any, names: tuple[str, ...], reader: Reader) -> Normalizers | None:
    if not value:
        return None
    reader.expect(isinstance(value, dict), "model.feature_normalizers", "an object by feature", value)
    subtract, divide = np.zeros(len(names)), np.ones(len(names))
    columns = {name: k for k, name in enumerate(names)}
    for name, norm in value.items():
        place = f"model.feature_normalizers.{name}"
        right = name in columns and isinstance(norm, dict) and len(norm) == 1
        reader.expect(right, place, "a feature of the model with one normalizer", norm)
        kind, params = next(iter(norm.items()))
        keys = _PLUGIN_NORMS[reader.choice(kind, _PLUGIN_NORMS, place)]
        first, second = (reader.number(reader.part(params, key, (int, float), place), f"{place}.{key}") for key in keys)
        k = columns[name]
        subtract[k] = first
        divide[k] = second - first if kind == "min_max" else second
        reader.fail_if(not divide[k] > 0, place, f"the normalizer must divide by a number above 0, got {divide[k]:g}")
    return Normalizers(subtract, divide)
