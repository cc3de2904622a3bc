"""A command never overwrites what it reads, and models of another kind get a line, no report of an inner error."""

from __future__ import annotations

import numpy as np
import pytest

from support.refusals import refused
from truerank import RidgeRanker, evaluate, load_sample, save_model, write_letor
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.inspection.explanation import explain


@pytest.fixture
def folder(tmp_path):
    data = load_sample().take_queries(np.arange(6))
    write_letor(data, tmp_path / "d.txt")
    save_model(RidgeRanker().fit(data), tmp_path / "m.json")
    (tmp_path / "a.run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n")
    (tmp_path / "b.run").write_text("1 Q0 b 1 2 x\n1 Q0 a 2 1 x\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["train", "d.txt", "--ranker", "ridge", "--model", "d.txt"],
        ["predict", "m.json", "d.txt", "-o", "d.txt"],
        ["predict", "--format", "run", "m.json", "d.txt", "-o", "m.json"],
        ["export", "m.json", "--to", "solr", "-o", "m.json"],
        ["report", "m.json", "--data", "d.txt", "-o", "d.txt"],
        ["fuse", "--runs", "a.run", "b.run", "--method", "rrf", "-o", "a.run"],
        ["fuse", "--runs", ".", "--method", "rrf", "-o", "a.run"],
        ["text", "features", "--runs", ".", "-o", "b.run"],
        ["cross-validate", "d.txt", "--ranker", "ridge", "--scores", "d.txt"],
        ["retrain", "m.json", "d.txt", "--candidate", "d.txt"],
    ],
)
def test_an_output_that_is_an_input_is_refused(folder, words, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(words) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_old_model_is_replaced_as_ever(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["train", "d.txt", "--ranker", "ridge", "--model", "m.json"]) == 0
    assert main(["predict", "m.json", "d.txt", "-o", "s.txt"]) == 0
    assert main(["predict", "m.json", "d.txt", "-o", "s.txt"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [["report", "f.json", "--data", "d.txt"], ["explain", "f.json", "d.txt", "--query", "1"], ["export", "f.json"]],
)
def test_models_that_do_not_rank_rows(folder, words, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (folder / "f.json").write_text((folder / "m.json").read_text().replace("RidgeRanker", "ScoreBinning"))
    more = ["--to", "solr", "-o", "x"] if words[0] == "export" else []
    assert main([*words, *more]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_ids_that_become_equal_as_text_are_refused():
    q = {"1": {"a": 1, "b": 0}}
    with refused(InvalidInputError, code="twice"):
        evaluate(q, {1: {"a": 0.0, "b": 1.0}, "1": {"a": 1.0, "b": 0.0}}, "AP")
    with refused(InvalidInputError, code="twice"):
        evaluate({"1": {"1": 1, 1: 0}}, {"1": {"1": 2.0, "b": 1.0}}, "AP")
    with pytest.raises(InvalidInputError):
        evaluate({"1": {"a": 10**400}}, {"1": {"a": 1.0}}, "AP")
    with refused(TypeError, argument="source"):
        evaluate(q, {"1": 5}, "AP")


def test_missing_ids_of_a_frame_are_refused():
    pandas = pytest.importorskip("pandas")
    qrels = pandas.DataFrame({"qid": ["1", "1"], "docno": ["a", "b"], "label": [1, 0]})
    run = pandas.DataFrame({"qid": ["1", "1"], "docno": ["a", None], "score": [1.0, 2.0]})
    with refused(InvalidInputError, code="no-id"):
        evaluate(qrels, run, "AP")


def test_unfitted_models_and_frames():
    with refused(InvalidInputError, code="not-fitted"):
        save_model(RidgeRanker(), "never.json")
    with refused(InvalidInputError, argument="data"):
        explain(RidgeRanker(), np.zeros((2, 2)))
