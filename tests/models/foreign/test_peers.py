"""Imported models score as their own tools do, with missing values, to the bit."""

import json

import numpy as np
import pytest

from truerank import import_model, load_model, save_model

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore:numpy.ndarray size changed:RuntimeWarning")]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 12))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 5] = np.round(X[:, 5], 1)
    X[np.abs(X[:, 7]) < 0.8, 7] = 0
    return X, y


def same_after_saving(ranker, X, tmp_path):
    save_model(ranker, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), ranker.predict(X))


@pytest.mark.parametrize("params", [{}, {"zero_as_missing": True}, {"use_missing": False}, {"num_leaves": 2}])
def test_lightgbm(rows, tmp_path, params):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = rows
    booster = lightgbm.train({"verbose": -1, "num_threads": 1, "num_leaves": 15} | params, lightgbm.Dataset(X, y), 20)
    expected = booster.predict(X, raw_score=True, num_threads=1)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "dump.json").write_text(json.dumps(booster.dump_model()))
    for name in ("model.txt", "dump.json"):
        ranker = import_model(tmp_path / name)
        np.testing.assert_array_equal(ranker.predict(X), expected)
    same_after_saving(ranker, X, tmp_path)
    assert ranker.feature_names_[3] == "Column_3"


@pytest.mark.parametrize(
    ("params", "target"),
    [
        ({}, "y"),
        ({"booster": "dart", "rate_drop": 0.3}, "y"),
        ({"objective": "binary:logistic"}, "sign"),
        ({"objective": "binary:logitraw"}, "sign"),
        ({"objective": "rank:ndcg"}, "grade"),
        ({"objective": "count:poisson"}, "grade"),
    ],
)
def test_xgboost(rows, tmp_path, params, target):
    xgboost = pytest.importorskip("xgboost")
    X, y = rows
    y = {"y": y, "sign": (y > 0).astype(float), "grade": np.clip(np.round(y), 0, 3)}[target]
    data = xgboost.DMatrix(X, y, qid=np.arange(len(X)) // 50 if params.get("objective") == "rank:ndcg" else None)
    booster = xgboost.train({"max_depth": 4, "nthread": 1} | params, data, 20)
    expected = booster.predict(xgboost.DMatrix(X), output_margin=True)
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        ranker = import_model(tmp_path / name)
        np.testing.assert_array_equal(ranker.predict(X), expected)
    same_after_saving(ranker, X, tmp_path)
    booster.dump_model(tmp_path / "dump.json", dump_format="json")
    dumped = import_model(tmp_path / "dump.json", n_features=12).predict(X)
    if "booster" not in params:  # a dump lacks the base score, and dart's weights
        assert np.ptp(dumped - expected) < 1e-5


def test_xgboost_linear(rows, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = np.nan_to_num(rows[0]), rows[1]
    booster = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(X, y), 20)
    booster.save_model(tmp_path / "model.json")
    expected = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(import_model(tmp_path / "model.json").predict(X), expected, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize(
    "params", [{}, {"nan_mode": "Max"}, {"grow_policy": "Lossguide", "max_leaves": 15}, {"depth": 1}]
)
def test_catboost(rows, tmp_path, params):
    catboost = pytest.importorskip("catboost")
    X, y = rows
    own = {"iterations": 20, "depth": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False} | params
    model = catboost.CatBoostRegressor(**own).fit(X, y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    expected = model.predict(X, prediction_type="RawFormulaVal", thread_count=1)
    ranker = import_model(tmp_path / "model.json")
    np.testing.assert_array_equal(ranker.predict(X), expected)
    same_after_saving(ranker, X, tmp_path)


def test_questions_answer_as_the_tool_does_next_to_every_threshold(tmp_path):
    """XGBoost rounds a feature to float32 before it asks: also for the float64 numbers that round to a threshold."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(X, X[:, 0] ** 2), 5)
    booster.save_model(tmp_path / "model.json")
    ranker = import_model(tmp_path / "model.json")
    thresholds = ranker.parts_["thresholds"]
    near = np.concatenate([np.nextafter(thresholds, -np.inf), thresholds, np.nextafter(thresholds, np.inf)])[:, None]
    expected = booster.predict(xgboost.DMatrix(near.astype(np.float32)), output_margin=True)
    np.testing.assert_array_equal(ranker.predict(near), expected)
