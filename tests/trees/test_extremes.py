"""Data at the edges: nothing to learn, huge and tiny numbers, many values, whatever hypothesis thinks of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from support.packed import packed_gradients
from support.refusals import refused
from truerank import FuzzyLeaves, ObliviousBoosting, PolynomialLeaves, RankingData
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.threads import Workers
from truerank.matrices.binning import MISSING, code_rows, find_borders, scan_columns
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.places import MOST_PLACES, FlatPlaces, Norms, PlaceTable, make_places, make_shares
from truerank.trees.training_columns import column_scaling

# Many of these data leave nothing to learn, which fits say.
pytestmark = pytest.mark.filterwarnings("ignore:ObliviousBoosting learned nothing")

LEAVES = ["constant", "fuzzy", "polynomial"]
OBJECTIVES = ["mse", "lambdarank", "softmax", "pairwise-logistic", "yetirank"]


def fitted(leaves, X, y, qid=None, **settings):
    return ObliviousBoosting(leaves, **{"n_estimators": 3, "depth": 2, **settings}).fit(X, y, qid=qid)


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nothing_to_learn(leaves, objective):
    X = np.random.default_rng(0).standard_normal((12, 2))
    y, qid = np.arange(12.0) % 3, np.repeat([0, 1, 2], 4)
    kw = {"objective": objective}
    start = 1.0 if objective == "mse" else 0.0  # the mean grade
    assert (fitted(leaves, X, np.ones(12), qid, **kw).predict(X) == start).all()  # equal grades
    assert np.ptp(fitted(leaves, np.ones((12, 2)), y, qid, **kw).predict(X)) == 0  # no question to ask
    assert np.ptp(fitted(leaves, np.full((12, 2), np.nan), y, qid, **kw).predict(X)) == 0
    assert np.isfinite(fitted(leaves, X[:1], y[:1], **kw).predict(X)).all()  # one row
    assert np.isfinite(fitted(leaves, X, y, np.arange(12), **kw).predict(X)).all()  # queries of one row


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e140])
def test_scores_do_not_depend_on_the_scale_of_features(leaves, scale):
    rng = np.random.default_rng(1)
    X = np.exp2(rng.integers(-3, 4, (40, 3)))  # powers of two: scaled values keep their ratios
    y = X[:, 0] - X[:, 1] + rng.standard_normal(40)
    unit = 2.0 ** np.round(np.log2(scale))
    a, b = fitted(leaves, X, y), fitted(leaves, X * unit, y)
    np.testing.assert_allclose(b.predict(X * unit), a.predict(X), rtol=1e-9)


def test_no_rows():
    empty = RankingData(np.empty((0, 2)), np.empty(0), np.empty(0))
    for leaves in LEAVES:
        with refused(InvalidInputError, code="no-rows"):
            ObliviousBoosting(leaves).fit(empty)
        assert fitted(leaves, np.arange(6.0).reshape(3, 2), np.arange(3.0)).predict(empty).shape == (0,)


def test_unlimited_polynomials_stay_finite():
    rng = np.random.default_rng(8)
    for scale in (1e-300, 1.0, 1e140):
        X = rng.uniform(-1, 1, (40, 2)) * scale
        ranker = fitted(PolynomialLeaves(degree=3), X, rng.random(40), clip=False)
        assert np.isfinite(ranker.predict(X)).all()
        assert np.isfinite(ranker.predict(np.array([[1e149, -1e149], [0.0, 1e140]]))).all()


@pytest.mark.parametrize("leaves", LEAVES)
def test_float32_at_its_ends(leaves):
    rng = np.random.default_rng(2)
    largest = np.finfo(np.float32).max
    X = (rng.uniform(-1, 1, (50, 2)) * largest).astype(np.float32)
    X[:3, 0] = [-largest, largest, 1e-45]
    y = (X[:, 0] > 0).astype(float)
    assert ((fitted(leaves, X, y, n_estimators=30).predict(X) > 0.5) == (y > 0.5)).all()


@pytest.mark.parametrize("leaves", LEAVES)
def test_infinite_values_are_named(leaves):
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    ranker = fitted(leaves, X, y)
    for value in (np.inf, -np.inf):
        bad = X.copy()
        bad[4, 1] = value
        for given_X in (bad, RankingData(bad, y)):
            with refused(ValueError, argument="X"):
                ranker.predict(given_X)
        with refused(ValueError, argument="X"):
            fitted(leaves, bad, y)
        with refused(ValueError, argument="X"):
            ObliviousBoosting(leaves).fit(X, y, eval_set=(bad, y, None))


def test_missing_values_unseen_in_training_have_finite_scores():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), rng.random(60)
    missing = X.copy()
    missing[:, 1] = np.nan
    for leaves in LEAVES:
        ranker = fitted(leaves, X, y, n_estimators=10)
        assert np.isfinite(ranker.predict(missing)).all()
        assert np.isfinite(ranker.predict(np.full((1, 3), np.nan))).all()


def test_grades_and_weights_too_large_are_refused():
    X, y = np.arange(6.0)[:, None], np.arange(6.0)
    with refused(InvalidInputError, code="large-grade"):
        fitted("constant", X, y * 1e200)
    with refused(InvalidInputError, code="weights"):
        ObliviousBoosting("constant").fit(X, y, sample_weight=np.full(6, 1e200))
    with refused(InvalidInputError, code="weights"):
        ObliviousBoosting("constant").fit(X, y, query_weight=[1e-200])
    with refused(InvalidInputError, argument="sample_weight"):
        ObliviousBoosting("constant").fit(
            X, y, qid=[0, 0, 0, 1, 1, 1], query_weight=[0, 1], sample_weight=[1.0, 1, 1, 0, 0, 0]
        )
    with refused(InvalidInputError, code="diverged"):
        fitted("constant", X, y, learning_rate=1e7, n_estimators=40)
    with refused(InvalidInputError, code="large-grade"):
        fitted("constant", X, y * 1000, objective="lambdarank")


@pytest.mark.parametrize("leaves", LEAVES)
@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_scores_do_not_depend_on_the_scale_of_weights(leaves, weight):
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((50, 3)), rng.random(50)
    own = 1.0 + rng.integers(0, 3, 50)
    a, b = (
        ObliviousBoosting(
            PolynomialLeaves(smoothing=0.0) if leaves == "polynomial" else leaves, n_estimators=4, depth=2
        )
        .fit(X, y, sample_weight=own * unit)
        .predict(X)
        for unit in (1.0, 2.0 ** np.round(np.log2(weight)))
    )
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_more_values_than_sixteen_bits_count():
    rng = np.random.default_rng(5)
    values = np.sort(rng.standard_normal(70_000))
    borders = find_borders(values, 64)
    exact = make_places(values, borders, 100_000)
    table = make_places(values, borders, MOST_PLACES)
    assert 2 * len(table.upper) + 2 <= 65_536 < 2 * len(exact.upper) + 2
    x = np.append(rng.standard_normal(300), [-9.0, 9.0, np.nan])
    states = table.states(x)
    assert states.max() == 2 * len(table.upper) + 1  # nan's
    c = float(borders[20])
    got = make_shares(table, Norms(0.9995), "near").right_of(*table.place_of_border(c), True)[states]
    b = int((values <= c).sum())
    for v, share in zip(x[:-1], got):
        place = (values < v).sum() if v > c else (values <= v).sum() - 1
        swaps = 0.9995 ** np.abs(np.arange(70_000.0) - place)
        assert share == pytest.approx(swaps[b:].sum() / swaps.sum(), abs=2e-3)
    assert got[-1] == 1.0
    with refused(InvalidInputError, argument="places"):
        fitted(FuzzyLeaves(places=40_000), values[:9, None], values[:9])


numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.one_of(numbers, st.just(np.nan))), st.integers(1, 255))
def test_codes_of_any_numbers(values, parts):
    X = values[:, None]
    borders = scan_columns(X, lambda k, column, _: find_borders(column, parts))
    codes = code_rows(X, borders).column(0)
    expected = np.where(np.isnan(values), MISSING, (values[:, None] > borders[0]).sum(axis=1))
    np.testing.assert_array_equal(codes, expected)


@given(hnp.arrays(np.float64, st.integers(1, 60), elements=st.integers(-6, 6)), st.lists(numbers, min_size=1))
def test_states_of_any_numbers(train, x):
    table = make_places(np.sort(train), np.empty(0), 1000)
    x = np.array([*x, *train, np.nan])
    known = np.unique(train)
    place = np.searchsorted(known, x)
    inside = np.isin(x, known)
    expected = np.where(np.isnan(x), 2 * len(known) + 1, 2 * place + inside)
    np.testing.assert_array_equal(table.states(x), expected)


@given(hnp.arrays(np.float64, st.integers(1, 30), elements=numbers))
def test_scaling_of_any_column_is_finite(values):
    values = np.sort(values)
    mean, scale, low, high = column_scaling(values)
    assert low <= mean <= high
    assert 0 < scale < np.inf
    if np.abs(values).max() < 1e100 and np.ptp(values) > 1e-100:
        assert mean == pytest.approx(values.mean(), rel=1e-9, abs=1e-9 * np.abs(values).max())
        assert scale == pytest.approx(values.std(), rel=1e-6, abs=1e-12 * np.abs(values).max())


magnitudes = st.floats(-1e60, 1e60)


@given(st.data(), st.integers(1, 50))
def test_packed_sums_of_any_subset(data, n):
    g = data.draw(hnp.arrays(np.float64, n, elements=magnitudes))
    h = np.abs(data.draw(hnp.arrays(np.float64, n, elements=magnitudes)))
    packed = packed_gradients(g, h, None, Workers(1))
    chosen = data.draw(hnp.arrays(np.bool_, n))
    sum_g, sum_h = packed.scales.unpack(packed.words[chosen].sum(keepdims=True))
    assert abs(sum_g[0] - g[chosen].sum()) <= 1e-7 * np.abs(g).sum() + 1e-120
    assert abs(sum_h[0] - h[chosen].sum()) <= 1e-7 * h.sum() + 1e-120
    assert sum_h[0] >= 0


@pytest.mark.parametrize("kind", ["whole", "share", "equal", "one outlier"])
def test_a_million_rows_neither_overflow_nor_drift(kind):
    n = 1_500_000
    rng = np.random.default_rng(6)
    g, h = {
        "whole": (-rng.random(n), np.ones(n)),
        "share": (rng.random(n), rng.random(n)),
        "equal": (np.full(n, 0.7), np.full(n, 0.3)),  # every one is rounded to the same side
        "one outlier": (np.append(np.full(n - 1, 1e-3), 50.0), np.append(np.full(n - 1, 1e-3), 50.0)),
    }[kind]
    packed = packed_gradients(g, h, None, Workers(1))
    # Sums of words stay below 2^63 in any order and for any subset.
    assert (
        float(np.abs((packed.words >> packed.scales.shift).astype(np.float64)).sum()) * 2.0**packed.scales.shift
        < 2.0**63
    )
    assert int((packed.words & ((1 << packed.scales.shift) - 1)).sum()) < 1 << packed.scales.shift
    for chosen in (slice(None), slice(None, n // 3), rng.random(n) < 0.2):
        sum_g, sum_h = packed.scales.unpack(packed.words[chosen].sum(keepdims=True))
        assert sum_g[0] == pytest.approx(g[chosen].sum(), rel=1e-5)
        assert sum_h[0] == pytest.approx(h[chosen].sum(), rel=1e-5)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(LEAVES), st.sampled_from(OBJECTIVES))
def test_any_small_data_has_finite_scores(data, leaves, objective):
    n, p = data.draw(st.integers(1, 14)), 2
    few = st.sampled_from([0.0, 1.0, -1.0, np.nan, 1e30, -1e30, 1e-30, 0.1])
    X = data.draw(hnp.arrays(np.float64, (n, p), elements=few))
    y = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0, 2.0, 4.0])))
    qid = data.draw(hnp.arrays(np.int64, n, elements=st.integers(0, 3)))
    weight = data.draw(hnp.arrays(np.float64, n, elements=st.sampled_from([1.0, 1e-6, 1e6])))
    data_of = RankingData(X, y, qid)
    ranker = ObliviousBoosting(leaves, objective=objective, n_estimators=3, depth=2).fit(data_of, sample_weight=weight)
    scores = ranker.predict(data_of)
    assert np.isfinite(scores).all()
    assert np.isfinite(ranker.predict(np.array([[np.nan, 0.5], [-7.0, 1e149], [2.0, -1e149]]))).all()
    if leaves != "polynomial":  # equal rows have equal scores; only the order of values counts
        np.testing.assert_array_equal(scores, ranker.predict(X))
    if leaves != "polynomial" and objective not in ("lambdarank", "yetirank"):  # these break ties by what rows hold
        larger = np.sign(X) * np.cbrt(np.abs(X))
        moved = ObliviousBoosting(leaves, objective=objective, n_estimators=3, depth=2).fit(
            RankingData(larger, y, qid), sample_weight=weight
        )
        np.testing.assert_array_equal(moved.predict(larger), scores)


def test_samples_of_rows_of_weight_0_are_named_where_no_tree_learns():
    X, y, qid = np.arange(8.0)[:, None], np.arange(8.0) % 3, np.repeat([0, 1], 4)
    weight = np.where(np.isin(np.arange(8), [0, 2]), 0.3, 0.0)
    settings = {"subsample": 0.05, "learning_rate": 1.9, "alpha": 0.0, "n_estimators": 30, "depth": 1}
    said = set()
    for seed in range(40):
        try:
            ObliviousBoosting("constant", random_state=seed, **settings).fit(X, y, qid=qid, sample_weight=weight)
        except InvalidInputError as error:
            said.add(str(error).partition("trees ")[2].partition(" (")[0])
    assert any("sampled only rows without information" in text for text in said)


def test_models_beyond_what_sixteen_bits_count_are_refused():
    def ensemble(depth):
        questions = np.zeros((1, depth), dtype=np.int32), np.zeros((1, depth)), np.zeros((1, depth), dtype=bool)
        return Ensemble(*questions, np.zeros((1, 1 << depth)))

    def places(knots):
        ends = np.arange(float(knots))
        return FlatPlaces.of(np.array([0]), [PlaceTable(ends, ends, np.arange(knots + 1))])

    ensemble(16).check(1, None)
    with refused(ModelFileError, code="depth"):
        ensemble(17).check(1, None)
    places(2**15 - 1).check(1, ensemble(1))
    with refused(ModelFileError, argument="sizes", code="range"):
        places(2**15).check(1, ensemble(1))
