"""Explained values add up; claims convert as evaluating anew does; ties, intervals and what a test set shows."""

from __future__ import annotations

import numpy as np
import pytest

from support.made_up_runs import random_qrels, random_runs
from support.refusals import refused
from truerank import convert_claim, evaluate, explain_measure
from truerank.core.errors import InvalidInputError
from truerank.io.trec import as_qrels, as_run, judge_run
from truerank.measures import CONVENTIONS, nDCG, parse_measure
from truerank.significance.intervals import (
    student_quantile as _student,
)

MEASURES = (
    "nDCG@5",
    "nDCG",
    "AP",
    "AP@4",
    "RR",
    "P@5",
    "R@5",
    "ERR(max_grade=2)@5",
    "RBP(p=0.6)",
    "Bpref",
    "Success@3",
)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("convention", ["trec", "ranklib", "letor4"])
def test_what_the_ranks_gain_adds_up_to_the_value(measure, convention):
    runs, qrels = random_runs(3), random_qrels(4)
    run = as_run(runs["run1"])
    parsed = parse_measure(measure, convention)
    judgements, scores = judge_run(qrels, run)
    values = parsed.per_query(judgements, scores)
    for query, value in zip(judgements.query_ids, values):
        explained = explain_measure(qrels, run, measure, query=query, convention=convention)
        assert explained.value == pytest.approx(value, abs=1e-12)
        assert sum(rank.gained for rank in explained.ranks) == pytest.approx(value, abs=1e-12)
        scored = [rank.score for rank in explained.ranks]
        assert scored == sorted(scored, reverse=True)


def test_err_counts_the_largest_grade_of_all_queries():
    run, qrels = {"7": {"a": 2.0, "b": 1.0}, "8": {"c": 1.0}}, {"7": {"a": 1, "b": 1}, "8": {"c": 4}}
    explained = explain_measure(qrels, run, "ERR", query="7")
    assert explained.value == evaluate(qrels, run, "ERR").per_query["ERR"][0]
    assert explained.measure.name == "ERR(max_grade=4.0)"


def test_a_beginning_in_which_the_measure_is_undefined_adds_nothing():
    run, qrels = {"7": {"unjudged": 2.0, "a": 1.0}}, {"7": {"a": 1}}
    explained = explain_measure(qrels, run, "AP(judged_only=True)", query="7")
    assert (explained.value, [rank.gained for rank in explained.ranks]) == (1.0, [0.0, 1.0])


def test_ndcg_by_hand():
    run = {"7": {"a": 3.0, "b": 2.0, "c": 1.0, "u": 0.5}}
    qrels = {"7": {"a": 1, "b": 0, "c": 2, "x": 2}}
    explained = explain_measure(qrels, run, "nDCG@3", query="7", convention="ranklib")
    ideal = 3 + 3 / np.log2(3) + 1 / 2
    assert explained.value == pytest.approx((1 + 3 / 2) / ideal)
    assert [rank.grade for rank in explained.ranks] == [1, 0, 2, None]
    assert [rank.gain for rank in explained.ranks] == [1, 0, 3, 0]
    assert [rank.discount for rank in explained.ranks] == pytest.approx([1, 1 / np.log2(3), 0.5, 0])
    assert [rank.ideal_gain for rank in explained.ranks] == [3, 3, 1, None]
    assert [rank.gained for rank in explained.ranks] == pytest.approx([1 / ideal, 0, 1.5 / ideal, 0])
    assert (explained.n_relevant, explained.n_unretrieved, explained.n_unjudged, explained.n_tied) == (3, 1, 1, 0)
    assert "unjudged" in str(explained)
    assert explained.to_dict()["ranks"][2]["doc_id"] == "c"
    for query in ("8", "nothing"):
        with refused(InvalidInputError, argument="query"):
            explain_measure(qrels, run, "AP", query=query)


def test_a_claim_is_evaluated_anew_under_every_convention():
    runs, qrels = random_runs(1), random_qrels(2)
    judgements, scores = judge_run(qrels, as_run(runs["run2"]))
    found = convert_claim(qrels, runs["run2"], "nDCG@5", stated="lightgbm")
    assert next(iter(found)) == "lightgbm"
    assert found.keys() | found.refused.keys() == CONVENTIONS.keys()
    assert found.refused.keys() == {"xgboost", "catboost", "sklearn"}, "there negative grades have negative gains"
    for name, value in found.items():
        assert value == evaluate(judgements, scores, "nDCG@5", convention=name)["nDCG@5"]
    assert len(set(found.values())) > 4
    with refused(InvalidInputError, argument="stated"):
        convert_claim(qrels, runs["run2"], stated="terrier")
    with refused(InvalidInputError, code="grade"):
        convert_claim(qrels, runs["run2"], "nDCG@5", stated="catboost")


def test_tied_queries_and_expected_values():
    y, qid = [1, 0, 1, 1, 0, 2], [1, 1, 2, 2, 3, 3]
    result = evaluate(y, [5, 5, 3, 3, 2, 1], "AP ERR@2", qid=qid)
    assert result.tied_queries() == 1  # query 2 ties two documents of one grade
    assert result.tie_expected() == {"AP": pytest.approx((0.75 + 1 + 0.5) / 3), "ERR@2": None}
    assert nDCG.TIE_AVERAGE


def test_students_quantile_is_that_of_scipy():
    from scipy.special import stdtrit

    for freedom in (5, 10, 49, 500):
        for share in (0.8, 0.975, 0.995):
            assert _student(share, freedom) == pytest.approx(stdtrit(freedom, share), rel=0.006)


def test_runs_and_qrels_from_dicts():
    assert as_qrels({1: {"a": 2}}).grades.tolist() == [2.0]
    assert as_run({1: {"a": 2}}).query_ids.tolist() == ["1"]
    for wrong in ({"1": {"a": "high"}}, {"1": {"a": np.nan}}):
        with pytest.raises(InvalidInputError, match="number"):
            as_run(wrong)


def test_what_empty_says_holds_where_a_measure_is_undefined():
    y, scores, qid = [1, 1, 1, 0, 0, 0], [4, 3, 2, 1, 1, 2], [1, 1, 2, 2, 3, 3]
    for rule, value in (("zero", 0.0), ("one", 1.0), ("skip", np.nan)):
        found = evaluate(y, scores, [f"Accuracy(empty={rule!r})", f"Accuracy(empty={rule!r})@1"], qid=qid)
        np.testing.assert_array_equal(list(found.per_query.values()), [[value, 1.0, value], [value] * 3])
    assert evaluate(y, scores, "Accuracy", qid=qid).empty_by_measure() == {"Accuracy": 2}


def test_the_geometric_mean_of_no_query_is_0():
    assert evaluate([0, 0], [1, 2], "GMAP(empty='skip') AP(empty='skip')") == {
        "GMAP(empty='skip')": 0.0,
        "AP(empty='skip')": 0.0,
    }
    assert parse_measure("GMAP").aggregate(np.array([0.5, np.nan]), np.array([0.0, 1.0])) == 0.0


def test_rows_without_queries_are_named_as_one_query():
    rows = [1, 0, 0, 1], [0.1, 0.9, 0.5, 0.4]
    alone = evaluate(*rows, "AP")
    note = "1 query of 4 rows: pass qid if the rows belong to several queries"
    assert note in str(alone)
    assert repr(alone) == f"{{'AP': {alone['AP']!r}}} ({note})"
    assert note in alone._repr_html_()
    assert note not in repr(evaluate(*rows, "AP", qid=[7, 7, 8, 8]))
    assert note not in repr(evaluate(*rows, "AP", qid=[7, 7, 7, 7]))
