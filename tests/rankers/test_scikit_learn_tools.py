"""scikit-learn's tools of model inspection, search and routing, as its user guide calls them, on rankers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.ensemble import BaggingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from truerank import CalibratedRanker, ObliviousBoosting, QueryKFold, RidgeRanker, export_model

RNG = np.random.default_rng(0)
N, SIZE = 24, 10
QID = np.repeat([f"q{k:02d}" for k in range(N)], SIZE)
X = RNG.normal(size=(N * SIZE, 4)).astype(np.float32).astype(float)  # shap rounds thresholds to float32
Y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=N * SIZE) + 1), 0, 3)
FRAME = pd.DataFrame(X, columns=["bm25", "title", "clicks", "age"])
WITH_QUERIES = FRAME.assign(qid=QID)
GRID = {"alpha": [0.1, 1000.0]}
TREES = ObliviousBoosting(n_estimators=8, learning_rate=0.3, leaves="constant")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("ranker", [RidgeRanker(), TREES], ids=["ridge", "trees"])
def test_permutation_importance_of_a_frame_with_queries_and_of_arrays_with_a_scorer(ranker):
    fitted = sklearn.clone(ranker).fit(WITH_QUERIES, Y)
    framed = permutation_importance(fitted, WITH_QUERIES, Y, n_repeats=3, random_state=0).importances_mean
    assert np.argmax(framed[:4]) == 0
    assert np.all(framed[2:4] < framed[:2].max())

    plain = sklearn.clone(ranker).fit(X, Y, qid=QID)
    found = permutation_importance(
        plain, X, Y, n_repeats=3, random_state=0, scoring=lambda ranker, X, y: ranker.score(X, y, qid=QID)
    )
    np.testing.assert_array_equal(found.importances_mean, framed[:4])
    with pytest.raises(ValueError, match="scoring=lambda"):
        permutation_importance(plain, X, Y)


@pytest.mark.parametrize("ranker", [RidgeRanker(), TREES, CalibratedRanker(RidgeRanker(), cv=2)])
def test_partial_dependence_is_the_mean_score_where_a_column_has_one_value(ranker):
    fitted = sklearn.clone(ranker).fit(X, Y, qid=QID)
    found = partial_dependence(fitted, X, [0], grid_resolution=4)
    for value, mean in zip(found["grid_values"][0], found["average"][0]):
        changed = X.copy()
        changed[:, 0] = value
        np.testing.assert_allclose(mean, fitted.predict(changed).mean(), rtol=1e-12)


def test_partial_dependence_of_frames_and_pipelines_and_its_display():
    pytest.importorskip("matplotlib").use("Agg")
    framed = RidgeRanker().fit(WITH_QUERIES, Y)
    plain = partial_dependence(framed, FRAME, ["bm25"], grid_resolution=4)
    np.testing.assert_array_equal(
        partial_dependence(framed, WITH_QUERIES, ["bm25"], grid_resolution=4)["average"], plain["average"]
    )
    chained = make_pipeline(StandardScaler(), RidgeRanker()).fit(FRAME, Y, ridgeranker__qid=QID)
    drawn = PartialDependenceDisplay.from_estimator(chained, FRAME, ["bm25", ("bm25", "age")], grid_resolution=3)
    assert drawn.axes_.size == 2


@pytest.mark.filterwarnings("ignore")
def test_shap_explains_exported_trees():
    shap, lightgbm = pytest.importorskip("shap"), pytest.importorskip("lightgbm")
    ranker = sklearn.clone(TREES).fit(X, Y, qid=QID)
    booster = lightgbm.Booster(model_str=export_model(ranker, "lightgbm"))
    scores = ranker.predict(X)
    for reference, mean in ((None, None), (X[:50], scores[:50].mean())):
        explainer = shap.TreeExplainer(booster, data=reference)
        values = explainer.shap_values(X[:40])
        np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, scores[:40], atol=1e-6)
        assert mean is None or abs(explainer.expected_value - mean) < 1e-6
        assert np.argmax(np.abs(values).mean(axis=0)) == 0
    values = shap.Explainer(ranker.predict, X[:10])(X[:2]).values
    assert values.shape == (2, 4)


SEARCHES = [
    GridSearchCV(RidgeRanker(), GRID, cv=QueryKFold(3)),
    HalvingGridSearchCV(RidgeRanker(), GRID, cv=QueryKFold(3), min_resources=120, factor=2),
    HalvingRandomSearchCV(RidgeRanker(), GRID, cv=QueryKFold(3), min_resources=120, factor=2, random_state=0),
    RFECV(RidgeRanker(), cv=QueryKFold(3)),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.filterwarnings("ignore::truerank.core.errors.TruerankWarning")
def test_searches_over_folds_of_queries(search, routing):
    fitted = sklearn.clone(search).fit(X, Y, qid=QID)
    scores = fitted.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert isinstance(search, RFECV) or scores.max() > 0.7  # RFECV has a default of its own, R2


def test_a_column_of_queries_needs_no_routing():
    framed = GridSearchCV(RidgeRanker(), GRID, cv=QueryKFold(3)).fit(WITH_QUERIES, Y)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = GridSearchCV(RidgeRanker(), GRID, cv=QueryKFold(3)).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(framed.cv_results_["mean_test_score"], routed.cv_results_["mean_test_score"])
    by_group = cross_val_score(RidgeRanker(), WITH_QUERIES, Y, groups=QID, cv=GroupKFold(3))
    assert np.isfinite(by_group).all()


@pytest.mark.filterwarnings("ignore::truerank.core.errors.TruerankWarning")
def test_halving_over_the_rounds_of_a_pipeline_with_validation_rows(routing):
    chain = make_pipeline(StandardScaler(), sklearn.clone(TREES).set_params(patience=2), transform_input=["eval_X"])
    search = HalvingGridSearchCV(
        chain, {"obliviousboosting__depth": [1, 2]}, cv=QueryKFold(3), resource="obliviousboosting__n_estimators",
        min_resources=2, max_resources=4, factor=2,
    ).fit(X, Y, qid=QID, eval_X=X, eval_y=Y, eval_qid=QID)  # fmt: skip
    assert search.best_estimator_[-1].evals_result_
    alone = sklearn.clone(search.best_estimator_).fit(X, Y, qid=QID, eval_X=X, eval_y=Y, eval_qid=QID)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))


@pytest.mark.filterwarnings("ignore::truerank.core.errors.TruerankWarning")
def test_functions_of_model_selection(routing):
    common = {"cv": QueryKFold(3), "params": {"qid": QID}}
    figures = cross_validate(RidgeRanker(), X, Y, **common)["test_score"]
    assert figures.shape == (3,)
    np.testing.assert_array_equal(cross_val_score(RidgeRanker(), X, Y, **common), figures)
    assert np.isfinite(cross_val_predict(RidgeRanker(), X, Y, **common)).all()
    assert learning_curve(RidgeRanker(), X, Y, train_sizes=[0.5, 1.0], **common)[2].shape == (2, 3)
    curve = validation_curve(RidgeRanker(), X, Y, param_name="alpha", param_range=[1.0, 1e6], **common)[1]
    assert curve.shape == (2, 3)
    assert permutation_test_score(RidgeRanker(), X, Y, n_permutations=5, random_state=0, **common)[2] < 0.2


@pytest.mark.filterwarnings("ignore::truerank.core.errors.TruerankWarning")
def test_selection_of_features_and_bagging(routing):
    assert RFE(RidgeRanker(), n_features_to_select=2).fit(X, Y, qid=QID).get_support().tolist() == [
        True,
        True,
        False,
        False,
    ]
    assert SelectFromModel(RidgeRanker(), max_features=1).fit(X, Y, qid=QID).get_support().tolist()[0]
    selector = SequentialFeatureSelector(RidgeRanker(), n_features_to_select=2, cv=QueryKFold(3))
    assert selector.fit(X, Y, qid=QID).get_support()[0]
    bagged = BaggingRegressor(RidgeRanker(), n_estimators=3, random_state=0).fit(X, Y, qid=QID)
    assert np.corrcoef(bagged.predict(X), Y)[0, 1] > 0.5
