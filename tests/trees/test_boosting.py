"""What the boosting loop reads off derivatives: their sizes, the change of the objective, and whether it diverges."""

import math

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting
from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.matrices.exact_sums import exact_total
from truerank.trees.boosting import Watchman, change_parts
from truerank.trees.histogram import GradientSizes

rng = np.random.default_rng(0)
G, H = rng.standard_normal(50) * 10.0 ** rng.integers(-20, 20, 50), rng.random(50)
G.flags.writeable = False  # as a user's objective may return them


@pytest.mark.parametrize("hessians", [H, np.round(3 * H), np.broadcast_to(1.0, 50), np.broadcast_to(0.5, 50)])
def test_sizes_are_sums_without_rounding(hessians):
    sizes = GradientSizes.of(G, hessians, Workers(1))
    assert exact_total(sizes.gradients) == math.fsum(np.abs(G))
    assert exact_total(sizes.hessians) == math.fsum(hessians)
    assert sizes.whole == all(h == round(h) for h in hessians)


@pytest.mark.parametrize("start", [0.25, np.linspace(-1, 1, 50)])
@pytest.mark.parametrize("hessians", [H, np.broadcast_to(1.0, 50)])
def test_change_is_that_of_the_parabola_without_rounding(start, hessians):
    scores = rng.standard_normal(50)
    u = scores - start
    found = exact_total(change_parts(start, G, hessians, scores, Workers(1)))
    assert found == math.fsum(u * (G - 0.5 * hessians * u))


def test_a_quadratic_objective_diverges_a_quarter_of_its_first_value_above_its_least():
    watchman = Watchman(quadratic=True)
    watchman.begin(GradientSizes.of(np.full(4, 2.0), np.ones(4), Workers(1)))  # (Σ|g|)² / 2Σh = 8
    changes = {-1.0: False, 0.9: False, 1.1: True, -5.0: False, -3.1: False, -2.9: True}
    assert {change: watchman.diverges(change) for change in changes} == changes
    assert watchman.diverges(math.nan)


def test_sums_whose_square_is_beyond_all_floats_are_an_error_in_words():
    X, y = np.arange(6.0)[:, None], np.arange(6.0) * 1e90
    with refused(InvalidInputError, code="diverged"):
        ObliviousBoosting("constant", n_estimators=2).fit(X, y, sample_weight=np.full(6, 1e90))
