"""Every format and every kind of model that it holds: the certificate finds no difference, and finds damage."""

import json
import shutil

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import truerank
from support.refusals import refused
from truerank import (
    AdaRank,
    ImportedRanker,
    ListNet,
    MinMaxInQuery,
    ObliviousBoosting,
    RandomRanker,
    RankBoost,
    RankingData,
    RidgeRanker,
    SingleFeature,
    export_model,
    import_model,
)
from truerank.core.errors import InvalidInputError
from truerank.core.float32 import finite_threshold, float32_threshold, largest_rounding_to, shortest_decimal
from truerank.export import formats, tree_libraries
from truerank.export.certificate import compare_orders
from truerank.export.form import form_of
from truerank.export.formats import FORMATS, reason_against
from truerank.export.run import run_c, run_python
from truerank.export.search_engines import SLACK, before_slack, with_places
from truerank.models.foreign.model import Reader
from truerank.models.foreign.read import read_foreign
from truerank.trees.leaves.fuzzy import FuzzyLeaves

pytestmark = pytest.mark.filterwarnings("ignore:numpy.ndarray size changed:RuntimeWarning")
COMPILER = shutil.which("cc") or shutil.which("gcc")


def made_up(n_queries=12, seed=0):
    rng = np.random.default_rng(seed)
    n = 25 * n_queries
    X = np.round(rng.normal(size=(n, 20)), 2)
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)), 0, 2)
    return RankingData(X, y, np.repeat(np.arange(n_queries), 25))


DATA, TEST = made_up(), made_up(6, 1)
TREES = {"n_estimators": 8, "depth": 3}
MODELS = {
    "adarank": AdaRank(measure="AP"),
    "list-net": ListNet(),
    "ridge": RidgeRanker(),
    "stumps": RankBoost(20),
    "all stumps": RankBoost(20, thresholds="all"),
    "constant": ObliviousBoosting(leaves="constant", **TREES),
    "fuzzy": ObliviousBoosting(leaves=FuzzyLeaves(places=64), **TREES),
    "polynomial": ObliviousBoosting(leaves="polynomial", **TREES),
    "linear start": ObliviousBoosting(leaves="constant", start="linear", **TREES),
    "scaled linear": make_pipeline(StandardScaler(), RidgeRanker()),
    "scaled trees": make_pipeline(MinMaxScaler(), ObliviousBoosting(leaves="constant", **TREES)),
}


@pytest.fixture(scope="module")
def fitted():
    result = {}
    for name, model in MODELS.items():
        if hasattr(model, "steps"):
            model.fit(DATA.X, DATA.y)
        else:
            model.fit(DATA)
        result[name] = model
    return result


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_every_format_and_kind(fitted, name, format):
    model = fitted[name]
    form = form_of(model)
    if reason_against(form, format) is not None:
        with refused(InvalidInputError, argument="format"):
            export_model(model, format, certify=TEST)
        return
    if format == "c" and COMPILER is None:
        pytest.skip("no C compiler")
    if format == "onnx":
        pytest.importorskip("onnx")
    own = export_model(model, format, certify=TEST).certificate
    assert own.rank_agreement == 1.0
    assert own.border_differences == 0
    assert own.missing_differences == 0
    assert own.largest_difference < (1e-5 if FORMATS[format].float32 or FORMATS[format].float32_scores else 1e-12)
    if format in ("python", "c"):
        assert own.largest_difference == 0
    assert (own.border_cases > 0) == (form.kind != "linear")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("missing", [False, True])
def test_c_has_the_same_bits_as_predict(fitted, missing):
    model = fitted["constant"]
    X = np.random.default_rng(5).normal(size=(600, 20))
    if missing:
        X[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    expected = model.predict(X)
    for options in (("-O0", "-Wall", "-Wextra", "-pedantic", "-Werror"), ("-O3",)):
        score = run_c(str(export_model(model, "c")), COMPILER, options)
        np.testing.assert_array_equal(score(X), expected)


@pytest.mark.parametrize("format", ["solr", "elasticsearch-ltr", "lightgbm", "xgboost"])
def test_an_export_comes_back_as_the_same_ranking(fitted, format, tmp_path):
    model = fitted["constant"]
    names = [f"name_{k}" for k in range(20)]
    (tmp_path / "export").write_text(export_model(model, format, feature_names=names))
    back = import_model(tmp_path / "export", feature_names=names)
    assert isinstance(back, ImportedRanker)
    np.testing.assert_allclose(back.predict(TEST), model.predict(TEST), atol=1e-5)
    again = export_model(back, "python", certify=TEST)
    assert again.certificate.largest_difference == 0


def test_fuzzy_and_polynomial_leaves_are_distilled(fitted, monkeypatch):
    monkeypatch.setitem(formats._SETTINGS, "n_estimators", 40)
    for name in ("fuzzy", "polynomial", "linear start"):
        own = export_model(fitted[name], "solr", certify=TEST, distil=DATA).certificate
        assert own.distilled["rank_agreement"] > 0.8
        assert set(own.distilled["nDCG@10"]) == {"model", "distilled"}
        assert own.rank_agreement == 1.0


def test_steep_fuzzy_borders(fitted):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    data = RankingData(X, (X[:, 0] > 0).astype(int), np.repeat(np.arange(40), 50))
    ranker = ObliviousBoosting(leaves=FuzzyLeaves(p_swap=0.5), n_estimators=3, depth=2).fit(data)
    for format in ("python", "c"):
        if format == "c" and COMPILER is None:
            continue
        assert export_model(ranker, format, certify=data).certificate.largest_difference < 1e-15


def test_damage_is_found(fitted, monkeypatch):
    """A writer that forgets `<` against `≤` is refused."""
    monkeypatch.setattr(tree_libraries, "finite_threshold", lambda t, inputs, below: finite_threshold(t, inputs))
    with refused(InvalidInputError, code="export-differs"):
        export_model(fitted["constant"], "xgboost", certify=TEST)
    own = export_model(fitted["constant"], "xgboost", certify=TEST, force=True).certificate
    assert own.rank_agreement < 1
    assert own.border_differences > 0


def test_refusals_name_the_reason(fitted):
    scaled = make_pipeline(MinMaxInQuery(), RidgeRanker())
    with pytest.raises(InvalidInputError, match="other documents of the query"):
        export_model(scaled.fit(DATA.X, DATA.y), "solr")
    with refused(InvalidInputError, code="no-formula"):
        export_model(RandomRanker().fit(DATA), "solr")
    with refused(InvalidInputError, argument="format"):
        export_model(fitted["ridge"], "pmml")
    with refused(InvalidInputError, argument="feature_names"):
        export_model(fitted["ridge"], "solr", feature_names=["a", "b"])
    with refused(InvalidInputError, argument="feature_names"):
        export_model(fitted["ridge"], "solr", feature_names=["a"] * 20)


def test_normalisers_travel_as_solrs(fitted):
    model = json.loads(export_model(fitted["scaled linear"], "solr", name="m", certify=TEST))
    assert model["features"][0]["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
    body = json.loads(export_model(fitted["scaled linear"], "opensearch-ltr", certify=TEST))
    assert set(body["model"]["model"]["feature_normalizers"]["f1"]) == {"standard"}


def test_what_the_plugins_take_for_an_absent_feature(fitted):
    """0 in RankLib's trees, and never nan; places move with the columns of a feature set."""
    for name in ("constant", "stumps"):
        body = json.loads(export_model(fitted[name], "opensearch-ltr", certify=TEST))["model"]["model"]
        assert body["type"] == "model/ranklib"
        places = {column: (7 * column + 3) % 20 for column in range(20)}
        moved = with_places(body["definition"], places)
        X = np.empty_like(TEST.X)
        X[:, list(places.values())] = TEST.X
        scores = [
            read_foreign(text, Reader("x"), n_features=20).score(rows)
            for text, rows in ((body["definition"], TEST.X), (moved, X))
        ]
        np.testing.assert_array_equal(*scores)


def test_python_text_is_alone(fitted):
    text = export_model(fitted["fuzzy"], "python")
    assert {line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))} == {
        "bisect", "math"
    }  # fmt: skip
    np.testing.assert_array_equal(run_python(text)(TEST.X), fitted["fuzzy"].predict(TEST))


def test_float32_questions():
    rng = np.random.default_rng(0)
    borders = np.round(rng.normal(size=500), 2)
    x = np.round(rng.normal(size=2000), 2)
    t = float32_threshold(borders, "decimal")
    np.testing.assert_array_equal(x.astype(np.float32)[:, None] <= t, x[:, None] <= borders)
    x32 = x.astype(np.float32)
    limit = largest_rounding_to(t)
    for value in (limit, np.nextafter(limit, np.inf), np.nextafter(limit, -np.inf)):
        np.testing.assert_array_equal(value.astype(np.float32) <= t, value <= limit)
    np.testing.assert_array_equal(shortest_decimal(x32), x)
    exact = float32_threshold(x32.astype(np.float64), "float32")
    np.testing.assert_array_equal(exact, x32)
    s = before_slack(t)
    reached = s + SLACK
    below = np.nextafter(s, np.float32(-np.inf)) + SLACK  # some sums, -1 for one, are never reached
    assert ((reached == t) | ((below < t) & (t < reached))).all()
    assert (reached == t).mean() > 0.99


def test_orders_by_all_pairs():
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = rng.integers(0, 4, 6).astype(float), rng.integers(0, 4, 6).astype(float)
        wrong = compare_orders(a, b, np.array([0, 6]), rows_in_order=False)[0]
        pairs = [(i, j) for i in range(6) for j in range(6) if a[i] > a[j] and b[i] < b[j]]
        assert wrong[0] == bool(pairs)


def test_a_document_without_a_score_changes_its_query():
    changed, first, _, _ = compare_orders(
        np.array([3.0, 1.0, 2.0, 5.0]), np.array([3.0, np.nan, 2.0, 5.0]), np.array([0, 3, 4])
    )
    assert changed.tolist() == first.tolist() == [True, False]


@pytest.mark.parametrize("format", ["python", "c", "vespa", "painless"])
def test_a_column_with_missing_values_is_no_sum(format):
    data = RankingData([[1.0], [np.nan], [-3.0], [2.0]], [0, 2, 1, 0])
    ranker = SingleFeature(feature=0).fit(data)  # ranks missing values last, which an exported sum cannot
    with refused(InvalidInputError, code="export-differs", remedy={"force": True}):
        export_model(ranker, format, certify=data, absent="nan")
    with refused(InvalidInputError, code="export-differs"):  # and predict reads as last
        export_model(ranker, format, certify=data, absent="zero")
    complete = data.replaced(X=np.array([[1.0], [0.0], [-3.0], [2.0]]))
    with refused(InvalidInputError, code="export-differs", remedy={"absent": "zero"}) as caught:
        export_model(ranker, format, certify=complete, absent="nan")
    assert caught.value.certificate.missing_differences == 2
    export = export_model(ranker, format, certify=complete, absent="nan", force=True)
    assert export.certificate.rank_agreement == 1
    assert export.certificate.missing_differences == 2  # of two cases: the column, and all columns
    if format == "painless":
        assert json.loads(export)["script"]["params"]["shift"] == 3  # and not so large that all scores are one


@pytest.mark.parametrize("format", ["xgboost", "opensearch-ltr"])
def test_rows_that_float32_moves_over_a_border_are_told_in_the_certificate(format):
    rng = np.random.default_rng(0)
    X = np.column_stack([1.0 + 1e-12 * rng.uniform(size=200), rng.uniform(size=200)])
    data = RankingData(X, (X[:, 0] > np.median(X[:, 0])).astype(float), qid=np.repeat(np.arange(10), 20))
    ranker = ObliviousBoosting("constant", n_estimators=3, depth=2).fit(data)
    told = export_model(ranker, format, certify=data, force=True).certificate
    assert told.largest_difference > 0.01
    assert any("float32" in note and f"of these {len(X)} rows" in note for note in told.notes)
    rounded = RankingData(X.astype(np.float32), data.y, qid=data.qid)
    assert not any(
        "changes the scores of" in note for note in export_model(ranker, format, certify=rounded).certificate.notes
    )


@pytest.mark.parametrize("format", ["xgboost", "opensearch-ltr"])
def test_rounding_that_the_thresholds_allow_for_is_not_told_as_a_difference(format):
    """Thresholds on decimals: predict of rounded rows differs, but the export, which rounds them, agrees."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 50, 200) / 10, rng.uniform(size=200)])
    data = RankingData(X, rng.integers(0, 3, 200).astype(float), qid=np.repeat(np.arange(10), 20))
    ranker = ObliviousBoosting("constant", n_estimators=30).fit(data)
    rounded = ranker.predict(X.astype(np.float32).astype(float))
    moved = int((np.abs(rounded - ranker.predict(X)) > 1e-5).sum())
    assert moved > 0
    told = export_model(ranker, format, certify=data).certificate
    assert told.largest_difference < 1e-5
    (note,) = [note for note in told.notes if f"{moved} of these {len(X)} rows" in note]
    assert "gives these rows the scores of predict" in note


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_exported_trees_have_a_mean_that_explanations_start_from(library):
    """Other libraries and shap divide the counts of children by that of the node, so these must add up to it."""
    module = pytest.importorskip(library)
    data = truerank.load_sample().take_queries(range(20))
    ranker = truerank.ObliviousBoosting(n_estimators=4, depth=3, leaves="constant").fit(data.X, data.y, qid=data.qid)
    text = str(truerank.export_model(ranker, library))
    if library == "lightgbm":
        found = module.Booster(model_str=text).predict(data.X, pred_contrib=True)
    else:
        booster = module.Booster(model_file=bytearray(text.encode()))
        found = booster.predict(module.DMatrix(data.X, feature_names=booster.feature_names), pred_contribs=True)
    scores = ranker.predict(data.X)
    np.testing.assert_allclose(found.sum(axis=1), scores, atol=1e-5)
    np.testing.assert_allclose(found[:, -1], found[0, -1])
    assert scores.min() <= found[0, -1] <= scores.max()
