"""Diagnostics: arithmetic, identities, and their behaviour under probabilities that are true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from support.refusals import refused
from truerank.calibration.diagnostics import (
    brier_decomposition,
    expected_calibration_error,
    losses,
    micro_sign_test,
    reliability,
    spiegelhalter_test,
)
from truerank.core.errors import InvalidInputError


@pytest.fixture(scope="module")
def true_probabilities():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 2, size=3000)
    return rng.uniform(size=3000) < p, p


def test_losses_are_scikit_learns(true_probabilities):
    y, p = true_probabilities
    figures = losses(y, np.log(p) - np.log1p(-p)).sums()
    assert -figures.log_loss / figures.n == pytest.approx(log_loss(y, p))
    assert figures.brier == pytest.approx(brier_score_loss(y, p))
    assert figures.errors == int(((p >= 0.5) != y).sum())
    assert figures.log_loss_bits == pytest.approx(figures.log_loss / math.log(2))


def test_log_loss_does_not_saturate():
    loss = losses([1, 1, 0], [-5000.0, 5000.0, 40.0])
    assert loss.log_loss.tolist() == [5000.0, 0.0, pytest.approx(40.0)]
    assert loss.squared_error.tolist() == [1.0, 0.0, 1.0]
    assert loss.error.tolist() == [True, False, True]


def test_micro_sign_test():
    test = micro_sign_test(np.r_[np.zeros(9), 1.0, 1.0], np.r_[np.ones(9), 0.0, 1.0])
    assert (test.wins, test.losses) == (9, 1)
    assert test.p == pytest.approx(2 * (1 + 10) / 2**10)
    assert micro_sign_test([1.0], [1.0]).p == 1.0
    with refused(InvalidInputError, argument="b", code="shape"):
        micro_sign_test([1.0], [1.0, 2.0])


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("n_bins", [1, 7, None])
def test_brier_decomposition_adds_up(true_probabilities, strategy, n_bins):
    y, p = true_probabilities
    parts = brier_decomposition(y, p.round(2), n_bins=n_bins, strategy=strategy)
    assert parts.brier == pytest.approx(brier_score_loss(y, p.round(2)))
    assert parts.reliability - parts.resolution + parts.uncertainty + parts.within == pytest.approx(parts.brier)
    if n_bins is None:
        assert parts.within == pytest.approx(0, abs=1e-15)


def test_reliability_counts_rows_and_bands_cover(true_probabilities):
    y, p = true_probabilities
    diagram = reliability(y, p, n_bins=10, n_resamples=400)
    assert diagram.count.sum() == len(p)
    assert (diagram.count == 300).all()
    first = p <= np.quantile(p, 0.1)
    assert diagram.predicted[0] == pytest.approx(p[first].mean(), rel=1e-2)
    assert diagram.inside >= 0.8
    # For one bin the band is that of a sum of independent classes: ±1.96 standard deviations.
    one = reliability(y, p, n_bins=1, n_resamples=2000)
    half = 1.96 * math.sqrt((p * (1 - p)).sum()) / len(p)
    assert one.band_high[0] - one.band_low[0] == pytest.approx(2 * half, rel=0.1)
    crooked = reliability(y, p**3, n_bins=10, n_resamples=200)
    assert crooked.inside < 0.5
    same = reliability(y, p, n_bins=10, n_resamples=400)
    np.testing.assert_array_equal(same.band_low, diagram.band_low)


def test_calibration_error_is_debiased():
    rng = np.random.default_rng(1)
    plain, debiased, covered = [], [], 0
    for seed in range(25):
        p = rng.beta(0.7, 2, size=800)
        y = rng.uniform(size=800) < p
        error = expected_calibration_error(y, p, n_resamples=50, random_state=seed)
        plain.append(error.plain)
        debiased.append(error.debiased)
        shifted = np.minimum(p + 0.1, 1)
        error = expected_calibration_error(y, shifted, n_resamples=100, random_state=seed)
        assert abs(error.debiased - 0.1) < 0.05
        covered += error.low <= np.mean(shifted - p) <= error.high
    assert np.mean(debiased) < 0.5 * np.mean(plain)
    assert covered >= 20


def test_spiegelhalter():
    # z = (1 - 0.2)(1 - 0.4)/√(0.6² · 0.16)
    assert spiegelhalter_test([1], [0.2]).z == pytest.approx(0.8 * 0.6 / (0.6 * 0.4))
    rng = np.random.default_rng(2)
    p_values = []
    for _ in range(200):
        p = rng.beta(1, 2, size=200)
        p_values.append(spiegelhalter_test(rng.uniform(size=200) < p, p).p)
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.1
    assert spiegelhalter_test([1, 0], [1.0, 0.0]).p == 1.0
    assert spiegelhalter_test([0], [1.0]).p == 0.0


@pytest.mark.parametrize("p", [[0.3], [0.0, 1.0], [0.5, 0.5, 0.5]])
def test_few_rows(p):
    y = [0] * len(p)
    assert reliability(y, p, n_resamples=10).count.sum() == len(p)
    assert expected_calibration_error(y, p, n_resamples=10).plain >= 0
    assert brier_decomposition(y, p).brier >= 0
    with refused(InvalidInputError, code="no-rows"):
        spiegelhalter_test([], [])


def test_queries_widen_what_rows_make_too_narrow():
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(60), 20)
    p = rng.beta(0.5, 2, size=1200)
    y = np.repeat(rng.uniform(size=60), 20) < p  # the documents of a query share all their luck
    rows, by_query = (reliability(y, p, groups=groups, n_resamples=200) for groups in (None, query))
    widths, narrow = (bands.band_high - bands.band_low for bands in (by_query, rows))
    assert (widths >= narrow - 1e-12).all()
    assert widths.mean() > 1.1 * narrow.mean()
    np.testing.assert_array_equal(by_query.observed, rows.observed)
    assert spiegelhalter_test(y, p, groups=query).p > spiegelhalter_test(y, p).p
    assert np.isnan(spiegelhalter_test(y, p, groups=np.zeros(1200)).p)
    assert np.isnan(expected_calibration_error(y, p, groups=np.zeros(1200), n_resamples=10).low)
