"""cutoff fit and apply, as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from truerank import Cutoff, RankingData, load_model
from truerank.cli import main
from truerank.io.letor.write import write_letor


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cutoff")
    rng = np.random.default_rng(0)
    for name, first in (("train", 0), ("held", 100), ("use", 300)):
        qid = np.repeat(np.arange(first, first + (200 if name == "held" else 60)), 6)
        X = rng.normal(size=(len(qid), 2)).round(3) + rng.normal(size=400)[qid][:, None].round(2)
        y = (X[:, 0] + rng.normal(size=len(qid)) > 1).astype(int)
        write_letor(RankingData(X, y, qid), folder / f"{name}.txt")
        np.savetxt(folder / f"{name}.scores", X[:, 0], fmt="%.6f")
        with open(folder / f"{name}.qrels", "w") as qrels:
            qrels.writelines(f"{q} 0 d{i} {g}\n" for i, (q, g) in enumerate(zip(qid, y)))
        for run, column in (("a", 0), ("b", 1)):
            with open(folder / f"{name}-{run}.run", "w") as lines:
                lines.writelines(
                    f"{q} Q0 d{i} 1 {x} {run}\n"
                    for i, (q, x) in enumerate(zip(qid, X[:, column]))
                    if run == "a" or x > 0
                )
    return folder


def at(folder, *names):
    return [str(folder / name) for name in names]


@pytest.mark.parametrize(
    "loss", [[], ["--loss", "irrelevant-shown", "--at-most", "0.4"], ["--loss", "missed-relevant"]]
)
def test_the_defaults_fit_a_cutoff(loss, files, capsys):
    model, data, out = at(files, "default.json", "held.txt", "default-cutoff.json")
    assert main(["train", *at(files, "train.txt"), "--ranker", "ridge", "--model", model]) == 0
    assert main(["cutoff", "fit", model, data, *loss, "-o", out]) == 0
    assert load_model(out).confidence == (None if "missed-relevant" in loss else 0.9)
    assert ("With confidence 0.9" in capsys.readouterr().err) == ("missed-relevant" not in loss)


def test_scores_in_a_file(files, capsys):
    scores, data, out = at(files, "held.scores", "held.txt", "cutoff.json")
    words = ["--loss", "no-relevant@2", "--at-most", "0.2", "--confidence", "0.9", "-o", out]
    assert main(["cutoff", "fit", "--scores", scores, "--data", data, *words]) == 0
    text = capsys.readouterr().err
    assert "With confidence 0.9, at most 0.2 of the answered queries have nothing relevant in the top 2." in text
    cutoff = load_model(out)
    curve = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    assert 2 <= len(curve) <= 20
    assert all(float(risk) <= float(bound) <= float(wide) for _, _, risk, bound, wide in curve)
    qid = np.repeat(np.arange(100, 300), 6)
    grades = [int(line.split()[0]) for line in Path(data).read_text().splitlines()]
    assert cutoff.threshold_ == (
        Cutoff("no-relevant@2", at_most=0.2, confidence=0.9, random_state=0)
        .fit(np.loadtxt(scores), grades, qid=qid)
        .threshold_
    )
    assert 0.1 < cutoff.answered_ < 1
    use, documents = at(files, "use.scores", "use.txt")
    assert main(["cutoff", "apply", out, "--scores", use, "--data", documents]) == 0
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()]
    want = cutoff.answers(np.loadtxt(use), qid=np.repeat(np.arange(300, 360), 6))
    assert lines == [[str(q), str(int(a))] for q, a in zip(range(300, 360), want)]
    assert f"{want.sum()} of 60 queries are answered" in printed.err
    assert main(["cutoff", "apply", out, "--scores", use, "--data", documents, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["answered"]["300"] == int(want[0])
    assert set(report["p"]) == {"best", "mean-top", "gap", "mean", "spread", "size"}


def test_a_model_decides_how_deep(files, capsys):
    model, out = at(files, "model.json", "depth.json")
    assert main(["train", *at(files, "train.txt"), "--ranker", "ridge", "--model", model]) == 0
    assert main(["cutoff", "fit", model, *at(files, "held.txt"), "--loss", "missed-relevant", "-o", out, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    grades = [int(line.split()[0]) for line in (files / "held.txt").read_text().splitlines()]
    assert report["queries"] == np.reshape(grades, (200, 6)).any(axis=1).sum()  # those with a relevant document
    assert 0.3 < report["answered"] < 1
    assert main(["cutoff", "apply", out, model, *at(files, "use.txt"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["shown"]
    assert len(shown) == 60
    assert set(shown.values()) <= set(range(7))
    assert main(["cutoff", "fit", model, *at(files, "train.txt"), "-o", out, "--confidence", "0.9"]) == 1
    assert "60 of 60 queries were used for training" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:the guarantee may not hold")
def test_runs_agree(files, capsys):
    out = str(files / "agree.json")
    words = ["--at-most", "0.2", "--confidence", "0.8", "--query-score", "agreement", "--loss", "no-relevant@3"]
    runs, qrels = at(files, "held-a.run", "held-b.run"), at(files, "held.qrels")
    assert main(["cutoff", "fit", "--runs", *runs, "--qrels", *qrels, *words, "-o", out]) == 0
    assert "the score agreement is at least" in capsys.readouterr().err
    assert main(["cutoff", "apply", out, "--runs", *at(files, "use-a.run", "use-b.run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 60
    assert {line.split()[1] for line in lines} == {"0", "1"}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fit", "--scores", "held.scores", "--data", "held.txt"], 2, "Add -o"),
        (["fit", "-o", "x.json"], 2, "Give MODEL DATA, --scores FILE --data FILE, or --runs RUN"),
        (["fit", "--runs", "held-a.run", "-o", "x.json"], 2, "Add --qrels"),
        (["fit", "--scores", "held.scores", "--data", "held.txt", "--qrels", "q", "-o", "x.json"], 2, "--qrels"),
        (
            ["apply", "model.json", "--scores", "use.scores", "--data", "use.txt"],
            1,
            "Create one with `truerank cutoff fit`",
        ),
        (["apply", "--scores", "use.scores", "--data", "use.txt"], 2, "Give the file that `truerank cutoff fit` wrote"),
        (["apply", "cutoff.json", "--loss", "no-relevant@2", "--runs", "use-a.run"], 2, "in the cutoff's file"),
    ],
)
def test_misuse_says_what_to_type(files, words, code, message, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert main(["cutoff", *words]) == code
    assert message in capsys.readouterr().err


def test_certificates_and_reports_have_the_cutoff(files, capsys):
    model, out, page = at(files, "linear.json", "shown.json", "page.html")
    assert main(["train", *at(files, "train.txt"), "--ranker", "ridge", "--model", model]) == 0
    words = ["--loss", "irrelevant-shown", "--at-most", "0.6", "--confidence", "0.9", "-o", out]
    assert main(["cutoff", "fit", model, *at(files, "held.txt"), *words]) == 0
    capsys.readouterr()
    export = ["export", model, "--to", "opensearch-ltr", "-o", str(files / "m.txt"), "--cutoff", out, "--json"]
    export += ["--certify", *at(files, "held.txt")]
    assert main(export) == 0
    policy = json.loads(capsys.readouterr().out)["policy"]
    cutoff = load_model(out)
    assert policy["cutoff"]["threshold"] == cutoff.threshold_
    pytest.importorskip("vl_convert")
    report = ["report", model, "--data", *at(files, "use.txt"), "--cutoff", out, "-o", page]
    assert main(report) == 0
    assert "With confidence 0.9, the mean loss irrelevant-shown" in Path(page).read_text()
