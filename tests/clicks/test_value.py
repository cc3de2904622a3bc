"""Off-policy values against a slow version, arithmetic and planted relevances."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from reference import clicks as slow
from support.refusals import refused
from truerank import ClickLog, Examination, evaluate_from_clicks, load_sample, simulate
from truerank.clicks.simulation import relevance_of, trust_of
from truerank.clicks.value import ESTIMATORS
from truerank.core.errors import InvalidInputError
from truerank.data.grouping import ranks_by_query
from truerank.significance import mean_interval

TRUTH = 1.0 / np.arange(1, 11)


def run_of(data, scores):
    texts = data.doc_ids.tolist()
    return {
        str(query): dict(zip(texts[start:stop], scores[start:stop].tolist()))
        for query, start, stop in zip(data.query_ids.tolist(), data.offsets, data.offsets[1:])
    }


@pytest.fixture(scope="module")
def data():
    return load_sample()


@pytest.fixture(scope="module")
def log(data):
    return simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=60_000, random_state=0)


@pytest.fixture(scope="module")
def seen(log):
    return Examination(n_draws=50).fit(log)


@pytest.fixture(scope="module")
def new(data):
    return run_of(data, data.X[:, 0] / data.X[:, 0].std() + data.X[:, 8] / data.X[:, 8].std())


def true_value(data, log, run, alpha, beta=0.0):
    """Expected clicks per impression under the planted relevances, for the queries of the log."""
    scores = np.concatenate([list(run[str(query)].values()) for query in data.query_ids.tolist()])
    rank = ranks_by_query(scores, data.offsets)
    top = rank <= 10
    shares = np.bincount(log.query[log.offsets[:-1]], minlength=data.n_queries) / log.n_impressions
    rate = (np.zeros(10) + alpha)[rank[top] - 1] * relevance_of(data)[top] + (np.zeros(10) + beta)[rank[top] - 1]
    return float((shares[data.query_index[top]] * rate).sum())


def test_value_bounds_and_support_are_those_of_the_slow_version(data, seen, new):
    log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=150, random_state=1)
    asked = set(log.query_ids[log.query].tolist()) - {"1"}
    run = {query: scores for query, scores in new.items() if query in asked}
    found = evaluate_from_clicks(log, {"new": run}, examination=seen, cutoff=5)["new"]
    expected = slow.value(log, run, seen.propensities_, 5)
    assert (found.value, found.least, found.most, found.support) == pytest.approx(expected, rel=1e-9)


def test_a_small_log_by_hand():
    # a: 1 click of 2 views at 1, 1 of 1 at 2, where half is seen: 2 / 2.5 = 0.8; b: 1 of 1 at 1, 0 of 2 at 2: 1 / 2.
    log = ClickLog(np.repeat([1, 2, 3], 2), ["q"] * 6, ["a", "b", "a", "b", "b", "a"], [1, 2] * 3, [1, 0, 0, 0, 1, 1],
                   ranker=["x"] * 4 + ["y"] * 2)  # fmt: skip
    seen = Examination(max_position=2).fit(log)
    seen.propensities_ = np.array([1.0, 0.5])
    found = evaluate_from_clicks(
        log, {"n": {"q": {"b": 3, "z": 2}}, "o": {"q": {"a": 2, "b": 1}}}, examination=seen, cutoff=2
    )
    assert found["n"].value == pytest.approx(0.5)
    assert (found["n"].least, found["n"].most) == pytest.approx((0.5, 0.5 + 0.5 * 1.0))
    assert found["n"].support == pytest.approx(1.0 / 1.5)
    assert found["o"].value == pytest.approx(0.8 + 0.5 * 0.5)
    assert found.difference("n", "o").value == pytest.approx(0.5 - 1.05)
    assert found.difference("n", "o").most == pytest.approx(0.5 - 1.05 + 0.5)
    dcg = evaluate_from_clicks(log, {"o": {"q": {"a": 2, "b": 1}}}, examination=seen, cutoff=2, discount="dcg")["o"]
    assert dcg.value == pytest.approx(0.8 + 0.5 / np.log2(3))
    twice = evaluate_from_clicks(log, {"o": {"q": {"a": 2, "b": 1}}}, examination=seen, cutoff=2, min_shown=4)["o"]
    assert (twice.support, twice.least, twice.most) == pytest.approx((0.0, 0.0, 1.5))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_intervals_with_bounds_hold_the_truth(data, log, seen, new, estimator):
    truth = true_value(data, log, new, TRUTH)
    found = evaluate_from_clicks(log, {"new": new}, examination=seen, estimator=estimator)["new"]
    assert 0.7 < found.support < 0.99
    assert found.low <= truth <= found.high
    assert found.high - found.low < 0.3
    assert found.sampling_high - found.sampling_low < 0.5 * (found.high - found.low)
    wider = evaluate_from_clicks(log, {"new": new}, examination=seen, estimator=estimator, about="queries")["new"]
    assert wider.low < found.low < found.high < wider.high


def test_ips_with_known_chances_and_shares_agree(log, seen, new):
    values = [evaluate_from_clicks(log, {"new": new}, examination=seen, estimator="ips")["new"].value]
    columns = (log.impression, log.query_ids[log.query], log.document_ids[log.document], log.position, log.clicked)
    other = ClickLog(*columns, ranker=log.ranker)
    values.append(evaluate_from_clicks(other, {"new": new}, examination=seen, estimator="ips")["new"].value)
    assert values[0] == pytest.approx(values[1], abs=0.01)


def test_the_doubly_robust_model_may_read_features(data, log, seen, new):
    truth = true_value(data, log, new, TRUTH)
    found = evaluate_from_clicks(log, {"new": new}, examination=seen, estimator="doubly-robust", features=data)["new"]
    assert found.low <= truth <= found.high
    assert found.least < found.value < found.most
    assert found.sampling_low <= truth <= found.sampling_high


def test_trust_counts_the_clicks_that_positions_bring(data, new):
    log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, "trust", impressions=100_000, random_state=0)
    seen = Examination("trust", n_draws=50).fit(log)
    found = evaluate_from_clicks(log, {"new": new}, examination=seen)["new"]
    assert found.low <= true_value(data, log, new, *trust_of(TRUTH)) <= found.high


def test_values_by_a_model_that_does_not_fit_say_so(data, new, log, seen):
    cascade = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, "cascade", impressions=60_000, random_state=0)
    found = evaluate_from_clicks(cascade, {"new": new}, examination=Examination(n_draws=50).fit(cascade))
    assert found.notes[0].startswith("propensities NOT identified")
    assert "exclude each other" in str(found)
    assert evaluate_from_clicks(log, {"new": new}, examination=seen).notes == []


def test_a_ranker_differs_from_itself_by_nothing_and_a_better_one_is_found(data, log, seen, new):
    worse = run_of(data, -data.X[:, 0])
    found = evaluate_from_clicks(log, {"a": new, "same": new, "worse": worse}, examination=seen)
    assert found.difference("a", "same")[:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)
    old = run_of(data, data.X[:, 5])
    found = evaluate_from_clicks(log, {"old": old, "shown": run_of(data, data.X[:, 0])}, examination=seen)
    assert found["old"].support == 1.0
    truth = true_value(data, log, run_of(data, data.X[:, 0]), TRUTH) - true_value(data, log, old, TRUTH)
    assert found.difference("shown", "old").low <= truth <= found.difference("shown", "old").high
    assert "shown - old" in str(found)


def test_refusals(log, seen, new):
    with refused(InvalidInputError, argument="cutoff", value=11, remedy={"cutoff": 10}):
        evaluate_from_clicks(log, {"new": new}, examination=seen, cutoff=11)
    with refused(InvalidInputError, code="no-common-query"):
        evaluate_from_clicks(log, {"new": {"other": {"d": 1.0}}}, examination=seen)
    with refused(InvalidInputError, code="not-fitted"):
        evaluate_from_clicks(log, {"new": new}, examination=Examination())
    with refused(InvalidInputError, argument="discount"):
        evaluate_from_clicks(log, {"new": new}, examination=seen, discount=[1.0])
    part = dict(list(new.items())[:100])
    assert (
        "left out because a ranker has no result"
        in evaluate_from_clicks(log, {"new": part}, examination=seen).notes[-1]
    )


def test_few_bootstrap_samples_that_lose_a_position_do_not_widen_the_interval(log, seen, new):
    """A position that a sample does not connect gets a propensity of e^3, which a standard deviation would follow."""
    other = Examination(n_draws=50).fit(log)
    other.draws_[:3, 0, 7] = np.exp(3.0)
    wide, usual = (evaluate_from_clicks(log, {"new": new}, examination=each)["new"] for each in (other, seen))
    assert wide.high - wide.low < 1.2 * (usual.high - usual.low)


def test_clicks_of_one_session_count_as_one(data, new):
    """Every impression is logged twice with the same clicks: by sessions the interval must not get narrower."""
    log = simulate(data, {"a": data.X[:, 0], "b": data.X[:, 5]}, impressions=6_000, random_state=0)
    names = log.query_ids[log.query], log.document_ids[log.document], log.ranker_ids[log.ranker]
    twice = [np.tile(values, 2) for values in (*names, log.position, log.clicked, log.impression)]
    impression = np.concatenate([log.impression, log.impression + log.n_impressions])
    doubled = {"query": twice[0], "document": twice[1], "ranker": twice[2], "position": twice[3], "clicked": twice[4]}
    plain, grouped = (ClickLog(impression, **doubled, session=session) for session in (None, twice[5]))
    fixed = Examination(n_draws=2).fit(log)
    fixed.draws_[:] = np.stack([fixed.propensities_, fixed.beta_])
    widths = [
        found.sampling_high - found.sampling_low
        for found in (
            evaluate_from_clicks(each, {"new": new}, examination=fixed)["new"] for each in (log, plain, grouped)
        )
    ]
    assert widths[1] == pytest.approx(widths[0] / np.sqrt(2), rel=0.02)
    assert widths[2] == pytest.approx(widths[0], rel=0.02)


def test_ips_knows_which_rankers_a_query_had():
    """Only one of two rankers was drawn for the query: its impressions are all that were expected."""
    shown = {"position": [1, 2] * 4, "document": ["a", "b"] * 3 + ["c", "d"], "query": ["q"] * 6 + ["r"] * 2}
    log = ClickLog(np.repeat(range(4), 2), clicked=[1, 0, 1, 0, 0, 0, 1, 1], ranker=["x"] * 6 + ["y"] * 2, **shown)
    seen = Examination(max_position=2).fit(log)
    seen.propensities_ = np.array([1.0, 0.5])
    run = {"q": {"a": 2.0, "b": 1.0}}
    values = [evaluate_from_clicks(log, {"n": run}, examination=seen, cutoff=2, estimator=estimator)["n"].value
              for estimator in ("ips", "self-normalised")]  # fmt: skip
    assert values == pytest.approx([2 / 3] * 2)


def test_few_queries_have_students_interval():
    ranked = {"q1": 1, "q2": 0, "q3": 1}  # clicks of each of two impressions of the only document
    log = ClickLog(range(6), np.repeat(list(ranked), 2), ["a"] * 6, [1] * 6, np.repeat(list(ranked.values()), 2))
    seen = Examination(max_position=1).fit(log)
    runs = {"n": {query: {"a": 1.0} for query in ranked}}
    found = evaluate_from_clicks(log, runs, examination=seen, cutoff=1, about="queries")["n"]
    expected = mean_interval(list(map(float, ranked.values())))
    assert (found.value, found.low, found.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("clicked", [[1, 0], [1, 1, 0], [1, 0, 0, 0, 1]])
def test_the_error_of_a_mean_of_clicks_is_that_of_statistics(clicked, sessions):
    """The value of the only document is the mean of its clicks: its variance is s² / n, with n - 1 in s²."""
    n = len(clicked)
    session = {"session": range(n)} if sessions else {}
    log = ClickLog(range(n), ["q"] * n, ["a"] * n, [1] * n, clicked, ranker=["x"] * n, **session)
    seen = Examination(max_position=1).fit(log)
    seen.draws_[:] = np.stack([seen.propensities_, seen.beta_])
    asked = {"examination": seen, "cutoff": 1, "estimator": "ips", "level": 0.9}
    found = evaluate_from_clicks(log, {"n": {"q": {"a": 1.0}}}, **asked)["n"]
    half = NormalDist().inv_cdf(0.95) * np.std(clicked, ddof=1) / np.sqrt(n)
    assert found.value == pytest.approx(np.mean(clicked))
    assert (found.sampling_low, found.sampling_high) == pytest.approx((found.value - half, found.value + half))
