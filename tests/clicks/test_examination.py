"""Examination against slow versions and planted parameters, and what it says where the model is wrong."""

from __future__ import annotations

import re

import numpy as np
import pytest

from reference import clicks as slow
from support.refusals import refused
from truerank import ClickLog, Examination, RankingData, load_sample, simulate
from truerank.clicks.simulation import relevance_of, trust_of
from truerank.core.errors import InvalidInputError
from truerank.significance.intervals import stretched_percentiles

TRUTH = 1.0 / np.arange(1, 11)


@pytest.fixture(scope="module")
def data():
    return load_sample()


def log_of(data, model="position", impressions=60_000, seed=0, **settings):
    rankers = {"a": data.X[:, 0], "b": data.X[:, 5]}
    return simulate(data, rankers, model, impressions, random_state=seed, **settings)


def test_two_rankers_recover_the_planted_propensities(data):
    seen = Examination().fit(log_of(data))
    assert np.abs(seen.propensities_ - TRUTH).max() < 0.03
    assert seen.identified_
    assert seen.reasons_ == []
    assert (np.abs(seen.propensities_ - TRUTH)[1:] < 2 * (seen.high_ - seen.low_)[1:]).all()
    assert (seen.pairs_ == 9).all()


def test_the_tables_and_their_maximum_are_those_of_the_slow_version(data):
    log = log_of(data, impressions=3_000)
    seen = Examination(max_position=6).fit(log)
    expected = slow.propensities(slow.matched(log, 6))
    assert np.allclose(seen.propensities_, expected, rtol=1e-4)


def test_exclusion_is_that_of_the_slow_version(data):
    log = log_of(data, "cascade", impressions=3_000)
    assert Examination(max_position=10).fit(log).tests_["exclusion"] == pytest.approx(slow.exclusion(log), rel=1e-9)


@pytest.mark.parametrize("model", ["position", "trust"])
def test_relevance_is_tested_as_in_the_slow_version(data, model):
    log = log_of(data, model, impressions=3_000)
    seen = Examination(max_position=10).fit(log)
    assert seen.tests_["relevance"] == pytest.approx(slow.steepness(log, seen.propensities_), rel=1e-6)


def test_trust_clicks_on_few_queries_are_not_identified_as_position_clicks(data):
    few = RankingData(data.X[: data.offsets[40]], data.y[: data.offsets[40]], data.qid[: data.offsets[40]],
                      doc_ids=data.doc_ids[: data.offsets[40]])  # fmt: skip
    right, wrong = (
        Examination().fit(log_of(few, model, 150_000)).tests_["relevance"] for model in ("position", "trust")
    )
    assert abs(right) < 2.6
    assert wrong < -2.6


def test_trust_recovers_ratios_and_shifted_beta(data):
    seen = Examination("trust").fit(log_of(data, "trust", 200_000))
    alpha, beta = trust_of(TRUTH)
    expected = alpha / alpha[0]
    assert np.abs(seen.propensities_ - expected)[:6].max() < 0.15
    shifted = beta - alpha * beta[-1] / alpha[-1]  # the scale on which β is 0 at the last position
    assert np.abs(seen.beta_ - shifted).max() < 0.05
    assert seen.identified_


@pytest.mark.parametrize(
    ("truth", "read_as", "reason"),
    [
        ("trust", "position", "differently for relevant"),
        ("cascade", "position", "exclude"),
        ("cascade", "trust", "exclude"),
    ],
)
def test_wrong_models_are_not_identified(data, truth, read_as, reason):
    seen = Examination(read_as).fit(log_of(data, truth, 100_000))
    assert not seen.identified_
    assert any(reason in text for text in seen.reasons_)


def test_one_ranker_or_none_is_not_identified(data):
    log = simulate(data, {"a": data.X[:, 0]}, impressions=2_000, random_state=0)
    seen = Examination().fit(log)
    assert not seen.identified_
    assert np.isnan(seen.propensities_[1:]).all()
    assert "one ranker alone" in seen.reasons_[0]
    assert "connect positions 2, 3, 4, 5, … with position 1" in seen.reasons_[1]
    unnamed = ClickLog([1, 2, 2], ["q"] * 3, ["d", "e", "d"], [1, 1, 2], [1, 0, 1])
    assert "does not name the ranker of each list" in Examination(max_position=2).fit(unnamed).reasons_[0]


def test_the_reason_tells_what_would_identify_the_model(data):
    few = log_of(data, impressions=1_500)
    seen = Examination(random_state=0).fit(few)
    assert not seen.identified_
    (reason,) = [text for text in seen.reasons_ if "wider than the propensity," in text]
    needed = int(re.search(r"Collect about ([\d,]+) impressions", reason)[1].replace(",", ""))
    place = int(re.search(r"at position (\d+)", reason)[1]) - 1
    wide = (seen.high_ - seen.low_) / seen.propensities_
    assert place == np.nanargmax(wide)
    assert needed == pytest.approx(1_500 * wide[place] ** 2, abs=1)
    assert f"{seen.documents_[place]} documents" in reason
    assert Examination(random_state=0).fit(log_of(data, impressions=3 * needed)).identified_


def test_rankers_changed_by_date_are_not_identified(data):
    log = log_of(data, impressions=20_000)
    log.time = log.time + 10**9 * log.ranker
    seen = Examination().fit(log)
    assert not seen.identified_
    assert "changed by date" in " ".join(seen.reasons_)


def test_without_times_constancy_is_not_checked(data):
    log = log_of(data)
    assert Examination(n_draws=50).fit(log).reasons_ == []
    log.time = None
    seen = Examination(n_draws=50).fit(log)
    assert seen.identified_
    assert "no times, so changes of rankers and users by date were not checked" in str(seen)


def test_em_finds_examination_through_features_that_know_relevance(data):
    log = simulate(data, {"a": data.X[:, 0]}, impressions=60_000, random_state=0)
    knowing = RankingData(relevance_of(data)[:, None] ** [1, 2], None, data.qid, doc_ids=data.doc_ids)
    seen = Examination(method="em").fit(log, knowing)
    assert np.abs(seen.propensities_ - TRUTH).max() < 0.06
    assert not seen.identified_
    assert "depend on the features" in seen.reasons_[-1]
    with refused(InvalidInputError, argument="method"):
        Examination(method="em").fit(log)


def test_same_seed_same_bits_and_order_of_rows(data):
    log = log_of(data, impressions=3_000)
    one, two = (Examination(random_state=3).fit(log) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    turned = np.random.default_rng(0).permutation(log.n_rows)
    names = log.ranker_ids[log.ranker][turned].tolist()
    other = ClickLog(log.impression[turned], log.query[turned], log.document[turned], log.position[turned],
                     log.clicked[turned], ranker=names)  # fmt: skip
    assert np.allclose(Examination().fit(other).propensities_, one.propensities_, rtol=1e-9)


def test_refusals(data):
    with refused(InvalidInputError, argument="log"):
        Examination().fit([1])
    with refused(InvalidInputError, code="no-clicks"):
        Examination().fit(ClickLog([1], ["q"], ["d"], [1], [0]))
    with refused(InvalidInputError, argument="model"):
        Examination("cascade")
    with refused(InvalidInputError, argument="method"):
        Examination("trust", method="em")


@pytest.mark.parametrize("model", ["position", "trust", "cascade"])
def test_simulated_clicks_have_the_stated_probabilities(model):
    data = RankingData([[2.0], [1.0]], [1, 0], qid=["q", "q"], doc_ids=["a", "b"])
    log = simulate(data, {"r": [2.0, 1.0]}, model, 200_000, depth=2, random_state=0)
    rates = [log.clicked[log.position == k].mean() for k in (1, 2)]
    alpha, beta = trust_of(np.array([1.0, 0.5]))
    expected = {
        "position": [1.0, 0.5 * 0.1],
        "trust": [alpha[0] + beta[0], alpha[1] * 0.1 + beta[1]],
        "cascade": [1.0, 0.0],
    }
    assert rates == pytest.approx(expected[model], abs=0.004)
    assert np.array_equal(simulate(data, {"r": [2.0, 1.0]}, model, 50, random_state=1).clicked,
                          simulate(data, {"r": [2.0, 1.0]}, model, 50, random_state=1).clicked)  # fmt: skip


def test_simulation_refuses(data):
    with refused(InvalidInputError, argument="examination"):
        log_of(data, impressions=5, examination=np.ones(10) + np.arange(10))
    with refused(InvalidInputError, argument="rankers"):
        simulate(data, {"a": [1.0]})
    with refused(InvalidInputError, code="no-grades"):
        simulate(RankingData([[1.0]]), {"a": [1.0]})


def test_a_ranker_that_is_displayed_differently_is_not_identified(data):
    log = log_of(data)
    kept = (log.ranker == 0) | (np.random.default_rng(0).random(log.n_rows) < 0.8)  # b gets a fifth fewer clicks
    log.clicked &= kept
    seen = Examination().fit(log)
    assert not seen.identified_
    assert "gets more clicks at the same position" in " ".join(seen.reasons_)


def test_missing_rankers_are_no_second_ranker(data):
    log = simulate(data, {"a": data.X[:, 0]}, impressions=2_000, random_state=0)
    log.ranker[log.impression % 2 == 0] = -1
    assert "one ranker alone" in Examination().fit(log).reasons_[0]
    log.ranker[:] = -1
    assert "does not name the ranker of each list" in Examination().fit(log).reasons_[0]


def test_intervals_are_wider_with_few_queries():
    draws = np.linspace(-1.96, 1.96, 1001)[:, None]
    narrow, wide = (stretched_percentiles(np.zeros(1), draws, units)[1, 0] for units in (1000, 7))
    # t with 6 degrees of freedom, over 1.96, times √(7/6); of 1,000 queries the percentile itself.
    assert wide / narrow == pytest.approx(2.4469 / 1.9600 * (7 / 6) ** 0.5, rel=3e-3)
    assert np.isnan(stretched_percentiles(np.zeros(1), draws, 1)).all()


def test_no_verdict_rests_on_a_nan():
    """Trials: small logs of any shape are identified only with finite propensities and intervals."""
    tiny = ClickLog(
        [1, 1, 2, 2], ["q"] * 4, ["a", "b", "b", "a"], [1, 2, 1, 2], [1, 0, 0, 0], ranker=["x", "x", "y", "y"]
    )
    seen = Examination().fit(tiny)
    assert np.isnan(seen.low_).any()
    assert not seen.identified_
    assert any("positions cannot be compared" in reason for reason in seen.reasons_)
    identified = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 200)), int(rng.integers(1, 5))
        lists = [rng.permutation(6)[:k] for _ in range(n)]
        clicked = rng.uniform(size=n * k) < rng.choice([0.02, 0.3, 0.8])
        clicked[0] = True
        log = ClickLog(
            np.repeat(np.arange(n), k), np.repeat(rng.integers(0, 5, n), k), np.concatenate(lists),
            np.tile(np.arange(1, k + 1), n), clicked, ranker=np.repeat(rng.integers(0, 2, n), k),
        )  # fmt: skip
        for model in ("position", "trust"):
            seen = Examination(model, n_draws=50).fit(log)
            figures = np.concatenate([seen.propensities_, seen.low_, seen.high_])
            assert np.isfinite(figures).all() or not seen.identified_
            identified += seen.identified_
    assert identified > 0
