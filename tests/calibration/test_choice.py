"""Choosing a calibrator."""

from __future__ import annotations

import numpy as np
import pytest

from support.refusals import refused
from truerank.calibration.pool import choose_calibrator
from truerank.core.errors import InvalidInputError, TruerankWarning


@pytest.fixture(scope="module")
def bent():
    """Log-odds with a bend, which no line fits."""
    rng = np.random.default_rng(0)
    s = rng.uniform(-6, 6, 3000)
    return s, rng.uniform(size=3000) < 1 / (1 + np.exp(-np.where(s < 0, 0.2 * s, 3 * s)))


def test_the_form_of_the_data_is_found(bent):
    s, y = bent
    choice = choose_calibrator(s, y, methods=["platt", "spline", "gaussian"])
    assert choice.method == "spline"
    by_name = {row.method: row for row in choice.comparisons}
    assert by_name["spline"].difference == 0.0
    assert by_name["platt"].p < 0.01
    assert by_name["platt"].log_loss > by_name["spline"].log_loss
    again = choose_calibrator(s, y, methods=["platt", "spline", "gaussian"])
    assert again.comparisons == choice.comparisons


def test_groups_stay_together(bent):
    s, y = bent
    groups = np.arange(3000) // 10
    choice = choose_calibrator(s, y, methods=["platt", "beta"], groups=groups)
    shuffled = np.random.default_rng(1).permutation(3000)
    other = choose_calibrator(s[shuffled], y[shuffled], methods=["platt", "beta"], groups=groups[shuffled])
    assert choice.method == other.method
    with refused(InvalidInputError, argument="groups"):
        choose_calibrator(s, y, groups=np.zeros(3000))


def test_few_positives_warn():
    rng = np.random.default_rng(0)
    s = rng.normal(size=100)
    y = np.zeros(100, dtype=int)
    y[:5] = 1
    with pytest.warns(TruerankWarning, match="only 5 positive"):
        assert np.isfinite(choose_calibrator(s, y).calibrator.log_odds(s)).all()
    y[1:] = 0
    with pytest.warns(TruerankWarning, match="only 1 positive"):
        assert choose_calibrator(s, y).method == "platt"
    with refused(InvalidInputError, argument="methods"):
        choose_calibrator(s, y, methods=[])


@pytest.mark.parametrize("methods", [["pool", "platt", "identity"], ["platt", "identity"], ["pool"]])
def test_the_chosen_calibrator_predicts_the_labels_of_the_data(methods):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.5, "no", "yes")
    choice = choose_calibrator(rng.normal(size=3000) + 2 * (y == "yes"), y, methods=methods)
    assert choice.calibrator.predict([-9.0, 9.0]).tolist() == ["no", "yes"]
