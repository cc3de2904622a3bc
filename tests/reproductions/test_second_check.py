"""The second check: the recorded draws, and variations that have the effects they name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reproductions.pages import RESULTS
from reproductions.protocol import load_collection
from reproductions.variations import Variation, varied

from reproductions import descent, second_check, variations
from support.small_collections import write_collections
from truerank.measures import parse_measure


def test_the_recorded_check_is_of_the_claims_that_are_drawn():
    found = json.loads((RESULTS / "second-check.json").read_text(encoding="utf-8"))["figures"]
    assert set(found) <= set(second_check.WORDS)
    for name, part in found.items():
        rows = second_check.drawn(name)
        assert list(part["claims"]) == [row["item"] for row in rows]
        for row in rows:
            one = part["claims"][row["item"]]
            assert list(one) == ["recorded", *second_check.VARIATIONS]
            assert one["recorded"] == {key: row[key] for key in ("published", "ours", "verdict", "why")}


def test_another_order_moves_rows_within_their_queries_alone(tmp_path):
    root = str(write_collections(tmp_path, 6, (0.3, 0.0, 0.1), 3))
    plain = load_collection(root, "mq2008").data
    with varied(Variation(rows=1)):
        moved = load_collection(root, "mq2008").data
    assert variations.current == Variation()
    np.testing.assert_array_equal(moved.offsets, plain.offsets)
    assert not np.array_equal(moved.X, plain.X)
    for a, b in zip(plain.offsets[:-1], plain.offsets[1:], strict=True):
        rows = [np.column_stack([data.X, data.y])[a:b] for data in (plain, moved)]
        assert sorted(map(tuple, rows[0])) == sorted(map(tuple, rows[1]))


def test_another_rule_for_ties_counts_the_worst_order():
    measure = parse_measure("nDCG@5", "ranklib")
    assert variations.with_ties(measure) is measure
    with varied(Variation(ties=True)):
        assert variations.with_ties(measure).setting("ties") == "pessimistic"
        tau_c = variations.kendall(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    assert tau_c == pytest.approx(8 / 9)  # 2 · 2 concordant · m / (n² (m - 1)), m = 2, n = 3
    assert variations.kendall(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx(2 / 6**0.5)


def test_the_listing_follows_its_seed():
    rows = descent.load_rows()
    taus = [descent.printed_demonstration(*rows, seed)["the article's listing as printed, its seed"] for seed in (0, 1)]
    assert taus[0]["tau"]["mean"] != taus[1]["tau"]["mean"]


def test_an_interrupted_check_goes_on(tmp_path, monkeypatch, capsys):
    tried = []

    def under(name, label, claims, args):
        tried.append(label)
        if label == "seed 2" and tried.count(label) == 1:
            raise KeyboardInterrupt
        return [row | {"ours": label} for row in claims]

    monkeypatch.setattr(second_check, "under", under)
    parser = second_check.argparse.ArgumentParser()
    second_check.configure(parser)
    args = parser.parse_args(["--data", str(tmp_path), "--paper", "descent", "--out", str(tmp_path / "out")])
    with pytest.raises(KeyboardInterrupt):
        second_check.run(args)
    second_check.run(args)
    assert tried == ["seed 1", "seed 2", "seed 2", "other ties", "other order"]
    assert "other order" in capsys.readouterr().out
