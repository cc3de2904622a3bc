"""Bounds over the unjudged documents against every completion, and when a comparison is put in doubt."""

from __future__ import annotations

import numpy as np
import pytest

from reference import unjudged as reference
from truerank.cli import main
from truerank.io.trec import as_qrels, as_run, judge_run
from truerank.measures import parse_measure
from truerank.measures.ranking import Ranking
from truerank.significance.unjudged import difference_bounds, doubtful_pairs


def made(seed: int) -> tuple[dict, dict, dict]:
    """Qrels and two runs over two topics, of which some documents are unjudged, and some have equal scores."""
    rng = np.random.default_rng(seed)
    qrels, runs = {}, ({}, {})
    for topic in "12":
        documents = [f"d{i}" for i in range(6)]
        known = rng.choice(6, 3, replace=False)
        qrels[topic] = {documents[i]: int(rng.integers(-1, 3)) for i in known} | {"elsewhere": 2}
        for run in runs:
            own = rng.choice(6, 4, replace=False)
            run[topic] = {documents[i]: float(rng.integers(0, 4)) for i in own}
    return qrels, *runs


@pytest.mark.parametrize("name", ["P@3", "DCG@3", "DCG(gain='exponential')@4", "RBP(.8)", "P(rel=2)@2", "RBP(.5)@3"])
@pytest.mark.parametrize("convention", ["trec", "ranklib"])
def test_the_bounds_are_the_ends_over_every_completion(name, convention):
    measure = parse_measure(name, convention)
    for seed in range(4):
        qrels, a, b = made(seed)
        known = as_qrels(qrels)
        found = difference_bounds(measure, *(Ranking(*judge_run(known, as_run(run))) for run in (a, b)))
        assert found is not None
        for end, expected in zip(found, reference.bounds(measure, qrels, a, b, (0, 1, 2))):
            np.testing.assert_allclose(end, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["nDCG@3", "AP", "RR", "P(ties='average')@3", "P(judged_only=True)@3"])
def test_other_measures_have_no_bounds(name):
    qrels, a, b = made(0)
    found = [Ranking(*judge_run(as_qrels(qrels), as_run(run))) for run in (a, b)]
    assert difference_bounds(parse_measure(name, "trec"), *found) is None


def test_a_pair_is_doubtful_where_one_run_is_judged_more(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    topics = [str(t) for t in range(12)]
    qrels = {t: {"a": 1, "b": 0, "c": 0, "d": 0} for t in topics}
    whole = {t: {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0} for t in topics}
    other = {t: {"x": 5.0, "a": 4.0, "b": 3.0, "c": 2.0, "y": 1.0} for t in topics}
    known = as_qrels(qrels)
    judged = {name: Ranking(*judge_run(known, as_run(run))) for name, run in (("whole", whole), ("other", other))}
    (found,) = doubtful_pairs(parse_measure("P@2", "trec"), judged, [("other", "whole")])
    assert (found.share_a, found.share_b) == (0.5, 1.0)
    assert (found.low, found.high) == (0.0, 0.5)
    assert np.isnan(found.p)  # the same difference on every topic
    assert doubtful_pairs(parse_measure("P@2", "trec"), judged, [("whole", "whole")]) == []
    as_run(whole).write("whole.run", tag="w")
    as_run(other).write("other.run", tag="o")
    with open("q", "w") as stream:
        stream.write("".join(f"{t} 0 {d} {g}\n" for t, own in qrels.items() for d, g in own.items()))
    assert main(["compare", "--qrels", "q", "whole.run", "other.run", "--measures", "P@2 nDCG@2"]) == 0
    out = capsys.readouterr().out
    assert "share of judged documents in the first 2: whole 1.0000, other 0.5000" in out
    assert "shares of judged documents differ by the same amount on every topic" in out
    assert "other against whole" in out
    assert "other against whole, +0.0000 to +0.5000" in out
    assert "bounds for unjudged documents are known only for DCG, P, RBP" in out
    assert main(["evaluate", "--qrels", "q", "other.run", "--measures", "P@2"]) == 0
    assert "judged documents in the first 2 ranks of P@2: 0.5000" in capsys.readouterr().out


def test_doubts_are_corrected_over_the_pairs_and_say_which_test():
    rng = np.random.default_rng(0)
    qrels = as_qrels({str(t): {f"d{k}": 1 for k in range(4)} for t in range(30)})
    draws = {f"run{i}": {t: rng.permutation(8)[:4] for t in qrels.to_dict()} for i in range(4)}
    runs = {
        name: as_run({t: {f"d{k}": float(-r) for r, k in enumerate(own)} for t, own in lists.items()})
        for name, lists in draws.items()
    }
    judged = {name: Ranking(*judge_run(qrels, run)) for name, run in runs.items()}
    pairs = [(a, b) for a in judged for b in judged if a < b]
    measure = parse_measure("P@4", "trec")
    alone = {pair: doubtful_pairs(measure, judged, [pair]) for pair in pairs}
    together = {(one.a, one.b): one for one in doubtful_pairs(measure, judged, pairs)}
    for pair, one in together.items():
        assert one.n_pairs == 6
        if alone[pair]:
            assert one.p >= alone[pair][0].p
            assert (one.low, one.high) == (alone[pair][0].low, alone[pair][0].high)
