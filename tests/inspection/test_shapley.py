"""Shapley values of trees: against the definition, additivity, and `shap` on the same trees."""

from __future__ import annotations

import numpy as np
import pytest

from reference.shapley import shapley_by_enumeration, tree_value
from support.refusals import refused
from truerank import ObliviousBoosting
from truerank.inspection.shapley import tree_shapley
from truerank.trees.ensemble import Ensemble
from truerank.trees.kept_parts import kept
from truerank.trees.leaves.polynomial import monomial_table
from truerank.trees.training_columns import Scaling


def made_data(n=400, p=8, missing=0.05, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 1)
    X[rng.random(X.shape) < missing] = np.nan
    z = np.nan_to_num(X)
    y = (z[:, 0] * z[:, 1] > 0).astype(float) + (z[:, 2] > 0.3) + (z[:, 0] > 1)
    return X, y, np.repeat(np.arange(n // 20), 20)


def fitted(leaves, **settings):
    X, y, qid = made_data()
    return ObliviousBoosting(n_estimators=4, depth=4, leaves=leaves, random_state=0, **settings).fit(X, y, qid=qid), X


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_equal_the_definition(leaves):
    model, X = fitted(leaves)
    trees, rows, reference = kept(model, Ensemble), X[:6], X[:150]
    answers = model.kind_of_leaves.form(trees, model).answers()
    expected = np.zeros(rows.shape)
    for t in range(trees.n_trees):
        features = trees.features[t].tolist()
        of_reference = answers(t, np.ascontiguousarray(reference.T)).T.astype(float)
        for i, row in enumerate(rows):
            z = None
            if leaves == "polynomial":
                z = kept(model, Scaling).take(row[None], np.arange(8))[:, 0]

            def leaf_value(leaf, known, t=t, z=z, features=features):
                if z is None:
                    return float(trees.values[t, leaf])
                x = [1.0]
                for earlier, variable in monomial_table(trees.depth, model.kind_of_leaves.degree).tolist()[1:]:
                    feature = features[variable]
                    x.append(x[earlier] * (z[feature] if feature in known else 0.0))
                return float(np.dot(x, trees.values[t, leaf]))

            own = answers(t, row[:, None])[:, 0].astype(float).tolist()
            expected[i] += shapley_by_enumeration(
                lambda known, f=leaf_value, own=own, r=of_reference, features=features: tree_value(
                    f, features, own, r, known
                ),
                8,
            )
    found = tree_shapley(model, rows, reference)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
@pytest.mark.parametrize("start", ["constant", "linear"])
def test_add_up_to_the_score(leaves, start):
    model, X = fitted(leaves, start=start)
    found = tree_shapley(model, X, X)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(X), rtol=0, atol=1e-11)
    asked = np.unique(model.tree_features_)
    if start == "constant":
        assert not found.values[:, np.setdiff1d(np.arange(8), asked)].any()


def test_the_same_bits_with_any_number_of_threads_and_alone():
    for leaves in ("constant", "fuzzy"):
        model, X = fitted(leaves)
        one = tree_shapley(model.set_params(n_jobs=1), X, X).values
        np.testing.assert_array_equal(one, tree_shapley(model.set_params(n_jobs=2), X, X).values)
        np.testing.assert_array_equal(one[7:8], tree_shapley(model, X[7:8], X).values)


def test_no_reference_is_refused():
    model, X = fitted("constant")
    with refused(ValueError, argument="reference"):
        tree_shapley(model, X, X[:0])


@pytest.mark.peers
def test_equal_shap_on_the_same_plain_trees():
    shap = pytest.importorskip("shap")
    X, y, qid = made_data(missing=0.0)
    model = ObliviousBoosting(n_estimators=6, depth=4, leaves="constant", random_state=1).fit(X, y, qid=qid)
    trees = kept(model, Ensemble)
    answers = model.kind_of_leaves.form(trees, model).answers()
    found = tree_shapley(model, X[:30], X)
    expected = np.zeros((30, 8))
    for t in range(trees.n_trees):
        right = answers(t, np.ascontiguousarray(X.T)).T
        nodes = {name: [] for name in ("left", "right", "feature", "threshold", "value", "weight")}

        def add(level, number, inside, t=t, right=right, nodes=nodes):
            index = len(nodes["left"])
            for name in nodes:
                nodes[name].append(0)
            # shap divides by the rows of a node: one without rows has next to none, shared out evenly below.
            nodes["weight"][index] = float(inside.sum()) or 1e-100 / (1 << level)
            if level == trees.depth:
                nodes["left"][index] = nodes["right"][index] = nodes["feature"][index] = -1
                nodes["value"][index] = float(trees.values[t, number])
                return index
            nodes["feature"][index] = int(trees.features[t, level])
            nodes["threshold"][index] = float(trees.borders[t, level])
            went = right[:, level] > 0
            nodes["left"][index] = add(level + 1, number, inside & ~went)
            nodes["right"][index] = add(level + 1, number | 1 << level, inside & went)
            return index

        add(0, 0, np.ones(len(X), dtype=bool))
        tree = {
            "children_left": np.array(nodes["left"], dtype=np.int32),
            "children_right": np.array(nodes["right"], dtype=np.int32),
            "children_default": np.array(nodes["right"], dtype=np.int32),
            "features": np.array(nodes["feature"], dtype=np.int32),
            "thresholds": np.array(nodes["threshold"]),
            "values": np.array(nodes["value"])[:, None],
            "node_sample_weight": np.array(nodes["weight"]),
        }
        explainer = shap.TreeExplainer({"trees": [tree]}, feature_perturbation="tree_path_dependent")
        expected += explainer.shap_values(X[:30], check_additivity=False)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-6)
