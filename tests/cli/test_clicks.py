"""`truerank clicks`: examine, value, rows to train on, interleaved lists and their comparison."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

from truerank import load_sample, read_clicks, read_table, simulate, write_run, write_table
from truerank.cli import main
from truerank.io.trec import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("clicks")
    data = load_sample()
    log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=20_000, random_state=0)
    frame = {
        "impression": log.impression, "query": log.query_ids[log.query].tolist(), "position": log.position,
        "document": log.document_ids[log.document].tolist(), "clicked": log.clicked.astype(int),
        "bucket": log.ranker_ids[log.ranker].tolist(), "team": np.where(log.position % 2, "a", "b"),
    }  # fmt: skip
    pandas.DataFrame(frame).to_parquet(place / "log.parquet")
    for name, column in (("new", 8), ("old", 0)):
        write_run(
            Run(data.query_ids, data.offsets, data.doc_ids, data.X[:, column]), str(place / f"{name}.run"), tag=name
        )
    write_table(data, place / "features.parquet")
    return place


def ran(folder, monkeypatch, capsys, *words):
    monkeypatch.chdir(folder)
    code = main(["clicks", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


BUCKET = ("--columns", "ranker=bucket")


def test_examine(folder, monkeypatch, capsys):
    code, out, _ = ran(folder, monkeypatch, capsys, "examine", "log.parquet", *BUCKET, "--plot", "seen.png")
    assert code == 0
    assert "position model: identified" in out
    assert (folder / "seen.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = ran(folder, monkeypatch, capsys, "examine", "log.parquet", "--json", "--max-position", "5")
    report = json.loads(out)
    assert report["identified"] is False
    assert "does not name the ranker of each list" in report["reasons"][0]
    code, out, _ = ran(folder, monkeypatch, capsys, "examine", "log.parquet", *BUCKET, "--method", "em", "--data",
                       "features.parquet", "--max-position", "4")  # fmt: skip
    assert "NOT identified" in out


def test_value(folder, monkeypatch, capsys):
    words = ("value", "log.parquet", *BUCKET, "--runs", "old.run", "new.run")
    code, out, _ = ran(folder, monkeypatch, capsys, *words)
    assert code == 0
    assert "new - old" in out
    assert "100.0%" in out
    _, out, _ = ran(folder, monkeypatch, capsys, *words, "--json", "--estimator", "doubly-robust", "--data",
                    "features.parquet", "--cutoff", "5")  # fmt: skip
    report = json.loads(out)
    assert report["values"]["new"]["support"] < report["values"]["old"]["support"] == 1.0
    assert report["differences"][0]["a"] == "new"


def test_rows_to_train_on(folder, monkeypatch, capsys):
    words = ("train-data", "log.parquet", *BUCKET, "--data", "features.parquet", "-o", "rows.parquet", "--least", "20")
    code, _, err = ran(folder, monkeypatch, capsys, *words)
    assert code == 0
    assert "relevances cut to [0, 1]" in err
    rows = read_table(folder / "rows.parquet")
    assert 0 <= rows.y.min() < rows.y.max() <= 1


def test_interleave_and_compare(folder, monkeypatch, capsys):
    code, _, err = ran(
        folder, monkeypatch, capsys, "interleave", "old.run", "new.run", "-o", "lists.jsonl", "--length", "4"
    )
    assert (code, err.strip()) == (0, "truerank clicks: 225 lists")
    first = json.loads((folder / "lists.jsonl").read_text().splitlines()[0])
    assert len(first["documents"]) == len(first["teams"]) == 4
    assert set(first["teams"]) == {"old", "new"}
    code, out, _ = ran(folder, monkeypatch, capsys, "interleave", "--log", "log.parquet", "--json")
    compared = json.loads(out)["comparisons"][0]
    assert (compared["a"], compared["units"], code) == ("a", 20_000, 0)
    assert compared["low"] > 0  # odd positions are seen more


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("examine",), "examine reads one click log, got 0 files"),
        (("examine", "log.parquet", "--runs", "a.run"), "--runs does not apply to examine"),
        (("examine", "log.parquet", "--method", "em"), "Add --data FILE"),
        (("value", "log.parquet"), "clicks value requires the runs of the rankers. Add --runs"),
        (("train-data", "log.parquet"), "Add --data FILE -o FILE"),
        (("interleave", "old.run"), "two or more runs"),
        (("interleave", "old.run", "new.run", "-o", "x.jsonl", "--looks", "3"), "--looks requires --log"),
        (("examine", "log.parquet", "--columns", "bucket"), "--columns"),
    ],
)
def test_misuse(folder, monkeypatch, capsys, words, message):
    code, _, err = ran(folder, monkeypatch, capsys, *words)
    assert code == 2
    assert message in err


def test_a_column_that_is_not_there(folder, monkeypatch, capsys):
    code, _, err = ran(folder, monkeypatch, capsys, "examine", "log.parquet", "--columns", "ranker=buckt")
    assert code == 1
    assert "Add --columns ranker=COLUMN" in err
    assert read_clicks(folder / "log.parquet").n_impressions == 20_000
