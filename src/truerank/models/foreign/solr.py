"""Read Solr's LTR models: LinearModel and MultipleAdditiveTreesModel, with normalisers.

Features and sums are float32, and a question is `x <= threshold + 1e-6f`. An absent feature has the value 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.export.form import Linear, ModelForm, Normalizers, Plain
from truerank.models.foreign.model import ForeignModel, Leaf, Reader, Split, TreeBuilder, at_most

SLACK = np.float32(1e-6)  # NODE_SPLIT_SLACK
PACKAGE = "org.apache.solr.ltr."


def read_json(value: object, reader: Reader) -> ForeignModel:
    """Read a JSON object of the model store, or a list with one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    kind = reader.part(value, "class", str, "").removeprefix(PACKAGE)
    features = reader.part(value, "features", list, "")
    reader.fail_if(not features, "features", "the model lists no feature")
    names = reader.names([reader.part(f, "name", str, f"features[{k}]") for k, f in enumerate(features)], "features")
    normalizers = _normalizers(features, reader)
    params = reader.part(value, "params", dict, "")
    if kind == "model.LinearModel":
        weights = reader.part(params, "weights", dict, "params")
        lacking = [name for name in names if name not in weights]
        reader.fail_if(lacking, "params.weights", f"the model lacks weight(s) for {lacking[:5]}")
        coef = np.array([reader.number(weights[name], f"params.weights.{name}") for name in names])
        form = ModelForm(names, Linear(coef), normalizers=normalizers, allow_nan=False, float32_sums=True)
    elif kind == "model.MultipleAdditiveTreesModel":
        columns = {name: k for k, name in enumerate(names)}
        builder = TreeBuilder(reader)
        for number, tree in enumerate(reader.part(params, "trees", list, "params")):
            place = f"params.trees[{number}]"
            weight = reader.float32(reader.part(tree, "weight", (str, int, float), place), f"{place}.weight")
            builder.add(reader.part(tree, "root", dict, place), _look(place, weight, columns, reader))
        form = ModelForm(names, Plain(builder.trees()), normalizers=normalizers, float32_sums=True)
    else:
        raise reader.fail("class", f"{kind!r} is not read; model.LinearModel and model.MultipleAdditiveTreesModel are")
    return ForeignModel("solr", form, float32=True, absent=0.0)


def _normalizers(features: list[Any], reader: Reader) -> Normalizers | None:
    subtract, divide = np.zeros(len(features)), np.ones(len(features))
    for k, feature in enumerate(features):
        norm = feature.get("norm")
        if norm is None:
            continue
        place = f"features[{k}].norm"
        kind = reader.part(norm, "class", str, place).removeprefix(f"{PACKAGE}norm.")
        params = reader.part(norm, "params", dict, place) if norm.get("params") else {}
        if kind == "MinMaxNormalizer":
            low = reader.float32(params.get("min", "-inf"), f"{place}.params.min")
            high = reader.float32(params.get("max", "inf"), f"{place}.params.max")
            subtract[k], divide[k] = reader.number(params["min"], place), high - low
        elif kind == "StandardNormalizer":
            subtract[k] = reader.number(params.get("avg", 0), f"{place}.params.avg")
            divide[k] = reader.number(params.get("std", 1), f"{place}.params.std")
        elif kind != "IdentityNormalizer":
            raise reader.fail(place, f"unknown normalizer {kind!r}")
        reader.fail_if(divide[k] == 0, place, "the normalizer divides by 0")
    if (subtract == 0).all() and (divide == 1).all():
        return None
    return Normalizers(subtract, divide)


def _look(place: str, weight: np.float32, columns: dict[str, int], reader: Reader) -> Any:
    def look(node: object) -> Leaf | Split:
        if not isinstance(node, dict):
            raise reader.fail(place, f"expected a node, got {str(node)[:40]!r}")
        if "feature" not in node:
            return Leaf(float(reader.float32(node.get("value"), f"{place}, value") * weight))
        name = reader.part(node, "feature", str, place)
        if name not in columns:
            raise reader.fail(place, f"a tree asks about {name!r}, which the model's features do not list")
        threshold = reader.float32(node.get("threshold"), f"{place}, threshold") + SLACK
        children = [reader.part(node, side, dict, place) for side in ("left", "right")]
        return Split(columns[name], at_most(threshold), *children)

    return look
