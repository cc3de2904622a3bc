"""The pool: its formula, what it keeps, groups, weights, the model file."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import truerank.calibration.pool as pool_module
from support.refusals import refused
from truerank.calibration import calibrator_class
from truerank.calibration.base import make_calibrator
from truerank.calibration.classifier import CalibratedClassifier
from truerank.calibration.pool import MEMBERS, PooledCalibrator, choose_calibrator, pool_weights, pooled_log_odds
from truerank.core.errors import InvalidInputError, ModelFileError, TruerankWarning
from truerank.core.schema import check_model
from truerank.models.model_file import load_model, save_model


@pytest.fixture(scope="module")
def line():
    """Log-odds that are a line: Platt's form."""
    rng = np.random.default_rng(0)
    s = rng.normal(size=600) * 2
    return s, rng.uniform(size=600) < 1 / (1 + np.exp(-s))


def test_weights_by_hand():
    # Two nats behind in all: -3, 1, 4, 0 on four rows, mean 1/2 and variance 26/4 - 1/4; two parameters and three.
    loss = np.array([[5.0, 2.0, 3.0, 0.0], [2.0, 3.0, 7.0, 0.0]])
    share = pool_weights(["platt", "beta"], loss, 100)
    assert share[0] / share[1] == pytest.approx(np.exp(max(2 / 4, 4 / 2 * np.log1p(0.25 / 6.25)) + 1 / 8))
    assert share.sum() == pytest.approx(1)
    # Little and steady counts by its likelihood ratio: .1, .2, .3, .2 behind, mean .2 and variance .02/4.
    steady = pool_weights(["platt", "logistic"], np.array([np.zeros(4), [0.1, 0.2, 0.3, 0.2]]), 100)
    assert steady[0] / steady[1] == pytest.approx(np.exp(4 / 2 * np.log1p(0.04 / 0.005)))
    # By groups the sums count: -2 and 4, mean 1 and variance 9.
    grouped = pool_weights(["platt", "beta"], loss, 100, None, np.array([7, 7, 2, 2]))
    assert grouped[0] / grouped[1] == pytest.approx(np.exp(max(2 / 4, np.log1p(1 / 9)) + 1 / 8))
    # A handful of rows: no densities; a single one: Platt.
    few = pool_weights(["platt", "hybrid", "spline"], np.array([[10.0, 0.0], [1.0, 0.0], [10.0, 0.0]]), 19)
    assert few[1] == 0
    assert few[0] / few[2] == pytest.approx(np.exp(4 / 8))
    assert pool_weights(["spline", "platt"], np.zeros((2, 2)), 1).tolist() == [0, 1]
    assert pool_weights(["gaussian", "laplace"], np.zeros((2, 2)), 5).tolist() == [0.5, 0.5]


def test_weights_of_rows_are_copies_of_rows():
    rng = np.random.default_rng(0)
    loss, weight = rng.uniform(size=(3, 40)), rng.integers(1, 4, 40)
    copies = pool_weights(["platt", "beta", "spline"], np.repeat(loss, weight, axis=1), 100)
    np.testing.assert_allclose(pool_weights(["platt", "beta", "spline"], loss, 100, weight.astype(float)), copies)


def test_the_average_of_probabilities_by_hand():
    p = np.array([[0.2, 0.9], [0.6, 0.5]])
    pooled = pooled_log_odds(np.log(p / (1 - p)), np.array([0.25, 0.75]))
    np.testing.assert_allclose(1 / (1 + np.exp(-pooled)), [0.5, 0.6])
    # Neither side saturates: 800 and -900 average to log(1/4) below the former on its good side.
    far = pooled_log_odds(np.array([[-800.0], [-900.0]]), np.array([0.25, 0.75]))
    np.testing.assert_allclose(far, -800 + np.log(0.25))
    far = pooled_log_odds(np.array([[800.0], [900.0]]), np.array([0.25, 0.75]))
    np.testing.assert_allclose(far, 800 - np.log(0.25))


def test_it_is_its_members_average(line):
    s, y = line
    pool = PooledCalibrator(random_state=3).fit(s, y)
    assert set(pool.methods_) <= set(MEMBERS)
    assert (np.diff(pool.weights_) <= 0).all()
    assert pool.weights_.min() >= 0.01
    grid = np.linspace(-8, 8, 33)
    parts = [make_calibrator(name, monotone=True).fit(s, y).predict_proba(grid) for name in pool.methods_]
    np.testing.assert_allclose(pool.predict_proba(grid), np.tensordot(pool.weights_, parts, 1), rtol=1e-9)
    assert (np.diff(pool.log_odds(grid)) >= -1e-12).all()
    again = PooledCalibrator(random_state=3).fit(s, y)
    np.testing.assert_array_equal(again.log_odds(grid), pool.log_odds(grid))


def test_no_part_is_better_by_more_than_its_weight_allows(line):
    s, y = line
    pool = PooledCalibrator().fit(s, y)
    each = np.logaddexp(0, np.where(y, -1, 1) * pool.log_odds(s))
    for weight, part in zip(pool.weights_, pool.calibrators_):
        theirs = np.logaddexp(0, np.where(y, -1, 1) * part.log_odds(s))
        assert (each <= theirs - np.log(weight) + 1e-9).all()


def test_groups_and_rows_without_weight(line):
    s, y = line
    groups = np.arange(600) // 6
    weight = np.ones(600)
    weight[::3] = 0.0
    kept = weight > 0
    some = PooledCalibrator().fit(s, y, sample_weight=weight, groups=groups)
    same = PooledCalibrator().fit(s[kept], y[kept], groups=groups[kept])
    np.testing.assert_allclose(some.weights_, same.weights_, rtol=1e-9)
    np.testing.assert_allclose(some.log_odds(s), same.log_odds(s), rtol=1e-9)
    with refused(InvalidInputError, argument="groups"):
        PooledCalibrator().fit(s, y, groups=np.zeros(600))
    with refused(InvalidInputError, argument="methods"):
        PooledCalibrator([]).fit(s, y)


def test_the_choice_by_default_is_the_pool(line, tmp_path):
    s, y = line
    labels = np.where(y, "yes", "no")
    choice = choose_calibrator(s, labels)
    assert choice.method == "pool"
    assert choice.calibrator.classes_.tolist() == ["no", "yes"]
    assert list(choice.weights) == choice.calibrator.methods_
    assert sum(choice.weights.values()) == pytest.approx(1)
    direct = PooledCalibrator().fit(s, labels)
    np.testing.assert_array_equal(choice.calibrator.log_odds(s), direct.log_odds(s))
    by_name = {row.method: row for row in choice.comparisons}
    assert set(by_name) == {"pool", *MEMBERS}
    # The pool's own figure is cross-validated too: about that of the best part.
    assert by_name["pool"].log_loss < min(by_name[name].log_loss for name in MEMBERS) + 0.01
    assert (by_name["pool"].difference, by_name["pool"].p) == (0.0, 1.0)
    save_model(choice.calibrator, tmp_path / "pool.json")
    np.testing.assert_array_equal(load_model(tmp_path / "pool.json").log_odds(s), choice.calibrator.log_odds(s))
    assert choose_calibrator(s, y, methods=["pool"]).weights == choose_calibrator(s, y).weights


def test_one_that_stands_out_is_taken_alone():
    rng = np.random.default_rng(1)
    s = rng.uniform(-6, 6, 3000)
    y = rng.uniform(size=3000) < 1 / (1 + np.exp(-np.where(s < 0, 0.2 * s, 3 * s)))
    choice = choose_calibrator(s, y, methods=["pool", "platt", "spline"])
    assert (choice.method, choice.weights) == ("spline", {"spline": 1.0})
    assert type(choice.calibrator).__name__ == "SplineCalibrator"


def test_damaged_files_are_refused(line):
    s, y = line
    pool = PooledCalibrator(["platt", "beta"]).fit(s, y)
    pool.weights_ = pool.weights_[:1]
    pool.methods_ = ["platt", "beta"]
    with refused(ModelFileError, argument="weights_", code="shape"):
        check_model(pool)


def test_threads_and_silence():
    # Rows of one class are separable in some folds: no member warns, and no thread's silence reaches another.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 2))
    y = rng.integers(0, 3, 90)
    X[:, 0] += 4 * (y == 2)
    one, two = (
        CalibratedClassifier(LogisticRegression(), PooledCalibrator(["logistic", "platt", "beta"]), n_jobs=n).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    with pytest.warns(TruerankWarning, match="a threshold separates"):
        calibrator_class("logistic")().fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])


def test_calibrators_without_weight_after_a_fold_are_not_fitted_again(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    scores = 50.0 * (rng.normal(size=600) + y)  # far too sure as log-odds
    fitted = []
    real = pool_module.quietly_fitted
    monkeypatch.setattr(
        pool_module, "quietly_fitted", lambda method, *rest: fitted.append(method) or real(method, *rest)
    )
    pool = PooledCalibrator(["platt", "identity"]).fit(scores, y)
    assert pool.methods_ == ["platt"]
    assert (fitted.count("platt"), fitted.count("identity")) == (11, 1)
    alone = real("platt", True, scores, y, None)
    np.testing.assert_array_equal(pool.log_odds(scores), pooled_log_odds(alone.log_odds(scores)[None], np.ones(1)))
