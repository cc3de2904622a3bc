"""Models of the LTR plugins of Elasticsearch and OpenSearch: the body of `_createmodel`, or what is stored.

`model/linear`, `model/ranklib`, `model/xgboost+json` and `model/xgboost+json+raw`; features and sums are float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import Linear, ModelForm, Normalizers
from truerank.models.foreign import ranklib, xgboost
from truerank.models.foreign.model import ForeignModel, Reader

# Objectives without a link function, or with a sigmoid, which does not change the order.
_OBJECTIVES = (
    "binary:logitraw", "rank:ndcg", "rank:map", "rank:pairwise", "reg:linear", "binary:logistic", "reg:logistic",
)  # fmt: skip


def read_json(value: Any, reader: Reader, names: list[str] | None = None) -> ForeignModel:
    """Read a JSON object with `type` and `definition`, at any depth of `model` and `_source`.

    `names` are the features of the feature set, in order, if the object does not contain it; by default the features
    that the model names, in its order.
    """
    feature_set = None
    while isinstance(value, dict) and "definition" not in value and ("model" in value or "_source" in value):
        feature_set = value.get("feature_set", feature_set)
        value = value.get("model", value.get("_source"))
    kind = reader.part(value, "type", str, "model")
    definition = reader.part(value, "definition", (str, dict, list), "model")
    if isinstance(feature_set, dict):
        features = reader.part(feature_set, "features", list, "feature_set")
        names = list(reader.names([reader.part(f, "name", str, "feature_set") for f in features], "feature_set"))
    parsed = reader.json(definition) if isinstance(definition, str) and kind != "model/ranklib" else definition
    if kind == "model/linear":
        model = _linear(parsed, names, reader)
    elif kind == "model/ranklib":
        reader.fail_if(not isinstance(definition, str), "model.definition", "expected RankLib's text")
        model = ranklib.read_text(definition, reader, None if names is None else len(names))
        model = replace(model, form=replace(model.form, names=tuple(names or model.form.names)))
    elif kind == "model/xgboost+json":
        if isinstance(parsed, dict):
            objective = parsed.get("objective", _OBJECTIVES[0])
            if objective not in _OBJECTIVES:
                raise reader.fail("model.definition.objective", f"the plugin refuses {objective!r}")
            parsed = reader.part(parsed, "splits", list, "model.definition")
        model = xgboost.read_dump(parsed, reader, names)
    elif kind == "model/xgboost+json+raw":
        model = xgboost.read_saved(parsed, reader)
        model = replace(model, form=replace(model.form, start=0.0))  # the plugin ignores base_score
    else:
        raise reader.fail("model.type", f"unknown type {kind!r}")
    form = model.form
    normalizers = _normalizers(value.get("feature_normalizers"), form.names, reader)
    return replace(model, tool="elasticsearch", form=replace(form, normalizers=normalizers), absent=model.absent)


def _linear(parsed: Any, names: list[str] | None, reader: Reader) -> ForeignModel:
    if not isinstance(parsed, dict) or not parsed:
        raise reader.fail("model.definition", "expected an object of weights by feature that is not empty")
    columns = list(parsed) if names is None else names
    known = set(columns)
    unknown = next((name for name in parsed if name not in known), None)
    reader.fail_if(unknown is not None, "model.definition", f"there is no feature {unknown!r}")
    coef = np.array([reader.number(parsed.get(name, 0.0), f"model.definition.{name}") for name in columns])
    form = ModelForm(reader.names(columns, "model.definition"), Linear(coef), allow_nan=False, float32_sums=True)
    return ForeignModel("elasticsearch", form, float32=True, absent=0.0)


def _normalizers(value: object, names: tuple[str, ...], reader: Reader) -> Normalizers | None:
    if not value:
        return None
    if not isinstance(value, dict):
        raise reader.fail("model.feature_normalizers", "expected an object by feature")
    subtract, divide = np.zeros(len(names)), np.ones(len(names))
    columns = {name: k for k, name in enumerate(names)}
    for name, norm in value.items():
        place = f"model.feature_normalizers.{name}"
        if name not in columns or not isinstance(norm, dict) or len(norm) != 1:
            raise reader.fail(place, "expected a feature of the model with one normalizer")
        kind, params = next(iter(norm.items()))
        keys = {"min_max": ("minimum", "maximum"), "standard": ("mean", "standard_deviation")}.get(kind)
        if keys is None:
            raise reader.fail(place, f"unknown normalizer {kind!r}; min_max and standard are known")
        first, second = (reader.number(reader.part(params, key, (int, float), place), f"{place}.{key}") for key in keys)
        k = columns[name]
        subtract[k] = first
        divide[k] = second - first if kind == "min_max" else second
        reader.fail_if(not divide[k] > 0, place, "the normalizer does not divide by a positive number")
    return Normalizers(subtract, divide)
