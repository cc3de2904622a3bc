"""Unbiased LambdaRank: its derivatives, and the recovery of planted propensities."""

import numpy as np
import pytest
from sklearn.base import clone

from support.refusals import refused
from truerank import ObliviousBoosting, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.losses.position_bias import UnbiasedLambdaRank
from truerank.measures import parse_measure

OFFSETS = np.array([0, 5, 6, 6, 14])


def listed_pairs(y, s, position, plus, minus, measure, sigma):
    """Loss with swap costs and propensities held, and what each position's pairs cost, pair by pair."""
    weights = [measure.swap_deltas(y[a:b], s[a:b]) for a, b in zip(OFFSETS, OFFSETS[1:])]

    def loss(scores, sums=None):
        total = 0.0
        for (a, b), w in zip(zip(OFFSETS, OFFSETS[1:]), weights):
            for i in range(a, b):
                for j in range(a, b):
                    if y[i] > y[j]:
                        cost = abs(w[i - a, j - a]) * np.log1p(np.exp(-sigma * (scores[i] - scores[j])))
                        total += cost / (plus[position[i] - 1] * minus[position[j] - 1])
                        if sums is not None:
                            sums[0, position[i] - 1] += cost / minus[position[j] - 1]
                            sums[1, position[j] - 1] += cost / plus[position[i] - 1]
        return total

    return loss


@pytest.mark.parametrize("text", ["nDCG@3", "AP", "RR"])
def test_derivatives_and_propensities_are_those_of_listed_pairs(text):
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 3, 14).astype(float), rng.standard_normal(14)
    position = np.concatenate([np.arange(1, 6), [1], np.arange(1, 9)])
    measure = parse_measure(text, convention="ranklib")
    objective = UnbiasedLambdaRank(measure, sigma=1.5, norm=0.5)
    objective.take_positions(position, None)
    plus, minus = np.ones(8), np.ones(8)
    for _ in range(3):
        objective.begin(rng)
        np.testing.assert_allclose(objective.click_propensities, plus, rtol=1e-12)
        np.testing.assert_allclose(objective.skip_propensities, minus, rtol=1e-12)
        g, h = objective(y, s, OFFSETS)
        loss, sums = listed_pairs(y, s, position, plus, minus, measure, 1.5), np.zeros((2, 8))
        loss(s, sums)
        for i in range(14):
            step = np.zeros(14)
            step[i] = 1e-4
            up, at, down = loss(s + step), loss(s), loss(s - step)
            assert g[i] == pytest.approx((up - down) / 2e-4, abs=1e-6)
            assert h[i] == pytest.approx((up - 2 * at + down) / 1e-8, abs=1e-5)
        for known, own in ((plus, sums[0]), (minus, sums[1])):
            if own[0] > 0:
                known[:] = np.where(own > 0, np.maximum((own / own[0]) ** (1 / 1.5), 1e-3), known)


def click_log(n_queries, seed, skill, length=10):
    """Clicks with probability 1/position x attraction, shown at random or (skill > 0) in the order of a poor ranker."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_queries * length, 4))
    attraction = 1 / (1 + np.exp(-2 * (X[:, 0] + np.abs(X[:, 1]) - 1)))
    qid = np.repeat(np.arange(n_queries), length)
    order = np.lexsort((-skill * X[:, 0] - 1.5 * rng.standard_normal(len(X)), qid))
    position = np.empty(len(X), dtype=int)
    position[order] = np.tile(np.arange(1, length + 1), n_queries)
    clicks = (rng.random(len(X)) < attraction / position).astype(float)
    return X, clicks, qid, position, attraction


SETTINGS = {"n_estimators": 40, "depth": 3, "learning_rate": 0.2}


@pytest.mark.parametrize("seed", [1, 4])
def test_planted_propensities_are_recovered_from_a_random_display(tmp_path, seed):
    X, clicks, qid, position, _ = click_log(2000, seed, skill=0)
    ranker = ObliviousBoosting(
        "constant", objective="unbiased-lambdarank", objective_params={"norm": 0.0}, **SETTINGS
    ).fit(X, clicks, qid=qid, position=position)
    np.testing.assert_allclose(ranker.click_propensities_, 1 / np.arange(1, 11), atol=0.12)
    threads = ranker.click_propensities_
    by_query = np.random.default_rng(0).permutation(2000)
    rows = (10 * by_query[:, None] + np.arange(10)[::-1]).ravel()
    other = clone(ranker).fit(X[rows], clicks[rows], qid=qid[rows], position=position[rows])
    np.testing.assert_allclose(other.click_propensities_, threads, rtol=1e-6)
    np.testing.assert_array_equal(
        ranker.set_params(n_jobs=2).fit(X, clicks, qid=qid, position=position).click_propensities_, threads
    )
    save_model(ranker, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").click_propensities_, threads)


def test_held_out_rankings_gain_where_the_display_was_a_rankers():
    X, clicks, qid, position, _ = click_log(1500, 1, skill=1)
    unbiased = ObliviousBoosting("constant", objective="unbiased-lambdarank", **SETTINGS)
    unbiased.fit(X, clicks, qid=qid, position=position)
    naive = ObliviousBoosting("constant", objective="lambdarank", **SETTINGS).fit(X, clicks, qid=qid)
    X, _, qid, _, attraction = click_log(300, 2, skill=1)
    grades = np.round(4 * attraction)
    assert unbiased.score(X, grades, qid=qid) > naive.score(X, grades, qid=qid)
    assert (np.diff(unbiased.click_propensities_) < 0.05).all()


def test_positions_are_checked():
    X, clicks, qid, position, _ = click_log(20, 1, skill=0)
    ranker = ObliviousBoosting("constant", objective="unbiased-lambdarank", n_estimators=2)
    with refused(InvalidInputError, argument="position"):
        ranker.fit(X, clicks, qid=qid)
    with refused(InvalidInputError, argument="position"):
        ranker.fit(X, clicks, qid=qid, position=position - 1)
    with refused(InvalidInputError, argument="position"):
        ranker.fit(X, clicks, qid=qid, position=position + 0.5)
    with refused(InvalidInputError, argument="position"):
        ObliviousBoosting(n_estimators=2).fit(X, clicks, qid=qid, position=position)
    few = ObliviousBoosting(
        "constant", objective="unbiased-lambdarank", objective_params={"max_position": 3}, n_estimators=2
    ).fit(X, clicks, qid=qid, position=position)
    assert few.click_propensities_.shape == (3,)
    with refused(InvalidInputError, code="continued"):
        few.set_params(warm_start=True, n_estimators=4).fit(X, clicks, qid=qid, position=position)
