"""A table of one's own, with names of its own, a text category and missing values, from nothing to evidence."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import numpy as np
import pandas
import pytest

from truerank.cli import main
from truerank.io.letor.read import read_letor
from truerank.models.model_file import load_model

OPTIONS = (
    "--query-column query_id --grade-column relevance --document-column product_id --categorical brand --missing nan"
)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    n = 40 * 8
    quality = random.normal(size=n)
    frame = pandas.DataFrame({
        "query_id": [f"q{k // 8}" for k in range(n)],
        "product_id": [f"p{k % 8}" for k in range(n)],
        "relevance": np.clip(np.round(quality), 0, 2).astype(int),
        "current_score": quality + 2.0 * random.normal(size=n),
        "price": np.where(random.random(n) < 0.1, np.nan, random.normal(size=n)),
        "brand": random.choice(["acme", "bolt"], size=n),
        "match": quality + 0.3 * random.normal(size=n),
    })  # fmt: skip
    frame.to_parquet(tmp_path / "shop.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return frame


def test_all_problems_of_a_table_come_at_once_with_the_options_that_solve_them(shop, capsys):
    assert main(["train", "shop.parquet", "--model", "m.json"]) == 1
    said = capsys.readouterr().err
    assert f"Add {OPTIONS}" in said
    for text in ("no column 'qid' (query); 'query_id' is probably", "no column 'y' (grade); 'relevance' is probably"):
        assert text in said
    assert "'price' has no value in row" in said
    assert main(["describe", "shop.parquet", "--json"]) == 0  # with the same options, which it finds
    out, err = capsys.readouterr()
    assert json.loads(out)["queries"] == 40
    assert OPTIONS in err


@pytest.mark.parametrize("names", [("search", "product"), ("suche", "artikel")])
def test_texts_are_proposed_as_query_and_document_before_categories(names, tmp_path, monkeypatch, capsys):
    """By their names, and by content where the rows of a query are together."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({
        names[0]: [f"query {k // 8}" for k in range(96)],
        names[1]: [f"p{k % 8:03d}" for k in range(96)],
        "price": random.random(96),
        "grade": random.integers(0, 3, 96),
    })  # fmt: skip
    frame.to_csv("own.csv", index=False)
    assert main(["train", "own.csv", "--model", "m.json"]) == 1
    advice = f"--query-column {names[0]} --grade-column grade --document-column {names[1]}"
    assert f"Add {advice}" in capsys.readouterr().err
    assert main(["train", "own.csv", "--model", "m.json", "--ranker", "ridge", *advice.split()]) == 0
    capsys.readouterr()
    # In another order of rows, and with other ids, nothing shows which text the query is.
    frame.sample(frac=1.0, random_state=0).rename(columns={names[0]: "a", names[1]: "b"}).to_csv("own.csv", index=False)
    assert main(["train", "own.csv", "--model", "m.json"]) == 1
    error = capsys.readouterr().err
    assert "Add --query-column NAME --grade-column grade" in error
    assert "--categorical" not in error


def test_several_files_to_train_on_are_joined_by_the_command_of_the_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("S1.txt", "S2.txt"):
        Path(name).write_text(f"1 qid:{name} 1:0.5\n0 qid:{name} 1:0.7\n")
    assert main(["train", "S1.txt", "S2.txt", "--model", "m.json"]) == 2
    assert "cat FILE FILE | truerank train - --model model.json" in capsys.readouterr().err
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"".join(Path(f"S{k}.txt").read_bytes() for k in (1, 2))))
    )
    assert main(["train", "-", "--model", "m.json", "--ranker", "ridge"]) == 0
    assert load_model("m.json").training_sketch_.ids.size == 2


def test_three_commands_to_a_model_with_evidence(shop, capsys):
    assert main(["split", "shop.parquet", "--json"]) == 0  # finds the queries
    out, err = capsys.readouterr()
    assert {name: json.loads(out)[name]["queries"] for name in ("train", "test")} == {"train": 32, "test": 8}
    assert "the queries are those of column 'query_id'" in err
    assert main(["split", "shop.parquet", "--replace"]) == 0
    assert f"next: truerank train train.parquet {OPTIONS} --model model.json" in capsys.readouterr().out
    options = [*OPTIONS.split(), "--set", "n_estimators=5", "leaves=constant"]
    assert main(["train", "train.parquet", *options, "--model", "m.json"]) == 0
    assert load_model("m.json").reading_ == {
        "query": "query_id", "grade": "relevance", "document": "product_id", "missing": "nan"
    }  # fmt: skip
    capsys.readouterr()
    assert main(["compare", "m.json", "--data", "test.parquet", "--baseline", "current_score", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (pair,) = report["pairs"]
    assert (pair["a"], pair["b"], report["baseline"]) == ("m", "current_score", "current_score")
    assert pair["difference"] > 0
    assert report["training_queries"]["m"]["training_queries"] == 0
    for words in ("predict m.json test.parquet -o s.txt", "evaluate --model m.json --data test.parquet"):
        assert main(words.split()) == 0  # the model knows its columns
    assert main(["compare", "m.json", "--data", "train.parquet", "--baseline", "current_score"]) == 1
    assert "used for training" in capsys.readouterr().err
    shop.drop(columns="relevance").to_parquet("unjudged.parquet", index=False)
    assert main(["predict", "m.json", "unjudged.parquet", "-o", "s.txt"]) == 0
    assert Path("s.txt").read_text().count("\n") == len(shop)
    assert main(["compare", "m.json", "--data", "test.parquet", "--baseline", "price"]) == 1
    assert "rows have no value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("d.txt", ["{g} qid:{q} 1:0.50 2:1 # docid = {d}"]),
        ("d.qrels", ["{q} 0 {d} {g}"]),
        ("d.run", ["{q} Q0 {d} 1 0.5 tag"]),
    ],
)
def test_text_is_divided_line_by_line_and_alike(name, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = [line.format(g=d % 2, q=q, d=d) for d in range(3) for q in range(20) for line in lines]
    (tmp_path / name).write_text("\n".join(text) + "\n")
    assert main(["split", name, "--validation", "0.1", "--seed", "3"]) == 0
    ending = name[1:]
    parts = {part: (tmp_path / f"{part}{ending}").read_text().splitlines() for part in ("train", "validation", "test")}
    assert [len(part) for part in parts.values()] == [3 * 14, 3 * 2, 3 * 4]
    assert sorted(line for part in parts.values() for line in part) == sorted(text)
    queries = [
        {int(line.split()[1][4:] if name == "d.txt" else line.split()[0]) for line in part} for part in parts.values()
    ]
    assert not queries[0] & queries[1] | queries[0] & queries[2] | queries[1] & queries[2]
    # Drawn by name: other files of the same queries are divided alike, whatever the order of their lines.
    (tmp_path / "other").mkdir()
    (tmp_path / "r.txt").write_text("\n".join(f"0 qid:{q} 1:1" for q in reversed(range(20))))
    assert main(["split", "r.txt", "--validation", "0.1", "--seed", "3", "-o", "other"]) == 0
    assert set(read_letor("other/test.txt").query_ids.tolist()) == queries[2]
    capsys.readouterr()
    assert main(["split", name, "--seed", "3"]) == 1
    assert "--replace" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("split d.txt --test 1", 2, "--test must be a share"),
        ("split d.txt --test 0.6 --validation 0.5", 2, "must have a sum above 0 and below 1"),
        ("split d.txt --query-column q", 2, "--query-column is for tables"),
        ("split d.txt", 1, "1 query cannot be divided into 2 files"),
        ("split -", 2, "Give a file"),
        ("split word.txt", 1, "word.txt, line 1: expected LETOR text"),
    ],
)
def test_what_cannot_be_divided(words, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.txt").write_text("1 qid:1 1:1\n")
    (tmp_path / "word.txt").write_text("word\n")
    assert main(words.split()) == code
    assert said in capsys.readouterr().err


def test_a_column_is_the_baseline_of_a_report(shop, capsys):
    pytest.importorskip("vl_convert")
    assert main(["split", "shop.parquet", "--replace"]) == 0
    options = [*OPTIONS.split(), "--set", "n_estimators=5", "leaves=constant", "--model", "m.json"]
    assert main(["train", "train.parquet", *options]) == 0
    words = ["report", "m.json", "--data", "test.parquet", "-o", "page.html"]
    assert main([*words, "--baseline", "current_score"]) == 0
    page = Path("page.html").read_text()
    assert "current_score (baseline)" in page
    assert "m - current_score" in page or "Better than current_score?" in page
    assert main([*words, "--scores", "current_score", "--baseline", "m"]) == 0
    assert "m (baseline)" in Path("page.html").read_text()
    assert main([*words, "--baseline", "nothing"]) == 1
    assert "'nothing' is neither a file of scores nor a column of test.parquet" in capsys.readouterr().err


def test_messages_on_the_way_to_an_export_name_the_next_words(shop, capsys):
    options = [*OPTIONS.split(), "--set", "n_estimators=5", "leaves=constant", "--model", "m.json"]
    assert main(["train", "shop.parquet", *options, "--features", "price", "brand"]) == 0
    assert main(["evaluate", "m.json", "shop.parquet"]) == 2
    assert "add --data FILE (--data shop.parquet if this is the file of judged rows)" in capsys.readouterr().err
    export = ["export", "m.json", "--to", "opensearch-ltr", "-o", "out.json"]
    assert main(export) == 1
    assert "Add --statistics FILE" in capsys.readouterr().err
    export += ["--statistics", "brands.json", "--certify", "shop.parquet"]
    assert main(export) == 1
    assert "--missing zero" in capsys.readouterr().err
    assert main([*export, "--force"]) == 0
    out = capsys.readouterr().err
    assert "queries change their order" in out.splitlines()[0]
    assert "rows with missing values, which programs that read opensearch-ltr read as 0" in out


def test_a_comparison_with_one_other_has_no_words_for_several(shop, capsys):
    options = OPTIONS.split()[:6]  # the names of the columns
    words = ["compare", "--data", "shop.parquet", *options, "--scores", "match", "--baseline", "current_score"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "(by p below 0.05)" in out
    assert "group" not in out


@pytest.fixture
def german(tmp_path, monkeypatch):
    """A shop's export with German names, a decimal comma in one column, empty cells and text."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(3), 240
    frame = pandas.DataFrame({
        "Suchbegriff": [f"Begriff {k // 12}" for k in range(n)],
        "Artikelnummer": [f"A{k:04d}-{k % 7}" for k in range(n)],
        "score_titel": rng.normal(size=n).round(3), "Marke": rng.choice(["Bosch", "Würth", "Stihl"], n),
        "Preis": np.where(rng.random(n) < 0.1, np.nan, rng.random(n).round(2)),
        "Klickrate": [f"{x:.4f}".replace(".", ",") for x in rng.random(n)], "Lagerbestand": rng.integers(0, 150, n),
        "Note": rng.integers(0, 4, n),
    })  # fmt: skip
    frame.to_csv("suche.csv", index=False)
    return frame


def test_the_first_refusal_has_a_command_that_reads_the_file(german, capsys):
    assert main(["describe", "suche.csv"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("(")]) == 6  # one problem on each line
    (command,) = [line for line in lines if line.startswith("Add ")]
    words = shlex.split(command.removeprefix("Add "))
    assert words[words.index("--grade-column") + 1] == "Note"
    assert words[words.index("--exclude") + 1] == "Klickrate"
    assert main(["describe", "suche.csv", *words]) == 0
    read = capsys.readouterr().out
    assert "240" in read
    # Where judgements are proposed, the document is the recognised column, and none are for rows that are named.
    proposed = shlex.split(next(line for line in lines if "truerank convert" in line).partition("truerank ")[2])
    assert proposed[proposed.index("--document-column") + 1] == "Artikelnummer"
    assert main(proposed) == 0
    assert main(["describe", "suche.csv", "--query-column", "Suchbegriff", "--grade-column", "Note"]) == 1
    assert "convert" not in capsys.readouterr().err


def test_features_of_each_query_and_document_are_joined_to_ratings(german, capsys):
    german["Artikelnummer"] = [
        f"A{(7 * k + k // 12) % 90:02d}" for k in range(len(german))
    ]  # the same in several queries
    ratings = german.rename(columns={"Suchbegriff": "query", "Artikelnummer": "docid", "Note": "rating"})
    ratings[["query", "docid", "rating"]].to_csv("quepid.csv", index=False)
    german.drop(columns="Note").sample(frac=0.9, random_state=1).to_csv("features.csv", index=False)
    join = ["convert", "quepid.csv", "rows.parquet", "--join", "features.csv"]
    assert main(join) == 1
    assert "Add --on Artikelnummer" in capsys.readouterr().err
    assert main([*join, "--on", "Artikelnummer"]) == 1
    assert "add --on Suchbegriff Artikelnummer" in capsys.readouterr().err
    assert main([*join, "--on", "Suchbegriff", "Artikelnummer"]) == 0
    assert "lacks 24 judged documents" in capsys.readouterr().err
    assert len(set(Path("rows.parquet.lacking").read_text().splitlines())) == 24
    rows = pandas.read_parquet("rows.parquet")
    expected = german.sample(frac=0.9, random_state=1).set_index(["Suchbegriff", "Artikelnummer"])
    assert len(rows) == len(expected) == 216
    for row in rows.itertuples():
        own = expected.loc[(row.qid, row.docid)]
        assert (row.y, row.score_titel, row.Marke, row.Klickrate) == (
            own.Note,
            own.score_titel,
            own.Marke,
            own.Klickrate,
        )
    assert not {"Suchbegriff", "Artikelnummer"} & {*rows.columns}
    assert main([*join, "--on", "Artikelnummer", "Suchbegriff"]) == 1  # names in the other order match nothing
    assert "Add --on Suchbegriff Artikelnummer" in capsys.readouterr().err


def test_a_short_row_of_a_joined_table_is_no_document(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("j.csv").write_text("query,product,rating\nq,p1,1\nq,p2,0\nr,p1,2\n")
    Path("products.csv").write_text("title,product,price\nA,p1,3\nB\nC,p2\n")
    assert main(["convert", "j.csv", "rows.csv", "--join", "products.csv", "--on", "product"]) == 0
    rows = pandas.read_csv("rows.csv")
    assert rows.docid.tolist() == ["p1", "p2", "p1"]
    assert rows.price.fillna(-1).tolist() == [3, -1, 3]


def test_rows_with_an_empty_cell_are_not_taken_for_judgements(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [f"{q},{(q * k) % 3},{'' if k == 2 else q + k / 2},{k / 4},{k - q}" for q in range(6) for k in range(6)]
    Path("v.csv").write_text("qid,y,bm25(title),attribute(b),c\n" + "\n".join(lines) + "\n")
    assert main(["train", "v.csv", "--ranker", "ridge", "--model", "m.json"]) == 1
    said = capsys.readouterr().err
    assert "--missing nan" in said
    assert "convert" not in said


@pytest.fixture
def empty_brands(shop):
    """The shop's table with empty brands and prices, as a file."""
    shop["brand"] = np.where(np.arange(len(shop)) % 5 == 0, None, shop["brand"])
    shop.to_parquet("empty.parquet", index=False)


def test_empty_texts_have_a_remark_and_a_remedy_of_their_own(empty_brands, capsys):
    assert main(["describe", "empty.parquet", "--json"]) == 0
    found = {one["code"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert found["missing-category"]["items"] == ["brand"]
    assert "brand" not in found["missing-value"]["items"]
    assert "--missing" not in found["missing-category"]["remedy"]


def test_a_model_of_empty_texts_has_a_next_command_that_exports_it(empty_brands, capsys):
    options = [
        *OPTIONS.replace("--missing nan", "--missing zero").split(),
        "--set",
        "n_estimators=3",
        "leaves=constant",
    ]
    assert main(["train", "empty.parquet", *options, "--model", "m.json"]) == 0
    said = capsys.readouterr().err
    assert "'none'" in said
    command = shlex.split(said.partition("next: truerank ")[2].splitlines()[0])
    assert command[:4] == ["export", "m.json", "--to", "painless"]
    assert main(command) == 0


def test_a_refused_export_of_empty_texts_and_numbers_asks_for_both_in_one_remedy(empty_brands, capsys):
    options = [*OPTIONS.split(), "--set", "n_estimators=5", "leaves=constant"]
    assert main(["train", "empty.parquet", *options, "--model", "m.json"]) == 0
    capsys.readouterr()
    words = ["export", "m.json", "--to", "solr", "--certify", "empty.parquet", "--statistics", "s.json", "-o", "m.solr"]
    assert main(words) == 1
    remedies = capsys.readouterr().err.partition("Add --missing zero")[2].split(", or ")
    assert "'brand'" in remedies[0]


def test_the_options_of_reading_are_accepted_by_all_commands_on_the_same_rows(shop, capsys):
    options = [*OPTIONS.split(), "--exclude", "current_score"]
    assert main(["split", "shop.parquet", *options]) == 0
    words = shlex.split(capsys.readouterr().out.partition("next: truerank ")[2])
    assert words == ["train", "train.parquet", *options, "--model", "model.json", "--set", "leaves=constant"]
    assert main([*words, "n_estimators=3"]) == 0
    for command in (
        "predict model.json test.parquet -o s.txt",
        "evaluate model.json --data test.parquet",
        "compare model.json --data test.parquet --baseline current_score",
        "compare --data test.parquet --scores s.txt --baseline current_score",
        "power model.json --data test.parquet --baseline current_score",
        "explain model.json test.parquet --query q4",
        "calibrate model.json test.parquet -o c.json --method platt",
        "export model.json --to painless --certify test.parquet --statistics t.json -o m.painless",
    ):
        assert main([*command.split(), *options]) == 0, command
    capsys.readouterr()
    # A model's own column cannot be left out.
    assert main(["predict", "model.json", "test.parquet", *OPTIONS.split(), "--exclude", "match"]) == 1
    assert "'match'" in capsys.readouterr().err
    assert main(["predict", "model.json", "test.parquet", *OPTIONS.split(), "--features", "match", "price"]) == 1


def test_a_table_with_texts_is_converted_as_the_error_says(empty_brands, capsys):
    assert main(["convert", "empty.parquet", "out.csv"]) == 1
    (advice,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Add ")]
    assert main(["convert", "empty.parquet", "out.csv", *shlex.split(advice.removeprefix("Add "))]) == 0
    assert set(pandas.read_csv("out.csv")["brand"].dropna()) == {"acme", "bolt"}
    assert main(["describe", "out.csv", "--categorical", "brand", "--missing", "nan"]) == 0
    capsys.readouterr()
    # Other formats have numbers, which are told.
    assert main(["convert", "empty.parquet", "out.txt", *OPTIONS.split()]) == 0
    assert "0 'acme', 1 'bolt'" in capsys.readouterr().err
    assert set(np.unique(read_letor("out.txt", missing="nan").X[:, 2])[:2]) == {0.0, 1.0}


def test_the_next_comparison_is_with_todays_score(shop, capsys):
    """A better feature is not the system of today, which a name or a column of ranks shows."""
    words = ["cross-validate", "own.csv", *OPTIONS.split(), "--set", "n_estimators=2", "--scores", "t.txt"]
    own = shop.rename(columns={"current_score": "stary"})
    own["pozycja"] = own.groupby("query_id")["stary"].rank(ascending=False)
    for frame, baseline in ((shop, "current_score"), (own, "stary"), (own.drop(columns="stary"), "pozycja:ascending")):
        frame.to_csv("own.csv", index=False)
        assert main(words) == 0
        command = shlex.split(capsys.readouterr().err.partition("next: truerank ")[2].splitlines()[0])
        assert command[command.index("--baseline") + 1] == baseline
        assert main(command) == 0
        capsys.readouterr()


def test_statistics_replace_no_other_file_and_tell_that_they_replace_others(empty_brands, capsys):
    options = [*OPTIONS.split(), "--set", "leaves=constant"]
    export = ["export", "m.json", "--to", "painless", "-o", "m.p", "--certify", "empty.parquet", "--statistics"]
    assert main(["train", "empty.parquet", *options, "n_estimators=3", "--model", "m.json"]) == 0
    Path("s.json").write_text('{"brand": {"acme": 0.5}}')
    assert main([*export, "s.json"]) == 0
    assert "another model" in capsys.readouterr().err
    assert main([*export, "s.json"]) == 0
    assert "another model" not in capsys.readouterr().err
    Path("notes.json").write_text('["mine"]')
    assert main([*export, "notes.json"]) == 1
    assert Path("notes.json").read_text() == '["mine"]'
