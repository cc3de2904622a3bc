"""The kernels of boosted oblivious trees, also run as plain Python (NUMBA_DISABLE_JIT=1)."""

import numpy as np
import pytest

from truerank import FuzzyLeaves, ObliviousBoosting, RankingData
from truerank.inspection.stability import ranking_stability
from truerank.trees.leaves.fuzzy import ROWS, add_averages, leaves_in_order


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((24, 3)), 1)
    X[::5, 1] = np.nan
    y = np.digitize(X[:, 0] + rng.standard_normal(24), [0, 1]).astype(float)
    return RankingData(X, y, np.repeat([0, 1, 2], 8))


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
@pytest.mark.parametrize("objective", ["mse", "lambdarank", "softmax", "pairwise-logistic", "yetirank"])
def test_fit_and_predict(judged, leaves, objective):
    measure = "AP" if leaves == "fuzzy" else "nDCG@5"  # another kernel of lambdarank
    ranker = ObliviousBoosting(
        FuzzyLeaves(places=6, search=True) if leaves == "fuzzy" else leaves,
        objective=objective,
        measure=measure,
        n_estimators=2,
        depth=2,
        start="linear" if leaves == "polynomial" else "constant",
    ).fit(judged)
    scores = ranker.predict(judged)
    assert np.isfinite(scores).all()
    staged = list(ranker.staged_predict(judged))
    np.testing.assert_array_equal(staged[-1], scores)
    if objective == "mse":
        assert ((scores - judged.y) ** 2).mean() < judged.y.var()


def test_stability(judged):
    ranker = ObliviousBoosting("constant", n_estimators=2, depth=2).fit(judged)
    assert 0 <= np.nanmean(ranking_stability(ranker, judged, repeats=1)) <= 1


@pytest.mark.parametrize("depth", range(9))
def test_leaf_values_are_averaged_level_by_level(depth):
    rng = np.random.default_rng(depth)
    values = rng.standard_normal((3, 1 << depth))
    shares = rng.choice([0.0, 1.0, 0.3, 0.9999], (10, ROWS)) * rng.random((10, ROWS))
    questions = rng.integers(0, 10, (3, depth))
    total = rng.standard_normal(ROWS)
    expected = total.copy()
    for tree in (1, 2):
        left = np.repeat(values[tree][:, None], ROWS, axis=1)
        for question in questions[tree][::-1]:  # the last level halves the leaves
            half = len(left) // 2
            left = left[:half] + shares[question] * (left[half:] - left[:half])
        expected += left[0]
    work, spare = np.empty((1 << depth, ROWS)), np.empty((1 << depth, ROWS))
    ordered = leaves_in_order(values).ravel()
    add_averages(shares, questions.ravel(), ordered, depth, 1, 3, work, spare, total)
    np.testing.assert_array_equal(total, expected)
