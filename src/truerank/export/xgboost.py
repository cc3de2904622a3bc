"""XGBoost's `save_model` JSON: trees with float32 questions `x < t`, or gblinear for linear models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.float32 import finite_threshold, shortest_decimal
from truerank.export.form import Linear, ModelForm, as_linear, as_plain
from truerank.export.nested import breadth_first

_NO_PARENT = 2147483647


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the JSON for `Booster(model_file=…)`, without `name`."""
    bad = next((own for own in form.names if any(c in "[]<" for c in own)), None)
    if bad is not None:
        raise InvalidInputError(f"XGBoost allows none of []< in feature names, got {bad!r}")
    constant = form.start + form.intercept
    if isinstance(form.body, Linear):
        form, constant = as_linear(form), 0.0  # a constant would cost the float32 sums their last digits
        weights = [_float(w) for w in form.body.weights]
        booster: dict[str, Any] = {"name": "gblinear", "model": {"boosted_rounds": 1, "weights": [*weights, 0.0]}}
    else:
        trees = _trees(form, inputs)
        model = {
            "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
            "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
            "iteration_indptr": list(range(len(trees) + 1)),
            "tree_info": [0] * len(trees),
            "trees": trees,
        }
        booster = {"name": "gbtree", "model": model}
    learner = {
        "attributes": {},
        "feature_names": list(form.names),
        "feature_types": ["float"] * form.n_features,
        "gradient_booster": booster,
        "learner_model_param": {
            "base_score": f"[{np.float32(constant)}]", "boost_from_average": "1", "num_class": "0",
            "num_feature": str(form.n_features), "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }  # fmt: skip
    return json.dumps({"learner": learner, "version": [3, 2, 0]}, ensure_ascii=False) + "\n"


def _trees(form: ModelForm, inputs: str) -> list[dict[str, Any]]:
    trees = as_plain(form).body.trees
    limits = finite_threshold(trees.thresholds, inputs, below=True)
    result = []
    for number, root in enumerate(trees.roots.tolist()):
        order, left = breadth_first(trees, root)
        parents = [_NO_PARENT, *(place for place, child in enumerate(left) if child for _ in range(2))]
        size = len(order)
        inner = [node >= 0 for node in order]
        result.append({
            "base_weights": [0.0 if node >= 0 else _float(trees.values[~node]) for node in order],
            "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
            "default_left": [int(ok and not trees.missing_right[node]) for ok, node in zip(inner, order)],
            "id": number,
            "left_children": [child or -1 for child in left],
            "loss_changes": [0.0] * size,
            "parents": parents,
            "right_children": [child + 1 if child else -1 for child in left],
            "split_conditions": [
                _float(limits[node] if ok else trees.values[~node]) for ok, node in zip(inner, order)
            ],
            "split_indices": [int(trees.features[node]) if ok else 0 for ok, node in zip(inner, order)],
            "split_type": [0] * size,
            "sum_hessian": [1.0] * size,
            "tree_param": {
                "num_deleted": "0", "num_feature": str(form.n_features), "num_nodes": str(size),
                "size_leaf_vector": "1",
            },
        })  # fmt: skip
    return result


def _float(x: Any) -> float:
    return float(shortest_decimal(x))
