"""Several classes at once: the objective, its minimum, one against the rest, the pool, the model file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from reference.joint import penalised_loss
from support.refusals import refused
from truerank.calibration.joint import JointPool, OneVsRestCalibrator, SoftmaxCalibrator, against_the_rest, log_odds_of
from truerank.calibration.posteriors import IsotonicCalibrator, PlattCalibrator
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model
from truerank.models.model_file import load_model, save_model

FORMS = ("temperature", "vector", "matrix")


def planted(n, seed=0, k=4, slope=0.4):
    """Scores whose softmax at the given slope is the truth."""
    rng = np.random.default_rng(seed)
    scores = 5 * rng.normal(size=(n, k))
    p = np.exp(log_softmax(slope * scores, axis=1))
    y = (rng.uniform(size=(n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return scores, np.minimum(y, k - 1)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_minimum(form):
    scores, y = planted(60)
    weight = np.random.default_rng(1).uniform(0.5, 2, 60)
    fitted = SoftmaxCalibrator(form, ridge=0.7).fit(scores, y, weight)
    x = (scores - fitted.centre_) / fitted.scale_

    def objective(slope, intercept, matrix):
        return penalised_loss(x.tolist(), y, weight, slope, intercept.tolist(), matrix.tolist(), 0.7)

    least = objective(fitted.slope_, fitted.intercept_, fitted.coef_)
    rng = np.random.default_rng(2)
    for size in (1e-2, 1e-3):
        for _ in range(10):
            slope = fitted.slope_ + size * rng.normal()
            intercept, matrix = fitted.intercept_.copy(), fitted.coef_.copy()
            if form != "temperature":
                intercept += size * rng.normal(size=4)
            if form == "vector":
                matrix += np.diag(size * rng.normal(size=4))
            elif form == "matrix":
                matrix += size * rng.normal(size=(4, 4))
            assert objective(slope, intercept, matrix) >= least - 1e-6
    by_hand = fitted.slope_ * x + fitted.intercept_ + x @ fitted.coef_
    np.testing.assert_allclose(fitted.log_probabilities(scores), log_softmax(by_hand, axis=1), atol=1e-12)


def test_a_planted_temperature_is_found():
    scores, y = planted(20_000)
    fitted = SoftmaxCalibrator().fit(scores, y)
    assert fitted.slope_ / fitted.scale_ == pytest.approx(0.4, abs=0.01)
    assert not fitted.coef_.any()
    # What carries nothing over the temperature stays near it.
    matrix = SoftmaxCalibrator("matrix").fit(scores, y)
    np.testing.assert_allclose(matrix.predict_proba(scores[:50]), fitted.predict_proba(scores[:50]), atol=0.05)


def test_copies_equal_weights_and_labels_may_be_words():
    scores, y = planted(80)
    names = np.array(["a", "b", "c", "d"])[y]
    weight = np.random.default_rng(1).integers(0, 3, 80)
    rows = np.repeat(np.arange(80), weight)
    for calibrator in (SoftmaxCalibrator("vector"), OneVsRestCalibrator()):
        one = type(calibrator)(**calibrator.get_params()).fit(scores, names, weight, classes=np.unique(names))
        two = calibrator.fit(scores[rows], names[rows], classes=np.unique(names))
        if isinstance(one, OneVsRestCalibrator):
            np.testing.assert_allclose(one.predict_proba(scores), two.predict_proba(scores), atol=1e-6)
        assert set(one.predict(scores)) <= set(names)
        np.testing.assert_allclose(one.predict_proba(scores).sum(axis=1), 1)


def test_one_against_the_rest_by_hand():
    scores, y = planted(90)
    p = np.stack([IsotonicCalibrator().fit(scores[:, k], y == k).predict_proba(scores[:, k])[:, 1] for k in range(4)])
    fitted = OneVsRestCalibrator("isotonic").fit(scores, y)
    np.testing.assert_allclose(fitted.predict_proba(scores), (p / p.sum(axis=0)).T)
    log_p = log_softmax(scores, axis=1)
    odds = against_the_rest(scores)
    np.testing.assert_allclose(odds, log_p - np.log1p(-np.exp(log_p)), rtol=1e-6)
    np.testing.assert_allclose(log_odds_of(log_p), odds, rtol=1e-6)
    by_odds = OneVsRestCalibrator(from_log_probabilities=True).fit(scores, y)
    first = PlattCalibrator().fit(odds[:, 0], y == 0)
    np.testing.assert_allclose(by_odds.calibrators_[0].log_odds(odds[:, 0]), first.log_odds(odds[:, 0]))


@pytest.mark.parametrize("log_p", [False, True])
def test_the_pool(tmp_path, log_p):
    scores, y = planted(400)
    pool = JointPool(from_log_probabilities=log_p, random_state=1).fit(scores, y)
    assert pool.weights_.sum() == pytest.approx(1)
    assert ("as they are" in pool.methods_) <= log_p
    p = pool.predict_proba(scores)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.isfinite(pool.log_odds(scores)).all()
    save_model(pool, tmp_path / "pool.json")
    np.testing.assert_array_equal(load_model(tmp_path / "pool.json").predict_proba(scores), p)
    # About as good as the truth on rows it has not seen, and better than the scores as they are.
    new, new_y = planted(4000, seed=5)
    each = -pool.log_probabilities(new)[np.arange(4000), new_y]
    truth = -log_softmax(0.4 * new, axis=1)[np.arange(4000), new_y]
    raw = -log_softmax(new, axis=1)[np.arange(4000), new_y]
    assert each.mean() < truth.mean() + 0.03
    assert each.mean() < raw.mean() - 0.2
    pool.weights_ = pool.weights_[:0]
    with refused(ModelFileError, argument="weights_", code="shape"):
        check_model(pool)


def test_scores_that_are_right_stay():
    scores, y = planted(3000, slope=1.0)
    pool = JointPool(from_log_probabilities=True).fit(scores, y)
    new, new_y = planted(3000, seed=7, slope=1.0)
    each = -pool.log_probabilities(new)[np.arange(3000), new_y]
    raw = -(new - logsumexp(new, axis=1, keepdims=True))[np.arange(3000), new_y]
    assert each.mean() < raw.mean() + 0.005


def test_odd_shapes_and_rare_classes():
    scores, y = planted(50)
    y = np.where(y == 3, 0, y)
    y[0] = 3  # a class of a single row
    for calibrator in (JointPool(), OneVsRestCalibrator("spline"), SoftmaxCalibrator("matrix")):
        p = calibrator.fit(scores, y).predict_proba(scores)
        assert np.isfinite(p).all()
        assert (calibrator.log_probabilities(scores * 1e6) <= 0).all()
    assert np.isfinite(SoftmaxCalibrator().fit(np.zeros((50, 4)), y).log_probabilities(scores)).all()
    with refused(InvalidInputError, argument="scores"):
        SoftmaxCalibrator().fit(scores[:, :3], y)
    with refused(InvalidInputError, argument="y"):
        SoftmaxCalibrator().fit(scores, y, classes=[0, 1, 2, 4])
    with refused(InvalidInputError, argument="form"):
        SoftmaxCalibrator("line").fit(scores, y)
    with refused(InvalidInputError, argument="scores"):
        SoftmaxCalibrator().fit(scores, y).predict(scores[:, :2])


def test_damaged_parts_are_refused():
    scores, y = planted(60)
    for attribute, value, named, code in (
        ("classes_", np.array([0, 0, 1, 2]), "classes_", None),
        ("classes_", np.array([0]), "coef_", "shape"),
        ("coef_", np.zeros((3, 4)), "coef_", "shape"),
        ("scale_", 0.0, "scale_", "range"),
        ("intercept_", np.full(4, np.nan), "intercept_", "range"),
    ):
        fitted = SoftmaxCalibrator("matrix").fit(scores, y)
        setattr(fitted, attribute, value)
        with refused(ModelFileError, argument=named, code=code):
            check_model(fitted)
    one = OneVsRestCalibrator().fit(scores, y)
    one.calibrators_ = one.calibrators_[:2]
    with refused(ModelFileError, argument="calibrators_", code="shape"):
        check_model(one)


def test_stacked_weights_raise_the_likelihood_and_similar_members_share_them():
    from truerank.calibration.joint import stacked_weights

    rng = np.random.default_rng(4)
    loss, weight = rng.exponential(size=(3, 80)) + [[0.0], [0.1], [0.4]], rng.integers(1, 3, 80).astype(float)

    def likelihood(share):
        return weight @ logsumexp(np.log(share)[:, None] - loss, axis=0)

    found = stacked_weights(loss, weight)
    assert found.sum() == pytest.approx(1)
    assert likelihood(found) > likelihood(np.full(3, 1 / 3))
    copies = np.repeat(loss, weight.astype(int), axis=1)
    np.testing.assert_allclose(found, stacked_weights(copies), atol=1e-9)
    np.testing.assert_allclose(stacked_weights(loss[[0, 0, 1]])[0], stacked_weights(loss[[0, 0, 1]])[1])
    # One member is 0.01 nats worse on every row, one a nat: each step multiplies the ratio of weights by exp(-loss).
    similar, bad = stacked_weights(np.array([[0.5], [0.51], [1.5]]) + np.zeros(80))[1:]
    assert 0.3 < similar < 0.4
    assert bad < 1e-20
