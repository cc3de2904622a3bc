"""Trees of any shape, against a walk from question to question."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.binary_trees import score

from truerank.trees.binary import BinaryTrees

FEATURES = 5


def grown(rng, leaves, thresholds):
    """A tree for each of `leaves`, of any shape, with thresholds drawn from `thresholds`; nodes of trees alternate."""
    open_ends = [[(-1, 0)] for _ in leaves]  # (node, side) where a tree can go on
    roots, children, parents = [-1] * len(leaves), [], []
    while any(len(ends) < most for ends, most in zip(open_ends, leaves)):
        for t, most in enumerate(leaves):
            if len(open_ends[t]) < most:
                parent, side = open_ends[t].pop(int(rng.integers(len(open_ends[t]))))
                node = len(children)
                children.append([0, 0])
                parents.append((parent, side))
                open_ends[t] += [(node, 0), (node, 1)]
                if parent < 0:
                    roots[t] = node
                else:
                    children[parent][side] = node
    n_leaves = 0
    for t, ends in enumerate(open_ends):
        for parent, side in ends:
            if parent < 0:
                roots[t] = ~n_leaves
            else:
                children[parent][side] = ~n_leaves
            n_leaves += 1
    n = len(children)
    sides = np.array(children, dtype=np.int64).reshape(-1, 2)
    trees = BinaryTrees(
        np.array(roots), rng.integers(FEATURES, size=n), rng.choice(thresholds, n), rng.random(n) < 0.5,
        rng.random(n) < 0.2, sides[:, 0].copy(), sides[:, 1].copy(), rng.normal(size=n_leaves),
    )  # fmt: skip
    trees.check(FEATURES)
    return trees


def rows(rng, n, thresholds):
    X = np.where(rng.random((n, FEATURES)) < 0.7, rng.choice(thresholds, (n, FEATURES)), rng.normal(size=(n, FEATURES)))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = rng.choice([0.0, -0.0, 1e-36, -1e-35, np.inf, -np.inf])
    return X


@pytest.mark.parametrize(
    "leaves",
    [[1], [1, 2, 1], [5, 31, 1, 7], [256, 3], [257, 2, 300, 256]],
    ids=["one leaf", "stump", "small", "as many leaves as a byte tells apart", "larger"],
)
@pytest.mark.parametrize("distinct", [3, 2000])
def test_scores_are_those_of_a_walk(leaves, distinct):
    rng = np.random.default_rng(len(leaves))
    thresholds = np.concatenate([rng.normal(size=distinct), [0.0, np.inf, -np.inf]])
    trees, X = grown(rng, leaves, thresholds), rows(rng, 300, thresholds)
    expected = np.array([score(trees, row) for row in X])
    np.testing.assert_array_equal(trees.predict(X, None, np.zeros(len(X))), expected)
    np.testing.assert_array_equal(trees.predict(X[7:10], None, np.zeros(3)), expected[7:10])
    with np.errstate(over="ignore"):
        single = X.astype(np.float32)
    expected = np.array([score(trees, row) for row in single])
    np.testing.assert_array_equal(trees.predict(single, None, np.zeros(len(X))), expected)


def test_a_leaf_that_nodes_share_and_rows_of_several_blocks():
    rng = np.random.default_rng(0)
    trees = grown(rng, [40, 280], rng.normal(size=50))
    shared = replace(trees, left=np.where(trees.left < 0, ~0, trees.left))
    X = rows(rng, 17_000, trees.thresholds)
    X.flags.writeable = False
    scores = shared.predict(X, None, np.ones(len(X)))
    for i in rng.choice(len(X), 40):
        assert scores[i] == pytest.approx(1 + score(shared, X[i]), rel=1e-15)
    np.testing.assert_array_equal(shared.predict(X, 2, np.ones(len(X))), scores)
    np.testing.assert_array_equal(shared.predict(np.asfortranarray(X), 2, np.ones(len(X))), scores)
