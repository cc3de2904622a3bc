"""What a model or a file tells is not asked: grades in words, columns of text, categories in an engine."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from truerank import load_model, read_table
from truerank.cli import main
from truerank.io.engine import Engine

WORDS = ["Bad", "Fair", "Good"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, start in (("train.csv", 0), ("test.csv", 100)):
        rows = [["search", "item", "name", "brand", "verdict", "bm25", "price"]]
        for query in range(start, start + 25):
            for item in range(6):
                x, brand = rng.normal(), str(rng.choice(["Alto", "Brevo", "Corda"]))
                grade = int(np.clip(round(x + (brand == "Alto") + rng.normal() / 4), 0, 2))
                rows.append([f"red shoes {query}", f"p{query}-{item}", f"shoe, no. {rng.integers(10**6)}", brand,
                             WORDS[grade], f"{x:.4f}", f"{rng.uniform(5, 90):.2f}"])  # fmt: skip
        with (tmp_path / name).open("w", newline="") as stream:
            csv.writer(stream).writerows(rows)
    return tmp_path


ROLES = ["--query-column", "search", "--grade-column", "verdict", "--document-column", "item"]
LEARN = ["--set", "leaves=constant", "n_estimators=8", "depth=3"]


def trained(*more):
    line = ["train", "train.csv", *ROLES, "--grades", "Bad=0 Fair=1 Good=2", *LEARN, "--model", "model.json", *more]
    assert main(line) == 0


def test_a_model_remembers_the_numbers_of_words_and_reads_no_other_column(folder, capsys):
    trained("--features", "bm25", "price")
    assert load_model("model.json").reading_["grades"] == "Bad=0 Fair=1 Good=2"
    capsys.readouterr()
    assert main(["compare", "model.json", "--data", "test.csv", "--baseline", "bm25", "--json"]) == 0
    assert '"bm25"' in capsys.readouterr().out
    for command in (["evaluate", "model.json", "--data", "test.csv"], ["predict", "model.json", "test.csv"]):
        assert main(command) == 0


def test_click_models_leave_columns_of_text_out(folder):
    rows = list(csv.reader((folder / "train.csv").read_text().splitlines()))[1:]
    lines = ["impression,query,document,position,clicked"]
    for k, (query, document, *rest) in enumerate(rows):
        lines.append(f"{query}{k // 12},{query},{document},{k % 6 + 1},{int(rest[2] == 'Good')}")
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    line = ["clicks", "train-data", "log.csv", "--data", "train.csv", "-o", "rows.csv", "--max-position", "6"]
    assert main([*line, *ROLES[:2], *ROLES[4:]]) == 0
    assert read_table("rows.csv", document="docid").feature_names == ["bm25", "price"]


def test_judges_who_write_words_are_compared(folder, capsys):
    for name, grades in (("a.csv", "Good Good Bad"), ("b.csv", "Good Bad Bad")):
        rows = [f"red shoes,d{k},{grade}" for k, grade in enumerate(grades.split())]
        (folder / name).write_text("\n".join(["query,docid,rating", *rows]) + "\n")
    assert main(["judge", "agree", "a.csv", "b.csv"]) == 1
    assert main(["judge", "agree", "a.csv", "b.csv", "--grades", "Good=1 Bad=0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["n"] == 3


def test_a_model_with_categories_is_deployed_over_their_statistics(folder, monkeypatch, capsys):
    trained("--features", "bm25", "price", "brand", "--categorical", "brand")
    stored = {}

    def request(engine, method, path, body=None, missing_ok=False, form=None):
        if method == "PUT":
            stored[path] = body
            return {"acknowledged": True}
        return {"script": stored[path]["script"]} if path in stored else None

    monkeypatch.setattr(Engine, "request", request)
    line = ["deploy", "model.json", "--engine", "http://127.0.0.1:9200", "--name", "m", "--params", "params.json"]
    assert main(line) == 1
    assert "--statistics" in capsys.readouterr().err
    assert main([*line, "--statistics", "brands.json", "--certify", "test.csv"]) == 0
    statistics = json.loads((folder / "brands.json").read_text())["brand"]
    assert {"Alto", "Brevo", "Corda"} <= set(statistics)
    assert json.loads((folder / "params.json").read_text())["names"] == ["bm25", "price", "brand"]
