import numpy as np
import pytest

from support.refusals import refused
from truerank import ListNet, ObliviousBoosting
from truerank.core.errors import InvalidInputError
from truerank.data.samples import load_sample
from truerank.losses.boosting import (
    PairwiseLogistic,
    SquaredError,
    YetiRank,
    make_objective,
)
from truerank.losses.lambda_rank import LambdaRank
from truerank.losses.listwise import LISTWISE, CrossEntropyNDCG, Softmax
from truerank.losses.swap_costs import ASK, SwapCosts
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
        ("lambdarank", 1.0, "nDCG(gains={2: 6, 3: 7})@4"),
        ("lambdarank", 1.0, "AP"),
        ("lambdarank", 1.0, "AP(rel=2)"),
        ("lambdarank", 1.0, "AP@4"),
        ("lambdarank", 1.0, "RR"),
        ("lambdarank", 1.0, "RR(rel=2)@3"),
        ("lambdarank", 1.0, "ERR(max_grade=4)@5"),
        ("lambdarank", 1.0, "RBP(p=0.7)"),
        ("lambdarank", 2.0, "P@4"),
        ("lambdarank", 1.0, "ROC"),
    ],
)
def test_gradients_and_hessians_are_numeric_derivatives(query, name, sigma, measure):
    y, s = query
    for convention in ("ranklib", "letor4", "sklearn") if measure and measure.startswith("nDCG") else ("ranklib",):
        pinned = None if measure is None else parse_measure(measure, convention=convention)(grades="any")
        params = {"sigma": sigma} if name in ("lambdarank", "pairwise-logistic") else None
        g, h = make_objective(name, params, pinned, None)(y, s, OFFSETS)
        loss = losses(name, y, sigma, pinned, s)
        for i in range(len(y)):
            step = np.zeros(len(y))
            step[i] = 1e-4
            up, at, down = loss(s + step), loss(s), loss(s - step)
            assert g[i] == pytest.approx((up - down) / 2e-4, abs=1e-6)
            assert h[i] == pytest.approx((up - 2 * at + down) / 1e-8, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    ["nDCG", "nDCG@3", "AP", "AP(rel=2)", "AP@4", "AP(rel=3,denominator='reachable')@2", "RR", "RR(rel=3)", "RR@2",
     "Success@3", "P@4", "R@5", "Rprec", "RBP(p=0.7)", "RBP(rel=2)@3", "ERR(max_grade=4)", "ERR(max_grade=4)@2",
     "AP(ties='pessimistic')", "nDCG(ties='optimistic')@4", "ROC", "Bpref"],
)  # fmt: skip
def test_swap_costs_are_the_brute_force(query, text):
    y, s = query
    for convention in ("ranklib", "trec"):
        measure = parse_measure(text, convention=convention)
        costs = SwapCosts(measure, y, OFFSETS)
        for q, (a, b) in enumerate(zip(OFFSETS, OFFSETS[1:])):
            if b > a:
                found, expected = costs.of_query(q, s[a:b]), measure.swap_deltas(y[a:b], s[a:b])
                np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("text", ["AP", "AP@5", "RR", "Success@3", "ERR(max_grade=3)@6", "Rprec", "nDCG@2"])
def test_swap_costs_of_random_queries(text):
    measure = parse_measure(text, convention="ranklib")
    closed = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 14))
        y, s = rng.integers(0, int(rng.integers(1, 4)) + 1, n).astype(float), rng.integers(0, 6, n).astype(float)
        costs = SwapCosts(measure, y, np.array([0, n]))
        closed += costs.kind != ASK
        np.testing.assert_allclose(costs.of_query(0, s), measure.swap_deltas(y, s), atol=1e-12)
    assert closed == 15


def test_a_users_measure_is_trained():
    """Only the second place counts: the gradient knows pairs that change what stands there, and no others."""

    def second(grades):
        return grades[1] if len(grades) > 1 else 0.0

    measure = parse_measure(second, convention="ranklib")
    y, s = np.array([0.0, 0.0, 2.0, 1.0]), np.array([4.0, 3.0, 2.0, 1.0])
    g, h = LambdaRank(measure)(y, s, np.array([0, 4]))
    # Swaps with place 2: of the grades 2 and 1 with the 0 there. Place 1 holds a 0 too, places 3 and 4 do not count.
    wins = 2 / (1 + np.exp(2.0 - 3.0)), 1 / (1 + np.exp(1.0 - 3.0))
    np.testing.assert_allclose(g, [0, sum(wins), -wins[0], -wins[1]], atol=1e-12)
    assert (h >= 0).all()
    data = load_sample().take_queries(range(8))
    ranker = ObliviousBoosting("constant", objective="lambdarank", measure=second, n_estimators=3, depth=2).fit(data)
    assert np.ptp(ranker.predict(data)) > 0


def test_err_of_all_queries_has_one_largest_grade():
    measure = parse_measure("ERR", convention="ranklib")
    y, s, offsets = np.array([0.0, 1.0, 3.0, 0.0]), np.array([2.0, 1.0, 1.0, 2.0]), np.array([0, 2, 4])
    expected = measure(max_grade=3).swap_deltas(y[:2], s[:2])
    np.testing.assert_allclose(SwapCosts(measure, y, offsets).of_query(0, s[:2]), expected, atol=1e-15)
    with refused(InvalidInputError, code="max-grade"):
        LambdaRank(measure(max_grade=2))(y, s, offsets)
    high = np.where(y > 0, 60.0, 0.0)  # 1 - R rounds to 0: asked, not divided
    assert np.isfinite(LambdaRank(measure)(high, s, offsets)[0]).all()


def test_far_scores_stay_finite(query):
    y, s = query
    for objective in (
        LambdaRank(parse_measure("nDCG", convention="ranklib")),
        PairwiseLogistic(),
        Softmax(),
        CrossEntropyNDCG(),
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


@pytest.mark.parametrize("objective", ["lambdarank", "softmax", "xe-ndcg", "pairwise-logistic", "yetirank"])
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
    with refused(InvalidInputError, argument="objective_params"):
        make_objective("mse", {"sigma": 1}, None, None)
    with refused(InvalidInputError, argument="sigma"):
        make_objective("pairwise-logistic", {"sigma": 0}, None, None)
    with refused(InvalidInputError, argument="objective_params"):
        make_objective(SquaredError(), {"sigma": 1}, None, None)


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


def test_xe_ndcg_is_the_cross_entropy_with_drawn_targets(query):
    y, s = query
    objective = CrossEntropyNDCG()
    objective.begin(np.random.default_rng(5))
    g, h = objective(y, s, OFFSETS)
    gains = 2.0**y - np.random.default_rng(5).random(26)

    def loss(scores):
        total = 0.0
        for a, b in zip(OFFSETS, OFFSETS[1:]):
            if b > a and np.ptp(y[a:b]) > 0:
                share = np.exp(scores[a:b]) / np.exp(scores[a:b]).sum()
                total -= (gains[a:b] / gains[a:b].sum() * np.log(share)).sum()
        return total

    for i in range(26):
        step = np.zeros(26)
        step[i] = 1e-4
        assert g[i] == pytest.approx((loss(s + step) - loss(s - step)) / 2e-4, abs=1e-6)
        assert h[i] == pytest.approx((loss(s + step) - 2 * loss(s) + loss(s - step)) / 1e-8, abs=1e-5)
    objective.begin(np.random.default_rng(6))
    assert not np.array_equal(objective(y, s, OFFSETS)[0], g)
    with refused(InvalidInputError, code="large-grade"):
        objective(y + 2000, s, OFFSETS)


@pytest.mark.parametrize("objective", ["softmax", "xe-ndcg"])
def test_trees_and_linear_rankers_share_listwise_objectives(objective):
    """What a linear ranker minimises has the derivatives that trees read, carried to the weights."""
    data = load_sample().take_queries(range(20))
    ranker = ListNet(0.5, objective=objective, scale="never").fit(data)
    gradients, _ = LISTWISE[objective]()(data.y, data.X @ ranker.coef_, data.offsets)
    for a, b in zip(data.offsets, data.offsets[1:]):
        if np.ptp(data.y[a:b]) == 0:  # a linear ranker leaves them out
            gradients[a:b] = 0.0
    np.testing.assert_allclose(data.X.T @ gradients + 0.5 * ranker.coef_, 0.0, atol=1e-5)


def test_squared_error_within_queries(query):
    y, s = query
    gradients, hessians = make_objective("query-mse", None, None, None)(y, s, OFFSETS)

    def loss(scores):
        errors = [y[a:b] - scores[a:b] for a, b in zip(OFFSETS, OFFSETS[1:])]
        return sum(0.5 * np.sum((one - one.mean()) ** 2) for one in errors if len(one))

    for i in range(len(y)):
        step = np.zeros(len(y))
        step[i] = 1e-4
        assert gradients[i] == pytest.approx((loss(s + step) - loss(s - step)) / 2e-4, abs=1e-6)
    # The hessians bound: the loss lies below its parabola.
    step = np.random.default_rng(2).normal(size=len(y))
    assert loss(s + step) <= loss(s) + gradients @ step + 0.5 * hessians @ step**2
    shifted = s + np.repeat(np.arange(len(OFFSETS) - 1.0), np.diff(OFFSETS))
    np.testing.assert_allclose(
        make_objective("query-mse", None, None, None)(y, shifted, OFFSETS)[0], gradients, atol=1e-12
    )
