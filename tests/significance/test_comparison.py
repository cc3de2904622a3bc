"""compare: its arithmetic, its choices, its refusals; the wins and losses of a published rerun."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pytest
from scipy import stats

from support.refusals import refused
from truerank import compare, evaluate
from truerank.core.errors import InvalidInputError
from truerank.significance import compare_values, holm, paired_t, sign_test, wilcoxon
from truerank.significance.comparison_text import finding


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 8)
    y = rng.integers(0, 3, 320)
    scores = {
        "noise": rng.random(320),
        "good": y + rng.normal(0, 1, 320),
        "better": y + rng.normal(0, 0.5, 320),
    }
    return y, scores, qid


def test_against_a_baseline(judged):
    y, scores, qid = judged
    result = compare(y, scores, "AP", qid=qid, test="t", correction="holm")
    assert result.baseline == "noise"
    assert [(pair.a, pair.b) for pair in result.pairs] == [("good", "noise"), ("better", "noise")]
    values = {name: evaluate(y, given, "AP", qid=qid).per_query["AP"] for name, given in scores.items()}
    p = [paired_t(values[name], values["noise"]).p for name in ("good", "better")]
    assert [pair.p for pair in result.pairs] == p
    assert [pair.p_adjusted for pair in result.pairs] == holm(p).tolist()
    pair = result.pairs[0]
    assert pair.wins == np.sum(values["good"] > values["noise"])
    assert pair.wins + pair.losses + pair.ties == pair.queries == 40
    assert pair.low <= pair.difference <= pair.high
    assert pair.difference == pytest.approx(result.means["good"] - result.means["noise"])


def test_every_pair(judged):
    y, scores, qid = judged
    result = compare(y, scores, qid=qid, pairs="all", test="sign", correction="none")
    assert [(pair.a, pair.b) for pair in result.pairs] == [("noise", "good"), ("noise", "better"), ("good", "better")]
    assert all(pair.p == pair.p_adjusted for pair in result.pairs)
    assert "good against better" in str(result)


def test_row_order_does_not_matter(judged):
    y, scores, qid = judged
    order = np.random.default_rng(1).permutation(len(y))
    shuffled = {name: given[order] for name, given in scores.items()}
    there = compare(y, scores, qid=qid, test="wilcoxon").pairs[0]
    back = compare(y[order], shuffled, qid=qid[order], test="wilcoxon").pairs[0]
    assert (there.wins, there.losses, there.p) == pytest.approx((back.wins, back.losses, back.p))


def test_same_seed_same_figures(judged):
    y, scores, qid = judged
    first, second = (compare(y, scores, qid=qid, random_state=4).to_dict() for _ in range(2))
    assert first == second


def test_degenerate_comparisons():
    one_query = compare([1, 0], {"a": [0, 1], "b": [1, 0]}, "RR", test="t").pairs[0]
    assert one_query.wins == 1
    assert np.isnan([one_query.p, one_query.p_adjusted, one_query.low, one_query.high]).all()
    same = compare([1, 0], {"a": [0, 1], "b": [0, 1]}).pairs[0]
    assert (same.ties, same.p, same.difference) == (1, 1.0, 0.0)
    assert np.isnan([same.low, same.high]).all()


def test_refusals():
    with refused(InvalidInputError, code="one-ranker"):
        compare_values({"a": np.zeros(3)})
    with refused(InvalidInputError, argument="baseline"):
        compare_values({"a": np.zeros(3), "b": np.zeros(3)}, baseline="c")
    with refused(InvalidInputError, argument="test"):
        compare_values({"a": np.zeros(3), "b": np.zeros(3)}, test="z")
    with refused(InvalidInputError, argument="scores of 'a'"):
        compare([1, 0], {"a": [1], "b": [1, 2]})
    with refused(InvalidInputError, argument="scores"):
        compare([1, 0], [[1, 2], [2, 1]])


@pytest.mark.data
def test_a_third_party_rerun_of_letor(collections):
    """Mean of the five folds' MAP as its publisher printed it, and tests that agree in direction."""
    published = {"adarank": 0.4766, "listnet": 0.4415, "rankboost": 0.4752, "ranknet": 0.4522, "svm_rank": 0.4677}
    with gzip.open(collections / "letor-rerun-scores" / "mq2008.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    y = np.array([float(row["label"]) for row in rows])
    qid = np.array([f"{row['fold']}-{row['qid']}" for row in rows])
    fold = np.array([row["fold"] for row in rows])
    scores = {name: np.array([float(row[name]) for row in rows]) for name in published}
    for name, expected in published.items():
        means = [evaluate(y[fold == f], scores[name][fold == f], "AP", qid=qid[fold == f])["AP"] for f in "12345"]
        assert round(float(np.mean(means)), 4) == expected
    result = compare(y, scores, "AP", qid=qid, baseline="listnet")
    pair = next(pair for pair in result.pairs if pair.a == "adarank")
    assert pair.wins > pair.losses
    assert pair.p_adjusted < 0.01
    values = [result.per_query[name] for name in ("adarank", "listnet")]
    assert wilcoxon(*values).p < 0.01
    assert sign_test(*values).p < 0.05


def test_every_test_is_scipys_on_real_values(collections):
    with gzip.open(collections / "letor-rerun-scores" / "ohsumed.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    y, qid = [float(row["label"]) for row in rows], [row["qid"] for row in rows]
    names = ("adarank", "listnet", "ranknet")
    values = {n: evaluate(y, [float(row[n]) for row in rows], "nDCG@10", qid=qid).per_query["nDCG@10"] for n in names}
    for test in ("t", "wilcoxon", "sign", "randomisation"):
        for pair in compare_values(values, baseline=None, test=test).pairs:
            a, b = values[pair.a], values[pair.b]
            if test == "t":
                assert pair.p == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-9)
            elif test == "wilcoxon":
                assert pair.p == pytest.approx(
                    stats.wilcoxon(a, b, zero_method="pratt", method="approx").pvalue, rel=1e-9
                )
            elif test == "sign":
                assert pair.p == pytest.approx(stats.binomtest(pair.wins, pair.wins + pair.losses).pvalue, rel=1e-9)
            else:
                theirs = stats.permutation_test(
                    (a - b,), np.mean, permutation_type="samples", vectorized=True, n_resamples=10_000, rng=0
                )
                assert pair.p == pytest.approx(theirs.pvalue, abs=0.02)


def test_signs_follow_the_way_that_is_better():
    y, qid = [2, 0] * 12, np.repeat(np.arange(12), 2)
    good, bad = np.tile([1.0, 0.0], 12), np.tile([0.0, 1.0], 12)
    for name in ("AP", "pairs(2,0)"):
        for test in ("randomisation", "t", "sign", "wilcoxon"):
            pair = compare(y, {"bad": bad, "good": good}, name, qid=qid, test=test).pairs[0]
            assert (pair.a, pair.wins, pair.losses) == ("good", 12, 0)
            assert pair.difference > 0
            # All differences are equal: no interval of a mean and no p of Student's t, but the signs have one.
            assert np.isnan(pair.detectable)
            assert np.isnan(pair.low) if test in ("randomisation", "t") else pair.low > 0
            assert np.isnan(pair.p) if test == "t" else pair.p == pytest.approx(2.0**-11)
    result = compare(y, {"bad": bad, "good": good}, "pairs(2,0)", qid=qid)
    assert result.means == {"bad": 1.0, "good": 0.0}
    assert result.moved_most("good", "bad")[0][0][1] == 1.0
    assert [line.split()[1] for line in result._table("text").splitlines()[2:]] == ["good", "bad"]


def test_means_with_ties_averaged_stand_beside_where_the_rule_for_ties_decides(judged):
    y, scores, qid = judged
    untied = compare(y, scores, "AP", qid=qid)
    assert untied.tie_averaged == pytest.approx(untied.means)
    assert "ties averaged" not in untied._table("text")
    tied = compare(y, {"rounded": np.round(scores["good"]), **scores}, "AP", qid=qid, test="t")
    expected = evaluate(y, np.round(scores["good"]), "AP(ties=average)", qid=qid)["AP(ties=average)"]
    assert tied.tie_averaged["rounded"] == expected
    assert abs(expected - tied.means["rounded"]) > 0.0005
    assert f"{expected:.4f}" in tied.to_markdown()
    assert "ties averaged" in tied._repr_html_()
    assert tied.to_dict()["tie_averaged"]["rounded"] == expected
    # No closed form of the average, or the average itself.
    assert compare(y, scores, "ERR", qid=qid).tie_averaged == {}
    assert compare(y, scores, "AP(ties=average)", qid=qid).tie_averaged == {}


def test_a_missing_topic_is_no_perfect_one():
    """With topics="all" a missing topic counts 0, the best value of a measure of errors."""
    qrels = {f"q{i}": {"a": 2, "b": 0, "c": 1} for i in range(12)}
    good = {topic: {"a": 3, "c": 2, "b": 1} for topic in qrels}
    part = {topic: {"a": 1, "c": 2, "b": 3} for topic in list(qrels)[:6]}
    with refused(InvalidInputError, argument="topics", code="lower-is-better"):
        compare(qrels, {"good": good, "part": part}, "AP pairs(2,0)", topics="all")
    found = compare(qrels, {"good": good, "part": part}, "pairs(2,0)", topics="common")
    with refused(InvalidInputError, argument="topics"):
        compare([1, 0], {"a": [2, 1], "b": [1, 2]}, topics="all")
    assert (found.pairs[0].queries, found.pairs[0].difference) == (6, -1.0)


def test_comparisons_of_many_pairs_have_intervals_that_agree():
    """More than 1,000 pairs: intervals come from fewer resamples than p, and agree all the same."""
    values = np.random.default_rng(0).normal(0.4, 0.2, (46, 20)) + np.linspace(0, 0.3, 46)[:, None]
    found = compare_values({f"run {k}": own for k, own in enumerate(values)}, baseline=None)
    assert len(found.pairs) == 1_035
    assert {pair.p < 0.05 for pair in found.pairs} == {True, False}
    assert all((pair.low <= 0 <= pair.high) == (pair.p >= 0.05) for pair in found.pairs)
    for pair in found.pairs[::200]:
        alone = compare_values({name: found.per_query[name] for name in (pair.b, pair.a)}).pairs[0]
        assert (alone.low, alone.high) == pytest.approx((pair.low, pair.high), abs=0.15 * (pair.high - pair.low))


@pytest.mark.parametrize(("test", "n"), [("sign", 40), ("wilcoxon", 46)])
def test_a_test_of_signs_or_ranks_does_not_support_the_better_mean(test, n):
    """`new` loses a little on most queries and gains much on few, so that its mean is better."""
    d = np.r_[np.linspace(-0.02, -0.01, n), np.full(50 - n, 0.4)]
    found = compare_values({"old": np.full(50, 0.5), "new": 0.5 + d}, test=test)
    assert found.pairs[0].difference > 0 > found.pairs[0].losses - 50
    assert found.pairs[0].p < 0.05
    assert found.summary == f"The {test} test favours old, but new has the better mean."
    assert f"95 % interval of the {found.interval_of}" in finding(found)
    assert "superscript{$-$}" in found.to_latex()
    turned = compare_values({"old": np.full(50, 0.5), "new": 0.5 - np.abs(d)}, test=test)
    assert turned.summary == "old is better than new."
