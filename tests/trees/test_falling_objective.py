"""What falls with every tree, to the last: the training loss where hessians bound it, else the loss of a tree's pairs.

`test_polynomial` has the same of polynomial leaves at all their settings, and of leaves that diverge.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from reproductions import protocol
from support.refusals import refused
from truerank import ObliviousBoosting, RankingData
from truerank.core.errors import InvalidInputError
from truerank.losses.boosting import YetiRank
from truerank.losses.lambda_rank import LambdaRank
from truerank.losses.swap_costs import SwapCosts
from truerank.measures import parse_measure

LEAVES = ["constant", "fuzzy", "polynomial"]


@pytest.fixture(scope="module")
def data():
    """Queries of 30 rows, features far from normal, grades that two of them and noise decide."""
    rng = np.random.default_rng(5)
    X = np.exp(1.5 * rng.standard_normal((900, 12)))
    X[:, 6:] = np.round(X[:, 6:])
    y = np.digitize(np.log(X[:, 0]) * (X[:, 6] > 1) + rng.standard_normal(900), [0.5, 2.0]).astype(float)
    return RankingData(X, y, np.repeat(np.arange(30), 30))


def logistic(y, scores, offsets):
    """Of each row for itself; a quarter bounds every second derivative."""
    sign = np.where(y > 0, 1.0, -1.0)
    return -sign / (1 + np.exp(sign * scores)), np.full(len(y), 0.25)


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("objective", ["mse", logistic])
@pytest.mark.parametrize("rate", [0.1, 1.0, 1.9])
def test_bounded_losses_fall_at_any_rate_below_two(data, leaves, objective, rate):
    ranker = ObliviousBoosting(leaves, objective=objective, learning_rate=rate, alpha=0.0, n_estimators=40, borders=16)
    stages = ranker.fit(data).staged_predict(data)
    sign = np.where(data.y > 0, 1.0, -1.0)
    losses = [np.mean((data.y - s) ** 2) if objective == "mse" else np.logaddexp(0, -sign * s).mean() for s in stages]
    assert len(losses) == 40
    assert np.diff(losses).max() <= 1e-12 * losses[0]


def test_a_users_hessians_that_are_too_small_end_the_training(data):
    def ten_times_too_bold(y, scores, offsets):
        return scores - y, np.full(len(y), 0.1)

    ranker = ObliviousBoosting("constant", objective=ten_times_too_bold, learning_rate=0.25, alpha=0.0)
    with refused(InvalidInputError, code="diverged"):
        ranker.fit(data)


class OwnPairs:
    """Mixed into an objective of pairs: the loss of each tree's pairs, weights held, before and after the tree."""

    def __init__(self, *args, every=1, **settings):
        super().__init__(*args, **settings)
        self.every, self.calls, self.held, self.losses = every, 0, None, []

    def __call__(self, y, scores, offsets):
        if self.held is not None:
            self.losses.append((self.loss(self.held, scores, offsets), self.loss(self.held, self.before, offsets)))
        answer = super().__call__(y, scores, offsets)
        self.held = self.weights(y, scores, offsets) if self.calls % self.every == 0 else None
        self.before = scores.copy()
        self.calls += 1
        return answer

    @staticmethod
    def loss(weights, scores, offsets):
        parts = zip(weights, offsets[:-1], offsets[1:], strict=True)
        return sum((w * np.logaddexp(0, scores[None, a:b] - scores[a:b, None])).sum() for w, a, b in parts)


class OwnLambdaRank(OwnPairs, LambdaRank):
    def weights(self, y, scores, offsets):
        costs = SwapCosts(self.measure, y, offsets)
        queries = enumerate(zip(offsets[:-1], offsets[1:], strict=True))
        return [(y[a:b, None] > y[None, a:b]) * np.abs(costs.of_query(q, scores[a:b])) for q, (a, b) in queries]


class OwnYetiRank(OwnPairs, YetiRank):
    def weights(self, y, scores, offsets):
        found = []
        for a, b in zip(offsets[:-1], offsets[1:], strict=True):
            weights = np.zeros((b - a, b - a))
            for noise in self._noise[:, a:b]:
                order = np.argsort(-(scores[a:b] + noise), kind="stable")
                for place, (i, j) in enumerate(zip(order, order[1:])):
                    i, j = (i, j) if y[a + i] >= y[a + j] else (j, i)
                    weights[i, j] += self.decay**place * (y[a + i] - y[a + j]) / self.permutations
            found.append(weights)
        return found


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "yetirank"])
def test_every_tree_lowers_the_loss_of_its_own_pairs(data, leaves, rate, measure):
    if measure == "yetirank":
        objective = OwnYetiRank(permutations=3)
    else:
        objective = OwnLambdaRank(parse_measure(measure, convention="ranklib"))
    ranker = ObliviousBoosting(leaves, objective=objective, learning_rate=rate, n_estimators=40, depth=4, borders=16)
    ranker.fit(data)
    assert len(objective.losses) == 40
    assert all(after < before for after, before in objective.losses)


@pytest.mark.parametrize(("name", "leaves"), [("mq2008", "fuzzy"), ("ohsumed", "constant")])
def test_lambdarank_on_real_data_to_the_last_tree(collections, name, leaves):
    fold = protocol.letor_folds(protocol.load_collection(collections, name))[0]
    measure = parse_measure("nDCG@10", "ranklib")
    objective = OwnLambdaRank(measure, every=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        ranker = ObliviousBoosting(leaves, objective=objective, n_estimators=100, borders=32).fit(fold.train)
    assert ranker.n_iter_ == 100
    assert len(objective.losses) == 10
    assert all(after < before for after, before in objective.losses)
    chance = measure.mean(fold.test.judgements(), np.random.default_rng(0).random(fold.test.n_rows))
    assert measure.mean(fold.test.judgements(), protocol.grouped_scores(ranker, fold.test)) > chance + 0.05
