import numpy as np
import pytest

from truerank import ObliviousBoosting, RankingData
from truerank.inspection.importance import permutation_importance


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    X[:, 4] = np.repeat(rng.standard_normal(30), 20)  # says something of the query, nothing of its documents
    y = np.digitize(2 * X[:, 1] + X[:, 3] + 2 * X[:, 4], [0, 2, 4]).astype(float)
    return RankingData(X, y, np.repeat(np.arange(30), 20))


def test_gains_find_the_features_that_matter(planted):
    ranker = ObliviousBoosting(n_estimators=30, depth=3).fit(planted)
    assert ranker.feature_importances_.sum() == pytest.approx(1)
    assert set(np.argsort(-ranker.feature_importances_)[:3]) == {1, 3, 4}


def test_gains_add_up_to_the_error_that_each_tree_takes_away(planted):
    ranker = ObliviousBoosting(n_estimators=1, depth=3, learning_rate=1.0).fit(planted)
    y = planted.y
    before, after = ((y - y.mean()) ** 2).sum(), ((y - ranker.predict(planted)) ** 2).sum()
    assert ranker.tree_gains_.sum() == pytest.approx(before - after)


def test_shuffling_within_queries_ignores_what_is_constant_in_them(planted):
    ranker = ObliviousBoosting(n_estimators=30, depth=3).fit(planted)
    kept = planted.X.copy()
    loss = ranker.permutation_importance(planted, random_state=1)
    np.testing.assert_array_equal(planted.X, kept)
    assert loss[4] == 0
    assert np.argmax(loss) == 1
    assert loss[3] > 5 * abs(loss[0])
    np.testing.assert_array_equal(loss, permutation_importance(ranker, planted, random_state=1))
