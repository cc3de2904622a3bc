"""Categorical features: ordered target statistics within queries."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from support.refusals import refused
from truerank import ObliviousBoosting, explain, export_model, load_model, read_table, save_model
from truerank.cli import main
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model
from truerank.data.ranking_data import RankingData
from truerank.trees.categories import PRIOR, fit_categories


def rows_with_kinds(n_queries, seed, kinds=40, length=8):
    """Grades that depend on one of many categories, whose numbers say nothing, and on a quantity."""
    effect = np.random.default_rng(99).permutation(np.linspace(-2, 2, kinds))
    rng = np.random.default_rng(seed)
    n = n_queries * length
    kind = rng.integers(0, kinds, n)
    value = rng.standard_normal(n)
    qid = np.repeat(np.arange(n_queries), length)
    easy = rng.standard_normal(n_queries)[qid]
    y = np.clip(np.round(2 + effect[kind] + 0.5 * value + easy + 0.5 * rng.standard_normal(n)), 0, 4)
    return np.stack([value, kind.astype(float), rng.standard_normal(n)], axis=1), y, qid


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_listed_queries(weighted):
    X, y, _ = rows_with_kinds(7, 3, kinds=4)
    X[::9, 1] = np.nan
    offsets, order = np.arange(0, 57, 8), np.random.default_rng(1).permutation(7)
    weight = np.random.default_rng(2).integers(1, 4, 56).astype(float) if weighted else np.ones(56)
    tables, found = fit_categories(X, y, offsets, weight if weighted else None, np.array([1]), order)

    def statistic(kind, queries):
        rows = [i for q in queries for i in range(8 * q, 8 * q + 8) if X[i, 1] == kind]
        mean = {
            i: np.average(y[i // 8 * 8 : i // 8 * 8 + 8], weights=weight[i // 8 * 8 : i // 8 * 8 + 8]) for i in rows
        }
        return sum(weight[i] * (y[i] - mean[i]) for i in rows) / (sum(weight[i] for i in rows) + PRIOR)

    for place, q in enumerate(order):
        for i in range(8 * q, 8 * q + 8):
            if np.isnan(X[i, 1]):
                assert np.isnan(found[i, 1])
            else:
                assert found[i, 1] == pytest.approx(statistic(X[i, 1], order[:place]), abs=1e-12)
    np.testing.assert_allclose(tables.statistics, [statistic(k, order) for k in range(4)], atol=1e-12)
    new = tables.encode(np.array([[0.0, 2.0, 0.0], [0.0, 7.0, 0.0], [0.0, np.nan, 0.0], [0.0, -1.0, 0.0]]))
    np.testing.assert_allclose(new[:, 1], [tables.statistics[2], 0.0, np.nan, 0.0])
    np.testing.assert_array_equal(found[:, [0, 2]], X[:, [0, 2]])


def test_categories_rank_better_than_their_numbers(tmp_path):
    X, y, qid = rows_with_kinds(250, 1)
    test, grades, test_qid = rows_with_kinds(100, 2)
    kw = {"n_estimators": 40, "depth": 4}
    plain = ObliviousBoosting("constant", **kw).fit(X, y, qid=qid).score(test, grades, qid=test_qid)
    for leaves in ("constant", "fuzzy", "polynomial"):
        ranker = ObliviousBoosting(leaves, categorical=[1], **kw).fit(X, y, qid=qid)
        assert ranker.score(test, grades, qid=test_qid) > plain + 0.02
        save_model(ranker, tmp_path / "model.json")
        loaded, scores = load_model(tmp_path / "model.json"), ranker.predict(test)
        np.testing.assert_array_equal(loaded.predict(test), scores)
        np.testing.assert_allclose(list(ranker.staged_predict(test))[-1], scores, atol=1e-12)
        found = explain(loaded, RankingData(test, grades, test_qid), query=test_qid[0], above=0, below=1)
        assert found.contributions.sum() == pytest.approx(scores[0] - scores[1], abs=1e-9)
    with refused(InvalidInputError, argument="categorical"):
        ranker.set_params(warm_start=True, n_estimators=50).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("leaves", "format"), [("constant", "lightgbm"), ("constant", "xgboost"), ("fuzzy", "python"), ("polynomial", "c")]
)
def test_trees_over_statistics_are_exported(leaves, format):
    X, y, qid = rows_with_kinds(60, 1, kinds=6)
    X = X.astype(np.float32).astype(np.float64)  # XGBoost reads quantities so; statistics are not of float32
    X[::9, 1] = np.nan
    ranker = ObliviousBoosting(leaves, categorical=[1], n_estimators=8, depth=3).fit(X, y, qid=qid)
    with refused(InvalidInputError, argument="ranker", code="categories"):
        export_model(ranker, format)
    plain, statistics = ranker.over_statistics(), ranker.category_statistics()
    assert list(statistics) == [1]
    assert list(statistics[1]) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    given = X.copy()
    given[5, 1] = 77.0  # never seen
    rows = given.copy()
    rows[:, 1] = [kind if np.isnan(kind) else statistics[1].get(kind, 0.0) for kind in given[:, 1].tolist()]
    np.testing.assert_array_equal(plain.predict(rows), ranker.predict(given))
    certificate = export_model(plain, format, certify=RankingData(rows, y, qid)).certificate
    assert certificate.rank_agreement == 1.0
    assert ranker.categorical == [1]  # the model itself is as it was
    np.testing.assert_array_equal(clone(plain).fit(rows, y, qid=qid).n_iter_, 8)
    assert plain.category_statistics() == {}


def test_training_rows_outside_of_the_given_categories_have_an_entry_of_their_own(tmp_path):
    X, y, qid = rows_with_kinds(40, 1, kinds=3)
    names = ["a", "b", "never"]
    sites = [[*names[:2], "other"][int(kind)] for kind in X[:, 1]]
    lines = [f"{q},{int(grade)},{value},{site}" for q, grade, value, site in zip(qid, y, X[:, 0], sites)]
    (tmp_path / "t.csv").write_text("\n".join(["qid,y,value,site", *lines]) + "\n")
    data = read_table(tmp_path / "t.csv", categories={"site": names})
    ranker = ObliviousBoosting("constant", categorical=["site"], n_estimators=5).fit(data)
    statistics = ranker.category_statistics()["site"]
    assert list(statistics) == [None, "a", "b"]
    expected = [statistics.get(site, statistics[None]) for site in sites]
    np.testing.assert_array_equal(ranker.encoded(data.X)[:, 1], expected)


def test_the_command_exports_trees_and_statistics_by_name(tmp_path, capsys):
    frames = pytest.importorskip("pandas")
    X, y, qid = rows_with_kinds(40, 1, kinds=5)
    site = np.array(["pdf", "html", "txt", "doc", "gone"])[X[:, 1].astype(int)]
    table = frames.DataFrame({"qid": qid, "y": y.astype(int), "value": X[:, 0], "site": site})
    table.to_csv(tmp_path / "t.csv", index=False)
    paths = {name: str(tmp_path / name) for name in ("t.csv", "model.json", "model.txt", "site.json")}
    train = ["train", paths["t.csv"], "--ranker", "oblivious-boosting", "--categorical", "site", "--model"]
    settings = ["--set", "leaves=constant", "--set", "n_estimators=5"]
    assert main([*train, paths["model.json"], *settings]) == 0
    export = ["export", paths["model.json"], "--to", "lightgbm", "-o", paths["model.txt"], "--certify", paths["t.csv"]]
    assert main(export) == 1
    assert "--statistics" in capsys.readouterr().err
    assert main([*export, "--statistics", paths["site.json"], "--json"]) == 0
    certificate = json.loads(capsys.readouterr().out)
    assert certificate["rank_agreement"] == 1.0
    assert certificate["notes"][0] == "40 of 40 queries were used for training"
    statistics = json.loads((tmp_path / "site.json").read_text())
    ranker = load_model(paths["model.json"])
    assert statistics == ranker.category_statistics()
    assert not hasattr(ranker.over_statistics(), "training_sketch_")
    assert sorted(statistics["site"]) == ["doc", "gone", "html", "pdf", "txt"]
    lightgbm = pytest.importorskip("lightgbm")
    encoded = np.stack([X[:, 0], [statistics["site"][name] for name in site]], axis=1)
    found = lightgbm.Booster(model_file=paths["model.txt"]).predict(encoded)
    np.testing.assert_array_equal(found, ranker.predict(table[["value", "site"]]))


def test_the_order_of_queries_in_the_file_has_no_say():
    X, y, qid = rows_with_kinds(40, 1)
    rows = (8 * np.random.default_rng(0).permutation(40)[:, None] + np.arange(8)).ravel()
    one, other = (
        ObliviousBoosting("constant", categorical=[1], n_estimators=10, depth=3).fit(X[r], y[r], qid=qid[r])
        for r in (np.arange(320), rows)
    )
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames(tmp_path, library):
    frames = pytest.importorskip(library)
    X, y, qid = rows_with_kinds(40, 1, kinds=5)
    names = np.array(["pdf", "html", "txt", "doc", "gone"])[X[:, 1].astype(int)]
    frame = frames.DataFrame({"value": X[:, 0], "site": list(names), "other": X[:, 2]})
    if library == "pandas":
        frame["site"] = frame["site"].astype("category")
    ranker = ObliviousBoosting("constant", categorical=["site"], n_estimators=10, depth=3).fit(frame, y, qid=qid)
    X[:, 1] = np.searchsorted(np.unique(names), names)
    numbers = ObliviousBoosting("constant", categorical=[1], n_estimators=10, depth=3).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(frame), numbers.predict(X))
    save_model(ranker, tmp_path / "model.json")
    few = frames.DataFrame({"value": [0.1, 0.1], "site": ["never seen", None], "other": [0.2, 0.2]})
    expected = numbers.predict(np.array([[0.1, -1.0, 0.2], [0.1, np.nan, 0.2]]))
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(few), expected)
    unnamed = ObliviousBoosting("constant", n_estimators=10, depth=3)
    if library == "pandas":  # the type declares the categories
        np.testing.assert_array_equal(unnamed.fit(frame, y, qid=qid).predict(frame), ranker.predict(frame))
    else:
        with refused(InvalidInputError, code="not-numeric"):
            unnamed.fit(frame, y, qid=qid)


def test_names_and_files_are_checked():
    X, y, qid = rows_with_kinds(5, 1)
    for wrong, message in (
        ("site", "must be a list"),
        (["site"], "has no names"),
        ([3], "columns 0 … 2"),
        ([True], "columns 0 … 2"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            ObliviousBoosting(n_estimators=1, categorical=wrong).fit(X, y, qid=qid)
    ranker = ObliviousBoosting(n_estimators=1, categorical=[1]).fit(X, y, qid=qid)
    ranker.category_values_ = ranker.category_values_[::-1].copy()
    with refused(ModelFileError, code="tables"):
        check_model(ranker)


def test_arrow_tables_are_read_as_data_frames():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    X, y, qid = rows_with_kinds(30, 4, kinds=5)
    names = [None if i % 11 == 0 else "abcde"[int(kind)] for i, kind in enumerate(X[:, 1])]
    frame = pd.DataFrame({"value": X[:, 0], "kind": names})
    text = pa.table({"value": X[:, 0], "kind": pa.array(names)})
    coded = pa.table({"value": X[:, 0], "kind": pa.array(names).dictionary_encode()})
    expected = ObliviousBoosting(n_estimators=3, categorical=["kind"]).fit(frame, y, qid=qid).predict(frame)
    for table in (text, coded):
        ranker = ObliviousBoosting(n_estimators=3, categorical=["kind"]).fit(table, y, qid=qid)
        assert list(ranker.feature_names_in_) == ["value", "kind"]
        np.testing.assert_array_equal(ranker.predict(table), expected)
        with refused(InvalidInputError, code="not-numeric"):
            ObliviousBoosting(n_estimators=3).fit(table, y, qid=qid)
    numbers = text.select(["value"])
    plain = ObliviousBoosting(n_estimators=3).fit(frame[["value"]], y, qid=qid).predict(frame[["value"]])
    np.testing.assert_array_equal(ObliviousBoosting(n_estimators=3).fit(numbers, y, qid=qid).predict(numbers), plain)
