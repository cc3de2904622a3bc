"""LightGBM's model text: float64 thresholds and values, missing values by node. Scores have the bits of `predict`."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.export.form import ModelForm, as_plain
from truerank.export.nested import breadth_first
from truerank.trees.binary import BinaryTrees


def write(form: ModelForm, name: str, inputs: str) -> str:
    """Return the text for `Booster(model_file=…)`, without `name`."""
    bad = next((own for own in form.names if any(c.isspace() or c in '",:[]{}' for c in own)), None)
    if bad is not None:
        raise InvalidInputError(f'LightGBM allows no blanks and none of ",:[]{{}} in feature names, got {bad!r}')
    trees = as_plain(form).body.trees
    blocks = [_tree(trees, root) for root in trees.roots.tolist()]
    if form.start or not blocks:
        blocks.insert(0, _constant(form.start))
    if form.intercept:
        blocks.append(_constant(form.intercept))
    texts = [f"Tree={number}\n{block}\n\n" for number, block in enumerate(blocks)]
    infos = " ".join(["[-1e308:1e308]"] * form.n_features)
    head = [
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0",
        f"max_feature_idx={form.n_features - 1}", "objective=regression", f"feature_names={' '.join(form.names)}",
        f"feature_infos={infos}", f"tree_sizes={' '.join(str(len(text)) for text in texts)}", "", "",
    ]  # fmt: skip
    return "\n".join(head) + "".join(texts) + "end of trees\n\nfeature_importances:\n\nparameters:\nend of parameters\n"


def _constant(value: float) -> str:
    return f"num_leaves=1\nnum_cat=0\nleaf_value={float(value)!r}\nis_linear=0\nshrinkage=1\n"


def _tree(trees: BinaryTrees, root: int) -> str:
    if root < 0:
        return _constant(trees.values[~root])
    both, _ = breadth_first(trees, root)
    order, leaves = [node for node in both if node >= 0], [node for node in both if node < 0]
    place = {node: k for k, node in enumerate(order)} | {leaf: ~k for k, leaf in enumerate(leaves)}
    largest = np.finfo(np.float64).max
    kinds = [(0 if trees.missing_right[node] else 2) | (4 if trees.zero_missing[node] else 8) for node in order]
    columns: dict[str, list[Any]] = {
        "split_feature": [int(trees.features[node]) for node in order],
        "split_gain": [1] * len(order),
        "threshold": [float(np.clip(trees.thresholds[node], -largest, largest)) for node in order],
        "decision_type": kinds,
        "left_child": [place[int(trees.left[node])] for node in order],
        "right_child": [place[int(trees.right[node])] for node in order],
        "leaf_value": [float(trees.values[~leaf]) for leaf in leaves],
        "leaf_weight": [1] * len(leaves),
        "leaf_count": [1] * len(leaves),
        "internal_value": [0] * len(order),
        "internal_weight": [1] * len(order),
        "internal_count": [1] * len(order),
    }
    lines = [f"{key}={' '.join(repr(value) for value in values)}" for key, values in columns.items()]
    return "\n".join([f"num_leaves={len(leaves)}", "num_cat=0", *lines, "is_linear=0", "shrinkage=1", ""])
