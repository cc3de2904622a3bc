"""Verdicts against a margin: one rule for every caller, equal to its definition."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.verdicts import kinds

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.inspection.retraining import decide
from truerank.measures import parse_measure
from truerank.significance import Interval, Verdict, compare_values, verdict
from truerank.significance.comparison import MeasuredValues, compare_measures
from truerank.significance.comparison_text import caption


def values_of(rng):
    """Baseline and candidate on some queries: many zeros, many ties, or smooth."""
    n = int(rng.integers(2, 150))
    old = rng.choice([rng.random(n), np.where(rng.random(n) < 0.6, 0.0, rng.random(n)), 1 / rng.integers(1, 20, n)])
    step = rng.normal(rng.choice([0.0, 0.01, -0.01]), rng.choice([0.001, 0.01, 0.1]), n)
    step[rng.random(n) < rng.choice([0.0, 0.5, 0.95])] = 0.0
    return np.clip(old + step, 0, 1), old


def test_a_verdict_equals_its_definition_in_every_caller():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(150):
        new, old = values_of(rng)
        margin = float(rng.choice([0.005, 0.02, 0.1, 0.4]))
        own = verdict(new - old, margin, baseline=old)
        assert own.kinds == kinds(new.tolist(), old.tolist(), margin)
        assert compare_values({"old": old, "new": new}, test="t", margin=margin).pairs[0].verdict.kinds == own.kinds
        decision = decide(new, old, test="t", margin=margin)
        assert decision.verdict in own.kinds
        assert decision.promoted == bool({"better", "not worse"} & {*own.kinds})
        seen |= {*own.kinds}
    assert seen == {"better", "worse", "not worse", "equivalent", "undecided"}


@pytest.mark.parametrize("n", [2, 12, 50, 400])
@pytest.mark.parametrize("by", [0.0, 0.25, -0.25])
def test_equal_differences_have_one_answer(n, by):
    old = np.full(n, 0.5)
    for margin in (0.002, 0.01, 0.3):
        for test in ("randomisation", "t"):
            found = compare_values({"old": old, "new": old + by}, test=test, margin=margin).pairs[0].verdict
            decision = decide(old + by, old, test=test, margin=margin)
            assert decision.of_mean.kinds == found.kinds
            assert decision.promoted == bool({"better", "not worse"} & {*found.kinds})
            if test == "t":
                assert verdict(np.full(n, by), margin, baseline=old).kinds == found.kinds


@pytest.mark.parametrize(("loss", "least"), [(0.3, 45), (0.5, 74), (0.8, 119)])
def test_without_differences_the_margin_needs_so_many_queries(loss, least):
    def decided(n):
        return verdict(np.zeros(n), 0.02, baseline=np.full(n, loss))

    assert not decided(least - 1).not_worse
    assert decided(least).kinds == ("not worse", "equivalent")
    assert decided(20).needed == least
    assert f"about {least} queries are needed" in str(decided(20))


def test_the_number_of_queries_that_decide_is_the_least():
    rng = np.random.default_rng(1)
    for _ in range(50):
        new, old = values_of(rng)
        found = verdict(new - old, 0.02, baseline=old)
        if found.needed is not None:
            enough = [
                Verdict(found.interval, found.p, n, found.deviation, 0.02, found.loss).not_worse
                for n in (found.needed - 1, found.needed)
            ]
            assert enough == [False, True]


def test_a_better_candidate_needs_no_further_query():
    d = np.full(12, 0.02) + np.arange(12) * 1e-4
    assert verdict(d, 0.001, baseline=np.full(12, 0.9)).kinds == ("better",)


def test_what_is_not_seen_is_named():
    rng = np.random.default_rng(2)
    old = rng.random(50)
    result = compare_values({"old": old, "new": old + 0.001 * rng.standard_normal(50)}, margin=0.2)
    for text in (
        str(result.pairs[0].verdict),
        caption({result.measure: result}),
        result.to_dict()["pairs"][0]["verdict_text"],
    ):
        assert "50 queries can miss losses on fewer than 5.8 % of queries" in text


def test_errors_and_values_that_may_be_negative_have_no_verdict_of_not_worse():
    old = np.random.default_rng(3).random(60)
    new = old + 1e-4 * np.random.default_rng(4).standard_normal(60)
    errors = compare_values({"old": old, "new": new}, higher_is_better=False, margin=0.3).pairs[0].verdict
    negative = verdict(new - old, 0.3, baseline=old - 0.5)
    of_tau = MeasuredValues({"old": old, "new": new}, by=parse_measure("tau"))
    for found in (errors, negative, compare_measures([of_tau], margin=0.3)[0].pairs[0].verdict):
        assert found.kinds == ("undecided",)
        assert "can be negative" in str(found)
    assert decide(-new, -old, margin=0.3).verdict == "undecided"
    assert decide(new, old, margin=0.3, measure=parse_measure("tau")).verdict == "undecided"


def test_queries_without_a_value_are_left_out():
    new, old = np.random.default_rng(5).random((2, 40))
    old[3], new[7] = np.nan, np.nan
    kept = ~np.isnan(new - old)
    assert verdict(new - old, 0.2, baseline=old) == verdict((new - old)[kept], 0.2, baseline=old[kept])


@pytest.mark.parametrize("n", [12, 25, 60, 100])
@pytest.mark.parametrize("kind", ["half", "sparse", "reciprocal"])
def test_a_rare_large_loss_is_seldom_promoted(n, kind):
    rng = np.random.default_rng(6)
    promoted = 0
    for _ in range(300):
        old = {
            "half": lambda: rng.uniform(0.2, 0.8, n),
            "sparse": lambda: np.where(rng.random(n) < 0.6, 0.0, rng.uniform(0.3, 1.0, n)),
            "reciprocal": lambda: 1 / rng.geometric(0.5, n),
        }[kind]()
        new = old - 0.5 * (rng.random(n) < 0.04)  # a loss is 0.5 whatever the query had
        loss = float(old.mean())
        d = new - old
        spread = d.std(ddof=1)
        half = 2.0 * spread / np.sqrt(n)
        found = Verdict(Interval(d.mean(), d.mean() - half, d.mean() + half), 1.0, n, spread, 0.005, loss)
        promoted += found.not_worse
    assert promoted / 300 <= 0.02


def test_refusals():
    assert verdict([0.2]).kinds == ("undecided",)
    with refused(InvalidInputError, argument="margin"):
        verdict([0.1, 0.2], 0.0)
    with refused(InvalidInputError, argument="margin"):
        verdict([0.1, 0.2], 0.1)
    with refused(InvalidInputError, argument="baseline"):
        verdict([0.1, 0.2], 0.1, baseline=[0.1] * 3)
    with pytest.raises(AttributeError):
        verdict([0.1, 0.2]).margin = 1.0


def test_the_summary_says_that_a_verdict_on_the_best_of_several_is_of_its_pair_alone():
    """The best of nine systems that all lose the margin is "not worse" nine times as often as one of them."""
    rng = np.random.default_rng(0)
    old = 0.2 + 0.6 * rng.random(200)
    values = {"old": old} | {name: old + rng.normal(0.0, 0.02, 200) for name in "ab"}
    assert "compared with old, by this pair alone." in compare_values(values, margin=0.05).summary
    del values["b"]
    assert compare_values(values, margin=0.05).summary.endswith("compared with old.")
