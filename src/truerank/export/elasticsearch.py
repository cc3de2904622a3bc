"""The LTR plugins of Elasticsearch and OpenSearch: a body for `_ltr/_featureset/NAME/_createmodel`.

A linear model is `model/linear` with feature normalisers, without its constant, which changes no order. Trees are
RankLib's text, `model/ranklib`. In both, a feature whose query does not match a document is 0. XGBoost models of the
plugins would receive nan instead, and send it right in every question.
"""

from __future__ import annotations

import json
from typing import Any

from truerank.core.float32 import shortest_decimal
from truerank.export import ranklib
from truerank.export.form import Linear, ModelForm


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the body as JSON. Trees identify features by their places in the feature set, from 1."""
    if isinstance(form.body, Linear):
        model = _linear(form)
    else:
        model = {"type": "model/ranklib", "definition": ranklib.write(form, name, inputs)}
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


def _float(x: Any) -> float:
    return float(shortest_decimal(x))
