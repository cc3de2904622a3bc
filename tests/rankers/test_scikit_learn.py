"""Rankers inside scikit-learn's tools, in threads and in forked children."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.refusals import refused
from truerank import AdaRank, QueryKFold
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample


@pytest.fixture(scope="module")
def judged():
    data = load_sample().take_queries(range(40))
    return data.X, data.y, data.qid


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_grid_search_needs_no_more_than_qid(judged, routing):
    X, y, qid = judged
    search = GridSearchCV(AdaRank(n_estimators=10), {"measure": ["AP", "RR"]}, cv=QueryKFold(3)).fit(X, y, qid=qid)
    assert search.best_params_["measure"] in ("AP", "RR")
    by_hand = []
    for train, test in QueryKFold(3).split(X, y, qid=qid):
        ranker = AdaRank(n_estimators=10, measure="AP").fit(X[train], y[train], qid=qid[train])
        by_hand.append(ranker.score(X[test], y[test], qid=qid[test]))
    row = search.cv_results_["param_measure"].tolist().index("AP")
    assert search.cv_results_["mean_test_score"][row] == pytest.approx(np.mean(by_hand), rel=1e-12)


@pytest.mark.skipif(
    np.lib.NumpyVersion(sklearn.__version__) < "1.8.0", reason="before 1.8 scores of pipelines are passed no metadata"
)
def test_cross_validate_and_pipelines_pass_qid_along(judged, routing):
    X, y, qid = judged
    pipeline = make_pipeline(StandardScaler(), AdaRank(n_estimators=10))
    result = cross_validate(pipeline, X, y, cv=QueryKFold(3), params={"qid": qid})
    assert len(result["test_score"]) == 3
    assert np.isfinite(result["test_score"]).all()


def test_without_routing_the_error_says_what_to_switch_on(judged):
    X, y, qid = judged
    search = GridSearchCV(AdaRank(n_estimators=2), {"measure": ["AP"]}, cv=QueryKFold(3), error_score="raise")
    with refused(InvalidInputError, argument="qid"):
        search.fit(X, y, groups=qid, qid=qid)
    with refused((InvalidInputError, TypeError, ValueError), argument="qid"):
        cross_val_score(AdaRank(), X, y, cv=QueryKFold(3))


def test_query_weights_are_routed_by_row(judged, routing):
    X, y, qid = judged
    weight = np.where(np.unique(qid, return_inverse=True)[1] % 2, 1.0, 3.0)
    result = cross_validate(
        AdaRank(n_estimators=5), X, y, cv=QueryKFold(3), params={"qid": qid, "query_weight": weight}
    )
    assert np.isfinite(result["test_score"]).all()


def test_eight_threads_predict_the_same_as_one(judged):
    X, y, qid = judged
    ranker = AdaRank(n_estimators=10).fit(X, y, qid=qid)
    expected = ranker.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for scores in pool.map(lambda _: ranker.predict(X), range(32)):
            np.testing.assert_array_equal(scores, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_predicts_and_fits_after_a_fit(judged):
    X, y, qid = judged
    ranker = AdaRank(n_estimators=10).fit(X, y, qid=qid)
    expected = ranker.predict(X)

    def child(queue):
        again = AdaRank(n_estimators=10).fit(X, y, qid=qid)
        queue.put((ranker.predict(X), again.predict(X)))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    scores, again = queue.get(timeout=300)
    process.join(60)
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(again, expected)


def test_rankers_can_be_pickled(judged):
    X, y, qid = judged
    ranker = AdaRank(n_estimators=10).fit(X, y, qid=qid)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ranker)).predict(X), ranker.predict(X))
