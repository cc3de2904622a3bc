"""Learning curves over training queries."""

from __future__ import annotations

import numpy as np

from support.refusals import refused
from truerank import RankingData, RidgeRanker
from truerank.experiments.cross_validation import learning_curve


def made(queries, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * 10, 12))
    y = (X[:, :3].sum(axis=1) + rng.normal(size=len(X)) > 1.5).astype(float)
    return RankingData(X, y, np.repeat(np.arange(queries), 10))


def test_more_queries_help_and_intervals_hold_the_mean():
    curve = learning_curve(RidgeRanker(), made(60, 0), made(40, 1), measure="AP", draws=3, random_state=0)
    assert curve.train_sizes.tolist() == sorted(curve.train_sizes.tolist())
    assert curve.train_sizes[-1] == 60
    mean = curve.test_scores.mean(axis=1)
    assert mean[-1] > mean[0] + 0.02
    assert ((curve.low <= mean) & (mean <= curve.high)).all()
    # All draws of all queries are one.
    assert np.ptp(curve.test_scores[-1]) == 0
    assert "training queries" in str(curve)


def test_the_same_seed_gives_the_same_curve():
    a, b = (
        learning_curve(RidgeRanker(), made(20, 0), made(10, 1), train_sizes=[5, 10], draws=2, random_state=3)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a.test_scores, b.test_scores)


def test_what_is_refused():
    with refused(ValueError, argument="train_sizes"):
        learning_curve(RidgeRanker(), made(20, 0), made(10, 1), train_sizes=[30])
    with refused(ValueError, argument="train_sizes"):
        learning_curve(RidgeRanker(), made(20, 0), made(10, 1), train_sizes=[2.7])
    for draws in (0, 1.5):
        with refused(ValueError, argument="draws"):
            learning_curve(RidgeRanker(), made(20, 0), made(10, 1), draws=draws)
    with refused(ValueError, argument="test"):
        learning_curve(RidgeRanker(), made(20, 0), np.zeros((3, 12)))


def test_one_training_query_is_a_curve_of_one_point():
    assert learning_curve(RidgeRanker(), made(1, 0), made(10, 1), draws=1).train_sizes.tolist() == [1]


def test_all_queries_are_fitted_once():
    fits = []

    class Counted(RidgeRanker):
        def _fit(self, data, valid):
            fits.append(data.n_queries)
            return super()._fit(data, valid)

    found = learning_curve(Counted(), made(20, 0), made(10, 1), train_sizes=[5, 20], draws=3, random_state=0)
    assert sorted(fits) == [5, 5, 5, 20]
    assert found.low[1] <= found.test_scores[1, 0] <= found.high[1]


def test_caption_says_what_the_table_rests_on():
    curve = learning_curve(RidgeRanker(), made(20, 0), made(10, 1), train_sizes=[5], draws=1, random_state=3)
    assert "means over 1 draw of training queries" in str(curve)
    assert "measured on 10 held-out queries" in str(curve)
