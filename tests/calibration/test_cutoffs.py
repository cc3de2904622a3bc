"""Cut-offs: against the slow reference, by arithmetic, and the promise itself on made-up queries."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

from reference import cutoffs as slow
from support.edited_models import unsealed
from support.refusals import refused
from truerank import load_model, save_model
from truerank.calibration import cutoffs
from truerank.calibration.cutoffs import Cutoff
from truerank.calibration.query_losses import parse_loss
from truerank.core.errors import InvalidInputError, ModelFileError, TruerankWarning


def made(seed, m=80, ties=False, strength=1.5):
    """Scores, grades and queries of m queries of 1 to 9 documents, rows shuffled; scores mean the same everywhere."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(m), rng.integers(1, 10, m))
    scores = rng.normal(size=len(qid)) + rng.normal(size=m)[qid]
    y = (rng.random(len(qid)) < 1 / (1 + np.exp(1 - strength * scores))) * rng.integers(1, 3, len(qid))
    if ties:
        scores = np.round(scores * 2) / 2
    order = rng.permutation(len(qid))
    return scores[order], y[order], qid[order]


def by_query(scores, y, qid):
    names = list(dict.fromkeys(qid.tolist()))
    return [(scores[qid == q].tolist(), y[qid == q].tolist()) for q in names]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("at_most", [0.1, 0.3, 0.6])
def test_conformal_threshold_is_the_least_inclusive_one(seed, at_most):
    scores, y, qid = made(seed, ties=seed % 2 == 1)
    cutoff = Cutoff("missed-relevant", at_most=at_most).fit(scores, y, qid=qid)
    queries = by_query(scores, y, qid)
    assert cutoff.threshold_ == slow.conformal(queries, slow.missed, at_most)
    assert cutoff.depth(scores, qid=qid).tolist() == [sum(s >= cutoff.threshold_ for s in own) for own, _ in queries]
    risks = [slow.mean_loss(queries, slow.missed, t) for t in cutoff.curve_["threshold"]]
    assert cutoff.curve_["risk"] == pytest.approx(risks)


@pytest.mark.filterwarnings("ignore:no query will be answered")
@pytest.mark.parametrize("seed", range(6))
def test_answers_are_those_of_the_binomial_sequence(seed, monkeypatch):
    monkeypatch.setattr(cutoffs, "START", 0.2)
    monkeypatch.setattr(cutoffs, "STEP", 0.07)
    scores, y, qid = made(seed, ties=seed % 2 == 1)
    cutoff = Cutoff("no-relevant@3", at_most=0.25, confidence=0.9, query_score="best")
    queries = by_query(scores, y, qid)
    losses = [slow.nothing_in_top(s, g, 3) for s, g in queries]
    want = slow.answered_by_sequence([max(s) for s, _ in queries], losses, 0.25, 0.9, 0.2, 0.07)
    assert cutoff.fit(scores, y, qid=qid).answers(scores, qid=qid).tolist() == want
    assert cutoff.answered_ == pytest.approx(np.mean(want))
    assert cutoff.withheld_ == pytest.approx(1 - np.mean([loss for loss, a in zip(losses, want) if not a]))


@pytest.mark.parametrize("kind", ["missed-relevant", "irrelevant-shown"])
def test_depth_with_confidence_ends_at_the_first_bound_above(kind):
    scores, y, qid = made(5)
    cutoff = Cutoff(kind, at_most=0.5, confidence=0.9).fit(scores, y, qid=qid)
    loss = slow.missed if kind == "missed-relevant" else slow.irrelevant_shown
    queries = by_query(scores, y, qid)
    curve = cutoff.curve_
    for t, risk in zip(curve["threshold"], curve["risk"]):
        assert risk == pytest.approx(slow.mean_loss(queries, loss, t))
    known = [[loss(g, [s >= t for s in own]) is not None for own, g in queries] for t in curve["threshold"]]
    assert curve["queries"].tolist() == [sum(one) for one in known]
    least = cutoffs.least_losses(0.5, 0.9, binary=False)
    passed = (curve["bound"] <= 0.5) | (
        curve["queries"] < max(least, cutoffs.START * len(queries) * (kind == "irrelevant-shown"))
    )
    first = int(np.argmin(passed))
    assert cutoff.threshold_ == curve["threshold"][first - 1]
    inclusive = np.diff(curve["answered"])
    assert (inclusive <= 0).all() if kind == "missed-relevant" else (inclusive >= 0).all()


def test_bets_are_those_of_the_loop():
    rng = np.random.default_rng(1)
    for n, at_most in ((1, 0.3), (40, 0.3), (200, 0.1)):
        losses = rng.beta(0.5, 3, n)
        both, counts = np.stack([losses, losses], axis=1), np.array([n, n // 2])
        p = cutoffs.betting_p(both, counts, at_most, 0.9)
        assert p == pytest.approx([slow.bets(losses[:k].tolist(), at_most, 0.9) for k in counts])
        bound = cutoffs.betting_bound(both, counts, 0.9)
        for k, one in zip(counts, bound):
            assert one > 0.999 or slow.bets(losses[:k].tolist(), one, 0.9) <= 0.1


def test_binomial_bound_and_p_agree():
    lost, counts = np.array([7.0, 3.0]), np.array([40, 3])
    losses = (np.arange(40)[:, None] < lost).astype(float)
    risk, p, (bound, all_lost) = cutoffs.mean_bounds(losses, counts, 0.3, 0.9)
    assert risk == pytest.approx(lost / counts)
    assert all_lost == 1
    assert slow.binomial_tail(7, 40, bound) == pytest.approx(0.1)
    assert p == pytest.approx([slow.binomial_tail(7, 40, 0.3), 1])
    # (1 - 0.35)^5 = 0.116 and (1 - 0.35)^6 = 0.075: six answered queries without a loss, not five.
    assert cutoffs.least_losses(0.35, 0.9) == 6
    assert cutoffs.least_losses(0.1, 0.9) == 22  # 0.9^22 = 0.098


def test_losses_by_hand():
    # Two queries: grades 0 2 0 1, and 0 0.
    grades, offsets = np.array([0.0, 2, 0, 1, 0, 0]), np.array([0, 4, 6])

    def of(name, **kind):
        return parse_loss(name, **kind).of_rankings(grades, offsets, 1).tolist()

    assert of("no-relevant@1") == [1, 1]
    assert of("no-relevant@2") == [0, 1]
    assert of("irrelevant@3") == pytest.approx([2 / 3, 1])  # of two documents at k = 3 both
    assert of("1-P@2") == [0.5, 1]
    none = [math.nan] * 3  # the second query is not in the denominator
    assert of("missed-relevant") == pytest.approx([1, 1, 0.5, 0.5, 0, *none], nan_ok=True)
    assert of("no-relevant-shown") == pytest.approx([1, 1, 0, 0, 0, *none], nan_ok=True)
    assert of("irrelevant-shown") == pytest.approx([math.nan, 1, 1 / 2, 2 / 3, 1 / 2, math.nan, 1, 1], nan_ok=True)
    assert of("missed-relevant-overall") == [1, 1, 0.5, 0.5, 0, 0, 0, 0]
    assert of("no-relevant-shown-overall") == [1, 1, 0, 0, 0, 0, 0, 0]
    assert of("irrelevant-shown-overall") == pytest.approx([0, 1, 1 / 2, 2 / 3, 1 / 2, 0, 1, 1])
    assert of(lambda g: 1.0 - (g[0] > 0)) == [1, 1]
    assert of(lambda g, shown: shown / 8, kind="shown") == [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8, 0, 1 / 8, 2 / 8]


def test_a_measure_that_rounds_to_more_than_1_is_a_loss_of_0():
    rng = np.random.default_rng(0)
    grades = np.concatenate([np.sort(rng.integers(0, 5, 10))[::-1] for _ in range(200)]).astype(float)
    losses = parse_loss("1-nDCG@10").of_rankings(grades, np.arange(0, 2001, 10), 1)
    assert set(losses.tolist()) <= {0.0, 1.0}


def test_a_function_equals_the_name():
    scores, y, qid = made(3)
    settings = {"at_most": 0.45, "confidence": 0.8}

    def nothing(grades):
        return float(not (grades[:3] >= 1).any())

    def missed(grades, shown):
        return (grades[shown:] >= 1).sum() / max((grades >= 1).sum(), 1)

    a = Cutoff("no-relevant@3", **settings).fit(scores, y, qid=qid)
    assert a.threshold_ == Cutoff(nothing, **settings).fit(scores, y, qid=qid).threshold_
    b = Cutoff("missed-relevant-overall", at_most=0.2).fit(scores, y, qid=qid)
    assert b.threshold_ == Cutoff(missed, at_most=0.2, kind="missed").fit(scores, y, qid=qid).threshold_


@pytest.mark.filterwarnings("ignore:no query will be answered")
@pytest.mark.parametrize("kind", ["binary", "share"])
def test_the_promise_is_kept_where_the_risk_is_known(kind, monkeypatch):
    """Unit scores uniform on (0, 1), P(loss) = 1 - score²: the risk above t is 1 - (1 - t³)/(3 (1 - t))."""
    monkeypatch.setattr(cutoffs, "START", 0.1)
    monkeypatch.setattr(cutoffs, "STEP", 0.1)
    broken, answered = 0, 0.0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        score = rng.random(150)
        loss = (rng.random(150) > score**2).astype(float)
        if kind == "share":
            loss = 1 - rng.beta(4 * score**2 + 1e-9, 4 - 4 * score**2 + 1e-9)
        cutoff = Cutoff("error", at_most=0.4, confidence=0.8)
        t = max(cutoff.fit_losses(score, loss).threshold_, 0.0)
        answered += cutoff.answered_ / 100
        broken += t < 1 and 1 - (1 - t**3) / (3 * (1 - t)) > 0.4
    assert broken <= 100 * 0.2 + 2 * math.sqrt(100 * 0.2 * 0.8)
    assert broken > 0 or kind == "share"
    assert answered > 0.15  # the whole risk of 2/3 is far above: about 0.39 could be answered


def test_conformal_control_holds_on_average():
    losses = []
    for seed in range(150):
        scores, y, qid = made(seed, m=60)
        new = made(seed + 1_000, m=40)
        cutoff = Cutoff("missed-relevant", at_most=0.15).fit(scores, y, qid=qid)
        losses.append(slow.mean_loss(by_query(*new), slow.missed, cutoff.threshold_))
    assert np.mean(losses) <= 0.15 + 2 * np.std(losses) / math.sqrt(150)
    assert np.mean(losses) > 0.1  # and is no larger than needed


def test_learned_score_finds_the_column_that_tells():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(600, 3))
    loss = (rng.random(600) < 1 / (1 + np.exp(2 * columns[:, 1]))).astype(float)
    settings = {"at_most": 0.3, "confidence": 0.9}
    learned = Cutoff("error", query_score="learned", **settings).fit_losses(columns, loss)
    assert abs(learned.coef_[1]) > 3 * np.abs(learned.coef_[[0, 2]]).max()
    assert learned.n_queries_ == 360  # two fifths are set aside
    alone = Cutoff("error", **settings).fit_losses(columns[:, 1], loss)
    assert abs(learned.answered_ - alone.answered_) < 0.1
    assert learned.answers(columns).mean() == pytest.approx(learned.answered_, abs=0.05)


def test_query_scores_by_hand():
    # Ranked by the first column: query 1 has 4, 2, 1; query 2 has 3. Run 2 lacks one of the first two of query 1.
    scores = np.array([[2, 5.0, np.nan], [4, np.nan, 1], [3, 1, 1], [1, 1, 1]])
    qid = [1, 1, 2, 1]
    expected = {"best": [4, 3], "mean-top": [3, 3], "gap": [2, 0], "agreement": [(0.5 + 0.5) / 2, 1.0]}
    for name, values in expected.items():
        cutoff = Cutoff("no-relevant@2", at_most=0.6, confidence=0.5, query_score=name)
        cutoff.fit(np.vstack([scores] * 5), [1, 1, 1, 1] * 5, qid=[(q, i) for i in range(5) for q in qid])
        assert cutoff._scores_of(cutoff.reference_)[:2].tolist() == values


def test_probabilities_are_summed_and_documents_that_are_not_there_count_nothing():
    cutoff = Cutoff("no-relevant@3", at_most=0.5, confidence=0.5, query_score="expected-relevant")
    cutoff.fit([0.5, 0.25, 0.9] * 4, [1, 0, 1] * 4, qid=[q for i in range(4) for q in (2 * i, 2 * i, 2 * i + 1)])
    assert cutoff._scores_of(cutoff.reference_)[:2] == pytest.approx([0.75, 0.9])


def test_the_first_threshold_that_fails_ends_the_sequence_and_says_so():
    score, loss = np.arange(40.0), np.zeros(40)
    loss[28:] = 1  # the highest are all wrong
    with pytest.warns(
        TruerankWarning, match="no query will be answered: at the first threshold the mean loss is 1.000"
    ):
        cutoff = Cutoff("error", at_most=0.35, confidence=0.9).fit_losses(score, loss)
    assert cutoff.threshold_ == math.inf
    assert not cutoff.answers(score).any()


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    scores, y, qid = made(2)
    cutoff = Cutoff("no-relevant@3", at_most=0.6, confidence=0.8, query_score="learned").fit(scores, y, qid=qid)
    save_model(cutoff, tmp_path / "cutoff.json")
    again = load_model(tmp_path / "cutoff.json")
    assert again.summary() == cutoff.summary()
    assert (again.answers(scores, qid=qid) == cutoff.answers(scores, qid=qid)).all()
    document = unsealed(json.loads((tmp_path / "cutoff.json").read_text()))
    del document["model"]["fitted"]["names_"][0]
    (tmp_path / "cutoff.json").write_text(json.dumps(document))
    with refused(ModelFileError, argument="reference_", code="shape"):
        load_model(tmp_path / "cutoff.json")


def test_the_plot_has_the_curve_and_the_choice():
    cutoff = Cutoff("error", at_most=0.5, confidence=0.8).fit_losses(np.arange(20.0), np.arange(20) < 10)
    chart = cutoff.plot()
    points = chart.spec["layer"][0]["data"]["values"]
    assert list(dict.fromkeys(one["line"] for one in points)) == ["risk", "bound", "simultaneous", "at most"]
    assert [one["y"] for one in points if one["line"] == "bound"] == cutoff.curve_["bound"].tolist()
    assert chart.label == "75% of queries answered, 20 calibration queries"


def test_summary_names_promise_and_cost():
    cutoff = Cutoff("error", at_most=0.5, confidence=0.8).fit_losses(np.arange(20.0), np.arange(20) < 10)
    # 14 answered: 4 of 14 lost, P(at most 4 | 14, 1/2) = 0.09; 15 answered: 5 of 15, 0.15; 16: 6 of 16, 0.23.
    assert cutoff.summary() == (
        "With confidence 0.8, the mean loss error of the answered queries is at most 0.5. Answer where the score is "
        "at least 4: 75.0% of 20 queries. Of the other queries, 0.0% would be answered correctly."
    )


def test_check_warns_in_no_more_than_its_level_where_nothing_changed():
    scores, y, qid = made(0, m=60)
    cutoff = Cutoff("missed-relevant", at_most=0.3)
    warned = 0
    for seed in range(100):
        scores, y, qid = made(seed, m=60)
        new, _, new_qid = made(seed + 500, m=50)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            drift = cutoff.fit(scores, y, qid=qid).check(new, qid=new_qid, level=0.2)
        assert bool(found) == bool(drift.moved) == (min(drift.p.values()) <= 0.2)
        warned += len(found)
    assert 0 < warned <= 20 + 2 * math.sqrt(100 * 0.2 * 0.8)


def test_check_names_what_moved():
    scores, y, qid = made(1)
    cutoff = Cutoff("no-relevant@3", at_most=0.6, confidence=0.8).fit(scores, y, qid=qid)
    with pytest.warns(TruerankWarning, match=r"differ from those of fit in .*mean-top \(median .*Judge new ones"):
        drift = cutoff.check(scores + 3, qid=qid)
    assert {"best", "mean-top", "mean"} == set(drift.moved)  # spread, gap and size did not
    before, now = drift.moved["best"]
    assert now == pytest.approx(before + 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "no-relevant"}, {"argument": "loss"}),
        ({"loss": "no-relevant@3", "kind": "shown", "confidence": 0.9}, {"argument": "kind"}),
        ({"loss": "irrelevant-shown"}, {"argument": "confidence"}),
        ({"loss": "missed-relevant", "query_score": "gap"}, {"argument": "query_score"}),
        ({"at_most": 0.0, "confidence": 0.9}, {"argument": "at_most", "value": 0.0}),
        ({"confidence": 0.9, "query_score": "agreement"}, {"argument": "scores"}),
        ({"confidence": 0.9, "query_score": "expected-relevant"}, {"argument": "scores"}),
        ({"confidence": 0.9, "query_score": "top"}, {"argument": "query_score", "value": "top"}),
        ({"confidence": 0.9, "at_most": 0.01}, {"code": "too-few-queries"}),
        ({"loss": "missed-relevant", "at_most": 0.01}, {"code": "no-threshold"}),
        ({"loss": "1-nothing", "confidence": 0.9}, {"code": "unknown-measure"}),
        ({"loss": lambda g: 2.0, "confidence": 0.9}, {"argument": "loss"}),
        ({"loss": lambda g, d: d / 9, "kind": "missed"}, {"argument": "kind"}),
    ],
)
def test_errors_say_what_to_do(settings, message):
    scores, y, qid = made(0)
    with refused(InvalidInputError, **message):
        Cutoff(**settings).fit(scores, y, qid=qid)


def test_thresholds_are_in_the_scores_of_an_export():
    scores, y, qid = made(2)
    policy, settings = {"constant_left_out": 3.0, "times": 2.0}, {"at_most": 0.4, "confidence": 0.8}
    for loss, score, expected in (
        ("missed-relevant", None, lambda t: 2 * (t - 3)),
        ("no-relevant@3", "best", lambda t: 2 * (t - 3)),
        ("no-relevant@3", "gap", lambda t: 2 * t),
    ):
        cutoff = Cutoff(loss, query_score=score, **settings).fit(scores, y, qid=qid)
        assert cutoff.for_export(policy)["threshold"] == expected(cutoff.threshold_)
    learned = Cutoff("no-relevant@3", query_score="learned", **settings).fit(scores, y, qid=qid)
    with refused(InvalidInputError, argument="query_score"):
        learned.for_export(policy)


def test_grades_must_be_numbers():
    scores, y, qid = made(0)
    with refused(InvalidInputError, argument="y"):
        Cutoff("missed-relevant").fit(scores, np.where(y > 0, np.nan, y), qid=qid)


def test_a_failed_fit_leaves_the_estimator_as_it_was():
    scores, y, qid = made(0)
    cutoff = Cutoff("missed-relevant", at_most=0.3).fit(scores, y, qid=qid)
    before = cutoff.threshold_
    cutoff.at_most = 0.001
    with pytest.raises(InvalidInputError):
        cutoff.fit(scores, y, qid=qid)
    assert cutoff.threshold_ == before


def test_queries_without_a_relevant_document_change_no_promise_about_the_others():
    """Trials: the threshold is that of the queries in the denominator alone, and the sentence names their number."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores, y, qid = made(seed, m=120, ties=seed % 2 == 1)
        with_relevant = np.isin(qid, qid[y >= 1])
        empty = rng.normal(size=200), np.zeros(200), np.repeat(np.arange(1_000, 1_100), 2)
        for loss in ("missed-relevant", "no-relevant-shown"):
            settings = {"at_most": 0.3, "random_state": seed}
            alone = Cutoff(loss, **settings).fit(scores[with_relevant], y[with_relevant], qid=qid[with_relevant])
            more = [np.concatenate(pair) for pair in zip((scores, y, qid), empty)]
            found = Cutoff(loss, **settings).fit(more[0], more[1], qid=more[2])
            assert found.threshold_ == alone.threshold_
            assert found.n_queries_ == alone.n_queries_ == len(np.unique(qid[with_relevant]))
            assert f"{found.n_queries_} of 220 calibration queries" in found.summary()
            overall = Cutoff(f"{loss}-overall", **settings).fit(more[0], more[1], qid=more[2])
            assert overall.threshold_ >= found.threshold_  # the promise over all queries is the weaker one
            assert "all queries" in overall.summary()


def test_a_query_that_shows_nothing_is_not_a_good_one():
    # 100 queries show one irrelevant document in three, 900 show nothing: a third is irrelevant, and not 3 %.
    rng = np.random.default_rng(0)
    scores, qid = np.r_[rng.uniform(1, 2, 100), rng.uniform(0, 1, 900)], np.arange(1_000)
    y = np.r_[np.arange(100) % 3 > 0, np.zeros(900)]
    with refused(InvalidInputError, code="no-threshold"):
        Cutoff("irrelevant-shown", at_most=0.2, confidence=0.9).fit(scores, y, qid=qid)
    overall = Cutoff("irrelevant-shown-overall", at_most=0.2, confidence=0.9).fit(scores, y, qid=qid)
    assert overall.depth(scores, qid=qid).sum() > 100


def test_no_list_with_a_relevant_document_is_an_error():
    with refused(InvalidInputError, code="nothing-relevant"):
        Cutoff("missed-relevant", rel=3).fit([0.5, 0.2], [1, 0], qid=[1, 2])


@pytest.mark.filterwarnings("ignore:no query will be answered")
def test_the_number_of_queries_of_a_verdict_is_the_least_that_rejects():
    assert cutoffs.queries_for(0.3, 0.3, 0.9) == math.inf
    for risk, at_most, confidence in ((0.0, 0.1, 0.9), (0.25, 0.35, 0.95), (0.1, 0.12, 0.8)):
        n = int(cutoffs.queries_for(risk, at_most, confidence))
        tails = [slow.binomial_tail(math.ceil(risk * k - 1e-9), k, at_most) for k in range(1, n + 1)]
        assert [tail <= 1 - confidence for tail in tails] == [False] * (n - 1) + [True]
    assert cutoffs.queries_for(0.299, 0.3, 0.9) == pytest.approx(0.21 * (1.2816 / 0.001) ** 2, rel=0.01)
    score, loss = np.arange(100.0), np.arange(100) % 4 == 0  # 8 of the first 30 are lost
    cutoff = Cutoff("error", at_most=0.3, confidence=0.9).fit_losses(score, loss)
    assert cutoff.threshold_ == math.inf
    first = cutoff.curve_["risk"][0]
    assert cutoff.needed_ == pytest.approx(cutoffs.queries_for(first, 0.3, 0.9) * 100 / 30)
    assert f"with 100 queries; about {cutoff.needed_:,.0f} would be needed" in cutoff.summary()
    hopeless = Cutoff("error", at_most=0.2, confidence=0.9).fit_losses(score, loss)
    assert hopeless.needed_ == math.inf
    assert "more would not help" in hopeless.summary()
    assert Cutoff("error", at_most=0.4, confidence=0.9).fit_losses(score, loss).needed_ == 0


@pytest.mark.filterwarnings("ignore:no query will be answered")
def test_the_curve_of_simultaneous_bounds_holds_at_once():
    """Unit scores uniform on (0, 1), P(loss) = 1 - score: the risk above t is (1 - t)/2."""
    crossed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        score = rng.random(200)
        cutoff = Cutoff("error", at_most=0.3, confidence=0.8)
        curve = cutoff.fit_losses(score, rng.random(200) > score).curve_
        known = ~np.isnan(curve["simultaneous"])
        assert 2 <= known.sum() <= 20
        assert (curve["simultaneous"] >= curve["bound"])[known].all()
        assert known[[0, -1]].all()
        true = (1 - np.maximum(curve["threshold"], 0)) / 2
        crossed += bool((true > curve["simultaneous"])[known].any())
    assert crossed <= 200 * 0.2 + 2 * math.sqrt(200 * 0.2 * 0.8)


def test_files_of_an_earlier_version(tmp_path):
    scores, y, qid = made(2)
    for loss in ("no-relevant@3", "missed-relevant"):
        cutoff = Cutoff(loss, at_most=0.6, confidence=0.8).fit(scores, y, qid=qid)
        path = tmp_path / "old.json"
        save_model(cutoff, path)
        document = unsealed(json.loads(path.read_text()))
        del document["model"]["fitted"]["needed_"]
        for name in ("queries", "simultaneous"):
            del document["model"]["fitted"]["curve_"][name]
        path.write_text(json.dumps(document))
        if loss == "missed-relevant":
            with pytest.raises(ModelFileError, match="Fit the cutoff again, with the loss missed-relevant-overall"):
                load_model(path)
        else:
            assert load_model(path).summary() == cutoff.summary()
            load_model(path).plot()
