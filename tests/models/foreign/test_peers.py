"""Imported models score as their own tools do, with missing values, to the bit."""

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import import_model, load_model, save_model
from truerank.core.errors import ModelFileError

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


def with_categories(rng, n):
    """Rows with three columns of categories among numbers, and unseen, broken and missing ones."""
    X = rng.normal(size=(n, 6))
    for k, count in ((1, 3), (2, 12), (4, 40)):
        X[:, k] = rng.integers(count, size=n)
    effects = [rng.normal(size=50) for _ in range(3)]
    y = X[:, 0] + sum(own[X[:, k].astype(int)] for own, k in zip(effects, (1, 2, 4))) * (X[:, 3] > 0)
    odd = X.copy()
    odd[rng.random(X.shape) < 0.05] = np.nan
    for value in (0.5, 2.7, 49.0, -0.5, -1.0, -7.0, 1e9):
        odd[rng.random(X.shape) < 0.01] = value
    return X, y, odd


@pytest.mark.parametrize("params", [{}, {"max_cat_to_onehot": 64}, {"use_missing": False}])
def test_lightgbm_of_categories(tmp_path, params):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, odd = with_categories(np.random.default_rng(0), 3000)
    own = {"verbose": -1, "num_threads": 1, "num_leaves": 12, "min_data_per_group": 5, "cat_smooth": 1} | params
    booster = lightgbm.train(own, lightgbm.Dataset(X, y, categorical_feature=[1, 2, 4]), 10)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "dump.json").write_text(json.dumps(booster.dump_model()))
    for name in ("model.txt", "dump.json"):
        ranker = import_model(tmp_path / name)
        for rows in (X, odd):
            np.testing.assert_array_equal(ranker.predict(rows), booster.predict(rows, raw_score=True, num_threads=1))
    same_after_saving(ranker, odd, tmp_path)


@pytest.mark.parametrize("params", [{"max_cat_to_onehot": 1}, {"max_cat_to_onehot": 64}])
def test_xgboost_of_categories(tmp_path, params):
    xgboost = pytest.importorskip("xgboost")
    X, y, odd = with_categories(np.random.default_rng(1), 3000)
    kinds = ["c" if k in (1, 2, 4) else "q" for k in range(6)]
    matrix = lambda rows, y=None: xgboost.DMatrix(rows, y, feature_types=kinds, enable_categorical=True)  # noqa: E731
    own = {"nthread": 1, "max_depth": 4, "tree_method": "hist"} | params
    booster = xgboost.train(own, matrix(np.where(np.isnan(odd), np.nan, X), y), 10)
    for name in ("model.json", "model.ubj"):
        booster.save_model(tmp_path / name)
        ranker = import_model(tmp_path / name)
        for rows in (X, odd):
            np.testing.assert_array_equal(ranker.predict(rows), booster.predict(matrix(rows), output_margin=True))
    booster.dump_model(tmp_path / "dump.json", dump_format="json")
    with refused(ModelFileError, code="categories"):
        import_model(tmp_path / "dump.json")


def test_lightgbm_random_forests_are_means(rows, tmp_path):
    """`predict` of a forest divides by the number of trees, which `raw_score=True` does not."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y = rows
    params = {"verbose": -1, "num_threads": 1, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    booster = lightgbm.train(params, lightgbm.Dataset(X, y), 7)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "dump.json").write_text(json.dumps(booster.dump_model()))
    for name in ("model.txt", "dump.json"):
        ranker = import_model(tmp_path / name)
        np.testing.assert_allclose(ranker.predict(X), booster.predict(X, num_threads=1), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"linear_tree": True}, "linear leaves"),
        ({"objective": "multiclass", "num_class": 3}, "expected one"),
    ],
)
def test_lightgbm_that_cannot_be_read(rows, tmp_path, params, message):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = np.nan_to_num(rows[0]), np.clip(np.round(rows[1]), 0, 2)
    X[:, 5] = np.abs(np.round(3 * X[:, 5]))
    columns = params.pop("categorical_feature", "auto")
    data = lightgbm.Dataset(X, y, categorical_feature=columns)
    booster = lightgbm.train({"verbose": -1, "num_threads": 1} | params, data, 3)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "dump.json").write_text(json.dumps(booster.dump_model()))
    for name in ("model.txt", "dump.json"):
        with pytest.raises(ModelFileError, match=message):
            import_model(tmp_path / name)


@pytest.mark.parametrize(
    ("params", "target"),
    [
        ({}, "y"),
        ({"base_score": 3.25}, "y"),
        ({"objective": "binary:logistic", "base_score": 0.2}, "sign"),
        ({"num_parallel_tree": 3, "subsample": 0.5}, "y"),
        ({"gamma": 1e9}, "y"),
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


@pytest.mark.parametrize("old", [False, True])
def test_xgboost_that_was_stopped_early(rows, tmp_path, old):
    """XGBRanker takes the trees up to the best round, and its model says so; a Booster takes all."""
    xgboost = pytest.importorskip("xgboost")
    X, y = rows[0], np.clip(np.round(rows[1]), 0, 3).astype(int)
    qid = np.arange(2000) // 50
    ranker = xgboost.XGBRanker(
        n_estimators=60, n_jobs=1, early_stopping_rounds=2, learning_rate=1.0, num_parallel_tree=2, subsample=0.5
    ).fit(X[:2000], y[:2000], qid=qid, eval_set=[(X[2000:], y[2000:])], eval_qid=[qid], verbose=False)
    ranker.save_model(tmp_path / "model.json")
    if old:
        document = json.loads((tmp_path / "model.json").read_text())
        del document["learner"]["gradient_booster"]["model"]["iteration_indptr"]
        (tmp_path / "model.json").write_text(json.dumps(document))
    imported = import_model(tmp_path / "model.json")
    assert ranker.best_iteration + 1 < ranker.get_booster().num_boosted_rounds()
    np.testing.assert_array_equal(imported.predict(X), ranker.predict(X))
    assert "early stopping" in imported.status_
    ranker.get_booster().save_model(tmp_path / "booster.json")
    imported = import_model(tmp_path / "booster.json")
    expected = ranker.get_booster().predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_array_equal(imported.predict(X), expected)
    assert "booster[:" in imported.status_


def test_xgboost_survival_and_older_files(rows, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = rows
    data = xgboost.DMatrix(X)
    data.set_float_info("label_lower_bound", np.abs(y) + 1)
    data.set_float_info("label_upper_bound", np.abs(y) + 2)
    booster = xgboost.train({"nthread": 1, "objective": "survival:aft"}, data, 5)
    booster.save_model(tmp_path / "model.json")
    expected = booster.predict(data, output_margin=True)
    np.testing.assert_array_equal(import_model(tmp_path / "model.json").predict(X), expected)
    # As version 1.0 wrote it: one number as the base score, no kinds of splits, no names.
    document = json.loads((tmp_path / "model.json").read_text())
    learner = document["learner"]
    learner["learner_model_param"]["base_score"] = learner["learner_model_param"]["base_score"].strip("[]")
    learner["learner_model_param"].pop("num_target", None)
    for key in ("feature_names", "feature_types"):
        learner.pop(key, None)
    for tree in learner["gradient_booster"]["model"]["trees"]:
        tree["default_left"] = [bool(side) for side in tree["default_left"]]
        for key in [key for key in tree if key.startswith(("split_type", "categories"))]:
            del tree[key]
    (tmp_path / "old.json").write_text(json.dumps(document))
    np.testing.assert_array_equal(import_model(tmp_path / "old.json").predict(X), expected)


def test_other_ways_to_keep_a_model_are_named(tmp_path):
    wrong = {
        b"CBM1\0\0": "format=\"json\"", b"binf\0": "save_model", b"\x80\x04\x95": "pickle",
        b"PK\x03\x04\0": "archive", b"\x1f\x8b\x08": "gzip", b"booster[0]:\n0:[f0<1]": "text dump",
    }  # fmt: skip
    for content, message in wrong.items():
        (tmp_path / "model").write_bytes(content)
        with pytest.raises(ModelFileError, match=message):
            import_model(tmp_path / "model")


def test_xgboost_linear(rows, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = np.nan_to_num(rows[0]), rows[1]
    booster = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(X, y), 20)
    booster.save_model(tmp_path / "model.json")
    expected = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(import_model(tmp_path / "model.json").predict(X), expected, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"nan_mode": "Max"},
        {"grow_policy": "Lossguide", "max_leaves": 15},
        {"depth": 1},
        {"grow_policy": "Depthwise", "nan_mode": "Min"},
        {"feature_border_type": "Uniform", "border_count": 500},
        {"loss_function": "Quantile:alpha=0.3"},
        {"ignored_features": [0, 11]},
    ],
    ids=str,
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


def test_catboost_scaled_shrunk_and_summed(rows, tmp_path):
    catboost = pytest.importorskip("catboost")
    X, y = rows
    own = {"depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(iterations=10, **own).fit(X, y)
    model.set_scale_and_bias(2.5, -3.0)
    other = catboost.CatBoostRegressor(iterations=5, **own).fit(X, y**2)
    for changed in (model, catboost.sum_models([model, other], weights=[0.5, 2.0])):
        changed.save_model(str(tmp_path / "model.json"), format="json")
        np.testing.assert_allclose(import_model(tmp_path / "model.json").predict(X), changed.predict(X), atol=1e-13)


@pytest.mark.parametrize("missing", [-999.0, 0, np.float64(7)])
def test_a_value_that_xgboost_reads_as_missing_is_refused_in_memory(rows, missing):
    xgboost = pytest.importorskip("xgboost")
    X, y = (own[:200] for own in rows)
    X = np.where(np.isnan(X), missing, X)
    model = xgboost.XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1, missing=missing).fit(X, y)
    with refused(ModelFileError, code="missing-value") as caught:
        import_model(model)
    assert "XGBRegressor" in str(caught.value)


def test_errors_about_a_model_in_memory_name_it(rows):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(rows[0][:200], np.arange(200) % 3)
    with pytest.raises(ModelFileError, match="^the fitted LGBMClassifier"):
        import_model(model)
