"""Warm start, early stopping, interrupts: a continued fit is the fit that was asked for at once, bit for bit."""

import numpy as np
import pytest

from support.refusals import refused
from truerank import FuzzyLeaves, ObliviousBoosting, PolynomialLeaves, RankingData, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample
from truerank.measures import parse_measure


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(40)), data.take_queries(range(40, 70))


def assert_same(a, b, data):
    np.testing.assert_array_equal(a.tree_features_, b.tree_features_)
    np.testing.assert_array_equal(a.tree_borders_, b.tree_borders_)
    np.testing.assert_array_equal(a.tree_values_, b.tree_values_)
    np.testing.assert_array_equal(a.tree_gains_, b.tree_gains_)
    np.testing.assert_array_equal(a.validation_scores_, b.validation_scores_)
    np.testing.assert_array_equal(a.predict(data), b.predict(data))


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bootstrap": "row", "objective": "yetirank"},
        {"bootstrap": "query", "replace": False, "subsample": 0.6, "feature_fraction": 0.5, "objective": "lambdarank"},
    ],
)
def test_with_sampling_and_early_stopping(judged, leaves, settings):
    train, valid = judged
    kw = {"leaves": leaves, "depth": 2, "patience": 4, "learning_rate": 0.3, "random_state": 5, **settings}
    whole = ObliviousBoosting(n_estimators=60, **kw).fit(train, eval_set=valid)
    assert "stopped early" in whole.status_
    part = ObliviousBoosting(n_estimators=2, warm_start=True, **kw).fit(train, eval_set=valid)
    part.set_params(n_estimators=5).fit(train, eval_set=valid)
    part.set_params(n_estimators=60, n_jobs=2, verbose=0).fit(train, eval_set=valid)
    assert_same(part, whole, valid)
    part.set_params(n_estimators=61).fit(train, eval_set=valid)  # the stop is found again
    assert_same(part, whole, valid)


def test_after_a_file(judged, tmp_path):
    train, valid = judged
    kw = {"leaves": "fuzzy", "depth": 2, "bootstrap": "row", "random_state": np.random.default_rng(7)}
    part = ObliviousBoosting(n_estimators=2, warm_start=True, **kw).fit(train, eval_set=valid)
    save_model(part, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json").set_params(n_estimators=5).fit(train, eval_set=valid)
    whole = ObliviousBoosting(n_estimators=5, **(kw | {"random_state": loaded.seed_})).fit(train, eval_set=valid)
    assert_same(loaded, whole, valid)


def test_an_interrupted_continuation_leaves_the_trees_that_were_there(judged):
    train, valid = judged
    calls = []

    def interrupted(y, scores, offsets):
        calls.append(None)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return scores - y, np.ones_like(scores)

    kw = {"leaves": "fuzzy", "depth": 2, "alpha": 0.0, "objective": interrupted}
    part = ObliviousBoosting(n_estimators=3, warm_start=True, **kw).fit(train, eval_set=valid)
    before = part.predict(valid)
    with pytest.raises(KeyboardInterrupt):
        part.set_params(n_estimators=6).fit(train, eval_set=valid)
    assert part.n_iter_ == 3
    np.testing.assert_array_equal(part.predict(valid), before)
    part.fit(train, eval_set=valid)
    assert_same(part, ObliviousBoosting(n_estimators=6, **kw).fit(train, eval_set=valid), valid)


@pytest.mark.parametrize("measure", ["AP", "nDCG@3", "P@5", "RR", "nDCG@10"])
def test_history_is_the_measure_of_each_stage(judged, measure):
    train, valid = judged
    ranker = ObliviousBoosting(
        "fuzzy", n_estimators=12, depth=2, learning_rate=0.5, measure=measure, convention="mslr", patience=3
    ).fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid))
    pinned = parse_measure(measure, convention="mslr")
    staged = [pinned.mean(valid.judgements(), scores) for scores in ranker.staged_predict(valid.X)]
    assert len(staged) == ranker.n_iter_ == np.argmax(ranker.validation_scores_) + 1
    np.testing.assert_array_equal(ranker.validation_scores_[: len(staged)], staged)


def test_queries_watched_from_the_second_fit_on(judged):
    train, valid = judged
    part = ObliviousBoosting("constant", n_estimators=3, depth=2, warm_start=True).fit(train)
    part.set_params(n_estimators=5).fit(train, eval_set=valid)
    assert_same(part, ObliviousBoosting("constant", n_estimators=5, depth=2).fit(train, eval_set=valid), valid)


@pytest.mark.parametrize(
    ("leaves", "change", "message"),
    [
        ("constant", {"leaves": "fuzzy"}, {"code": "other-parameters"}),
        (PolynomialLeaves(), {"leaves": PolynomialLeaves(degree=2)}, {"code": "other-parameters"}),
        ("fuzzy", {"leaves": FuzzyLeaves(0.3)}, {"code": "other-parameters"}),
        ("constant", {"n_estimators": 1}, {"code": "fewer-trees"}),
    ],
)
def test_other_parameters_cannot_continue(judged, leaves, change, message):
    train, _ = judged
    ranker = ObliviousBoosting(leaves, n_estimators=2, depth=2, warm_start=True).fit(train)
    with refused(InvalidInputError, **message):
        ranker.set_params(**({"n_estimators": 4} | change)).fit(train)


@pytest.mark.parametrize("leaves", ["fuzzy", "polynomial"])
def test_other_data_cannot_continue(judged, leaves):
    train, valid = judged
    ranker = ObliviousBoosting(leaves, n_estimators=2, depth=2, warm_start=True).fit(train)
    with refused(InvalidInputError, code="other-rows"):
        ranker.set_params(n_estimators=4).fit(valid)
    fewer = RankingData(train.X[:, :-1], train.y, train.qid)
    with refused(InvalidInputError, code="width"):
        ranker.fit(fewer)


def test_learning_rates_by_tree():
    data = load_sample().take_queries(range(10))
    rates = [0.5, 0.25, 0.1, 0.05]
    whole = ObliviousBoosting(n_estimators=4, learning_rate=rates, depth=2).fit(data)
    begun = ObliviousBoosting(n_estimators=2, learning_rate=rates[:2], depth=2).fit(data)
    assert np.array_equal(whole.tree_values_[:2], begun.tree_values_)
    begun.set_params(n_estimators=2, learning_rate=np.array(rates[2:])).fit(data, init_model=begun)
    np.testing.assert_allclose(begun.predict(data), whole.predict(data), rtol=1e-9)
    with refused(InvalidInputError, argument="learning_rate"):
        ObliviousBoosting(n_estimators=4, learning_rate=rates[:2]).fit(data)
