"""A model that changes while another is trained in its place, and two runs that replace it: nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import truerank
from truerank import ObliviousBoosting, RankingData, RidgeRanker, save_model, write_letor
from truerank.cli import common, main, parser
from truerank.core.errors import InvalidInputError
from truerank.core.locks import locked


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model that learned nothing, newer queries that it is worse on, and another model."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, old = rng.normal(size=(2, 1200, 3))
    data = RankingData(X, (X[:, 0] > 0.5).astype(int), np.repeat(np.arange(100), 12))
    noise = RankingData(old, rng.integers(0, 2, 1200), np.repeat(np.arange(100, 200), 12))
    save_model(ObliviousBoosting("constant", n_estimators=2, depth=2, random_state=0).fit(noise), "model.json")
    save_model(RidgeRanker().fit(data), "other.json")
    write_letor(data, "newer.txt")
    return tmp_path


LINE = ["retrain", "model.json", "newer.txt", "--previous", "before.json"]


def test_what_was_compared_is_what_is_replaced(folder):
    before = Path("model.json").read_bytes()
    assert main(LINE) == 0
    assert Path("before.json").read_bytes() == before
    assert Path("model.json").read_bytes() != before
    assert not list(folder.glob(".*lock*"))


@pytest.mark.parametrize("more", [[], ["--model", "new.json"]])
def test_a_model_that_changed_while_its_successor_was_trained(folder, monkeypatch, capsys, more):
    def meanwhile(*args, retrain=truerank.retrain, **settings):
        found = retrain(*args, **settings)
        os.replace("other.json", "model.json")
        return found

    other = Path("other.json").read_bytes()
    monkeypatch.setattr(truerank, "retrain", meanwhile)
    assert main([*LINE, *more]) == 1
    assert "has changed since it was read" in capsys.readouterr().err
    assert Path("model.json").read_bytes() == other
    assert not Path("before.json").exists()
    assert not Path("new.json").exists()
    assert Path("model.json.history.json").exists()  # the held-out queries were used


@pytest.mark.parametrize("held", ["model.json", "model.json.history.json"])
def test_a_second_run_is_refused(folder, capsys, held):
    before = Path("model.json").read_bytes()
    with locked(held):
        assert main(LINE) == 1
    assert f"process {os.getpid()} (this one) is writing to it" in capsys.readouterr().err
    assert Path("model.json").read_bytes() == before
    assert not Path("model.json.history.json").exists()


def test_a_model_that_is_only_read_needs_no_lock(folder):
    with locked("model.json"):
        assert main([*LINE, "--model", "new.json"]) == 0


def test_the_place_of_the_new_model_is_locked(folder, capsys):
    with locked("new.json"):
        assert main([*LINE, "--model", "new.json"]) == 1
    assert f"new.json: process {os.getpid()} (this one) is writing to it" in capsys.readouterr().err
    assert not Path("new.json").exists()
    assert not Path("model.json.history.json").exists()


@pytest.mark.parametrize(("more", "option"), [([], "--model"), (["--model", "new.json"], "--history")])
def test_a_model_in_a_folder_that_cannot_be_written(folder, capsys, monkeypatch, more, option):
    """Nothing is compared, so that no look at held-out queries is spent, and the option that helps is named."""

    def refused(path, check=parser.check_target):
        if os.path.dirname(path) == "released":
            raise InvalidInputError(f"{path}: cannot be written: Permission denied")
        check(path)

    os.mkdir("released")
    os.replace("model.json", "released/model.json")
    line = [word.replace("model.json", "released/model.json") for word in LINE]
    with monkeypatch.context() as patch:
        patch.setattr(parser, "check_target", refused)
        patch.setattr(truerank, "retrain", None)  # not reached
        assert main([*line, *more]) == 1
    assert f"Permission denied. Name another file with {option} FILE" in capsys.readouterr().err
    assert main([*line, "--model", "new.json", "--history", "history.json", "--margin", "0.5"]) == 0
    assert os.listdir("released") == ["model.json"]


def test_files_of_the_command_must_differ(folder, capsys):
    for more in (["--history", "model.json"], ["--model", "new.json", "--history", "new.json"]):
        assert main([*LINE, *more]) == 2
        assert "must be different files" in capsys.readouterr().err


def test_crash_reports_hold_no_credentials(folder, monkeypatch, capsys):
    def broken(*_):
        raise RuntimeError("sent key-of-mine")

    monkeypatch.setenv("TRUERANK_ENGINE_API_KEY", "key-of-mine")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    line = [*LINE, "--set", "x=http://me:secret@host/?q=secret", "--candidate", "key-of-mine.json"]
    monkeypatch.setattr(common, "load_ranker", broken)
    assert main(line) == 70
    assert "key-of-mine" not in capsys.readouterr().err
    report = next(folder.glob("truerank-report-*")).read_text()
    assert "key-of-mine" not in report
    assert "secret" not in report
    assert "'retrain', 'model.json', 'newer.txt'" in report


def test_losses_within_a_margin_do_not_add_up_over_models_in_turn(tmp_path, capsys):
    """Each model would have a history of its own, in which no earlier one is named."""
    (tmp_path / "model.json").write_text("{}")
    words = [
        "retrain",
        str(tmp_path / "model.json"),
        "new.txt",
        "--margin",
        "0.2",
        "--model",
        str(tmp_path / "next.json"),
    ]
    assert main(words) == 2
    assert "Add --history FILE" in capsys.readouterr().err
