"""LightGBM's models: the text of `save_model` and the JSON of `dump_model`.

`x <= threshold` goes left, in float64. Raw scores are the sum of the trees in order, or their mean (up to rounding) for
a random forest (`average_output`). A missing value counts as 0 (missing type None), or is nan or zero and goes to the
side of `default_left`. After training on a data frame, the file lists the categories of each categorical
column (`pandas_categorical`), in the order of these columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import ModelForm, Plain
from truerank.models.foreign.model import Categories, ForeignModel, Keys, Leaf, Membership, Reader, Split, TreeBuilder

_MISSING = {
    "None": "missing values count as 0",
    "Zero": "missing values and 0 go to the default side of each split",
    "NaN": "missing values go to the default side of each split",
}
_WORD = (1 << 32) - 1
_STATISTICS = "split_gain leaf_weight leaf_count internal_value internal_weight internal_count"
_COMMON = "num_class num_tree_per_iteration feature_names feature_infos average_output"
_TRAINING = "label_index monotone_constraints"
_HEAD = Keys(f"version max_feature_idx {_COMMON}", training=_TRAINING, link="objective", places="tree_sizes")
_TREE = Keys(  # `leaf_value` contains the shrinkage
    "num_leaves num_cat split_feature threshold decision_type left_child right_child leaf_value cat_boundaries "
    "cat_threshold is_linear", statistics=_STATISTICS, training="shrinkage", places="leaf_parent",
)  # fmt: skip
_JSON = Keys(
    f"tree_info pandas_categorical {_COMMON}", names="name version", training=_TRAINING, link="objective",
    statistics="feature_importances", places="max_feature_idx",
)  # fmt: skip
_JSON_INFO = Keys("values", statistics="min_value max_value")
_JSON_TREE = Keys("tree_structure", training="shrinkage", places="tree_index num_leaves num_cat")
_JSON_LEAF = Keys("leaf_value", statistics="leaf_weight leaf_count", places="leaf_index leaf_parent")
_JSON_SPLIT = Keys(
    "split_feature threshold decision_type default_left missing_type left_child right_child",
    statistics=_STATISTICS, places="split_index",
)  # fmt: skip


def read_text(text: str, reader: Reader) -> ForeignModel:
    """Read a text file of `Booster.save_model`."""
    head, blocks, lists = _blocks(text, reader)
    reader.known(head, _HEAD, "the part before the trees")
    reader.choice(head.get("version"), ("v2", "v3", "v4"), "version")
    _one_class(head.get("num_tree_per_iteration", head.get("num_class")), "num_tree_per_iteration", reader)
    names = reader.names(head.get("feature_names", "").split(" "), "feature_names")
    reader.count(names, reader.integer(head.get("max_feature_idx"), "max_feature_idx") + 1, "feature_names", "names")
    infos = head.get("feature_infos", "").split()
    values = {k: info.split(":") for k, info in enumerate(infos) if info[0] != "[" and info != "none"}
    unused = [k for k, info in enumerate(infos) if info == "none"]
    questions = _Questions(_listed(lists, values, unused, reader), reader)
    builder = TreeBuilder(reader)
    for number, (line, block) in enumerate(blocks):
        _add_text_tree(block, f"line {line}, Tree={number}", len(names), questions, builder)
    reader.fail_if(not blocks, "", "there is no tree in the file")
    return _of_trees(names, builder, "average_output" in head, questions)


def _listed(lists: Any, values: dict[int, list[Any]], unused: list[int], reader: Reader) -> dict[int, Categories]:
    """Return the lists of categories by column; the file does not name the columns of its lists.

    `values` are the numbers of each categorical column, and `unused` the columns without a feature_info.
    """
    place = "pandas_categorical"
    if not lists:
        return {}
    reader.fail_if(not isinstance(lists, list), place, "expected a list of lists of categories")
    extra, found = len(lists) - len(values), {}  # lists of columns that no split can ask about
    advice = "This happens with ordered categories: replace these by numbers in the data frame, and train again."
    if not 0 <= extra <= len(unused):
        raise reader.fail(
            place,
            f"the file has {len(lists)} lists of categories for {len(values)} categorical columns. {advice}",
            code="categories",
        )
    for rank, column in enumerate(sorted(values)):
        before = sum(other < column for other in unused)
        last = max(reader.integer(value, f"feature_infos, column {column}", -1) for value in values[column])
        near = lists[rank + max(0, extra - len(unused) + before) : rank + min(extra, before) + 1]
        possible = [own for own in near if isinstance(own, list) and len(own) > last]
        if not possible or possible != possible[:1] * len(possible):
            what = f"the file does not show which of the {len(lists)} lists belongs to column {column}"
            raise reader.fail(place, f"{what}. {advice}")
        found[column] = possible[0]
    return reader.categories(found, place)


def _of_trees(
    names: tuple[str, ...], builder: TreeBuilder, average: bool, questions: _Questions, notes: tuple[str, ...] = ()
) -> ForeignModel:
    trees = builder.trees()
    if average and trees.n_trees:
        trees = replace(trees, values=trees.values / trees.n_trees)
    notes += ("a random forest: the score is the mean of its trees, as in `predict`",) if average else ()
    rule = ", or in other splits: ".join(_MISSING[kind] for kind in _MISSING if kind in questions.kinds)
    return ForeignModel(
        "lightgbm", ModelForm(names, Plain(trees)), notes=notes, missing=rule or "missing values belong to no category",
        categories=questions.listed,
    )  # fmt: skip


def _blocks(text: str, reader: Reader) -> tuple[dict[str, str], list[tuple[int, dict[str, str]]], Any]:
    """Return the keys before the trees, those of each tree with its line, and the lists of categories."""
    head: dict[str, str] = {}
    blocks: list[tuple[int, dict[str, str]]] = []
    current, lines = head, text.split("\n")
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if line == "end of trees":
            return head, blocks, _after_trees(lines, number, reader)
        key, equals, value = line.partition("=")
        if key == "Tree":
            reader.expect(value == str(len(blocks)), f"line {number}", f"Tree={len(blocks)}", line)
            current = {}
            blocks.append((number, current))
        elif equals or line == "average_output":
            reader.fail_if(key in current, f"line {number}", f"{key} occurs twice")
            current[key] = value
        elif line and line != "tree":
            raise reader.fail(f"line {number}", f"expected key=value, got {line[:40]!r}", code="not-a-setting")
    raise reader.fail("", "the file ends before 'end of trees': it is truncated")


def _after_trees(lines: list[str], start: int, reader: Reader) -> Any:
    """Return the lists of categories after the trees. Importances and settings of training change no score."""
    ends = {"feature_importances:": "", "feature importances:": "", "parameters:": "end of parameters"}
    lists, end = None, None
    for number, line in enumerate(lines[start:], start + 1):
        line = line.strip()
        if end is not None:
            end = None if line == end else end
        elif line in ends:
            end = ends[line]
        elif line.startswith("pandas_categorical:"):
            lists = reader.json(line.partition(":")[2])
        elif line:
            raise reader.fail(
                f"line {number}",
                f"the part {line[:40]!r} after the trees is unknown. Remove it from the file.",
                code="unknown-part",
            )
    return lists


class _Questions:
    """Converts splits to questions; `kinds` are the rules for missing values that occurred."""

    def __init__(self, listed: dict[int, Categories], reader: Reader) -> None:
        self.listed, self.reader = listed, reader
        self.kinds: set[str] = set()

    def split(self, feature: int, threshold: float, default_left: bool, missing: str, left: Any, right: Any) -> Split:
        self.reader.fail_if(feature in self.listed, f"column {feature}", "a categorical column is split at a threshold")
        self.kinds.add(missing)
        if missing == "None":  # nan is replaced by 0
            return Split(feature, threshold, left, right, missing_right=not threshold >= 0.0)
        return Split(feature, threshold, left, right, missing_right=not default_left, zero_missing=missing == "Zero")

    def membership(self, feature: int, numbers: set[int], left: Any, right: Any) -> Membership:
        """Return a question about categories. Numbers are truncated to integers; nan belongs to no category."""
        before = lambda c: -1.0 if c == 0 else float(np.nextafter(c, -np.inf))  # noqa: E731
        return Membership.of(feature, numbers, self.listed.get(feature), before, left, right)


def _add_text_tree(
    block: dict[str, str], place: str, n_features: int, questions: _Questions, builder: TreeBuilder
) -> None:
    reader = questions.reader
    reader.fail_if(block.get("is_linear", "0") != "0", place, "linear leaves are not read. Set linear_tree=False")
    reader.known(block, _TREE, place)
    leaves = reader.integer(block.get("num_leaves"), f"{place}, num_leaves", 1, 1 << 31)
    n_sets = reader.integer(block.get("num_cat", "0"), f"{place}, num_cat")

    def column(key: str, size: int) -> list[str]:
        values: list[str] = reader.count(block.get(key, "").split(), size, f"{place}, {key}")
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
        reader.fail_if(kind >> 2 > 2, f"{place}, decision_type", f"{kind} states no known rule for missing values")
        if kind & 1:
            return questions.membership(features[child], categories(thresholds[child]), left[child], right[child])
        missing = tuple(_MISSING)[kind >> 2]
        return questions.split(features[child], thresholds[child], bool(kind & 2), missing, left[child], right[child])

    builder.add(0, look)
    if len(seen) != size + leaves:
        raise reader.fail(place, f"the root reaches {len(seen)} of {size + leaves} nodes and leaves")


def read_json(value: Any, reader: Reader) -> ForeignModel:
    """Read the JSON of `Booster.dump_model`."""
    reader.known(value, _JSON, "")
    _one_class(value.get("num_tree_per_iteration", value.get("num_class", 1)), "num_tree_per_iteration", reader)
    names = reader.names(reader.part(value, "feature_names", list, ""), "feature_names")
    infos = value.get("feature_infos", {})
    reader.known(infos, Keys(names), "feature_infos")
    found = {k: reader.known(infos[name], _JSON_INFO, "feature_infos") for k, name in enumerate(names) if name in infos}
    values = {k: list(info["values"]) for k, info in found.items() if info.get("values")}
    unused = [k for k in range(len(names)) if k not in found]
    questions = _Questions(_listed(value.get("pandas_categorical"), values, unused, reader), reader)
    builder = TreeBuilder(reader)
    for number, tree in enumerate(reader.part(value, "tree_info", list, "")):
        place = f"tree_info[{number}]"
        reader.known(tree, _JSON_TREE, place)

        def look(node: Any, place: str = place) -> Leaf | Split | Membership:
            if isinstance(node, dict) and "leaf_value" in node:
                reader.fail_if("leaf_coeff" in node, place, "linear leaves are not read. Set linear_tree=False")
                return Leaf(reader.number(reader.known(node, _JSON_LEAF, place)["leaf_value"], f"{place}.leaf_value"))
            reader.choice(reader.part(node, "decision_type", str, place), ("<=", "=="), f"{place}.decision_type")
            missing = reader.part(reader.known(node, _JSON_SPLIT, place), "missing_type", str, place)
            reader.choice(missing, _MISSING, f"{place}.missing_type")
            own = reader.part(node, "split_feature", int, place)
            feature = reader.integer(own, f"{place}.split_feature", 0, len(names) - 1)
            left, right = (reader.part(node, side, dict, place) for side in ("left_child", "right_child"))
            if node["decision_type"] == "==":
                texts = reader.part(node, "threshold", str, place).split("||")
                numbers = {reader.integer(v, f"{place}.threshold") for v in texts}
                return questions.membership(feature, numbers, left, right)
            threshold = _threshold(node.get("threshold"), f"{place}.threshold", reader)
            on_left = reader.part(node, "default_left", bool, place)
            return questions.split(feature, threshold, on_left, missing, left, right)

        builder.add(reader.part(tree, "tree_structure", dict, place), look)
    older = "the score is the sum of the trees: a dump of this older version does not state whether it is their mean"
    notes = () if "average_output" in value else (older,)
    return _of_trees(names, builder, bool(value.get("average_output")), questions, notes)


def _one_class(value: object, key: str, reader: Reader) -> None:
    reader.fail_if(reader.integer(value, key, 1) != 1, key, f"the model has {value} outputs a row, expected one")


def _threshold(value: Any, place: str, reader: Reader) -> float:
    """Return a threshold, which may be infinite but not nan."""
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError):
        x = np.nan
    return x if x in (np.inf, -np.inf) else reader.number(value, place)
