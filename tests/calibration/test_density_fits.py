"""Maximum likelihood of two-sided densities: arithmetic, brute force, and a numerical optimiser."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.two_sided_densities import constrained, every_theta, log_likelihood, optimise
from truerank.calibration.density_fits import (
    HALF_GAUSSIAN,
    _scales,
    fit_gaussian,
    fit_laplace,
    fit_two_sided,
)

TINY = 1e-12


def with_tiny_floor(fit):
    """A fit whose smallest scale is negligible."""
    return lambda x, weight: fit(x, weight, TINY * (float(np.ptp(x)) or 1.0))


EXACT = {
    name: partial(fit_two_sided, family=family)
    for name, family in zip(("laplace", "gaussian", "hybrid"), ("asymmetric-laplace", "asymmetric-gaussian", "hybrid"))
}
FITS = {name: with_tiny_floor(fit) for name, fit in EXACT.items()}


def samples(kind, n=60, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "random": lambda: rng.normal(size=n),
        "skewed": lambda: rng.exponential(size=n) ** 1.5,
        "skewed left": lambda: -rng.exponential(size=n),
        "tied": lambda: np.round(rng.normal(size=n) * 2) / 2,
        "small": lambda: rng.normal(size=5),
        "three": lambda: rng.normal(size=3),
        "two": lambda: np.array([1.0, 4.0]),
        "two tied": lambda: np.array([1.0, 1.0, 4.0]),
        "huge offset": lambda: 1e12 + rng.normal(size=n),
        "tiny": lambda: 1e-9 * rng.normal(size=n),
        "two clusters": lambda: np.r_[rng.normal(size=n // 2), 10 + rng.normal(size=n - n // 2)],
        "outlier": lambda: np.r_[rng.normal(size=n), 1e4],
    }[kind]()
    return np.sort(x)


KINDS = ["random", "skewed", "skewed left", "tied", "small", "three", "two", "two tied", "huge offset", "tiny",
         "two clusters", "outlier"]  # fmt: skip


def fitted_log_likelihood(family, x, weight, fit):
    theta, left, right = fit
    tiny = 1e-12 * np.ptp(x)
    return log_likelihood(family, x, weight, theta, max(left, tiny), max(right, tiny))


@pytest.mark.parametrize("family", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_optimiser_finds_more(family, kind):
    x = samples(kind)
    pivot = x[len(x) // 2]
    z = x - pivot
    ones = np.ones(len(x))
    fit = FITS[family](z.copy(), None)
    value = fitted_log_likelihood(family, z, ones, fit)
    best, _, left, right = optimise(family, z, starts=5)
    assert value >= best - 1e-9 * abs(best)
    # Two scores are fitted as well from either end.
    if value <= best + 1e-9 * abs(best) and kind not in ("two", "three"):
        # The optimiser found the same maximum: so are the scales the same, where they are not at a floor.
        for ours, theirs in zip(fit[1:], (left, right)):
            if theirs > 1e-8 * np.ptp(x):
                assert ours == pytest.approx(theirs, rel=2e-4)


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_candidate_of_the_paper_is_better(family, kind):
    x = samples(kind, seed=1)
    x = x - x[len(x) // 2]
    fit = FITS[family](x.copy(), None)
    value, _, left, right = every_theta(family, x)
    ours = fitted_log_likelihood(family, x, np.ones(len(x)), fit)
    assert ours >= value - 1e-9 * abs(value)
    if family == "laplace":
        assert fit[1:] == pytest.approx((left, right), rel=1e-9, abs=2 * TINY * np.ptp(x))


def test_asymmetric_laplace_by_hand():
    # θ = 1 (A_l = 1, A_r = 3): √1 + √3 = 2.73; θ = 0: A_r = 5, √5 = 2.24; θ = 4: A_l = 7, 2.65. So θ = 0.
    assert FITS["laplace"](np.array([0.0, 1.0, 4.0]), None) == (0.0, 4e-12, pytest.approx(5 / 3))
    # θ = 1 with A_l = A_r = 2 of four: 1/β = 1/γ = (2 + 2)/6.
    x = np.array([-1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    assert FITS["laplace"](x, None) == (1.0, pytest.approx(4 / 6), pytest.approx(4 / 6))


def test_asymmetric_gaussian_by_hand():
    # The mode in the middle: Q_l = Q_r = 4, A = 2 · 4^{1/3}, σ² = 4^{2/3} · A/8 = 1; at θ = -2, 40^{1/3} is more.
    assert FITS["gaussian"](np.array([-2.0, 0, 0, 0, 0, 0, 0, 2.0]), None) == pytest.approx((0.0, 1.0, 1.0))


def test_gaussian_and_laplace_are_the_usual_estimates():
    x = np.array([1.0, 2.0, 4.0, 9.0])
    assert fit_gaussian(x, None) == (pytest.approx(4.0), pytest.approx(math.sqrt((9 + 4 + 0 + 25) / 4)))
    assert fit_laplace(x, None) == (3.0, pytest.approx((2 + 1 + 1 + 6) / 4))
    assert fit_laplace(x, np.array([1.0, 1.0, 3.0, 1.0]))[0] == 4.0
    assert fit_laplace(x, np.array([1.0, 2.0, 2.0, 1.0]))[0] == 3.0


@pytest.mark.parametrize(("m1", "m2"), [(1.0, 1.0), (1e-9, 2.0), (3.0, 1e-9), (5.0, 0.3)])
def test_hybrid_scales_are_stationary(m1, m2):
    u, sigma = _scales(2, 10.0, 10 * m1, 10 * m2**2, 1e-15)
    # With D₁ = n m1 and D₂ = n m2²: n/(u + cσ) = D₁/u² = D₂/(cσ³).
    width = u + HALF_GAUSSIAN * sigma
    assert m1 / u**2 == pytest.approx(1 / width, rel=1e-12)
    assert m2**2 / (HALF_GAUSSIAN * sigma**3) == pytest.approx(1 / width, rel=1e-12)


@pytest.mark.parametrize("family", EXACT)
@pytest.mark.parametrize(
    ("kind", "share"),
    [("random", 0.3), ("skewed", 0.05), ("skewed left", 0.05), ("tied", 0.01), ("small", 0.3), ("two clusters", 0.01)],
)
def test_the_smallest_scale_is_part_of_the_likelihood(family, kind, share):
    """No θ with scales of at least the smallest one has a higher likelihood; the spike of ties is not preferred."""
    x = samples(kind, n=12, seed=4)
    x = np.sort(np.r_[x, [x[2]] * 5])
    smallest = share * float(np.ptp(x))
    theta, left, right = EXACT[family](x.copy(), None, smallest)
    assert min(left, right) >= smallest
    value = log_likelihood(family, x, np.ones(len(x)), theta, left, right)
    best = constrained(family, x, smallest)
    assert value >= best - 1e-8 * abs(best)


def test_the_smallest_scale_by_hand():
    # θ = 0 with A_l = 0 and A_r = 4 of two: l = 1, and n r² - 4 r - 4 = 0 gives r = 1 + √3. θ = 4 is its mirror image.
    assert fit_two_sided(np.array([0.0, 4.0]), None, 1.0, "asymmetric-laplace") == (
        0.0,
        1.0,
        pytest.approx(1 + math.sqrt(3)),
    )


@pytest.mark.parametrize("family", FITS)
def test_a_weight_of_two_is_two_copies(family):
    rng = np.random.default_rng(3)
    x = np.sort(rng.normal(size=40))
    weight = rng.integers(1, 4, 40)
    expected = FITS[family](np.repeat(x, weight), None)
    assert FITS[family](x, weight.astype(float)) == pytest.approx(expected, rel=1e-7)


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1), st.floats(-1e6, 1e6))
def test_shift_and_reflection(values, shift):
    x = np.sort(np.array(values, dtype=float))
    for family in ("laplace", "gaussian"):
        value = fitted_log_likelihood(family, x, np.ones(len(x)), FITS[family](x.copy(), None))
        mirrored = -x[::-1]
        theta, left, right = FITS[family](mirrored.copy(), None)
        assert fitted_log_likelihood(family, x, np.ones(len(x)), (-theta, right, left)) == pytest.approx(
            value, rel=1e-8, abs=1e-6
        )
        moved = x + shift
        theta, left, right = FITS[family](moved.copy(), None)
        assert fitted_log_likelihood(family, moved, np.ones(len(x)), (theta, left, right)) == pytest.approx(
            value, rel=1e-6, abs=1e-4
        )


@pytest.mark.parametrize("family", FITS)
def test_planted_parameters_come_back(family):
    rng = np.random.default_rng(5)
    n, theta, left, right = 40_000, 3.0, 0.5, 2.0
    c = {"laplace": (1.0, 1.0), "gaussian": (HALF_GAUSSIAN, HALF_GAUSSIAN), "hybrid": (1.0, HALF_GAUSSIAN)}[family]
    on_left = rng.uniform(size=n) < c[0] * left / (c[0] * left + c[1] * right)
    tails = {
        "laplace": (rng.exponential(size=n), rng.exponential(size=n)),
        "gaussian": (np.abs(rng.normal(size=n)), np.abs(rng.normal(size=n))),
        "hybrid": (rng.exponential(size=n), np.abs(rng.normal(size=n))),
    }[family]
    x = np.sort(np.where(on_left, theta - left * tails[0], theta + right * tails[1]))
    assert FITS[family](x, None) == pytest.approx((theta, left, right), rel=0.06)


@pytest.mark.parametrize("family", FITS)
@pytest.mark.parametrize("kind", ["random", "tied", "two clusters", "tiny", "huge offset"])
def test_climbing_on_from_the_fit_gains_nothing(family, kind):
    # A search in all three parameters that starts at the fit: neither a better likelihood nor other scales.
    x = samples(kind, n=200, seed=2)
    z = (x - x[100]) / np.ptp(x)
    theta, left, right = FITS[family](z.copy(), None)
    if min(left, right) == 0.0:
        pytest.skip("a side without spread: the maximum is at the border")
    value = log_likelihood(family, z, np.ones(200), theta, left, right)
    steps = np.array([1.0, -1.0])
    for size in 10.0 ** np.arange(-1, -9, -1):
        for step in size * steps:
            others = (
                (theta + step * (left + right), left, right),
                (theta, left * (1 + step), right),
                (theta, left, right * (1 + step)),
                (theta, left * (1 + step), right * (1 + step)),
                (theta, left * (1 + step), right * (1 - step)),
            )
            for other in others:
                assert log_likelihood(family, z, np.ones(200), *other) <= value + 1e-12 * abs(value)


@pytest.mark.parametrize("name", ["gaussian", "asymmetric-gaussian", "laplace", "asymmetric-laplace", "hybrid"])
def test_a_huge_offset_costs_nothing(name):
    from truerank.calibration import calibrator_class

    rng = np.random.default_rng(6)
    noise = np.round(rng.normal(size=400) * 2**12) / 2**12  # exact at either place
    y = rng.uniform(size=400) < 0.5
    near = calibrator_class(name)().fit(noise + 3 * y, y)
    far = calibrator_class(name)().fit(noise + 3 * y + 1e12, y)
    grid = np.linspace(-4, 8, 49)
    np.testing.assert_allclose(far.log_odds(grid + 1e12), near.log_odds(grid), atol=1e-6)
    for cls in (False, True):
        ours = np.log(far.density(noise[y == cls] + 3 * cls + 1e12, cls)).sum()
        assert ours == pytest.approx(np.log(near.density(noise[y == cls] + 3 * cls, cls)).sum(), rel=1e-10)


@pytest.mark.parametrize("family", ["gaussian", "hybrid"])
@pytest.mark.parametrize("kind", ["random", "skewed left", "two clusters"])
def test_scores_that_move_by_rounding_move_the_mode_as_far(family, kind):
    """Found by comparing likelihoods, it moved by the root of the machine's precision."""
    for seed in range(5):
        x = samples(kind, seed=seed)
        moved = np.sort(x * (1 + 2e-16 * np.random.default_rng(seed).standard_normal(len(x))))
        np.testing.assert_allclose(FITS[family](moved, None), FITS[family](x, None), rtol=1e-12, atol=1e-12)
