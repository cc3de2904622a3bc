"""The command that each command prints as the next one runs as typed, on the files and columns of the user."""

import shlex

import numpy as np
import pandas as pd
import pytest

from truerank.cli import main

COLUMNS = "--query-column search --grade-column 'how good' --document-column sku"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the sample, and a shop's table whose columns have other names, with a model of each."""
    folder = tmp_path_factory.mktemp("my files")
    assert main(["sample", str(folder)]) == 0
    random = np.random.default_rng(3)
    n, size = 400, 10
    grade = random.integers(0, 3, n)
    shop = pd.DataFrame({
        "search": np.repeat([f"s{k}" for k in range(n // size)], size), "sku": [f"p{k}" for k in range(n)],
        "how good": grade, "text score": grade + random.normal(size=n), "price": random.normal(size=n),
    })  # fmt: skip
    shop[: n // 2].to_csv(folder / "my shop.csv", index=False)
    shop[n // 2 :].to_csv(folder / "new shop.csv", index=False)
    shop["brand name"] = random.choice(["red", "blue", None], n)
    complete = shop.assign(**{"brand name": shop["brand name"].fillna("green")})
    complete[: n // 2].to_csv(folder / "complete.csv", index=False)
    shop["rank"] = shop.groupby("search")["text score"].rank(ascending=False).astype(int)
    shop[: n // 2].to_csv(folder / "brands.csv", index=False)
    ridge = ["--ranker", "ridge"]
    assert main(["train", str(folder / "train.parquet"), *ridge, "--model", str(folder / "model.json")]) == 0
    own = [str(folder / "my shop.csv"), *shlex.split(COLUMNS)]
    assert main(["train", *own, *ridge, "--model", str(folder / "shop.json")]) == 0
    return folder


NEXT = {
    "evaluate few-bm25.run --qrels qrels.txt --topics all": "report",
    "evaluate model.json --data test.parquet --measures RR": "report",
    "compare bm25.run latent.run --qrels qrels.txt --measure AP": "report",
    "compare --data test.parquet --scores bm25.plain.all bm25.porter-stop.all": "power",
    "compare shop.json --data 'new shop.csv' --baseline price": "report",
    "compare shop.json --data 'new shop.csv' --baseline 'text score' --measure AP RR": "report",
    "compare shop.json --data 'new shop.csv' --baseline=-price": "report",
    "cross-validate 'my shop.csv' --ranker ridge --cv 3 " + COLUMNS: "cross-validate",
    "cross-validate 'my shop.csv' --ranker ridge --cv 3 --scores 'cv scores.txt' " + COLUMNS: "compare",
    "cross-validate brands.csv --set leaves=constant n_estimators=3 --categorical 'brand name' --missing nan --cv 3 "
    "--exclude 'text score' --scores 'cv scores.txt' " + COLUMNS: "compare",
    "describe brands.csv --query-column search --grade-column 'how good'": "cross-validate",
    "train 'my shop.csv' --ranker ridge --model shop2.json " + COLUMNS: "export",
    "train brands.csv --set leaves=constant n_estimators=3 --categorical 'brand name' --missing nan --model b.json "
    + COLUMNS: "export",
    "train complete.csv --set leaves=constant n_estimators=3 --categorical 'brand name' --missing zero --model c.json "
    + COLUMNS: "export",
    "train brands.csv --set n_estimators=3 --exclude 'brand name' --model fuzzy.json " + COLUMNS: "export",
    "power shop.json --data 'new shop.csv' --baseline price": "compare",
    "power bm25.run latent.run --qrels qrels.txt --measure P@5": "compare",
    "report bm25.run dirichlet.run --qrels qrels.txt -o 'my page.html'": "compare",
    "report shop.json --data 'new shop.csv' -o page.md": "evaluate",
    "report shop.json --data 'new shop.csv' -o page.json": "evaluate",
    "predict shop.json 'new shop.csv' -o 'my scores.txt'": "evaluate",
    "predict model.json test.txt.gz --format run -o model.run": "evaluate",
    "fuse bm25.run latent.run --method rrf -o fused.run": "judge",
    "fuse bm25.run few-latent.run --method rrf -o fused.run": "judge",
    "fuse bm25.run latent.run --qrels qrels.txt --nonnegative --cv 2": "fuse",
    "fuse bm25.run latent.run --qrels qrels.txt --nonnegative --cv 2 --model fusion.json": "fuse",
    "export model.json --to solr -o solr.json": "export",
    "export shop.json --to python -o own.py --certify 'new shop.csv'": "predict",
    "calibrate shop.json 'new shop.csv' --method platt -o p.json": "decide",
    "calibrate --scores 's.txt' --data 'new shop.csv' --method platt -o p.json " + COLUMNS: "decide",
}


@pytest.mark.parametrize("command", NEXT)
def test_the_next_command_runs(command, made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    monkeypatch.setattr("truerank.cli.describe._TREES", ["leaves=constant", "n_estimators=3"])
    if "s.txt" in command:
        assert main(["predict", "shop.json", "new shop.csv", "-o", "s.txt"]) == 0
    (made / "plan.csv").unlink(missing_ok=True)
    capsys.readouterr()
    assert main(shlex.split(command)) == 0
    lines = capsys.readouterr().err.splitlines()
    (printed,) = [line for line in lines if line.startswith("next: ")]
    assert printed == lines[-1]
    words = shlex.split(printed.removeprefix("next: truerank "))
    assert words[0] == NEXT[command]
    assert main(words) == 0


@pytest.mark.parametrize(
    "command",
    [
        "predict model.json test.parquet",
        "predict model.json test.parquet --format run",
        "fuse bm25.run latent.run --method rrf",
        "evaluate bm25.run --qrels qrels.txt --json",
        "compare bm25.run latent.run --qrels qrels.txt --format csv",
        "report bm25.run --qrels qrels.txt --format markdown -o -",
    ],
)
def test_data_on_a_pipe_come_alone(command, made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    assert main(shlex.split(command)) == 0
    out, err = capsys.readouterr()
    assert out
    assert "next: " not in out + err


def test_the_page_after_a_comparison_needs_no_layer_that_is_not_installed(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    monkeypatch.setattr("truerank.cli.next_command.find_spec", lambda name: None)
    assert main(shlex.split("compare bm25.run latent.run --qrels qrels.txt")) == 0
    printed = capsys.readouterr().err.splitlines()[-1]
    assert main(shlex.split(printed.removeprefix("next: truerank "))) == 0
    assert "latent is better than bm25" in (made / "report.md").read_text()


def test_the_ending_of_a_report_decides_its_format(made, monkeypatch):
    monkeypatch.chdir(made)
    command = "report bm25.run latent.run --qrels qrels.txt -o found"
    for ending, first in ((".md", "**"), (".json", "{"), (".html", "<")):
        assert main([*command.split()[:-1], f"found{ending}"]) == 0
        assert (made / f"found{ending}").read_text().startswith(first)
    assert main([*command.split()[:-1], "found.md", "--cutoff", "cutoff.json"]) == 2


def test_ranks_are_left_out_where_a_remark_advises_it(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    usual = {"search": "qid", "sku": "docid", "how good": "y"}
    pd.read_csv("brands.csv").rename(columns=usual).to_csv("ranked.csv", index=False)
    for command in ("describe ranked.csv", "split ranked.csv --replace"):
        assert main(command.split()) == 0
        text = "".join(capsys.readouterr())
        words = shlex.split(next(line for line in text.splitlines() if line.startswith("next: ")))
        assert words[words.index("--exclude") + 1] == "rank"


def test_a_comparison_accepts_the_options_of_training(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    options = shlex.split(f"--categorical 'brand name' --missing nan {COLUMNS}")
    assert main(["compare", "--data", "brands.csv", "--scores", "rank:ascending", "text score", *options]) == 0
    assert "text score" in capsys.readouterr().out
