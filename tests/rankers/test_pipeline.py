"""Rankers behind transformers, and other libraries' rankers."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank.calibration.ranker import CalibratedRanker
from truerank.cli import main
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.data.ranking_data import RankingData
from truerank.features.per_query import MinMaxInQuery
from truerank.features.score_binning import ScoreBinning
from truerank.io.letor.write import write_letor
from truerank.models.model_file import load_model, save_model
from truerank.rankers.baselines import RidgeRanker
from truerank.rankers.measure_svm import MeasureSVM
from truerank.rankers.pipeline import TRANSFORMERS, RankerPipeline, fit_ranker, ranker_scores
from truerank.rankers.rank_svm import RankSVM

test_scikit_learn_conformance = ranker_checks([RankerPipeline(["unit-deviation"], RankSVM())])


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(30), 8)
    X = rng.normal(size=(240, 3)) + 50 * rng.normal(size=30)[qid][:, None]
    y = (X[:, 0] + rng.normal(size=240) > np.array([X[qid == q, 0].mean() for q in qid])).astype(int)
    return X, y, qid


def test_it_is_transformers_then_the_ranker(judged, tmp_path):
    X, y, qid = judged
    fitted = RankerPipeline(["min-max-in-query", "score-binning"], MeasureSVM(C=1.0)).fit(X, y, qid=qid)
    scaled = MinMaxInQuery().fit_transform(X, qid=qid)
    binning = ScoreBinning(output="binned").fit(scaled)
    by_hand = MeasureSVM(C=1.0).fit(binning.transform(scaled), y, qid=qid)
    expected = by_hand.predict(binning.transform(scaled))
    np.testing.assert_allclose(fitted.predict(X, qid=qid), expected, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(RankingData(X, y, qid)), fitted.predict(X, qid=qid))
    # Every linear ranker takes the bins, as a sparse matrix where it has no form for codes.
    sparse = RankerPipeline(["min-max-in-query", ScoreBinning(5)], RankSVM()).fit(X, y, qid=qid)
    assert sparse.score(X, y, qid=qid) > 0.6
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X, qid=qid), fitted.predict(X, qid=qid))
    with refused(InvalidInputError, argument="qid"):
        fitted.predict(X)
    with refused(InvalidInputError, argument="X"):
        fitted.predict(RankingData(X, y, qid), qid=qid)
    with refused(InvalidInputError, code="unknown-name"):
        RankerPipeline("bins", RankSVM()).fit(X, y, qid=qid)
    with refused(InvalidInputError, argument="prepare"):
        RankerPipeline([3], RankSVM()).fit(X, y, qid=qid)


class LessTheQuerysMean(TransformerMixin, BaseEstimator):
    """Somebody's own transformer, which looks at the query."""

    def fit(self, X, y=None):
        return self

    def transform(self, X, qid=None):
        qid = np.zeros(len(X), dtype=int) if qid is None else qid
        return X - np.stack([X[qid == one].mean(axis=0) for one in qid])


def test_somebodys_transformer_that_takes_qid_needs_it(judged):
    X, y, qid = judged
    fitted = RankerPipeline(LessTheQuerysMean(), RidgeRanker()).fit(X, y, qid=qid)
    by_hand = RidgeRanker().fit(LessTheQuerysMean().transform(X, qid), y, qid=qid)
    np.testing.assert_allclose(fitted.predict(X, qid=qid), by_hand.predict(LessTheQuerysMean().transform(X, qid)))
    with refused(InvalidInputError, argument="qid"):
        fitted.predict(X)


def test_weights_that_do_not_reach_a_ranker_are_named(judged):
    X, y, qid = judged
    weighed = RankingData(X, y, qid, query_weight=np.linspace(1, 2, len(np.unique(qid))))
    with pytest.warns(TruerankWarning, match="the weights of the data have no effect on Ridge"):
        fit_ranker(Ridge(), weighed)
    fit_ranker(RidgeRanker(), weighed)


def test_a_calibrated_pipeline(judged, tmp_path):
    X, y, qid = judged
    pipeline = RankerPipeline("z-score-in-query", RidgeRanker())
    fitted = CalibratedRanker(pipeline, "platt", cv=3).fit(X, y, qid=qid)
    p = fitted.predict_proba(X, qid=qid)
    assert np.mean((p[:, 1] - y) ** 2) < 0.22
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(X, qid=qid), p)


@pytest.mark.parametrize("kind", ["LGBMRanker", "XGBRanker", "pipeline", "regression"])
def test_anyones_ranker(judged, kind):
    X, y, qid = judged
    if kind == "LGBMRanker":
        ranker = pytest.importorskip("lightgbm").LGBMRanker(n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1)
    elif kind == "XGBRanker":
        ranker = pytest.importorskip("xgboost").XGBRanker(n_estimators=5, n_jobs=1)
    elif kind == "pipeline":
        ranker = Pipeline([("within", MinMaxInQuery()), ("scale", StandardScaler()), ("rank", RankSVM())])
    else:
        ranker = Pipeline([("within", MinMaxInQuery()), ("rank", Ridge())])
    data = RankingData(X, y, qid, feature_names=["a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = CalibratedRanker(ranker, "platt", cv=3).fit(data)
        p = fitted.predict_proba(data)[:, 1]
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.mean((p - y) ** 2) < 0.25
    alone = fit_ranker(ranker, data)
    np.testing.assert_allclose(fitted.predict(data), data.restore(ranker_scores(alone, data)))


def test_what_is_no_ranker(judged):
    X, y, qid = judged
    with refused(InvalidInputError, argument="ranker"):
        fit_ranker(MinMaxInQuery(), RankingData(X, y, qid))
    with refused(InvalidInputError, argument="ranker") as caught:
        fit_ranker(RankerPipeline, RankingData(X, y, qid), RankingData(X, y, qid))
    assert "Write RankerPipeline()" in str(caught.value)


def test_the_command_line(judged, tmp_path, capsys):
    X, y, qid = judged
    file, model, calibrated = (str(tmp_path / name) for name in ("data.txt", "model.json", "calibrated.json"))
    write_letor(RankingData(X, y, qid), file)
    words = ["--ranker", "rank-svm", "--prepare", "percentile-in-query", "score-binning"]
    assert main(["train", file, *words, "--set", "C=0.1", "--model", model, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["prepare"] == ["percentile-in-query", "score-binning"]
    assert main(["predict", model, file]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    np.testing.assert_allclose(scores, load_model(model).predict(X, qid=qid))
    assert main(["predict", "--format", "run", model, file, "-o", str(tmp_path / "run")]) == 0
    assert main(["calibrate", model, file, "--method", "platt", "--cv", "2", "-o", calibrated]) == 0
    assert main(["decide", calibrated, file, "-o", str(tmp_path / "decided")]) == 0
    assert main(["cross-validate", file, *words, "--cv", "3", "--grid", "C=[0.1,1]", "--json"]) == 0
    assert main(["train", file, "--ranker", "rank-svm", "--prepare", "bins", "--model", model]) == 2
    assert ", ".join(TRANSFORMERS) in capsys.readouterr().err


def test_an_imputer_fills_missing_values_in():
    X = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 1.0], [np.nan, 2.0]])
    y, qid = [0, 1, 1, 0], [0, 0, 1, 1]
    filled = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 1.0], [2.0, 2.0]])
    ranker = RankerPipeline(SimpleImputer(), RidgeRanker()).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(X), RidgeRanker().fit(filled, y, qid=qid).predict(filled))
    with refused(InvalidInputError, argument="X"):
        RankerPipeline("z-score-in-query", RidgeRanker()).fit(X, y, qid=qid)
