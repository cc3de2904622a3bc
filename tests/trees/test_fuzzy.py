from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import oblivious as slow
from support.refusals import refused
from truerank import FuzzyLeaves, ObliviousBoosting, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.data.samples import load_sample
from truerank.matrices.binning import code_rows, find_borders
from truerank.trees.grower import TreeStructure, Weights, _smooth
from truerank.trees.leaves.fuzzy import FuzzyFitter, StateFactors, answer, knots_first
from truerank.trees.leaves.places import (
    Norms,
    find_states,
    knot_index,
    make_places,
    make_shares,
    smoothing_of,
)
from truerank.trees.rows import Sample, TrainingRows


def shares_by_table(train, x, c, p, ties, limit=1000):
    places = make_places(np.sort(train), np.array([c]), limit)
    table = make_shares(places, Norms(p), ties).right_of(*places.place_of_border(c), False)
    return table[places.states(x)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=40), st.integers(1, 9))
def test_states_are_those_of_a_search_through_all_knots(dtype, train, limit):
    places = make_places(np.sort(train), np.empty(0), limit)
    ends = np.concatenate([places.lower, places.upper]).astype(dtype)
    x = np.concatenate([[np.nan], ends, np.nextafter(ends, dtype(np.inf)), np.nextafter(ends, dtype(-np.inf))])
    index = knot_index([(places.lower, places.upper)])
    slow_states = 2 * (x[:, None] > places.upper).sum(axis=1)
    slow_states += ((places.lower <= x[:, None]) & (x[:, None] <= places.upper)).any(axis=1)
    slow_states[0] = 2 * len(places.upper) + 1
    np.testing.assert_array_equal(find_states(x.astype(dtype), index.of_type(dtype)), slow_states)
    np.testing.assert_array_equal(places.states(x), slow_states)  # few values, without the kernel


@pytest.mark.parametrize("ties", ["near", "average"])
@pytest.mark.parametrize("p", [0.3, 0.9, 0.999, 1e-200])
@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.integers(0, 8))
def test_shares_are_those_of_the_matrix_of_swaps(ties, p, values, which):
    train = np.array(values, dtype=float)
    candidates = np.unique(train)[:-1]  # a border is an observed value with neither side empty
    if len(candidates) == 0:
        return
    c = candidates[which % len(candidates)]
    x = np.arange(-1.0, 11.0, 0.5)  # seen values, values between them, values beyond the range
    expected = [slow.right_share(train, v, c, p, ties) for v in x]
    np.testing.assert_allclose(shares_by_table(train, x, c, p, ties), expected, atol=1e-12)


def test_steep_and_flat_powers_agree():
    train = np.random.default_rng(0).integers(0, 300, 2000).astype(float)
    for p in (0.6, 0.75):  # p^n underflows for the first only
        got = shares_by_table(train, np.arange(300.0), 100.0, p, "near")
        values = np.sort(train)
        b = (values <= 100).sum()
        for x in (97.0, 100.0, 101.0, 104.0):
            place = (values < x).sum() if x > 100 else (values <= x).sum() - 1
            z = (1 + p - p ** (place + 1) - p ** (2000 - place)) / (1 - p)
            far = p ** np.abs(np.arange(2000.0) - place) / z
            assert got[int(x)] == pytest.approx(far[b:].sum(), abs=1e-12)


@pytest.mark.parametrize("p", [0.1, 0.99])
def test_answers_for_a_tile_are_the_shares_by_state(p):
    values = np.sort(np.random.default_rng(3).integers(0, 40, 900)).astype(float)
    tables = [make_places(values[part], np.array([0.5, 9.5]), 30) for part in (slice(0, 500), slice(500, 900))]
    shares = [make_shares(table, Norms(p), "average") for table in tables]
    assert [own.steep for own in shares] == [p == 0.1] * 2
    sizes = np.array([len(table.upper) for table in tables])
    pairs = np.concatenate([np.stack([own.up, own.down], axis=1) for own in shares])[knots_first(sizes)]
    blocks = np.concatenate([np.stack([own.start, own.stop]) for own in shares], axis=1)
    steep = np.array([own.steep for own in shares])
    factors = StateFactors(np.append(0, np.cumsum(sizes)), pairs.ravel(), blocks, steep, shares[0].log_p)
    own, table, lost = shares[1], tables[1], len(shares[1].up)
    borders = [(*table.place_of_border(c), missing) for c, missing in [(25.0, False), (33.0, True), (-1.0, False)]]
    questions = np.array([[state + 1, *own.border_factors(b), b, side] for b, state, side in borders])
    states = np.random.default_rng(4).integers(0, lost + 1, 80).astype(np.uint16)
    states[[9, 40, 79]] = lost
    found = np.full((5, 64), 7.0)
    answer(states, 16, factors, 1, 1, 4, np.vstack([questions[:1], questions]).ravel(), found)
    expected = np.stack([own.right_of(*border)[states[16:]] for border in borders])
    np.testing.assert_array_equal(found[1:4], expected)
    assert (found[[0, 4]] == 7.0).all()


def test_shares_rise_with_the_value():
    rng = np.random.default_rng(1)
    train = np.round(rng.standard_normal(500), 1)
    for p in (0.5, 0.99, 0.9995):
        for c in np.unique(train)[[0, 20, -2]]:
            right = shares_by_table(train, np.linspace(-5, 5, 1001), c, p, "near")
            assert (np.diff(right) >= -1e-15).all()
            assert right.min() >= 0
            assert right.max() <= 1


def test_more_values_than_knots():
    rng = np.random.default_rng(2)
    train = rng.standard_normal(20_000)
    x = rng.standard_normal(500)
    c = np.sort(train)[13_000]
    exact = shares_by_table(train, x, c, 0.9995, "near", limit=30_000)
    for limit, error in ((2000, 0.005), (200, 0.05)):
        assert np.abs(shares_by_table(train, x, c, 0.9995, "near", limit) - exact).max() < error


@pytest.mark.parametrize("ties", ["near", "average"])
def test_leaf_values_and_scores_are_sums_over_all_leaves(ties):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 12, (40, 3)).astype(float)
    g, h, drawn = rng.standard_normal(40), rng.random(40), rng.integers(0, 3, 40)
    borders = [find_borders(np.sort(column), 20) for column in X.T]
    rows = TrainingRows(X, code_rows(X, borders))
    places = [make_places(np.sort(column), own, 100) for column, own in zip(X.T, borders)]
    tree = TreeStructure(
        np.array([2, 0, 2], dtype=np.int32), np.array([3, 5, 7], dtype=np.int32), np.zeros(3, dtype=bool),
        np.zeros(3), np.zeros(8), np.zeros(8),
    )  # fmt: skip
    questions = [(k, borders[k][code]) for k, code in zip(tree.features, tree.codes)]
    shares = slow.leaf_shares(X, X, questions, 0.9, ties)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    with Workers(1) as workers:
        leaves = FuzzyFitter(0.5, None, places, 0.9, ties, workers)
        values = leaves.values(tree, *leaves.sums(tree, rows, Sample(g, h, drawn)), 1.0)
        scores = np.ones(40)
        leaves.add(tree, rows, values, scores)
    expected = -(shares * (drawn * g)[:, None]).sum(axis=0) / ((shares * (drawn * h)[:, None]).sum(axis=0) + 0.5)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(scores, 1 + shares @ expected, atol=1e-12)


def test_smoothed_histogram_is_the_sum_over_places():
    rng = np.random.default_rng(4)
    x = np.sort(rng.integers(0, 9, 60).astype(float))
    borders = find_borders(x, 9)
    places = make_places(x, borders, 100)
    for p in (0.2, 0.95):
        smoothing = smoothing_of([borders], [places], p)
        g, h = rng.integers(-5, 6, 60), rng.integers(1, 4, 60)
        code = (x[:, None] > borders).sum(axis=1)
        hist = np.zeros(256, dtype=np.int64)
        np.add.at(hist, code, (g << 20) + h)
        left = np.array([[g[code <= b].sum(), h[code <= b].sum()] for b in range(len(borders) + 1)], dtype=float)
        left = np.ascontiguousarray(left.T)
        _smooth(hist, len(borders) + 1, Weights(0.0, 0.0, 0.0, 20), smoothing[0], left)
        for b, c in enumerate(borders):
            share = 1 - np.array([slow.right_share(x, v, c, p, "average") for v in x])
            assert left[0, b] == pytest.approx((share * g).sum(), abs=1e-9)
            assert left[1, b] == pytest.approx((share * h).sum(), abs=1e-9)


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(60)), data.take_queries(range(60, 100))


def test_no_fuzziness_equals_plain_trees(judged):
    train, test = judged
    kw = {"n_estimators": 10, "depth": 4, "bootstrap": "row"}
    plain = ObliviousBoosting("constant", **kw).fit(train)
    for setting in (
        {"p_swap": 0.0},
        {"p_swap": 1e-18},
        {"fuzziness": 0.0},
        {"p_swap": 0.0, "search": True},
        {"p_swap": 0.0, "ties": "average"},
    ):
        fuzzy = ObliviousBoosting(FuzzyLeaves(**setting), **kw).fit(train)
        np.testing.assert_allclose(fuzzy.predict(test), plain.predict(test), atol=1e-9)
        np.testing.assert_array_equal(fuzzy.tree_features_, plain.tree_features_)


@pytest.mark.parametrize("setting", [{}, {"ties": "average"}, {"p_swap": 0.9}, {"search": True}])
def test_training_scores_are_those_of_prediction(judged, setting):
    train, test = judged
    train_X, test_X = train.X.copy(), test.X.copy()
    train_X[::9, :3] = np.nan
    test_X[::4, :5] = np.nan
    kw = {"leaves": FuzzyLeaves(**setting), "depth": 4}
    whole = ObliviousBoosting(n_estimators=9, **kw).fit(train_X, train.y, qid=train.qid)
    part = ObliviousBoosting(n_estimators=4, warm_start=True, **kw).fit(train_X, train.y, qid=train.qid)
    part.set_params(n_estimators=9).fit(train_X, train.y, qid=train.qid)
    np.testing.assert_array_equal(part.predict(test_X), whole.predict(test_X))
    np.testing.assert_array_equal(whole.predict(test_X)[:3], whole.predict(test_X[:3]))


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_training_error_never_rises(judged, rate):
    train, _ = judged
    for setting in ({"fuzziness": 0.15}, {"p_swap": 0.9, "ties": "average"}):
        ranker = ObliviousBoosting(FuzzyLeaves(**setting), n_estimators=25, depth=5, learning_rate=rate).fit(train)
        errors = [((train.y - scores) ** 2).mean() for scores in ranker.staged_predict(train)]
        assert (np.diff(errors) <= 1e-12).all()
        assert errors[-1] < errors[0]


def test_any_number_of_threads_fits_the_same_model(judged):
    train, test = judged
    models = [ObliviousBoosting("fuzzy", n_estimators=5, n_jobs=n).fit(train) for n in (1, 2, 4)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.tree_values_, models[0].tree_values_)
        np.testing.assert_array_equal(model.predict(test), models[0].predict(test))


def test_saved_and_loaded_models_score_alike(judged, tmp_path):
    train, test = judged
    ranker = ObliviousBoosting("fuzzy", n_estimators=4, depth=3).fit(train)
    save_model(ranker, tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(test), ranker.predict(test))


def test_width_or_p_not_both(judged):
    with refused(InvalidInputError, argument="fuzziness"):
        ObliviousBoosting(FuzzyLeaves(fuzziness=0.1, p_swap=0.9)).fit(judged[0])
    ranker = ObliviousBoosting(FuzzyLeaves(fuzziness=0.1), n_estimators=1).fit(judged[0])
    assert ranker.p_swap_ == pytest.approx(1 - 10 / judged[0].n_rows)


def test_equation_4_is_exact_at_the_ends_alone():
    """Marginals of P(permutation) ∝ p^inversions, by all permutations and by insertion, against ∝ p^|i - j|."""
    n, p = 6, 0.7
    weight = np.zeros((n, n))
    for order in permutations(range(n)):
        inversions = sum(order[a] > order[b] for a in range(n) for b in range(a + 1, n))
        for place, value in enumerate(order):
            weight[value, place] += p**inversions
    exact = weight / weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(slow.place_marginals(n, p), exact, rtol=1e-12)
    formula = np.array(slow.place_formula(n, p))
    np.testing.assert_allclose(formula[[0, -1]], exact[[0, -1]], rtol=1e-12)
    assert np.abs(np.cumsum(formula, axis=1) - np.cumsum(exact, axis=1)).max() > 0.03
