"""Pools of runs, fusion without learning, and features of runs, against their definitions and ranx."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reference import fusion as reference
from support.made_up_runs import random_qrels, random_runs
from support.refusals import refused
from truerank import fuse
from truerank.core.errors import InvalidInputError
from truerank.features.fusion import METHODS, WEIGHTED_METHODS
from truerank.features.run_features import KINDS, MinMax, ReciprocalRank, ScoreBins, parse_features
from truerank.features.run_pool import RunPool
from truerank.io.trec import as_run, judge_run
from truerank.measures import AP, nDCG


def lists_of(runs, topic):
    return [run.get(topic, {}) for run in runs.values()]


def by_topic(pool, values):
    return {
        topic: dict(zip(pool.doc_ids[a:b].tolist(), values[a:b].tolist()))
        for topic, a, b in zip(pool.query_ids.tolist(), pool.offsets, pool.offsets[1:])
    }


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", METHODS)
def test_rules_equal_their_definitions(seed, method):
    runs = random_runs(seed)
    pool = RunPool(runs)
    for topic, found in by_topic(pool, METHODS[method](pool)).items():
        assert found == pytest.approx(reference.fused(lists_of(runs, topic), method), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("method", WEIGHTED_METHODS)
def test_weighted_rules_equal_their_definitions_and_their_errors(method):
    runs, weights = random_runs(3), [0.5, 0.0, 2.0, -1.0]
    pool, rule = RunPool(runs), WEIGHTED_METHODS[method]
    for topic, found in by_topic(pool, rule(pool, weights)).items():
        expected = reference.fused(lists_of(runs, topic), method, weights)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for wrong in ([1.0], [1.0, 2.0, 3.0, np.nan]):
        with refused(InvalidInputError, argument="weights"):
            rule(pool, wrong)
    with refused(InvalidInputError, argument="weights"):
        fuse(runs, method)
    assert fuse(runs, method, weights=weights).tag == method


def test_errors_of_names_and_settings():
    runs = random_runs(3)
    with refused(InvalidInputError, argument="method"):
        fuse(runs, "combmnz")
    with refused(InvalidInputError, argument="weights"):
        fuse(runs, "rrf", weights=[1, 1, 1, 1])
    with refused(InvalidInputError, argument="k"):
        METHODS["rrf"](RunPool(runs), np.nan)


def test_fused_lists_are_cut_and_ranked_by_score_then_id():
    fused = fuse({"a": {"q": {"x": 1.0, "y": 1.0, "z": 1.0}}, "b": {"p": {"w": 2.0}}}, "rrf", depth=2)
    assert fused.query_ids.tolist() == ["q", "p"]
    assert fused.doc_ids.tolist() == ["z", "y", "w"]
    # In any order of documents, topics and lines.
    runs = random_runs(1)
    turned = {
        name: {topic: dict(reversed(documents.items())) for topic, documents in reversed(run.items())}
        for name, run in runs.items()
    }
    first, second = fuse(runs, "rrf").to_dict(), fuse(turned, "rrf").to_dict()
    assert {t: list(d.items()) for t, d in first.items()} == {t: list(second[t].items()) for t in first}


@pytest.mark.parametrize("seed", range(4))
def test_features_equal_their_definitions(seed):
    runs = random_runs(seed)
    pool = RunPool(runs)
    for name in KINDS:
        if name in ("score-bins", "engine-scores"):  # have tests of their own
            continue
        features = parse_features(name)
        X = features.matrix(pool, np.arange(pool.n_rows))
        assert X.shape[1] == len(features.names(pool.names)) == (1 if name == "agreement" else 4)
        for row, (topic, document) in enumerate(zip(pool.query_ids[pool.query_of_row].tolist(), pool.doc_ids)):
            expected = [reference.feature(lists_of(runs, topic), name, j, document) for j in range(X.shape[1])]
            np.testing.assert_allclose(X[row], expected, rtol=1e-6, atol=1e-6)


def test_features_do_not_depend_on_the_rows_beside_them():
    pool = RunPool(random_runs(7))
    features = parse_features("min-max + z-score + percentile + reciprocal-rank(k=3) + presence + agreement + gap")
    whole = features.matrix(pool, np.arange(pool.n_rows))
    some = np.array([3, 0, 17])
    np.testing.assert_array_equal(features.matrix(pool, some), whole[some])
    part = pool.take([4, 1])
    rows = np.concatenate([np.arange(pool.offsets[q], pool.offsets[q + 1]) for q in (4, 1)])
    np.testing.assert_array_equal(features.matrix(part, np.arange(part.n_rows)), whole[rows])


def test_score_bins_learn_from_the_chosen_rows_alone():
    pool = RunPool(random_runs(2, n_documents=40, ties=False))
    features = parse_features("score-bins(n=5)")
    train = np.arange(pool.offsets[3])
    edges = features.fit(pool, train)
    again = features.fit(pool.take([0, 1, 2]), train)
    assert all((a == b).all() for a, b in zip(edges, again))
    X = features.matrix(pool, np.arange(pool.n_rows), edges)
    scaled = parse_features("min-max").matrix(pool, np.arange(pool.n_rows))
    there = parse_features("presence").matrix(pool, np.arange(pool.n_rows))
    expected = [(scaled[:, [j]] > e) & (there[:, [j]] > 0) for j, e in enumerate(edges)]
    np.testing.assert_array_equal(X, np.concatenate(expected, axis=1))
    binned = features.matrix(pool, np.arange(pool.n_rows), edges, binned=True)
    counts = np.stack([x.sum(axis=1) for x in expected], axis=1) + there
    np.testing.assert_array_equal(binned.codes, counts)


def test_text_and_value_are_inverses():
    features = MinMax(equal=1.0) + ReciprocalRank(k=7) + ScoreBins(n=3)
    assert parse_features(str(features)) == features
    of_numpy = ReciprocalRank(k=np.float64(30)) + ScoreBins(n=np.int64(7))
    assert str(of_numpy) == "reciprocal-rank(k=30) + score-bins(n=7)"
    for wrong in ("minmax", "min-max(k=3)", "min-max + min-max", "reciprocal-rank(k=-1)", "gap(", "", 3):
        with pytest.raises(InvalidInputError):
            parse_features(wrong)


@pytest.mark.parametrize("seed", range(4))
def test_judgements_of_a_list_equal_those_of_the_run(seed):
    runs, qrels = random_runs(seed), random_qrels(seed + 100)
    pool = RunPool(runs, qrels)
    for j, (name, run) in enumerate(runs.items()):
        own = pool.run_of_entry == j
        rows, scores = pool.rows[own], pool.scores[own]
        for measure in (AP(convention="trec"), nDCG(convention="trec") @ 5, AP(convention="trec", judged_only=True)):
            expected = measure.per_query(*judge_run(qrels, as_run(run, name)))
            np.testing.assert_allclose(measure.per_query(pool.judgements(rows), scores), expected, atol=1e-12)


def test_pools_of_some_runs_and_topics_equal_pools_made_of_them():
    runs, qrels = random_runs(5), random_qrels(5)
    pool = RunPool(runs, qrels)
    made = RunPool({"run2": runs["run2"], "run0": runs["run0"]}, qrels)
    cut = pool.select_runs([2, 0])
    for name in ("offsets", "doc_ids", "list_offsets", "rows", "scores", "grades", "unretrieved_offsets"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(made, name), err_msg=name)
    for a, b in zip(cut.unretrieved_offsets, cut.unretrieved_offsets[1:]):
        assert sorted(cut.unretrieved[a:b]) == sorted(made.unretrieved[a:b])
    taken = pool.take([3])
    assert taken.query_ids.tolist() == ["3"]
    assert taken.doc_ids.tolist() == pool.doc_ids[pool.offsets[3] : pool.offsets[4]].tolist()


def test_findings_and_errors():
    pool = RunPool(random_runs(0))
    codes = {(finding["code"], finding["run"]): finding["topics"] for finding in pool.findings()}
    assert codes["missing-topic", "run3"] == ["0"]
    with refused(InvalidInputError, code="no-common-topic"):
        RunPool({"a": {"77": {"d": 1.0}}}, random_qrels(0))
    with refused(InvalidInputError, code="not-finite"):
        RunPool({"a": {"1": {"d": np.inf}}})
    for wrong in ({}, [], "runs.txt", 3):
        with pytest.raises(InvalidInputError):
            RunPool(wrong)
    for depth in (0, -1):
        with refused(InvalidInputError, argument="depth"):
            fuse(random_runs(0), "rrf", depth=depth)
    tied = RunPool({"a": {"1": {"d": 1.0, "e": 1.0}}, "b": {"1": {"d": 1.0}}})
    assert [finding["code"] for finding in tied.findings()] == ["all-tied"]


@pytest.mark.parametrize("method", [*METHODS, *WEIGHTED_METHODS])
def test_rules_equal_ranx_without_ties(method):
    golden = json.loads((Path(__file__).parent / "golden" / "ranx_fusion.json").read_text())
    pool = RunPool(golden["runs"])
    theirs = golden["fused"][method]
    weighted = method in WEIGHTED_METHODS
    found = by_topic(pool, WEIGHTED_METHODS[method](pool, golden["weights"]) if weighted else METHODS[method](pool))
    assert found.keys() == theirs.keys()
    for topic, scores in found.items():
        assert scores == pytest.approx(theirs[topic], rel=1e-9, abs=1e-9)


def awkward_ids(n, generator):
    """Ids that share long beginnings, that begin each other, beyond ASCII, with zeros in them."""
    letters = ["a", "b", "\0", "\x7f", "é", "中", "\U0001f600", "/"]
    long = "http://www.example.org/a/very/long/path/"
    ids = {long, long[:8], long[:16], long + "\0", long + "\0\0", *(str(k) for k in range(20))}
    while len(ids) < n:
        tail = "".join(generator.choice(letters, size=generator.integers(1, 12)).tolist())
        ids.add(long[: generator.integers(0, len(long))] + tail)
    return sorted(ids)


def test_rows_stand_by_descending_id_whatever_ids_look_like():
    generator = np.random.default_rng(0)
    ids = awkward_ids(900, generator)
    runs = {
        name: {
            topic: {ids[k]: float(generator.integers(5)) for k in generator.choice(len(ids), size=size, replace=False)}
            for topic, size in sizes.items()
        }
        for name, sizes in {"a": {"1": 800, "2": 1}, "b": {"2": 7, "1": 150, "3": 300}, "c": {"1": 0, "4": 0}}.items()
    }
    pool = RunPool({name: as_run(run, name) for name, run in runs.items()})
    assert pool.query_ids.tolist() == ["1", "2", "3", "4"]
    for i, topic in enumerate(pool.query_ids.tolist()):
        union = {name for run in runs.values() for name in run.get(topic, {})}
        assert pool.doc_ids[pool.offsets[i] : pool.offsets[i + 1]].tolist() == sorted(union, reverse=True)
        for j, run in enumerate(runs.values()):
            a, b = pool.list_offsets[i * 3 + j : i * 3 + j + 2]
            assert pool.doc_ids[pool.rows[a:b]].tolist() == reference.ranked(run.get(topic, {}))
            assert pool.scores[a:b].tolist() == sorted(run.get(topic, {}).values(), reverse=True)


@pytest.mark.parametrize("depth", [1, 7, 1000, None])
def test_best_rows_equal_a_stable_sort(depth):
    generator = np.random.default_rng(1)
    pool = RunPool(random_runs(4, n_documents=60))
    scores = generator.integers(4, size=pool.n_rows) / 2.0 - 1.0
    expected = [(np.argsort(-scores[a:b], kind="stable") + a)[:depth] for a, b in zip(pool.offsets, pool.offsets[1:])]
    assert pool.best(scores, depth).tolist() == np.concatenate(expected).tolist()
