"""Estimates from few judgements: unbiased over every sample, of the stated variance, and equal to evaluate at last."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from reference import judging as reference
from support.few_judgements import made
from support.refusals import refused
from truerank import estimate, evaluate, plan_judgements
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.io.trec import as_qrels, as_run
from truerank.judging.estimate import Sampled, gain_estimates, spread_of
from truerank.judging.plan import allocate
from truerank.judging.predictions import Factors, make_factors
from truerank.judging.sums import Frame, sum_measure
from truerank.significance.intervals import mean_interval


@pytest.mark.parametrize("judges", [0, 1, 2])
def test_the_mean_over_every_sample_is_the_true_value(judges):
    runs, human, judge = made(topics=2, documents=4, runs=2, seed=3)
    labels = {"one": judge, "two": made(2, 4, 2, seed=9)[2]}
    given = dict(list(labels.items())[:judges])
    plan = plan_judgements(runs, "DCG@3", budget=4)
    truth = evaluate(human, runs, "DCG@3")
    mean = {"a": 0.0, "difference": 0.0}
    spread = []
    for drawn, chance in reference.samples(plan.probabilities):
        found = estimate(
            runs, "DCG@3", human=human if drawn.any() else None, plan=replace(plan, drawn=drawn), judges=given
        )
        mean["a"] += chance * found.values["run0"].value
        mean["difference"] += chance * found.difference("run0", "run1").value
        spread.append(found.values["run0"].value)
    assert len(spread) == 2 ** len(plan.documents)
    assert np.std(spread) > 0.1
    assert mean["a"] == pytest.approx(truth["run0"]["DCG@3"], abs=1e-9)
    assert mean["difference"] == pytest.approx(truth["run0"]["DCG@3"] - truth["run1"]["DCG@3"], abs=1e-9)


def test_the_mean_over_every_pair_of_rounds_is_the_true_value():
    """The second round's probabilities depend on the first one's grades."""
    runs, human, judge = made(topics=1, documents=4, runs=2, seed=5)
    one = plan_judgements(runs, "DCG@4", budget=2)
    frame = Frame(runs, sum_measure("DCG@4"))
    w = frame.difference(*frame.runs)
    truth = float(w @ [human[t][d] for t, d in frame.keys])
    mean, seen = 0.0, set()
    for drawn, chance in reference.samples(one.probabilities):
        first = replace(one, drawn=drawn, grades=np.full(4, np.nan))
        first = first.with_grades(human)
        if drawn.all():  # a second round would have nothing to plan: its estimate is the truth
            alone = estimate(runs, "DCG@4", human=human, plan=first, judges=[judge]).difference("run0", "run1").value
            mean += chance * (2 * alone + 2 * truth) / 4
            continue
        two = plan_judgements(runs, "DCG@4", budget=2, human=first, judges=[judge])
        later = two.rounds == 2
        seen.add(tuple(two.probabilities[later].round(6)))
        for more, other in reference.samples(two.probabilities[later]):
            whole = replace(two, drawn=np.append(drawn, more)).with_grades(human)
            found = estimate(runs, "DCG@4", human=None, plan=whole, judges=[judge])
            mean += chance * other * found.difference("run0", "run1").value
    assert len(seen) > 4
    assert mean == pytest.approx(truth, abs=1e-9)


def test_a_second_round_for_fewer_runs_leaves_the_others_unbiased():
    """Documents that only the third run ranks have no weight in the second round."""
    runs, human, _ = made(topics=1, documents=5, runs=3, seed=2)
    one = plan_judgements(runs, "DCG@2", budget=2)
    pair = {name: runs[name] for name in ("run0", "run1")}
    assert set(one.keys) > set(plan_judgements(pair, "DCG@2", budget=2).keys)
    mean, truth = 0.0, evaluate(human, runs, "DCG@2")["run2"]["DCG@2"]
    for drawn, chance in reference.samples(one.probabilities):
        first = replace(one, drawn=drawn).with_grades(human)
        if drawn.all():  # a second round would have nothing to plan: its estimate is the truth
            mean += chance * (estimate(runs, "DCG@2", human=human, plan=first).values["run2"].value + truth) / 2
            continue
        two = plan_judgements(pair, "DCG@2", budget=2, human=first)
        for more, other in reference.samples(two.probabilities[two.rounds == 2]):
            whole = replace(two, drawn=np.append(drawn, more)).with_grades(human)
            mean += chance * other * estimate(runs, "DCG@2", human=None, plan=whole).values["run2"].value
    assert mean == pytest.approx(truth, abs=1e-9)


def test_rows_that_were_deleted_from_a_later_round_are_missed():
    runs, human, _ = made(topics=3, documents=12)
    plan = plan_judgements(runs, "DCG@5", budget=10).with_grades(human)
    plan = plan_judgements(runs, "DCG@5", budget=10, human=plan).with_grades(human)
    keep = plan.drawn | (plan.rounds == 1)
    parts = {part.name: getattr(plan, part.name)[keep] for part in fields(plan)}
    with refused(InvalidInputError, code="lost-document"):
        estimate(runs, "DCG@5", human=None, plan=replace(plan, **parts))


class Fixed:
    """Predictions that are given."""

    def __init__(self, values):
        self.values = values

    def predict(self, judged, values):
        return self.values


def test_the_stated_variance_is_that_over_every_sample():
    rng = np.random.default_rng(2)
    n = 6
    g, b, w = rng.integers(0, 4, n).astype(float), rng.random(n), rng.normal(size=n)
    chances = np.array([0.2, 0.5, 1.0, 0.8, 0.3, 0.6])
    values, stated = [], 0.0
    for drawn, chance in reference.samples(chances):
        sampled = Sampled(np.zeros((1, n), bool), drawn[None], chances[None], np.ones((1, n)))
        found = gain_estimates(sampled, Fixed(b), np.where(drawn, g, np.nan), np.zeros(n, bool))
        total = float(w @ found.gains)
        assert total == pytest.approx(reference.total(w, g, drawn, chances, b))
        values.append((total, chance))
        stated += chance * float(w**2 @ found.variances)
    mean = sum(value * chance for value, chance in values)
    assert mean == pytest.approx(float(w @ g))
    assert stated == pytest.approx(sum(chance * (value - mean) ** 2 for value, chance in values))


def test_degrees_of_freedom_are_satterthwaites():
    # Four terms of variance 1: (Σ v)² / Σ v² = 4, twice that is 8. One term that dominates: 2.
    assert spread_of(np.array([1.0, 1.0, 0.0, 1.0, 1.0])) == (2.0, 8, 4)
    assert spread_of(np.array([1e6, 1.0, 1.0])).freedom == 2
    assert spread_of(np.array([1.0, 1.0])).half == pytest.approx(2.776445 * math.sqrt(2))  # Student's t with 4


def test_intervals_hold_where_few_documents_have_nearly_all_gain():
    """Gains 1, 3 and 7 of one document in twenty: the normal quantile covers 0.88."""
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(8):
        n, q = 300, 25
        w, g = rng.normal(size=n), (rng.random(n) < 0.05) * (2.0 ** rng.integers(1, 4, n) - 1)
        chances, topic = allocate(np.abs(w), 100), rng.integers(0, q, n)
        factors = Factors([(topic, 4.0)], n)
        for _ in range(60):
            drawn = rng.random(n) < chances
            sampled = Sampled(np.zeros((1, n), bool), drawn[None], chances[None], np.ones((1, n)))
            found = gain_estimates(sampled, factors, g, np.zeros(n, bool))
            covered.append(abs(w @ (found.gains - g)) <= spread_of(w**2 * found.variances).half)
    assert np.mean(covered) > 0.92


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 1.0])
def test_predictions_are_regressions_without_the_document_itself(share):
    rng = np.random.default_rng(4)
    n = 30
    factors = Factors([(rng.integers(0, 3, n), 4.0), (rng.integers(0, 4, n), 2.0)], n)
    judged, values = rng.random(n) < share, rng.normal(size=n)
    expected = reference.predictions(factors.codes, factors.penalties, judged, values)
    assert factors.predict(judged, np.where(judged, values, 0.0)) == pytest.approx(expected, abs=1e-6)


def test_a_judges_label_predicts_its_shrunk_mean_and_naming_the_judge_twice_changes_nothing():
    labels, g = np.array([0.0, 0.0, 1.0, 1.0, 1.0]), np.array([0.0, 1.0, 3.0, 2.0, 4.0])
    factors = Factors([(labels, 2.0)], 5)
    m, zero, one = np.linalg.solve([[5 + 1e-9, 2, 3], [2, 4, 0], [3, 0, 5]], [10.0, 1.0, 9.0])
    assert factors.predict(np.append(np.ones(5, bool), False)[:5] & [1, 1, 1, 1, 0], g)[4] != m + one  # not its own
    everything = Factors([(np.append(labels, [0.0, 1.0]), 2.0)], 7)
    judged = np.array([True] * 5 + [False] * 2)
    assert everything.predict(judged, np.append(g, [0.0, 0.0]))[5:] == pytest.approx([m + zero, m + one])
    runs, human, judge = made(topics=4, documents=10)
    plan = plan_judgements(runs, "DCG@5", budget=20)
    once = estimate(runs, "DCG@5", human=human, plan=plan, judges=[judge]).difference("run0", "run1")
    twice = estimate(runs, "DCG@5", human=human, plan=plan, judges={"x": judge, "y": judge}).difference("run0", "run1")
    assert twice.value == pytest.approx(once.value, abs=1e-9)


@pytest.mark.parametrize(
    ("measure", "convention"),
    [
        ("DCG@3", "trec"),
        ("DCG(gain='exponential')@5", "trec"),
        ("DCG(gains={1: 5})@4", "trec"),
        ("DCG@4", "ranklib"),
        ("DCG(grades='any')@4", "letor3"),
        ("P@5", "trec"),
        ("P(rel=2)@20", "trec"),
        ("P(grades='any')@5", "letor3"),
        ("RBP(0.5)@3", "ranx"),
        ("RBP", "trec"),
        ("RBP(0.5)@3", "trec"),
        ("R@4", "trec"),
    ],
)
def test_with_every_document_judged_it_is_evaluate(measure, convention):
    runs, human, judge = made(topics=3, documents=9, seed=7)
    for own in runs.values():
        own["1"] = dict(list(own["1"].items())[:4])  # a short list
    totals = {t: sum(grade >= 1 for grade in own.values()) for t, own in human.items()}
    more = {"totals": totals} if measure.startswith("R@") else {}
    plan = plan_judgements(runs, measure, budget=100, convention=convention, **more)
    assert plan.drawn.all()
    found = estimate(runs, measure, human=human, plan=plan, judges=[judge], convention=convention, **more)
    truth = evaluate(human, runs, measure, convention=convention)
    for name, one in found.values.items():
        assert one.value == pytest.approx(truth[name][measure], abs=1e-12)
        assert (one.low, one.high) == (one.value, one.value)
    values = [truth[name].per_query[measure] for name in ("run0", "run1")]
    d = values[0] - values[1]
    pair = found.difference("run0", "run1")
    assert (pair.low_topics, pair.high_topics) == pytest.approx(mean_interval(d)[1:], nan_ok=True)


def test_p_is_below_the_level_exactly_where_the_interval_excludes_nothing():
    runs, human, judge = made(topics=10, documents=30, runs=4, seed=1)
    plan = plan_judgements(runs, "DCG@10", budget=60)
    for one in estimate(runs, "DCG@10", human=human, plan=plan, judges=[judge]).differences():
        assert (one.p < 0.05) == (one.low > 0 or one.high < 0)
        assert (one.p_topics < 0.05) == (one.low_topics > 0 or one.high_topics < 0)
        assert one.low < one.value < one.high
        own = sum(w * judge[t][d] for w, (t, d) in _weighted(runs, one.a, one.b)) / 10
        assert (one.judge_low + one.judge_high) / 2 == pytest.approx(own - one.value)
        assert one.worth > 0
        assert one.plan_worth > 0


def _weighted(runs, a, b):
    frame = Frame(runs, sum_measure("DCG@10"))
    return zip(frame.difference(a, b).tolist(), frame.keys)


def test_intervals_cover_what_every_judgement_would_give():
    runs, human, judge = made(topics=12, documents=40, runs=2, seed=11)
    truth = evaluate(human, runs, "DCG@10")
    true = truth["run0"]["DCG@10"] - truth["run1"]["DCG@10"]
    runs, human = {name: as_run(own, name) for name, own in runs.items()}, as_qrels(human)
    covered = []
    for seed in range(150):
        plan = plan_judgements(runs, "DCG@10", budget=60, random_state=seed)
        one = estimate(runs, "DCG@10", human=human, plan=plan, judges=[judge]).difference("run0", "run1")
        covered.append(one.low <= true <= one.high)
    assert 0.89 < np.mean(covered) < 0.995


def test_labels_that_were_not_drawn_are_in_no_sum():
    runs, human, _ = made(topics=4, documents=20)
    plan = plan_judgements(runs, "DCG@10", budget=30)
    asked: dict = {}
    for topic, document in plan.to_judge:
        asked.setdefault(topic, {})[document] = human[topic][document]
    alone, more = (estimate(runs, "DCG@10", human=labels, plan=plan) for labels in (asked, human))
    assert alone.judged == more.judged == len(plan.to_judge)
    assert [one.code for one in more.remarks] == ["undrawn-grades"]
    assert list(alone.remarks) == []
    assert more.difference("run0", "run1").value != alone.difference("run0", "run1").value


def test_runs_outside_the_plan_have_no_value():
    runs, human, _ = made(topics=5, documents=30)
    plan = plan_judgements(runs, "DCG@5", budget=30)
    first = {name: runs[name] for name in ("run0", "run1")}
    planned = set(zip(plan.topics, plan.documents))
    other = {t: {d: -s for d, s in own.items()} for t, own in runs["run0"].items()}
    with pytest.warns(TruerankWarning, match="not in the plan"):
        found = estimate(first | {"new": other}, "DCG@5", human=human, plan=plan)
    assert math.isnan(found.values["new"].value)
    assert math.isnan(found.difference("new", "run0").low)
    frame = Frame({"new": other}, sum_measure("DCG@5"))
    assert found.values["new"].outside == len(set(frame.keys) - planned)
    assert found.difference("run0", "run1").low < found.difference("run0", "run1").high
    with refused(InvalidInputError, code="no-value"):
        estimate({"new": other}, "DCG@5", human=human, plan=plan)


def test_few_residuals_give_no_interval():
    runs, human, _ = made(topics=2, documents=6)
    nothing = {t: dict.fromkeys(own, 0) for t, own in human.items()}
    one = estimate(runs, "DCG@5", human=nothing, plan=plan_judgements(runs, "DCG@5", budget=8)).difference(
        "run0", "run1"
    )
    assert one.residuals == 0
    assert one.value == 0
    assert math.isnan(one.low)
    assert math.isnan(one.p)
    assert math.isnan(one.low_topics)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plan": None}, {"code": "no-plan"}),
        ({"human": {}}, {"code": "no-grade"}),
        ({"scale": (0, 2)}, {"code": "outside-scale", "argument": "grades", "value": 3.0}),
        ({"judges": "human"}, {"code": "copies"}),
        ({"measure": "nDCG@5"}, {"argument": "measure"}),
        ({"measure": "AP"}, {"argument": "measure"}),
        ({"measure": "R@5"}, {"argument": "totals"}),
        ({"totals": {"1": 3}}, {"argument": "totals"}),
        ({"measure": "P@5", "convention": "lightgbm"}, {"argument": "convention"}),
        ({"runs": "fewer"}, {"code": "different-topics", "argument": "topics"}),
        ({"judges": [{"other": {"x": 1}}]}, {"code": "nothing-labelled"}),
    ],
)
def test_misuse_of_an_estimate_says_what_to_do(change, words):
    runs, human, judge = made(topics=5, documents=12)
    plan = plan_judgements(runs, "DCG@5", budget=30)
    given = {"runs": runs, "measure": "DCG@5", "human": human, "plan": plan, "judges": [judge]} | change
    if given["judges"] == "human":
        given["judges"] = [human]
    if given["runs"] == "fewer":
        given["runs"] = {name: {t: own[t] for t in list(own)[:4]} for name, own in runs.items()}
    with refused(InvalidInputError, **words):
        estimate(**given)


def test_strange_labels_are_levels_of_their_own():
    runs, human, judge = made(topics=5, documents=12)
    plan = plan_judgements(runs, "DCG@5", budget=30)
    (first, one), (second, other) = list(zip(plan.topics, plan.documents))[:2]
    judge[first][one] = 10
    del judge[second][other]
    with pytest.warns(TruerankWarning) as seen:
        estimate(runs, "DCG@5", human=human, plan=plan, judges={"llm": judge})
    said = " ".join(str(one.message) for one in seen)
    assert "'llm' has labels above 4 (10)" in said
    assert "'llm' has no label for 1 of the" in said


def test_very_many_topics_are_no_factor():
    runs, _, _ = made(topics=1_001, documents=2)
    assert len(make_factors(Frame(runs, sum_measure("P@1")), {}).penalties) <= 1 + 8


def test_scores_of_many_levels_are_cut_into_few():
    runs, human, _ = made(topics=5, documents=12)
    rng = np.random.default_rng(0)
    scores = {t: {d: float(rng.random()) for d in own} for t, own in human.items()}
    frame = Frame(runs, sum_measure("DCG@5"))
    labels = np.array([scores[t][d] for t, d in frame.keys])
    assert len(make_factors(frame, {"x": labels}).penalties) == 1 + 5 + 8 + 5


def test_a_judge_favours_a_run_only_after_correction_for_all_pairs():
    rng = np.random.default_rng(1)
    human = {
        str(q): {f"d{i}": int(g) for i, g in enumerate(rng.choice(4, 20, p=[0.5, 0.25, 0.15, 0.1]))} for q in range(6)
    }
    judge = {q: own | {"d0": (own["d0"] + 1) % 4} for q, own in human.items()}
    runs = {f"r{s}": {q: {d: float(rng.normal()) for d in own} for q, own in human.items()} for s in range(8)}
    plan = plan_judgements(runs, "DCG@10", budget=60, random_state=1, scale=(0, 3))
    many = estimate(runs, "DCG@10", human=human, plan=plan, judges={"j": judge}, scale=(0, 3))
    alone = [one for one in many.differences() if one.judge_low > 0 or one.judge_high < 0]
    assert len(alone) == 3  # of 28
    assert all(0.03 < one.judge_p < 0.05 for one in alone)
    assert "favours" not in str(many)
    one = alone[0]
    pair = estimate(
        {name: runs[name] for name in (one.a, one.b)},
        "DCG@10",
        human=human,
        plan=plan,
        judges={"j": judge},
        scale=(0, 3),
    )
    found = pair.difference(one.a, one.b)
    assert ("favours" in str(pair)) == (found.judge_low > 0 or found.judge_high < 0)
