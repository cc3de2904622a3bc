"""Write models for Solr's LTR module: LinearModel with normalisers, or MultipleAdditiveTreesModel."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.core.float32 import float32_threshold, shortest_decimal
from truerank.export.form import Linear, ModelForm, as_plain
from truerank.export.nested import nested_trees
from truerank.models.foreign.search_engines import PACKAGE, SLACK


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the model's JSON, for PUT to `schema/model-store`. Unused features are left out."""
    used = form.used if len(form.used) else np.array([0])
    values: dict[str, Any]
    features: list[dict[str, Any]] = [{"name": form.names[k]} for k in used]
    if isinstance(form.body, Linear):
        if form.normalizers is not None:
            scaling = form.normalizers.as_subtract_divide()
            for feature, k in zip(features, used):
                params = {"avg": _text(scaling.first[k]), "std": _text(scaling.second[k])}
                feature["norm"] = {"class": f"{PACKAGE}norm.StandardNormalizer", "params": params}
        weights = {form.names[k]: float(shortest_decimal(form.body.weights[k])) for k in used}
        kind, values = "LinearModel", {"weights": weights}
    else:
        plain = as_plain(form)
        trees = plain.body.trees
        thresholds = before_slack(float32_threshold(trees.thresholds, inputs))

        def split(node: int, left: Any, right: Any) -> Any:
            feature = form.names[trees.features[node]]
            return {"feature": feature, "threshold": _text(thresholds[node]), "left": left, "right": right}

        roots = nested_trees(trees, lambda leaf: {"value": _text(trees.values[leaf])}, split)
        constant = form.start + form.intercept
        if constant:
            roots.insert(0, {"value": _text(constant)})
        kind, values = "MultipleAdditiveTreesModel", {"trees": [{"weight": "1", "root": root} for root in roots]}
    model = {"class": f"{PACKAGE}model.{kind}", "name": name, "features": features, "params": values}
    return json.dumps(model, ensure_ascii=False, indent=1) + "\n"


def before_slack(thresholds: np.ndarray) -> np.ndarray:
    """Return float32 numbers s with `s + 1e-6f` equal to the thresholds, or just above if no s gives equality.

    Equality fails for -1 and near 0. The result is rounded up, so that only a feature at the next number above a
    threshold causes an error. Features are more often at the threshold itself.
    """
    t = np.clip(thresholds, -np.finfo(np.float32).max, np.finfo(np.float32).max)
    with np.errstate(over="ignore"):
        s = (t - SLACK).astype(np.float32)
        tries = [s, np.nextafter(s, np.float32(np.inf)), np.nextafter(s, np.float32(-np.inf))]
        tries += [np.nextafter(tries[1], np.float32(np.inf)), np.nextafter(tries[2], np.float32(-np.inf))]
        result = t.astype(np.float32)
        for candidate in sorted(tries, key=lambda own: -float(np.sum(own, dtype=np.float64))):
            result = np.where(np.isfinite(candidate) & (candidate + SLACK >= t), candidate, result)
    return result.astype(np.float32)


def _text(x: Any) -> str:
    return str(np.float32(x))
