"""One reader of rows: the same rows from every place, for Python, the command line and rankers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import truerank
from support.refusals import refused
from truerank import Experiment, ObliviousBoosting, RankingData, RidgeRanker, permutation_importance
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.io.rows import RowsAt

pandas = pytest.importorskip("pandas")
BRANDS = ["007", "acme", "zeta"]


def shop(r, brands=BRANDS, n_queries=30):
    """A table with own names of columns, words as grades, empty cells, and a column of texts."""
    n = 5 * n_queries
    frame = pandas.DataFrame({"price": r.normal(size=n), "text": r.normal(size=n), "brand": r.choice(brands, n)})
    frame["session"], frame["item"] = np.repeat([f"s{k}" for k in range(n_queries)], 5), [f"i{k}" for k in range(n)]
    frame["label"] = np.where(frame.price + frame.text + (frame.brand == "007") > 0, "Good", "Bad")
    frame["country"] = np.repeat(r.choice(["de", "fr"], n_queries), 5)
    frame.loc[r.choice(n, 9, replace=False), "text"] = np.nan
    return frame


OPTIONS = ["--query-column", "session", "--grade-column", "label", "--document-column", "item", "--grades", "Good=1",
           "Bad=0", "--missing"]  # fmt: skip


def trained(r, folder, missing, *more):
    shop(r).to_csv(folder / "train.csv", index=False)
    command = ["train", str(folder / "train.csv"), "--seed", "1", *OPTIONS, missing, "--exclude", "country"]
    assert main([*command, "--model", str(folder / "model.json"), *more]) == 0
    return str(folder / "model.json")


@pytest.mark.parametrize("seed", range(4))
def test_a_model_states_how_rows_are_read_in_python_and_on_the_command_line(seed, tmp_path, capsys):
    r = np.random.default_rng(seed)
    missing = ("nan", "zero")[seed % 2]
    trees = ["--ranker", "oblivious-boosting", "--set", "n_estimators=3", "--categorical", "brand"]
    model = trained(r, tmp_path, missing, *trees)
    frame = shop(r, BRANDS[:2])
    path = tmp_path / "test.csv"
    frame.to_csv(path, index=False)
    fitted = truerank.load_model(model)
    capsys.readouterr()
    assert main(["evaluate", model, "--data", str(path), "--measures", "AP", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["measures"]["AP"]["mean"]
    found = {name: truerank.evaluate(rows, fitted, "AP")["AP"] for name, rows in (("frame", frame), ("file", path))}
    assert found == {"frame": printed, "file": printed}
    rows = truerank.read_table(
        path, query="session", grade="label", document="item", grades="Good=1 Bad=0", missing=missing,
        features=["price", "text", "brand"], categories={"brand": BRANDS},
    )  # fmt: skip
    assert truerank.evaluate(rows, fitted, "AP")["AP"] == printed
    assert permutation_importance(fitted, frame, repeats=1).importances_mean.tolist() == (
        permutation_importance(fitted, rows, repeats=1).importances_mean.tolist()
    )


def test_models_with_different_lists_of_texts_read_a_frame_each_by_its_own(tmp_path):
    r = np.random.default_rng(5)
    whole = shop(r).assign(y=lambda rows: rows.label == "Good", qid=lambda rows: rows.session)
    columns = ["qid", "y", "price", "brand"]
    few = whole[whole.brand != "007"]
    models = {
        name: ObliviousBoosting(n_estimators=3, categorical=["brand"]).fit(
            truerank.read_table(rows[columns], categories=["brand"])
        )
        for name, rows in (("all", whole), ("few", few))
    }
    new = shop(r).assign(y=lambda rows: rows.label == "Good", qid=lambda rows: "n" + rows.session)[columns]
    together = Experiment(new, models)
    for name, model in models.items():
        np.testing.assert_array_equal(together.judged[name][1], Experiment(new, {name: model}).judged[name][1])


@pytest.mark.parametrize("seed", range(3))
def test_every_place_of_the_same_rows_gives_the_same_figures(seed, tmp_path):
    r = np.random.default_rng(seed)
    X, qid = r.normal(size=(120, 3)), np.repeat(np.arange(24), 5)
    data = RankingData(X, r.integers(0, 3, 120), qid, feature_names=["a", "b", "c"])
    ranker = RidgeRanker().fit(
        2.0 * data.X[:60],
        data.y[:60],
        qid=qid[:60],
    )
    for fold in (1, 2):
        (tmp_path / f"folds/Fold{fold}").mkdir(parents=True)
        for name, queries in (("train", range(8)), ("vali", range(8, 16)), ("test", range(16, 24))):
            truerank.write_letor(data.take_queries(queries), tmp_path / f"folds/Fold{fold}/{name}.txt")
    truerank.write_letor(data, tmp_path / "rows.txt")
    for name in ("rows.csv", "rows.parquet", "rows.tsv.gz"):
        truerank.write_table(data, tmp_path / name)
    places = [truerank.to_table(data), truerank.to_table(data, "arrow"), tmp_path / "folds"]
    places += [tmp_path / name for name in ("rows.txt", "rows.csv", "rows.parquet", "rows.tsv.gz")]
    systems = {"mine": ranker, "b": "b", "-c": "-c"}
    wanted = {name: one["AP"] for name, one in Experiment(data, systems, "AP").evaluate().items()}
    for place in places:
        found = {name: one["AP"] for name, one in Experiment(place, systems, "AP").evaluate().items()}
        assert found == pytest.approx(wanted, abs=1e-15), place


def test_files_of_scores_and_models_beside_rows_are_scores_however_they_are_given(tmp_path):
    r = np.random.default_rng(7)
    data = truerank.RankingData(r.normal(size=(96, 6)), r.integers(0, 3, size=96), np.repeat(np.arange(24), 4))
    data = data.replaced(feature_names=list("abcdef"))
    ranker = truerank.RidgeRanker().fit(data)
    truerank.save_model(ranker, tmp_path / "m.json")
    (tmp_path / "s.txt").write_text("".join(f"{score:.17g}\n" for score in data.restore(data.X[:, 0])))
    truerank.write_letor(data, tmp_path / "rows.txt")
    truerank.write_table(data, tmp_path / "rows.csv")
    model, scores = str(tmp_path / "m.json"), str(tmp_path / "s.txt")
    settings = {"measures": "AP", "training_queries": "keep"}
    wanted = [one["AP"] for one in Experiment(data, [model, scores], **settings).evaluate().values()]
    for place in (str(tmp_path / "rows.txt"), tmp_path / "rows.csv", truerank.to_table(data), data):
        for systems in ([model, scores], (tmp_path / "m.json", tmp_path / "s.txt"), {"m": model, "s": scores}):
            found = Experiment(place, systems, **settings)
            assert list(found.judged) == ["m", "s"]
            assert [one["AP"] for one in found.evaluate().values()] == pytest.approx(wanted, abs=1e-15)
        for number, one in enumerate([model, scores]):
            assert Experiment(place, one, **settings).evaluate().popitem()[1]["AP"] == pytest.approx(wanted[number])
    for systems in ("a", ["a", "-b"], ["b", scores], {"mine": "c:descending"}):
        found = [Experiment(one, systems, "AP") for one in (tmp_path / "rows.csv", truerank.to_table(data), data)]
        assert [list(one.judged) for one in found] == [list(found[0].judged)] * 3
        means = [[own["AP"] for own in one.evaluate().values()] for one in found]
        np.testing.assert_allclose(means, [means[0]] * 3)
    runs = {"x": {"1": {"a": 1.0, "b": 2.0}}, "y": {"1": {"b": 1.0}}}
    for name, run in runs.items():
        truerank.write_run(run, tmp_path / f"{name}.run")
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    (tmp_path / "q.txt").write_text("1 0 a 1\n1 0 b 0\n")
    for ending in ("run", "json"):
        found = Experiment(tmp_path / "q.txt", [tmp_path / f"{name}.{ending}" for name in runs], "RR")
        assert (list(found.judged), found.convention) == (["x", "y"], "trec")


def test_segments_are_a_column_of_a_frame_too():
    r = np.random.default_rng(8)
    frame = shop(r).assign(y=lambda rows: rows.label == "Good", qid=lambda rows: rows.session)
    data = truerank.read_table(frame, features=["price", "country"], categories=["country"])
    parts = [
        {
            name: part.query_ids.tolist()
            for name, part in Experiment(rows, "price", segments="country").by_segment().items()
        }
        for rows in (frame, data)
    ]
    own = {name: list(dict.fromkeys(rows.qid)) for name, rows in frame.groupby("country")}
    assert parts == [own, own]
    with refused(InvalidInputError, code="no-column"):
        Experiment(frame, "price", segments="town")


def test_scores_without_a_value_are_refused_however_missing_values_are_read(tmp_path):
    r = np.random.default_rng(9)
    model = trained(r, tmp_path, "zero", "--ranker", "ridge", "--exclude", "brand", "country")
    frame = shop(r)
    for rows in (frame, tmp_path / "test.csv"):
        frame.to_csv(tmp_path / "test.csv", index=False)
        with refused(InvalidInputError, code="missing-scores"):
            Experiment(rows, {"new": truerank.load_model(model), "old": "text"})


def test_a_place_names_its_kind(tmp_path):
    frame = shop(np.random.default_rng(0))
    data = RankingData([[1.0], [2.0]], [0, 1], [1, 1])
    kinds = [RowsAt(place).kind for place in (data, frame, tmp_path, tmp_path / "a.csv.gz", "rows.txt", "-")]
    assert kinds == ["rows", "frame", "folder", "table", "text", "text"]
    with refused(InvalidInputError, code="no-column"):
        RowsAt(frame).chosen(["cost"])
