"""calibrate and decide, as a person calls them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.diagnostics import expected_calibration_error
from truerank.calibration.ranker import CalibratedRanker
from truerank.cli import main
from truerank.data.ranking_data import RankingData
from truerank.io.letor.read import read_letor
from truerank.io.letor.write import write_letor
from truerank.models.model_file import load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrate")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(480, 3)).round(3)
    y = (X[:, 0] + 0.8 * rng.normal(size=480) > 0.5).astype(int) + (X[:, 0] > 1.8)
    qid = np.repeat(np.arange(60), 8)
    for name, rows in {"train": qid < 20, "held": (qid >= 20) & (qid < 50), "test": qid >= 50}.items():
        write_letor(RankingData(X[rows], y[rows], qid[rows]), folder / f"{name}.txt")
    model = str(folder / "model.json")
    assert main(["train", str(folder / "train.txt"), "--ranker", "rank-svm", "--model", model]) == 0
    assert main(["predict", model, str(folder / "held.txt"), "-o", str(folder / "held.scores")]) == 0
    assert main(["predict", model, str(folder / "test.txt"), "-o", str(folder / "test.scores")]) == 0
    return folder


def test_a_ranker_is_calibrated_on_held_out_queries(files, capsys):
    out = str(files / "calibrated.json")
    words = ["calibrate", str(files / "model.json"), str(files / "held.txt"), "--method", "platt", "-o", out, "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["method"], report["rows"], report["queries"]) == ("platt", 240, 30)
    assert 0 < report["cross_validated"][0]["log_loss"] < 0.69
    assert isinstance(load_model(out), CalibratedRanker)
    test = str(files / "test.txt")
    assert main(["decide", out, test, "--cost-fp", "1", "--cost-fn", "4"]) == 0
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()]
    expected = load_model(out).predict_proba(read_letor(test))[:, 1]
    assert [float(p) for p, _ in lines] == expected.tolist()
    assert [int(d) for _, d in lines] == (expected >= 0.2).astype(int).tolist()
    assert "threshold 0.2000" in printed.err


def test_expected_relevant_in_the_top(files, capsys):
    out = str(files / "top.json")
    assert main(["calibrate", str(files / "model.json"), str(files / "held.txt"), "--cv", "3", "--query-statistics",
                 "--method", "spline", "-o", out]) == 0  # fmt: skip
    assert "spline" in capsys.readouterr().err
    assert main(["decide", out, str(files / "test.txt"), "--top", "3", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["queries"] == 10
    assert all(0 <= value <= 3 for value in report["expected_relevant"].values())
    assert list(report["expected_relevant"]) == [str(q) for q in range(50, 60)]


def test_scores_without_a_model(files, capsys):
    out = str(files / "calibrator.json")
    scores, data = str(files / "held.scores"), str(files / "held.txt")
    words = ["calibrate", "--scores", scores, "--data", data, "--rel", "2", "-o", out]
    assert main([*words, "--method", "isotonic", "--monotone"]) == 2
    assert "isotonic is always monotone" in capsys.readouterr().err
    assert main([*words, "--method", "asymmetric-laplace"]) == 0
    held = read_letor(data)
    expected = AsymmetricLaplaceCalibrator().fit(np.loadtxt(scores), held.y >= 2)
    np.testing.assert_array_equal(load_model(out).shape_, expected.shape_)
    capsys.readouterr()
    words = ["decide", out, "--scores", str(files / "test.scores"), "--cost-abstain", "0.1", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == 80
    assert sum(report["decisions"].values()) == 80
    assert set(report["decided"]) <= {-1, 0, 1}
    lines = files / "lines.txt"
    assert main([*words, "-o", str(lines)]) == 0
    assert json.loads(capsys.readouterr().out) == report
    assert [int(line.split()[1]) for line in lines.read_text().splitlines()] == report["decided"]


def test_the_best_method_is_chosen(files, capsys):
    out = str(files / "chosen.json")
    words = ["calibrate", str(files / "model.json"), str(files / "held.txt"), "--method", "choose", "-o", out, "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    by_name = {row["method"]: row for row in report["cross_validated"]}
    assert len(by_name) >= 4
    assert by_name[report["method"]]["difference"] == 0
    # An average of several, or the one that stands out.
    assert report["method"] == "pool" or list(report["weights"]) == [report["method"]]
    assert sum(report["weights"].values()) == pytest.approx(1)
    best = min(row["log_loss"] for row in by_name.values())
    assert by_name[report["method"]]["log_loss"] < best + 0.01
    assert main(["decide", out, str(files / "test.txt"), "--top", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 10
    scores = str(files / "held.scores")
    words = ["calibrate", "--scores", scores, "--data", str(files / "held.txt"), "--method", "pool", "-o", out]
    assert main(words) == 0
    assert "pool (" in capsys.readouterr().err
    assert load_model(out).predict_proba([0.0]).shape == (1, 2)


@pytest.mark.parametrize("more", [[], ["--query-statistics"], ["--cv", "3"]])
def test_the_calibration_error_is_of_rows_that_the_calibrator_was_not_fitted_to(files, more, capsys):
    # Isotonic regression on its own rows has a calibration error of 0, whatever the scores.
    words = ["calibrate", str(files / "model.json"), str(files / "held.txt"), "--method", "isotonic", *more]
    assert main([*words, "--seed", "1", "-o", str(files / "isotonic.json"), "--json"]) == 0
    error = json.loads(capsys.readouterr().out)["calibration_error"]
    model, test = load_model(files / "isotonic.json"), read_letor(files / "test.txt")
    own = expected_calibration_error(*_truth(read_letor(files / "held.txt"), model), random_state=1)
    assert error["plain"] > 1.5 * own.plain
    assert error["low"] <= error["debiased"] <= error["high"]
    new = expected_calibration_error(*_truth(test, model), random_state=1)
    assert error["low"] <= new.plain  # 10 queries that neither fit has seen
    assert main([*words, "--seed", "1", "-o", str(files / "isotonic.json")]) == 0
    printed = capsys.readouterr().err
    assert "on queries that the calibrator was not fitted to (cross-fitted by query" in printed


def _truth(data, model):
    return data.restore(data.y) >= 1, model.predict_proba(data)[:, 1]


def test_queries_that_trained_the_ranker_do_not_calibrate_it(files, capsys):
    out = str(files / "seen.json")
    words = ["calibrate", str(files / "model.json"), str(files / "train.txt"), "--method", "platt", "-o", out]
    assert main(words) == 1
    printed = capsys.readouterr().err
    assert "20 of 20 queries were used for training" in printed
    assert "--cv 5" in printed
    assert not (files / "seen.json").exists()
    assert main([*words, "--training-queries", "keep"]) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert "20 of 20 queries were used for training; the values include these queries, and are too optimistic" in first
    assert main([*words, "--cv", "3"]) == 0
    assert "scores: from rankers that were trained on other queries" in capsys.readouterr().err
    # Some of them: the others calibrate.
    both = RankingData.concatenate([read_letor(files / "train.txt").take_queries(range(9)),
                                    read_letor(files / "held.txt")])  # fmt: skip
    write_letor(both, files / "both.txt")
    words[2] = str(files / "both.txt")
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["queries"], report["training_queries"]["left_out"]) == (30, 9)


def test_decisions_withhold_figures_on_queries_that_trained_the_model(files, capsys):
    out, held = str(files / "decided.json"), str(files / "held.txt")
    assert main(["calibrate", str(files / "model.json"), held, "--method", "platt", "-o", out]) == 0
    capsys.readouterr()
    assert main(["decide", out, held]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 240
    assert "30 of 30 queries were used for training; expected costs and means are withheld" in printed.err
    assert "expected cost withheld" in printed.err
    assert main(["decide", out, held, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["withheld"]
    assert report["expected_cost"] is None
    assert main(["decide", out, held, "--top", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] is None
    assert main(["decide", out, held, "--training-queries", "keep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["expected_cost"] > 0
    assert main(["decide", out, str(files / "test.txt"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["expected_cost"] > 0
    assert not report["withheld"]


@pytest.mark.parametrize(
    "words",
    [
        ["calibrate", "-o", "x.json"],
        ["calibrate", "MODEL", "-o", "x.json"],
        ["calibrate", "MODEL", "HELD", "--scores", "SCORES", "-o", "x.json"],
        ["calibrate", "--scores", "SCORES", "--data", "HELD", "--cv", "3", "-o", "x.json"],
        ["calibrate", "MODEL", "HELD", "--method", "plat", "-o", "x.json"],
        ["decide", "CALIBRATOR"],
        ["decide", "CALIBRATOR", "--scores", "SCORES", "--top", "5"],
        ["decide", "CALIBRATOR", "HELD", "--scores", "SCORES", "--top", "5", "--cost-fp", "2"],
    ],
)
def test_misuse_ends_with_code_2(files, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"MODEL": "model.json", "HELD": "held.txt", "SCORES": "held.scores", "CALIBRATOR": "c.json"}
    AsymmetricLaplaceCalibrator()
    from truerank.models.model_file import save_model

    save_model(AsymmetricLaplaceCalibrator().fit([0.0, 1, 2, 3], [0, 1, 0, 1]), files / "c.json")
    words = [str(files / names[word]) if word in names else word for word in words]
    try:
        code = main(words)
    except SystemExit as error:
        code = error.code
    assert code == 2


def test_failures_end_with_code_1(files, capsys, tmp_path):
    assert main(["decide", str(files / "model.json"), str(files / "test.txt")]) == 1
    assert "has no probabilities" in capsys.readouterr().err
    missing = str(tmp_path / "no" / "out.json")
    assert main(["calibrate", str(files / "model.json"), str(files / "held.txt"), "-o", missing]) == 1
    assert main(["decide", str(files / "model.json"), str(files / "test.txt"), "--cost-fp", "-1"]) == 1
