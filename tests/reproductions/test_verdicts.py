"""The rules of the verdicts: trivial rankers and wrong figures pass none of them. And the command `all`."""

from __future__ import annotations

import copy
import hashlib
import json

import numpy as np
import pytest
from reproductions.__main__ import main
from reproductions.letor import experiment as letor
from reproductions.letor.learners import LEARNERS
from reproductions.pages import PUBLISHED, RESULTS, VERDICTS
from reproductions.protocol import TRIVIAL

from reproductions import __main__ as command
from reproductions import verdicts
from support.small_collections import write_collections

RECORDED = [path for path in sorted(RESULTS.glob("*.json")) if path.stem != "second-check"]


def recorded(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_figure_is_reproduced_within_its_tolerance_on_either_side():
    none = {}
    assert verdicts.figure("a", "b", 0.45, 0.42, 0.02, none)["verdict"] == "not reproduced"
    assert verdicts.figure("a", "b", 0.45, 0.431, 0.02, none)["verdict"] == "reproduced"
    assert verdicts.figure("a", "b", 0.45, 0.60, 0.02, none)["verdict"] == "not reproduced"


@pytest.mark.parametrize(
    ("trivial", "verdict"),
    [
        ((0.44, 0.3), "undecided"),
        ((0.44, 0.01), "reproduced"),
        ((0.465, 0.01), "undecided"),
        ((0.3, 0.3), "reproduced"),
    ],
)
def test_a_figure_near_that_of_a_trivial_ranker_must_be_significantly_above_it(trivial, verdict):
    assert verdicts.figure("a", "b", 0.45, 0.451, 0.02, {"best single feature": trivial})["verdict"] == verdict


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


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_recorded_verdicts_follow_from_the_recorded_figures(path):
    content = recorded(path)
    assert verdicts.ROWS[content["experiment"]](content["figures"]) == content["verdicts"] != []
    assert content["settings"]["quick"] is False


def put_adarank(found, trivial):
    trials = found["trials"]
    for key in trials["tests"]:
        for name in trials["features"]:
            if key.startswith(f"{name} - "):
                trials["tests"][key] = trials["tests"][key.replace(name, trivial, 1)]
    for name in trials["features"]:
        trials["means"][name] = trials["means"][trivial]
    trials["groups"]["MAP"]["AdaRank.MAP"] = [0.0] * len(trials["groups"]["groups"])
    for peak in trials["peaks"].values():  # a constant or a single column does not change from round to round
        peak["round"] = 1
    single = {key.split(" (")[0]: one for key, one in trials["training"].items() if TRIVIAL[0] in key}
    tied = {"own measure ahead": 0, "behind": 0}
    for key, one in trials["training"].items():
        measure = "AP(rel=2)" if key.startswith("AP") else "nDCG@5"
        one |= single[measure.split(" (")[0]] if trivial == TRIVIAL[0] else tied


def put_letor(found, trivial):
    for part in found["collections"].values():
        own = part["trivial"][trivial]
        for name, row in part["learners"].items():
            row["test"]["MAP"] = own["MAP"]
            for one in part["trivial"].values():
                one["p"][name] = 1.0 if one is own else 0.0


def put_descent(found, trivial):
    for label in verdicts.published("descent")["tau"]:
        found["diabetes"][label]["tau"]["mean"] = found["trivial"][trivial]
    tests = found["splits"]["tests"]
    tests["descent - linear SVR, defaults"] = tests[f"{trivial} - linear SVR, defaults"]


def put_calibration(found, trivial):
    for part in found["panels"].values():
        part["against"] = found["trivial"][trivial]
        for test in part["sign_tests"]:  # as with constant scores: every decision is as good as the other method's
            for one in (test[loss] for loss in verdicts.LOSSES if verdicts.LAPLACE in (test["a"], test["b"])):
                one["wins"] = one["losses"] = 0
        part["ours"][verdicts.LAPLACE]["errors"] = max(one["errors"] for one in part["ours"].values())


def put_oblivious(found, trivial):
    for curves in found["curves"].values():  # no trees, no curves that rise
        for number in ("figure 3", "figure 4", "figure 5", "figure 6"):
            curves[number] = {name: [1.0] for name in curves[number]}
    for part in found["collections"].values():
        for scope, one in part["list-net"].items():
            one["ranklib"] = part["trivial"][trivial][scope]["ranklib"]
        for stop, scopes in part["tests"].items():
            for scope, tests in scopes.items():
                for test in tests:
                    key = test["figure"]
                    value = part["trivial"][trivial][scope][key]
                    a, b = (np.mean(part["values"][stop][kind][scope][key]) for kind in (test["a"], test["b"]))
                    # On squared error the claim is that b is better than a, so the trivial ranker replaces b.
                    test["difference"], test["p"] = (value - b if key == "ranklib" else a - value), 0.0


def put_stand_ins(found, trivial):
    put_svm_map(found["functions"], trivial)
    for part in found["boosting"].values():
        for key, test in part["tests"].items():
            name, others = key.split(" - ", 1)
            if name not in TRIVIAL:
                test |= part["tests"][f"{trivial} - {others}"]
                part["means"][name] = part["means"][trivial]


def put_svm_map(found, trivial):
    for part in [part for part in found.values() if isinstance(part, dict) and "against" in part]:
        values = part["trivial"][trivial]
        for method in [name for name in part["MAP"] if name in values]:
            part["MAP"][method] = values["MAP"]
            for one in part["trivial"].values():
                p = 1.0 if one is values else one[method]["p"]
                one[method] = {"difference": values["MAP"] - one["MAP"], "p": p}
        for name, test in part["against"].items():
            test["difference"], test["p"] = -values[name]["difference"], values[name]["p"]


PUT = {
    "adarank": put_adarank,
    "letor": put_letor,
    "descent": put_descent,
    "calibration": put_calibration,
    "oblivious": put_oblivious,
    "svm-map": put_svm_map,
    "stand-ins": put_stand_ins,
}


@pytest.mark.parametrize("trivial", TRIVIAL)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_trivial_ranker_in_the_place_of_ours_passes_no_verdict(path, trivial):
    content = recorded(path)
    name = content["experiment"]
    PUT[name](content["figures"], trivial)
    rows = verdicts.ROWS[name](content["figures"])
    assert len(rows) == len(content["verdicts"])
    assert [row for row in rows if row["verdict"] == "reproduced"] == []


def reverse(value):
    """Reverse every comparison and add 0.1 to every figure of ours, but not to published and trivial ones."""
    if isinstance(value, dict) and "features" in value and "peaks" in value:
        for name in value["features"]:  # worse than everything: no measure, and every pair wrong
            for measure, one in value["means"][name].items():
                one["mean"] = 2.0 if measure.startswith("pairs") else -1.0
        for peak in value["peaks"].values():
            peak["round"] = 1
    if isinstance(value, dict) and "bm25" in value and "features" not in value:
        for name in [row for row in value["means"] if row.startswith("AdaRank")]:
            for one in value["means"][name].values():
                one["mean"] = -1.0
    if isinstance(value, dict) and "sign_tests" in value:
        for test in value["sign_tests"]:
            for loss in verdicts.LOSSES:
                test[loss]["wins"], test[loss]["losses"] = test[loss]["losses"], test[loss]["wins"]
        value["ours"][verdicts.LAPLACE]["errors"] = 10**6
    if isinstance(value, dict) and "figure 3" in value:
        for curves in value.values():
            for curve in curves.values():
                curve[-1] = 10.0 - curve[-1] if len(curve) else 0.0
    if isinstance(value, dict) and "list-net" in value:
        for one in value["list-net"].values():
            one["ranklib"] -= 0.1
    for one in value if isinstance(value, list) else ():
        reverse(one)
    if isinstance(value, dict):
        if isinstance(value.get("difference"), float):
            value["difference"] = -value["difference"]
        if "behind" in value:
            value["own measure ahead"], value["behind"] = value["behind"], value["own measure ahead"]
        for key in ("MAP", "mean"):
            if isinstance(value.get(key), float):
                value[key] += 0.1
        if isinstance(value.get("MAP"), dict):
            for key, one in value["MAP"].items():
                value["MAP"][key] = one + 0.1 if isinstance(one, float) else one
        for key, one in value.items():
            if key not in ("published", "trivial"):
                reverse(one)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_wrong_figures_fail_every_verdict(path):
    content = recorded(path)
    wrong = copy.deepcopy(content["figures"])
    reverse(wrong)
    rows = verdicts.ROWS[content["experiment"]](wrong)
    for right, row in zip(content["verdicts"], rows, strict=True):
        assert row["item"] == right["item"]
        if right["verdict"] == "reproduced":
            assert row["verdict"] in ("not reproduced", "undecided"), row
            assert row["verdict"] == "not reproduced" or "p is large" in row["why"], row


def test_a_difference_by_rounding_is_no_floor():
    """Constant scores that differ by rounding from one another do not pass in the place of a real difference."""
    trivial = {"constant scores": (1.2e-13, 0.0)}
    assert verdicts.claim("a", "b", "above", 136.2, 0.0027, trivial)["verdict"] == "reproduced"
    assert verdicts.claim("a", "b", "above", 2e-13, 0.0, trivial)["verdict"] == "undecided"


def test_a_quick_run_has_no_verdict():
    rows = verdicts.without_verdicts([verdicts.claim("a", "b", "above", 1.0, 0.001, {})])
    assert [row["verdict"] for row in rows] == ["none"]


def test_every_printed_claim_has_a_verdict_or_a_reason():
    for paper in json.loads((PUBLISHED / "claims.json").read_text(encoding="utf-8")):
        rows = recorded(RESULTS / f"{paper['result']}.json")["verdicts"]
        printed = [row for row in rows if not row["setting_of"]]
        assert printed
        assert all(row["verdict"] in VERDICTS for row in printed)
        assert {row["setting_of"] for row in rows} - {""} <= {row["item"] for row in printed}
        assert all(claim and why for claim, why in paper["not tried"])


def test_the_total_counts_finished_experiments_and_takes_its_pace_from_those_of_this_run(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(command.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(command, "WORK", dict.fromkeys(command.EXPERIMENTS, (60.0, 6.0)))
    total = command._Total(quick=False)
    n = len(command.EXPERIMENTS)
    assert str(total) == f"0 % done, about {n} min to go"
    total.add("adarank", before=True)
    now[0] += 120.0  # the next takes twice as long as expected
    total.add("letor", before=False)
    assert str(total) == f"{200 / n:.0f} % done, about {2 * (n - 2)} min to go"
    assert set(command.EXPERIMENTS) <= set(command.WORK)


def test_all_prints_one_object_writes_a_manifest_and_resumes(tmp_path, monkeypatch, capsys):
    root = write_collections(tmp_path / "data", 8, (0.3, 0.0, 0.1), 3)
    experiments = {"letor": "reproductions.letor.experiment", "svm-map": "reproductions.svm_map"}
    monkeypatch.setattr(command, "EXPERIMENTS", experiments)
    few = [learner for learner in LEARNERS if learner.name in ("random", "ridge", "RankSVM")]
    monkeypatch.setattr(letor, "LEARNERS", few)
    words = ["all", "--data", str(root), "--quick", "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    first = capsys.readouterr()
    assert "svm-map: left out" in first.err
    assert "letor; 0 % done" in first.err
    found = json.loads(first.out)
    assert [row["item"] for row in found["rows"]] == ["RankSVM, ohsumed MAP"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest == found["manifest"]
    assert manifest["settings"]["letor"]["quick"] is True
    assert manifest["conventions"]["letor"]["collections, ohsumed"] == "letor3"
    name, digest = next(iter(manifest["data"].items()))
    assert hashlib.sha256((tmp_path / "data" / name).read_bytes()).hexdigest() == digest
    # Again: the finished experiment is not run, and the table is printed.
    monkeypatch.setattr(letor, "run", lambda args: pytest.fail("run again"))
    assert main(words) == 0
    again = capsys.readouterr()
    assert "letor: finished before" in again.err
    assert "Published, ours, verdict" in again.out
    assert found["rows"][0]["verdict"] in again.out
    monkeypatch.setattr(letor, "run", lambda args: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main([word for word in words if word != "--quick"]) == 130  # other settings are run
