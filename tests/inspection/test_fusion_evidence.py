"""Cross-validated fusion: nothing leaks, figures are those of the measures, the advice is what the figures say."""

from __future__ import annotations

import numpy as np
import pytest

from support.made_up_runs import planted, random_qrels, random_runs
from support.refusals import refused
from truerank import RunFusion, RunPool, compare, cross_validate_fusion, fuse
from truerank.core.errors import InvalidInputError
from truerank.data.splits import query_folds
from truerank.inspection.fusion_evidence import FusionEvidence
from truerank.io.trec import as_run, judge_run
from truerank.measures import AP
from truerank.significance.comparison_text import CHOSEN


@pytest.fixture(scope="module")
def worth():
    runs, qrels = planted(0, quality=(2.0, 0.6, 0.3, 0.0))
    return runs, qrels, RunPool(runs, qrels)


@pytest.fixture(scope="module")
def evidence(worth):
    return cross_validate_fusion(worth[2], cv=3)


def test_values_are_those_of_fitting_and_evaluating_by_hand(worth, evidence):
    runs, qrels, pool = worth
    measure = AP(convention="trec")

    def values(run):
        judgements, scores = judge_run(qrels, run)
        return dict(zip(judgements.query_ids.tolist(), measure.per_query(judgements, scores)))

    by_rrf, by_run = values(fuse(runs, "rrf")), {name: values(as_run(run, name)) for name, run in runs.items()}
    topics = pool.query_ids.tolist()
    np.testing.assert_allclose(evidence.per_query["MAP"]["rrf"], [by_rrf[topic] for topic in topics], atol=1e-12)
    held_out = values(evidence.held_out["learned"])
    np.testing.assert_allclose(evidence.per_query["MAP"]["learned"], [held_out[topic] for topic in topics], atol=1e-12)
    for fold, best in zip(query_folds(len(topics), 3, random_state=0), evidence.best_runs):
        train = [topic for i, topic in enumerate(topics) if i not in fold]
        means = {name: np.mean([found[topic] for topic in train]) for name, found in by_run.items()}
        assert best == max(means, key=means.__getitem__)
        known = {name: {topic: run[topic] for topic in train if topic in run} for name, run in runs.items()}
        fused = values(RunFusion().fit(known, qrels).predict(runs))
        for i in fold:
            assert evidence.per_query["MAP"]["learned"][i] == pytest.approx(fused[topics[i]], abs=1e-12)
            assert evidence.per_query["MAP"]["best-run"][i] == pytest.approx(by_run[best][topics[i]], abs=1e-12)


def test_advice_follows_the_figures(worth, evidence):
    means = evidence.means()["MAP"]
    assert means["learned"] > means["rrf"]
    pairs = {pair.a: pair for pair in evidence.comparisons["MAP"].pairs}
    assert pairs["rrf"].p_adjusted < 0.05  # RRF is worse, and the weighted sum is not shown to be
    assert pairs["weighted-sum"].p_adjusted >= 0.05
    low, high = pairs["rrf"].simultaneous[1:]
    assert f"[{-high:+.4f}, {-low:+.4f}]" in str(evidence)  # of the correction of p, not of the pair alone
    assert low < pairs["rrf"].low < pairs["rrf"].high < high
    assert evidence.recommended == "weighted-sum"
    assert "no significant difference" in evidence.reason
    assert str(evidence).count(CHOSEN) == 1
    result = evidence.to_dict()
    assert result["MAP"].keys() == {
        "learned", "rrf", "comb-sum", "comb-mnz", "comb-anz", "borda", "weighted-sum", "best-run",
    }  # fmt: skip
    assert result["judged_only"]["MAP"].keys() == result["MAP"].keys()
    low, high = result["intervals"]["MAP"]["learned"]
    assert low <= means["learned"] <= high
    # Grades drawn at random: nothing to learn, and nothing may be claimed.
    pool = RunPool(random_runs(0, n_topics=20, ties=False), random_qrels(1, n_topics=20))
    chance = cross_validate_fusion(pool, cv=4)
    assert chance.recommended != "learned"
    assert "no significant difference" in chance.reason


def test_advice_compares_with_the_best_run_too():
    """Better than RRF and all rules, and equal to the best single run: no advice to learn."""
    rng = np.random.default_rng(0)
    best = rng.random(50)
    values = {name: best - 0.1 - 0.01 * rng.random(50) for name in ("rrf", "comb-sum")}
    values |= {"best-run": best, "learned": best + 0.01 * rng.standard_normal(50)}
    topics = np.arange(50).astype(str)

    def advice(**other):
        own = values | other
        return FusionEvidence({"MAP": AP(convention="trec")}, {"MAP": own}, {"MAP": own}, topics, ["a"], 5, 0)

    assert advice().recommended == "best-run"
    assert "no significant difference" in advice().reason
    assert advice(learned=best + 0.05 + 0.01 * rng.random(50)).recommended == "learned"
    worse = advice(learned=best - 0.05 - 0.01 * rng.random(50))
    assert worse.recommended == "best-run"
    assert "worse" in worse.reason


def test_the_best_run_by_an_error_has_the_fewest():
    qrels = {f"t{q}": {f"d{k}": int(k < 3) for k in range(9)} for q in range(9)}
    good, bad = ({q: {d: sign * int(d[1]) for d in own} for q, own in qrels.items()} for sign in (-1.0, 1.0))
    found = cross_validate_fusion(RunPool({"bad": bad, "good": good}, qrels), measures="pairs(1,0)", cv=3)
    assert found.best_runs == ["good"] * 3
    assert {name: found.per_query["pairs(1,0)"][name].max() for name in ("best-run", "weighted-sum")} == {
        "best-run": 0.0, "weighted-sum": 0.0
    }  # fmt: skip


def test_order_of_topics_plays_no_part(worth, evidence):
    pool = worth[2]
    order = np.random.default_rng(0).permutation(pool.n_queries)
    again = cross_validate_fusion(pool.take(order), cv=3)
    np.testing.assert_allclose(
        again.per_query["MAP"]["learned"], evidence.per_query["MAP"]["learned"][order], atol=1e-6
    )
    assert again.best_runs == evidence.best_runs


def test_what_no_run_found_counts(worth):
    runs, qrels, _ = worth
    cut = {name: {topic: dict(list(one.items())[:3]) for topic, one in run.items()} for name, run in runs.items()}
    short = RunPool(cut, qrels)
    assert (short.unretrieved > 0).sum() > 0
    values = cross_validate_fusion(short, cv=3, measures="R@1000").per_query["R@1000"]["rrf"]
    for i in range(short.n_queries):
        rows = slice(short.offsets[i], short.offsets[i + 1])
        there, lost = (short.grades[rows] > 0).sum(), short.unretrieved[
            short.unretrieved_offsets[i] : short.unretrieved_offsets[i + 1]
        ]  # fmt: skip
        total = there + (lost > 0).sum()
        assert values[i] == pytest.approx(there / total if total else 0.0)


def test_errors(worth):
    runs, _, pool = worth
    with refused(InvalidInputError, argument="qrels"):
        cross_validate_fusion(RunPool(runs))
    with refused(InvalidInputError, code="too-few-queries"):
        cross_validate_fusion(pool, cv=99)


def test_runs_of_different_topics_need_a_rule(worth):
    """As in `compare`: asked for, then the same mean over the same topics; p in one family of measures."""
    runs, qrels, _ = worth
    short = {name: {t: one for t, one in run.items() if t != "t03" and (name != "run1" or t > "t09")}
             for name, run in runs.items()}  # fmt: skip
    pool = RunPool(short, qrels)
    assert pool.topics_without_runs == ["t03"]
    with refused(InvalidInputError, argument="topics", code="different-topics", remedy={"topics": "common"}):
        cross_validate_fusion(pool)
    common = cross_validate_fusion(pool, cv=3, topics="common")
    everything = cross_validate_fusion(pool, cv=3, topics="all")
    assert (common.coverage.used, len(common.query_ids), common.coverage.qrels) == (20, 20, 30)
    assert (everything.coverage.used, len(everything.query_ids)) == (30, 30)
    fused = fuse(short, "rrf")
    for evidence, topics in ((common, "common"), (everything, "all")):
        by_compare = compare(qrels, {**short, "rrf": fused}, "AP", topics=topics).means["rrf"]
        assert evidence.means()["MAP"]["rrf"] == pytest.approx(by_compare, abs=1e-12)
        assert str(evidence.coverage) in str(evidence)
    assert "convention trec" in str(common)
    assert "corrected by max-T and Holm, 4 : 1, for 14 comparisons (7 pairs × 2 measures), **" in str(common)
    both = cross_validate_fusion(pool, cv=3, topics="common", measures="AP AP@1000").comparisons
    alone = cross_validate_fusion(pool, cv=3, topics="common", measures="AP").comparisons
    assert all(a.p_adjusted >= b.p_adjusted for a, b in zip(both["MAP"].pairs, alone["MAP"].pairs))
