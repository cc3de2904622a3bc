"""`train --checkpoint` without a cluster: a killed fit continues, and the model has the bits of an undisturbed fit."""

from __future__ import annotations

import os

import pytest

from support.processes import run
from truerank import load_sample, write_letor
from truerank.cli import main


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.txt"
    write_letor(load_sample().take_queries(range(60)), path)
    return str(path)


KILLED = """
import os, sys
from truerank.cli import main
from truerank.cluster.checkpoint import Checkpoint
add, left = Checkpoint.add, 100
def add_and_end(log, what, value):
    global left
    add(log, what, value)
    left -= 1
    if not left:
        os._exit(9)  # at once, as a kill does
Checkpoint.add = add_and_end
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_train_continues_and_ends_with_the_same_bits(rows, tmp_path):
    command = ["train", rows, "--set", "n_estimators=100", "--set", "leaves=constant"]
    whole, resumed, folder = tmp_path / "whole.json", tmp_path / "resumed.json", tmp_path / "progress"
    assert main([*command, "--model", str(whole)]) == 0
    again = [*command, "--model", str(resumed), "--checkpoint", str(folder)]
    rounds = folder / "rounds.bin"
    assert run(KILLED, *again).returncode == 9
    assert not resumed.exists()
    with open(rounds, "ab") as file:
        file.write(b"the beginning of a record")  # the last write before the kill can be incomplete
    kept = rounds.read_bytes()
    assert len(kept) > 10_000
    assert main([*again, "--set", "depth=3"]) != 0  # another fit leaves the progress alone
    assert rounds.read_bytes() == kept
    assert main(again) == 0
    assert resumed.read_bytes() == whole.read_bytes()
    assert not rounds.exists()


@pytest.mark.parametrize("ranker", ["rank-svm", "list-net"])
def test_a_checkpoint_changes_no_bit_of_a_model(ranker, rows, tmp_path):
    models = [tmp_path / "plain.json", tmp_path / "kept.json"]
    for model, more in zip(models, ([], ["--checkpoint", str(tmp_path / "progress")])):
        assert main(["train", rows, "--ranker", ranker, "--model", str(model), *more]) == 0
    assert models[0].read_bytes() == models[1].read_bytes()
    assert os.listdir(tmp_path / "progress") == []


def test_rankers_without_rounds_are_named(rows, tmp_path, capsys):
    out = ["--model", str(tmp_path / "m.json"), "--checkpoint", str(tmp_path / "progress")]
    assert main(["train", rows, "--ranker", "pairwise-descent", *out]) == 2
    assert "pairwise-descent" in capsys.readouterr().err
    assert main(["train", rows, "--prepare", "z-score-in-query", *out]) == 2
    assert "--prepare" in capsys.readouterr().err
    assert not (tmp_path / "progress").exists()
