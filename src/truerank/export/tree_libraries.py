"""Write the formats of libraries of boosted trees.

LightGBM's model text has float64 thresholds and values and missing values by node, and scores have the bits of
`predict`. XGBoost's `save_model` JSON has trees with float32 questions `x < t`, or gblinear for linear models.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.float32 import finite_threshold, shortest_decimal
from truerank.export.form import Linear, ModelForm, as_linear, as_plain
from truerank.trees.binary import BinaryTrees

_NO_PARENT = 2147483647


def write_lightgbm(form: ModelForm, name: str, inputs: str) -> str:
    """Return the text for `Booster(model_file=…)`, which does not contain `name`."""
    bad = next((own for own in form.names if any(c.isspace() or c in '",:[]{}' for c in own)), None)
    if bad is not None:
        raise InvalidInputError(
            f'LightGBM allows no blanks and none of ",:[]{{}} in feature names, got {bad!r}. Rename it'
        )
    trees = as_plain(form).body.trees
    blocks = [_lightgbm_tree(trees, root) for root in trees.roots.tolist()]
    if form.start or not blocks:
        blocks.insert(0, _lightgbm_leaf(form.start))
    if form.intercept:
        blocks.append(_lightgbm_leaf(form.intercept))
    texts = [f"Tree={number}\n{block}\n\n" for number, block in enumerate(blocks)]
    infos = " ".join(["[-1e308:1e308]"] * form.n_features)
    head = [
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
        f"max_feature_idx={form.n_features - 1}", "objective=regression", f"feature_names={' '.join(form.names)}",
        f"feature_infos={infos}", f"tree_sizes={' '.join(str(len(text)) for text in texts)}", "", "",
    ]  # fmt: skip
    return "\n".join(head) + "".join(texts) + "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n"


def _lightgbm_leaf(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={float(value)!r}\nis_linear=0\nshrinkage=1\n"


def _lightgbm_tree(trees: BinaryTrees, root: int) -> str:
    if root < 0:
        return _lightgbm_leaf(trees.values[~root])
    both, left = trees.breadth_first(root)
    below = [count for node, count in zip(both, _leaves_below(left)) if node >= 0]
    order, leaves = [node for node in both if node >= 0], [node for node in both if node < 0]
    place = {node: k for k, node in enumerate(order)} | {leaf: ~k for k, leaf in enumerate(leaves)}
    largest = np.finfo(np.float64).max
    kinds = np.where(trees.missing_right[order], 0, 2) | np.where(trees.zero_missing[order], 4, 8)
    columns: dict[str, list[Any]] = {
        "split_feature": trees.features[order].tolist(),
        "split_gain": [1] * len(order),
        "threshold": np.clip(trees.thresholds[order], -largest, largest).tolist(),
        "decision_type": kinds.tolist(),
        "left_child": [place[child] for child in trees.left[order].tolist()],
        "right_child": [place[child] for child in trees.right[order].tolist()],
        "leaf_value": [float(trees.values[~leaf]) for leaf in leaves],
        "leaf_weight": [1] * len(leaves),
        "leaf_count": [1] * len(leaves),
        "internal_value": [0] * len(order),
        "internal_weight": below,
        "internal_count": below,
    }
    lines = [f"{key}={' '.join(repr(value) for value in values)}" for key, values in columns.items()]
    return "\n".join([f"num_leaves={len(leaves)}", "num_cat=0", *lines, "is_linear=0", "shrinkage=1", ""])


def _leaves_below(left: list[int]) -> list[int]:
    """Return the number of leaves below each node of a tree in breadth-first order.

    It replaces the number of training rows, which a model does not keep. Explanations divide the count of a node by
    that of its parent, so the counts of two children must add up to it.
    """
    count = [1] * len(left)
    for place in range(len(left) - 1, -1, -1):
        if left[place]:
            count[place] = count[left[place]] + count[left[place] + 1]
    return count


def write_xgboost(form: ModelForm, name: str, inputs: str) -> str:
    """Return the JSON for `Booster(model_file=…)`, which does not contain `name`."""
    bad = next((own for own in form.names if any(c in "[]<" for c in own)), None)
    if bad is not None:
        raise InvalidInputError(f"XGBoost allows none of []< in feature names, got {bad!r}. Rename it")
    constant = form.start + form.intercept
    if isinstance(form.body, Linear):
        form, constant = as_linear(form), 0.0  # a constant would cost the float32 sums their last digits
        weights = shortest_decimal(form.body.weights).tolist()
        booster: dict[str, Any] = {"name": "gblinear", "model": {"boosted_rounds": 1, "weights": [*weights, 0.0]}}
    else:
        trees = _xgboost_trees(form, inputs)
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


def _xgboost_trees(form: ModelForm, inputs: str) -> list[dict[str, Any]]:
    trees = as_plain(form).body.trees
    limits = shortest_decimal(finite_threshold(trees.thresholds, inputs, below=True)).tolist()
    values = shortest_decimal(trees.values).tolist()
    result = []
    for number, root in enumerate(trees.roots.tolist()):
        order, left = trees.breadth_first(root)
        parents = [_NO_PARENT, *(place for place, child in enumerate(left) if child for _ in range(2))]
        size = len(order)
        result.append({
            "base_weights": [0.0 if node >= 0 else values[~node] for node in order],
            "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
            "default_left": [int(node >= 0 and not trees.missing_right[node]) for node in order],
            "id": number,
            "left_children": [child or -1 for child in left],
            "loss_changes": [0.0] * size,
            "parents": parents,
            "right_children": [child + 1 if child else -1 for child in left],
            "split_conditions": [limits[node] if node >= 0 else values[~node] for node in order],
            "split_indices": [int(trees.features[node]) if node >= 0 else 0 for node in order],
            "split_type": [0] * size,
            "sum_hessian": list(map(float, _leaves_below(left))),
            "tree_param": {
                "num_deleted": "0", "num_feature": str(form.n_features), "num_nodes": str(size),
                "size_leaf_vector": "1",
            },
        })  # fmt: skip
    return result
