"""Rankers of other libraries, pipelines and plain regressors wherever one of ours is taken."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.refusals import refused
from truerank import (
    CalibratedRanker,
    Experiment,
    ObliviousBoosting,
    RankerPipeline,
    RidgeRanker,
    ZScoreInQuery,
    compare,
    cross_validate,
    load_sample,
)
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.data.splits import query_folds
from truerank.inspection.importance import permutation_importance, removal_importance
from truerank.inspection.learners import compare_learners
from truerank.inspection.stability import ranking_stability
from truerank.measures import parse_measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.report.evidence import make_report

pytestmark = pytest.mark.filterwarnings("ignore:.*used for training")


def lightgbm_ranker():
    return pytest.importorskip("lightgbm").LGBMRanker(n_estimators=8, n_jobs=1, verbose=-1, random_state=0)


def xgboost_ranker():
    return pytest.importorskip("xgboost").XGBRanker(n_estimators=8, n_jobs=1, random_state=0)


def catboost_ranker():
    catboost = pytest.importorskip("catboost")
    return catboost.CatBoostRanker(
        iterations=8, thread_count=1, verbose=False, allow_writing_files=False, random_seed=0
    )  # fmt: skip


ANYONES = {
    "lightgbm": lightgbm_ranker,
    "xgboost": xgboost_ranker,
    "catboost": catboost_ranker,
    "regressor": Ridge,
    "pipeline of theirs": lambda: make_pipeline(StandardScaler(), Ridge()),
    "pipeline of both": lambda: make_pipeline(ZScoreInQuery(), RidgeRanker()),
    "pipeline that ends in theirs": lambda: make_pipeline(ZScoreInQuery(), lightgbm_ranker()),
    "ours": lambda: RankerPipeline("z-score-in-query", RidgeRanker()),
}


@pytest.fixture(scope="module")
def data():
    """Rows of queries mixed, so that what forgets the order shows."""
    sample = load_sample().take_queries(range(30))
    mixed = np.random.default_rng(0).permutation(sample.n_rows)
    return RankingData(sample.X[mixed], sample.y[mixed], sample.qid[mixed], feature_names=sample.feature_names)


@pytest.mark.parametrize("kind", ANYONES)
def test_anyones_ranker_is_validated_explained_and_calibrated(kind, data):
    ranker = ANYONES[kind]()
    found = cross_validate({"it": ranker}, data, "AP nDCG@10", cv=3, validate=False)
    # Route two: every fold by hand.
    parts = query_folds(data.n_queries, 3, random_state=0, query_ids=data.query_ids)
    measure = parse_measure("nDCG@10", convention="ranklib")
    for k, part in enumerate(parts):
        rest = np.setdiff1d(np.arange(data.n_queries), part)
        test = data.take_queries(part)
        fitted = fit_ranker(ranker, data.take_queries(rest))
        own = measure.per_query(test.judgements(), ranker_scores(fitted, test))
        np.testing.assert_array_equal(found.per_query["it"]["nDCG@10"][part], own)
        assert found.fold_means["it"]["nDCG@10"][k] == pytest.approx(own.mean())
        assert (found.folds[part] == k).all()
    # The scores stand in the caller's order.
    grouped = found.scores["it"][data.order]
    np.testing.assert_array_equal(measure.per_query(data.judgements(), grouped), found.per_query["it"]["nDCG@10"])
    fitted = fit_ranker(ranker, data)
    importance = permutation_importance(fitted, data, repeats=2, random_state=1)
    assert np.asarray(importance).shape == (data.n_features,)
    assert np.abs(np.asarray(importance)).max() > 0
    stability = ranking_stability(fitted, data, repeats=2, random_state=1)
    assert ((stability >= 0) & (stability <= 1)).all()
    calibrated = CalibratedRanker(ranker, "platt", cv=3).fit(data)
    p = calibrated.predict_proba(data)[:, 1]
    assert np.corrcoef(p, ranker_scores(fitted, data)[np.argsort(data.order)])[0, 1] > 0.3
    pytest.importorskip("vl_convert")  # of the extra `report`
    experiment = Experiment(
        data, {"it": fitted, "first": data.restore(data.X[:, 0])}, convention="ranklib", training_queries="keep"
    )
    np.testing.assert_array_equal(experiment.judged["it"][1], ranker_scores(fitted, data))
    text = make_report(experiment.evidence())
    assert "</html>" in text


def test_rankers_are_compared_over_the_same_folds(data):
    rankers = {"ridge": RidgeRanker(), "trees": ObliviousBoosting(n_estimators=10), "theirs": Ridge()}
    found = cross_validate(rankers, data, ["nDCG@10", "pairs(2,0)"], cv=3, random_state=4)
    comparison = found.compare(baseline="ridge")
    assert "about the fitted rankers" in str(comparison)
    assert "excludes the uncertainty of training" in str(comparison)
    assert [pair.a for pair in comparison.pairs] == ["trees", "theirs"]
    assert comparison.means == {name: own["nDCG@10"] for name, own in found.means.items()}
    assert not found.compare("pairs(2,0)").higher_is_better
    same = compare(data, found.scores, "nDCG@10", baseline="ridge")
    assert same.means == comparison.means
    assert [pair.p for pair in same.pairs] == [pair.p for pair in comparison.pairs]
    assert "trees" in str(found)
    again = cross_validate(clone(rankers["trees"]), data, "nDCG@10", cv=3, random_state=4)
    np.testing.assert_array_equal(again.scores["ObliviousBoosting"], found.scores["trees"])
    with refused(InvalidInputError, argument="measure"):
        found.compare("AP")


def test_learners_are_compared_over_repeated_folds(data):
    rankers = {"ridge": RidgeRanker(), "theirs": Ridge()}
    found = cross_validate(rankers, data, "nDCG@10", cv=3, repeats=4, random_state=4)
    m = np.subtract(*(found.fold_means[name]["nDCG@10"] for name in rankers))
    assert m.shape == (12,)
    comparison = found.compare(about="learners")
    (pair,) = comparison.pairs
    t = m.mean() / np.sqrt((1 / 12 + 1 / 2) * m.var(ddof=1))
    assert pair.p == pytest.approx(2 * stats.t.sf(abs(t), 2))
    assert (pair.low <= 0 <= pair.high) == (pair.p >= 0.05)
    assert "learning procedures on data like these" in str(comparison)
    once = cross_validate(rankers, data, "nDCG@10", cv=3, random_state=4)
    np.testing.assert_array_equal(once.scores["ridge"], found.scores["ridge"])
    assert found.fold_means["ridge"]["nDCG@10"][:3] == once.fold_means["ridge"]["nDCG@10"]
    with refused(InvalidInputError, argument="about"):
        found.compare(about="models")


def test_learners_with_equal_differences_in_all_folds_have_no_p_and_no_interval():
    folds = {"a": [0.5, 0.25, 0.75], "b": [0.25, 0.0, 0.5], "c": [0.5, 0.25, 0.75], "d": [0.5, 0.0, 0.5]}
    found = compare_learners(folds, dict.fromkeys(folds, 0.5), "AP", "ranklib", 1)
    equal, none, varies = found.pairs[:3]
    assert equal.difference == 0.25
    assert np.isnan([equal.p, equal.p_adjusted, equal.low, equal.high]).all()
    assert (none.p, none.p_adjusted, np.isnan(none.low)) == (1.0, 1.0, True)
    assert varies.low <= 0 < varies.p <= varies.p_adjusted
    assert "nan" not in str(found)
    assert found.to_dict()["pairs"][0]["p"] is None


def test_folds_do_not_depend_on_the_order_of_the_rows(data):
    grouped = data.take_queries(np.arange(data.n_queries)[::-1])
    one, two = (cross_validate(Ridge(), each, "AP", cv=3) for each in (data, grouped))
    np.testing.assert_allclose(one.per_query["Ridge"]["AP"][::-1], two.per_query["Ridge"]["AP"], atol=1e-12)


def test_validation_queries_go_to_rankers_that_use_them(data):
    stops = ObliviousBoosting(n_estimators=40, patience=2)
    found = cross_validate({"stops": stops, "ridge": RidgeRanker()}, data, "AP", cv=3)
    assert np.isfinite(found.scores["stops"]).all()
    with refused(InvalidInputError, argument="patience"):
        cross_validate(stops, data, cv=3, validate=False)
    with refused(InvalidInputError, argument="cv"):
        cross_validate(stops, data, cv=2)
    with refused(InvalidInputError, argument="data"):
        cross_validate(stops, data.X)
    for nothing in ({}, object()):
        with pytest.raises(InvalidInputError):
            cross_validate(nothing, data)


def test_importance_by_removal_of_anyones(data):
    few = data.take_queries(range(20)).replaced(X=data.take_queries(range(20)).X[:, :2], feature_names=None)
    test = data.take_queries(range(20, 30)).replaced(X=data.take_queries(range(20, 30)).X[:, :2], feature_names=None)
    assert np.asarray(removal_importance(Ridge(), few, test)).shape == (2,)
