"""Scores of each fold's ranker on the level of the ranker of all queries: what calibrators are fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from truerank import CalibratedRanker, RidgeRanker
from truerank.calibration.ranker import cross_fitted_scores, on_one_level
from truerank.data.ranking_data import RankingData


class Drifting(RidgeRanker):
    """Ridge whose scores are stretched and moved by what it was trained on; the ranking stays."""

    def _predict(self, X):
        level = self.n_queries_in_ * 7919 % 13
        return 5.0 * level + (1 + level) * super()._predict(X)


def world(n_queries: int, seed: int) -> RankingData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * 10, 3))
    y = (X[:, 0] + rng.normal(size=len(X)) > 1).astype(float)
    return RankingData(X, y, np.repeat(np.arange(n_queries), 10))


def test_mean_and_deviation_become_those_of_the_whole():
    trained, whole = np.array([1.0, 2.0, 6.0]), np.array([-4.0, 0.0, 10.0])
    moved = on_one_level(trained, trained, whole)
    assert (moved.mean(), moved.std()) == (pytest.approx(whole.mean()), pytest.approx(whole.std()))
    assert on_one_level(np.array([4.0]), np.ones(3), whole).tolist() == [5.0]  # flat: only moved
    assert on_one_level(np.array([1e300]), np.array([-1e300, 1e300]), whole) == pytest.approx(
        whole.mean() + whole.std()
    )


def test_probabilities_do_not_depend_on_the_level_of_each_folds_scores():
    """Pooled as they came, the scores of five such rankers gave probabilities worse than one constant."""
    train, test = world(63, 0), world(60, 1)
    losses = {}
    for ranker in (RidgeRanker(), Drifting()):
        fitted = CalibratedRanker(clone(ranker), "platt").fit(train)
        p = fitted.predict_proba(test)[np.arange(test.n_rows), test.y.astype(int)]
        losses[type(ranker).__name__] = -np.log(p).mean()
    share = train.y.mean()
    constant = -(test.y * np.log(share) + (1 - test.y) * np.log(1 - share)).mean()
    assert losses["Drifting"] == pytest.approx(losses["RidgeRanker"], rel=1e-6)
    assert losses["Drifting"] < 0.9 * constant


def test_one_query_is_split_by_rows_and_levelled():
    data = world(1, 0)
    scores = cross_fitted_scores(RidgeRanker(), data, 3)
    fitted = RidgeRanker().fit(data)
    assert np.abs(scores.mean() - fitted.predict(data).mean()) < 0.5
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("level", [0.1, 0.3, 1.7, -123.456, 1e300])
def test_equal_scores_are_not_stretched_by_their_rounding(level):
    """The computed deviation of equal numbers is some 1e-17, by which scores were divided."""
    whole = np.linspace(0.0, 1.0, 380)
    trained = np.full(380, level)
    found = on_one_level(np.array([level, 2.0 * level]), trained, whole)
    np.testing.assert_allclose(found, [0.5, 0.5 + level], rtol=1e-9)
