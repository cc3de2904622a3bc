"""A recorded command runs again with equal figures, and says which file or figure differs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from truerank.cli import main


@pytest.fixture
def ready(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [f"{t} 0 d{d} {rng.integers(0, 3)}\n" for t in range(15) for d in range(12)]
    (tmp_path / "q").write_text("".join(lines))
    for name in "abc":
        rows = [f"{t} Q0 d{d} 0 {rng.random():.6f} {name}\n" for t in range(15) for d in rng.permutation(12)]
        (tmp_path / f"{name}.run").write_text("".join(rows))
    return tmp_path


COMPARE = ["compare", "--qrels", "q", "a.run", "b.run", "c.run", "--measure", "AP nDCG@5", "--seed", "3"]


@pytest.mark.parametrize("command", [COMPARE, [*COMPARE, "--json"], [*COMPARE, "--rope", "0.02", "--all-pairs"],
                                     ["evaluate", "--qrels", "q", "a.run"]])  # fmt: skip
def test_a_recorded_command_is_reproduced(ready, capsys, command):
    assert main([*command, "--record", "r.json"]) == 0
    told = json.loads((ready / "r.json").read_text())
    assert told["command"] == command
    assert {"q", "a.run"} <= set(told["files"])
    capsys.readouterr()
    assert main(["reproduce", "r.json"]) == 0
    assert capsys.readouterr().out.startswith("reproduced")
    assert main(["reproduce", "r.json", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"] == []


CROSS = ["cross-validate", "rows.txt", "--measures", "AP", "--ranker"]


@pytest.mark.parametrize("more", [["ridge"], ["ridge", "--grid", "alpha=1,100"],
                                  ["ridge", "--against", "single-feature"], ["ridge", "--curve"],
                                  ["pairwise-descent", "--seeds", "0-2"],
                                  ["pairwise-descent", "--against", "ridge", "--seeds", "0-2"]])  # fmt: skip
def test_learners_are_reproduced_and_other_seeds_rows_and_versions_are_told(ready, capsys, more):
    rng = np.random.default_rng(1)
    rows = [
        f"{rng.integers(0, 3)} qid:{q} 1:{rng.random():.4f} 2:{rng.random():.4f}\n" for q in range(30) for _ in "12345"
    ]
    (ready / "rows.txt").write_text("".join(rows))
    assert main([*CROSS, *more, "--record", "r.json"]) == 0
    assert main(["reproduce", "r.json"]) == 0
    told = json.loads((ready / "r.json").read_text())
    assert "rows.txt" in told["files"]
    other = ["1-3" if word == "0-2" else word for word in told["command"]]
    other += [] if "--seeds" in more else ["--seed", "9"]
    changed = told | {"command": other, "versions": told["versions"] | {"numba": "0.1"}}
    (ready / "r.json").write_text(json.dumps(changed))
    capsys.readouterr()
    assert main(["reproduce", "r.json", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["differences"]
    assert set(report["versions"]) == {"numba"}
    (ready / "rows.txt").write_text("".join(rows[5:]))
    assert main(["reproduce", "r.json", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["changed_files"] == ["rows.txt"]


def test_a_changed_file_is_named(ready, capsys):
    assert main([*COMPARE, "--record=r.json"]) == 0
    (ready / "b.run").write_text((ready / "b.run").read_text() + "14 Q0 d99 0 0.5 b\n")
    assert main(["reproduce", "r.json", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["changed_files"] == ["b.run"]


def test_a_changed_figure_is_named(ready, capsys):
    assert main([*COMPARE, "--record", "r.json"]) == 0
    told = json.loads((ready / "r.json").read_text())
    told["figures"]["measures"]["AP"]["means"]["a.run" if "a.run" in told["figures"]["means"] else "a"] += 1e-6
    told["versions"]["numpy"] = "0.1"
    (ready / "r.json").write_text(json.dumps(told))
    capsys.readouterr()
    assert main(["reproduce", "r.json", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [name for name, *_ in report["differences"]] == ["measures.AP.means.a"]
    assert set(report["versions"]) == {"numpy"}


@pytest.mark.parametrize(
    "command",
    [
        ["train", "x"],
        ["compare", "a", "--record", "z"],
        [],
        ["compare", "--history=h"],
        ["evaluate", "--cluster", "tcp://x:1"],
        ["cross-validate", "rows.txt", "--scores=x"],
        ["cross-validate", "rows.txt", "--state", "x"],
        [["compare"]],
    ],
)
def test_only_commands_that_read_run_again(ready, command):
    (ready / "r.json").write_text(json.dumps({"schema": "reproduce/1", "command": command, "files": {},
                                               "versions": {}, "figures": {}}))  # fmt: skip
    assert main(["reproduce", "r.json"]) == 2
    (ready / "r.json").write_text(json.dumps({"schema": "reproduce/1", "command": COMPARE, "files": {}}))
    assert main(["reproduce", "r.json"]) == 2
    (ready / "r.json").write_text("{")
    assert main(["reproduce", "r.json"]) == 2


def test_the_paragraph_names_what_was_done(ready, capsys):
    assert main([*COMPARE, "--cite"]) == 0
    text = capsys.readouterr().out
    for words in ("3 systems", "15 queries", "AP, nDCG@5", "convention trec", "randomisation test", "seed 3",
                  "max-T", r"\cite{truerank,jarvelin2002}", "@book{westfall1993,", "@article{holm1979,"):  # fmt: skip
        assert words in text
    assert main([*COMPARE, "--cite", "--test", "wilcoxon", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["methods"]
    assert "@article{wilcoxon1945," in told
    assert "westfall" not in told
    assert told.count("\n@") == told.count("\n}")
