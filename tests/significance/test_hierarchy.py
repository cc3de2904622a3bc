"""The Bayesian answers by segment: against dense grids, limits, odd segments, and in tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reference.segments import probabilities
from truerank import Experiment
from truerank.cli import main
from truerank.significance import posterior
from truerank.significance.bayes import SCALE, cautious
from truerank.significance.hierarchy import FREEDOM, SPREAD, segments_posterior


def columns(parts):
    d = np.full((max(map(len, parts)), len(parts)), np.nan)
    for k, own in enumerate(parts):
        d[: len(own), k] = own
    return d


@pytest.mark.parametrize("seed", range(8))
def test_probabilities_are_those_of_dense_grids(seed):
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(rng.normal(0.02, 0.05), rng.uniform(0.05, 0.15), int(rng.integers(5, 40)))
        for _ in range(int(rng.integers(1, 5)))
    ]
    if seed == 6:
        parts[0][:] = 0.0
    if seed == 7:
        parts[0][0] = 1.0
    found = segments_posterior(columns(parts), 0.01).posterior
    expected = probabilities(parts, 0.01, SCALE, SPREAD, FREEDOM)
    np.testing.assert_allclose(found.worse, expected[:, 0], atol=5e-3)
    np.testing.assert_allclose(found.better, expected[:, 2], atol=5e-3)


def test_segments_borrow_from_each_other():
    rng = np.random.default_rng(1)
    parts = [rng.normal(0.04, 0.1, 60) for _ in range(5)]
    parts[0] = parts[0][:8] - parts[0][:8].mean()
    found = segments_posterior(columns(parts), 0.0)
    alone = posterior(columns(parts), 0.0)
    assert found.mean[0] == pytest.approx(0.0, abs=1e-12)
    assert 0.01 < found.shrunk[0] < found.mean[1:].mean()
    assert found.posterior.better[0] > alone.better[0] + 0.2
    assert (np.abs(found.shrunk[1:] - found.mean[1:]) < 0.02).all()
    assert (found.posterior.low < found.shrunk).all()
    assert (found.shrunk < found.posterior.high).all()


def test_a_segment_that_clearly_differs_is_not_pulled_over():
    rng = np.random.default_rng(2)
    parts = [rng.normal(0.05, 0.05, 80) for _ in range(4)] + [rng.normal(-0.1, 0.05, 80)]
    found = segments_posterior(columns(parts), 0.01).posterior
    assert found.worse[4] > 0.999
    assert (found.better[:4] > 0.99).all()


def test_turned_scaled_and_reordered_differences_give_the_same():
    rng = np.random.default_rng(3)
    d = columns([rng.normal(0.03, 0.1, n) for n in (7, 30, 55)])
    found, turned = segments_posterior(d, 0.01), segments_posterior(-d, 0.01)
    np.testing.assert_allclose(found.posterior.better, turned.posterior.worse, atol=1e-9)
    np.testing.assert_allclose(found.posterior.low, -turned.posterior.high, atol=1e-9)
    small = segments_posterior(1e-6 * d, 1e-8)
    np.testing.assert_allclose(small.posterior.better, found.posterior.better, atol=1e-9)
    other = segments_posterior(d[:, ::-1], 0.01)
    np.testing.assert_allclose(other.posterior.better[::-1], found.posterior.better, atol=1e-9)


def test_odd_segments():
    rng = np.random.default_rng(4)
    few, empty, zero, many = rng.normal(0.1, 0.1, 4), np.full(3, np.nan), np.zeros(9), rng.normal(0.1, 0.1, 60)
    found = segments_posterior(columns([few, empty, zero, many]), 0.01, 0.4)
    assert found.queries.tolist() == [4, 0, 9, 60]
    assert np.isnan(found.posterior.better).tolist() == [True, True, False, False]
    assert np.isnan(found.posterior.equivalent).tolist() == [True, True, True, False]
    assert np.isnan(found.mean).tolist() == [False, True, False, False]
    for d in (np.zeros((8, 2)), np.full((8, 2), 0.1), np.full((8, 2), np.nan), np.zeros((0, 2)), np.zeros((9, 0))):
        nothing = segments_posterior(d, 0.01, 0.4)
        assert np.isnan(nothing.posterior).all()


def test_equivalence_is_not_borrowed():
    rng = np.random.default_rng(5)
    d = columns([rng.normal(0, 0.002, n) for n in (49, 200, 300)])
    found, alone = segments_posterior(d, 0.01, 0.2).posterior, cautious(d, 0.01, 0.2)
    assert np.isnan(found.equivalent[0])
    assert (found.equivalent[1:] > 0.95).all()
    assert (found.equivalent[1:] <= alone.equivalent[1:]).all()
    assert (segments_posterior(d, 0.01, 5.0).posterior.equivalent[1:] < 0.95).all()
    assert np.isnan(segments_posterior(d, 0.01).posterior.equivalent).all()


def test_a_comparison_with_segments_has_their_probabilities(tmp_path, capsys):
    rng = np.random.default_rng(6)
    gold = [{"query": f"q{t}", "relevant": ["d0"], "kind": "long" if t % 3 else "short"} for t in range(90)]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(one) + "\n" for one in gold))
    for name, worst in (("old", 6), ("new", 3)):
        lines = []
        for t in range(90):
            order = rng.permutation(np.arange(1, 8)).tolist()
            order.insert(int(rng.integers(0, worst)), 0)
            lines += [f"q{t} Q0 d{d} {place} {-place} {name}\n" for place, d in enumerate(order)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    runs = [str(tmp_path / "old.run"), str(tmp_path / "new.run")]
    found = Experiment(str(tmp_path / "gold.jsonl"), runs, "RR", segments="kind").compare().practical(0.01)
    assert [(one.segment, one.queries) for one in found.segments] == [("long", 60), ("short", 30)]
    assert all(one.better > 0.9 for one in found.segments)
    assert len(found.to_frame()) == 3
    command = ["compare", "--qrels", str(tmp_path / "gold.jsonl"), *runs, "--measure", "RR", "--rope", "0.01"]
    assert main([*command, "--segments", "kind", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["practical"]["RR"]
    assert [one["segment"] for one in figures["segments"]] == ["long", "short"]
    assert figures["segments"][0]["verdict"] == found.segments[0].verdict
    assert "shrunk" not in figures["pairs"][0]
    assert main([*command, "--segments", "kind"]) == 0
    assert "shrunk" in capsys.readouterr().out
    assert main(command) == 0
    assert "shrunk" not in capsys.readouterr().out
