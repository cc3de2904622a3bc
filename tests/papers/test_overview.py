"""One table of all experiments: the rules of its verdicts, its manifest, and `reproduce all` on made-up collections."""

from __future__ import annotations

import hashlib
import json

import pytest

from support.small_collections import write_collections
from truerank import cli
from truerank.cli import reproduce
from truerank.papers import overview
from truerank.papers.letor import experiment as letor
from truerank.papers.letor.learners import LEARNERS


def test_a_figure_is_reproduced_within_its_tolerance():
    short = overview.figure("a", "b", 0.45, 0.42, 0.02)
    assert (short["published"], short["ours"], short["verdict"]) == ("0.4500", "0.4200", "not reproduced")
    assert overview.figure("a", "b", 0.45, 0.431, 0.02)["verdict"] == "reproduced"
    assert overview.figure("a", "b", 0.45, 0.60, 0.02)["verdict"] == "reproduced"  # more is better
    assert overview.figure("a", "b", 0.45, 0.60, 0.02, least=False)["verdict"] == "not reproduced"


def test_descent_is_judged_by_the_articles_figures():
    labels = list(overview.published("descent")["tau"])
    result = {"diabetes": {labels[0]: {"tau": {"mean": 0.49995}}, labels[1]: {"tau": {"mean": 0.4}}}}
    assert [row["verdict"] for row in overview.descent_rows(result)] == ["reproduced", "not reproduced"]


def test_calibration_rows_follow_claims_and_footnote():
    errors = {"asymmetric-laplace": {"errors": 12}, "logistic": {"errors": 11}}
    result = {
        "panels": {"naive Bayes": {"claims": {"first": True, "second": False}}},
        "all_topics": {"naive Bayes": {"all": {"ours": errors}}},
    }
    rows = overview.calibration_rows(result)
    assert [row["verdict"] for row in rows] == ["reproduced", "not reproduced", "not reproduced"]


def test_oblivious_rows_compare_the_order():
    def kinds(fuzzy, constant, polynomial):
        means = {"fuzzy": fuzzy, "constant": constant, "polynomial": polynomial}
        return {kind: {"five folds": {"ranklib": [value], "mse": [value]}} for kind, value in means.items()}

    values = {"nDCG@5": kinds(0.46, 0.45, 0.44), "squared error": kinds(0.25, 0.26, 0.27)}
    rows = overview.oblivious_rows({"collections": {"mq2008": {"values": values}}})
    # The thesis has fuzzy borders last in squared error; here they are first.
    assert [row["verdict"] for row in rows] == ["reproduced", "not reproduced"]


def test_all_prints_one_object_and_writes_a_manifest(tmp_path, monkeypatch, capsys):
    root = write_collections(tmp_path / "data", 8, (0.3, 0.0, 0.1), 3)
    monkeypatch.setattr(reproduce, "EXPERIMENTS", {"letor": "truerank.papers.letor.experiment"})
    few = [learner for learner in LEARNERS if learner.name in ("random", "ridge", "RankSVM")]
    monkeypatch.setattr(letor, "known_learners", lambda only=None: few)
    monkeypatch.setattr(letor, "figures", lambda args: [])
    words = ["reproduce", "all", "--data", str(root), "--quick", "--out", str(tmp_path / "out")]
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["item"] for row in found["rows"]] == ["RankSVM, ohsumed MAP"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest == found["manifest"]
    assert manifest["settings"]["letor"]["quick"] is True
    assert manifest["conventions"]["letor"]["collections, ohsumed"] == "letor3"
    name, digest = next(iter(manifest["data"].items()))
    assert hashlib.sha256((tmp_path / "data" / name).read_bytes()).hexdigest() == digest
    # Again: everything is found, and the table is printed.
    monkeypatch.setattr(letor, "compute", lambda *a: pytest.fail("run again"))
    assert cli.main(words) == 0
    again = capsys.readouterr()
    assert "letor: finished before" in again.err
    assert "Published, ours, verdict" in again.out
    assert found["rows"][0]["verdict"] in again.out


def test_what_was_finished_otherwise_is_run_again(tmp_path):
    path, rows = tmp_path / "a" / "verdicts.json", [overview.figure("a", "b", 0.45, 0.42, 0.02)]
    assert overview.finished(path, {"seed": 0}) is None
    overview.write_finished(path, {"seed": 0}, rows, {"all": "trec"})
    kept = overview.finished(path, {"seed": 0})
    assert (kept["rows"], kept["conventions"]) == (rows, {"all": "trec"})
    assert overview.finished(path, {"seed": 1}) is None
    path.write_text(path.read_text().replace('"version": "', '"version": "0.'))
    assert overview.finished(path, {"seed": 0}) is None
    path.write_text("{")
    assert overview.finished(path, {"seed": 0}) is None
