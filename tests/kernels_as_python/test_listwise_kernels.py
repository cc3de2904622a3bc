"""The kernels of RankBoost, ListNet and ridge on tiny data, compiled or as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from reference import listnet as listnet_reference
from reference import rank_boost as reference
from truerank.data.ranking_data import RankingData
from truerank.losses.cross_entropy import CrossEntropy
from truerank.matrices.content import order_by_content
from truerank.matrices.rows import LinearRows
from truerank.rankers.baselines import RidgeRanker
from truerank.rankers.list_net import ListNet
from truerank.rankers.rank_boost import RankBoost

X = np.random.default_rng(1).normal(size=(21, 5))
Y = np.random.default_rng(2).integers(0, 3, 21).astype(float)
QID = np.repeat([0, 1, 2], [2, 8, 11])


@pytest.mark.parametrize("thresholds", [3, "all"])
def test_rank_boost_is_that_of_listed_pairs(thresholds):
    rows = X.copy()
    rows[::4, 1] = np.nan
    ranker = RankBoost(6, thresholds=thresholds).fit(rows, Y, qid=QID)
    rounds = reference.rank_boost(rows, Y, QID, 6, thresholds)
    assert ranker.feature_.tolist() == [r[0] for r in rounds]
    np.testing.assert_allclose(ranker.weight_, [r[4] for r in rounds], rtol=1e-9)
    np.testing.assert_allclose(ranker.predict(rows), reference.predict(rows, rounds), atol=1e-12)


def test_rank_boost_with_scores_too_wide_for_plain_exponentials(monkeypatch):
    plain = RankBoost(6).fit(X, Y, qid=QID)
    monkeypatch.setattr("truerank.rankers.sums.rank_boost._WIDEST", -1.0)
    wide = RankBoost(6).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(plain.threshold_, wide.threshold_)
    np.testing.assert_allclose(plain.weight_, wide.weight_, rtol=1e-10)


def test_listnet_reaches_the_optimum():
    ranker = ListNet(0.1).fit(X, Y, qid=QID)
    assert ranker.gradient_norm_ <= 1e-6
    assert ranker.objective_ == pytest.approx(listnet_reference.objective(ranker.coef_, X, Y, QID, 0.1), rel=1e-12)
    data = RankingData(X, Y, QID)
    hessian = CrossEntropy(LinearRows(X), data.y, data.offsets, alpha=0.1).hessian(ranker.coef_)
    assert np.linalg.eigvalsh(hessian).min() >= 0.1 - 1e-12


def test_listnet_takes_the_papers_steps():
    ranker = ListNet(0.1, solver="gradient-descent", max_iter=3).fit(X, Y, qid=QID)
    rows, queries = order_by_content(X, Y, RankingData(X, Y, QID).offsets)
    place = np.argsort(queries)
    expected = listnet_reference.gradient_descent(X[rows], Y[rows], place[QID[rows]], 0.01, 3, 0.1)
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-10)


def test_ridge_solves_its_normal_equations():
    ranker = RidgeRanker(0.5).fit(X, Y, qid=QID)
    centred, y = X.copy(), Y.copy()
    for query in range(3):
        centred[query == QID] -= X[query == QID].mean(axis=0)
        y[query == QID] -= Y[query == QID].mean()
    np.testing.assert_allclose(centred.T @ (y - centred @ ranker.coef_), 0.5 * ranker.coef_, atol=1e-10)
