"""One table of all experiments: the rules of its verdicts, its manifest, and `reproduce all` on made-up collections."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from reproductions.__main__ import main
from reproductions.letor import experiment as letor
from reproductions.letor.learners import LEARNERS
from reproductions.pages import RESULTS

from reproductions import __main__ as command
from reproductions import verdicts
from support.small_collections import write_collections


def test_a_figure_is_reproduced_within_its_tolerance_on_either_side():
    none = {}
    assert verdicts.figure("a", "b", 0.45, 0.42, 0.02, none)["verdict"] == "not reproduced"
    assert verdicts.figure("a", "b", 0.45, 0.431, 0.02, none)["verdict"] == "reproduced"
    assert verdicts.figure("a", "b", 0.45, 0.60, 0.02, none)["verdict"] == "not reproduced"


def test_a_figure_that_a_trivial_ranker_has_too_is_undecided():
    near = {"best single feature": (0.44, 0.3)}
    assert verdicts.figure("a", "b", 0.45, 0.451, 0.02, near)["verdict"] == "undecided"
    near["best single feature"] = (0.44, 0.01)
    assert verdicts.figure("a", "b", 0.45, 0.451, 0.02, near)["verdict"] == "reproduced"


@pytest.mark.parametrize(
    ("difference", "p", "trivial", "verdict"),
    [
        (0.1, 0.01, {}, "reproduced"),
        (0.0007, 0.751, {}, "undecided"),
        (0.1, float("nan"), {}, "undecided"),
        (-0.1, 0.01, {}, "not reproduced"),
        (-0.1, 0.4, {}, "undecided"),
        (0.1, 0.01, {"constant scores": (0.05, 0.001)}, "undecided"),
        (0.1, 0.01, {"constant scores": (0.05, 0.2)}, "reproduced"),
        (0.1, 0.01, {"constant scores": (-0.05, 0.001)}, "reproduced"),
    ],
)
def test_a_claim_needs_its_direction_and_a_small_p(difference, p, trivial, verdict):
    assert verdicts.claim("a", "b", "above", difference, p, trivial)["verdict"] == verdict


TRIVIAL = ("constant scores", "best single feature")


def recorded(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(RESULTS.glob("*.json")) if path.stem != "second-check"],
    ids=lambda path: path.stem,
)
def test_the_recorded_verdicts_follow_from_the_recorded_figures(path):
    """What needs values by query (LETOR's paired tests) is recorded as verdicts alone."""
    content = json.loads(path.read_text(encoding="utf-8"))
    name = content["experiment"]
    if name != "letor":
        assert verdicts.ROWS[name](content["figures"]) == content["verdicts"]
    assert content["settings"]["quick"] is False
    assert content["verdicts"] or name not in verdicts.ROWS


@pytest.mark.parametrize("trivial", TRIVIAL)
def test_a_trivial_ranker_in_the_place_of_ours_passes_no_verdict(trivial):
    """Every table once more, with constant scores or the best single feature as the ranker that each row is about."""
    rows = []
    found = recorded("svm-map")["figures"]
    for title in ("all runs", "without the best run"):
        part = found[title]
        values = part["trivial"][trivial]
        for method in [name for name in part["MAP"] if name in values]:
            part["MAP"][method] = values["MAP"]
            for one in part["trivial"].values():
                one[method] = {
                    "difference": values["MAP"] - one["MAP"],
                    "p": 1.0 if one is values else one[method]["p"],
                }
        for name, test in part["against"].items():
            if name in values:
                test["difference"], test["p"] = -values[name]["difference"], values[name]["p"]
    rows += verdicts.svm_map_rows(found)
    found = recorded("adarank")["figures"]["trials"]
    for key in list(found["tests"]):
        for name in found["features"]:
            if key.startswith(f"{name} - ") and "LETOR's column" not in key:
                found["tests"][key] = found["tests"][key.replace(name, trivial, 1)]
    for one in found["training"].values():
        one["own measure ahead"] = 0  # both models are the same ranking
    rows += verdicts.adarank_rows({"trials": found})
    found = recorded("descent")["figures"]
    for label in verdicts.published("descent")["tau"]:
        found["diabetes"][label]["tau"]["mean"] = found["trivial"][trivial]
    found["splits"]["tests"]["descent - linear SVR, defaults"] = found["splits"]["tests"][
        f"{trivial} - linear SVR, defaults"
    ]
    rows += verdicts.descent_rows(found)
    found = recorded("calibration")["figures"]
    for part in found["panels"].values():
        part["against"] = found["trivial"][trivial]
    rows += verdicts.calibration_rows(found)
    found = recorded("oblivious")["figures"]
    for part in found["collections"].values():
        for stop, scopes in part["tests"].items():
            for scope, tests in scopes.items():
                for test in tests:
                    key = test["figure"]
                    if key in ("ranklib", "mse"):
                        value = part["trivial"][trivial][scope][key]
                        a, b = (np.mean(part["values"][stop][kind][scope][key]) for kind in (test["a"], test["b"]))
                        # On squared error the claim is that b is better than a: the trivial ranker takes b's place.
                        test["difference"], test["p"] = (value - b if key == "ranklib" else a - value), 0.0
    rows += verdicts.oblivious_rows(found)
    assert len(rows) > 60
    assert [row for row in rows if row["verdict"] == "reproduced"] == []


def test_a_trivial_learner_passes_no_verdict_on_letors_table():
    rng = np.random.default_rng(0)
    good, flat = rng.uniform(0.3, 0.6, 100), rng.uniform(0.2, 0.5, 100)
    trivial = {
        name: {"MAP": float(values.mean()), "ap_by_query": values.tolist()}
        for name, values in zip(TRIVIAL, (flat, good), strict=True)
    }
    for values in (flat, good):
        row = {"published": {"MAP": float(values.mean())}, "test": {"MAP": float(values.mean())},
               "ap_by_query": values.tolist()}  # fmt: skip
        part = {"official": {"plain": {"AdaRank-MAP": row}}, "trivial": trivial}
        rows = verdicts.letor_rows({"collections": {"ohsumed": part}})
        assert [row["verdict"] for row in rows] == ["undecided"]


def test_all_prints_one_object_and_writes_a_manifest(tmp_path, monkeypatch, capsys):
    root = write_collections(tmp_path / "data", 8, (0.3, 0.0, 0.1), 3)
    monkeypatch.setattr(command, "EXPERIMENTS", {"letor": "reproductions.letor.experiment"})
    few = [learner for learner in LEARNERS if learner.name in ("random", "ridge", "RankSVM")]
    monkeypatch.setattr(letor, "known_learners", lambda only=None: few)
    monkeypatch.setattr(letor, "figures", lambda args: [])
    words = ["all", "--data", str(root), "--quick", "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
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
    assert main(words) == 0
    again = capsys.readouterr()
    assert "letor: finished before" in again.err
    assert "Published, ours, verdict" in again.out
    assert found["rows"][0]["verdict"] in again.out


def test_what_was_finished_otherwise_is_run_again(tmp_path):
    path, rows = tmp_path / "a" / "verdicts.json", [verdicts.figure("a", "b", 0.45, 0.42, 0.02, {})]
    assert verdicts.finished(path, {"seed": 0}) is None
    verdicts.write_finished(path, {"seed": 0}, rows, {"all": "trec"})
    kept = verdicts.finished(path, {"seed": 0})
    assert (kept["rows"], kept["conventions"]) == (rows, {"all": "trec"})
    assert verdicts.finished(path, {"seed": 1}) is None
    path.write_text(path.read_text().replace('"version": "', '"version": "0.'))
    assert verdicts.finished(path, {"seed": 0}) is None
    path.write_text("{")
    assert verdicts.finished(path, {"seed": 0}) is None
