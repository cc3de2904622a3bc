"""An experiment is a value: it does not change, and its parts are the experiments that one would make anew."""

from __future__ import annotations

import numpy as np
import pytest

from truerank import Experiment


def random_lists(r, queries):
    qrels = {q: {f"d{k}": int(r.integers(0, 3)) for k in range(8)} for q in queries}
    runs = {name: {q: {f"d{k}": float(r.normal()) for k in range(8)} for q in queries} for name in "abc"}
    return qrels, runs


def figures(experiment):
    values = {name: one.per_query for name, one in experiment.evaluate().items()}
    found = experiment.compare(test="t").values()
    pairs = [(pair.a, pair.b, pair.difference, pair.p_adjusted) for one in found for pair in one.pairs]
    return values, pairs, experiment.baseline, experiment.states_baseline, [one.code for one in experiment.remarks]


@pytest.mark.parametrize("seed", range(6))
def test_parts_equal_experiments_that_are_made_anew(seed):
    r = np.random.default_rng(seed)
    queries = [f"q{k}" for k in range(24)]
    qrels, runs = random_lists(r, queries)
    segments = {q: str(r.integers(0, 3)) for q in queries}
    whole = Experiment(qrels, runs, "AP nDCG@5", baseline="b", segments=segments)
    before = figures(whole)
    for name, part in whole.by_segment().items():
        own = {q: one for q, one in qrels.items() if segments[q] == name}
        some = {system: {q: run[q] for q in own} for system, run in runs.items()}
        anew = Experiment(own, some, "AP nDCG@5", baseline="b")
        assert part.query_ids.tolist() == anew.query_ids.tolist()
        np.testing.assert_equal(figures(part), figures(anew))
        assert part.coverage.to_dict() == anew.coverage.to_dict()
    np.testing.assert_equal(figures(whole), before)
    some = whole.with_measures(["AP"])
    assert list(some.compare(test="t")) == ["AP"]
    np.testing.assert_equal(figures(some)[0], figures(Experiment(qrels, runs, ["AP"], baseline="b"))[0])


@pytest.mark.parametrize("topics", ["common", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_a_part_has_a_coverage_of_its_own(seed, topics):
    r = np.random.default_rng(seed)
    queries = [f"q{k}" for k in range(24)]
    qrels, runs = random_lists(r, queries)
    segments = {q: "xyz"[k % 3] for k, q in enumerate(queries)}
    runs["a"] = {
        q: run for q, run in runs["a"].items() if q in queries[::12] or (segments[q] != "x" and r.random() < 0.7)
    }
    for systems in (runs, {"a": runs["a"]}):
        given = None if topics == "common" and len(systems) == 1 else topics
        whole = Experiment(qrels, systems, "AP", topics=given, segments=segments)
        for name, part in whole.by_segment().items():
            own = {q: one for q, one in qrels.items() if segments[q] == name}
            some = {system: {q: run[q] for q in own if q in run} for system, run in systems.items()}
            anew = Experiment(own, some, "AP", topics=given)
            assert part.coverage.to_dict() == anew.coverage.to_dict()
            assert [one.code for one in part.remarks] == [one.code for one in anew.remarks]
            assert part.facts()["coverage"]["qrels"] == 8
            assert "8 topics of the segment" in str(part.coverage)


def test_an_experiment_does_not_change():
    qrels, runs = random_lists(np.random.default_rng(0), ["1", "2", "3", "4", "5", "6"])
    for experiment in (Experiment(qrels, runs), Experiment.of_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.5, 3.0]})):
        for name in ("baseline", "judged", "measures", "remarks"):
            with pytest.raises(AttributeError):
                setattr(experiment, name, None)
