import json

import numpy as np
import pytest
from scipy.optimize import minimize

from rankers.conformance import ranker_checks
from support.edited_models import unsealed
from support.refusals import refused
from truerank import ObliviousBoosting, RankingData, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample
from truerank.trees import linear_start
from truerank.trees.linear_start import linear_start_sums, solve_linear_start
from truerank.trees.training_columns import Scaling, column_scaling

test_scikit_learn_conformance = ranker_checks([ObliviousBoosting("constant", start="linear", n_estimators=4, depth=2)])


def problem(seed=0, n=60, p=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * [1, 10, 0.1, 3] + 5
    X[::7, 1] = np.nan
    offsets = np.array([0, 20, 20, 21, 45, n])  # an empty query, and one of one row
    y = np.nan_to_num(X) @ [1.0, 0.1, -8.0, 0.0] + np.repeat(rng.standard_normal(5) * 9, np.diff(offsets))
    y += rng.standard_normal(n)
    columns = [np.sort(column[~np.isnan(column)]) for column in X.T]
    return X, y, offsets, 0.1 + rng.random(n), Scaling.of([column_scaling(c) for c in columns], True)


def fit_linear_start(X, y, offsets, v, scaling, penalty, monotone):
    return solve_linear_start(*linear_start_sums(X, y, offsets, v, scaling), scaling, penalty, monotone)


def loss(w, X, y, offsets, v, scaling, penalty):
    """Written out query by query."""
    z = np.nan_to_num((X - scaling.mean) / scaling.scale)
    total = penalty * v.sum() * (w @ w)
    for a, b in zip(offsets, offsets[1:]):
        if b > a:
            own = v[a:b] / v[a:b].sum()
            residual = (y[a:b] - own @ y[a:b]) - (z[a:b] - own @ z[a:b]) @ w
            total += (v[a:b] * residual**2).sum()
    return total


@pytest.mark.parametrize("penalty", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("signs", [None, [1, -1, 1, 0]])
@pytest.mark.parametrize("weighed", [False, True])
def test_weights_minimise_the_loss(penalty, signs, weighed):
    X, y, offsets, v, scaling = problem()
    monotone = None if signs is None else np.array(signs, dtype=np.int8)
    found = fit_linear_start(X, y, offsets, v if weighed else None, scaling, penalty, monotone).weights
    v = v if weighed else np.ones(len(y))
    bounds = None if signs is None else [(0 if s > 0 else None, 0 if s < 0 else None) for s in signs]
    best = minimize(loss, np.zeros(4), (X, y, offsets, v, scaling, penalty), bounds=bounds, tol=1e-12)
    np.testing.assert_allclose(found, best.x, atol=2e-5)
    if signs is not None:
        assert found[1] == found[2] == 0  # the data want the other sign


def test_small_blocks_and_copies_of_a_column(monkeypatch):
    X, y, offsets, v, scaling = problem()
    whole = fit_linear_start(X, y, offsets, v, scaling, 0.1, None).weights
    monkeypatch.setattr(linear_start, "_ROWS", 7)
    np.testing.assert_allclose(fit_linear_start(X, y, offsets, v, scaling, 0.1, None).weights, whole)
    twice = Scaling(*(np.tile(part, 2) for part in (scaling.mean, scaling.scale, scaling.low, scaling.high)))
    for signs in (None, np.ones(8, dtype=np.int8)):
        found = fit_linear_start(np.tile(X, 2), y, offsets, v, twice, 0.0, signs)
        assert np.isfinite(found.weights).all()
        if signs is None:  # the minimum-norm solution shares the weight
            np.testing.assert_allclose(found.weights[:4], found.weights[4:], atol=1e-9)


def test_scores_are_sums_over_standardised_features():
    X, y, offsets, v, scaling = problem()
    start = fit_linear_start(X, y, offsets, v, scaling, 0.1, None)
    rows = np.concatenate([X, 100 * X, -100 * X])
    z = (np.clip(rows, scaling.low, scaling.high) - scaling.mean) / scaling.scale
    got = start.scores(rows)
    np.testing.assert_allclose(got, np.nan_to_num(z) @ start.weights)
    np.testing.assert_array_equal(start.scores(rows[5:6]), got[5:6])
    single = rows.astype(np.float32)
    np.testing.assert_array_equal(start.scores(single), start.scores(single.astype(np.float64)))


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(60)), data.take_queries(range(60, 100))


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_whole_fits(judged, leaves, tmp_path):
    train, valid = judged
    X, T = train.X.copy(), valid.X.copy()
    X[::9, 2] = np.nan
    T[::4, :3] = np.nan
    data, watched = RankingData(X, train.y, train.qid), RankingData(T, valid.y, valid.qid)
    kw = {"leaves": leaves, "start": "linear", "depth": 2, "objective": "yetirank", "patience": 5, "random_state": 1}
    whole = ObliviousBoosting(n_estimators=20, **kw).fit(data, eval_set=watched)
    part = ObliviousBoosting(n_estimators=3, warm_start=True, n_jobs=2, **kw).fit(data, eval_set=watched)
    part.set_params(n_estimators=20, n_jobs=4).fit(data, eval_set=watched)
    np.testing.assert_array_equal(part.validation_scores_, whole.validation_scores_)
    np.testing.assert_array_equal(part.predict(T), whole.predict(T))
    np.testing.assert_array_equal(list(whole.staged_predict(T))[-1], whole.predict(T))
    save_model(whole, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(T), whole.predict(T))
    document = unsealed(json.loads((tmp_path / "m.json").read_text()))
    document["model"]["fitted"]["start_weights_"]["values"][0] = "nan"
    (tmp_path / "m.json").write_text(json.dumps(document))
    with refused(ValueError, argument="start_weights_", code="range"):
        load_model(tmp_path / "m.json")
    again = whole.set_params(start="constant", n_estimators=2).fit(data, eval_set=watched)
    assert not hasattr(again, "start_weights_")


def test_a_straight_line_needs_no_trees():
    rng = np.random.default_rng(2)
    X, qid = rng.standard_normal((400, 5)), np.repeat(np.arange(20), 20)
    y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + np.repeat(rng.standard_normal(20), 20)
    rows = rng.standard_normal((200, 5))
    truth = rows @ [1.0, -2.0, 0.5, 0.0, 3.0]
    kw = {"leaves": "fuzzy", "objective": "pairwise-logistic", "n_estimators": 5, "depth": 3}
    with_line = ObliviousBoosting(start="linear", start_alpha=0.0, **kw).fit(X, y, qid=qid).predict(rows)
    without = ObliviousBoosting(**kw).fit(X, y, qid=qid).predict(rows)
    assert np.corrcoef(truth, with_line)[0, 1] > 0.99 > np.corrcoef(truth, without)[0, 1]
    squared = ObliviousBoosting("constant", start="linear", n_estimators=1).fit(X, y, qid=qid)
    assert squared.start_ + squared._start().linear.scores(X).mean() == pytest.approx(y.mean())


@pytest.mark.parametrize("leaves", ["constant", "fuzzy"])
def test_constraints_hold(judged, leaves):
    train, test = judged
    signs = np.where(np.arange(train.n_features) % 2, 1, -1)
    ranker = ObliviousBoosting(leaves, start="linear", n_estimators=15, depth=3, monotone=signs).fit(
        train.X, train.y, qid=train.qid
    )
    for k in range(train.n_features):
        rows = test.X[:20].copy()
        sweep = []
        for value in np.linspace(train.X[:, k].min(), train.X[:, k].max(), 12):
            rows[:, k] = value
            sweep.append(ranker.predict(rows))
        assert (signs[k] * np.diff(np.array(sweep), axis=0) >= -1e-12).all()


def test_bad_settings(judged):
    with refused(InvalidInputError, argument="start"):
        ObliviousBoosting("constant", start="zero").fit(judged[0])
    with refused(InvalidInputError, argument="start_alpha"):
        ObliviousBoosting("constant", start="linear", start_alpha=-1).fit(judged[0])
