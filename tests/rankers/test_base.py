"""The ranker base on a tiny ranker: least squares on the grades."""

from __future__ import annotations

import numpy as np
import pytest

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.data.grouping import ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.rankers.base import Ranker
from truerank.rankers.rank_boost import RankBoost


class LeastSquares(Ranker):
    model_attributes = (*Ranker.model_attributes, "coef_")

    def _fit(self, data, valid):
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        root = np.sqrt(np.repeat(weight, np.diff(data.offsets)))
        self.coef_ = np.linalg.lstsq(data.X * root[:, None], data.y * root, rcond=None)[0]

    def _predict(self, X):
        return X @ self.coef_


test_scikit_learn_conformance = ranker_checks([LeastSquares()])


@pytest.fixture
def judged():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.clip(np.round(X[:, 0] + 1), 0, 3)
    return X, y, rng.permutation(np.repeat(np.arange(12), 5))


def test_row_order_does_not_matter_and_scores_come_back_in_it(judged):
    X, y, qid = judged
    with pytest.warns(TruerankWarning, match="were not adjacent"):
        ranker = LeastSquares().fit(X, y, qid=qid)
    order = np.argsort(qid, kind="stable")
    same = LeastSquares().fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(ranker.coef_, same.coef_, rtol=1e-9)
    data = RankingData(X, y, qid)
    np.testing.assert_allclose(ranker.predict(data), ranker.predict(X), rtol=1e-12)


def test_a_query_weight_of_two_is_two_copies(judged):
    X, y, qid = judged
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    weight = np.arange(12) % 3 + 1.0
    weighted = LeastSquares().fit(X, y, qid=qid, query_weight=weight)
    data = RankingData(X, y, qid)
    copies = data.take_queries(np.repeat(np.arange(12), weight.astype(int)))
    np.testing.assert_allclose(weighted.coef_, LeastSquares().fit(copies).coef_, rtol=1e-9)


def test_ranks_start_at_one_and_keep_row_order_among_ties():
    assert ranks_by_query(np.array([1.0, 2.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist() == [2, 1, 3, 1]


def test_what_does_not_fit_together_is_refused(judged):
    X, y, qid = judged
    ranker = LeastSquares().fit(RankingData(X, y, qid))
    with refused(InvalidInputError, code="width"):
        ranker.predict(RankingData(X[:, :2], y, qid))
    with refused(InvalidInputError, code="given-twice"):
        ranker.fit(RankingData(X, y, qid), y)
    with refused(InvalidInputError, code="given-twice"):
        ranker.score(RankingData(X, y, qid), 2 - y)
    with refused(InvalidInputError, code="given-twice"):
        ranker.permutation_importance(RankingData(X, y, qid), qid=qid)
    with refused(InvalidInputError, argument="y", code="no-grades"):
        ranker.fit(RankingData(X, None, qid))
    with refused(InvalidInputError, argument="X"):
        ranker.fit(RankingData(np.where(X > 2, np.nan, X), y, qid))
    with refused(InvalidInputError, argument="eval_set"):
        RankBoost().fit(X, y, eval_set=(X, y))
    with refused(InvalidInputError, argument="eval_set", code="unused"):
        ranker.fit(X, y, eval_set=(X, y, qid))


def test_feature_names_are_kept_and_checked(judged):
    X, y, qid = judged
    ranker = LeastSquares().fit(RankingData(X, y, qid, feature_names=["a", "b", "c"]))
    assert ranker.feature_names_in_.tolist() == ["a", "b", "c"]
    with refused(InvalidInputError, code="feature-names"):
        ranker.predict(RankingData(X, y, qid, feature_names=["a", "x", "c"]))


def test_a_forgotten_qid_is_an_error_and_one_query_on_purpose_is_not():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1001, 3)), rng.integers(0, 2, 1001)
    ranker = LeastSquares().fit(X[:1000], y[:1000])
    with refused(InvalidInputError, argument="qid"):
        ranker.fit(X, y)
    assert LeastSquares().fit(X, y, qid=np.zeros(1001)).n_queries_in_ == 1
    with refused(InvalidInputError, argument="qid"):
        ranker.rank(X)
    assert sorted(ranker.rank(X, qid=np.zeros(1001))) == list(range(1, 1002))
    assert len(ranker.rank(X[:1000])) == 1000


def test_groups_without_routing_do_not_train_on_one_merged_query():
    from sklearn.model_selection import cross_validate

    from truerank import QueryKFold

    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000), np.repeat(np.arange(100), 20)
    with refused((InvalidInputError, ValueError), argument="qid"):
        cross_validate(LeastSquares(), X, y, groups=qid, cv=QueryKFold(3), error_score="raise")


@pytest.mark.filterwarnings("ignore:.*were not adjacent")
def test_predict_and_rank_check_qid(judged):
    X, y, qid = judged
    ranker = LeastSquares().fit(X, y, qid=qid)
    for call in (ranker.predict, ranker.rank):
        with refused(InvalidInputError, argument="qid"):
            call(X, qid="nonsense")
        with refused(InvalidInputError, argument="qid"):
            call(X, qid=[1])
        with refused(InvalidInputError, argument="X"):
            call(RankingData(X, y, qid), qid=qid)
    np.testing.assert_array_equal(ranker.predict(X, qid=qid), ranker.predict(X))
