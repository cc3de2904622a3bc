"""The LTR plugins of Elasticsearch and OpenSearch: a body for `_ltr/_featureset/NAME/_createmodel`.

A linear model is `model/linear` with feature normalisers (there is no bias term: it is left out, the order is the
same). A feature whose query does not match a document is 0 there and in RankLib's models, `model/ranklib`, but nan in
XGBoost's, `model/xgboost+json`, which goes right in every question, whatever the model says, but in OpenSearch 3.8. So
trees go as RankLib's text where absent features are 0, and as XGBoost's where they are nan.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.core.float32 import float32_threshold
from truerank.export import ranklib
from truerank.export.form import Linear, ModelForm, as_plain
from truerank.export.nested import nested_trees


def write(form: ModelForm, name: str, exact: bool) -> str:
    """The body as JSON; absent features are 0. Trees know features by their places in the feature set, from 1."""
    if isinstance(form.body, Linear):
        return _body(name, _linear(form))
    return _body(name, {"type": "model/ranklib", "definition": ranklib.write(form, name, exact)})


def write_nan(form: ModelForm, name: str, exact: bool) -> str:
    """The body as JSON; absent features are nan. Trees know features by their names."""
    if isinstance(form.body, Linear):
        return _body(name, _linear(form))
    definition = json.dumps(_trees(form, exact), ensure_ascii=False)
    return _body(name, {"type": "model/xgboost+json", "definition": definition})


def _body(name: str, model: dict[str, Any]) -> str:
    return json.dumps({"model": {"name": name, "model": model}}, ensure_ascii=False, indent=1) + "\n"


def _linear(form: ModelForm) -> dict[str, Any]:
    weights = {form.names[k]: _float(form.body.weights[k]) for k in form.used} or {form.names[0]: 0.0}
    model: dict[str, Any] = {"type": "model/linear", "definition": json.dumps(weights, ensure_ascii=False)}
    if form.normalizers is not None:
        scaling = form.normalizers.as_subtract_divide()
        model["feature_normalizers"] = {
            form.names[k]: {
                "standard": {"mean": _float(scaling.first[k]), "standard_deviation": _float(scaling.second[k])}
            }
            for k in form.used
        }
    return model


def _trees(form: ModelForm, exact: bool) -> list[Any]:
    trees = as_plain(form).body.trees
    with np.errstate(over="ignore"):
        below = np.nextafter(float32_threshold(trees.thresholds, exact), np.float32(np.inf))
    below = np.clip(below, -np.finfo(np.float32).max, np.finfo(np.float32).max)

    def split(node: int, left: Any, right: Any) -> Any:
        return {
            "split": form.names[trees.features[node]],
            "split_condition": _float(below[node]),
            "missing_right": bool(trees.missing_right[node]),
            "children": [left, right],
        }

    roots = nested_trees(trees, lambda leaf: {"leaf": _float(trees.values[leaf])}, split)
    constant = form.start + form.intercept
    if constant:
        roots.insert(0, {"leaf": _float(constant)})
    return [_numbered(root) for root in roots]


def _numbered(root: dict[str, Any]) -> dict[str, Any]:
    """The tree with XGBoost's node numbers: breadth first from 0, the first child is "yes"."""
    queue, count = [(root, 0, 0)], 1
    result: dict[str, Any] = {}
    place: list[Any] = [result]
    for (node, number, depth), target in zip(queue, place):
        target["nodeid"] = number
        if "leaf" in node:
            target["leaf"] = node["leaf"]
            continue
        children: list[dict[str, Any]] = [{}, {}]
        target |= {
            "depth": depth, "split": node["split"], "split_condition": node["split_condition"], "yes": count,
            "no": count + 1, "missing": count + node["missing_right"], "children": children,
        }  # fmt: skip
        queue += [(child, count + side, depth + 1) for side, child in enumerate(node["children"])]
        place += children
        count += 2
    return result


def _float(x: Any) -> float:
    return float(str(np.float32(x)))
