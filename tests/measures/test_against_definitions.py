"""Every measure against the loops of tests/reference/measures.py, on random ragged queries with ties."""

from __future__ import annotations

import numpy as np
import pytest

from reference import measures as slow
from truerank.data.ranking_data import Judgements
from truerank.measures import (
    AP,
    DCG,
    ERR,
    RBP,
    ROC,
    RR,
    WTA,
    Bpref,
    Judged,
    MeanNDCG,
    P,
    R,
    Rprec,
    SetP,
    Success,
    nDCG,
    pairs,
    tau,
)


def ragged(seed, queries=40, longest=30, grades=4, levels=12):
    """Judgements and scores with many ties, some queries without relevant documents, some without any document."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, longest, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.integers(-1, grades, offsets[-1]).astype(float)
    for query in range(0, queries, 5):
        y[offsets[query] : offsets[query + 1]] = 0
    missing = [rng.integers(0, grades, rng.integers(0, 4)) for _ in range(queries)]
    judgements = Judgements(
        y,
        offsets,
        missing_grades=np.concatenate(missing).astype(float),
        missing_offsets=np.concatenate([[0], np.cumsum([len(part) for part in missing])]),
    )
    return judgements, rng.integers(0, levels, offsets[-1]) / 7.0, missing


def by_query(judgements, scores, missing, function):
    """`function(grades in ranked order, grades of all judged documents)` of each query, ties in row order."""
    values = []
    for query in range(judgements.n_queries):
        rows = range(judgements.offsets[query], judgements.offsets[query + 1])
        ranked = sorted(rows, key=lambda row: (-scores[row], row))
        grades = [judgements.grades[row] for row in ranked]
        values.append(function(grades, [*grades, *missing[query].tolist()]))
    return np.array(values)


def count(judged, rel=1):
    return sum(grade >= rel for grade in judged)


CASES = {
    "AP": (AP, lambda g, j: slow.ap(g, count(j))),
    "AP2": (AP(rel=2), lambda g, j: slow.ap(g, count(j, 2), rel=2)),
    "AP@5": (AP @ 5, lambda g, j: slow.ap(g, count(j), cutoff=5)),
    "AP@5r": (AP(denominator="reachable") @ 5, lambda g, j: slow.ap(g, count(j), cutoff=5, reachable=True)),
    "nDCG": (nDCG, slow.ndcg),
    "nDCG@4": (nDCG @ 4, lambda g, j: slow.ndcg(g, j, 4)),
    "DCG": (DCG, lambda g, j: slow.dcg(g, None, "exponential", "log2")),
    "DCG@4": (DCG(gain="linear", discount="letor") @ 4, lambda g, j: slow.dcg(g, 4, "linear", "letor")),
    "SetP@4": (SetP @ 4, lambda g, j: sum(slow.relevant(g, 1)[:4]) / max(1, min(len(g), 4))),
    "SetP(relative)@4": (
        SetP(relative=True) @ 4,
        lambda g, j: sum(slow.relevant(g, 1)[:4]) / max(1, min(len(g), 4, count(j))),
    ),
    "linear": (nDCG(gain="linear"), lambda g, j: slow.ndcg(g, j, gain="linear")),
    "letor": (nDCG(discount="letor") @ 6, lambda g, j: slow.ndcg(g, j, 6, discount="letor")),
    "letor4": (
        nDCG(convention="letor4", grades="any") @ 9,
        lambda g, j: slow.ndcg(g, j, 9, discount="letor", short="zero"),
    ),
    "RR": (RR, lambda g, j: slow.rr(g)),
    "RR@3": (RR(rel=3) @ 3, lambda g, j: slow.rr(g, 3, 3)),
    "P@7": (P @ 7, lambda g, j: slow.precision(g, 7)),
    "R@7": (R @ 7, lambda g, j: slow.recall(g, count(j), 7)),
    "Success@2": (Success @ 2, lambda g, j: slow.success(g, 2)),
    "Rprec": (Rprec, lambda g, j: slow.rprec(g, count(j))),
    "WTA": (WTA, lambda g, j: slow.wta(g, max(j, default=0))),
    "ROC": (ROC(rel=2), lambda g, j: slow.roc(g, 2)),
    "MeanNDCG": (MeanNDCG(convention="letor4", grades="any"), lambda g, j: slow.mean_ndcg(g, j, discount="letor")),
    "ERR": (ERR, lambda g, j: slow.err(g, 3)),
    "ERR@3": (ERR(max_grade=5) @ 3, lambda g, j: slow.err(g, 5, 3)),
    "RBP": (RBP, lambda g, j: slow.rbp(g, 0.8)),
    "RBP(0.5,rel=2)@4": (RBP(0.5, rel=2) @ 4, lambda g, j: slow.rbp(g, 0.5, 2, 4)),
    "Bpref": (Bpref, lambda g, j: slow.bpref(g, [True] * len(g), j)),
    "Judged": (Judged @ 3, lambda g, j: slow.judged_share([True] * len(g), 3)),
    "pairs(0,2)": (pairs(0, 2, empty="zero"), lambda g, j: slow.wrong_pairs(g, 0, 2) or 0.0),
    "pairs(1,0)": (pairs(1, 0, empty="zero"), lambda g, j: slow.wrong_pairs(g, 0, 1) or 0.0),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_definition(case, seed):
    measure, definition = CASES[case]
    judgements, scores, missing = ragged(seed)
    expected = by_query(judgements, scores, missing, definition)
    np.testing.assert_allclose(measure.per_query(judgements, scores), expected, atol=1e-13)


@pytest.mark.parametrize("case", CASES)
def test_several_rankings_at_once(case):
    measure, _ = CASES[case]
    judgements, _, _ = ragged(3)
    scores = np.random.default_rng(4).integers(0, 9, (5, judgements.n_rows)).astype(float)
    scores[2] = 0
    together = measure.per_query(judgements, scores)
    for row, values in zip(scores, together):
        np.testing.assert_array_equal(values, measure.per_query(judgements, row))


AVERAGES = {
    "AP": (AP, lambda g, j: slow.ap(g, count(j))),
    "AP@3": (AP(denominator="reachable") @ 3, lambda g, j: slow.ap(g, count(j), cutoff=3, reachable=True)),
    "nDCG": (nDCG, slow.ndcg),
    "nDCG@3": (
        nDCG(convention="letor4", grades="any") @ 3,
        lambda g, j: slow.ndcg(g, j, 3, discount="letor", short="zero"),
    ),
    "DCG": (DCG @ 3, lambda g, j: slow.dcg(g, 3, "exponential", "log2")),
    "MeanNDCG": (MeanNDCG, slow.mean_ndcg),
    "RR": (RR(rel=2), lambda g, j: slow.rr(g, 2)),
    "RR@2": (RR @ 2, lambda g, j: slow.rr(g, 1, 2)),
    "Success@2": (Success @ 2, lambda g, j: slow.success(g, 2)),
    "P@3": (P @ 3, lambda g, j: slow.precision(g, 3)),
    "R@3": (R @ 3, lambda g, j: slow.recall(g, count(j), 3)),
    "Rprec": (Rprec, lambda g, j: slow.rprec(g, count(j))),
    "WTA": (WTA, lambda g, j: slow.wta(g, max(j, default=0))),
    "ROC": (ROC, lambda g, j: slow.roc(g)),
    "RBP": (RBP, lambda g, j: slow.rbp(g, 0.8)),
    "pairs(2,0)": (pairs(2, 0, empty="zero"), lambda g, j: slow.wrong_pairs(g, 0, 2) or 0.0),
}


@pytest.mark.parametrize("case", AVERAGES)
def test_tie_average_is_the_mean_over_all_orders(case):
    measure, definition = AVERAGES[case]
    measure = measure(ties="average")
    judgements, _, missing = ragged(5, queries=30, longest=7)
    rng = np.random.default_rng(6)
    both = rng.integers(0, 3, (2, judgements.n_rows)).astype(float)
    expected = np.zeros((2, judgements.n_queries))
    for ranking, scores in enumerate(both):
        for query in range(judgements.n_queries):
            rows = range(judgements.offsets[query], judgements.offsets[query + 1])
            judged = [*judgements.grades[rows], *missing[query].tolist()]
            expected[ranking, query] = slow.mean_over_orders(
                scores, rows, lambda order, judged=judged: definition([judgements.grades[row] for row in order], judged)
            )
    np.testing.assert_allclose(measure.per_query(judgements, both), expected, atol=1e-13)
    np.testing.assert_allclose(measure.per_query(judgements, both[1]), expected[1], atol=1e-13)


@pytest.mark.parametrize("case", AVERAGES)
def test_best_and_worst_order_bound_every_order(case):
    measure, definition = AVERAGES[case]
    judgements, _, missing = ragged(8, queries=30, longest=6)
    scores = np.random.default_rng(9).integers(0, 3, judgements.n_rows).astype(float)
    worst, best = (measure(ties=rule).per_query(judgements, scores) for rule in ("pessimistic", "optimistic"))
    if measure.NAME == "pairs":  # lower is better
        worst, best = best, worst
    for query in range(judgements.n_queries):
        rows = range(judgements.offsets[query], judgements.offsets[query + 1])
        judged = [*judgements.grades[rows], *missing[query].tolist()]
        values = []
        slow.mean_over_orders(
            scores,
            rows,
            lambda order, judged=judged, values=values: (
                values.append(definition([judgements.grades[row] for row in order], judged)) or 0.0
            ),
        )
        assert abs(min(values) - worst[query]) < 1e-13
        assert abs(max(values) - best[query]) < 1e-13


@pytest.mark.parametrize("levels", [3, 1000])
def test_tau_equals_scipy(levels):
    from scipy.stats import kendalltau

    rng = np.random.default_rng(levels)
    sizes = rng.integers(1, 40, 30)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    judgements = Judgements(rng.integers(0, levels, offsets[-1]).astype(float), offsets)
    scores = rng.integers(0, 15, (3, offsets[-1])).astype(float)
    found = tau(empty="skip").per_query(judgements, scores)
    for ranking in range(3):
        for query in range(30):
            rows = slice(offsets[query], offsets[query + 1])
            grades = judgements.grades[rows]
            if len(set(grades.tolist())) < 2:
                assert np.isnan(found[ranking, query])
            elif len(set(scores[ranking, rows].tolist())) == 1:
                assert found[ranking, query] == 0
            else:
                expected = kendalltau(scores[ranking, rows], grades).statistic
                assert found[ranking, query] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", ["Bpref", "Judged", "AP", "nDCG"])
def test_unjudged_documents(name):
    rng = np.random.default_rng(12)
    sizes = rng.integers(1, 20, 25)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    judged = rng.random(offsets[-1]) < 0.6
    grades = np.where(judged, rng.integers(-1, 3, offsets[-1]), 0).astype(float)
    judgements = Judgements(grades, offsets, judged=judged)
    scores = rng.permutation(offsets[-1]).astype(float)
    measures = {"Bpref": Bpref, "Judged": Judged @ 4, "AP": AP(judged_only=True), "nDCG": nDCG(judged_only=True) @ 3}
    found = measures[name].per_query(judgements, scores)
    for query in range(25):
        rows = sorted(range(offsets[query], offsets[query + 1]), key=lambda row: -scores[row])
        known = [grades[row] for row in rows if judged[row]]
        graded = [grade for grade in known if grade >= 0]  # a negative grade is unjudged, as in trec_eval
        expected = {
            "Bpref": lambda rows=rows, known=known: slow.bpref(grades[rows].tolist(), judged[rows].tolist(), known),
            "Judged": lambda rows=rows: slow.judged_share(judged[rows].tolist(), 4),
            "AP": lambda graded=graded: slow.ap(graded, count(graded)),
            "nDCG": lambda graded=graded: slow.ndcg(graded, graded, 3),
        }[name]()
        assert found[query] == pytest.approx(expected, abs=1e-13)
