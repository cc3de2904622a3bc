"""Model files of other tools that ask for much, or mean something else than they seem to."""

import numpy as np
import pytest

from support.refusals import refused
from truerank import RankingData, export_model, import_model, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError


@pytest.mark.peers
def test_linear_models_of_xgboost_score_missing_values_as_xgboost_does(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 0).astype(float)
    params = {"booster": "gblinear", "objective": "reg:squarederror", "nthread": 1}
    booster = xgboost.train(params, xgboost.DMatrix(X, y, nthread=1), 5)
    booster.save_model(tmp_path / "model.json")
    expected = booster.predict(xgboost.DMatrix(X, nthread=1), output_margin=True)
    model = import_model(tmp_path / "model.json")
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)
    save_model(model, tmp_path / "ours.json")
    np.testing.assert_array_equal(load_model(tmp_path / "ours.json").predict(X), model.predict(X))
    data = RankingData(X.astype(np.float64), y, np.repeat(np.arange(10), 20))
    assert export_model(model, "xgboost", certify=data, force=True).certificate.rank_agreement == 1
    with refused(
        InvalidInputError, code="export-differs", remedy={"absent": "zero"}
    ):  # a sum in Python has no score there
        export_model(model, "python", certify=data)


def lightgbm_text(words):
    return "\n".join([
        "tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0", "max_feature_idx=0",
        "objective=lambdarank", "feature_names=f1", "feature_infos=0:1", "tree_sizes=1", "", "Tree=0", "num_leaves=2",
        "num_cat=1", "split_feature=0", "split_gain=1", "threshold=0", "decision_type=1", "left_child=-1",
        "right_child=-2", "leaf_value=1 2", "leaf_weight=1 1", "leaf_count=1 1", "internal_value=0",
        "internal_weight=1", "internal_count=2", f"cat_boundaries=0 {len(words)}",
        f"cat_threshold={' '.join(map(str, words))}", "is_linear=0", "shrinkage=1", "", "end of trees", "",
    ])  # fmt: skip


def test_alternating_categories_do_not_cost_a_minute(tmp_path, monkeypatch):
    path = tmp_path / "model.txt"
    path.write_text(lightgbm_text([0xAAAAAAAA] * 4))
    few = import_model(path)
    assert few.predict([[1.0], [2.0], [127.0], [200.0]]).tolist() == [1.0, 2.0, 1.0, 2.0]
    monkeypatch.setattr("truerank.models.foreign.model._MOST_RANGES", 1 << 10)
    path.write_text(lightgbm_text([0xAAAAAAAA] * 500))
    with refused(ModelFileError, code="too-many-ranges"):
        import_model(path)


@pytest.mark.peers
def test_a_base_score_given_as_a_probability_is_xgboosts_margin(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    rows = xgboost.DMatrix(X, (X[:, 0] > 0).astype(float), nthread=1)
    exact = 0
    for base in rng.uniform(0.01, 0.99, 100).tolist():
        params = {"objective": "binary:logistic", "base_score": base, "nthread": 1, "max_depth": 2}
        booster = xgboost.train(params, rows, 1)
        booster.save_model(tmp_path / "model.json")
        expected = booster.predict(rows, output_margin=True)
        found = import_model(tmp_path / "model.json").predict(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=6e-8)
        exact += np.array_equal(found, expected)
    assert exact >= 95
