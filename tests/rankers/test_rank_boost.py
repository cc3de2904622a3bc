"""RankBoost: the model of listing all pairs, round by round; its degenerate cases; the same bits on any threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank.rankers.sums.rank_boost as module
from rankers.conformance import ranker_checks
from reference import rank_boost as reference
from support.refusals import refused
from truerank import evaluate, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model
from truerank.data.ranking_data import RankingData
from truerank.rankers.rank_boost import RankBoost
from truerank.rankers.sums.rank_boost import PairPotentials
from truerank.trees.stumps import grid_thresholds

test_scikit_learn_conformance = ranker_checks([RankBoost(20), RankBoost(20, thresholds="all")])


def assert_same_model(ranker, rounds):
    expected = np.array([r[:4] for r in rounds]).reshape(-1, 4)
    got = np.column_stack([ranker.feature_, ranker.threshold_, ranker.missing_, ranker.edge_])
    assert got.shape == expected.shape
    assert np.array_equal(got[:, :3], expected[:, :3])
    np.testing.assert_allclose(got[:, 3], expected[:, 3], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ranker.weight_, [r[4] for r in rounds], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("thresholds", [1, 3, 10, "all"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("digits", [0, 2])
def test_equals_listing_all_pairs_round_by_round(thresholds, missing, digits):
    rng = np.random.default_rng([digits, int(10 * missing)])
    X = np.round(rng.normal(size=(50, 5)), digits)
    X[rng.random(X.shape) < missing] = np.nan
    X[:, 3] = 1.0
    y = rng.integers(0, 4, 50)
    qid = np.sort(rng.integers(0, 7, 50))
    weight = rng.integers(0, 4, len(np.unique(qid))).astype(float)
    for query_weight in (None, weight):
        ranker = RankBoost(25, thresholds=thresholds).fit(X, y, qid=qid, query_weight=query_weight)
        rounds = reference.rank_boost(X, y, qid, 25, thresholds, query_weight)
        assert_same_model(ranker, rounds)
        np.testing.assert_allclose(ranker.predict(X), reference.predict(X, rounds), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_thresholds", [40, 300])
def test_wide_grids_and_columns_that_stay_alone(n_thresholds):
    # 40 thresholds: pairs of columns would have too many joint bins; 300: codes need two bytes.
    rng = np.random.default_rng(9)
    X = np.exp(rng.normal(size=(30, 3)))
    y, qid = rng.integers(0, 3, 30), np.repeat([0, 1], 15)
    ranker = RankBoost(5, thresholds=n_thresholds).fit(X, y, qid=qid)
    assert_same_model(ranker, reference.rank_boost(X, y, qid, 5, n_thresholds))


@pytest.mark.filterwarnings("ignore:.*learned nothing")
@settings(max_examples=40)
@given(st.data())
def test_equals_listing_all_pairs_on_any_small_data(data):
    n = data.draw(st.integers(1, 9))
    cells = st.sampled_from([0.0, 1.0, 2.0, -1.5, math.nan])
    X = np.array(data.draw(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    qid = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    grouped = RankingData(X, y, qid)
    for thresholds in (2, "all"):
        ranker = RankBoost(4, thresholds=thresholds).fit(grouped)
        rounds = reference.rank_boost(grouped.X, grouped.y, grouped.qid, 4, thresholds)
        assert_same_model(ranker, rounds)


def test_one_round_by_hand():
    # Pairs (worse, better): 0-1, 0-2, 1-2, each 1/3. x > 1 fires for documents 0 and 2: r = (-1 + 0 + 1)/3 = 0;
    # x > 2 fires for 0 alone: r = -2/3, alpha = ln((1/3) / (5/3)) / 2.
    ranker = RankBoost(1, thresholds="all").fit([[3.0], [1.0], [2.0]], [0, 1, 2])
    assert (ranker.feature_.tolist(), ranker.threshold_.tolist()) == ([0], [2.0])
    assert ranker.edge_[0] == pytest.approx(-2 / 3, abs=1e-15)
    assert ranker.weight_[0] == pytest.approx(0.5 * math.log(1 / 5), abs=1e-15)
    assert ranker.predict([[2.5], [2.0]]).tolist() == [ranker.weight_[0], 0.0]


def test_potentials_are_the_pair_weights_summed_by_document():
    rng = np.random.default_rng(1)
    data = RankingData(
        np.zeros((30, 1)), rng.integers(0, 4, 30), np.sort(rng.integers(0, 4, 30)), query_weight=[1, 2, 0, 3]
    )
    pairs = PairPotentials(data, None)
    for scale in (1.0, 30.0, 1e4):
        scores = scale * rng.normal(size=30)
        pairs._scores[:] = scores[pairs.rows]
        parts = [pairs._statistics(a, b, None) for a, b in pairs._blocks]
        got = pairs._potentials / parts[0][1]
        listed = [
            (a, b, math.log(data.query_weight[data.query_index[a]]) + scores[a] - scores[b])
            for a in range(30)
            for b in range(30)
            if data.query_index[a] == data.query_index[b]
            and data.y[a] < data.y[b]
            and data.query_weight[data.query_index[a]] > 0
        ]
        top = max(e for *_, e in listed)
        total = sum(math.exp(e - top) for *_, e in listed)
        expected = np.zeros(30)
        for a, b, e in listed:
            expected[a] -= math.exp(e - top) / total
            expected[b] += math.exp(e - top) / total
        np.testing.assert_allclose(got, expected[pairs.rows], rtol=1e-9, atol=1e-13)


def test_loss_falls_by_the_factor_of_the_theorem():
    # Z_t = sqrt(1 - r_t^2) bounds each round's factor, with equality for stumps of values 0 and 1 only when no pair
    # has h(a) = h(b); the loss itself bounds the share of wrongly ordered pairs.
    rng = np.random.default_rng(2)
    X, y, qid = rng.normal(size=(200, 4)), rng.integers(0, 3, 200), np.repeat(np.arange(10), 20)
    ranker = RankBoost(30).fit(X, y, qid=qid)
    loss = ranker.exponential_loss_
    assert loss[0] == 1.0
    assert np.all(loss[1:] <= loss[:-1] * np.sqrt(1 - ranker.edge_[:-1] ** 2) + 1e-12)
    scores = ranker.predict(X)
    same = (qid[:, None] == qid[None, :]) & (y[:, None] < y[None, :])
    wrong = np.mean((scores[:, None] >= scores[None, :])[same])
    final = np.mean(np.exp(scores[:, None] - scores[None, :])[same])
    assert wrong <= final <= loss[-1] + 1e-12


def test_perfect_stump_is_capped_and_stops():
    ranker = RankBoost(50).fit([[0.0, 5.0], [1.0, 5.0], [0.0, 1.0], [1.0, 9.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    assert ranker.n_iter_ == 1
    assert "perfect" in ranker.status_
    assert ranker.weight_[0] == pytest.approx(0.5 * math.log(2e12), rel=1e-3)


@pytest.mark.filterwarnings("ignore:.*learned nothing")
@pytest.mark.parametrize("thresholds", [10, "all"])
def test_nothing_to_learn(thresholds):
    ranker = RankBoost(thresholds=thresholds).fit([[1.0], [2.0], [3.0]], [1, 1, 2], qid=[1, 1, 2])
    assert ranker.n_iter_ == 0
    assert "nothing can be learned" in ranker.status_
    assert ranker.predict([[5.0]]).tolist() == [0.0]
    constant = RankBoost(thresholds=thresholds).fit([[1.0], [1.0]], [0, 1])
    assert "no weak ranker" in constant.status_
    empty_column = RankBoost(thresholds=thresholds).fit([[np.nan, 1.0], [np.nan, 2.0]], [0, 1])
    assert empty_column.feature_.tolist() == [1]


def test_missing_values_can_carry_the_order():
    X = [[np.nan], [1.0], [np.nan], [2.0]]
    for thresholds in (10, "all"):
        ranker = RankBoost(3, thresholds=thresholds).fit(X, [0, 1, 0, 1], qid=[1, 1, 2, 2])
        assert ranker.threshold_.tolist() == [-np.inf]
        scores = ranker.predict(X)
        assert scores[1] > scores[0]
        better = RankBoost(3, thresholds=thresholds).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).predict(X)
        assert better[0] > better[1]


@pytest.mark.parametrize("thresholds", [10, "all"])
def test_query_weight_two_is_two_copies(thresholds):
    rng = np.random.default_rng(3)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    weight = np.array([1, 2, 1, 3, 0, 1])
    copies = [(X[qid == q], y[qid == q], q, c) for q in range(6) for c in range(weight[q])]
    ranker = RankBoost(20, thresholds="all").fit(X, y, qid=qid, query_weight=weight)
    copied = RankBoost(20, thresholds="all").fit(
        np.concatenate([c[0] for c in copies]),
        np.concatenate([c[1] for c in copies]),
        qid=[f"{q}/{c}" for _, _, q, c in copies for _ in range(10)],
    )
    np.testing.assert_array_equal(ranker.feature_, copied.feature_)
    np.testing.assert_array_equal(ranker.threshold_, copied.threshold_)
    np.testing.assert_allclose(ranker.weight_, copied.weight_, rtol=1e-9)


@pytest.mark.parametrize("thresholds", [10, "all"])
def test_same_bits_for_any_number_of_threads(thresholds, monkeypatch):
    monkeypatch.setattr(module, "query_blocks", lambda offsets: [(i, i + 1) for i in range(len(offsets) - 1)])
    rng = np.random.default_rng(4)
    X, y, qid = rng.normal(size=(300, 20)), rng.integers(0, 3, 300), np.repeat(np.arange(10), 30)
    fits = [RankBoost(30, thresholds=thresholds, n_jobs=n).fit(X, y, qid=qid) for n in (1, 2, 4)]
    for other in fits[1:]:
        assert np.array_equal(fits[0].weight_, other.weight_)
        assert np.array_equal(fits[0].threshold_, other.threshold_)
        assert np.array_equal(fits[0].predict(X), other.predict(X))
    monkeypatch.undo()
    whole = RankBoost(30, thresholds=thresholds).fit(X, y, qid=qid)
    np.testing.assert_allclose(whole.weight_, fits[0].weight_, rtol=1e-9)


def test_row_order_and_float32_do_not_matter():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 50, size=(120, 4)) / 8.0
    y, qid = rng.integers(0, 3, 120), np.repeat(np.arange(12), 10)
    order = np.concatenate([rng.permutation(10) + 10 * q for q in range(12)])
    base = RankBoost(20).fit(X, y, qid=qid)
    moved = RankBoost(20).fit(X[order], y[order], qid=qid[order])
    single = RankBoost(20).fit(X.astype(np.float32), y, qid=qid)
    for other in (moved, single):
        np.testing.assert_array_equal(base.threshold_, other.threshold_)
        np.testing.assert_allclose(base.weight_, other.weight_, rtol=1e-9)
    np.testing.assert_allclose(single.predict(X.astype(np.float32)), base.predict(X), rtol=1e-9, atol=1e-12)


def test_all_thresholds_do_not_depend_on_monotone_transforms():
    rng = np.random.default_rng(6)
    X, y, qid = rng.normal(size=(80, 3)), rng.integers(0, 3, 80), np.repeat(np.arange(8), 10)
    base = RankBoost(20, thresholds="all").fit(X, y, qid=qid)
    bent = RankBoost(20, thresholds="all").fit(np.exp(X), y, qid=qid)
    np.testing.assert_allclose(base.predict(X), bent.predict(np.exp(X)), rtol=1e-9)


def test_early_stopping_keeps_the_best_round():
    rng = np.random.default_rng(7)
    X, y, qid = rng.normal(size=(200, 5)), rng.integers(0, 3, 200), np.repeat(np.arange(20), 10)
    valid = (X[100:], y[100:], qid[100:])
    full = RankBoost(60, measure="AP").fit(X[:100], y[:100], qid=qid[:100], eval_set=valid)
    assert len(full.validation_scores_) == 60
    assert full.n_iter_ == 1 + np.argmax(full.validation_scores_)
    assert len(full.feature_) == full.n_iter_
    averaged = evaluate(valid[1], full.predict(valid[0]), "AP(ties='average')", qid=valid[2])
    assert next(iter(averaged.values())) == pytest.approx(full.validation_scores_.max(), abs=1e-12)
    short = RankBoost(60, measure="AP", patience=5).fit(X[:100], y[:100], qid=qid[:100], eval_set=valid)
    assert "stopped early" in short.status_
    assert len(short.validation_scores_) == short.n_iter_ + 5
    np.testing.assert_array_equal(short.validation_scores_, full.validation_scores_[: len(short.validation_scores_)])
    again = short.fit(X[:100], y[:100], qid=qid[:100])
    assert not hasattr(again, "validation_scores_")


def test_model_file(tmp_path):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    X[rng.random(X.shape) < 0.2] = np.nan
    ranker = RankBoost(10).fit(X, y)
    save_model(ranker, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert np.array_equal(loaded.predict(X), ranker.predict(X))
    loaded.feature_[0] = 7
    with refused(ModelFileError, argument="feature_", code="range"):
        check_model(loaded)
    loaded.feature_ = loaded.feature_[1:]
    with refused(ModelFileError, argument="feature_", code="shape"):
        check_model(loaded)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 0}, {"argument": "n_estimators", "value": 0}),
        ({"thresholds": "every"}, {"argument": "thresholds", "value": "every"}),
        ({"thresholds": 0}, {"argument": "thresholds", "value": 0}),
        ({"n_jobs": 0}, {"argument": "n_jobs", "value": 0}),
    ],
)
def test_parameters_out_of_range(params, message):
    with refused(InvalidInputError, **message):
        RankBoost(**params).fit([[1.0], [2.0]], [0, 1])


def test_patience_must_be_a_number():
    with refused(InvalidInputError, argument="patience"):
        RankBoost(patience=0).fit([[1.0], [2.0]], [0, 1], eval_set=([[1.0], [2.0]], [0, 1], None))


def test_infinite_values_are_refused():
    with refused(ValueError, argument="X"):
        RankBoost().fit([[np.inf], [1.0]], [0, 1])


@pytest.mark.data
def test_mq2008_fold_equals_the_reference_for_the_first_rounds(collections):
    from reproductions.protocol import letor_folds, load_collection

    fold = letor_folds(load_collection(collections, "mq2008"))[0]
    small = fold.train.take_queries(np.arange(60))
    for thresholds in (10, "all"):
        ranker = RankBoost(4, thresholds=thresholds).fit(small)
        assert_same_model(ranker, reference.rank_boost(small.X, small.y, small.qid, 4, thresholds))


def test_a_grid_does_not_overflow():
    ends = np.array([-1.7e308]), np.array([1.7e308])
    grid = grid_thresholds(*ends, np.array([False]), 100)[0]
    np.testing.assert_allclose(grid / 1.7e308, np.arange(100) / 50 - 1, atol=1e-12)
    plain = grid_thresholds(np.array([-3.0]), np.array([4.0]), np.array([False]), 7)[0]
    assert plain.tolist() == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
