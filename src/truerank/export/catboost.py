"""CatBoost's JSON: oblivious trees over float32 features, leaf values and sums in float64."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.core.float32 import finite_threshold
from truerank.data.grouping import offsets_of
from truerank.export.form import ModelForm, as_oblivious


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the JSON for `CatBoost().load_model(…, format="json")`, without `name`.

    CatBoost sends missing values one way for all borders of a feature: right only if every question does.
    """
    ensemble = as_oblivious(form).body.ensemble
    limits = finite_threshold(ensemble.borders, inputs)
    asked = np.isfinite(ensemble.borders) | ensemble.missing_right
    borders = [np.unique(limits[asked & (ensemble.features == k)]) for k in range(form.n_features)]
    first = offsets_of([len(own) for own in borders])
    features = []
    for k, own in enumerate(borders):
        mine = asked & (ensemble.features == k)
        right = bool(mine.any() and ensemble.missing_right[mine].all())
        features.append({
            "borders": [float(b) for b in own], "feature_id": form.names[k], "feature_index": k,
            "flat_feature_index": k, "has_nans": True, "nan_value_treatment": "AsTrue" if right else "AsFalse",
        })  # fmt: skip
    trees, bias = [], form.start + form.intercept
    for t in range(ensemble.n_trees):
        levels = np.flatnonzero(asked[t])
        splits: list[dict[str, Any]] = []
        for level in levels:
            k, limit = int(ensemble.features[t, level]), limits[t, level]
            splits.append({
                "border": float(limit), "float_feature_index": k, "split_type": "FloatFeature",
                "split_index": int(first[k] + np.searchsorted(borders[k], limit)),
            })  # fmt: skip
        numbers = [
            sum(1 << int(own) for bit, own in enumerate(levels) if q >> bit & 1) for q in range(1 << len(levels))
        ]
        values = [float(ensemble.values[t, q]) for q in numbers]
        if not splits:
            bias += values[0]
            continue
        trees.append({"leaf_values": values, "leaf_weights": [1] * len(values), "splits": splits})
    model = {
        "features_info": {"float_features": features},
        "oblivious_trees": trees,
        "scale_and_bias": [1, [bias]],
    }
    return json.dumps(model, ensure_ascii=False) + "\n"
