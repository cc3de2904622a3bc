"""Certificates that would say more than was compared."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from support.refusals import refused
from truerank import (
    ImportedRanker,
    ObliviousBoosting,
    RankBoost,
    RankerPipeline,
    RankingData,
    SingleFeature,
    export_model,
    load_model,
    save_model,
)
from truerank.cluster import from_parts
from truerank.core.errors import InvalidInputError
from truerank.core.float32 import INPUTS, inputs_of
from truerank.export.form import ModelForm, Plain
from truerank.export.formats import FORMATS
from truerank.models.foreign.model import ForeignModel
from truerank.trees.binary import BinaryTrees

pytestmark = pytest.mark.filterwarnings("ignore:numpy.ndarray size changed:RuntimeWarning", "ignore:.*learned nothing")


def judged(seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.lognormal(size=(400, 5)), 3)
    return RankingData(X, np.clip(np.round(X[:, 0] * X[:, 1]), 0, 3), np.repeat(np.arange(20), 20))


DATA = judged()
KINDS = ("float32", "decimal", "float64")


def trees(data=DATA):
    return ObliviousBoosting("constant", n_estimators=8, depth=3).fit(data)


def single(data=DATA):
    return SingleFeature().fit(data)


@pytest.mark.parametrize(("make", "format"), [(single, "python"), (single, "xgboost")])
def test_a_model_without_missing_values_in_training_is_exported_with_a_note(make, format, tmp_path):
    save_model(make(), tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    for certify in (None, DATA):
        own = export_model(model, format, certify=certify).certificate
        assert own.missing_differences > 0
        assert "the model saw no missing value in training" in str(own)
    X = DATA.X.copy()
    X[3] = np.nan
    for given in ({"absent": "nan"}, {"certify": DATA.replaced(X=X)}):
        with refused(InvalidInputError, code="export-differs"):
            export_model(model, format, **given)
    del model.saw_missing_  # of which nothing is known
    with refused(InvalidInputError, code="export-differs"):
        export_model(model, format)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_on_partitions_remembers_the_kind_of_its_numbers(kind):
    parts = [DATA.replaced(X=of_kind(kind)).take_queries(range(*ends)) for ends in ((0, 7), (7, 20))]
    for last in (parts[1], parts[1].replaced(X=np.full_like(parts[1].X, np.nan))):
        model = trees(from_parts([parts[0], last]))
        assert model.inputs_ == kind
        assert model.saw_missing_ == np.isnan(last.X).any()


def test_a_certificate_on_generated_rows_says_so_first():
    own = export_model(trees(), "solr").certificate
    assert str(own).splitlines()[0].startswith("solr: only ")
    assert "Pass certify to compare your own rows" in own.subject
    assert own.to_dict()["subject"] == own.subject
    compared = export_model(trees(), "solr", certify=DATA).certificate
    assert compared.subject.startswith("solr: 0 of 20 queries change their order, 0 their first document")
    assert list(compared.to_dict())[2:4] == ["orders_changed", "firsts_changed"]


def test_nothing_compared_is_no_agreement():
    empty = RankingData.from_grouped(np.empty((0, 5)), np.empty(0), np.array([0]))
    with refused(InvalidInputError, argument="certify"):
        export_model(trees(), "solr", certify=empty)


def test_scores_that_are_nan_are_no_agreement(monkeypatch):
    from truerank.export import certificate

    real = certificate.evaluators
    monkeypatch.setattr(
        certificate,
        "evaluators",
        lambda *args: real(*args) | {"engine": lambda X: np.full(len(X), np.nan)},
    )
    with refused(InvalidInputError, code="export-differs"):
        export_model(trees(), "solr", certify=DATA)
    own = export_model(trees(), "solr", certify=DATA, force=True).certificate
    assert np.isnan(own.largest_difference)
    assert own.border_differences == own.border_cases > 0


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_of_ties_certifies_no_order(format, monkeypatch):
    """No two documents were reversed where all had the same score, and the agreement was 100 %."""
    from truerank.export import certificate

    real = certificate.evaluators
    monkeypatch.setattr(
        certificate, "evaluators", lambda *args: {name: lambda X: np.zeros(len(X)) for name in real(*args)}
    )
    for certify in (None, DATA):
        with refused(InvalidInputError, code="export-differs"):
            export_model(trees(), format, certify=certify, absent="zero")
    own = export_model(trees(), format, certify=DATA, absent="zero", force=True).certificate
    assert own.ties_made == own.neighbours > 0


def test_rows_that_all_tie_are_said_to_show_no_order():
    same = DATA.replaced(X=np.ones_like(DATA.X))
    own = export_model(trees(), "solr", certify=same).certificate
    assert (own.neighbours, own.tied) == (0, 1.0)
    assert "no order was compared" in own.subject
    assert "100.0 % of rows tie" in str(own)
    scores = trees().predict(DATA)
    tied = sum((scores[DATA.qid == q][:, None] == scores[DATA.qid == q]).sum(1).__gt__(1).sum() for q in range(20))
    assert export_model(trees(), "solr", certify=DATA).certificate.tied == tied / 400


def of_kind(kind):
    single = DATA.X.astype(np.float32)
    return {
        "float32": single,
        "decimal": np.array([float(str(v)) for v in single.ravel()]).reshape(single.shape),
        "float64": DATA.X / 3,
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_remembers_the_kind_of_its_numbers(kind, tmp_path):
    model = trees(DATA.replaced(X=of_kind(kind)))
    assert model.inputs_ == inputs_of(of_kind(kind)) == kind
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert export_model(again, "xgboost").certificate.policy["inputs"] == INPUTS[kind]


def test_float32_numbers_held_as_float64_are_known():
    assert inputs_of(np.float32(DATA.X).astype(np.float64) / 3) == "float64"
    assert inputs_of((np.float32(DATA.X) / np.float32(3)).astype(np.float64)) == "float32"


@pytest.mark.peers
@pytest.mark.parametrize("categorical", [(), (5,)])
@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_libraries_score_rows_of_the_training_kind_as_predict_does(leaves, categorical):
    """Rows 1e-9 apart were off by 0.3 in ONNX, and no certificate on generated rows said so."""
    pytest.importorskip("lightgbm")
    from benchmarks.export.bench_precision import _own, differences

    categories = np.random.default_rng(1).integers(0, 9, 400)
    data = DATA.replaced(X=np.column_stack([DATA.X, categories]), y=np.clip(DATA.y + (categories % 3 == 0), 0, 3))
    found = differences(data, leaves, categorical, n_estimators=10, depth=3)
    programs = {"lightgbm", "xgboost", "onnxruntime"} if leaves == "constant" else {"onnxruntime"}
    assert {program.split()[0] for _, _, program, *_ in found} == programs
    for kind, format, program, precision, difference, merged in found:
        if kind == "close" and format == "xgboost":
            assert difference < merged  # float32 cannot tell such rows apart
        elif _own(kind, precision):
            assert difference < 1e-5, (kind, program, precision)


def test_numbers_that_float32_merges_count_only_in_columns_that_the_model_uses(tmp_path):
    """A model that asked about other columns was refused too."""
    close = 1e9 + np.random.default_rng(0).uniform(size=400)
    data = DATA.replaced(X=np.column_stack([DATA.X, np.round(close, 5)]))
    model = SingleFeature(0).fit(data)
    assert (model.inputs_, model.close_columns_) == ("close", [5])
    assert export_model(model, "xgboost").certificate.policy["trained_on"] == "float64 numbers"
    model = SingleFeature(5).fit(from_parts([data.take_queries(range(9)), data.take_queries(range(9, 20))]))
    save_model(model, tmp_path / "model.json")
    for own in (model, load_model(tmp_path / "model.json")):
        with refused(InvalidInputError, code="export-differs"):
            export_model(own, "xgboost")


def test_categories_with_nearly_equal_statistics_are_close():
    rng = np.random.default_rng(0)
    X = np.column_stack([DATA.X[:, 0], rng.integers(0, 3, 400)])
    model = ObliviousBoosting("constant", n_estimators=2, depth=2, categorical=[1]).fit(DATA.replaced(X=X))
    model.category_statistics_ = np.array([1.0, 1.0 + 1e-9, 2.0])
    assert (model.over_statistics().inputs_, model.over_statistics().close_columns_) == ("close", [1])


def test_a_certificate_states_the_difference_of_numbers_that_float32_merges():
    model = trees(DATA.replaced(X=of_kind("float64")))
    own = export_model(model, "xgboost").certificate
    assert own.merged_cases > 0
    assert own.merged_difference > 0.01 > 1e-5 > own.largest_difference
    assert f"{own.merged_cases} generated rows with a value that float32 rounds" in str(own)
    assert export_model(model, "python").certificate.merged_cases == 0


def deep(depth):
    chain = BinaryTrees(
        np.array([0]), np.zeros(depth, dtype=np.int64), np.linspace(1, 0, depth), np.zeros(depth, bool),
        np.zeros(depth, bool), np.append(np.arange(1, depth), -1), ~np.arange(1, depth + 1), np.arange(depth + 1.0),
    )  # fmt: skip
    return ImportedRanker.of(ForeignModel("lightgbm", ModelForm(("f1",), Plain(chain))))


def constant(make):
    return make.fit(RankingData(np.ones((20, 2)), np.arange(20) % 2.0, np.repeat([0, 1], 10)))


def beyond_float32():
    X = DATA.X.copy()
    X[:, 0] *= 1e120
    return trees(DATA.replaced(X=X))


EXTREME = {
    "trees of one leaf": lambda: constant(ObliviousBoosting("constant", n_estimators=3, depth=2)),
    "no stump": lambda: constant(RankBoost(3)),
    "a tree of depth 1,000": lambda: deep(1000),
    "thresholds beyond float32": beyond_float32,
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", EXTREME)
def test_extreme_models_are_exported_or_refused_with_a_reason(kind, format):
    model = EXTREME[kind]()
    try:
        own = export_model(model, format, absent="zero").certificate
    except InvalidInputError as error:
        message = str(error)
    else:
        message = ""
        assert own.rank_agreement == 1
    assert not message or len(message) > 60


CLOSE = {
    "large numbers": lambda rng, n: 1e9 + rng.uniform(size=n) * 100,
    "whole numbers": lambda rng, n: 2.0**24 + rng.integers(0, 60, n),
    "small differences": lambda rng, n: 0.1 + rng.integers(0, 40, n) * 1e-9,
}


def close_to_each_other(name):
    rng = np.random.default_rng(3)
    X = np.column_stack([CLOSE[name](rng, 400), rng.normal(size=400)])
    return RankingData(X, rng.integers(0, 3, 400), np.repeat(np.arange(20), 20))


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("name", CLOSE)
def test_numbers_that_float32_merges_are_not_certified_on_generated_rows(name, in_parts):
    """Scores of the training rows were off by up to 0.8, and the certificate on generated rows said 1e-7."""
    data = close_to_each_other(name)
    parts = [data.take_queries(range(9)), data.take_queries(range(9, 20))]
    model = trees(from_parts(parts) if in_parts else data)
    assert model.inputs_ == "close"
    with refused(InvalidInputError, code="export-differs", remedy={"certify": ...}):
        export_model(model, "xgboost")
    assert export_model(model, "lightgbm", certify=data).certificate.largest_difference == 0.0
    pytest.importorskip("onnx")
    assert export_model(model, "onnx", certify=data).certificate.largest_difference < 1e-12
    assert "too close for float32" in str(export_model(model, "xgboost", force=True).certificate)


@pytest.mark.parametrize("many", [40, 40_000])
def test_numbers_that_fill_a_range_are_not_close(many):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.uniform(size=many), rng.lognormal(size=many), rng.normal(size=many) * 1e-20])
    assert inputs_of(X) == "float64"


def test_thresholds_that_lightgbm_takes_for_zero_are_refused():
    """LightGBM compares numbers of up to 1e-35 as 0; the scores of most rows were off, and nothing was said."""
    model = trees(DATA.replaced(X=DATA.X * 1e-40))
    with refused(InvalidInputError, code="tiny-threshold"):
        export_model(model, "lightgbm")


def test_a_pipeline_scores_float32_rows_as_the_same_rows_in_float64():
    """Scikit-learn's scalers compute in float32 there, and trees answered the other way at their thresholds."""
    rng = np.random.default_rng(1)
    X = np.column_stack([1e6 + 10 * rng.normal(size=400), rng.lognormal(size=400)]).astype(np.float32)
    data = RankingData(X, rng.integers(0, 3, 400), np.repeat(np.arange(20), 20))
    pipeline = RankerPipeline(StandardScaler(), ObliviousBoosting("constant", n_estimators=10, depth=3)).fit(data)
    wide = pipeline.predict(data.replaced(X=X.astype(np.float64)))
    np.testing.assert_array_equal(pipeline.predict(data), wide)
    assert export_model(pipeline, "xgboost", certify=data).certificate.largest_difference < 1e-5
