"""All calibrators: scikit-learn's manners, degenerate scores, weights, monotone log-odds, the model file."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from support.refusals import refused
from truerank.calibration import CALIBRATORS, calibrator_class
from truerank.calibration.densities import DensityCalibrator
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.models.model_file import load_model, save_model

NAMES = list(CALIBRATORS)
DENSITIES = ["gaussian", "asymmetric-gaussian", "laplace", "asymmetric-laplace", "hybrid"]


def make(name, **settings):
    if name == "pool":
        # Fewer folds: each of them fits eight calibrators.
        settings = {"cv": 2, "n_repeats": 1, **settings}
    if calibrator_class(name).always_monotone:
        settings.pop("monotone", None)
    return calibrator_class(name)(**settings)


def fit_quietly(calibrator, *args, **kwargs):
    """Fit; the warning of separable classes is expected here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*a threshold separates", category=TruerankWarning)
        return calibrator.fit(*args, **kwargs)


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=400) < 0.3).astype(int)
    return np.where(y == 1, 1.5, -1.0) + rng.laplace(size=400), y


with warnings.catch_warnings():
    # scikit-learn says that its checks for matrices with several columns do not apply to one column of scores.
    warnings.filterwarnings("ignore", message="Can't test estimator", category=SkipTestWarning)
    conformance = parametrize_with_checks([make(name) for name in NAMES])


@conformance
def test_scikit_learn_conformance(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*a threshold separates", category=TruerankWarning)
        check(estimator)


@pytest.mark.parametrize("name", NAMES)
def test_fit_predict_and_the_model_file(name, overlapping, tmp_path):
    scores, y = overlapping
    calibrator = make(name).fit(scores, y)
    p = calibrator.predict_proba(scores)
    assert p.shape == (400, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), calibrator.log_odds(scores), rtol=1e-9, atol=1e-9)
    assert (calibrator.predict(scores) == (p[:, 1] >= 0.5)).all()
    np.testing.assert_array_equal(calibrator.predict_proba(scores[:, None]), p)
    assert np.mean((p[:, 1] - y) ** 2) < 0.17
    save_model(calibrator, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(scores), p)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("scores", "y"),
    [
        ([1.0], [1]),
        ([1.0], [0]),
        ([1.0, 1.0], [0, 1]),
        ([1.0, 2.0], [0, 1]),
        ([1.0, 2.0], [1, 0]),
        ([1.0, 2.0, 3.0], [1, 1, 1]),
        ([1.0, 2.0, 3.0], [0, 0, 0]),
        ([0.0, 0.0, 0.0, 5.0], [0, 0, 0, 1]),
        ([2.0] * 6, [0, 1, 0, 1, 0, 0]),
        ([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [0, 0, 0, 1, 1, 1]),
        ([-1e140, 0.0, 1.0, 1e140], [0, 1, 0, 1]),
        ([0.0, 1e-200, 2e-200, 3e-200], [0, 1, 0, 1]),
        ([-1e300, 0.0, 1.0, 1e300], [0, 1, 0, 1]),
        ([0.0, 5e-324, 1e-323, 0.0], [0, 1, 0, 1]),
        ([5e-324] * 4, [0, 1, 0, 1]),
        ([-1e308, 1e308, 0.0], [1, 1, 1]),
        ([1e12, 1e12 + 1, 1e12 + 2, 1e12 + 3], [0, 1, 0, 1]),
        ([-800.0, -790.0, 790.0, 800.0, 0.0], [0, 0, 1, 1, 1]),
    ],
)
def test_few_and_strange_rows_give_finite_numbers(name, scores, y):
    for options in ({}, {"monotone": True}):
        calibrator = fit_quietly(make(name, **options), scores, y)
        queries = np.array([*scores, -1e140, -1e3, 0.0, 0.5, 1e3, 1e140, np.nextafter(scores[0], 1e300)])
        log_odds = calibrator.log_odds(queries)
        assert np.isfinite(log_odds).all()
        p = calibrator.predict_proba(queries)
        assert ((p > 0) & (p < 1)).all()
        if options:
            assert (np.diff(calibrator.log_odds(np.sort(queries))) >= -1e-9 * np.abs(log_odds).max()).all()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("temperature", "identity")])
def test_equal_scores_give_the_smoothed_prior(name):
    calibrator = make(name).fit([3.0] * 5, [0, 0, 0, 1, 0])
    np.testing.assert_allclose(calibrator.predict_proba([3.0, -7.0, 100.0])[:, 1], 2 / 7, rtol=1e-12)


# Copies of a row get into other folds of the pool's cross-validation than the row: tests/calibration/test_pool.py.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "pool"])
def test_a_weight_is_so_many_copies(name, overlapping):
    scores, y = overlapping
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    grid = np.linspace(-5, 5, 50)
    weighted = make(name).fit(scores, y, sample_weight=weight)
    copies = make(name).fit(np.repeat(scores, weight), np.repeat(y, weight))
    # The spline's knots are found to a tolerance on a summary; everything else agrees to rounding.
    tolerance = {"atol": 0.2} if name == "spline" else {"atol": 1e-6}
    np.testing.assert_allclose(weighted.log_odds(grid), copies.log_odds(grid), **tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_monotone(name):
    if calibrator_class(name).always_monotone and name != "identity":
        with refused(InvalidInputError, argument="monotone"):
            calibrator_class(name)(monotone=True).fit([0.0, 1.0, 2.0, 0.5], [0, 0, 1, 1])
    rng = np.random.default_rng(2)
    y = (rng.uniform(size=300) < 0.4).astype(int)
    for direction in (1, -1):
        scores = direction * np.where(y == 1, rng.normal(1, 0.5, 300), rng.standard_t(2, 300))
        log_odds = make(name, monotone=True).fit(scores, y).log_odds(np.linspace(-30, 30, 3001))
        assert (np.diff(log_odds) >= -1e-9).all()


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_integrate_to_one_and_invert_by_bayes(name, overlapping):
    scores, y = overlapping
    calibrator = make(name).fit(scores, y)
    for cls in (0, 1):
        mode = float(calibrator.shape_[cls, 0] + calibrator.centre_)

        def density(s, cls=cls):
            return calibrator.density([s], cls)[0]

        total = integrate.quad(density, -60, mode)[0] + integrate.quad(density, mode, 60)[0]
        assert total == pytest.approx(1, abs=1e-6)
    grid = np.linspace(-4, 4, 9)
    plus = calibrator.prior_[1] * calibrator.density(grid, 1)
    minus = calibrator.prior_[0] * calibrator.density(grid, 0)
    np.testing.assert_allclose(calibrator.predict_proba(grid)[:, 1], plus / (plus + minus), rtol=1e-12)
    assert calibrator.prior_[1] == (y.sum() + 1) / (len(y) + 2)
    with refused(InvalidInputError, argument="cls"):
        calibrator.density(grid, 2)


def test_the_papers_names():
    scores, y = [-1.0, 0.0, 1.0, 1.0, 2.0, 4.0], [0, 0, 0, 1, 1, 1]
    for name, attributes in {
        "gaussian": ("mu_", "sigma_"),
        "asymmetric-gaussian": ("theta_", "sigma_l_", "sigma_r_"),
        "laplace": ("theta_", "beta_"),
        "asymmetric-laplace": ("theta_", "beta_", "gamma_"),
        "hybrid": ("theta_", "u_", "sigma_"),
    }.items():
        calibrator = make(name).fit(scores, y)
        assert all(getattr(calibrator, attribute).shape == (2,) for attribute in attributes)


def test_hybrid_is_gaussian_outside_and_exponential_inside(overlapping):
    scores, y = overlapping
    calibrator = make("hybrid").fit(scores, y)
    for cls, outward in ((0, -1), (1, 1)):
        theta, u, sigma = calibrator.theta_[cls], calibrator.u_[cls], calibrator.sigma_[cls]
        width = u + math.sqrt(math.pi / 2) * sigma
        outer, inner = calibrator.density([theta + outward * 1.5, theta - outward * 1.5], cls)
        assert outer == pytest.approx(math.exp(-(1.5**2) / (2 * sigma**2)) / width)
        assert inner == pytest.approx(math.exp(-1.5 / u) / width)
    mirrored = make("hybrid").fit(-scores, y)
    np.testing.assert_allclose(mirrored.log_odds(-scores), calibrator.log_odds(scores), atol=1e-5)


def test_one_flat_end_is_enough_for_the_asymmetric_laplace():
    rng = np.random.default_rng(0)
    scores = np.r_[rng.laplace(0, 2, 200), rng.laplace(3, 0.5, 200)]
    y = np.r_[np.zeros(200), np.ones(200)]
    free, held = make("asymmetric-laplace").fit(scores, y), make("asymmetric-laplace", monotone=True).fit(scores, y)
    grid = np.linspace(-10, 20, 301)
    assert held.flat_[1] == held.theta_[1]
    below = grid <= held.theta_[1]
    np.testing.assert_array_equal(held.log_odds(grid)[below], free.log_odds(grid)[below])
    assert np.ptp(held.log_odds(grid)[~below]) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), min_size=1, max_size=25))
def test_never_nan_and_never_certain(rows):
    scores, y = np.array([s for s, _ in rows]), np.array([c for _, c in rows])
    queries = np.r_[scores, -1e7, 0, 1e7]
    # The spline and the pool, which are slow, meet their strange rows above.
    for name in (name for name in NAMES if name not in ("spline", "pool")):
        with warnings.catch_warnings():
            # Scores a thousandth of a millionth apart may end at max_iter, which is said; what is promised holds.
            warnings.filterwarnings("ignore", message=".*stopped at max_iter", category=TruerankWarning)
            calibrator = fit_quietly(make(name), scores, y)
        assert np.isfinite(calibrator.log_odds(queries)).all()
        p = calibrator.predict_proba(queries)
        assert ((p > 0) & (p < 1)).all()


def test_positive_affine_changes_of_the_score_change_nothing(overlapping):
    scores, y = overlapping
    for name in [name for name in NAMES if name not in ("beta", "temperature", "identity", "pool")]:
        before = make(name).fit(scores, y).log_odds(scores)
        after = make(name).fit(3 * scores + 7, y).log_odds(3 * scores + 7)
        np.testing.assert_allclose(after, before, atol=1e-2 if name == "spline" else 1e-5)


# "beta" and "identity" read a score as log-odds in nats, and so does a pool with them.
SCALE_FREE = [name for name in NAMES if name not in ("beta", "identity", "pool")]


@pytest.mark.parametrize("name", [*SCALE_FREE, "pool of these"])
def test_a_fit_is_the_same_at_every_scale(name):
    """Trials over sizes from 1e-300 to 1e300, also with ties, an offset and long tails."""
    rng = np.random.default_rng(3)
    for trial in range(12 if name in SCALE_FREE else 2):
        n = int(rng.integers(6, 150))
        y = (rng.uniform(size=n) < rng.uniform(0.2, 0.8)).astype(int)
        y[:4] = [0, 1, 0, 1]
        scores = rng.standard_t(3, n) + rng.uniform(0, 3) * y + rng.choice([0.0, 10.0])
        if trial % 2:
            scores = scores.round(1)

        def probabilities(scale, scores=scores, y=y):
            model = make(name) if name in SCALE_FREE else make("pool", methods=["platt", "hybrid", "isotonic"])
            return fit_quietly(model, scores * scale, y).predict_proba(scores * scale)

        expected = probabilities(1.0)
        for scale in (1e-300, 1e-200, 1e-30, 1e-7, 1e-3, 1e3, 1e30, 1e145, 1e200, 1e300):
            np.testing.assert_allclose(probabilities(scale), expected, atol=1e-7)


@pytest.mark.parametrize("name", DENSITIES)
def test_two_equally_good_modes_are_one_choice_at_every_scale(name):
    """Scores on a grid often have two modes of one likelihood; rounding chose between them."""
    for trial in range(150):
        rng = np.random.default_rng(trial)
        y = np.r_[0, 1, rng.integers(0, 2, int(rng.integers(4, 60)))]
        scores = (rng.normal(size=len(y)) + y).round(1)
        expected = fit_quietly(make(name), scores, y).predict_proba(scores)
        for scale in (1e-300, 1e-3, 7.0, 1e6):
            found = fit_quietly(make(name), scores * scale, y).predict_proba(scores * scale)
            np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-9, 1e120, 1e300])
def test_tiny_and_huge_scores_are_calibrated_and_kept(name, scale, overlapping, tmp_path):
    _, y = overlapping
    scores = (np.round(10 * overlapping[0]) + 3) * scale
    calibrator = make(name).fit(scores, y)
    p = calibrator.predict_proba(scores)[:, 1]
    assert np.isfinite(calibrator.log_odds(np.r_[scores, -1e308, 1e308])).all()
    if name != "identity":
        # Better than the prior
        assert np.mean((p - y) ** 2) < np.mean((y.mean() - y) ** 2) - 0.03
    assert np.mean(p[y == 1]) >= np.mean(p[y == 0])
    save_model(calibrator, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict_proba(scores)[:, 1], p)


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_refused(name):
    calibrator = make(name)
    with pytest.raises(ValueError, match="NaN"):
        calibrator.fit([1.0, np.nan], [0, 1])
    with pytest.raises(ValueError, match="infinity"):
        calibrator.fit([1.0, np.inf], [0, 1])
    with refused(InvalidInputError, argument="scores"):
        calibrator.fit(np.ones((4, 2)), [0, 1, 0, 1])
    with refused(InvalidInputError, code="not-binary"):
        calibrator.fit([1.0, 2.0, 3.0], [0, 1, 2])
    with refused(InvalidInputError, argument="y"):
        calibrator.fit([1.0, 2.0], ["no", "no"])
    with refused(InvalidInputError, argument="y"):
        calibrator.fit([1.0, 2.0], [0, 1, 1])
    with refused(InvalidInputError, argument="sample_weight"):
        calibrator.fit([1.0, 2.0], [0, 1], sample_weight=[1.0, -1.0])


def test_labels_of_any_kind(overlapping):
    scores, y = overlapping
    expected = make("platt").fit(scores, y).predict_proba(scores)
    for labels in (y == 1, 2 * y - 1, y.astype(float), np.where(y == 1, "yes", "no")):
        calibrator = make("platt").fit(scores, labels)
        np.testing.assert_array_equal(calibrator.predict_proba(scores), expected)
        assert set(calibrator.predict(scores)) <= set(labels)


@pytest.mark.parametrize("setting", [0.0, 2.0, -1.0, "x"])
def test_a_floor_outside_its_interval_is_refused(setting):
    with refused(InvalidInputError, argument="smallest_scale"):
        make("laplace", smallest_scale=setting).fit([0.0, 1.0], [0, 1])
    assert issubclass(calibrator_class("laplace"), DensityCalibrator)


@pytest.mark.parametrize("name", ["asymmetric-laplace", "asymmetric-gaussian", "hybrid"])
def test_limits_of_the_paper_keep_the_density(name):
    """At a smallest scale the paper's β = INF is the density itself; by default the rule of succession takes over."""
    scores, y = np.array([-3.0, -1.0, -1.0, 1.0, 2.0, 3.0]), np.array([0, 0, 0, 1, 1, 1])
    paper = make(name, smallest_scale=0.01, limits="paper").fit(scores, y)
    new = np.array([-0.9, 0.3, 0.9])
    expected = np.log(paper.density(new, 1)) - np.log(paper.density(new, 0))
    np.testing.assert_allclose(paper.log_odds(new), expected, rtol=1e-9)
    default = make(name, smallest_scale=0.01).fit(scores, y)
    np.testing.assert_array_equal(default.density(new, 1), paper.density(new, 1))
    assert not np.allclose(default.log_odds(new), paper.log_odds(new))
    with refused(InvalidInputError, argument="limits"):
        make(name, limits="both").fit(scores, y)


def test_beta_is_betacals_where_targets_hardly_matter():
    betacal = pytest.importorskip("betacal")
    rng = np.random.default_rng(4)
    p = rng.beta(2, 3, size=20_000)
    y = rng.uniform(size=20_000) < p**1.5 / (p**1.5 + 0.7 * (1 - p) ** 0.8)
    scores = np.log(p) - np.log1p(-p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = betacal.BetaCalibration(parameters="abm").fit(p[:, None], y.astype(int)).predict(p[:, None])
    ours = make("beta").fit(scores, y)
    assert (ours.a_, ours.b_) == pytest.approx((1.5, 0.8), abs=0.15)
    np.testing.assert_allclose(ours.predict_proba(scores)[:, 1], theirs, atol=2e-3)


def test_isotonic_is_scikit_learns_between_the_targets(overlapping):
    from sklearn.isotonic import IsotonicRegression

    scores, y = overlapping
    plain = IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict(scores)
    low, high = 1 / (len(y) - y.sum() + 2), (y.sum() + 1) / (y.sum() + 2)
    ours = make("isotonic").fit(scores, y).predict_proba(scores)[:, 1]
    np.testing.assert_allclose(ours, low + (high - low) * plain, atol=1e-12)


def test_platt_is_scikit_learns_sigmoid(overlapping):
    sklearn_calibration = pytest.importorskip("sklearn.calibration")
    scores, y = overlapping
    sigmoid = sklearn_calibration._SigmoidCalibration().fit(scores, y)
    ours = make("platt").fit(scores, y)
    assert (ours.b_, ours.a_) == pytest.approx((-sigmoid.a_, -sigmoid.b_), rel=1e-3)


def test_logistic_and_temperature_are_at_their_maximum(overlapping):
    scores, y = overlapping

    def log_likelihood(log_odds):
        return -np.logaddexp(0, np.where(y == 1, -log_odds, log_odds)).sum()

    fitted = make("logistic").fit(scores, y)
    best = log_likelihood(fitted.log_odds(scores))
    assert best >= log_likelihood(fitted.a_ + 0.01 + fitted.b_ * scores)
    assert best >= log_likelihood(fitted.a_ + (fitted.b_ + 0.01) * scores)
    slope = make("temperature").fit(scores, y).slope_
    assert log_likelihood(slope * scores) >= max(log_likelihood((slope + d) * scores) for d in (-1e-3, 1e-3))


def test_labels_of_a_column_of_objects_and_labels_that_are_none():
    s = np.array([0.0, 1.0, 2.0, 3.0])
    plain = make("platt").fit(s, [False, True, False, True])
    for labels in ([False, True, False, True], [0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0]):
        fitted = make("platt").fit(s, np.array(labels, dtype=object))
        np.testing.assert_array_equal(fitted.log_odds(s), plain.log_odds(s))
    for labels in ([0.25, 0.5, 0.25, 0.5], np.array([None, True, False, True], dtype=object)):
        with refused(InvalidInputError, argument="y"):
            make("platt").fit(s, labels)


def test_weights_are_counts_of_rows():
    with refused(InvalidInputError, argument="sample_weight"):
        make("platt").fit([0.0, 1.0], [0, 1], [1.0, 1e300])
