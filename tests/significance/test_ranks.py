"""Sets of ranks: against all orders of the systems, in comparisons and their tables, coverage of true ranks."""

from __future__ import annotations

import numpy as np
import pytest

from reference.ranks import rank_sets as reference
from truerank.experiments.experiment import Experiment
from truerank.significance import compare_values, rank_sets


def test_sets_are_those_of_all_orders_that_contradict_no_pair():
    rng = np.random.default_rng(0)
    for _ in range(60):
        k = int(rng.integers(1, 7))
        better = np.triu(rng.random((k, k)) < rng.random(), 1)  # relations without a circle need not be transitive
        shuffled = rng.permutation(k)
        better = better[np.ix_(shuffled, shuffled)]
        assert rank_sets(better) == reference(better)


def test_a_long_chain_reaches_from_end_to_end():
    better = np.eye(104, k=1, dtype=bool)
    assert rank_sets(better) == [(k, k) for k in range(1, 105)]


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(1)
    shared = rng.random(60)
    return {f"s{k}": shared + 0.012 * k + 0.1 * rng.random(60) for k in range(5)}


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_a_comparison_of_all_pairs_has_the_sets_of_its_pairs(values, higher_is_better):
    found = compare_values(values, baseline=None, measure="AP", higher_is_better=higher_is_better)
    names = list(values)
    better = np.zeros((5, 5), dtype=bool)
    for pair in found.pairs:
        if pair.p_adjusted < 0.05:
            a, b = (pair.a, pair.b) if pair.difference > 0 else (pair.b, pair.a)
            better[names.index(a), names.index(b)] = True
    assert 0 < better.sum() < 10 or better.all()
    assert list(found.rank_sets.values()) == reference(better)
    first = min(found.rank_sets, key=lambda name: found.rank_sets[name][0])
    assert first in (("s4", "s3") if higher_is_better else ("s0", "s1"))
    assert found.to_dict()["rank_sets"] == {name: list(own) for name, own in found.rank_sets.items()}
    assert "ranks" in found._table("text").splitlines()[0]


@pytest.mark.parametrize(
    "settings", [{"test": "sign"}, {"correction": "none"}, {"correction": "benjamini-hochberg"}, {"baseline": "s0"}]
)
def test_there_is_no_set_without_control_of_the_family(values, settings):
    found = compare_values(values, **({"baseline": None} | settings))
    assert found.rank_sets == {}
    assert " ranks" not in str(found)


def test_a_report_has_the_sets_of_the_first_measure():
    qrels = {str(q): {"x": 1, "y": 0, "z": 0} for q in range(12)}
    run = lambda order: {q: {d: -float(k) for k, d in enumerate(order)} for q in qrels}  # noqa: E731
    experiment = Experiment(qrels, {"best": run("xyz"), "half": run("yxz"), "same": run("zxy")}, "RR P@1")
    evidence = experiment.evidence()
    assert evidence.rank_sets == {"best": (1, 1), "half": (2, 3), "same": (2, 3)}
    assert "2 to 3" in evidence.to_markdown()
    assert evidence.to_dict()["rank_sets"]["best"] == [1, 1]
