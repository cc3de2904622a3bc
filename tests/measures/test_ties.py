"""What is said of tied documents, against a list of all their orders, for every measure and every rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from truerank import evaluate
from truerank.data.ranking_data import Judgements
from truerank.measures.evaluation import Evaluation
from truerank.measures.names import MEASURES, parse_measure, split_names
from truerank.measures.ranking import Ranking

NAMES = split_names(
    "AP AP(rel=2) AP@3 AP(denominator='reachable')@2 nDCG nDCG@3 nDCG(gain='linear')@2 nDCG(discount='letor')@3 "
    "nDCG(short='zero')@4 nDCG(gains={0:0,1:3,2:1,3:5})@3 nDCG(gains={0:2,1:1,2:0}) DCG DCG@2 MeanNDCG RR RR@2 "
    "RR(rel=2) WTA P@1 P@3 P(short='shorten')@4 Success@1 Success@3 R@2 Rprec SetP SetP@2 SetR SetR@2 SetF "
    "SetF(beta=2) SetAP SetP(relative=True)@3 ROC ROC(rel=2) ERR ERR@2 ERR(max_grade=4)@3 RBP RBP(0.5)@3 "
    "RBP(0.5,rel=2) Bpref Bpref(rel=2) Judged@2 Judged@4 GMAP infAP infAP(rel=2) IPrec@0.1 IPrec@0.5 "
    "Accuracy Accuracy@2 Accuracy@3 NumRet NumRel NumRelRet NumRelRet@2 NumQ tau pairs(2,0) pairs(0,2)"
)
CONVENTIONS = ("ranklib", "trec", "letor4")


def query(seed):
    """One query of up to six documents with ties, unjudged ones and judged ones that were not retrieved."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    grades, scores = rng.integers(-1 if seed % 3 else 0, 4, n).astype(float), rng.integers(0, 3, n) / 2.0
    judged = rng.random(n) < 0.7 if seed % 2 else None
    missing = rng.integers(0, 4, int(rng.integers(0, 3))).astype(float)
    judgements = Judgements(
        grades if judged is None else np.where(judged, grades, 0.0),
        np.array([0, n]),
        judged=judged,
        tie_keys=rng.permutation(n).astype(str),
        missing_grades=missing,
        missing_offsets=np.array([0, len(missing)]),
    )
    return judgements, scores


def orders_of(scores):
    """Every order of the rows by falling score."""
    groups = [np.flatnonzero(scores == level).tolist() for level in np.unique(scores)[::-1]]
    for parts in itertools.product(*map(itertools.permutations, groups)):
        yield [row for part in parts for row in part]


def test_every_measure_is_tried():
    assert {parse_measure(name).NAME for name in NAMES} == set(MEASURES)


@pytest.mark.parametrize("seed", range(12))
def test_every_rule_against_all_orders(seed):
    judgements, scores = query(seed)
    orders = list(orders_of(scores))
    untied = np.array([-np.argsort(order, kind="stable").astype(float) for order in orders])
    keys, grades = judgements.tie_keys.astype(int), judgements.grades
    firsts = {"stable": 0 * keys, "trec": -keys, "optimistic": -grades, "pessimistic": grades}
    for name in NAMES:
        measure = parse_measure(name, CONVENTIONS[seed % 3])(compare="float64", judged_only=seed % 4 == 3, grades="any")
        by_order = measure(ties="stable").per_query(judgements, untied)[:, 0]
        if measure.NAME != "tau":  # which counts tied pairs as such
            for rule, first in firsts.items():
                order = sorted(range(len(scores)), key=lambda row, first=first: (-scores[row], first[row], row))
                value = measure(ties=rule).per_query(judgements, scores)[0]
                np.testing.assert_allclose(value, by_order[orders.index(order)], atol=1e-12, err_msg=f"{name} {rule}")
        if measure.TIE_AVERAGE and measure.NAME != "tau":
            value = measure(ties="average").per_query(judgements, scores)[0]
            np.testing.assert_allclose(value, by_order.mean(), atol=1e-12, err_msg=name)
        found = Evaluation({name: measure}, measure.convention, Ranking(judgements, scores))
        means = [measure.aggregate(by_order[[k]]) for k in range(len(orders))]
        ends = found.tie_range()[name]
        if ends is not None and measure.NAME != "tau":
            np.testing.assert_allclose(ends, (min(means), max(means)), atol=1e-12, err_msg=name)
        expected = found.tie_expected()[name]
        if expected is not None and measure.NAME != "tau":
            np.testing.assert_allclose(expected, np.mean(means), atol=1e-12, err_msg=name)


def test_measures_whose_ends_two_orders_do_not_show_say_none():
    unknown = "infAP Accuracy@2 Judged@2 nDCG(gains={0:0,1:3,2:1})@3 DCG(gains={1:2})"
    ranges = evaluate([0, 1, 2], [1.0, 1.0, 0.0], [*unknown.split(), "Accuracy", "AP", sum]).tie_range()
    assert [name for name, ends in ranges.items() if ends is None] == [*unknown.split(), "sum"]


def test_no_order_moves_tau():
    result = evaluate([2, 0, 1], [1.0, 1.0, 0.0], "tau")
    assert result.tie_range()["tau"] == (result["tau"], result["tau"])
    assert evaluate([0, 2, 1], [1.0, 1.0, 0.0], "tau")["tau"] == result["tau"] == result.tie_expected()["tau"]
