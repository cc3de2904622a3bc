"""scikit-learn's transformers in model files: every bit comes back, nothing is pickled, damage is refused."""

import json

import numpy as np
import pytest
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from support.edited_models import unsealed
from support.refusals import refused
from truerank import (
    AdaRank,
    CalibratedRanker,
    ObliviousBoosting,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    export_model,
    load_model,
    save_model,
    write_letor,
)
from truerank.cli import main
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.names import resolve
from truerank.models.scikit_learn import FITTED

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(120, 4)), 2)
X[:, 3] = 7.0
DATA = RankingData(X, (X[:, 0] + X[:, 1] > 0).astype(int), np.repeat(np.arange(6), 20))
STEPS = [
    StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler((-1, 2), clip=True), MaxAbsScaler(), RobustScaler(),
    RobustScaler(with_centering=False, quantile_range=(10.0, 90.0)), Normalizer(), Binarizer(threshold=0.3),
    PowerTransformer(), PowerTransformer(standardize=False), QuantileTransformer(n_quantiles=9), SimpleImputer(),
    PolynomialFeatures(2), VarianceThreshold(),
]  # fmt: skip


def test_every_class_that_is_listed_is_tried():
    transformers = {
        name for name, (module, *_) in FITTED.items() if hasattr(resolve(f"sklearn.{module}:{name}"), "fit_transform")
    }
    assert {type(step).__name__ for step in STEPS} == transformers


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_pipelines_come_back_with_their_scores(step, tmp_path):
    for model in (RankerPipeline([step], RidgeRanker()), Pipeline([("step", step), ("ranker", RidgeRanker())])):
        if isinstance(model, Pipeline):
            from sklearn.base import clone

            model = clone(model).fit(X, DATA.y)
        else:
            model = model.fit(DATA)
        save_model(model, tmp_path / "model.json")
        assert b"pickle" not in (tmp_path / "model.json").read_bytes()
        back = load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(back.predict(X), model.predict(X))
        if isinstance(back, RankerPipeline):  # its parameters are as good as new
            np.testing.assert_array_equal(back.fit(DATA).predict(X), model.predict(X))


@pytest.mark.parametrize("ranker", ["ridge", "oblivious-boosting"])
@pytest.mark.parametrize(
    "step", [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), VarianceThreshold()]
)
def test_the_command_exports_them(step, ranker, tmp_path):
    own = RidgeRanker() if ranker == "ridge" else ObliviousBoosting(leaves="constant", n_estimators=4, depth=2)
    save_model(RankerPipeline([step], own).fit(DATA), tmp_path / "model.json")
    write_letor(DATA, tmp_path / "data.txt")
    out, data = tmp_path / "model.py", str(tmp_path / "data.txt")
    argv = ["export", str(tmp_path / "model.json"), "--to", "python", "-o", str(out), "--certify", data, "--json"]
    assert main(argv) == 0
    space = {"__name__": "exported"}
    exec(out.read_text(), space)
    expected = load_model(tmp_path / "model.json").predict(X)
    assert space["score_rows"](X.tolist()) == expected.tolist()


def test_unit_deviation_and_choices_of_columns_go_to_engines():
    for leaves in ("constant", "fuzzy", "polynomial"):
        trees = ObliviousBoosting(leaves=leaves, n_estimators=4, depth=2)
        for steps in (["unit-deviation"], [VarianceThreshold()], [VarianceThreshold(), StandardScaler()]):
            model = RankerPipeline(steps, trees).fit(DATA)
            for format in ("python", "vespa", "painless"):
                own = export_model(model, format, ["a", "b", "c", "d"], certify=DATA).certificate
                assert own.rank_agreement == 1.0
                assert own.largest_difference < 1e-6
    text = export_model(RankerPipeline([VarianceThreshold()], AdaRank()).fit(DATA), "solr", ["a", "b", "c", "d"])
    assert {feature["name"] for feature in json.loads(text)["features"]} <= {"a", "b", "c"}


def test_a_calibrated_pipeline_is_saved_and_exported(tmp_path):
    model = CalibratedRanker(RankerPipeline([StandardScaler()], RidgeRanker()), cv=3, random_state=0).fit(DATA)
    save_model(model, tmp_path / "model.json")
    back = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert export_model(back, "python", certify=DATA).certificate.largest_difference < 1e-13


def test_functions_have_no_form():
    with refused(InvalidInputError, code="cannot-keep"):
        save_model(RankerPipeline([FunctionTransformer(np.tanh)], RidgeRanker()).fit(DATA), "/dev/null")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean_": None}, "StandardScaler"),
        ({"scale_": {"$array": "float64", "shape": [3], "values": [1.0, 1.0, 1.0]}}, "p = 4"),
        ({"scale_": {"$array": "float64", "shape": [4], "values": [1.0, 0.0, 1.0, "nan"]}}, "finite"),
        ({"scale_": {"$array": "float64", "shape": [4], "values": [1.0, 0.0, 1.0, 1.0]}}, "row of zeros|plain numbers"),
        ({"transform": "x"}, "unknown attribute"),
        ({"n_features_in_": 1e9}, "n_features_in_"),
    ],
)
@pytest.mark.parametrize("pipeline", [True, False])
def test_edited_files_are_refused(change, message, pipeline, tmp_path):
    model = RankerPipeline([StandardScaler()], RidgeRanker())
    if pipeline:
        model = Pipeline([("scale", StandardScaler()), ("rank", RidgeRanker())])
    save_model(model.fit(X, DATA.y) if pipeline else model.fit(DATA), tmp_path / "model.json")
    document = unsealed(json.loads((tmp_path / "model.json").read_text()))
    own = document["model"]
    step = own["steps"][0][1] if pipeline else own["fitted"]["transformers_"][0]
    step["fitted"] |= change
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "model.json")
