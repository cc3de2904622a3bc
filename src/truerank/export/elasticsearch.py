"""The LTR plugins of Elasticsearch and OpenSearch: a body for `_ltr/_featureset/NAME/_createmodel`.

A linear model is `model/linear` with feature normalisers (there is no bias term: it is left out, the order is the
same). A feature whose query does not match a document is 0 there and in RankLib's models, `model/ranklib`, but nan in
XGBoost's, `model/xgboost+json`, which goes right in every question, whatever the model says, but in OpenSearch 3.8. So
trees go as RankLib's text where absent features are 0, and as XGBoost's where they are nan.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.float32 import finite_threshold, shortest_decimal
from truerank.export import ranklib
from truerank.export.form import Linear, ModelForm, as_plain
from truerank.export.nested import breadth_first
from truerank.trees.binary import BinaryTrees


def write(form: ModelForm, name: str, inputs: str) -> str:
    """The body as JSON; absent features are 0. Trees know features by their places in the feature set, from 1."""
    if isinstance(form.body, Linear):
        return _body(name, _linear(form))
    return _body(name, {"type": "model/ranklib", "definition": ranklib.write(form, name, inputs)})


def write_nan(form: ModelForm, name: str, inputs: str) -> str:
    """The body as JSON; absent features are nan. Trees know features by their names."""
    if isinstance(form.body, Linear):
        return _body(name, _linear(form))
    definition = json.dumps(_trees(form, inputs), ensure_ascii=False)
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


def _trees(form: ModelForm, inputs: str) -> list[Any]:
    trees = as_plain(form).body.trees
    limits = finite_threshold(trees.thresholds, inputs, below=True)
    roots = [_tree(form.names, trees, limits, root) for root in trees.roots.tolist()]
    constant = form.start + form.intercept
    return [{"nodeid": 0, "leaf": _float(constant)}, *roots] if constant else roots


def _tree(names: Sequence[str], trees: BinaryTrees, limits: np.ndarray, root: int) -> dict[str, Any]:
    """A tree as XGBoost dumps it: nodes numbered level by level from 0, the left child is "yes"."""
    order, left = breadth_first(trees, root)
    depth = [0] * len(order)
    for place, child in enumerate(left):
        if child:
            depth[child] = depth[child + 1] = depth[place] + 1
    built: list[dict[str, Any]] = [{} for _ in order]
    for place, (node, child) in enumerate(zip(order, left)):
        built[place]["nodeid"] = place
        if node < 0:
            built[place]["leaf"] = _float(trees.values[~node])
            continue
        built[place] |= {
            "depth": depth[place], "split": names[trees.features[node]], "split_condition": _float(limits[node]),
            "yes": child, "no": child + 1, "missing": child + int(trees.missing_right[node]),
            "children": built[child : child + 2],
        }  # fmt: skip
    return built[0]


def _float(x: Any) -> float:
    return float(shortest_decimal(x))
