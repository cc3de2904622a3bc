"""Several measures are one family; tables say what they are about; verdicts, and the influence of single queries."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

from support.refusals import refused
from truerank import compare, evaluate
from truerank.core.errors import InvalidInputError
from truerank.significance import (
    compare_values,
    divided_step_down,
    holm,
    measure_interval,
    simultaneous_intervals,
    verdict,
)
from truerank.significance.comparison import MeasuredValues, compare_measures
from truerank.significance.comparison_text import pairs_table
from truerank.significance.paired import paired_tests


def values(seed: int, n: int = 40) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.uniform(size=n)
    return {name: base + rng.normal(shift, 0.1, n) for name, shift in (("a", 0.0), ("b", 0.04), ("c", 0.06))}


def two_measures(**options):
    measured = [MeasuredValues(values(0), "AP", "trec"), MeasuredValues(values(1), "RR", "trec")]
    return measured, compare_measures(measured, baseline=None, **options)


def columns(measured) -> np.ndarray:
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    return np.array([one.per_query[a] - one.per_query[b] for one in measured for a, b in pairs]).T


def test_p_is_corrected_over_all_pairs_and_measures():
    measured, found = two_measures()
    d = columns(measured)
    family = divided_step_down(d, np.repeat([0, 1], 3))
    p = [pair.p_adjusted for one in found for pair in one.pairs]
    assert p == family.p_adjusted.tolist()
    assert [pair.p for one in found for pair in one.pairs] == paired_tests("randomisation", d).p.tolist()
    together = simultaneous_intervals(d, np.repeat([0, 1], 3))
    assert [pair.simultaneous.low for one in found for pair in one.pairs] == together.low.tolist()
    assert all(pair.simultaneous.low <= pair.low < pair.high <= pair.simultaneous.high for pair in found[0].pairs)
    assert two_measures(test="t")[1][1].pairs[0].p_adjusted == p[3]  # by signs, also for Student's test
    assert two_measures(correction="holm")[1][0].pairs[0].simultaneous is None
    alone = [pair for one in measured for pair in compare_values(one.per_query, baseline=None).pairs]
    together = [pair for one in found for pair in one.pairs]
    assert [one.p for one in alone] == [one.p for one in together]
    assert all(both.p_adjusted >= own.p_adjusted for both, own in zip(together, alone))
    assert any(both.p_adjusted > own.p_adjusted for both, own in zip(together, alone))


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_holm_goes_over_all_pairs_and_measures(test):
    measured, found = two_measures(test=test)
    p = [pair.p_adjusted for one in found for pair in one.pairs]
    assert p == holm(paired_tests(test, columns(measured)).p).tolist()
    assert "p corrected by Holm for 6 comparisons (3 pairs × 2 measures)" in str(found[0])


def test_comparisons_are_one_family():
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 2, 200), np.repeat(np.arange(40), 5)
    scores = {"good": y + rng.normal(size=200), "bad": rng.normal(size=200)}
    found = compare(y, scores, "AP P@1", qid=qid)
    about = "AP, P@1, convention ranklib; 40 queries; randomisation test, two-sided (10000 resamples); p corrected by "
    about += "max-T and Holm, 4 : 1, for 2 comparisons (1 pair × 2 measures), ** where it is below 0.05"
    assert about in str(found)
    assert about.replace("**", r"\*\*") in found.to_markdown()
    assert about in found._repr_html_()
    assert "<caption>AP, P@1" in found._repr_html_()
    assert r"\caption{AP, P@1, convention ranklib, truerank " in found.to_latex()
    assert found["AP"].to_dict()["comparisons"] == 2


@pytest.mark.parametrize(("test", "name"), [("sign", "share of wins"), ("wilcoxon", "pseudo-median")])
def test_intervals_are_named_for_what_they_are(test, name):
    found = compare_values(values(0), test=test, measure="AP")
    assert found.to_dict()["interval_of"] == name
    for style in ("text", "markdown", "latex", "html"):
        for text in (found._table(style), pairs_table({found.measure: found}, style)):
            assert f"{name}, 95%" in text.replace("\\", "")
            assert "difference, 95%" not in text.replace("\\", "")
    assert f"{name}, 95%" in str(found)
    assert "difference, 95%" not in str(found)
    with refused(InvalidInputError, argument="style"):
        found.text("latx")
    assert compare_values(values(0)).to_dict()["interval_of"] == "mean difference"


def test_a_share_has_no_sign():
    found = compare_values({"a": np.ones(10), "b": np.r_[np.zeros(8), 2.0, 2.0]}, test="sign", baseline="b")
    assert re.search(r"\+0\.6000 +\[0\.4439, 0\.9748\]", str(found))


def test_queries_that_differ_are_counted_where_there_is_no_interval():
    same = compare_values({"a": np.array([0.5, 0.5]), "b": np.array([0.75, 0.75])})
    assert "b against a has no interval: all 2 queries differ by the same amount" in str(same)
    assert same.pairs[0].p == 0.5  # both signs alike
    assert "0.0000" not in str(same).partition("80 % power")[2]  # no detectable difference without variance
    assert "no p and no interval: 1 of 1 query differs" in str(compare_values({"a": [0.5], "b": [0.75]}))


def test_the_monte_carlo_error_is_printed_where_it_matters():
    rng = np.random.default_rng(3)
    d = rng.normal(size=60)
    shift = next(
        s for s in np.linspace(0, 1, 2001) if paired_tests("t", (d + s)[:, None]).p[0] < 0.05 and d.mean() + s > 0
    )
    near = compare_values({"old": np.zeros(60), "new": d + shift})
    (pair,) = near.pairs
    assert pair.error == pytest.approx(np.sqrt(pair.p * (1 - pair.p) / 10_000))
    assert abs(pair.p - 0.05) < 2 * pair.error
    assert f"Monte Carlo error of the corrected p {pair.p:.4f}" in str(near)
    far = compare_values({"old": np.zeros(60), "new": d + 2.0})
    assert "Monte Carlo" not in str(far)
    assert compare_values({"old": np.zeros(8), "new": d[:8]}).pairs[0].error == 0.0  # all signs are tried


def test_verdicts_are_by_the_intervals_of_the_test_and_the_corrected_p():
    own = values(2)
    found = compare_values(own, test="t", margin=0.05)
    for pair in found.pairs:
        alone = verdict(own[pair.a] - own[pair.b], 0.05, baseline=own[pair.b])
        assert (pair.verdict.not_worse, pair.verdict.equivalent) == (alone.not_worse, alone.equivalent)
        assert (pair.verdict.better or pair.verdict.worse) == (pair.p_adjusted < 0.05)
        assert pair.verdict.words in str(found)
        assert pair.verdict.words in found._table("text")
    assert found.to_dict()["pairs"][0]["verdict"] == list(found.pairs[0].verdict.kinds)
    assert compare_values(own).pairs[0].verdict is None
    randomised = compare_values(own, margin=0.05).pairs[0]
    assert randomised.verdict.interval[1:] == (randomised.low, randomised.high)
    with refused(InvalidInputError, argument="margin"):
        compare_values(own, test="sign", margin=0.05)
    with refused(InvalidInputError, argument="margin"):
        compare_values(own, margin=-0.05)


def test_influence_is_the_comparison_without_the_query():
    d = np.r_[np.full(9, 0.1), 0.12, -0.9]
    new = {"old": np.zeros(11), "new": d}
    names = [f"q{i}" for i in range(11)]
    found = compare_values(new, query_ids=names)
    one = found.influence("new", "old")
    assert found.pairs[0].p_adjusted >= 0.05
    assert (one.query, one.changes) == ("q10", True)
    without = compare_values({name: own[:10] for name, own in new.items()}).pairs[0]
    assert one[1:3] == (without.difference, without.p_adjusted)
    assert found.influence("old", "new").difference == -one.difference
    assert pickle.loads(pickle.dumps(found)).influence("new", "old") == one
    clear = compare_values({"old": np.zeros(30), "new": np.random.default_rng(0).normal(1, 0.2, 30)})
    assert not clear.influence("new", "old").changes
    with refused(InvalidInputError, code="not-compared"):
        found.influence("new", "other")
    assert compare_values({"a": [0.1, 0.2], "b": [0.3, 0.5]}).influence("a", "b") is None


def test_intervals_of_means_end_at_the_limits_of_the_measure_as_those_of_evaluate():
    y, qid = [1, 0, 0, 1, 0, 0], [1, 1, 1, 2, 2, 2]
    scores = {"old": [3, 2, 1, 1, 2, 3], "new": [3, 2, 1, 2, 3, 1]}
    found = compare(y, scores, "AP DCG@3", qid=qid)
    assert found["AP"].intervals["old"][1:] == (0.0, 1.0)
    assert found["DCG@3"].intervals["old"].low < 0.0  # has no upper limit
    alone = evaluate(y, scores["new"], "AP", qid=qid)
    assert found["AP"].intervals["new"] == measure_interval(alone.measures["AP"], alone.per_query["AP"])
