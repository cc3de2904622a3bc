"""`truerank text features --runs`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from truerank.cli import main
from truerank.io.letor.read import read_letor

A = "1 Q0 d1 1 4 a\n1 Q0 d2 2 2 a\n2 Q0 d9 1 1 a\n"
B = "1 Q0 d2 1 7 b\n1 Q0 d3 2 3 b\n"
QRELS = "1 0 d1 1\n1 0 d8 2\n2 0 d9 0\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "a.run").write_text(A)
    (tmp_path / "runs" / "b.txt").write_text(B)
    (tmp_path / "qrels").write_text(QRELS)
    return tmp_path


def test_runs_of_a_folder_become_letor_rows(folder, capsys):
    out = folder / "train.txt"
    words = [
        "text",
        "features",
        "--runs",
        str(folder / "runs"),
        "--qrels",
        str(folder / "qrels"),
        "-o",
        str(out),
        "--json",
    ]
    assert main(words) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows"], summary["queries"], summary["features"], summary["remarks"]) == (4, 2, 2, [])
    assert (summary["relevant"], summary["relevant_not_retrieved"]) == (1, 1)
    data = read_letor(out)
    assert data.doc_ids.tolist() == ["d3", "d2", "d1", "d9"]
    assert data.y.tolist() == [0, 0, 1, 0]
    np.testing.assert_allclose(data.X, [[1.9, 3], [2, 7], [4, 2.8], [1, 0]])
    assert main([*words[:-1], "--missing", "nan", "--per-query", "percentile"]) == 0
    assert "1 relevant documents were retrieved by no" in capsys.readouterr().err
    X = read_letor(out, missing="nan").X
    np.testing.assert_array_equal(X, [[np.nan, 0], [0, 1], [1, np.nan], [0, np.nan]])


def test_stdout_tables_and_misuse(folder, capsys):
    a, b = str(folder / "runs" / "a.run"), str(folder / "runs" / "b.txt")
    assert main(["text", "features", "--runs", a, b]) == 0
    assert "\n0 qid:1 1:1.9 2:3 #docid = d3\n" in capsys.readouterr().out
    assert main(["text", "features", "--runs", a, b, "-o", str(folder / "x.csv")]) == 0
    header = (folder / "x.csv").read_text().splitlines()[0].replace('"', "").split(",")
    assert {"a", "b"} <= set(header)
    for wrong in (["--runs", a, "--json"], ["--runs", a, a, "-o", str(folder / "x.txt")]):
        assert main(["text", "features", *wrong]) == 2
    (folder / "empty").mkdir()
    assert main(["text", "features", "--runs", str(folder / "empty"), "-o", str(folder / "x.txt")]) == 2
    assert main(["text", "features", "--runs", str(folder / "none.run")]) == 1
    assert "none.run" in capsys.readouterr().err


def test_features_of_text_carry_the_judged_documents_that_were_not_found(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    texts = {"a": "heat flow", "b": "heat of a wing", "c": "heat heat", "d": "sound"}
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()]
    (folder / "d.jsonl").write_text("".join(lines))
    (folder / "q.jsonl").write_text(json.dumps({"id": "1", "text": "heat"}) + "\n")
    (folder / "j").write_text("1 0 a 1\n1 0 b -1\n1 0 d 2\n")
    assert main(["text", "index", "d.jsonl", "-o", "index"]) == 0
    words = ["text", "features", "--index", "index", "--queries", "q.jsonl", "--qrels", "j", "--families", "functions"]
    assert main([*words, "-o", "f.txt"]) == 0
    assert main(["text", "search", "index", "q.jsonl", "-o", "s.run"]) == 0
    data = read_letor("f.txt")
    assert data.missing_grades.tolist() == [2.0]
    bm25 = data.X[:, data.feature_names.index("bm25.porter-stop.all")]
    (folder / "s.txt").write_text("".join(f"{score!r}\n" for score in data.restore(bm25).tolist()))
    found = []
    for given in (["--data", "f.txt", "--scores", "s.txt"], ["--qrels", "j", "--run", "s.run"]):
        capsys.readouterr()
        assert main(["evaluate", *given, "--measures", "AP nDCG Judged infAP", "--convention", "trec", "--json"]) == 0
        found.append({name: entry["mean"] for name, entry in json.loads(capsys.readouterr().out)["measures"].items()})
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found[0]["AP"] < 0.6
