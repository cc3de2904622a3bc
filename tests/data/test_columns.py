"""Columns that are features, by names, patterns and numbers; models that find theirs again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting, RidgeRanker, load_model, load_sample, read_letor, read_table, write_letor
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError, TruerankWarning
from truerank.data.columns import as_in_training, chosen_columns, take_columns
from truerank.data.ranking_data import RankingData

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

NAMES = ["bm25.title", "bm25.body", "price", "shop_id", "1"]


@pytest.mark.parametrize(
    ("features", "exclude", "found"),
    [
        (None, None, [0, 1, 2, 3, 4]),
        (["price", "bm25*"], None, [2, 0, 1]),
        (["bm25.title", "*"], ["shop_id"], [0, 1, 2, 4]),
        (None, ["bm25.[bt]*", "?"], [2, 3]),
        (["1"], None, [4]),  # a name comes before a number
        (["2-3,5"], ["price"], [1, 4]),
    ],
)
def test_names_patterns_and_numbers(features, exclude, found):
    assert chosen_columns(NAMES, features, exclude) == found


@pytest.mark.parametrize(
    ("features", "exclude", "words"),
    [
        (["prise"], None, {"argument": "features"}),
        (["tf*"], None, {"argument": "features"}),
        (["4-9"], None, {"argument": "features"}),
        (["0"], None, {"argument": "features"}),
        (None, ["Shop_ID2"], {"argument": "exclude"}),
        (["price"], ["pri*"], {"code": "no-column-left"}),
    ],
)
def test_what_names_no_column_is_said(features, exclude, words):
    with refused(InvalidInputError, **words):
        chosen_columns(NAMES, features, exclude)


def test_a_model_finds_its_columns_again():
    data = load_sample().take_queries(range(6))
    names = [f"c{k}" for k in range(data.n_features)]
    named = RankingData.from_grouped(data.X, data.y, data.offsets, feature_names=names)
    few = take_columns(named, [4, 1])
    assert few.feature_names == ["c4", "c1"]
    np.testing.assert_array_equal(as_in_training(named, few.feature_names).X, data.X[:, [4, 1]])
    assert as_in_training(named, None) is named
    with refused(InvalidInputError, code="lost-column"):
        as_in_training(named, ["price", "c1", "c99"])
    plain = RankingData.from_grouped(data.X, data.y, data.offsets)
    np.testing.assert_array_equal(as_in_training(plain, ["f5", "f2"]).X, data.X[:, [4, 1]])
    assert as_in_training(plain, ["price"]) is plain  # rows without names are taken as they are


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    n = 600
    brand = rng.choice(["ada", "bob", "cyd", "dee"], n)
    frame = pandas.DataFrame(
        {
            "qid": [f"q{k}" for k in np.repeat(np.arange(60), 10)],
            "title": [f"thing {k}" for k in range(n)],
            "bm25.title": rng.random(n),
            "brand": brand,
            "bm25.body": rng.random(n),
            "sku_id": np.arange(n),
        }
    )
    frame["y"] = ((frame["bm25.title"] + 0.8 * np.isin(brand, ["ada", "cyd"])) > 0.9).astype(int)
    frame.iloc[:400].to_parquet("train.parquet")
    frame.iloc[400:].to_parquet("test.parquet")
    others = {"qid": "new " + frame["qid"], "bm25.body": rng.random(n)}
    frame.assign(**others).iloc[400:].to_parquet("held-out.parquet")
    # The same rows with other columns around them, in another order, and a brand that training has not seen.
    later = frame.iloc[400:].assign(stock=1.5)[["stock", "bm25.body", "brand", "y", "title", "qid", "bm25.title"]]
    later.loc[later.index[:5], "brand"] = "new"
    later.to_csv("later.csv", index=False)
    return tmp_path


def test_commands_take_columns_and_models_keep_their_names(shop, capsys):
    words = [
        "train",
        "train.parquet",
        "--ranker",
        "oblivious-boosting",
        "--set",
        "n_estimators=15",
        "--model",
        "m.json",
    ]
    assert main(words) == 1
    assert "--exclude" in capsys.readouterr().err
    assert main([*words, "--exclude", "title", "*_id", "--categorical", "brand", "--valid", "test.parquet"]) == 0
    model = load_model("m.json")
    assert list(model.feature_names_in_) == ["bm25.title", "brand", "bm25.body"]
    assert model.category_names == {"brand": ["ada", "bob", "cyd", "dee"]}
    capsys.readouterr()
    assert main(["predict", "m.json", "test.parquet"]) == 0
    scores = np.array(capsys.readouterr().out.split(), dtype=float)
    frame = pandas.read_parquet("test.parquet")
    np.testing.assert_array_equal(scores, model.predict(frame[["bm25.title", "brand", "bm25.body"]]))
    assert main(["predict", "m.json", "later.csv"]) == 0
    other = np.array(capsys.readouterr().out.split(), dtype=float)
    np.testing.assert_array_equal(other[5:], scores[5:])
    assert (other[:5] != scores[:5]).any()
    for command in (
        ["predict", "--format", "run", "m.json", "later.csv"],
        ["evaluate", "--model", "m.json", "--data", "later.csv"],
    ):
        assert main(command) == 0
    assert main(["explain", "m.json", "later.csv", "--query", "q50"]) == 0
    assert main(["calibrate", "m.json", "test.parquet", "--method", "platt", "-o", "c.json"]) == 0
    assert main(["decide", "c.json", "later.csv", "-o", "decided.txt"]) == 0
    assert main(["describe", "train.parquet", "--exclude", "title", "--categorical", "brand"]) == 0
    for production in ("m.json", "c.json"):
        capsys.readouterr()
        words = ["retrain", production, "later.csv", "--held-out", "held-out.parquet", "--how", "refit"]
        assert main([*words, "--model", "better.json", "--candidate", "candidate.json"]) in (0, 3)
        assert "column 'brand' has a category" in capsys.readouterr().err
        assert load_model("candidate.json").category_names == model.category_names
    capsys.readouterr()
    assert main(["predict", "m.json", "later.csv", "--features", "bm25*"]) == 1
    later = pandas.read_csv("later.csv").drop(columns="bm25.body")
    later.to_csv("later.csv", index=False)
    assert main(["predict", "m.json", "later.csv"]) == 1
    assert "'bm25.body'" in capsys.readouterr().err


def test_categories_help_and_codes_of_other_tables_are_refused(shop, capsys):
    base = ["cross-validate", "train.parquet", "--ranker", "oblivious-boosting", "--set", "n_estimators=20", "--cv",
            "3", "--json", "--measures", "AP"]  # fmt: skip
    assert main([*base, "--features", "bm25*", "brand", "--categorical", "brand"]) == 0
    with_brand = json.loads(capsys.readouterr().out)["means"]["oblivious-boosting"]["AP"]
    assert main([*base, "--features", "bm25*"]) == 0
    assert with_brand > json.loads(capsys.readouterr().out)["means"]["oblivious-boosting"]["AP"] + 0.02
    assert main(["train", "train.parquet", "--ranker", "ridge", "--model", "r.json", "--features", "brand",
                 "--categorical", "brand"]) == 2  # fmt: skip
    read = read_table("train.parquet", features=["brand", "bm25*"], categories=["brand"])
    with refused(InvalidInputError, code="categories"):
        RidgeRanker().fit(read)
    with refused(InvalidInputError, code="categories"):
        ObliviousBoosting().fit(read)
    model = ObliviousBoosting(n_estimators=3, categorical=["brand"]).fit(read)
    other = read_table("later.csv", features=["brand", "bm25*"], categories=["brand"])
    other = as_in_training(other, read.feature_names)
    with refused(InvalidInputError, code="categories"):
        model.predict(other)
    others = pandas.read_csv("later.csv").assign(brand=range(200, 200 + len(other.y)))
    with pytest.warns(TruerankWarning, match="'brand': no row has a known category. The column has '200', for example"):
        read_table(others, features=read.feature_names, categories=model.category_names)
    others.assign(brand="").to_csv("empty.csv", index=False)
    with refused(DataFileError, code="columns"):
        read_table("empty.csv", features=read.feature_names, categories=model.category_names)
    same = read_table("later.csv", features=read.feature_names, categories=model.category_names)
    assert np.isfinite(model.predict(same)).all()
    assert (same.X[:5, 0] == -1).all()


def test_letor_text_by_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    sample = load_sample().take_queries(range(30))
    write_letor(RankingData.from_grouped(sample.X, sample.y, sample.offsets), "rows.txt")
    assert main(["train", "rows.txt", "--ranker", "ridge", "--features", "2-4", "7", "--exclude", "3",
                 "--model", "m.json"]) == 0  # fmt: skip
    model = load_model("m.json")
    rows = read_letor("rows.txt")
    assert list(model.feature_names_in_) == ["f2", "f4", "f7"]
    capsys.readouterr()
    assert main(["predict", "m.json", "rows.txt"]) == 0
    np.testing.assert_array_equal(
        np.array(capsys.readouterr().out.split(), dtype=float), model.predict(take_columns(rows, [1, 3, 6]))
    )
    assert main(["convert", "rows.txt", "few.parquet", "--features", "1-5"]) == 0
    assert read_table("few.parquet").n_features == 5
    assert main(["tune", "rows.txt", "--ranker", "ridge", "--space", "alpha=[1]", "--features", "1-5", "--cv", "3",
                 "--model", "t.json"]) == 0  # fmt: skip
    assert load_model("t.json").n_features_in_ == 5
