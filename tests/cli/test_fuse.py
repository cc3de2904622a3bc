"""`truerank fuse` in its three forms."""

from __future__ import annotations

import json

import numpy as np
import pytest

import truerank
from support.made_up_runs import planted
from truerank import fuse, read_run
from truerank.cli import fuse as cli_fuse
from truerank.cli import main
from truerank.features import fusion
from truerank.io.trec import as_run, write_qrels, write_run


@pytest.fixture
def folder(tmp_path):
    runs, qrels = planted(0, n_topics=16)
    (tmp_path / "runs").mkdir()
    for name, documents in runs.items():
        run = as_run(documents, name)
        write_run(run, tmp_path / "runs" / f"{name}.run", tag=name)
    write_qrels(qrels, tmp_path / "qrels")
    return tmp_path


def test_learn_then_apply(folder, capsys):
    learn = [
        "fuse",
        "--runs",
        str(folder / "runs"),
        "--qrels",
        str(folder / "qrels"),
        "--model",
        str(folder / "m.json"),
    ]
    assert main([*learn, "--json", "--cv", "4", "--nonnegative"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"learned", "rrf", "comb-sum", "comb-mnz", "comb-anz", "weighted-sum", "borda", "best-run"} == {
        *report["MAP"]
    }
    assert {"MAP", "nDCG@10", "judged_only", "intervals", "comparisons", "recommended", "reason"} <= {*report}
    assert report["runs"] == ["run0", "run1", "run2"]
    assert report["weights"]["run0"] == max(report["weights"].values())
    apply = ["fuse", "--model", str(folder / "m.json"), "--runs", str(folder / "runs"), "-o", str(folder / "f.run")]
    assert main(apply) == 0
    fused = read_run(folder / "f.run")
    assert (fused.n_queries, fused.tag) == (16, "fusion")
    assert main([*learn, "--cv", "4"]) == 0
    out = capsys.readouterr().out
    assert "learned minus" in out
    assert "use " in out
    assert "wins" in out


@pytest.mark.parametrize("kind", ["--nonnegative", "--by-query"])
def test_the_run_of_judged_topics_is_that_of_other_topics_weights(folder, capsys, kind):
    learn = ["fuse", str(folder / "runs"), "--qrels", str(folder / "qrels"), kind, "--model", str(folder / "m.json")]
    assert main([*learn, "--cv", "4", "-o", str(folder / "held.run"), "--measures", "AP"]) == 0
    told = capsys.readouterr()
    assert "learned from other topics" in told.err
    assert "next: truerank compare" in told.err
    assert main(["fuse", str(folder / "runs"), "--model", str(folder / "m.json"), "-o", str(folder / "all.run")]) == 0
    held, trained = read_run(folder / "held.run"), read_run(folder / "all.run")
    assert held.query_ids.tolist() == trained.query_ids.tolist()
    assert held.tag == "fusion"
    assert held.scores.tolist() != trained.scores.tolist()
    if kind == "--nonnegative":
        pool = truerank.RunPool({f"run{j}": str(folder / "runs" / f"run{j}.run") for j in range(3)}, folder / "qrels")
        found = truerank.cross_validate_fusion(pool, truerank.RunFusion(nonnegative=True), measures="AP", cv=4)
        np.testing.assert_allclose(
            truerank.evaluate(folder / "qrels", held, "AP").per_query["AP"], found.per_query["MAP"]["learned"]
        )


def test_every_rule_without_weights_is_offered():
    assert tuple(fusion.METHODS) == cli_fuse.METHODS


def test_by_rule(folder, capsys):
    names = [str(folder / "runs" / f"run{j}.run") for j in range(3)]
    assert main(["fuse", "--runs", *names, "--method", "CombMNZ", "--depth", "7", "-o", str(folder / "x.run.gz")]) == 0
    written, expected = read_run(folder / "x.run.gz"), fuse([read_run(name) for name in names], "comb-mnz", depth=7)
    assert written.doc_ids.tolist() == expected.doc_ids.tolist()
    np.testing.assert_array_equal(written.scores, expected.scores)
    capsys.readouterr()
    words = ["fuse", "--runs", *names, "--method", "rrf", "--json"]
    assert main([*words, "-o", str(folder / "y.run")]) == 0
    expected = fuse([read_run(name) for name in names], "rrf")
    assert json.loads(capsys.readouterr().out) == {
        "schema": "fuse/1", "version": truerank.__version__, "output": str(folder / "y.run"),
        "topics": expected.n_queries, "documents": expected.n_rows, "remarks": [],
    }  # fmt: skip
    assert main(words) == 2
    assert "Name a file for the fused run with -o" in capsys.readouterr().err
    assert main(["fuse", "--runs", *names[:2], "--method", "rrf"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[0::5] == ["t00", "rrf"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "--qrels FILE to learn"),
        (["--method", "rrf", "--qrels", "q"], 2, "Leave --qrels"),
        (["--method", "rrf", "--nonnegative"], 2, "--nonnegative applies only to learning"),
        (["--model", "runs/run0.run"], 1, "not a model"),
        (["--qrels", "qrels", "--ranker", "listnets"], 2, "unknown ranker"),
        (["--qrels", "qrels", "--features", "minmax"], 1, "Choose among"),
        (["--qrels", "qrels", "--cv", "40"], 1, "40 folds require"),
        (["--method", "rrf", "--depth", "0"], 2, "--depth"),
        (["--qrels", "nowhere"], 1, "nowhere"),
    ],
)
def test_misuse(folder, monkeypatch, capsys, words, code, message):
    monkeypatch.chdir(folder)
    assert main(["fuse", "--runs", "runs", *words]) == code
    assert message in capsys.readouterr().err
