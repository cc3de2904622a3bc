"""`python -m reproductions oblivious` on small made-up collections: protocol, tables, resuming, box plots."""

from __future__ import annotations

import json
from importlib import util
from itertools import product

import numpy as np
import pytest
from reproductions.__main__ import main
from scipy.stats import mannwhitneyu

from reproductions import oblivious, protocol
from support.small_collections import write_collections
from truerank import ObliviousBoosting
from truerank.measures import parse_measure


@pytest.fixture(scope="module")
def small_collections(tmp_path_factory):
    return write_collections(tmp_path_factory.mktemp("collections"), 9, (0.4, 0.0, 0.2), 2)


@pytest.fixture(autouse=True)
def little_work(monkeypatch):
    monkeypatch.setattr(oblivious, "COMMON", oblivious.COMMON | {"n_estimators": 5})
    monkeypatch.setattr(oblivious, "LISTNET", oblivious.LISTNET[:1])
    monkeypatch.setattr(oblivious, "P_SWAPS", oblivious.P_SWAPS[:2])
    monkeypatch.setattr(oblivious, "SMOOTHINGS", oblivious.SMOOTHINGS[:2])
    # In two rounds, larger penalties diverge on so few rows.
    leaves = [{"kind": "polynomial", "smoothing": value, "solution": "two-rounds"} for value in (1.0, 100.0)]
    monkeypatch.setitem(oblivious.GRID, "two-rounds", [{"leaves": one, "depth": 1} for one in leaves])


def reproduce(root, out, capsys, *words):
    assert main(["oblivious", "--data", str(root), "--out", str(out), "--quick", *words]) == 0
    return capsys.readouterr()


def test_protocol_tables_and_resuming(small_collections, tmp_path, capsys, monkeypatch):
    result = json.loads(reproduce(small_collections, tmp_path, capsys, "--json", "--seed", "3").out)
    assert result["runs"] == 2
    mq2008 = result["collections"]["mq2008"]
    assert mq2008["convention"] == "letor4"
    assert set(mq2008["values"]["nDCG@5"]) == set(oblivious.KINDS)

    # A run is the ranker of the chosen setting and the run's seed, cut at the best tree of the validation queries.
    collection = protocol.load_collection(small_collections, "mq2008")
    folds = protocol.letor_folds(collection)
    better = {"nDCG@5": max, "squared error": min}
    for stop, kind in product(better, oblivious.KINDS):
        settings = mq2008["settings"][kind][stop]
        tried = {json.dumps(params): value for params, value in settings["tried"]}
        assert len(tried) == 2
        assert tried[json.dumps(settings["params"])] == settings["valid"] == better[stop](tried.values())
        found = []
        for fold in folds:
            ranker = ObliviousBoosting(
                **settings["params"], n_estimators=5, borders=32, bootstrap="row", measure="nDCG@5", random_state=4
            ).fit(fold.train, eval_set=fold.valid)
            errors = [((scores - fold.valid.y) ** 2).mean() for scores in ranker.staged_predict(fold.valid)]
            by_ndcg = np.argmax(ranker.validation_scores_)
            n = 1 + {"nDCG@5": by_ndcg, "squared error": np.argmin(errors)}[stop]
            scores = list(ranker.staged_predict(fold.test))[n - 1]
            found.append(
                [
                    parse_measure("nDCG@5", "ranklib").mean(fold.test.judgements(), scores),
                    np.mean((scores - fold.test.y) ** 2),
                    n,
                ]
            )
        values = mq2008["values"][stop][kind]
        for i, name in enumerate(("ranklib", "mse", "trees")):
            assert values["fold 1"][name][1] == pytest.approx(found[0][i])  # the second run's seed is 3 + 1
            assert values["five folds"][name][1] == pytest.approx(np.mean(found, axis=0)[i])

    pairs = [(by, test) for by in better for test in mq2008["tests"][by]["five folds"]]
    assert len(pairs) == 20  # five pairs with both ways of solving polynomials, two figures, two stops
    for by, test in pairs:
        a, b = (mq2008["values"][by][test[side]]["five folds"][test["figure"]] for side in ("a", "b"))
        assert test["difference"] == pytest.approx(np.mean(a) - np.mean(b))
        two_sided = mannwhitneyu(a, b).pvalue
        agree = (mannwhitneyu(a, b).statistic - 2) * test["difference"] >= 0
        assert test["p"] == pytest.approx(two_sided / 2 if agree else 1 - two_sided / 2)
    for figure, n in (("figure 3", 2), ("figure 4", 2), ("figure 5", 4), ("figure 6", 4)):
        curves = result["curves"]["mq2008"][figure]
        assert len(curves) == n
        assert all(len(curve) == 5 for curve in curves.values())
    assert set(mq2008["list-net"]["five folds"]) == {"ranklib"}

    if util.find_spec("matplotlib"):
        names = ["figure-2-length", "figure-2-links"]
        names += [f"{name}-figure-{number}" for name in ("mq2008", "ohsumed") for number in (3, 6, 7, 8)]
        for name in names:
            assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"

    # The same command finds everything done.
    monkeypatch.setattr(oblivious, "fit", lambda *a: pytest.fail("computed again"))
    words = ("--seed", "3", "--collections", "mq2008")
    assert set(json.loads(reproduce(small_collections, tmp_path, capsys, "--json", *words).out)["curves"]) == {"mq2008"}
    printed = reproduce(small_collections, tmp_path, capsys, "--seed", "3")
    assert "finished pieces found" in printed.err
    assert f"{np.mean(mq2008['values']['nDCG@5']['fuzzy']['five folds']['ranklib']):.4f} ±" in printed.out
    assert "2.8e-09" in printed.out  # the published p
    assert ".4543 ± 0.0005" in printed.out  # the published figure


def test_after_a_kill_it_goes_on(small_collections, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(oblivious, "figures", lambda result: [])
    monkeypatch.setattr(oblivious, "COLLECTIONS", ("ohsumed",))
    whole = json.loads(reproduce(small_collections, tmp_path / "whole", capsys, "--json").out)
    honest, calls = oblivious.fit, []

    def killed(*args):
        calls.append(args)
        if len(calls) == 40:
            raise KeyboardInterrupt
        return honest(*args)

    monkeypatch.setattr(oblivious, "fit", killed)
    words = ["oblivious", "--data", str(small_collections), "--out", str(tmp_path / "parts"), "--quick"]
    assert main([*words, "--json"]) == 130
    capsys.readouterr()
    monkeypatch.setattr(oblivious, "fit", honest)
    again = reproduce(small_collections, tmp_path / "parts", capsys, "--json")
    assert "finished pieces found" in again.err
    assert json.loads(again.out) == whole
