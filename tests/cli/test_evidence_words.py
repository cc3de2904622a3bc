"""What commands say about their evidence: every figure is named for what it is, and none is printed without a basis."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.made_up_runs import planted
from truerank.cli import main
from truerank.io.trec import as_run, write_qrels, write_run


def write_rows(path, queries, seed, names=None):
    rng = np.random.default_rng(seed)
    lines = []
    for q in range(queries):
        x = rng.normal(size=(8, 3))
        for row, y in zip(x, x.sum(axis=1) + rng.normal(size=8) > 1):
            values = " ".join(f"{i}:{value:.4f}" for i, value in enumerate(row, 1))
            lines.append(f"{int(y)} qid:{seed}{q:03d} {values}\n")
    path.write_text("".join(lines))
    return str(path)


@pytest.fixture
def model(tmp_path):
    main(["train", write_rows(tmp_path / "old.txt", 12, 1), "--ranker", "ridge", "--model", str(tmp_path / "m.json")])
    return str(tmp_path / "m.json")


def test_retrain_says_what_is_left_out_and_which_p_decides(tmp_path, model, capsys):
    new, held = write_rows(tmp_path / "new.txt", 20, 2), tmp_path / "held.txt"
    write_rows(held, 30, 3)
    held.write_text("".join((tmp_path / "old.txt").read_text().splitlines(keepends=True)[:16]) + held.read_text())
    words = ["retrain", model, new, "--held-out", str(held), "--measure", "AP", "--candidate", str(tmp_path / "c.json")]
    assert main([*words, "--margin", "0.2"]) == 0
    out = capsys.readouterr().out
    assert "production: 2 of 32 queries" in out
    assert "these queries are left out\n" in out
    assert "AP, convention ranklib; 30 queries; randomisation test, two-sided" in out
    assert "; 30 queries can miss losses on fewer than " in out
    assert "95 % interval " in out


def test_retrain_without_a_p_says_why(tmp_path, capsys):
    """Every query gains the same: the t-test has no p, and the reason says so in place of "p = nan"."""
    rows = "{1} qid:{0} 1:1 2:0 3:{0}\n{2} qid:{0} 1:0 2:1 3:{0}\n"
    for name, queries, relevant in (("old", range(10), 0), ("new", range(10, 20), 1), ("held", range(20, 25), 1)):
        (tmp_path / name).write_text("".join(rows.format(q, relevant, 1 - relevant) for q in queries))
    production = str(tmp_path / "m.json")
    assert main(["train", str(tmp_path / "old"), "--ranker", "ridge", "--model", production]) == 0
    words = ["retrain", production, str(tmp_path / "new"), "--held-out", str(tmp_path / "held"), "--measure", "AP"]
    capsys.readouterr()
    assert main([*words, "--test", "t"]) == 3
    out = capsys.readouterr().out
    assert (
        "no gain is shown: +0.5000 AP against production, no p by the t test, because all queries differ by the" in out
    )
    assert "use the randomisation test" in out
    assert "nan" not in out


def test_calibration_of_few_queries(tmp_path, model, capsys):
    out = ["-o", str(tmp_path / "c.json")]
    assert main(["calibrate", model, write_rows(tmp_path / "one.txt", 1, 4), *out]) == 1
    assert "has 1 query, and a calibrator is cross-validated over whole queries" in capsys.readouterr().err
    assert main(["calibrate", model, write_rows(tmp_path / "few.txt", 6, 5), "--method", "platt", *out]) == 0
    assert "calibration error: not measured on 6 queries" in capsys.readouterr().err
    assert main(["calibrate", model, write_rows(tmp_path / "more.txt", 12, 6), "--method", "platt", *out]) == 0
    assert "95 % interval" in capsys.readouterr().err


@pytest.fixture
def runs(tmp_path):
    documents, qrels = planted(0, n_topics=12)
    for name in ("run0", "run1"):
        run = as_run(documents[name], name)
        path = tmp_path / f"{name}.run"
        write_run(run, path, tag=name)
    write_qrels(qrels, tmp_path / "qrels")
    lines = (tmp_path / "qrels").read_text().splitlines(keepends=True)
    (tmp_path / "qrels").write_text("".join(lines[::2]))  # half of the documents are judged
    return ["--qrels", str(tmp_path / "qrels")], [str(tmp_path / f"{name}.run") for name in ("run0", "run1")]


def test_counts_are_called_totals_or_means(runs, capsys):
    qrels, files = runs
    assert main(["evaluate", *qrels, files[0], "--measures", "NumRelRet", "--json"]) == 0
    total = json.loads(capsys.readouterr().out)["measures"]["NumRelRet"]["mean"]
    assert main(["evaluate", *qrels, files[0], "--measures", "NumRelRet"]) == 0
    assert "total over queries" in capsys.readouterr().out
    assert main(["compare", *qrels, *files, "--measure", "NumRelRet"]) == 0
    out = capsys.readouterr().out
    assert "NumRelRet: means over queries here; `truerank evaluate` prints the total" in out
    assert f"{total / 12:.4f}" in out


def test_report_has_the_judged_share_of_each_run(runs, tmp_path, capsys):
    qrels, files = runs
    page = tmp_path / "r.html"
    assert main(["report", *qrels, "--run", *files, "--measures", "P@5", "-o", str(page)]) == 0
    assert main(["compare", *qrels, *files, "--measure", "P@5", "--json"]) == 0
    shares = json.loads(capsys.readouterr().out)["judged"]
    text = page.read_text()
    assert set(shares) == {"run0", "run1"}
    assert "in the first 5: " + ", ".join(f"{name} {share:.4f}" for name, share in shares.items()) in text
    assert "difference for all grades" in text or "bounds" in text or "differ (" in text
    marked = "**" in text.split("where it is below 0.05")[0]
    assert marked  # the caption explains ** only because the table has them


def test_a_learning_curve_is_measured_on_held_out_queries(tmp_path, capsys):
    assert main(["sample", str(tmp_path)]) == 0
    capsys.readouterr()
    words = ["cross-validate", str(tmp_path / "judgements.parquet"), "--ranker", "ridge", "--curve", "--measures", "AP"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "learning-curve/1"
    assert found["train_sizes"][-1] + found["n_test"] == 225
    assert found["measure"].startswith("AP")
    assert main([*words, "--scores", str(tmp_path / "s")]) == 2
    assert "--scores cannot be combined with --curve" in capsys.readouterr().err


def test_learners_are_compared_over_folds(tmp_path, capsys):
    data = write_rows(Path(tmp_path / "d.txt"), 24, 7)
    words = ["cross-validate", data, "--ranker", "ridge", "--against", "random", "--measures", "AP", "--cv", "3"]
    assert main([*words, "--about", "learners", "--repeats", "2"]) == 0
    out = capsys.readouterr().out
    assert "corrected resampled t-test over 2 x 3 folds with 2 degrees of freedom" in out
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [pair["a"] for pair in report["comparison"]["pairs"]] == ["random"]
    assert report["comparison"]["means"] == {name: own["AP"] for name, own in report["means"].items()}
    assert "excludes the uncertainty of training" in report["about"]
    assert main([*words, "--grid", "alpha=1,2"]) == 2
    assert "--grid cannot be combined with --against" in capsys.readouterr().err
    assert main(["cross-validate", data, "--ranker", "ridge", "--repeats", "2"]) == 2
    assert "give --against NAME" in capsys.readouterr().err
