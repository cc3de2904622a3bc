"""Calibrated rankers: cross-fitting by query, grades, query statistics, the model file."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank.calibration.pool import PooledCalibrator
from truerank.calibration.posteriors import PlattCalibrator
from truerank.calibration.ranker import CalibratedRanker, query_statistics
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.data.ranking_data import RankingData
from truerank.data.splits import query_folds
from truerank.models.model_file import load_model, save_model
from truerank.rankers.baselines import RidgeRanker
from truerank.rankers.oblivious_boosting import ObliviousBoosting
from truerank.rankers.rank_svm import RankSVM

test_scikit_learn_conformance = ranker_checks(
    [CalibratedRanker(RankSVM(), "platt", cv=2)],
    dict.fromkeys(
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_regressors_no_decision_function"),
        "a ranker with predict_proba has the tags of a regressor",
    ),
)


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    n_queries, size = 60, 8
    X = rng.normal(size=(n_queries * size, 3))
    query = np.repeat(np.arange(n_queries), size)
    ease = rng.normal(size=n_queries)[query]
    latent = X[:, 0] + ease + 0.7 * rng.normal(size=len(X))
    y = (latent > 0.5).astype(int) + (latent > 1.7)
    X[:, 2] += ease  # the query's ease shows in the level of a feature
    return X, y, query


def test_it_is_cross_fitting_by_query(judged):
    X, y, qid = judged
    fitted = CalibratedRanker(RankSVM(), "platt", cv=4).fit(X, y, qid=qid)
    data = RankingData(X, y, qid)
    scores = np.empty(len(y))
    whole = RankSVM().fit(data)
    for fold in query_folds(60, 4):
        rest = data.take_queries(np.setdiff1d(np.arange(60), fold))
        ranker = RankSVM().fit(rest)
        known, wanted = ranker.predict(rest), whole.predict(rest)
        held_out = (ranker.predict(data.take_queries(fold)) - known.mean()) / known.std()
        scores[np.isin(qid, fold)] = wanted.mean() + wanted.std() * held_out
    expected = PlattCalibrator().fit(scores, y >= 1).predict_proba(whole.predict(X))
    np.testing.assert_allclose(fitted.predict_proba(X, qid=qid), expected)
    np.testing.assert_allclose(fitted.predict_log_proba(X, qid=qid), np.log(expected))
    np.testing.assert_array_equal(fitted.predict(X), whole.predict(X))


@pytest.mark.parametrize("statistics", [False, True])
def test_row_order_grades_and_the_model_file(judged, tmp_path, statistics):
    X, y, qid = judged
    fitted = CalibratedRanker(RankSVM(), "platt", query_statistics=statistics).fit(X, y, qid=qid)
    p = fitted.predict_proba(X, qid=qid)
    assert p.shape == (len(y), 2)
    assert np.mean((p[:, 1] - (y >= 1)) ** 2) < 0.24
    order = np.random.default_rng(1).permutation(len(y))
    np.testing.assert_allclose(fitted.predict_proba(X[order], qid=qid[order]), p[order])
    np.testing.assert_allclose(fitted.predict_proba(RankingData(X[order], y[order], qid[order])), p[order])
    by_grade = fitted.grade_probabilities(X, qid=qid)
    assert by_grade.shape == (len(y), 3)
    assert (by_grade >= 0).all()
    np.testing.assert_allclose(by_grade.sum(axis=1), 1)
    np.testing.assert_allclose(by_grade[:, 1:].sum(axis=1), p[:, 1])
    expected = fitted.expected_relevant(X, 3, qid=qid)
    assert expected.shape == (60,)
    assert expected.sum() < p[:, 1].sum()
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(X, qid=qid), p)


def test_query_statistics_help_where_scores_are_not_comparable():
    # The best two documents of a query are relevant, whatever the level of its scores.
    rng = np.random.default_rng(0)
    base = rng.normal(size=(80, 6))
    y = (base >= np.sort(base, axis=1)[:, -2:-1]).astype(int).ravel()
    X = (base + 3 * rng.normal(size=(80, 1))).reshape(-1, 1)
    qid = np.repeat(np.arange(80), 6)
    train = qid < 50

    def brier(statistics):
        ranker = CalibratedRanker(RankSVM(), "platt", query_statistics=statistics)
        fitted = ranker.fit(X[train], y[train], qid=qid[train])
        return np.mean((fitted.predict_proba(X[~train], qid=qid[~train])[:, 1] - y[~train]) ** 2)

    assert brier(True) < 0.5 * brier(False)
    fitted = CalibratedRanker(RankSVM(), "platt", query_statistics=True).fit(X, y, qid=qid)
    with refused(InvalidInputError, argument="query_statistics"):
        fitted.predict_proba(X)


def test_a_fitted_ranker_is_taken_as_it_is(judged):
    X, y, qid = judged
    half = qid < 30
    ranker = RankSVM().fit(X[half], y[half], qid=qid[half])
    fitted = CalibratedRanker(ranker, "platt", cv="prefit", rel=2).fit(X[~half], y[~half], qid=qid[~half])
    expected = PlattCalibrator().fit(ranker.predict(X[~half]), y[~half] >= 2).predict_proba(ranker.predict(X))
    # P(grade ≥ 2) cannot exceed P(grade ≥ 1), which Platt's lines respect here.
    np.testing.assert_allclose(fitted.predict_proba(X), expected)
    with refused(InvalidInputError, argument="cv"):
        CalibratedRanker(ranker, cv="pre").fit(X, y, qid=qid)
    with refused(InvalidInputError, argument="rel"):
        CalibratedRanker(ranker, "platt", cv="prefit", rel=7).fit(X, y, qid=qid).predict_proba(X)


def test_a_pool_keeps_queries_together(judged, tmp_path):
    X, y, qid = judged
    ranker = RankSVM().fit(X, y, qid=qid)
    fitted = CalibratedRanker(ranker, "pool", cv="prefit").fit(X, y, qid=qid)
    expected = PooledCalibrator().fit(ranker.predict(X), y >= 1, groups=qid)
    assert fitted.calibrators_[0].methods_ == expected.methods_
    np.testing.assert_array_equal(fitted.calibrators_[0].weights_, expected.weights_)
    save_model(fitted, tmp_path / "model.json")
    p = fitted.predict_proba(X)
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(X), p)


def test_query_statistics_by_hand():
    columns = query_statistics(np.array([1.0, 3.0, 5.0]), np.array([0, 2, 3]))
    np.testing.assert_allclose(columns[0], [1, -1, -2, np.log(2), 3, 2, 1, np.log(2)])
    np.testing.assert_allclose(columns[1], [3, 1, 0, 0, 3, 2, 1, np.log(2)])
    np.testing.assert_allclose(columns[2], [5, 0, 0, 0, 5, 5, 0, 0])


@pytest.mark.parametrize("statistics", [False, True])
def test_probabilities_do_not_depend_on_the_order_of_rows(statistics):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(240, 3))
    y, qid = (X[:, 0] + rng.uniform(size=240) > 1.2).astype(float), np.repeat([f"q{k}" for k in range(12)], 20)
    order = np.concatenate([20 * query + rng.permutation(20) for query in rng.permutation(12)])
    method = PooledCalibrator(["platt", "beta", "isotonic"], n_repeats=1)
    one, other = (
        CalibratedRanker(RidgeRanker(), method, query_statistics=statistics).fit(X[rows], y[rows], qid=qid[rows])
        for rows in (np.arange(240), order)
    )
    np.testing.assert_allclose(one.predict_proba(X, qid=qid), other.predict_proba(X, qid=qid), rtol=1e-6)


@pytest.mark.parametrize("cv", [3, "prefit"])
def test_categories_of_a_data_frame_reach_the_ranker(judged, tmp_path, cv):
    pandas = pytest.importorskip("pandas")
    X, y, query = judged
    texts = np.where(X[:, 1] > 0, "acme", "globex").astype(object)
    frame = pandas.DataFrame({"a": X[:, 0], "brand": pandas.Categorical(texts), "c": X[:, 2]})
    ranker = ObliviousBoosting(categorical=["brand"], n_estimators=5, depth=2)
    ranker = ranker.fit(frame, y, qid=query) if cv == "prefit" else ranker
    eval_set = None if cv == "prefit" else (frame, y, query)
    calibrated = CalibratedRanker(ranker, "platt", cv=cv).fit(frame, y, qid=query, eval_set=eval_set)
    assert calibrated.category_names == {"brand": ["acme", "globex"]}
    probabilities = calibrated.predict_proba(frame)
    np.testing.assert_array_equal(
        probabilities, calibrated.predict_proba(frame[["c", "brand", "a"]].astype({"brand": "object"}))
    )
    np.testing.assert_array_equal(calibrated.predict(frame), calibrated.ranker_.predict(frame))
    save_model(calibrated, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict_proba(frame), probabilities)
    with refused(InvalidInputError, code="not-numeric"):
        CalibratedRanker(RankSVM(), "platt").fit(frame, y, qid=query)


def test_calibration_on_the_training_queries_of_a_ranker_warns(judged):
    X, y, query = judged
    first = np.isin(query, np.unique(query)[::2])
    ranker = RidgeRanker().fit(X[first], y[first], qid=query[first])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibratedRanker(ranker, "platt", cv="prefit").fit(X[~first], y[~first], qid=query[~first])
    with pytest.warns(TruerankWarning):
        CalibratedRanker(ranker, "platt", cv="prefit").fit(X, y, qid=query)


def test_a_pipeline_of_another_library_learns_from_the_categories_of_a_frame():
    pandas = pytest.importorskip("pandas")
    encoded = make_column_transformer((OneHotEncoder(), ["brand"]), remainder="passthrough")
    brand = pandas.Categorical(["acme", "globex", "initech"] * 20)
    frame, query = pandas.DataFrame({"a": np.arange(60.0) % 7, "brand": brand}), np.repeat(np.arange(12), 5)
    grades = (brand == "acme").astype(int)
    calibrated = CalibratedRanker(make_pipeline(encoded, Ridge()), "platt", cv=3).fit(frame, grades, qid=query)
    p = calibrated.predict_proba(frame)[:, 1]
    assert p[grades == 1].min() > p[grades == 0].max()
    reordered = frame.assign(brand=brand.set_categories(["initech", "globex", "acme"]))[["brand", "a"]]
    np.testing.assert_array_equal(calibrated.predict_proba(reordered)[:, 1], p)
