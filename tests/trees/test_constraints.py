"""Which features may meet in a tree, and what a feature costs."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from support.refusals import refused
from truerank import ObliviousBoosting, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample


@pytest.fixture(scope="module")
def judged():
    return load_sample().take_queries(range(60))


def sets_of_trees(ranker):
    """The features that each tree asks about; levels that pad a tree repeat its first."""
    borders = np.isfinite(ranker.tree_borders_) | ranker.tree_missing_right_
    return [set(features[own].tolist()) for features, own in zip(ranker.tree_features_, borders)]


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_the_features_of_a_tree_are_in_one_set(judged, leaves):
    p = judged.n_features
    sets = [[0, 1, 2, 3], [2, 3, 4, 5, 6], list(range(10, p - 2))]
    rest = set(range(p)) - set(itertools.chain(*sets))
    free = ObliviousBoosting(leaves, n_estimators=30, depth=4).fit(judged)
    ranker = ObliviousBoosting(leaves, n_estimators=30, depth=4, interaction_constraints=sets).fit(judged)
    allowed = [*map(set, sets), rest]
    asked = sets_of_trees(ranker)
    assert all(any(tree <= one for one in allowed) for tree in asked)
    assert max(len(tree) for tree in asked) > 1
    assert len({next(i for i, one in enumerate(allowed) if tree <= one) for tree in asked}) > 1
    assert not all(any(tree <= one for one in allowed) for tree in sets_of_trees(free))


def test_sets_that_constrain_nothing_change_nothing(judged):
    free = ObliviousBoosting("constant", n_estimators=5, depth=3).fit(judged)
    every = [list(range(judged.n_features))]
    for sets in (every, [], [[0], *every]):
        ranker = ObliviousBoosting("constant", n_estimators=5, depth=3, interaction_constraints=sets).fit(judged)
        np.testing.assert_array_equal(ranker.predict(judged), free.predict(judged))


def test_scores_of_features_apart_add_up():
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    y = np.round(4 * X[:, 0] * X[:, 1] + X[:, 2])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ranker = ObliviousBoosting("constant", n_estimators=20, interaction_constraints=[["a"], ["b"], ["c"]])
    ranker.fit(frame, y, qid=np.arange(400) // 20)
    corner = lambda a, b: ranker.predict(pd.DataFrame([[a, b, 0.5]], columns=["a", "b", "c"]))[0]  # noqa: E731
    assert corner(0.9, 0.9) - corner(0.1, 0.9) == pytest.approx(corner(0.9, 0.1) - corner(0.1, 0.1), abs=1e-12)


def test_sparse_rows_keep_the_sets(judged):
    sets = [list(range(0, judged.n_features, 2)), list(range(1, judged.n_features, 2))]
    settings = {"n_estimators": 5, "interaction_constraints": sets}
    dense = ObliviousBoosting("constant", **settings).fit(judged.X, judged.y, qid=judged.qid)
    other = ObliviousBoosting("constant", **settings).fit(sparse.csr_matrix(judged.X), judged.y, qid=judged.qid)
    np.testing.assert_array_equal(other.predict(judged.X), dense.predict(judged.X))


def test_a_model_file_keeps_the_sets(judged, tmp_path):
    named = ObliviousBoosting(n_estimators=2, interaction_constraints=[{0, 1}, np.arange(5)]).fit(judged)
    save_model(named, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(judged), named.predict(judged))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"interaction_constraints": "[[0, 1]]"}, {"argument": "interaction_constraints", "value": "[[0, 1]]"}),
        ({"interaction_constraints": [0, 1]}, {"argument": "a set of interaction_constraints", "value": 0}),
        ({"interaction_constraints": [[0, 99999]]}, {"argument": "a set of interaction_constraints"}),
        ({"interaction_constraints": [["title"]]}, {"argument": "a set of interaction_constraints"}),
        ({"monotone": [1.0]}, {"argument": "monotone"}),
        ({"monotone": {0: 2.0}}, {"argument": "monotone"}),
        ({"monotone": {0: "up"}}, {"argument": "monotone"}),
    ],
)
def test_errors_name_what_came(judged, settings, message):
    with refused(InvalidInputError, **message):
        ObliviousBoosting(n_estimators=1, **settings).fit(judged.X, judged.y, qid=judged.qid)
