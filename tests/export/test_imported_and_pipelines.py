"""Imported rankers and pipelines: explained like any other, and exported with their scaling of columns."""

import shutil

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from support.refusals import refused
from truerank import (
    AdaRank,
    MinMaxInQuery,
    ObliviousBoosting,
    RankerPipeline,
    RankingData,
    RidgeRanker,
    ScoreBinning,
    export_model,
    import_model,
    save_model,
    write_letor,
)
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.export.compared_rows import missing_cases, reference_scores
from truerank.export.form import form_of
from truerank.export.formats import FORMATS
from truerank.export.run import run_c
from truerank.inspection.explanation import explain

COMPILER = shutil.which("cc") or shutil.which("gcc")
NAMES = ["a", "b", "c", "d"]


def made_up():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(100, 4)), 2)
    return RankingData(X, (X[:, 0] > 0).astype(int), np.repeat(np.arange(5), 20), feature_names=NAMES)


DATA = made_up()
TREES = ObliviousBoosting(leaves="constant", n_estimators=4, depth=2)


def imported(ranker, format, folder):
    (folder / "model").write_text(export_model(ranker.fit(DATA), format))
    return import_model(folder / "model", feature_names=NAMES)


@pytest.mark.parametrize(("ranker", "format"), [(TREES, "lightgbm"), (TREES, "xgboost"), (RidgeRanker(), "solr")])
def test_imported_rankers_are_explained(ranker, format, tmp_path):
    model = imported(ranker, format, tmp_path)
    found = explain(model, DATA, query=0)
    scores = model.predict(DATA)[:20]
    assert found.contributions.sum() == pytest.approx(found.difference, abs=1e-12)
    assert found.scores[0] == scores.max()
    if ranker is not TREES:  # of a linear model the shares are weight times difference
        own = export_model(model, "python").certificate
        assert own.rank_agreement == 1.0
        expected = explain(ranker, DATA, query=0, above=int(np.argmax(scores)), below=int(np.argmin(scores)))
        other = explain(model, DATA, query=0, above=int(np.argmax(scores)), below=int(np.argmin(scores)))
        np.testing.assert_allclose(other.contributions, expected.contributions, atol=1e-6)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
@pytest.mark.parametrize("ranker", [TREES, RidgeRanker()])
def test_pipelines_are_explained_and_exported(scaler, ranker):
    model = RankerPipeline([scaler], ranker).fit(DATA)
    found = explain(model, DATA, query=0)
    assert found.contributions.sum() == pytest.approx(found.difference, abs=1e-12)
    assert form_of(model).names == tuple(NAMES)
    for format in ("python", "painless", "vespa", "solr"):
        own = export_model(model, format, certify=DATA).certificate
        assert own.rank_agreement == 1.0
        # Solr's slack hides a threshold of 1e-18, which undoing the scaling makes of 0.
        assert format == "solr" or own.border_differences == 0
        assert own.largest_difference <= (1e-6 if format in ("painless", "solr") else 1e-14)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_trees_of_any_shape_go_to_c(tmp_path):
    """Trees of unequal height, one of a single leaf, with a set of categories and missing values."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(400, 3)), rng.integers(0, 6, 400)])
    X[rng.random(400) < 0.1, 0] = np.nan
    y = ((np.nan_to_num(X[:, 0]) + X[:, 3] % 3) > 1).astype(int)
    ranker = lightgbm.LGBMRanker(n_estimators=5, num_leaves=9, min_child_samples=5, verbose=-1)
    ranker.fit(X, y, group=[20] * 20, categorical_feature=[3])
    text = ranker.booster_.model_to_string()
    (tmp_path / "model.txt").write_text(text)
    model = import_model(tmp_path / "model.txt")
    np.testing.assert_array_equal(model.predict(X), ranker.predict(X))
    score = run_c(str(export_model(model, "c")), COMPILER, ("-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"))
    for count in (1, 400):
        np.testing.assert_array_equal(score(X[:count]), model.predict(X[:count]))


def test_plain_imported_trees_go_to_onnx(tmp_path):
    pytest.importorskip("onnx")
    model = imported(TREES, "lightgbm", tmp_path)
    form = form_of(model)
    assert form.kind == "trees"
    own = export_model(model, "onnx", certify=DATA).certificate
    assert own.rank_agreement == 1.0
    assert own.border_cases > 0 == own.border_differences
    assert len(missing_cases(form, DATA.X, "nan")) == own.missing_cases > 0 == own.missing_differences
    assert own.largest_difference < 1e-6


@pytest.mark.filterwarnings("ignore:.*used for training")
def test_the_report_takes_them(tmp_path):
    pipeline, foreign = (
        RankerPipeline([MinMaxInQuery()], RidgeRanker()).fit(DATA),
        imported(TREES, "lightgbm", tmp_path),
    )
    for name, model in (("pipeline", pipeline), ("imported", foreign)):
        save_model(model, tmp_path / f"{name}.json")
    write_letor(DATA, tmp_path / "data.txt")
    models = [str(tmp_path / f"{name}.json") for name in ("pipeline", "imported")]
    page = tmp_path / "page.html"
    assert (
        main(["report", *models, "--data", str(tmp_path / "data.txt"), "--training-queries", "keep", "-o", str(page)])
        == 0
    )
    text = page.read_text()
    assert "pipeline" in text
    assert "imported" in text


@pytest.mark.parametrize("format", FORMATS)
def test_binary_features_of_a_linear_ranker_are_exported_as_questions_about_the_columns(format):
    if format == "onnx":
        pytest.importorskip("onnx")
    model = RankerPipeline(["score-binning"], RidgeRanker()).fit(DATA)
    assert form_of(model).names == tuple(NAMES)
    assert export_model(model, format, certify=DATA).certificate.rank_agreement == 1.0


@pytest.mark.parametrize("scaler", [None, MinMaxScaler()])
def test_the_form_of_binary_features_scores_as_the_pipeline_does(scaler):
    steps = [MaxAbsScaler(), ScoreBinning(n_thresholds=7, strategy="quantile"), RidgeRanker()]
    X = DATA.X.copy()
    X[::7, 1] = np.nan
    if scaler is not None:
        steps[0] = scaler
        steps.insert(2, StandardScaler(with_mean=False))  # of the binary features
    model = make_pipeline(*steps).fit(X, DATA.y, ridgeranker__qid=DATA.qid)
    np.testing.assert_allclose(reference_scores(form_of(model), X), model.predict(X), rtol=0, atol=1e-12)


def test_what_has_no_form_says_what_to_do():
    twice = RankerPipeline([StandardScaler(), MinMaxScaler()], RidgeRanker()).fit(DATA)
    with refused(InvalidInputError, code="two-scalings"):
        export_model(twice, "solr")
    columns = make_pipeline(ColumnTransformer([("all", MinMaxScaler(), [0, 1])]), AdaRank(n_estimators=2))
    columns.fit(DATA.X, DATA.y, adarank__qid=DATA.qid)
    with refused(InvalidInputError, code="step"):
        export_model(columns, "solr")
    with refused(InvalidInputError, code="cannot-keep"):
        save_model(columns, "never.json")
