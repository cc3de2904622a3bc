"""What must hold of every measure: order of rows, names of queries, monotone transforms, degenerate data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.refusals import refused
from truerank import evaluate
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements, RankingData
from truerank.measures import MEASURES, Ranking, base, derived, parse_measure, parse_measures
from truerank.measures import ranking as ranking_module

NAMES = (
    "AP AP(rel=2)@3 nDCG nDCG@3 MeanNDCG RR WTA P@2 Success@2 R@2 Rprec ROC ERR ERR@2 RBP Bpref Judged@2 tau "
    "pairs(2,0) AP(ties='average') nDCG(ties='average')@2 RR(ties='average') ROC(ties='average') AP(ties='end')"
    " SetP SetP(relative=True) SetR SetF SetF(beta=2) SetAP GMAP infAP IPrec@0.3 Accuracy Accuracy@2 NumRet NumRel "
    "NumRelRet@2 NumQ DCG DCG(gain='linear')@2 SetP@2 nDCG(gains={0:1,1:4})@3"
)

query = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 4)), min_size=1, max_size=8)
collection = st.lists(query, min_size=1, max_size=6)


def arrays(queries):
    rows = [row for part in queries for row in part]
    qid = np.repeat(np.arange(len(queries)), [len(part) for part in queries])
    return np.array([g for g, _ in rows], float), np.array([s for _, s in rows], float), qid


@settings(max_examples=40)
@given(collection)
def test_values_lie_in_their_range(queries):
    y, scores, qid = arrays(queries)
    result = evaluate(y, scores, NAMES, qid=qid)
    for name, values in result.per_query.items():
        if name.startswith("Num"):
            assert ((values >= 0) & (values == np.floor(values))).all()
            continue
        if name.startswith("DCG"):
            assert (values >= 0).all()
            continue
        low = -1 if name == "tau" else 0
        kept = values[~np.isnan(values)]
        assert ((kept >= low - 1e-12) & (kept <= 1 + 1e-12)).all(), name
        assert len(kept) == len(values) or name.startswith(("pairs", "Accuracy"))


@settings(max_examples=40)
@given(collection, st.randoms(use_true_random=False))
def test_interleaved_rows_and_names_do_not_matter(queries, random):
    y, scores, qid = arrays(queries)
    scores = scores + np.arange(len(scores)) / 1000  # no ties: their order is the rows'
    order = list(range(len(y)))
    random.shuffle(order)
    names = np.array([f"query {q}" for q in qid])
    there = evaluate(y, scores, NAMES, qid=qid)
    back = evaluate(y[order], scores[order], NAMES, qid=names[order])
    place = {name: i for i, name in enumerate(back.query_ids.tolist())}
    moved = [place[f"query {q}"] for q in there.query_ids]
    for name, values in there.per_query.items():
        np.testing.assert_allclose(values, back.per_query[name][moved], atol=1e-13, err_msg=name)


@settings(max_examples=40)
@given(collection)
def test_monotone_transforms_do_not_matter(queries):
    y, scores, qid = arrays(queries)
    one, two = (evaluate(y, s, NAMES, qid=qid) for s in (scores, np.exp(scores) * 1e-30 - 7e-30))
    for name, values in one.per_query.items():
        np.testing.assert_array_equal(values, two.per_query[name], err_msg=name)


@settings(max_examples=40)
@given(collection)
def test_each_query_by_itself(queries):
    y, scores, qid = arrays(queries)
    together = evaluate(y, scores, NAMES.replace("ERR", "ERR(max_grade=3)"), qid=qid)
    for number in range(len(queries)):
        rows = qid == number
        alone = evaluate(y[rows], scores[rows], NAMES.replace("ERR", "ERR(max_grade=3)"))
        for name, values in alone.per_query.items():
            np.testing.assert_allclose(values[0], together.per_query[name][number], atol=1e-13, err_msg=name)


@settings(max_examples=40)
@given(collection)
def test_the_reported_range_over_ties_holds_every_rule(queries):
    y, scores, qid = arrays(queries)
    names = "AP nDCG@3 RR P@2 ROC WTA ERR Bpref pairs(2,0)"
    ranges = evaluate(y, scores, names, qid=qid).tie_range()
    for row in (1, -1):
        shuffled = evaluate(y[::row], scores[::row], names, qid=qid[::row])
        for name, (low, high) in ranges.items():
            assert low - 1e-12 <= shuffled[name] <= high + 1e-12, name


@pytest.mark.parametrize("name", NAMES.split())
def test_degenerate_queries(name):
    """One document, none relevant, all relevant, all tied, and no rows at all: numbers, no warnings."""
    y = [1, 0, 0, 0, 2, 2, 2, 1, 0, 1]
    qid = [1, 2, 3, 3, 4, 4, 4, 5, 5, 5]
    values = evaluate(y, np.zeros(10), name, qid=qid).per_query[name]
    assert len(values) == 5
    assert np.isfinite(values[~np.isnan(values)]).all()
    with refused(InvalidInputError, code="nothing"):
        evaluate([], [], name, qid=[])
    only_missing = Judgements(
        np.zeros(0), np.array([0, 0]), missing_grades=np.array([1.0, 0.0]), missing_offsets=np.array([0, 2])
    )
    measure = parse_measure(name)
    assert measure.per_query(only_missing, np.zeros(0)).tolist() == [0.0]
    assert np.isnan(measure(missing_topics="skip").per_query(only_missing, np.zeros(0))).all()
    assert measure.per_query(only_missing, np.zeros((3, 0))).shape == (3, 1)


@pytest.mark.parametrize("name", NAMES.split())
def test_infinite_scores_rank_first_and_last(name):
    y, qid = np.array([0, 1, 2, 1, 0, 0, 2.0]), [1, 1, 1, 1, 2, 2, 2]
    huge = np.array([-np.inf, 1.0, np.inf, -np.inf, 0.0, -np.inf, 2.0])
    plain = np.array([-9.0, 1.0, 9.0, -9.0, 0.0, -9.0, 2.0])
    one, two = (evaluate(y, scores, name, qid=qid).per_query[name] for scores in (huge, plain))
    np.testing.assert_array_equal(one, two)
    big = evaluate(y, plain * 1e307, name, qid=qid, convention="trec" if "ties" not in name else "ranklib")
    assert np.isfinite(big[name])


def test_long_and_short_queries_together(monkeypatch):
    """Blocks, long queries and long runs of ties give what a plain stable sort gives."""
    monkeypatch.setattr(derived, "_LONG", 40)
    monkeypatch.setattr(derived, "_OVERHEAD", 5)
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(0, 60, 80), [700, 1, 300]])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    judgements = Judgements(rng.integers(0, 3, offsets[-1]).astype(float), offsets)
    query_of_row = np.repeat(np.arange(len(sizes)), sizes)
    for levels in (2, 30, 100_000):
        scores = rng.integers(0, levels, (2, offsets[-1])).astype(float)
        rows = Ranking(judgements, scores).ordered("stable", "float64").rows
        for ranking in range(2):
            expected = np.lexsort((np.arange(offsets[-1]), -scores[ranking], query_of_row))
            np.testing.assert_array_equal(rows[ranking], expected)


def test_many_rankings_are_taken_in_pieces(monkeypatch):
    rng = np.random.default_rng(1)
    judgements = Judgements(rng.integers(0, 3, 50).astype(float), np.array([0, 20, 50]))
    scores = rng.integers(0, 9, (7, 50)).astype(float)
    whole = parse_measure("AP").per_query(judgements, scores)
    monkeypatch.setattr(base, "_BLOCK", 100)
    np.testing.assert_array_equal(parse_measure("AP").per_query(judgements, scores), whole)


def test_float32_ties_until_version_9_of_trec_eval():
    y, ids, scores = [0, 1], ["a", "b"], [1.0, 1.0 - 1e-9]
    assert evaluate(y, scores, "RR", doc_ids=ids, convention="trec9")["RR"] == 1.0
    assert evaluate(y, scores, "RR(compare='float64')", doc_ids=ids, convention="trec9")["RR(compare='float64')"] == 0.5
    assert evaluate(y, scores, "RR", doc_ids=ids, convention="trec")["RR"] == 0.5
    assert evaluate(y, scores, "RR", doc_ids=ids)["RR"] == 0.5


def test_document_ids_break_ties_descending():
    y = [1, 0, 0]
    assert evaluate(y, [1, 1, 1], "RR(ties='trec')", doc_ids=["a", "b", "c"])["RR(ties='trec')"] == 1 / 3
    assert evaluate(y, [1, 1, 1], "RR(ties='trec')", doc_ids=["10", "9", "1"])["RR(ties='trec')"] == 1 / 2
    assert evaluate(y, [1, 1, 1], "RR(ties='trec')")["RR(ties='trec')"] == 1.0
    # Equal ids keep the order of the rows.
    assert evaluate(y, [1, 1, 1], "RR(ties='trec')", doc_ids=["a", "a", "a"])["RR(ties='trec')"] == 1.0
    assert evaluate(y, [1, 1, 1], "RR(ties='trec')", doc_ids=["a", "b", "a"])["RR(ties='trec')"] == 1 / 2


def test_counts_and_the_callers_arrays():
    y, scores = np.array([0, 0, 1, 2.0]), np.array([1, 2, 3, 4.0])
    before = y.copy(), scores.copy()
    result = evaluate(y, scores, "AP AP(rel=2) AP(empty='skip') ROC", qid=["a", "a", "b", "b"])
    assert (result.n_queries, result.empty, result.missing_topics) == (2, 1, 0)
    assert result.empty_by_measure() == {"AP": 1, "AP(rel=2)": 1, "AP(empty='skip')": 1, "ROC": 2}
    assert result["AP"] == 0.5
    assert result["AP(empty='skip')"] == 1.0
    assert result.query_ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(y, before[0])
    np.testing.assert_array_equal(scores, before[1])


def test_weighted_mean():
    judgements = Judgements(np.array([1.0, 0, 0, 1]), np.array([0, 2, 4]))
    assert parse_measure("RR").mean(judgements, [2, 1, 2, 1.0]) == 0.75
    assert parse_measure("RR").mean(judgements, [2, 1, 2, 1.0], np.array([3.0, 1.0])) == pytest.approx(0.875)


@pytest.mark.parametrize("name", ["AP", "nDCG@2", "RR", "P@2", "ROC", "ERR", "AP(ties='average')"])
def test_swap_deltas(name):
    rng = np.random.default_rng(4)
    grades, scores = rng.integers(0, 3, 6).astype(float), rng.integers(0, 4, 6).astype(float)
    measure = parse_measure(name)
    plain = measure(ties="stable")
    deltas = measure.swap_deltas(grades, scores)
    order = sorted(range(6), key=lambda row: (-scores[row], row))
    judgements = Judgements(grades, np.array([0, 6]))
    base_value = plain.per_query(judgements, scores)[0]
    for i in range(6):
        for j in range(6):
            swapped = [{i: j, j: i}.get(row, row) for row in order]
            ranks = np.empty(6)
            ranks[swapped] = np.arange(6)
            assert deltas[i, j] == pytest.approx(plain.per_query(judgements, -ranks)[0] - base_value, abs=1e-14)
    assert parse_measure("AP").swap_deltas([1.0], [0.3]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1.0, np.nan]), {"argument": "scores"}),
        (([1, 0], [1.0]), {"argument": "scores"}),
        (([1, 0], np.array(["x", "y"])), {"argument": "scores"}),
        (([1, np.nan], [1.0, 2.0]), {"argument": "y"}),
        (([[1, 0]], [1.0, 2.0]), {"argument": "y"}),
    ],
)
def test_refusals(arguments, message):
    with refused(InvalidInputError, **message):
        evaluate(*arguments, "AP")


def test_more_refusals():
    for name in ("nDCG@3", "ERR", "MeanNDCG"):
        with refused(InvalidInputError, code="large-grade"):
            evaluate([2000, 0], [1, 2], name)
    assert evaluate([2000, 0], [2, 1], "nDCG(gain='linear')")["nDCG(gain='linear')"] == 1.0
    assert evaluate([1000, 1000], [2, 1], "nDCG")["nDCG"] == 1.0
    with refused(InvalidInputError, code="max-grade"):
        evaluate([2, 0], [1, 2], "ERR(max_grade=1)")
    with refused(InvalidInputError, argument="qid"):
        evaluate([2, 0], [1, 2], "AP", qid=[1])
    judgements = Judgements(np.array([1.0]), np.array([0, 1]))
    with refused(InvalidInputError, argument="qid"):
        evaluate(judgements, [1], "AP", qid=[1])
    with refused(InvalidInputError, argument="scores"):
        evaluate(judgements, [[1], [2]], "AP")


def test_ranking_data_in_the_callers_row_order():
    y, scores, qid = [1, 0, 0, 1], [3, 1, 2, 4], ["b", "a", "b", "a"]
    data = RankingData(np.zeros((4, 1)), y, qid)
    assert evaluate(data, scores, "AP") == evaluate(y, scores, "AP", qid=qid)


@pytest.mark.data
def test_conventions_alone_move_one_ranking(collections):
    """One feature of MQ2008, rounded: what the LETOR 4 script itself prints, and the span over the conventions."""
    from truerank import read_letor

    data = RankingData.concatenate([read_letor(collections / "letor4-mq2008" / f"S{k}.txt.gz") for k in range(1, 6)])
    scores = np.round(data.X[:, 24], 2)
    names = "P@1 P@10 AP nDCG@1 nDCG@5 nDCG@10 MeanNDCG"
    printed = [0.3087, 0.2077, 0.3587, 0.2568, 0.3399, 0.1619, 0.3591]
    found = evaluate(data.judgements(), scores, names, convention="letor4")
    assert [round(value, 4) for value in found.values()] == printed
    expected = {"ranklib": 0.3984, "trec": 0.4070, "catboost": 0.6391, "lightgbm": 0.6790, "xgboost": 0.6790}
    for convention, value in expected.items():
        result = evaluate(data.judgements(), scores, "nDCG@10", convention=convention)
        assert round(result["nDCG@10"], 4) == value


def test_ten_measures_share_one_sort(monkeypatch):
    calls = []
    plain = ranking_module._sorted_rows
    monkeypatch.setattr(ranking_module, "_sorted_rows", lambda *a: calls.append(1) or plain(*a))
    evaluate([1, 0, 2], [3, 1, 1], "AP nDCG nDCG@10 RR P@5 P@10 R@10 Rprec ROC tau").tie_range()
    assert len(calls) == 1


def test_every_measure_is_covered_here():
    assert {measure.NAME for measure in parse_measures(NAMES).values()} == set(MEASURES)


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ({}, {}),
        ({}, {"1": {"a": 1.0}}),
        ({"1": {"a": 1}}, {}),
        ({"1": {"a": 1}}, {"1": {}}),
    ],
)
def test_empty_qrels_and_runs_are_errors(qrels, run):
    with refused(InvalidInputError, code="nothing"):
        evaluate(qrels, run, "AP")
