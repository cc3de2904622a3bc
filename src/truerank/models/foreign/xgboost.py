"""XGBoost's models: JSON and UBJSON of `save_model`, JSON of `dump_model`.

Features, thresholds and sums are float32. `x < split_condition` goes left, and nan to the node's default side.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from truerank.export.form import Linear, ModelForm, Plain
from truerank.models.foreign.model import (
    MOST_FEATURES,
    Categories,
    ForeignModel,
    Keys,
    Leaf,
    Membership,
    Reader,
    Split,
    TreeBuilder,
    at_most,
)

# A file contains the base score as an output; the link of these objectives converts it to a margin.
_LOGIT = ("binary:logistic", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_IDENTITY = (
    "reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror",
    "reg:quantileerror", "reg:expectileerror", "binary:logitraw", "binary:hinge", "rank:pairwise", "rank:ndcg",
    "rank:map",
)  # fmt: skip
_DEFAULT_SIDE = "missing values go to the default side of each split"
_AS_NAN = (
    "XGBoost treats as missing: values that a sparse matrix or a LETOR line omits, and the value of `missing=`, which "
    "newer files do not contain. Replace both with nan"
)
_ONE_LEAF = {"size_leaf_vector": ("0", "1", 0, 1), "num_roots": ("0", "1", 0, 1)}
_FILE = Keys("learner version")
_LEARNER = Keys("attributes feature_names feature_types gradient_booster learner_model_param objective")
_PARAMS = Keys("base_score num_class num_feature num_target", training="boost_from_average")
_BOOSTERS = {"gbtree": Keys("name model"), "gblinear": Keys("name model"), "dart": Keys("name gbtree weight_drop")}
_LINEAR = Keys("weights", training="boosted_rounds")
_TREES = Keys("trees tree_info gbtree_model_param iteration_indptr cats")
_TREES_PARAM = Keys("num_trees num_parallel_tree", only=_ONE_LEAF)
_CATEGORIES = Keys("enc", places="feature_segments sorted_idx")
_LIST = Keys("values offsets", names="type")
_TREE = Keys(
    "left_children right_children split_indices split_conditions default_left split_type categories "
    "categories_nodes categories_segments categories_sizes tree_param",
    statistics="base_weights loss_changes sum_hessian leaf_child_counts", places="parents id",
)  # fmt: skip
_TREE_PARAM = Keys("num_nodes", places="num_deleted num_feature", only=_ONE_LEAF)
_DUMP_LEAF = Keys("nodeid leaf", statistics="cover", places="depth")
_DUMP_SPLIT = Keys("nodeid split split_condition yes no missing children", statistics="gain cover", places="depth")
_NUMBERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_LENGTHS = (b"i", b"U", b"I", b"l", b"L")
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_DEEPEST = 64


def read_saved(value: Any, reader: Reader, *, plugin: bool = False) -> ForeignModel:
    """Read the JSON or UBJSON of `save_model`. Scores are those of `predict(output_margin=True)`.

    With `plugin`, scores are those of the LTR plugins: of all trees, without the base score and without categories.
    """
    reader.known(value, _FILE, "")
    learner = reader.known(reader.part(value, "learner", dict, ""), _LEARNER, "learner")
    booster = reader.part(learner, "gradient_booster", dict, "learner")
    params = reader.known(
        reader.part(learner, "learner_model_param", dict, "learner"), _PARAMS, "learner.learner_model_param"
    )
    n_features = reader.integer(params.get("num_feature"), "learner.learner_model_param.num_feature")
    for key in ("num_class", "num_target"):  # a ranker has one output a row
        reader.integer(params.get(key, 1), f"learner.learner_model_param.{key}", 0, 1)
    given = reader.part(learner, "feature_names", list, "learner") if learner.get("feature_names") else []
    names = reader.names(given or [f"f{k}" for k in range(n_features)], "learner.feature_names")
    reader.count(names, n_features, "learner.feature_names", "names (num_feature)")
    base = 0.0 if plugin else _base_margin(params.get("base_score", "0"), learner, value.get("version"), reader)
    kind, place = booster.get("name"), "learner.gradient_booster"
    reader.choice(kind, ("gbtree",) if plugin else tuple(_BOOSTERS), f"{place}.name")
    reader.known(booster, _BOOSTERS[kind], place)
    if kind == "gblinear":
        return replace(_linear(booster, names, base, reader), numbered=not given)
    weights: list[float] | None = None
    if kind == "dart":
        weights = [reader.number(v, f"{place}.weight_drop") for v in reader.part(booster, "weight_drop", list, place)]
        booster, place = reader.part(booster, "gbtree", dict, place), f"{place}.gbtree"
        reader.known(booster, _BOOSTERS["gbtree"], place)
    model = reader.known(reader.part(booster, "model", dict, place), _TREES, f"{place}.model")
    trees = _trees_of(model, weights, f"{place}.model", reader)
    kept, notes = (len(trees), ()) if plugin else _kept_trees(learner, model, len(trees), reader)
    listed = _listed(model.get("cats"), f"{place}.model.cats", n_features, reader)
    if plugin and (listed or "c" in (learner.get("feature_types") or [])):
        raise reader.fail("learner.feature_types", "the plugin does not support categories", code="categories")
    builder = TreeBuilder(reader)
    for number, tree in enumerate(trees[:kept]):
        weight = 1.0 if weights is None else weights[number]
        _add_saved_tree(tree, f"{place}.model.trees[{number}]", n_features, weight, listed, reader, builder)
    form = ModelForm(names, Plain(builder.trees()), start=base, float32_sums=True)
    notes += () if plugin else (_AS_NAN,)
    return ForeignModel(
        "xgboost", form, float32=True, notes=notes, numbered=not given, missing=_DEFAULT_SIDE, categories=listed
    )


def _trees_of(model: dict[str, Any], weights: list[float] | None, place: str, reader: Reader) -> list[Any]:
    """Return the trees after a check that their number is right and all have the same output."""
    trees: list[Any] = reader.part(model, "trees", list, place)
    param = reader.part(model, "gbtree_model_param", dict, place)
    at = f"{place}.gbtree_model_param"
    claimed = reader.known(param, _TREES_PARAM, at).get("num_trees", len(trees))
    reader.count(trees, reader.integer(claimed, f"{at}.num_trees", 0, 1 << 40), at, "trees (num_trees)")
    if weights is not None:
        reader.count(weights, len(trees), "learner.gradient_booster.weight_drop", "weights, one for each tree")
    outputs = reader.part(model, "tree_info", list, place) if "tree_info" in model else []
    reader.fail_if(any(outputs), f"{place}.tree_info", f"expected only output 0, got {next(filter(None, outputs), 0)}")
    return trees


def _listed(value: Any, place: str, n_features: int, reader: Reader) -> dict[int, Categories]:
    """Return the lists of categories by column; the file joins texts, and `offsets` has the end of each text."""
    lists: dict[int, Any] = {}
    encoded = [] if value is None else reader.part(reader.known(value, _CATEGORIES, place), "enc", list, place)
    reader.count(encoded, n_features if encoded else 0, f"{place}.enc", "lists, one for each column")
    for column, own in enumerate(encoded):
        at = f"{place}.enc[{column}]"
        values = reader.part(reader.known(own, _LIST, at), "values", list, at)
        if "offsets" in own and values:
            ends = [reader.integer(v, f"{at}.offsets", 0, len(values)) for v in reader.part(own, "offsets", list, at)]
            letters = "".join(chr(reader.integer(v, f"{at}.values", -128, 255) & 255) for v in values)
            if not letters.isascii():  # XGBoost 3.2 counts characters where it cuts bytes
                raise reader.fail(
                    at,
                    "XGBoost truncates categories with non-ASCII letters. Rename them, and train again.",
                    code="letters",
                )
            values = [letters[start:end] for start, end in zip(ends[:-1], ends[1:])]
        if values:
            lists[column] = values
    return reader.categories(lists, place)


def _kept_trees(learner: dict[str, Any], model: dict[str, Any], count: int, reader: Reader) -> tuple[int, Any]:
    """Return the number of trees that `predict` adds (for XGBRanker up to the best round), and notes for the user."""
    attributes = learner.get("attributes")  # of any names, and without effect but for these
    if not isinstance(attributes, dict):
        return count, ()
    settings = reader.json(str(attributes.get("scikit_learn", "{}")))
    missing = settings.get("missing") if isinstance(settings, dict) else None
    if missing is not None and missing == missing:
        what = f"trained with missing={missing!r}: replace it by NaN in your data, and remove this attribute"
        raise reader.fail("learner.attributes.scikit_learn", what, code="missing-value")
    if "best_iteration" not in attributes:
        return count, ()
    best = reader.integer(attributes["best_iteration"], "learner.attributes.best_iteration", 0, 1 << 31)
    ends = model.get("iteration_indptr")
    if isinstance(ends, list) and ends:
        place = "learner.gradient_booster.model.iteration_indptr"
        stop = reader.integer(ends[min(best + 1, len(ends) - 1)], place, 0, count)
    else:
        parallel = model.get("gbtree_model_param", {}).get("num_parallel_tree", 1)
        stop = (best + 1) * max(1, reader.integer(parallel, "num_parallel_tree", 0, 1 << 31))
    if stop >= count:
        return count, ()
    if "scikit_learn" in attributes:
        return stop, (f"the first {stop} of {count} trees, as XGBRanker.predict uses after early stopping",)
    return count, (
        f"all {count} trees, as Booster.predict uses; early stopping chose the first {stop}: save "
        f"booster[:{best + 1}] to have these",
    )


def _base_margin(text: object, learner: dict[str, Any], version: object, reader: Reader) -> float:
    """Return the base score as a margin; since version 3 it is a text with an array, "[5E-1]"."""
    place = "learner.learner_model_param.base_score"
    if isinstance(text, str) and text.startswith("["):
        try:
            values = json.loads(text)
        except ValueError:
            values = None
        (text,) = reader.count(values, 1, place, "number")
    base = float(reader.float32(text, place))
    objective = learner.get("objective")
    name = objective.get("name", "") if isinstance(objective, dict) else ""
    if name in _LOGIT or (name == "binary:logitraw" and isinstance(version, list) and version < [1, 3]):
        reader.expect(0 < base < 1, place, f"a probability with {name}", base)
        odds = float(np.float32(1) / np.float32(base) - np.float32(1))
        return float(np.float32(-math.log(odds)))  # equals C's logf; NumPy's float32 log differs by an ulp
    if name in _LOG:
        reader.expect(base > 0, place, f"a positive number with {name}", base)
        return float(np.float32(math.log(base)))
    if name and name not in _IDENTITY:
        raise reader.fail(
            "learner.objective.name", f"the scale of the base score is unknown for {name!r}", code="objective"
        )
    return base


def _linear(booster: dict[str, Any], names: tuple[str, ...], base: float, reader: Reader) -> ForeignModel:
    place = "learner.gradient_booster.model.weights"
    model = reader.known(booster.get("model"), _LINEAR, "learner.gradient_booster.model")
    weights = [reader.float32(v, place) for v in reader.part(model, "weights", list, "learner.gradient_booster.model")]
    reader.count(weights, len(names) + 1, place, "numbers, the weights and a bias")
    values = np.array(weights, dtype=np.float32).astype(np.float64)
    start = float(np.float32(base) + np.float32(values[-1]))
    form = ModelForm(names, Linear(values[:-1]), start=start, float32_sums=True)
    return ForeignModel("xgboost", form, float32=True, absent=0.0)


def _add_saved_tree(
    tree: Any,
    place: str,
    n_features: int,
    weight: float,
    listed: dict[int, Categories],
    reader: Reader,
    builder: TreeBuilder,
) -> None:
    reader.known(tree, _TREE, place)

    def column(key: str, size: int | None = None) -> list[Any]:
        values: list[Any] = reader.part(tree, key, list, place)
        return values if size is None else reader.count(values, size, f"{place}.{key}")

    left = column("left_children")
    size = len(left)
    right, features = column("right_children", size), column("split_indices", size)
    conditions, default = column("split_conditions", size), column("default_left", size)
    claimed = reader.known(tree.get("tree_param"), _TREE_PARAM, f"{place}.tree_param").get("num_nodes", size)
    if reader.integer(claimed, f"{place}.tree_param.num_nodes", 0, 1 << 40) != size or not size:
        raise reader.fail(f"{place}.tree_param", f"num_nodes is {claimed!r}, but there are {size} nodes")
    categories = _categories(tree, place, size, reader)
    seen: set[int] = set()

    def look(node: int) -> Leaf | Split | Membership:
        reader.fail_if(node in seen, place, f"node {node} has two parents: the tree is cyclic or shares a part")
        seen.add(node)
        at = f"{place}, node {node}"
        children = [reader.integer(side[node], at, -1, size - 1) for side in (left, right)]
        if children == [-1, -1]:
            return Leaf(float(np.float32(weight) * reader.float32(conditions[node], f"{at}, split_conditions")))
        reader.fail_if(-1 in children, at, "a node has one child")
        feature = reader.integer(features[node], f"{at}, split_indices", 0, n_features - 1)
        reader.choice(default[node], (0, 1), f"{at}, default_left")
        if node in categories:  # those go right
            before = lambda c: _below(np.float32(c))  # noqa: E731
            sides = children[1], children[0], not default[node]
            return Membership.of(feature, categories[node], listed.get(feature), before, *sides)
        reader.fail_if(feature in listed, at, "a categorical column is split at a threshold")
        value = reader.float32(conditions[node], f"{at}, split_conditions")
        return Split(feature, _below(value), children[0], children[1], missing_right=not default[node])

    builder.add(0, look)


def _categories(tree: Any, place: str, size: int, reader: Reader) -> dict[int, set[int]]:
    kinds = reader.part(tree, "split_type", list, place) if tree.get("split_type") else []
    if not any(kinds):
        return {}
    columns = [
        [reader.integer(v, f"{place}.{key}", 0, 1 << 40) for v in reader.part(tree, key, list, place)]
        for key in ("categories_nodes", "categories_segments", "categories_sizes", "categories")
    ]
    nodes, segments, sizes, values = columns
    if not len(nodes) == len(segments) == len(sizes) or sorted(nodes) != [k for k, own in enumerate(kinds) if own]:
        raise reader.fail(f"{place}.categories_nodes", "expected each node of split_type 1 once, with its categories")
    found = {}
    for node, start, count in zip(nodes, segments, sizes):
        found[node] = {reader.integer(v, f"{place}.categories") for v in values[start : start + count]}
        if not 0 < count <= len(values) - start:
            raise reader.fail(
                f"{place}.categories_sizes", f"got {len(values)} categories, but {count} begin at {start}"
            )
    return found


def read_dump(value: Any, reader: Reader, names: list[str] | None = None, *, plugin: bool = False) -> ForeignModel:
    """Read `dump_model(dump_format="json")`: a list of trees, without the base score and without weights of dart.

    The LTR plugins of Elasticsearch and OpenSearch read the same nodes, with "yes" as the first child; without
    "missing", a missing value goes to "no".
    """
    reader.fail_if(not isinstance(value, list) or not value, "", "expected a list of trees that is not empty")
    found: dict[str, int] = {} if names is None else {name: k for k, name in enumerate(names)}
    builder = TreeBuilder(reader)
    for number, tree in enumerate(value):
        seen: set[int] = set()

        def look(node: Any, place: str = f"[{number}]", seen: set[int] = seen) -> Leaf | Split:
            own = reader.integer(reader.part(node, "nodeid", (int, str), place), f"{place}.nodeid", 0, 1 << 40)
            reader.fail_if(own in seen, place, f"two nodes have the nodeid {own}")
            seen.add(own)
            at = f"{place}, node {own}"
            reader.known(node, _DUMP_LEAF if "leaf" in node else _DUMP_SPLIT, at)
            if "leaf" in node:
                return Leaf(float(reader.float32(node["leaf"], f"{at}.leaf")))
            feature = reader.part(node, "split", (str, int), at)
            name = f"f{feature}" if isinstance(feature, int) else feature
            if name not in found:
                reader.fail_if(names is not None, f"{at}.split", f"there is no feature {name!r}")
                found[name] = len(found)
            children = reader.count(reader.part(node, "children", list, at), 2, f"{at}.children", "children")
            by_id = {reader.part(child, "nodeid", (int, str), f"{at}.children"): child for child in children}
            yes, no = (reader.part(node, key, (int, str), at) for key in ("yes", "no"))
            if yes not in by_id or no not in by_id or yes == no:
                raise reader.fail(at, f"yes ({yes!r}) and no ({no!r}) must be its two children")
            missing = no if plugin and "missing" not in node else reader.part(node, "missing", (int, str), at)
            reader.choice(missing, by_id, f"{at}.missing")
            if isinstance(node.get("split_condition"), list):
                raise reader.fail(
                    f"{at}.split_condition",
                    "a JSON dump with categorical splits cannot be imported. "
                    "Save the model itself: booster.save_model('model.json')",
                    code="categories",
                )
            value = reader.float32(node.get("split_condition"), f"{at}.split_condition")
            return Split(found[name], _below(value), by_id[yes], by_id[no], missing_right=missing == no)

        builder.add(tree, look)
    trees = builder.trees()
    if names is None and found and all(name[:1] == "f" and name[1:].isdigit() for name in found):
        size = 1 + max(int(name[1:]) for name in found)  # f0, f1, … are columns
        reader.fail_if(size > MOST_FEATURES, "", f"expected numbers below {MOST_FEATURES}, got the feature f{size - 1}")
        columns = np.array([int(name[1:]) for name in found], dtype=np.int64)
        trees = replace(trees, features=columns[trees.features])
        names = [f"f{k}" for k in range(size)]
    unordered = names is None and len(found) > 1
    form = ModelForm(tuple(found) if names is None else tuple(names), Plain(trees), float32_sums=True)
    lacks = "a dump lacks the base score, the weights of dart, and the number of outputs"
    notes = () if plugin else (lacks, _AS_NAN)
    return ForeignModel("xgboost", form, float32=True, notes=notes, unordered=unordered, missing=_DEFAULT_SIDE)


def _below(value: np.float32) -> float:
    """Return the threshold c for which `x ≤ c` equals `x < value`."""
    return at_most(np.nextafter(value, np.float32(-np.inf)))


class UbjsonReader:
    """Decodes the Universal Binary JSON that XGBoost writes; every length is checked against the rest of the data."""

    def __init__(self, data: bytes, reader: Reader) -> None:
        self.data, self.reader, self.place = data, reader, 0

    def read(self) -> Any:
        """Return the only value."""
        value = self._value(self._take(1), 0)
        self._fail_if(self.data[self.place :].strip(b"N\0"), "the file has content after the end of the value")
        return value

    def _fail_if(self, wrong: object, what: str) -> None:
        self.reader.fail_if(wrong, f"byte {self.place}", what)

    def _take(self, size: int) -> bytes:
        left = len(self.data) - self.place
        if not 0 <= size <= left:
            self._fail_if(True, f"{size} bytes are claimed, but only {left} are left")
        part = self.data[self.place : self.place + size]
        self.place += size
        return part

    def _value(self, marker: bytes, depth: int) -> Any:
        self._fail_if(depth > _DEEPEST, "containers are nested too deeply")
        if marker in _NUMBERS:
            return self._numbers(marker, 1)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self._text()
        if marker == b"C":
            return self._take(1).decode("latin-1")
        if marker == b"[":
            return self._array(depth)
        self._fail_if(marker != b"{", f"unknown marker {marker!r}")
        return self._object(depth)

    def _numbers(self, marker: bytes, count: int) -> np.ndarray:
        dtype = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self._take(count * dtype.itemsize), dtype=dtype)

    def _size(self) -> int:
        marker = self._take(1)
        self._fail_if(marker not in _LENGTHS, f"expected a length, got marker {marker!r}")
        size = int(self._numbers(marker, 1)[0])
        left = len(self.data) - self.place
        self._fail_if(not 0 <= size <= left, f"a length of {size} is claimed, but only {left} bytes are left")
        return size

    def _text(self) -> str:
        try:
            return self._take(self._size()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.reader.fail(f"byte {self.place}", f"a text is not UTF-8: {error.reason}") from None

    def _head(self) -> tuple[bytes | None, int | None]:
        kind = count = None
        if self.data[self.place : self.place + 1] == b"$":
            self._take(1)
            kind = self._take(1)
            self._fail_if(kind == b"N", "a container has values without a type")
        if self.data[self.place : self.place + 1] == b"#":
            self._take(1)
            count = self._size()
        self._fail_if(kind is not None and count is None, "a typed container has no count")
        return kind, count

    def _array(self, depth: int) -> list[Any]:
        kind, count = self._head()
        if kind in _NUMBERS and count is not None:
            return self._numbers(kind, count).tolist()
        result: list[Any] = []
        while count is None or len(result) < count:
            marker = self._take(1) if kind is None else kind
            if count is None and marker == b"]":
                break
            if marker != b"N":
                result.append(self._value(marker, depth + 1))
        return result

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._head()
        result: dict[str, Any] = {}
        while count is None or len(result) < count:
            if count is None and self.data[self.place : self.place + 1] == b"}":
                self._take(1)
                break
            key = self._text()
            self._fail_if(key in result, f"the key {key!r} occurs twice")
            result[key] = self._value(self._take(1) if kind is None else kind, depth + 1)
        return result


def looks_like_ubjson(data: bytes) -> bool:
    """Return whether the first bytes are an object of UBJSON: a length marker follows the brace."""
    return len(data) > 2 and data[:1] == b"{" and data[1:2] in {*_LENGTHS, b"$", b"#"}
