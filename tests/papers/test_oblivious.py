"""`truerank reproduce oblivious` on small made-up collections: protocol, tables, resuming, box plots."""

from __future__ import annotations

import json
from importlib import util

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from support.small_collections import write_collections
from truerank import ObliviousBoosting, cli
from truerank.measures import parse_measure
from truerank.papers import oblivious, protocol


@pytest.fixture(scope="module")
def small_collections(tmp_path_factory):
    return write_collections(tmp_path_factory.mktemp("collections"), 9, (0.4, 0.0, 0.2), 2)


@pytest.fixture(autouse=True)
def little_work(monkeypatch):
    monkeypatch.setattr(oblivious, "COMMON", oblivious.COMMON | {"n_estimators": 5, "patience": 2})
    monkeypatch.setattr(oblivious, "LISTNET", oblivious.LISTNET[:1])


def reproduce(root, out, capsys, *words):
    assert cli.main(["reproduce", "oblivious", "--data", str(root), "--out", str(out), "--quick", *words]) == 0
    return capsys.readouterr()


def test_protocol_tables_and_resuming(small_collections, tmp_path, capsys, monkeypatch):
    result = json.loads(reproduce(small_collections, tmp_path, capsys, "--json", "--seed", "3").out)
    assert result["runs"] == 3
    mq2008 = result["collections"]["mq2008"]
    assert mq2008["convention"] == "letor4"
    assert set(mq2008["values"]) == {"constant", "fuzzy", "polynomial"}

    # A run is the ranker of the chosen setting and the run's seed, stopped by the validation queries.
    collection = protocol.load_collection(small_collections, "mq2008")
    folds = protocol.letor_folds(collection)
    for kind in ("constant", "fuzzy", "polynomial"):
        settings = mq2008["settings"][kind]
        assert [v for _, v in settings["tried"]][[p for p, _ in settings["tried"]].index(settings["params"])] == max(
            v for _, v in settings["tried"]
        )
        found = []
        for fold in folds:
            ranker = ObliviousBoosting(
                **({"leaves": kind} | settings["params"]), n_estimators=5, patience=2, borders=32, bootstrap="row",
                measure="nDCG@5", random_state=4,
            ).fit(fold.train, eval_set=fold.valid)  # fmt: skip
            scores = ranker.predict(fold.test)
            found.append(
                [
                    parse_measure("nDCG@5", "ranklib").mean(fold.test.judgements(), scores),
                    parse_measure("nDCG@5", "letor4").mean(fold.test.judgements(), scores),
                    np.mean((scores - fold.test.y) ** 2),
                ]
            )
        values = mq2008["values"][kind]
        for i, name in enumerate(("ranklib", "letor4", "mse")):
            assert values["fold 1"][name][1] == pytest.approx(found[0][i])  # the second run's seed is 3 + 1
            assert values["five folds"][name][1] == pytest.approx(np.mean(found, axis=0)[i])

    for test in mq2008["tests"]["five folds"]:
        a, b = (mq2008["values"][test[side]]["five folds"][test["figure"]] for side in ("a", "b"))
        assert test["difference"] == pytest.approx(np.mean(a) - np.mean(b))
        two_sided = mannwhitneyu(a, b).pvalue
        agree = (mannwhitneyu(a, b).statistic - 4.5) * test["difference"] >= 0
        assert test["p"] == pytest.approx(two_sided / 2 if agree else 1 - two_sided / 2)
    assert set(mq2008["list-net"]["five folds"]) == {"ranklib", "letor4"}

    if util.find_spec("matplotlib"):
        for name in ("mq2008", "ohsumed"):
            assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"

    # The same command finds everything done.
    monkeypatch.setattr(oblivious, "fit", lambda *a: pytest.fail("computed again"))
    printed = reproduce(small_collections, tmp_path, capsys, "--seed", "3")
    assert "finished pieces found" in printed.err
    assert f"{mq2008['settings']['fuzzy']['valid']:.4f}" in printed.out
    assert f"{np.mean(mq2008['values']['fuzzy']['five folds']['ranklib']):.4f} ±" in printed.out
    assert ".4543 ± 0.0005" in printed.out  # the published figure


def test_after_a_kill_it_goes_on(small_collections, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(oblivious, "draw", lambda *args: None)
    whole = json.loads(reproduce(small_collections, tmp_path / "whole", capsys, "--json").out)
    honest, calls = oblivious.fit, []

    def killed(*args):
        calls.append(args)
        if len(calls) == 40:
            raise KeyboardInterrupt
        return honest(*args)

    monkeypatch.setattr(oblivious, "fit", killed)
    words = ["reproduce", "oblivious", "--data", str(small_collections), "--out", str(tmp_path / "parts"), "--quick"]
    assert cli.main([*words, "--json"]) == 130
    capsys.readouterr()
    monkeypatch.setattr(oblivious, "fit", honest)
    again = reproduce(small_collections, tmp_path / "parts", capsys, "--json")
    assert "finished pieces found" in again.err
    assert json.loads(again.out) == whole
