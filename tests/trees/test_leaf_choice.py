import warnings

import numpy as np
import pytest
from scipy import sparse

from support.refusals import refused
from truerank import FuzzyLeaves, ObliviousBoosting, RankingData, load_model, save_model
from truerank.cluster import from_parts
from truerank.core.errors import InvalidInputError
from truerank.matrices.content import order_by_content
from truerank.measures import parse_measure
from truerank.rankers.leaf_choice import _scores_beside, _standard_errors, _trial_settings


def made(kind, n=1200, seed=0):
    """Grades that are sharp steps, which fuzzy borders would round, or a slope in eight of ten features."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    if kind == "steps":
        target = np.floor(4 * X[:, 0]) % 2 * 2 + np.floor(4 * X[:, 1]) % 2
    else:
        target = 2 + 3 * (X[:, :4].sum(axis=1) - X[:, 4:8].sum(axis=1)) / 2 + 0.1 * rng.standard_normal(n)
    return X, np.clip(np.round(target), 0, 4), np.arange(n) // 20


def test_the_best_kind_on_queries_left_out_is_taken(tmp_path):
    chosen = {}
    for kind in ("steps", "slope"):
        X, y, qid = made(kind)
        ranker = ObliviousBoosting("auto", n_estimators=40, depth=3).fit(X, y, qid=qid)
        assert set(ranker.leaf_scores_) == {"constant", "fuzzy", "polynomial"}
        assert ranker.leaves_ == max(ranker.leaf_scores_, key=ranker.leaf_scores_.get)
        assert ranker.leaf_scores_[ranker.leaves_] > ranker.leaf_scores_["fuzzy"]
        named = ObliviousBoosting(ranker.leaves_, n_estimators=40, depth=3).fit(X, y, qid=qid)
        np.testing.assert_array_equal(ranker.predict(X), named.predict(X))
        save_model(ranker, tmp_path / "model.json")
        np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X), ranker.predict(X))
        chosen[kind] = ranker.leaves_
    assert chosen["slope"] == "polynomial"
    assert chosen["steps"] == "constant"


def test_a_gain_within_two_standard_errors_takes_nothing_from_fuzzy_leaves():
    for differences, above in [
        ([0.1, 0.3, np.nan, 0.2], True),  # mean .2, standard error .058
        ([0.1, 0.5, -0.1], False),  # .167 and .176
        ([0.0] * 5, False),
        ([0.2], False),
        ([np.nan], False),
    ]:
        for unit in (1.0, 1e-90, 3.0):
            assert (_standard_errors(np.array(differences), np.full(len(differences), unit)) > 2.0) == above
    few = np.array([0.3, 0.2, 0.1, -9.0])
    assert _standard_errors(few, np.array([3.0, 1.0, 1.0, 1.0])) < 0.0
    assert _standard_errors(few, np.array([3.0, 1.0, 1.0, 1e-9])) > 2.0
    assert _standard_errors(np.array([0.1, 0.3, 0.2]), np.ones(3)) == pytest.approx(0.2 / (0.1 / np.sqrt(3)))
    assert _standard_errors(np.full(3, -0.5), np.ones(3)) == -np.inf
    X, _, qid = made("slope", 400)
    y = np.random.default_rng(3).integers(0, 3, len(X))  # nothing to be learnt
    ranker = ObliviousBoosting("auto", n_estimators=5, depth=2).fit(X, y, qid=qid)
    assert ranker.leaves_ == "fuzzy"
    assert max(ranker.leaf_scores_, key=ranker.leaf_scores_.get) != "fuzzy"


def by_hand(data, kind, folds, **settings):
    """Mean of AP of a kind over the first folds in the order by content."""
    queries = order_by_content(data.X, data.y, data.offsets)[1]
    measure = parse_measure("AP", convention="ranklib").tie_averaged()
    total, n = 0.0, 0
    for k in range(folds):
        left_out = np.sort(queries[k::3])
        train = data.take_queries(np.setdiff1d(np.arange(data.n_queries), left_out))
        valid = data.take_queries(left_out)
        n += len(left_out)
        fitted = ObliviousBoosting(kind, depth=2, **settings).fit(train)
        total += measure.mean(valid.judgements(), fitted.predict(valid)) * len(left_out)
    return total / n


@pytest.mark.parametrize(
    ("made_as", "rows", "folds"),
    [
        ("slope", 600, {"fuzzy": 3, "constant": 2, "polynomial": 3}),  # 30 queries; one kind has no prospects
        ("noise", 600, {"fuzzy": 1, "constant": 1, "polynomial": 1}),  # no kind is ahead of fuzzy leaves
        (
            "slope",
            12_000,
            {"fuzzy": 2, "constant": 1, "polynomial": 2},
        ),  # two folds leave out four hundred; one is behind
    ],
)
def test_scores_of_kinds_are_those_of_some_trees_in_so_many_folds(made_as, rows, folds):
    X, y, qid = made("slope", rows)
    if made_as == "noise":
        y = np.random.default_rng(15).integers(0, 3, rows).astype(float)
    ranker = ObliviousBoosting("auto", n_estimators=22, learning_rate=0.2, depth=2, measure="AP").fit(X, y, qid=qid)
    data = RankingData(X, y, qid)
    expected = {kind: by_hand(data, kind, k, n_estimators=20, learning_rate=0.2) for kind, k in folds.items()}
    assert ranker.leaf_scores_ == pytest.approx(expected, abs=1e-12)


def test_a_kind_without_prospects_is_dropped_after_a_fold():
    measure = parse_measure("AP", convention="ranklib").tie_averaged()
    ended = []
    for seed in range(6):
        X, _, qid = made("slope", 600)
        data = RankingData(X, np.random.default_rng(seed).integers(0, 3, 600).astype(float), qid)
        left_out = np.sort(order_by_content(data.X, data.y, data.offsets)[1][::3])
        train = data.take_queries(np.setdiff1d(np.arange(data.n_queries), left_out))
        valid = data.take_queries(left_out)
        chosen = ObliviousBoosting("auto", n_estimators=3, depth=2, measure="AP").fit(data)
        by_query = {}
        for kind in ("fuzzy", "constant", "polynomial"):
            scores = ObliviousBoosting(kind, n_estimators=3, depth=2).fit(train).predict(valid)
            by_query[kind] = measure.per_query(valid.judgements(), scores)
        for kind in ("constant", "polynomial"):
            gain = by_query[kind] - by_query["fuzzy"]
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            ended.append(gain.mean() * np.sqrt(3) <= error)  # the same over three folds
            after_one_fold = chosen.leaf_scores_[kind] == pytest.approx(by_query[kind].mean(), abs=1e-12)
            assert after_one_fold == ended[-1]
    assert 0 < sum(ended) < len(ended)


def test_trials_have_a_fifth_of_the_trees_and_their_rates():
    for n_estimators, trees in [(3, 3), (50, 20), (100, 20), (150, 30)]:
        rates = np.linspace(0.1, 0.2, n_estimators)
        ranker = ObliviousBoosting("auto", n_estimators=n_estimators, learning_rate=rates)
        ranker.seed_ = 0
        settings = _trial_settings(ranker)
        assert settings["n_estimators"] == trees
        np.testing.assert_array_equal(settings["learning_rate"], rates[:trees])


def test_trials_have_as_many_queries_as_have_so_many_rows(monkeypatch):
    X, y, qid = made("slope", 600)
    data = RankingData(X, y, qid)
    first = data.take_queries(np.sort(order_by_content(data.X, data.y, data.offsets)[1][:15]))
    few = ObliviousBoosting("auto", n_estimators=3, depth=2).fit(first)
    monkeypatch.setattr("truerank.rankers.leaf_choice._MOST_ROWS", 319)  # fifteen queries of twenty rows
    ranker = ObliviousBoosting("auto", n_estimators=3, depth=2).fit(data)
    assert ranker.leaf_scores_ == few.leaf_scores_


def test_the_order_of_queries_and_rows_has_no_say():
    X, y, qid = made("slope", 600)
    ranker = ObliviousBoosting("auto", n_estimators=3, depth=2, measure="AP").fit(X, y, qid=qid)
    shuffled = np.random.default_rng(1).permutation(30)
    order = np.concatenate([np.flatnonzero(qid == q)[::-1] for q in shuffled])
    other = ObliviousBoosting("auto", n_estimators=3, depth=2, measure="AP").fit(X[order], y[order], qid=qid[order])
    assert other.leaf_scores_ == pytest.approx(ranker.leaf_scores_, abs=1e-9)


def test_kinds_that_cannot_be_fitted_are_left_out():
    X, y, qid = made("slope", 400)
    for rows, settings in ((sparse.csr_matrix(X), {}), (X, {"monotone": {0: 1}})):
        ranker = ObliviousBoosting("auto", n_estimators=2, depth=2, **settings).fit(rows, y, qid=qid)
        assert set(ranker.leaf_scores_) == {"constant", "fuzzy"}


def test_few_queries_continued_fits_and_errors():
    X, y, qid = made("slope", 400)
    few = ObliviousBoosting("auto", n_estimators=2).fit(X[:100], y[:100], qid=qid[:100])
    assert (few.leaves_, few.leaf_scores_, few.kind_of_leaves) == ("fuzzy", {}, FuzzyLeaves())
    ranker = ObliviousBoosting("auto", n_estimators=2, depth=2, warm_start=True).fit(X, y, qid=qid)
    chosen = ranker.leaves_
    ranker.set_params(n_estimators=4).fit(X, y, qid=qid)
    named = ObliviousBoosting(chosen, n_estimators=4, depth=2).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.predict(X), named.predict(X))
    further = ObliviousBoosting("auto", n_estimators=1, depth=2).fit(X, y, qid=qid, init_model=named)
    assert further.n_iter_ == 5
    assert further.kind_of_leaves == named.kind_of_leaves
    with refused(InvalidInputError, argument="leaves"):
        _ = ObliviousBoosting("auto").kind_of_leaves
    ranker.set_params(leaves="constant", warm_start=False).fit(X, y, qid=qid)
    assert not hasattr(ranker, "leaves_")


def test_callbacks_hear_the_trees_of_the_model_alone():
    X, y, qid = made("slope", 400)
    heard = []
    ranker = ObliviousBoosting("auto", n_estimators=4, depth=2)
    ranker.fit(X, y, qid=qid, callbacks=[lambda info: heard.append((info.round, info.of))])
    assert heard == [(t, 4) for t in (1, 2, 3, 4)]
    stopped = ObliviousBoosting("auto", n_estimators=4, depth=2, callbacks=[lambda info: info.round == 2])
    assert stopped.fit(X, y, qid=qid).leaf_scores_ == ranker.leaf_scores_
    assert stopped.n_iter_ == 2


def _of_all_rows(y, scores, offsets):
    return scores - np.arange(400), np.ones(400)


@pytest.mark.parametrize("settings", [{"objective": _of_all_rows}])
def test_fuzzy_leaves_are_taken_untried_where_parts_of_the_data_would_not_do(settings):
    X, y, qid = made("steps", 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ranker = ObliviousBoosting(n_estimators=2, depth=2, **settings).fit(X, y, qid=qid)
    assert (ranker.leaves_, ranker.leaf_scores_) == ("fuzzy", {})
    assert ranker.kind_of_leaves == FuzzyLeaves()


def test_positions_are_left_out_with_their_queries():
    X, y, qid = made("steps", 400)
    place = np.random.default_rng(0).permuted(np.tile(np.arange(20), (20, 1)), axis=1).ravel() + 1.0
    objective = "unbiased-lambdarank"
    settings = {"n_estimators": 20, "depth": 2, "measure": "AP", "objective": objective}
    ranker = ObliviousBoosting(**settings).fit(X, y, qid=qid, position=place)
    data = RankingData(X, y, qid).with_position(place)
    for kind in ("fuzzy", "constant"):
        expected = by_hand(data, kind, 3, objective=objective, measure="AP", n_estimators=20)
        assert ranker.leaf_scores_[kind] == pytest.approx(expected, abs=1e-12)
    carried = ObliviousBoosting(**settings).fit(data)
    np.testing.assert_array_equal(carried.predict(X), ranker.predict(X))
    without = ObliviousBoosting(ranker.leaves_, **settings | {"objective": "mse"}).fit(X, y, qid=qid)
    other = ObliviousBoosting(ranker.leaves_, **settings | {"objective": "mse"}).fit(data)  # does not read them
    np.testing.assert_array_equal(other.predict(X), without.predict(X))


@pytest.mark.parametrize("most_rows", [100_000, 219])
def test_on_a_cluster_the_choice_is_that_of_one_machine(most_rows, monkeypatch):
    monkeypatch.setattr("truerank.rankers.leaf_choice._MOST_ROWS", most_rows)
    settings = {"n_estimators": 4, "depth": 2, "n_jobs": 1, "measure": "AP"}
    for kind, weight in (("steps", None), ("slope", 1.0 + np.arange(30) % 3)):
        X, y, qid = made(kind, 600)
        data = RankingData(X, y, qid, query_weight=weight)
        parts = from_parts([data.take_queries(range(a, b)) for a, b in ((0, 2), (2, 3), (3, 17), (17, 30))])
        one, many = ObliviousBoosting(**settings).fit(data), ObliviousBoosting(**settings).fit(parts)
        assert many.leaf_scores_ == one.leaf_scores_
        assert many.leaves_ == one.leaves_
        assert most_rows < 600 or one.leaves_ != "fuzzy"
        np.testing.assert_allclose(many.predict(X), one.predict(X), rtol=1e-9)
    few = from_parts([data.take_queries(range(9))])
    assert ObliviousBoosting(**settings).fit(few).leaf_scores_ == {}
    many.set_params(n_estimators=6, warm_start=True).fit(parts)
    assert (many.n_iter_, many.leaves_) == (6, one.leaves_)


def test_the_default_asks_for_the_choice():
    assert ObliviousBoosting().leaves == "auto"


@pytest.mark.parametrize("heavy", [1, 9, 12])
def test_queries_of_no_weight_have_no_say(heavy, monkeypatch):
    X, y, qid = made("slope", 400)
    data = RankingData(X, y, qid, query_weight=np.where(np.arange(20) >= 20 - heavy, 2.0, 0.0))
    ranker = ObliviousBoosting("auto", n_estimators=4, depth=2).fit(data)
    without = ObliviousBoosting("auto", n_estimators=4, depth=2).fit(data.take_queries(data.weight_by_query > 0))
    assert ranker.leaves_ == without.leaves_
    assert ranker.leaf_scores_ == pytest.approx(without.leaf_scores_, abs=1e-9)
    assert bool(ranker.leaf_scores_) == (heavy >= 10)
    monkeypatch.setattr("truerank.rankers.leaf_choice._MOST_ROWS", 1)  # of many rows the first queries alone
    assert bool(ranker.fit(data).leaf_scores_) == (heavy >= 10)


def test_polynomial_leaves_that_were_chosen_are_not_continued_on_sparse_rows():
    X, y, qid = made("slope", 600)
    ranker = ObliviousBoosting("auto", n_estimators=20, depth=3, warm_start=True).fit(X, y, qid=qid)
    assert ranker.leaves_ == "polynomial"
    scores = ranker.predict(X)
    further = ObliviousBoosting(n_estimators=1, depth=3)
    for one, settings in ((ranker.set_params(n_estimators=22), {}), (further, {"init_model": ranker})):
        with refused(InvalidInputError, code="sparse"):
            one.fit(sparse.csr_matrix(X), y, qid=qid, **settings)
    np.testing.assert_array_equal(ranker.predict(X), scores)


@pytest.mark.parametrize("kind", ["fuzzy", "constant", "polynomial"])
@pytest.mark.parametrize(
    "case", ["plain", "single precision", "missing", "sparse", "categories", "sampled", "weights", "linear start"]
)
def test_scores_that_a_fit_adds_up_are_those_that_the_ranker_predicts(kind, case):
    X, y, qid = made("slope", 600)
    settings = {}
    if case == "single precision":
        X = X.astype(np.float32)
    elif case == "missing" and kind != "polynomial":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    elif case == "sparse":
        if kind == "polynomial":
            pytest.skip("polynomial leaves need a dense matrix")
        X = sparse.csr_matrix(np.where(X < 0.5, 0.0, X))
    elif case == "categories":
        X[:, 2] = np.floor(5 * X[:, 2])
        settings = {"categorical": [2]}
    elif case == "sampled":
        settings = {"bootstrap": "query", "subsample": 0.7, "feature_fraction": 0.5}
    elif case == "linear start":
        if kind == "constant":
            X[::7, 3] = 1e3
        settings = {"start": "linear"}
    weight = np.linspace(0.5, 2.0, 30) if case == "weights" else None
    data = RankingData(X, y, qid, query_weight=weight)
    train, valid = data.take_queries(np.arange(20)), data.take_queries(np.arange(20, 30))
    trial = ObliviousBoosting(kind, n_estimators=7, depth=4, random_state=0, **settings)
    found, kept = _scores_beside(trial, train, valid), []
    np.testing.assert_array_equal(found, trial.predict(valid))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("truerank.rankers.base._warn_of_flat_scores", lambda ranker, rows, known: kept.append(known))
        again = ObliviousBoosting(**trial.get_params()).fit(train)
    np.testing.assert_array_equal(again.predict(valid), found)
    if case == "categories":
        assert kept == [None]  # a training row does not see its own grade
    else:
        np.testing.assert_array_equal(kept[0], again.predict(train))


def test_scores_of_trees_that_were_dropped_are_predicted():
    X, y, qid = made("slope", 600)
    data = RankingData(X, y, qid)
    train, valid = data.take_queries(np.arange(20)), data.take_queries(np.arange(20, 30))
    with pytest.MonkeyPatch.context() as patch:
        kept = []
        patch.setattr("truerank.rankers.base._warn_of_flat_scores", lambda ranker, rows, known: kept.append(known))
        ranker = ObliviousBoosting("constant", n_estimators=60, learning_rate=0.5, patience=50).fit(
            train, eval_set=valid
        )
    assert ranker.n_iter_ < 60
    assert kept == [None]
