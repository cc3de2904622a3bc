"""Long runs on queries of real length: training falls to the end, and what is learned ranks better than chance.

On made-up queries of 60 to 200 documents everywhere, and on OHSUMED's first fold where the collection is at hand.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from reproductions.protocol import letor_folds, load_collection
from sklearn.exceptions import ConvergenceWarning

from truerank import RankingData
from truerank.losses.graded_pairs import HINGE, GradedPairs
from truerank.measures import AP
from truerank.models.registry import RANKERS, ranker_class

LEARNERS = [name for name in RANKERS if name != "random"]
MAP = AP(ties="average")


@pytest.fixture(scope="module", params=["made up", pytest.param("ohsumed", marks=pytest.mark.data)])
def parts(request):
    """Training and test queries."""
    if request.param == "ohsumed":
        collections = request.getfixturevalue("collections")
        fold = letor_folds(load_collection(collections, "ohsumed"))[0]
        return fold.train, fold.test
    rng = np.random.default_rng(7)
    sizes = rng.integers(60, 200, size=40)
    X = rng.uniform(size=(int(sizes.sum()), 12))
    y = np.clip(np.round(3 * X[:, 0] + X[:, 1] - 2 + rng.normal(scale=0.7, size=len(X))), 0, 2)
    data = RankingData(X, y, np.repeat(np.arange(40), sizes))
    return data.take_queries(np.arange(30)), data.take_queries(np.arange(30, 40))


def fit(name, train, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # runs that are cut short on purpose
        return ranker_class(name)(**settings).fit(train)


@pytest.mark.parametrize("name", LEARNERS)
def test_defaults_rank_better_than_chance(name, parts):
    train, test = parts
    judgements = test.judgements()
    ap = MAP.per_query(judgements, fit(name, train).predict(test))
    gain = ap - MAP.per_query(judgements, np.zeros(test.n_rows))  # all orders alike: chance
    assert np.nanmean(gain) > 3 * np.nanstd(gain) / np.sqrt(len(gain))


def test_losses_of_boosting_fall_in_every_round(parts):
    train, _ = parts
    loss = fit("rank-boost", train, n_estimators=300).history_["loss"]
    assert len(loss) > 50
    assert (np.diff(loss) <= 1e-12).all()
    for leaves in ("constant", "fuzzy", "polynomial"):
        change = fit("oblivious-boosting", train, leaves=leaves, objective="mse", n_estimators=60).history_["objective"]
        assert len(change) == 60
        assert (change <= 1e-9 * abs(change[0])).all(), leaves


@pytest.mark.parametrize(
    ("name", "few"),
    [("measure-svm", 5), ("rank-svm", 2), ("list-net", 3), ("nonnegative-list-net", 3)],
)
def test_objectives_end_below_where_they_stood(name, few, parts):
    train, _ = parts
    early, late = fit(name, train, max_iter=few), fit(name, train)
    assert late.objective_ < early.objective_
    if hasattr(late, "gap_"):
        assert late.gap_ <= late.tol * max(late.objective_, 1.0)
        assert early.gap_ > late.gap_


def test_descent_comes_closer_to_the_optimum_with_steps(parts):
    train, _ = parts
    pairs = GradedPairs(train.y, train.offsets)
    exact = fit("rank-svm", train, C=1.0 / (1e-3 * pairs.total_weight), loss="hinge")
    distances = []
    for n in (1_000, 30_000, 300_000):
        ranker = fit("pairwise-descent", train, alpha=1e-3, max_iter=n, random_state=0)
        loss, _ = pairs.loss(ranker.predict(train), HINGE)
        objective = 0.5e-3 * ranker.coef_ @ ranker.coef_ + loss / pairs.total_weight
        distances.append(objective / (1e-3 * exact.objective_) - 1.0)
    assert distances[0] > distances[1] > distances[2] > -1e-3
    assert distances[2] < 0.02


def test_adaranks_training_measure_is_kept_at_its_best(parts):
    train, _ = parts
    ranker = fit("adarank", train, measure="AP")
    curve = ranker.history_["train"]
    assert len(curve) > 20
    assert curve[ranker.best_round_ - 1] == pytest.approx(curve.max(), abs=1e-9)
    assert curve.max() >= curve[0]
