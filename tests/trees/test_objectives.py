import numpy as np
import pytest

from truerank import ObliviousBoosting
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample
from truerank.losses.boosting import (
    LambdaRank,
    PairwiseLogistic,
    Softmax,
    SquaredError,
    YetiRank,
    make_objective,
)
from truerank.losses.boosting_kernels import best_first
from truerank.measures import parse_measure

OFFSETS = np.array([0, 5, 6, 18, 18, 26])


@pytest.fixture
def query():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 26).astype(float)
    y[18:] = 2  # a query of one grade
    return y, np.round(rng.standard_normal(26), 1)  # ties among the scores


def pair_loss(y, s, weights, sigma):
    return sum(
        weights[i, j] * np.log1p(np.exp(-sigma * (s[i] - s[j])))
        for i in range(len(y))
        for j in range(len(y))
        if y[i] > y[j]
    )


def losses(name, y, sigma, measure, at):
    """The loss as a function of scores, swap costs held at those of the scores `at`."""
    if name == "mse":
        return lambda s: 0.5 * ((y - s) ** 2).sum()
    if name == "softmax":
        return lambda s: sum(
            -(np.exp(y[a:b]) / np.exp(y[a:b]).sum() * (s[a:b] - np.log(np.exp(s[a:b]).sum()))).sum()
            for a, b in zip(OFFSETS, OFFSETS[1:])
            if b > a
        )
    weights = []
    for a, b in zip(OFFSETS, OFFSETS[1:]):
        weights.append(
            np.ones((b - a, b - a)) if name != "lambdarank" else np.abs(measure.swap_deltas(y[a:b], at[a:b]))
        )
    return lambda s: sum(pair_loss(y[a:b], s[a:b], w, sigma) for a, b, w in zip(OFFSETS, OFFSETS[1:], weights))


@pytest.mark.parametrize(
    ("name", "sigma", "measure"),
    [
        ("mse", 1.0, None),
        ("softmax", 1.0, None),
        ("pairwise-logistic", 1.0, None),
        ("pairwise-logistic", 0.5, None),
        ("lambdarank", 1.0, "nDCG"),
        ("lambdarank", 2.0, "nDCG@3"),
        ("lambdarank", 1.0, "AP"),
        ("lambdarank", 1.0, "AP(rel=2)"),
        ("lambdarank", 1.0, "AP@4"),
        ("lambdarank", 1.0, "RR"),
    ],
)
def test_gradients_and_hessians_are_numeric_derivatives(query, name, sigma, measure):
    y, s = query
    for convention in ("ranklib", "letor4", "sklearn") if measure and measure.startswith("nDCG") else ("ranklib",):
        pinned = None if measure is None else parse_measure(measure, convention=convention)
        params = {"sigma": sigma} if name in ("lambdarank", "pairwise-logistic") else None
        g, h = make_objective(name, params, pinned, None)(y, s, OFFSETS)
        loss = losses(name, y, sigma, pinned, s)
        for i in range(len(y)):
            step = np.zeros(len(y))
            step[i] = 1e-4
            up, at, down = loss(s + step), loss(s), loss(s - step)
            assert g[i] == pytest.approx((up - down) / 2e-4, abs=1e-6)
            assert h[i] == pytest.approx((up - 2 * at + down) / 1e-8, abs=1e-5)


def test_closed_form_of_average_precision_is_the_brute_force(query):
    y, s = query
    for text in ("AP", "AP(rel=2)"):
        measure = parse_measure(text, convention="ranklib")
        objective = LambdaRank(measure)
        for a, b in zip(OFFSETS, OFFSETS[1:]):
            if b > a:
                np.testing.assert_allclose(
                    objective.deltas(y[a:b], s[a:b]), measure.swap_deltas(y[a:b], s[a:b]), atol=1e-12
                )


def test_far_scores_stay_finite(query):
    y, s = query
    for objective in (
        LambdaRank(parse_measure("nDCG", convention="ranklib")),
        PairwiseLogistic(),
        Softmax(),
        YetiRank(),
    ):
        g, h = objective(y, 1e4 * s, OFFSETS)
        assert np.isfinite(g).all()
        assert np.isfinite(h).all()
        assert (h >= 0).all()
        assert abs(g.sum()) < 1e-9


def test_yetirank_is_the_mean_over_its_rankings(query):
    y, s = query
    objective = YetiRank(permutations=7, decay=0.8)
    objective.begin(np.random.default_rng(3))
    g, h = objective(y, s, OFFSETS)
    noise = np.random.default_rng(3).logistic(size=(7, 26))
    expected, curvature = np.zeros(26), np.zeros(26)
    for a, b in zip(OFFSETS, OFFSETS[1:]):
        for r in range(7):
            order = a + np.argsort(-(s + noise[r])[a:b], kind="stable")
            for place, (i, j) in enumerate(zip(order, order[1:])):
                i, j = (i, j) if y[i] >= y[j] else (j, i)
                weight, rho = 0.8**place * (y[i] - y[j]) / 7, 1 / (1 + np.exp(s[i] - s[j]))
                expected[i] -= weight * rho
                expected[j] += weight * rho
                curvature[[i, j]] += weight * rho * (1 - rho)
    np.testing.assert_allclose(g, expected, atol=1e-12)
    np.testing.assert_allclose(h, curvature, atol=1e-12)
    again = YetiRank(permutations=7, decay=0.8)
    again.n_jobs = 2
    again.begin(np.random.default_rng(3))
    np.testing.assert_array_equal(again(y, s, OFFSETS)[0], g)


@pytest.mark.parametrize("objective", ["lambdarank", "softmax", "pairwise-logistic", "yetirank"])
def test_training_ranks_the_training_queries_better(objective):
    data = load_sample().take_queries(range(60))
    first, last = (
        ObliviousBoosting("constant", objective=objective, n_estimators=n, depth=4, random_state=1).fit(data)
        for n in (1, 40)
    )
    assert last.score(data) > first.score(data) + 0.05
    threads = ObliviousBoosting(
        "constant", objective=objective, n_estimators=40, depth=4, random_state=1, n_jobs=2
    ).fit(data)
    np.testing.assert_array_equal(threads.tree_values_, last.tree_values_)
    part = ObliviousBoosting(
        "constant", objective=objective, n_estimators=15, depth=4, random_state=1, warm_start=True
    ).fit(data)
    np.testing.assert_array_equal(part.set_params(n_estimators=40).fit(data).tree_values_, last.tree_values_)


def test_a_users_function_is_an_objective():
    data = load_sample().take_queries(range(20))
    mine = ObliviousBoosting(
        "constant", objective=lambda y, s, offsets: (s - y, np.ones_like(s)), n_estimators=5, alpha=0
    ).fit(data)
    assert mine.start_ == 0
    named = ObliviousBoosting("constant", objective=SquaredError(), n_estimators=5, alpha=0).fit(data)
    plain = ObliviousBoosting("constant", n_estimators=5).fit(data)
    np.testing.assert_array_equal(named.predict(data), plain.predict(data))


def test_parameters_of_objectives_are_checked():
    with pytest.raises(InvalidInputError, match="does not take"):
        make_objective("mse", {"sigma": 1}, None, None)
    with pytest.raises(InvalidInputError, match="sigma must be"):
        make_objective("pairwise-logistic", {"sigma": 0}, None, None)
    with pytest.raises(InvalidInputError, match="by name"):
        make_objective(SquaredError(), {"sigma": 1}, None, None)


@pytest.mark.parametrize("n", [0, 1, 2, 47, 48, 49, 130])
def test_short_and_long_queries_are_sorted_alike(n):
    rng = np.random.default_rng(n)
    for keys in (rng.standard_normal(n), rng.integers(-2, 3, n).astype(float), np.zeros(n), -np.arange(float(n))):
        order = np.full(n + 3, -1)
        best_first(keys, order)
        np.testing.assert_array_equal(order[:n], np.argsort(-keys, kind="stable"))
        assert (order[n:] == -1).all()


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_any_layout_of_a_users_arrays(leaves):
    data = load_sample().take_queries(range(20))

    def strided(y, s, offsets):
        both = np.stack([s - y, np.ones_like(s)], axis=1)
        return both[:, 0], both[:, 1]

    kw = {"n_estimators": 3, "depth": 2, "alpha": 0}
    mine = ObliviousBoosting(leaves, objective=strided, **kw).fit(data)
    again = ObliviousBoosting(leaves, objective=lambda y, s, o: (s - y, [1.0] * len(s)), **kw).fit(data)
    np.testing.assert_array_equal(again.predict(data), mine.predict(data))
    assert np.ptp(mine.predict(data)) > 0
