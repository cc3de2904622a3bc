"""Every fitted form against a numerical optimiser: likelihood to 1e-9 of it, scales and slopes to 1e-6.

Through the calibrators themselves, for random, skewed, tied, few and far-off scores.
"""

from __future__ import annotations

import numpy as np
import pytest

from reference.maximum_likelihood import FAMILIES, maximise_density, maximise_log_odds
from truerank.calibration import calibrator_class
from truerank.calibration.log_odds_fits import spline_columns
from truerank.calibration.posteriors import platt_targets
from truerank.core.random_streams import stream


def scores_and_classes(kind):
    """Scores of two overlapping classes; "far" ones lie at 1e12, where floats are 1.2e-4 apart."""
    rng = np.random.default_rng(7)
    n = {"few": 9, "fewer": 5}.get(kind, 48)
    y = rng.permutation(np.arange(n) < max(2, int(0.4 * n)))
    noise = {
        "skewed": lambda: rng.exponential(size=n) ** 1.5,
        "skewed left": lambda: -rng.exponential(size=n),
        "tied": lambda: np.round(2 * rng.normal(size=n)) / 2,
        "heavy tails": lambda: rng.standard_t(1.5, size=n),
    }.get(kind, lambda: rng.normal(size=n))()
    scores = noise + 0.8 * y
    return {"far": scores + 1e12, "tiny": 1e-9 * scores, "large": 1e9 * scores}.get(kind, scores), y


KINDS = ["random", "skewed", "skewed left", "tied", "heavy tails", "few", "fewer", "far", "tiny", "large"]


def fitted_scales(calibrator, family, cls):
    """Mode and the scales left and right, by the paper's names."""
    if family == "gaussian":
        return calibrator.mu_[cls], calibrator.sigma_[cls], calibrator.sigma_[cls]
    if family == "asymmetric-gaussian":
        return calibrator.theta_[cls], calibrator.sigma_l_[cls], calibrator.sigma_r_[cls]
    if family == "laplace":
        return calibrator.theta_[cls], 1 / calibrator.beta_[cls], 1 / calibrator.beta_[cls]
    if family == "asymmetric-laplace":
        return calibrator.theta_[cls], 1 / calibrator.beta_[cls], 1 / calibrator.gamma_[cls]
    return calibrator.theta_[cls], calibrator.u_[cls], calibrator.sigma_[cls]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_densities(family, kind):
    scores, y = scores_and_classes(kind)
    calibrator = calibrator_class(family)().fit(scores, y)
    for cls in (0, 1):
        some = scores[y == cls]
        # About a pivot and in units of their range: exact, and the same problem for the optimiser at any place. The
        # hybrid's Gaussian side looks outward.
        pivot, unit = some[0], np.ptp(some)
        sign = -1 if family == "hybrid" and (cls == 1) != calibrator.ascending_ else 1
        best, theta, *scales = maximise_density(family, sign * (some - pivot) / unit)
        value = np.log(calibrator.density(some, cls)).sum() + len(some) * np.log(unit)
        assert value >= best - 1e-9 * abs(best)
        mode, *ours = fitted_scales(calibrator, family, cls)
        # All medians have the same likelihood and the same deviation; elsewhere another mode is another density.
        if family == "laplace" or abs(sign * (mode - pivot) / unit - theta) < 1e-4:
            # A side without spread has no best scale: the likelihood grows as it shrinks.
            bounded = np.array(scales) > 1e-9
            np.testing.assert_allclose((np.array(ours) / unit)[bounded], np.array(scales)[bounded], rtol=1e-6)
            assert value <= best + 1e-9 * abs(best)


def standardised(scores):
    z = scores - scores[0]
    return (z - z.mean()) / z.std(), z.std()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["logistic", "platt"])
def test_lines_of_log_odds(name, kind):
    scores, y = scores_and_classes(kind)
    targets = platt_targets(y, None) if name == "platt" else y.astype(float)
    z, unit = standardised(scores)
    least, (level, slope) = maximise_log_odds(z[:, None], targets)
    calibrator = calibrator_class(name)().fit(scores, y)
    log_odds = calibrator.log_odds(scores)
    ours = float((np.logaddexp(0, log_odds) - targets * log_odds).sum())
    assert ours <= least + 1e-9 * least
    assert calibrator.b_ * unit == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(log_odds, level + slope * z, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("monotone", [False, True])
def test_the_spline_for_its_knots(kind, monotone):
    # The problem is convex for given knots; where monotone= holds a slope at 0 the others are free.
    scores, y = scores_and_classes(kind)
    calibrator = calibrator_class("spline")(monotone=monotone).fit(scores, y)
    unit = np.std(scores - scores[0])
    z = (scores - calibrator.centre_) / unit
    targets = platt_targets(y, None)
    free = np.flatnonzero(calibrator.slopes_ > 0) if monotone else np.arange(3)
    columns = np.stack(spline_columns(z, calibrator.centred_knots_ / unit), axis=1)
    ridge = 1e-6 * len(z)
    least, coef = maximise_log_odds(columns[:, free], targets, ridge=ridge)
    log_odds = calibrator.log_odds(scores)
    ours = np.logaddexp(0, log_odds) - targets * log_odds
    penalty = 0.5 * ridge * float(((calibrator.slopes_ * unit) ** 2).sum())
    assert float(ours.sum()) + penalty <= least + 1e-9 * least
    np.testing.assert_allclose(log_odds, coef[0] + columns[:, free] @ coef[1:], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["random", "skewed", "tied", "heavy tails", "few"])
def test_the_spline_is_never_below_platts_line(kind):
    scores, y = scores_and_classes(kind)
    targets = platt_targets(y, None)
    losses = []
    for name in ("spline", "platt"):
        log_odds = calibrator_class(name)().fit(scores, y).log_odds(scores)
        losses.append(float((np.logaddexp(0, log_odds) - targets * log_odds).sum()))
    # The ridge of 1e-6 of the rows may cost that much.
    assert losses[0] <= losses[1] + 1e-5 * len(y)


@pytest.mark.parametrize("kind", ["random", "skewed", "tied", "few"])
def test_beta_and_temperature(kind):
    scores, y = scores_and_classes(kind)
    if kind == "few":
        scores = 2 * scores
    targets = platt_targets(y, None)
    log_p, log_q = -np.logaddexp(0, -scores), -np.logaddexp(0, scores)
    columns = np.stack([log_p, -log_q], axis=1)
    beta = calibrator_class("beta")().fit(scores, y)
    free = np.flatnonzero([beta.a_ > 0, beta.b_ > 0])
    least, _ = maximise_log_odds(columns[:, free], targets)
    log_odds = beta.log_odds(scores)
    assert float((np.logaddexp(0, log_odds) - targets * log_odds).sum()) <= least + 1e-8 * least
    slope = calibrator_class("temperature")().fit(scores, y).slope_

    def loss(s):
        return float((np.logaddexp(0, s * scores) - y * s * scores).sum())

    from scipy.optimize import minimize_scalar

    found = minimize_scalar(loss, bounds=(0, 20), method="bounded", options={"xatol": 1e-10})
    assert loss(slope) <= found.fun + 1e-9 * found.fun
    assert slope == pytest.approx(found.x, rel=1e-6, abs=1e-7)


def test_the_last_steps_are_taken_among_many_rows():
    # Here the objective's rounding once hid the last Newton steps: the search crept on to its greatest number of steps,
    # which warns, and warnings are errors.
    rng = np.random.default_rng(0)
    n = 100_000
    y = rng.uniform(size=n) < 0.2
    y[:4] = True, True, False, False

    def draw(theta, beta, gamma):
        left = rng.uniform(size=n) < gamma / (beta + gamma)
        return np.where(left, theta - rng.exponential(1 / beta, n), theta + rng.exponential(1 / gamma, n))

    scores = np.where(y, draw(2.0, 1.0, 2.0), draw(-1.0, 0.5, 1.5))
    fold = np.empty(n, dtype=np.int64)
    generator = stream(0, "choose-calibrator", 0)
    for rows in (np.flatnonzero(y), np.flatnonzero(~y)):
        fold[generator.permutation(rows)] = np.arange(len(rows)) % 5
    for k in range(5):
        calibrator = calibrator_class("spline")(monotone=True).fit(scores[fold != k], y[fold != k])
        assert calibrator.slopes_[2] == 0
