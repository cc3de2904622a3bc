"""CatBoost's JSON models: oblivious trees, or trees of any shape, over float32 features.

`x > border` sets the level's bit (the lowest bit for the first level). The score is `scale · Σ leaf values + bias` in
float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.export.form import ModelForm, Oblivious, Plain
from truerank.models.foreign.model import ForeignModel, Keys, Leaf, Reader, Split, TreeBuilder, at_most
from truerank.trees.ensemble import Ensemble

_OTHERS = ("categorical_features", "text_features", "embedding_features", "ctrs")
_FILE = Keys("features_info scale_and_bias oblivious_trees trees ctr_data", training="model_info")
_INFO = Keys(["float_features", *_OTHERS])
_FEATURE = Keys(
    "flat_feature_index feature_index feature_id nan_value_treatment", places="borders", statistics="has_nans"
)
_TREE = Keys("splits leaf_values", statistics="leaf_weights")
_SPLIT = Keys("split_type float_feature_index border", places="split_index")
_NODE, _LEAF = Keys("split left right"), Keys("value", statistics="weight")
_DEEPEST = 16
_MOST_VALUES = 1 << 26  # of trees that are filled up to the depth of the deepest


def read_json(value: Any, reader: Reader) -> ForeignModel:
    """Read `save_model(format="json")`. Scores are those of `predict(prediction_type="RawFormulaVal")`."""
    info = reader.known(reader.part(reader.known(value, _FILE, ""), "features_info", dict, ""), _INFO, "features_info")
    for place, content in (*((other, info.get(other)) for other in _OTHERS), ("ctr_data", value.get("ctr_data"))):
        reader.fail_if(content, place, "only numeric features are read. Encode these as numbers, and train again.")
    names, columns, missing_right = _features(reader.part(info, "float_features", list, "features_info"), reader)
    scale, bias = _scale_and_bias(value, reader)
    if "oblivious_trees" in value:
        body: Any = Oblivious(_oblivious(value["oblivious_trees"], columns, missing_right, scale, reader))
    else:
        builder = TreeBuilder(reader)
        for number, tree in enumerate(reader.part(value, "trees", list, "")):
            builder.add(tree, _look(f"trees[{number}]", columns, missing_right, scale, reader))
        body = Plain(builder.trees())
    sides = ", or in other columns: ".join(
        f"missing values are {'above' if side else 'below'} every border" for side in sorted(set(missing_right))
    )
    return ForeignModel("catboost", ModelForm(names, body, intercept=bias), float32=True, missing=sides)


def _features(features: list[Any], reader: Reader) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Return the names of the columns, and for each float feature its column and whether nan goes right."""
    columns, names, right = [], {}, []
    for number, feature in enumerate(features):
        place = f"features_info.float_features[{number}]"
        reader.known(feature, _FEATURE, place)
        own = reader.integer(feature.get("feature_index", number), f"{place}.feature_index")
        reader.fail_if(own != number, f"{place}.feature_index", f"expected {number}, its list position, got {own}")
        column = reader.integer(reader.part(feature, "flat_feature_index", int, place), f"{place}.flat_feature_index")
        reader.fail_if(column in names, place, f"two features have the flat_feature_index {column}")
        names[column] = feature.get("feature_id") or f"f{column}"
        treatment = feature.get("nan_value_treatment", "AsIs")
        reader.choice(treatment, ("AsIs", "AsFalse", "AsTrue"), f"{place}.nan_value_treatment")
        columns.append(column)
        right.append(treatment == "AsTrue")
    size = 1 + max(names, default=-1)
    if size > 2 * len(names) + 1000:
        what = f"expected flat_feature_index below {2 * len(names) + 1000} for {len(names)} features, got {size - 1}"
        raise reader.fail("features_info.float_features", what)
    ordered = [names.get(k, f"f{k}") for k in range(size)]
    return reader.names(ordered, "features_info"), np.array(columns, dtype=np.int64), np.array(right, dtype=bool)


def _scale_and_bias(value: Any, reader: Reader) -> tuple[float, float]:
    pair = value.get("scale_and_bias", [1, [0]])
    scale, bias = reader.count(pair, 2, "scale_and_bias", "values, [scale, [bias]]")
    bias = reader.count(bias if isinstance(bias, list) else [bias], 1, "scale_and_bias", "output a row")
    return reader.number(scale, "scale_and_bias"), reader.number(bias[0], "scale_and_bias")


def _question(split: Any, place: str, columns: np.ndarray, reader: Reader) -> tuple[int, float]:
    """Return the number of the float feature and the border for float64 features."""
    reader.choice(reader.part(split, "split_type", str, place), ("FloatFeature",), f"{place}.split_type")
    reader.known(split, _SPLIT, place)
    feature = reader.integer(split.get("float_feature_index"), f"{place}.float_feature_index", 0, len(columns) - 1)
    border = reader.float32(split.get("border"), f"{place}.border")
    return feature, at_most(border)


def _oblivious(trees: Any, columns: np.ndarray, right: np.ndarray, scale: float, reader: Reader) -> Ensemble:
    reader.expect(isinstance(trees, list), "oblivious_trees", "a list of trees", trees)
    levels = []
    for t, tree in enumerate(trees):
        place = f"oblivious_trees[{t}]"
        levels.append(reader.part(reader.known(tree, _TREE, place), "splits", list, place))
    depth = max((len(own) for own in levels), default=0)
    reader.fail_if(depth > _DEEPEST, "oblivious_trees", f"a tree has depth {depth}, more than CatBoost's {_DEEPEST}")
    if len(trees) << depth > max(_MOST_VALUES, 4 * sum(1 << len(own) for own in levels)):
        raise reader.fail("oblivious_trees", f"one of {len(trees)} trees has depth {depth}, and most are far less deep")
    features, borders = np.zeros((len(trees), depth), dtype=np.int32), np.full((len(trees), depth), np.inf)
    missing, values = np.zeros((len(trees), depth), dtype=bool), np.zeros((len(trees), 1 << depth))
    for t, (tree, splits) in enumerate(zip(trees, levels)):
        place = f"oblivious_trees[{t}]"
        for level, split in enumerate(splits):
            feature, borders[t, level] = _question(split, f"{place}.splits[{level}]", columns, reader)
            features[t, level], missing[t, level] = columns[feature], right[feature]
        leaves = reader.count(reader.part(tree, "leaf_values", list, place), 1 << len(splits), f"{place}.leaf_values")
        values[t, : len(leaves)] = [scale * reader.number(v, f"{place}.leaf_values") for v in leaves]
    return Ensemble(features, borders, missing, values)


def _look(place: str, columns: np.ndarray, right: np.ndarray, scale: float, reader: Reader) -> Any:
    def look(node: object) -> Leaf | Split:
        if isinstance(node, dict) and "split" not in node:
            value = reader.known(node, _LEAF, place).get("value")
            if isinstance(value, list):
                (value,) = reader.count(value, 1, place, "value of a leaf")
            return Leaf(scale * reader.number(value, f"{place}, value"))
        feature, border = _question(reader.part(node, "split", dict, place), place, columns, reader)
        reader.known(node, _NODE, place)
        left, other = (reader.part(node, side, dict, place) for side in ("left", "right"))
        return Split(int(columns[feature]), border, left, other, missing_right=bool(right[feature]))

    return look
