"""LightGBM's models: the text of `save_model` and the JSON of `dump_model`.

`x <= threshold` goes left, in float64. Raw scores are the sum of the trees in order, or their mean (up to rounding) for
a random forest (`average_output`). A missing value counts as 0 (missing type None), or is nan or zero and goes to the
side of `default_left`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import ModelForm, Plain
from truerank.models.foreign.model import ForeignModel, Leaf, Membership, Reader, Split, TreeBuilder, category_ends

_MISSING = ("None", "Zero", "NaN")
_WORD = (1 << 32) - 1


def read_text(text: str, reader: Reader) -> ForeignModel:
    """Read a text file of `Booster.save_model`."""
    head, blocks = _blocks(text, reader)
    if head.get("version") not in ("v2", "v3", "v4"):
        raise reader.fail("", f"expected LightGBM's version v2 to v4, got {head.get('version')!r}")
    _one_class(head.get("num_tree_per_iteration", head.get("num_class")), "num_tree_per_iteration", reader)
    names = reader.names(head.get("feature_names", "").split(), "feature_names")
    if reader.integer(head.get("max_feature_idx"), "max_feature_idx") + 1 != len(names):
        raise reader.fail("feature_names", f"{len(names)} names for max_feature_idx={head['max_feature_idx']}")
    builder = TreeBuilder(reader)
    for number, (line, block) in enumerate(blocks):
        _add_text_tree(block, f"line {line}, Tree={number}", len(names), reader, builder)
    reader.fail_if(not blocks, "", "there is no tree in the file")
    return _of_trees(names, builder, "average_output" in head)


def _of_trees(names: tuple[str, ...], builder: TreeBuilder, average: bool) -> ForeignModel:
    trees = builder.trees()
    if average and trees.n_trees:
        trees = replace(trees, values=trees.values / trees.n_trees)
    notes = ("a random forest: the mean of its trees, as `predict` has it",) if average else ()
    return ForeignModel("lightgbm", ModelForm(names, Plain(trees)), notes=notes)


def _blocks(text: str, reader: Reader) -> tuple[dict[str, str], list[tuple[int, dict[str, str]]]]:
    head: dict[str, str] = {}
    blocks: list[tuple[int, dict[str, str]]] = []
    current, ended = head, False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line == "end of trees":
            ended = True
            break
        key, equals, value = line.partition("=")
        if key == "Tree":
            if value != str(len(blocks)):
                raise reader.fail(f"line {number}", f"expected Tree={len(blocks)}, got {line[:40]!r}")
            current = {}
            blocks.append((number, current))
        elif equals or line == "average_output":
            reader.fail_if(key in current, f"line {number}", f"{key} occurs twice")
            current[key] = value
        elif line and line != "tree":
            raise reader.fail(f"line {number}", f"expected key=value, got {line[:40]!r}")
    reader.fail_if(not ended, "", "the file ends before 'end of trees': it is truncated")
    return head, blocks


def _add_text_tree(block: dict[str, str], place: str, n_features: int, reader: Reader, builder: TreeBuilder) -> None:
    leaves = reader.integer(block.get("num_leaves"), f"{place}, num_leaves", 1, 1 << 31)
    n_sets = reader.integer(block.get("num_cat", "0"), f"{place}, num_cat")
    reader.fail_if(block.get("is_linear", "0") != "0", place, "linear leaves (linear_tree) are not read")

    def column(key: str, size: int) -> list[str]:
        values = block.get(key, "").split()
        reader.fail_if(len(values) != size, f"{place}, {key}", f"expected {size} values, got {len(values)}")
        return values

    def integers(key: str, size: int, low: int, high: int) -> list[int]:
        return [reader.integer(value, f"{place}, {key}", low, high) for value in column(key, size)]

    values = [reader.number(v, f"{place}, leaf_value") for v in column("leaf_value", leaves)]
    if leaves == 1:
        builder.add(0, lambda _: Leaf(values[0]))
        return
    size = leaves - 1
    features = integers("split_feature", size, 0, n_features - 1)
    thresholds = [_threshold(v, f"{place}, threshold", reader) for v in column("threshold", size)]
    kinds = integers("decision_type", size, 0, 15)
    left = integers("left_child", size, -leaves, size - 1)
    right = integers("right_child", size, -leaves, size - 1)
    bounds = integers("cat_boundaries", n_sets + 1, 0, 1 << 40) if n_sets else [0]
    words = integers("cat_threshold", bounds[-1], 0, _WORD)
    seen: set[int] = set()

    def categories(number: float) -> set[int]:
        k = reader.integer(number, f"{place}, threshold", 0, n_sets - 1)
        own = words[bounds[k] : bounds[k + 1]]
        return {32 * i + bit for i, word in enumerate(own) for bit in range(32) if word >> bit & 1}

    def look(child: int) -> Leaf | Split | Membership:
        reader.fail_if(child in seen, place, f"node {child} has two parents: the tree is cyclic or shares a part")
        seen.add(child)
        if child < 0:
            return Leaf(values[~child])
        kind = kinds[child]
        reader.fail_if(kind >> 2 > 2, f"{place}, decision_type", f"{kind} names no way of missing values")
        if kind & 1:
            return _membership(features[child], categories(thresholds[child]), left[child], right[child])
        return _split(
            features[child], thresholds[child], bool(kind & 2), _MISSING[kind >> 2], left[child], right[child]
        )

    builder.add(0, look)
    if len(seen) != size + leaves:
        raise reader.fail(place, f"{size + leaves} nodes and leaves, of which the root reaches {len(seen)}")


def read_json(value: Any, reader: Reader) -> ForeignModel:
    """Read the JSON of `Booster.dump_model`."""
    _one_class(value.get("num_tree_per_iteration", value.get("num_class", 1)), "num_tree_per_iteration", reader)
    names = reader.names(reader.part(value, "feature_names", list, ""), "feature_names")
    builder = TreeBuilder(reader)
    for number, tree in enumerate(reader.part(value, "tree_info", list, "")):
        place = f"tree_info[{number}]"

        def look(node: Any, place: str = place) -> Leaf | Split | Membership:
            if isinstance(node, dict) and "leaf_value" in node:
                reader.fail_if("leaf_coeff" in node, place, "linear leaves (linear_tree) are not read")
                return Leaf(reader.number(node["leaf_value"], f"{place}.leaf_value"))
            if reader.part(node, "decision_type", str, place) not in ("<=", "=="):
                raise reader.fail(f"{place}.decision_type", f"expected '<=' or '==', got {node['decision_type']!r}")
            missing = node.get("missing_type", "None")
            if missing not in _MISSING:
                raise reader.fail(f"{place}.missing_type", f"expected {', '.join(_MISSING)}, got {missing!r}")
            own = reader.part(node, "split_feature", int, place)
            feature = reader.integer(own, f"{place}.split_feature", 0, len(names) - 1)
            left, right = (reader.part(node, side, dict, place) for side in ("left_child", "right_child"))
            if node["decision_type"] == "==":
                texts = reader.part(node, "threshold", str, place).split("||")
                return _membership(feature, {reader.integer(v, f"{place}.threshold") for v in texts}, left, right)
            threshold = _threshold(node.get("threshold"), f"{place}.threshold", reader)
            return _split(feature, threshold, reader.part(node, "default_left", bool, place), missing, left, right)

        builder.add(reader.part(tree, "tree_structure", dict, place), look)
    return _of_trees(names, builder, bool(value.get("average_output")))


def _one_class(value: object, key: str, reader: Reader) -> None:
    reader.fail_if(reader.integer(value, key, 1) != 1, key, f"the model has {value} outputs a row; a ranker has one")


def _threshold(value: Any, place: str, reader: Reader) -> float:
    """A threshold, which may be infinite but not nan."""
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError):
        x = np.nan
    return x if x in (np.inf, -np.inf) else reader.number(value, place)


def _split(feature: int, threshold: float, default_left: bool, missing: str, left: Any, right: Any) -> Split:
    if missing == "None":  # nan is replaced by 0
        return Split(feature, threshold, left, right, missing_right=not threshold >= 0.0)
    return Split(feature, threshold, left, right, missing_right=not default_left, zero_missing=missing == "Zero")


def _membership(feature: int, categories: set[int], left: Any, right: Any) -> Membership:
    """Return a membership. Values are truncated to integers, and nan belongs to no category."""
    before = lambda c: -1.0 if c == 0 else float(np.nextafter(c, -np.inf))  # noqa: E731
    return Membership(feature, category_ends(categories, before), left, right)
