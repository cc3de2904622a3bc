"""Write the formats of search engines: the LTR plugins of Elasticsearch and OpenSearch, and Solr's LTR module.

The plugins store a body for `_ltr/_featureset/NAME/_createmodel`: a linear model is `model/linear` with feature
normalisers, without its constant, which changes no order; stumps and trees are `model/ranklib`, the text of RankLib's
RankBoost or LambdaMART with ids from 1. In both, a feature whose query does not match a document is 0. XGBoost models
of the plugins would receive nan instead, and send it to the right in every question. Solr has LinearModel with
normalisers, and MultipleAdditiveTreesModel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.core.float32 import finite_threshold, float32_threshold, shortest_decimal
from truerank.export.form import Linear, ModelForm, Stumps, as_plain
from truerank.models.foreign.search_engines import PACKAGE, SLACK


def _ranklib(form: ModelForm, inputs: str) -> str:
    """Return the text of RankLib's RankBoost or LambdaMART."""
    if isinstance(form.body, Stumps) and form.normalizers is None and np.isfinite(form.body.thresholds).all():
        body = form.body
        thresholds = float32_threshold(body.thresholds, inputs).astype(np.float64)
        rows = zip(body.features.tolist(), thresholds.tolist(), body.weights.tolist())
        text = " ".join(f"{k + 1}:{threshold!r}:{weight!r}" for k, threshold, weight in rows)
        return f"## RankBoost\n## Iteration = {len(body.features)}\n## No. of threshold candidates = 10\n{text}"
    trees = as_plain(form).body.trees
    limits = finite_threshold(trees.thresholds, inputs)

    def split(node: int, left: list[str], right: list[str]) -> list[str]:
        sides = [("left", left), ("right", right)]
        nested = [line for side, part in sides for line in (f'<split pos="{side}">', *part, "</split>")]
        return [f"<feature>{trees.features[node] + 1} </feature>", f"<threshold> {limits[node]} </threshold>", *nested]

    roots: list[Any] = trees.nested(lambda leaf: [f"<output>{np.float32(trees.values[leaf])} </output>"], split)
    constant = form.start + form.intercept
    if constant:
        roots.insert(0, [f"<output>{np.float32(constant)} </output>"])
    lines = ["## LambdaMART", f"## No. of trees = {len(roots)}", "## No. of leaves = 64", "", "<ensemble>"]
    for number, root in enumerate(roots, 1):
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", *root, "</split>", "</tree>"]
    return "\n".join([*lines, "</ensemble>"]) + "\n"


def with_places(text: str, places: Mapping[int, int]) -> str:
    """Return a text of trees or stumps of `write_plugin` with column k at `places[k]`, both from 0."""

    def moved(found: re.Match[str]) -> str:
        return f"{found[1]}{places[int(found[2]) - 1] + 1}{found[3]}"

    return re.sub(r"(<feature>|(?<= )|^)(\d+)( </feature>|:)", moved, text, flags=re.M)


def write_plugin(form: ModelForm, name: str, inputs: str) -> str:
    """Return the body as JSON. Trees identify features by their positions in the feature set, from 1."""
    model: dict[str, Any] = {"type": "model/ranklib"}
    if isinstance(form.body, Linear):
        model = {"type": "model/linear", "definition": json.dumps(_weights(form), ensure_ascii=False)}
        if form.normalizers is not None:
            scaling = form.normalizers.as_subtract_divide()
            pairs = shortest_decimal(np.stack([scaling.first, scaling.second], axis=1)).tolist()
            model["feature_normalizers"] = {
                form.names[k]: {"standard": dict(zip(("mean", "standard_deviation"), pairs[k]))} for k in form.used
            }
    else:
        model["definition"] = _ranklib(form, inputs)
    return json.dumps({"model": {"name": name, "model": model}}, ensure_ascii=False, indent=1) + "\n"


def _weights(form: ModelForm) -> dict[str, float]:
    weights = {form.names[k]: float(shortest_decimal(form.body.weights[k])) for k in form.used}
    return weights or {form.names[0]: 0.0}


def write_solr(form: ModelForm, name: str, inputs: str) -> str:
    """Return the JSON of the model for PUT to `schema/model-store`, without unused features."""
    used = form.used if len(form.used) else np.array([0])
    values: dict[str, Any]
    features: list[dict[str, Any]] = [{"name": form.names[k]} for k in used]
    if isinstance(form.body, Linear):
        if form.normalizers is not None:
            scaling = form.normalizers.as_subtract_divide()
            for feature, k in zip(features, used):
                params = {"avg": _text(scaling.first[k]), "std": _text(scaling.second[k])}
                feature["norm"] = {"class": f"{PACKAGE}norm.StandardNormalizer", "params": params}
        kind, values = "LinearModel", {"weights": _weights(form)}
    else:
        trees = as_plain(form).body.trees
        thresholds = before_slack(float32_threshold(trees.thresholds, inputs))

        def split(node: int, left: Any, right: Any) -> Any:
            feature = form.names[trees.features[node]]
            return {"feature": feature, "threshold": _text(thresholds[node]), "left": left, "right": right}

        roots = trees.nested(lambda leaf: {"value": _text(trees.values[leaf])}, split)
        constant = form.start + form.intercept
        if constant:
            roots.insert(0, {"value": _text(constant)})
        kind, values = "MultipleAdditiveTreesModel", {"trees": [{"weight": "1", "root": root} for root in roots]}
    model = {"class": f"{PACKAGE}model.{kind}", "name": name, "features": features, "params": values}
    return json.dumps(model, ensure_ascii=False, indent=1) + "\n"


def before_slack(thresholds: np.ndarray) -> np.ndarray:
    """Return float32 numbers s with `s + 1e-6f` equal to the thresholds, or just above if no s gives equality.

    Equality fails for -1 and near 0. Then only a feature at the next number above a threshold has an error.
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
