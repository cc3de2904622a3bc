"""An experiment is a value: it does not change, and its parts are the experiments that one would make anew."""

from __future__ import annotations

import numpy as np
import pytest

from truerank import Experiment, RankingData, SingleFeature
from truerank.core.errors import InvalidInputError
from truerank.data.provenance import TrainingSketch
from truerank.measures import derived, ranking


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
    assert repr(whole) == "Experiment(a, b, c; AP, nDCG@5; 24 queries)"  # what a notebook shows of `by_segment`
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


def test_a_report_sorts_each_system_and_its_document_ids_once(monkeypatch):
    sorted_by_score, sorted_by_id = [], []

    def counted(module, name, calls):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, **more: calls.append(name) or function(*given, **more))

    counted(ranking, "_sorted_rows", sorted_by_score)
    counted(derived, "_falling_within", sorted_by_id)
    qrels, runs = random_lists(np.random.default_rng(0), [f"q{k}" for k in range(12)])
    runs = {name: {q: {**run, "unjudged": 0.3, "also": 0.3} for q, run in own.items()} for name, own in runs.items()}
    segments = {q: "ab"[k % 2] for k, q in enumerate(qrels)}
    Experiment(qrels, runs, "AP nDCG@5 P@3 nDCG(grades='truncated')@5", segments=segments).evidence().to_dict()
    assert (len(sorted_by_score), len(sorted_by_id)) == (3, 3)


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


def told(experiment):
    """All facts of an experiment and of its results, with the words of a whole."""
    results = [*experiment.evaluate().values(), *experiment.compare(test="t").values()]
    found = [experiment.facts(), [one.to_dict() for one in experiment.remarks], experiment.training_text]
    found += [experiment.topics_text.replace("the segment", "the qrels")]
    for one in results:
        shown = one.to_dict()
        found.append({name: shown[name] for name in ("training_queries", "remarks", "queries") if name in shown})
    return repr(found).replace("the segment", "the qrels"), figures(experiment)


def made(code, *given, **settings):
    """An experiment, or None if it is refused with a code."""
    try:
        return Experiment(*given, **settings)
    except InvalidInputError as error:
        if error.code != code:
            raise
    return None


def judged_rows(r, m, p):
    """Rows with odd grades, equal documents, queries of one document, and grades without a relevant document."""
    sizes = r.integers(1, 9, size=m)
    X = r.normal(size=(sizes.sum(), p)).round(int(r.integers(0, 3)))
    y = r.integers(0, 3, size=len(X)) * np.repeat(r.random(m) < 0.8, sizes)
    y = np.where(r.random(len(X)) < 0.02, r.choice([-1.0, 0.5, 20.0]), y)
    return RankingData(X, y, np.repeat([f"q{k}" for k in range(m)], sizes))


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.filterwarnings("ignore:SingleFeature learned nothing")
def test_facts_of_a_part_are_those_of_an_experiment_on_its_queries_alone(seed):
    r = np.random.default_rng(seed)
    m, p = int(r.integers(12, 60)), int(r.choice([2, 6]))
    data = judged_rows(r, m, p)
    rule = ["leave out", "keep"][seed % 2]
    models = {}
    for number in range(2):
        seen = data.take_queries(r.choice(m, size=int(r.integers(1, m // 2)), replace=False))
        models[f"m{number}"] = model = SingleFeature(number).fit(seen)
        if r.random() < 0.5:
            model.training_sketch_ = TrainingSketch.of(seen, size=int(r.integers(2, 40)))
    systems = models | {"scores": r.normal(size=data.n_rows)}
    segments = {query: str(r.integers(0, 3)) for query in data.query_ids.tolist()}
    convention = r.choice(["ranklib", "trec"])
    given = {"convention": convention, "training_queries": rule, "measures": "AP nDCG@5"}
    whole = made("training-queries", data, systems, segments=segments, **given)
    for name, part in ({} if whole is None else whole.by_segment()).items():
        chosen = np.flatnonzero([segments[query] == name for query in data.query_ids.tolist()])
        own = data.take_queries(chosen)
        rows = np.isin(data.query_index, chosen)
        anew = made("training-queries", own, models | {"scores": systems["scores"][rows]}, **given)
        assert ("mostly-training-queries" in [one.code for one in part.remarks]) == (anew is None)
        if anew is None:
            assert "No verdict" in part.compare(test="t").summary
            continue
        np.testing.assert_equal(told(part), told(anew))
        assert list(part.facts()["training_queries"]) == list(part.evaluate())[:2]


@pytest.mark.parametrize("seed", range(12))
def test_facts_of_a_part_of_runs_are_those_of_an_experiment_on_its_topics_alone(seed):
    r = np.random.default_rng(seed)
    queries = [f"q{k}" for k in range(18)]
    qrels, runs = random_lists(r, queries)
    for query in queries[::3]:
        qrels[query] = {f"d{k}": int(r.choice([-1, 0, 20])) for k in range(4)}
    runs["a"] = {q: run for q, run in runs["a"].items() if r.random() < 0.8}
    runs["b"] = {q: {f"x{d}": s for d, s in run.items()} if r.random() < 0.7 else run for q, run in runs["b"].items()}
    segments, given = {q: str(r.integers(0, 4)) for q in queries}, {"topics": ["common", "all"][seed % 2]}
    whole = Experiment(qrels, runs, "nDCG@5 AP", segments=segments, **given)
    for name, part in whole.by_segment().items():
        own = {q: one for q, one in qrels.items() if segments[q] == name}
        some = {system: {q: run[q] for q in own if q in run} for system, run in runs.items()}
        anew = made("no-shared-topic", own, some, "nDCG@5 AP", **given) if all(some.values()) else None
        if anew is not None:
            np.testing.assert_equal(told(part), told(anew))


def test_an_experiment_does_not_change():
    qrels, runs = random_lists(np.random.default_rng(0), ["1", "2", "3", "4", "5", "6"])
    for experiment in (Experiment(qrels, runs), Experiment.of_values({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.5, 3.0]})):
        for name in ("baseline", "judged", "measures", "remarks"):
            with pytest.raises(AttributeError):
                setattr(experiment, name, None)
