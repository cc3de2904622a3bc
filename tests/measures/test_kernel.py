"""The kernel's values are the measure's own, under every convention that it serves."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements, RankingData
from truerank.measures import CONVENTIONS, Ranking, parse_measure, parse_measures
from truerank.measures import kernel as query_measure
from truerank.measures.derived import SMALLEST, hits_of
from truerank.measures.kernel import QueryMeasure
from truerank.measures.ndcg import gain_of_grade

NAMES = ("AP", "AP@5", "nDCG", "nDCG@5", "RR", "RR@3", "P@5", "WTA", "ROC")


def judged(seed=0, *, sizes=None, grades=4, decimals=1, p=4):
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([rng.integers(1, 40, 30), [200]]) if sizes is None else np.asarray(sizes)
    n = int(sizes.sum())
    y = rng.integers(0, grades, n).astype(float) * (rng.random(n) < rng.random())
    y[-100:] = rng.integers(0, grades, n)[-100:]
    X = np.round(rng.normal(size=(n, p)), decimals)
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes), doc_ids=rng.permutation(n).astype(str))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_all_columns_at_once_equal_the_measure(convention):
    data = judged()
    for name in NAMES:
        try:
            measure = parse_measure(name, convention)(grades="any")
        except InvalidInputError:  # scikit-learn's average over ties has no closed form for every measure
            assert convention == "sklearn"
            continue
        evaluator = QueryMeasure(data, measure)
        expected = measure.per_query(data.judgements(), data.X.T).T
        np.testing.assert_allclose(evaluator.of_columns(data.X), expected, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(evaluator.of_scores(data.X[:, 1]), expected[:, 1], rtol=1e-13, atol=1e-14)
        rising = measure.per_query(data.judgements(), -data.X.T.astype(np.float32)).T
        given = evaluator.of_columns(data.X.astype(np.float32), descending=False)
        np.testing.assert_allclose(given, rising, rtol=1e-13, atol=1e-14)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
    st.integers(2, 5),
    st.sampled_from(NAMES[:7]),
)
def test_any_shape(seed, sizes, grades, name):
    data = judged(seed, sizes=sizes, grades=grades, decimals=seed % 3)
    measure = parse_measure(name, ("ranklib", "trec", "catboost")[seed % 3])
    expected = measure.per_query(data.judgements(), data.X.T).T
    np.testing.assert_allclose(QueryMeasure(data, measure).of_columns(data.X), expected, rtol=1e-13, atol=1e-14)


def test_blocks_threads_and_sparse_rows_change_no_bit(monkeypatch):
    data = judged()
    for name in ("nDCG@10", "ROC"):
        evaluator = QueryMeasure(data, parse_measure(name))
        whole = evaluator.of_columns(data.X)
        with monkeypatch.context() as patch:
            patch.setattr(query_measure, "_BLOCK_VALUES", 100)
            assert np.array_equal(evaluator.of_columns(data.X, n_jobs=3), whole)
            assert np.array_equal(evaluator.of_columns(sparse.csr_matrix(data.X)), whole)


def test_empty_queries_follow_the_rule():
    data = RankingData([[1.0], [2.0], [3.0]], [0, 0, 1], ["a", "a", "b"])
    for empty, value in (("zero", 0.0), ("one", 1.0), ("skip", np.nan)):
        values = QueryMeasure(data, parse_measure(f"AP(empty={empty})")).of_columns(data.X)
        np.testing.assert_array_equal(values, [[value], [1.0]])


def test_scores_out_of_range_are_an_error():
    with refused(InvalidInputError, code="overflow"):
        QueryMeasure(judged(), parse_measure("AP")).of_scores(np.full(judged().n_rows, np.inf))


@pytest.mark.parametrize("ties", ["stable", "trec", "average", "optimistic", "pessimistic"])
def test_both_evaluators_give_the_same_bits(ties, monkeypatch):
    monkeypatch.setattr(query_measure, "_MANY_HITS", 0)  # the kernel, however many hits there are
    names = "AP AP(rel=2)@3 nDCG nDCG@3 nDCG(gains={0:1,1:4})@5 RR RR@2 WTA P@2 Success@2 R@2 Rprec RBP@7 Judged@2 SetF"
    rng = np.random.default_rng(5)
    for seed in range(3):
        data = judged(seed, decimals=seed % 2)
        judgements = data.judgements()
        judgements.judged = rng.random(data.n_rows) < 0.8
        for scores in (data.X.T, data.X[:, 0], data.X[:, 0].astype(int), np.zeros(data.n_rows)):
            for name, measure in parse_measures(names, "xgboost").items():
                chosen = measure(ties=ties)
                compiled = chosen.values(Ranking(judgements, scores))
                with monkeypatch.context() as patch:
                    patch.delitem(sys.modules, "truerank.measures.kernel")
                    plain = chosen.values(Ranking(judgements, scores))
                np.testing.assert_array_equal(compiled, plain, err_msg=name)


def test_evaluate_uses_the_kernel_once_it_is_loaded(monkeypatch):
    data = judged()
    calls = []
    monkeypatch.setattr(query_measure, "values_of_ranking", lambda *args: calls.append(args))
    parse_measure("AP").per_query(data.judgements(), data.X[:, 0])
    assert len(calls) == 1
    monkeypatch.undo()
    infinite = data.X[:, 0].copy()
    infinite[::7] = np.inf  # the kernel leaves these to NumPy's rules
    expected = parse_measure("AP").per_query(data.judgements(), np.where(np.isinf(infinite), 1e9, infinite))
    np.testing.assert_array_equal(parse_measure("AP").per_query(data.judgements(), infinite), expected)


@pytest.mark.parametrize("convention", ["ranklib", "trec", "catboost"])
def test_measures_of_a_report_share_ranks_and_keep_their_bits(convention, monkeypatch):
    monkeypatch.setattr(query_measure, "_MANY_HITS", 0)
    data = judged(3, sizes=[1, 7, 60, 66, 150, 5], grades=3)
    report = parse_measures("AP AP@5 nDCG nDCG@5 RR P@5 AP(rel=2) AP(ties='average') AP(compare='float32')", convention)
    judgements, scores = data.judgements(), data.X[:, 0]
    ranking = Ranking(judgements, scores)
    for measure in report.values():
        alone = measure.values(Ranking(judgements, scores))
        np.testing.assert_array_equal(measure.values(ranking), alone)
        expected = measure.values(Ranking(judgements, np.stack([scores, data.X[:, 1]])))[0]  # two rankings: none kept
        np.testing.assert_array_equal(alone, expected)
    assert 1 < len(ranking.hit_ranks) <= 4


def test_queries_with_very_many_hits_have_the_same_bits(monkeypatch):
    data = judged(3, sizes=[60, 66], grades=3)
    for name in ("AP", "nDCG@5"):
        counted = QueryMeasure(data, parse_measure(name)).of_columns(data.X)
        with monkeypatch.context() as patch:
            patch.setattr(query_measure, "_MOST_COUNTED", 5)
            fresh = RankingData.from_grouped(data.X, data.y, data.offsets, data.query_ids)
            np.testing.assert_array_equal(QueryMeasure(fresh, parse_measure(name)).of_columns(data.X), counted)


def test_one_ranking_of_many_hits_is_sorted_whole():
    data = judged(3, sizes=[60, 66], grades=3)
    few = np.where(np.arange(data.n_rows) % 10 == 0, data.y, 0.0)
    for y, ranks_kept in ((data.y, 0), (few, 1)):
        ranking = Ranking(Judgements(y, data.offsets), data.X[:, 0])
        parse_measure("AP").values(ranking)
        assert len(ranking.hit_ranks) == ranks_kept


def test_averaged_ties_have_the_same_bits_in_any_order_of_a_query_s_rows():
    data = judged(3, decimals=0)
    rng = np.random.default_rng(0)
    rows = np.concatenate([a + rng.permutation(b - a) for a, b in zip(data.offsets, data.offsets[1:], strict=False)])
    moved = RankingData(data.X[rows], data.y[rows], data.qid[rows])
    for name in ("AP", "nDCG@5", "RR", "P@5", "R@5", "RBP", "WTA"):
        measure = parse_measure(name).tie_averaged()
        one, two = (QueryMeasure(d, measure).of_columns(d.X) for d in (data, moved))
        np.testing.assert_array_equal(one, two, err_msg=name)


@pytest.mark.parametrize("name", ["nDCG@3", "P@2", "R@5"])
def test_a_small_cutoff_sums_what_each_ranking_alone_does(name):
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 30, 20)
    data = RankingData(np.zeros((sizes.sum(), 1)), rng.integers(0, 4, sizes.sum()), np.repeat(np.arange(20), sizes))
    scores, measure = rng.random((3, sizes.sum())), parse_measure(name, convention="ranklib")
    together = measure.per_query(data.judgements(), scores)
    alone = [measure.per_query(data.judgements(), row) for row in scores]
    assert np.array_equal(together, alone)
    compiled = QueryMeasure(data, measure)
    assert np.array_equal(alone, [compiled.of_scores(row) for row in scores], equal_nan=True)


@pytest.mark.parametrize(
    "grades", [[1.0, 3.0, 0.0, 2.0, 2.0, 3.0], [0.5, 3.0, 1.0, 2.0, 2.0, 1.0], [0, 0, 0, 0, 0, 9.0]]
)
def test_the_best_grades_of_each_query_fall_whether_counted_or_sorted(grades):
    from truerank.measures.derived import ideal_grades

    data = RankingData(np.zeros((6, 1)), grades, [1, 1, 1, 2, 2, 2])
    falling, offsets = ideal_grades(data.judgements())
    expected = [sorted((g for g in part if g > 0), reverse=True) for part in (grades[:3], grades[3:])]
    assert [falling[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == expected


def test_levels_without_a_grade_between_them_share_their_documents():
    judgements = judged(4, grades=3).judgements()
    one, smallest, two = (hits_of(judgements, rel) for rel in (1, SMALLEST, 2))
    assert one is smallest
    assert two.mask.sum() < one.mask.sum()
    # A document that was not retrieved tells the levels apart.
    absent = Judgements(
        np.array([1.0]), np.array([0, 1]), missing_grades=np.array([0.5]), missing_offsets=np.array([0, 1])
    )
    assert hits_of(absent, 1).total.tolist() == [1]
    assert hits_of(absent, SMALLEST).total.tolist() == [2]


def test_no_plan_is_made_for_a_ranking_that_the_kernel_leaves_to_numpy(monkeypatch):
    data = judged(5, grades=2)
    judgements = data.judgements()
    judgements.grades[:] = 1.0
    made = []
    monkeypatch.setattr(query_measure, "plan_of", lambda *args: made.append(args))
    np.testing.assert_array_equal(parse_measure("AP").per_query(judgements, data.X[:, 0]), 1.0)
    assert made == []


def test_a_grade_that_is_nan_gains_nothing():
    assert gain_of_grade(np.array([np.nan, 1.0, 2.0, -1.0]), "exponential").tolist() == [0.0, 1.0, 3.0, 0.0]
