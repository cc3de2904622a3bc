"""Most violated rankings: every oracle against the enumeration of all rankings, and the paper's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.rankings import (
    average_precision_oracle,
    closed_form_delta,
    joint_feature_difference,
    places_of_algorithm_2,
    ranking_loss,
    worst_by_enumeration,
)
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.losses.graded_pairs import GradedPairs
from truerank.losses.worst_rankings import RankingOracle, oracle_for
from truerank.measures import AP, RR, P, nDCG

LOSSES = [
    ("AP", None, "log2"),
    ("ROC", None, "log2"),
    ("RR", None, "log2"),
    ("nDCG", None, "log2"),
    ("nDCG", 1, "log2"),
    ("nDCG", 2, "log2"),
    ("nDCG", 3, "letor"),
    ("nDCG", 10, "letor"),
]
SCORES = {
    "ties": st.integers(-2, 2).map(lambda value: value / 4),
    "wide": st.floats(-5, 5, allow_subnormal=False),
    "narrow": st.floats(-0.02, 0.02, allow_subnormal=False),
}


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("measure", "cutoff", "discount"), LOSSES)
def test_worst_ranking_is_that_of_enumeration(measure, cutoff, discount, kind):
    rng = np.random.default_rng(7)
    for _ in range(12):
        n = int(rng.integers(1, 7))
        relevant = rng.random(n) < rng.choice([0.3, 0.5, 0.7])
        scores = {
            "ties": rng.integers(-2, 3, n) / 4,
            "wide": rng.uniform(-5, 5, n),
            "narrow": rng.uniform(-0.02, 0.02, n),
        }[kind]
        oracle = RankingOracle(measure, relevant.astype(float), np.array([0, n]), cutoff=cutoff, discount=discount)
        loss, coefficients = oracle(scores)
        if not relevant.any() or relevant.all():
            assert not oracle.kept[0]
            assert loss[0] == 0
            assert not coefficients.any()
            continue
        worst = worst_by_enumeration(measure, relevant, scores, cutoff, discount)
        assert loss[0] + coefficients @ scores == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize(("measure", "cutoff", "discount"), LOSSES)
def test_loss_and_coefficients_belong_to_one_ranking(measure, cutoff, discount):
    rng = np.random.default_rng(3)
    for _ in range(10):
        n = int(rng.integers(2, 9))
        relevant = np.zeros(n, dtype=bool)
        relevant[: rng.integers(1, n)] = True
        rng.shuffle(relevant)
        oracle = RankingOracle(measure, relevant.astype(float), np.array([0, n]), cutoff=cutoff, discount=discount)
        loss, c = oracle(rng.normal(size=n) * 0.3)
        R, N = relevant.sum(), (~relevant).sum()
        before = np.rint(-c[relevant] * R * N / 2)  # others before each relevant document, from its coefficient
        # Rebuild the ranking from the numbers of others before each relevant document.
        slots = sorted(zip(before, np.flatnonzero(relevant)))
        others = np.flatnonzero(~relevant)[np.argsort(-c[~relevant], kind="stable")]
        order, used = [], 0
        for count, row in slots:
            order += others[used : int(count)].tolist() + [row]
            used = int(count)
        order = np.array(order + others[used:].tolist())
        assert loss[0] == pytest.approx(ranking_loss(measure, relevant, order, cutoff, discount), abs=1e-12)
        np.testing.assert_allclose(c, joint_feature_difference(relevant, order), atol=1e-12)


@pytest.mark.parametrize(("n_rel", "n_other"), [(1, 30), (30, 1), (13, 40), (60, 60)])
def test_ap_places_are_those_of_algorithm_2(n_rel, n_other):
    rng = np.random.default_rng(n_rel)
    for scale in (0.01, 0.3, 3):
        relevant = np.arange(n_rel + n_other) < n_rel
        scores = rng.normal(size=len(relevant)) * scale + relevant * scale
        loss, coefficients = average_precision_oracle(relevant, scores)
        oracle = RankingOracle("AP", relevant.astype(float), np.array([0, len(relevant)]))
        ours = oracle(scores)
        assert ours[0][0] == pytest.approx(loss, abs=1e-12)
        np.testing.assert_allclose(ours[1], coefficients, atol=1e-13)


def test_closed_form_of_the_paper():
    rng = np.random.default_rng(5)
    R, N = 4, 6
    s, t = np.sort(rng.normal(size=R))[::-1], np.sort(rng.normal(size=N))[::-1]
    places = places_of_algorithm_2(s, t, R, N)
    for j in range(1, N + 1):
        values = [closed_form_delta(s / (R * N), t / (R * N), j, i) for i in range(1, R + 1)] + [0.0]
        assert values[places[j - 1] - 1] == pytest.approx(max(values), abs=1e-14)
    assert (np.diff(places) >= 0).all()  # Theorem 2


@given(st.integers(0, 10**6), st.sampled_from([item for item in LOSSES if item[0] != "ROC"]), st.integers(2, 40))
def test_properties(seed, item, n):
    measure, cutoff, discount = item
    rng = np.random.default_rng(seed)
    grades = (rng.random(n) < 0.3).astype(float)
    scores = rng.normal(size=n) * 0.2
    oracle = RankingOracle(measure, grades, np.array([0, n]), cutoff=cutoff, discount=discount)
    loss, c = oracle(scores)
    value = loss[0] + c @ scores
    assert value >= -1e-12  # the perfect ranking is among the choices
    assert -1e-12 <= loss[0] <= 1 + 1e-12
    assert abs(c.sum()) < 1e-12  # only differences of scores matter
    shifted = oracle(scores + 3.0)
    assert shifted[0][0] + shifted[1] @ (scores + 3.0) == pytest.approx(value, abs=1e-10)
    order = rng.permutation(n)
    moved = RankingOracle(measure, grades[order], np.array([0, n]), cutoff=cutoff, discount=discount)(scores[order])
    assert moved[0][0] + moved[1] @ scores[order] == pytest.approx(value, abs=1e-12)
    # A maximum of linear functions: no other scores may give a plane above it here.
    other = oracle(rng.normal(size=n))
    assert other[0][0] + other[1] @ scores <= value + 1e-12


def test_many_queries_are_worked_on_apart_and_threads_do_not_show():
    rng = np.random.default_rng(0)
    sizes = np.array([0, 1, 700, 0, 30_000, 12, 5])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    grades = rng.integers(0, 3, offsets[-1]).astype(float)
    grades[offsets[5] : offsets[6]] = 0
    grades[-5:] = [2, 0, 1, 2, 0]
    scores = rng.normal(size=len(grades))
    for measure in ("AP", "ROC", "RR", "nDCG"):
        oracle = RankingOracle(measure, grades, offsets, rel=2)
        loss, c = oracle(scores)
        assert oracle.kept.tolist() == [False, False, True, False, True, False, True]
        twice = oracle(scores, n_jobs=2)
        assert np.array_equal(loss, twice[0])
        assert np.array_equal(c, twice[1])
        for a, b in zip(offsets[:-1], offsets[1:]):
            alone = RankingOracle(measure, grades[a:b], np.array([0, b - a]), rel=2)(scores[a:b])
            assert np.array_equal(alone[1], c[a:b])


@pytest.mark.parametrize("kind", ["ties", "wide", "narrow"])
def test_pair_hinge_is_the_sum_over_pairs(kind):
    rng = np.random.default_rng(11)
    for _ in range(60):
        n = int(rng.integers(1, 9))
        grades = rng.integers(0, 4, n).astype(float)
        scores = {"ties": rng.integers(0, 5, n) / 2, "wide": rng.normal(size=n), "narrow": rng.normal(size=n) / 99}[
            kind
        ]
        oracle = GradedPairs(grades, np.array([0, n]))
        loss, c = oracle(scores)
        pairs = [(a, b) for a in range(n) for b in range(n) if grades[a] > grades[b]]
        assert oracle.n_pairs[0] == len(pairs)
        hinges = [1 - (scores[a] - scores[b]) for a, b in pairs]
        assert loss[0] == sum(h > 0 for h in hinges)
        # The worst subset of pairs is that of the positive ones: the maximum over all subsets is the sum of hinges.
        assert loss[0] + c @ scores == pytest.approx(sum(max(0, h) for h in hinges), abs=1e-12)


def test_pair_hinge_by_subsets():
    """Scores 1.8, .9, 0 for grades 2, 1, 0: no ranking violates the outer two pairs without the third."""
    grades, scores = np.array([2.0, 1.0, 0.0]), np.array([1.8, 0.9, 0.0])
    pairs = [(0, 1), (1, 2), (0, 2)]
    best = max(
        sum(1 - scores[a] + scores[b] for k, (a, b) in enumerate(pairs) if subset >> k & 1) for subset in range(8)
    )
    loss, c = GradedPairs(grades, np.array([0, 3]))(scores)
    assert best == pytest.approx(0.2)
    assert loss[0] + c @ scores == pytest.approx(best)


def test_pair_hinge_with_many_grades_and_empty_queries():
    rng = np.random.default_rng(2)
    offsets = np.array([0, 0, 50, 51, 51])
    grades = np.append(rng.normal(size=50), 1.0)
    oracle = GradedPairs(grades, offsets)
    assert oracle.n_pairs.tolist() == [0, 1225, 0, 0]
    scores = rng.normal(size=51)
    loss, c = oracle(scores)
    hinges = [max(0, 1 - (scores[a] - scores[b])) for a in range(50) for b in range(50) if grades[a] > grades[b]]
    assert loss[1] + c @ scores == pytest.approx(sum(hinges))


def test_toy_tables_of_the_paper():
    """Tables 1 to 4. (The second example's AP is .56 and .51 by the definition; .70 and .64 stand in some copies.)"""
    first = np.array([1, 0, 0, 0, 0, 1, 1, 0], dtype=bool)
    second = np.array([1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0], dtype=bool)
    for relevant, forward, backward in ((first, 0.59, 0.51), (second, 0.56, 0.51)):
        order = np.arange(len(relevant))
        assert 1 - ranking_loss("AP", relevant, order) == pytest.approx(forward, abs=0.005)
        assert 1 - ranking_loss("AP", relevant, order[::-1]) == pytest.approx(backward, abs=0.005)
    for hits, accuracy in ((second, 0.64), (second[::-1], 0.73)):
        right = [hits[:k].sum() + (~hits[k:]).sum() for k in range(12)]
        assert max(right) / 11 == pytest.approx(accuracy, abs=0.005)
    assert 1 - ranking_loss("ROC", first, np.arange(8)) == pytest.approx(0.47, abs=0.005)
    assert 1 - ranking_loss("ROC", first, np.arange(8)[::-1]) == pytest.approx(0.53, abs=0.005)
    # Under the order as a fixed ranking the oracle's loss with huge scores is that of the ranking itself.
    for relevant in (first, second):
        scores = -1e6 * np.arange(float(len(relevant)))
        loss, _ = RankingOracle("AP", relevant.astype(float), np.array([0, len(relevant)]))(scores)
        assert loss[0] == pytest.approx(ranking_loss("AP", relevant, np.arange(len(relevant))))


def test_oracles_of_measures():
    grades, offsets = np.array([1.0, 0.0, 2.0]), np.array([0, 3])
    assert oracle_for(AP(convention="trec"), grades, offsets, 2).n_relevant.tolist() == [1]
    letor = oracle_for(nDCG(convention="letor3") @ 3, grades, offsets, 1)
    assert letor.discount[1:4].tolist() == [1.0, 1.0, 1 / np.log2(3)]
    assert oracle_for(RR, grades, offsets, 1).measure == "RR"
    for measure in (P @ 3, AP @ 3):
        with refused(InvalidInputError, code="no-oracle"):
            oracle_for(measure, grades, offsets, 1)
    with refused(InvalidInputError, code="no-cutoff"):
        oracle_for(nDCG(convention="letor3"), grades, offsets, 1)
    with refused(InvalidInputError, code="no-oracle"):
        RankingOracle("P", grades, offsets)
