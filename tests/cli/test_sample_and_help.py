"""The sample as files, help that knows the ranker, and names that were nearly right."""

from __future__ import annotations

import json

import pytest

from truerank.cli import COMMANDS, GROUPS, main
from truerank.cli.options import parameters_text
from truerank.io.letor.read import read_letor
from truerank.io.trec import read_qrels, read_run
from truerank.models.registry import RANKERS


def test_sample_writes_what_the_commands_take(tmp_path, capsys):
    assert main(["sample", str(tmp_path / "s"), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert {path.name for path in (tmp_path / "s").iterdir()} == set(written)
    parts = [read_letor(tmp_path / "s" / f"{role}.txt.gz") for role in ("train", "vali", "test")]
    assert [part.n_queries for part in parts] == [135, 45, 45]
    assert not set(parts[0].query_ids.tolist()) & set(parts[2].query_ids.tolist())
    assert read_qrels(tmp_path / "s" / "qrels.txt").n_queries == 225
    assert read_run(tmp_path / "s" / "bm25.run").n_queries == 225


@pytest.mark.parametrize("name", RANKERS)
def test_help_describes_the_parameters_of_every_ranker(name):
    text = parameters_text(name)
    assert text.startswith(f"\nparameters of {name}")
    from truerank.models.registry import ranker_class

    for parameter in ranker_class(name)().get_params(deep=False):
        assert parameter in text


def test_train_help_shows_the_ranker(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--ranker", "adarank", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "parameters of adarank" in out
    assert "patience : int" in out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["trian"], "'train'"),
        (["train", "x", "--ranker", "ada-rnk", "--model", "m"], "'adarank'"),
        (["train", "x", "--ranker", "adarank", "--set", "n_estimator=3", "--model", "m"], "'n_estimators'"),
        (
            ["train", "x", "--ranker", "oblivious-boosting", "--set", "num_leaves=31", "--model", "m"],
            "it is called depth",
        ),
        (["train", "x", "--ranker", "ridge", "--prepare", "minmax-in-query", "--model", "m"], "'min-max-in-query'"),
        (["train", "--list", "ranksvmm"], "'rank-svm'"),
    ],
)
def test_typos_get_the_nearest_name(words, meant, capsys):
    assert main(words) == 2
    assert meant in capsys.readouterr().err


def test_sample_leaves_other_files_alone(tmp_path, capsys):
    (tmp_path / "README.md").write_text("mine")
    assert main(["sample", str(tmp_path)]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["sample", str(tmp_path)]) == 0  # the same again
    (tmp_path / "bm25.run").write_text("a run of mine")
    (tmp_path / "qrels.txt").unlink()
    capsys.readouterr()
    assert main(["sample", str(tmp_path)]) == 1
    assert "already contains bm25.run" in capsys.readouterr().err
    assert (tmp_path / "bm25.run").read_text() == "a run of mine"
    assert not (tmp_path / "qrels.txt").exists()
    assert main(["sample", str(tmp_path), "--replace"]) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert before["README.md"] == b"mine"


def test_help_groups_every_command_and_hides_rare_options(capsys):
    def shown(*words):
        try:
            code = main(list(words))
        except SystemExit as stop:  # of a help
            code = stop.code
        return code, "".join(capsys.readouterr())

    code, text = shown("--help")
    assert code == 0
    assert all(f"  {name.partition(' ')[0]} " in text for name in COMMANDS)
    titles = [line for line in text.splitlines() if line and not line.startswith((" ", "usage", "Train", "truerank"))]
    assert titles == [*(title for title in GROUPS if title in titles), "More"]
    assert set(GROUPS) - set(titles) <= {"Judge"}
    assert "search" in shown("text", "--help")[1]
    assert "--max-line" not in shown("train", "--help")[1]
    assert "--max-line" in shown("train", "--help-all")[1]
    assert shown("search", "x") == (2, shown("search", "x")[1])
    assert "`truerank text search`" in shown("search", "x")[1]
    assert "requires one of index, search" in shown("text", "serch")[1]
