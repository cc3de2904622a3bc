"""AdaRank: equal to the slow version, arithmetic by hand, the bound, stops, weights, an estimator's manners."""

from __future__ import annotations

import math
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from rankers.conformance import ranker_checks
from reference import adarank as reference
from support.refusals import refused
from truerank import AdaRank, RankingData, evaluate, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError, TruerankWarning
from truerank.core.random_streams import stream
from truerank.core.schema import check_model
from truerank.measures import parse_measure
from truerank.rankers import adarank as module
from truerank.solvers.result import Status

test_scikit_learn_conformance = ranker_checks([AdaRank(), AdaRank("nDCG@5", update="paper", signed=True)])

MEASURES = {"AP": reference.average_precision, "nDCG@3": reference.ndcg(3), "RR": reference.reciprocal_rank}


def judged(seed=0, m=12, p=5, most=12):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most, m)
    n = int(sizes.sum())
    X = np.round(rng.normal(size=(n, p)), 2)
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n)), 0, 3)
    qid = np.repeat(np.arange(m), sizes)
    y[qid == 3] = 0
    return RankingData(X, y, qid)


def by_query(data):
    return [
        (data.X[a:b].tolist(), data.y[a:b].tolist()) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)
    ]


@pytest.mark.parametrize("update", ["paper", "compound", "adaboost"])
@pytest.mark.parametrize("constant", ["drop", "keep"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("name", MEASURES)
def test_equal_to_the_slow_version(name, signed, constant, update):
    for seed in range(3):
        data = judged(seed)
        weights = None if seed == 0 else np.random.default_rng(seed).integers(1, 4, data.n_queries).astype(float)
        records = reference.adarank(
            by_query(data), MEASURES[name], n_rounds=12, update=update, drop_constant=constant == "drop", signed=signed,
            weights=weights,
        )  # fmt: skip
        stable = parse_measure(name)(ties="stable")  # the slow version's order among ties
        ranker = AdaRank(stable, n_estimators=12, update=update, signed=signed, constant_queries=constant)
        history = ranker.fit(data, query_weight=weights).history_
        for column in ("feature", "sign"):
            assert history[column].tolist() == [r[column] for r in records]
        for column in ("alpha", "phi", "delta", "bound"):
            np.testing.assert_allclose(history[column], [r[column] for r in records], rtol=1e-9, atol=1e-12)
        active = np.ones(data.n_queries) if weights is None else weights
        means = [np.average(list(r["measure"].values()), weights=active[list(r["measure"])]) for r in records]
        np.testing.assert_allclose(history["train_active"], means, rtol=1e-12)
        np.testing.assert_allclose(ranker.coef_, records[ranker.best_round_ - 1]["coef"], rtol=1e-9)


@pytest.mark.parametrize("update", ["paper", "compound", "adaboost"])
@pytest.mark.parametrize("signed", [False, True])
def test_each_feature_once_equals_the_slow_version(signed, update):
    data = judged(1)
    records = reference.adarank(
        by_query(data), MEASURES["AP"], n_rounds=50, update=update, signed=signed, repeat=False
    )  # fmt: skip
    ranker = AdaRank(parse_measure("AP")(ties="stable"), update=update, signed=signed, repeat=False).fit(data)
    chosen = ranker.history_["feature"].tolist()
    assert chosen == [r["feature"] for r in records]
    assert len(set(chosen)) == len(chosen) == data.n_features
    assert ranker.status_ == Status.ALL_FEATURES.value
    np.testing.assert_allclose(ranker.history_["alpha"], [r["alpha"] for r in records], rtol=1e-9)


def test_sampled_queries_choose_the_feature_and_all_queries_weigh_it():
    data = judged(2)

    def drawn(t, P):
        counts = stream(7, "adarank", t).multinomial(math.ceil(0.5 * len(P)), P)
        return (counts / counts.sum()).tolist()

    records = reference.adarank(by_query(data), MEASURES["AP"], n_rounds=12, update="adaboost", sample=drawn)
    measure = parse_measure("AP")(ties="stable")
    ranker = AdaRank(measure, n_estimators=12, query_sample=0.5, random_state=7).fit(data)
    assert ranker.history_["feature"].tolist() == [r["feature"] for r in records]
    np.testing.assert_allclose(ranker.history_["phi"], [r["phi"] for r in records], rtol=1e-9)
    assert (
        ranker.history_["feature"].tolist() != AdaRank(measure, n_estimators=12).fit(data).history_["feature"].tolist()
    )


def test_the_printed_update_stays_with_a_feature_that_it_chose_twice():
    """f_2 = c h_1 ranks as h_1 does, so that P, which depends on f alone, never changes again."""
    stuck = 0
    for seed in range(20):
        ranker = AdaRank("AP", update="paper", n_estimators=30, patience=30).fit(judged(seed))
        chosen = ranker.history_["feature"]
        if len(chosen) > 2 and chosen[0] == chosen[1]:
            stuck += 1
            assert set(chosen) == {chosen[0]}
    assert stuck > 0


def test_two_rounds_by_hand():
    # Query a: AP of feature 1 is 1, of feature 2 is 1/2. Query b: 1/2 and 1. Query c: 1/3 and 1/2.
    X = [[2, 1], [1, 2], [1, 2], [2, 1], [1, 2], [2, 3], [3, 1]]
    ranker = AdaRank("AP", update="paper", n_estimators=2).fit(X, [1, 0, 1, 0, 1, 0, 0], qid=list("aabbccc"))
    phi = (1 / 2 + 1 + 1 / 2) / 3
    history = ranker.history_
    assert history["feature"][0] == 1
    assert history["phi"][0] == pytest.approx(phi)
    assert history["alpha"][0] == pytest.approx(np.log((1 + phi) / (1 - phi)) / 2)
    # f_1 ranks as feature 2 does, with AP 1/2, 1, 1/2; the weights that follow:
    weights = np.exp([-1 / 2, -1, -1 / 2])
    weights /= weights.sum()
    sums = weights @ np.array([[1, 1 / 2], [1 / 2, 1], [1 / 3, 1 / 2]])
    assert history["feature"][1] == np.argmax(sums)
    assert history["phi"][1] == pytest.approx(sums.max())
    delta = 1 / 2 - history["alpha"][0] / 2, 1 - history["alpha"][0]
    assert history["delta"][0] == pytest.approx(min(delta))
    assert history["bound"][0] == pytest.approx(1 - np.exp(-min(delta)) * np.sqrt(1 - phi**2))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["AP", "nDCG@5", "RR"]))
def test_theorem_1_holds_for_the_paper_form(seed, name):
    history = AdaRank(name, update="paper", n_estimators=15).fit(judged(seed)).history_
    assert (history["train_active"] >= history["bound"] - 1e-9).all()


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_row_order_query_names_and_scale_do_not_matter(seed):
    data = judged(seed)
    rng = np.random.default_rng(seed)
    data.X = np.round(data.X, 1)  # many ties: they are averaged, so that the order of the rows has no say
    first = AdaRank(n_estimators=10).fit(data)
    order = rng.permutation(data.n_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruerankWarning)
        second = AdaRank(n_estimators=10).fit(data.X[order], data.y[order], qid=[f"q{q}" for q in data.qid[order]])
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-9)
    np.testing.assert_allclose(first.fit(data.X * 4, data.y, qid=data.qid).coef_, second.coef_, rtol=1e-9)


@pytest.mark.parametrize("update", ["paper", "compound", "adaboost"])
def test_a_weight_of_two_is_two_copies(update):
    data = judged(4)
    weights = np.arange(12) % 3 + 1
    options = {"measure": "nDCG@5", "update": update, "n_estimators": 15}
    weighted = AdaRank(**options).fit(data, query_weight=weights)
    copied = AdaRank(**options).fit(data.take_queries(np.repeat(np.arange(12), weights)))
    for column in ("train", "bound", "alpha"):
        np.testing.assert_allclose(weighted.history_[column], copied.history_[column], rtol=1e-9)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-9)
    ignored = AdaRank(**options).fit(data, query_weight=np.arange(12) >= 6)
    np.testing.assert_allclose(ignored.coef_, AdaRank(**options).fit(data.take_queries(np.arange(6, 12))).coef_)


def test_a_planted_feature_is_found_with_either_sign():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6))
    y = (X[:, 4] < -0.8).astype(float)
    qid = np.repeat(np.arange(60), 10)
    ranker = AdaRank(signed=True).fit(X, y, qid=qid)
    assert list(ranker.feature_weights()) == ["feature 5"]
    assert ranker.coef_[4] < 0
    assert ranker.status_ == Status.PERFECT.value
    assert evaluate(y, ranker.predict(X), "AP", qid=qid).per_query["AP"][y.reshape(60, 10).any(axis=1)].min() == 1
    assert ranker.history_["alpha"][0] == pytest.approx(0.5 * np.log(2e12), rel=1e-3)


def test_a_users_function_and_its_range():
    data = judged(2)
    ours = AdaRank("AP(ties='pessimistic')", n_estimators=8).fit(data)
    theirs = AdaRank(reference.average_precision, n_estimators=8).fit(data)  # tied documents: the worst order
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.history_["train"], theirs.history_["train"], rtol=1e-12)
    with refused(InvalidInputError, code="measure-range"):
        AdaRank(lambda grades: grades[0]).fit([[1.0], [2.0]], [3, 3])
    # Either feature alone stays within the range; their sum puts the middle document of query 0 first, which does not.
    X = [[3.0, 0.0], [2.0, 2.0], [0.0, 3.0], [3.0, 0.0], [0.0, 3.0]]
    values = {1: 0.9, 2: 2.0, 3: -0.3, 4: 0.95, 5: -0.3}
    with refused(InvalidInputError, code="measure-range"):
        AdaRank(lambda grades: values[grades[0]]).fit(X, [1, 2, 3, 5, 4], qid=[0, 0, 0, 1, 1])


def test_validation_decides_the_round_and_the_stop():
    data, valid = judged(5, m=30), judged(6, m=30)
    ranker = AdaRank(patience=5, n_estimators=100).fit(data, eval_set=valid)
    values = ranker.history_["validation"]
    assert ranker.best_round_ - 1 == np.argmax(values)
    assert values[ranker.best_round_ - 1] == pytest.approx(ranker.score(valid), rel=1e-13)
    assert ranker.history_["train"][ranker.best_round_ - 1] == pytest.approx(ranker.score(data), rel=1e-13)
    assert ranker.n_iter_ == ranker.best_round_ + 5
    assert ranker.status_ == Status.VALIDATION.value
    assert np.isnan(AdaRank(n_estimators=3).fit(data).history_["validation"]).all()
    assert AdaRank(n_estimators=3).fit(data).status_ == "completed all 3 rounds"
    assert AdaRank(patience=3).fit(data).status_ == Status.TRAINING_FLAT.value


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_nothing_to_learn_is_said():
    with pytest.warns(TruerankWarning, match="nothing can be learned"):
        ranker = AdaRank().fit([[1.0], [2.0], [3.0]], [1, 1, 0], qid=["a", "a", "b"])
    assert (ranker.coef_.tolist(), ranker.best_round_, ranker.n_iter_, ranker.n_constant_queries_) == ([0.0], 0, 0, 2)
    assert ranker.predict([[5.0]]).tolist() == [0.0]
    with pytest.warns(TruerankWarning, match="nothing can be learned"):
        AdaRank("AP(empty=skip)", constant_queries="keep").fit([[1.0], [2.0]], [0, 0])


def test_validation_without_a_choice_is_said_and_not_used():
    data = judged(5, m=30)
    flat = RankingData(data.X, np.ones(data.n_rows), data.qid)
    with pytest.warns(TruerankWarning, match="has only one grade or one document"):
        ranker = AdaRank(n_estimators=20).fit(data, eval_set=flat)
    assert np.array_equal(ranker.coef_, AdaRank(n_estimators=20).fit(data).coef_)
    assert np.isnan(ranker.history_["validation"]).all()


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_a_feature_that_ranks_below_chance_stops():
    ranker = AdaRank(lambda grades: 1.0 if grades[0] else -1.0).fit([[1.0], [2.0]], [1, 0])
    assert ranker.status_ == Status.NO_WEAK_RANKER.value
    assert ranker.coef_.tolist() == [0.0]
    # Under "keep" a measure that is 0 everywhere gives φ = 0.
    assert AdaRank(constant_queries="keep").fit([[1.0], [2.0]], [0, 0]).status_ == Status.NO_WEAK_RANKER.value


def test_skipped_queries_have_no_part():
    data = judged(7)
    skipped = AdaRank("AP(empty=skip)", constant_queries="keep", n_estimators=10).fit(data)
    kept = data.take_queries([i for i in range(12) if data.y[data.offsets[i] : data.offsets[i + 1]].max() >= 1])
    np.testing.assert_allclose(skipped.coef_, AdaRank(constant_queries="keep", n_estimators=10).fit(kept).coef_)


def test_ctrl_c_in_mid_round_keeps_the_model_of_the_fit_before(monkeypatch):
    data = judged(8)
    ranker = AdaRank(n_estimators=3).fit(data)
    coef, calls = ranker.coef_, []
    choose = module._Boosting._choose

    def interrupted(self):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return choose(self)

    monkeypatch.setattr(module._Boosting, "_choose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker.set_params(n_estimators=50).fit(data)
    assert ranker.coef_ is coef
    assert ranker.n_iter_ == 3


def test_the_model_file_keeps_everything(tmp_path):
    data = judged(9)
    ranker = AdaRank("nDCG@5", n_estimators=9).fit(data, eval_set=data)
    save_model(ranker, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(data), ranker.predict(data))
    assert loaded.get_params() == ranker.get_params()
    assert loaded.best_round_ == ranker.best_round_
    for name, column in ranker.history_.items():
        np.testing.assert_array_equal(loaded.history_[name], column)
        assert loaded.history_[name].dtype == column.dtype
    loaded.history_["alpha"] = loaded.history_["alpha"][1:]
    with refused(ModelFileError, argument="history_", code="shape"):
        check_model(loaded)
    del loaded.history_["alpha"]
    with refused(ModelFileError, argument="history_.alpha"):
        check_model(loaded)


def test_pickles_threads_and_forks_predict_the_same_bits():
    data = judged(10, m=60)
    ranker = AdaRank(n_estimators=20).fit(data)
    expected = ranker.predict(data.X)
    assert np.array_equal(pickle.loads(pickle.dumps(ranker)).predict(data.X), expected)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ranker.predict, [data.X] * 32))
    assert all(np.array_equal(result, expected) for result in results)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads about
        child = os.fork()
    if child == 0:
        try:
            again = AdaRank(n_estimators=20).fit(data)
            same = np.array_equal(ranker.predict(data.X), expected) and np.array_equal(again.coef_, ranker.coef_)
            os.write(writer, b"1" if same else b"0")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"1"
    os.close(reader)
    os.close(writer)


def test_float32_sparse_and_threads():
    data = judged(11, m=40)
    dense = AdaRank(n_estimators=15, n_jobs=2).fit(data)
    matrix = sparse.csr_matrix(data.X)
    rows = AdaRank(n_estimators=15).fit(matrix, data.y, qid=data.qid)
    np.testing.assert_allclose(rows.coef_, dense.coef_, rtol=1e-12)
    np.testing.assert_allclose(rows.predict(matrix), dense.predict(data.X), atol=1e-12)
    single = data.X.astype(np.float32)
    coarse = AdaRank(n_estimators=15).fit(single, data.y, qid=data.qid)
    wide = AdaRank(n_estimators=15).fit(single.astype(np.float64), data.y, qid=data.qid)
    assert np.array_equal(coarse.coef_, wide.coef_)


def test_wrong_parameters_are_named():
    data = judged()
    for settings_, message in (
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1, got 0"),
        ({"patience": 2.5}, "patience must be an integer"),
        ({"update": "boost"}, "update must be one of 'paper', 'compound', 'adaboost'"),
        ({"constant_queries": "skip"}, "constant_queries must be one of"),
        ({"measure": "NDGC@5"}, "unknown measure"),
        ({"repeat": "no"}, "repeat must be True or False, got 'no'"),
        ({"query_sample": 1.5}, "query_sample must be"),
        ({"signed": "no"}, "signed must be True or False, got 'no'"),
        ({"measure": 3}, "a measure is"),
        ({"convention": "letor"}, "convention must be one of"),
        ({"validation_measure": "NDGC@5"}, "unknown measure"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            AdaRank(**settings_).fit(data)


def test_callers_arrays_stay_as_they_were():
    data = judged(12)
    X, y, qid = data.X.copy(), data.y.copy(), data.qid.copy()
    AdaRank(n_estimators=5).fit(X, y, qid=qid)
    assert np.array_equal(X, data.X)
    assert np.array_equal(y, data.y)
    assert np.array_equal(qid, data.qid)
    for array in (X, y, qid):
        array.flags.writeable = False
    AdaRank(n_estimators=5).fit(X, y, qid=qid, eval_set=(X, y, qid))
