"""A weight of 2 equals two copies of a row, or of a query, whatever the leaves; the unit of weights says nothing."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from truerank import ConstantLeaves, FuzzyLeaves, ObliviousBoosting, PolynomialLeaves, RankingData
from truerank.core.schema import fields_of

LEAVES = [
    ConstantLeaves(),
    FuzzyLeaves(),
    FuzzyLeaves(p_swap=0.99, ties="near", places=40),
    FuzzyLeaves(search=True),
    PolynomialLeaves(),
    PolynomialLeaves(smoothing=50.0),
]


def made(n=400, missing=False):
    """Smooth, tied, mostly zero and skewed columns, more of their values different than parts; grades; queries."""
    rng = np.random.default_rng(0)
    X = np.stack(
        [
            rng.standard_normal(n),
            np.round(rng.standard_normal(n), 1),
            rng.random(n) * (rng.random(n) < 0.3),
            rng.exponential(size=n),
        ],
        axis=1,
    )
    y = np.clip(np.round(X[:, 0] + 2 * X[:, 2] + 0.5 * rng.standard_normal(n)), 0, 4)
    if missing:
        X[rng.random(X.shape) < 0.08] = np.nan
    return X, y, np.sort(rng.integers(0, n // 15, n))


def repeated(qid, weight):
    """Rows and queries of a set in which each query stands as often as it weighs."""
    rows, queries = [], []
    for q, times in enumerate(weight.astype(int)):
        for copy in range(times):
            rows.append(np.flatnonzero(qid == q))
            queries.append(np.full(len(rows[-1]), q + copy * len(weight)))
    return np.concatenate(rows), np.concatenate(queries)


@pytest.mark.parametrize("leaves", LEAVES, ids=repr)
def test_weights_equal_copies(leaves):
    polynomial = isinstance(leaves, PolynomialLeaves)
    settings = [{"small_leaf_penalty": 5.0}, {"objective": "lambdarank"}]
    for missing, least, given in itertools.product([False, True], [0, 1], settings):
        X, y, qid = made(missing=missing)
        objective = given.get("objective", "mse")
        rng = np.random.default_rng(5)
        weights = {}
        if objective == "mse":
            weight = rng.integers(least, 4, len(y)).astype(float)
            rows, queries, weights["sample_weight"] = (
                *(np.repeat(own, weight.astype(int)) for own in (np.arange(len(y)), qid)),
                weight,
            )
        else:
            weight = rng.integers(least, 4, qid.max() + 1).astype(float)
            (rows, queries), weights["query_weight"] = repeated(qid, weight), weight
        forms = [np.asarray] if polynomial else [np.asarray, csr_matrix]
        for form in forms:
            ranker = ObliviousBoosting(leaves, n_estimators=6, depth=3, borders=12, **given)
            one = ranker.fit(form(X), y, qid=qid, **weights).predict(form(X))
            two = ranker.fit(form(X[rows]), y[rows], qid=queries).predict(form(X))
            np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6 * two.std())
        plain = ranker.fit(form(X), y, qid=qid).predict(form(X))
        assert np.abs(plain - one).max() > 0.01 * one.std()


@pytest.mark.parametrize("leaves", ["constant", "fuzzy", "polynomial"])
def test_a_linear_start_counts_copies(leaves):
    X, y, qid = made()
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    ranker = ObliviousBoosting(leaves, n_estimators=4, depth=3, borders=12, start="linear")
    one = ranker.fit(X, y, qid=qid, sample_weight=weight.astype(float)).predict(X)
    two = ranker.fit(X[rows], y[rows], qid=qid[rows]).predict(X)
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6 * two.std())


@pytest.mark.parametrize("leaves", ["fuzzy", FuzzyLeaves(p_swap=0.99)], ids=repr)
@pytest.mark.parametrize("weight", ["equal", "whole", "any"])
def test_the_unit_of_weights_says_nothing(leaves, weight):
    X, y, qid = made(missing=True)
    rng = np.random.default_rng(6)
    own = {"equal": np.ones(len(y)), "whole": rng.integers(1, 3, len(y)) * 1.0, "any": rng.lognormal(size=len(y))}[
        weight
    ]
    fits = [
        ObliviousBoosting(leaves, n_estimators=3, depth=3, borders=12).fit(X, y, qid=qid, sample_weight=unit * own)
        for unit in (1.0, 3.0, 0.1)
    ]
    if weight == "equal":
        fits.append(ObliviousBoosting(leaves, n_estimators=3, depth=3, borders=12).fit(X, y, qid=qid))
    for other in fits[1:]:
        for name in ("tree_features_", "tree_borders_", "place_lower_", "place_upper_", "place_starts_", "p_swap_"):
            np.testing.assert_array_equal(getattr(other, name), getattr(fits[0], name))
        np.testing.assert_allclose(other.predict(X), fits[0].predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_equal_weights_leave_all_that_is_known_of_columns_as_it_is(weight):
    X, y, qid = made(missing=True)
    for leaves in ("fuzzy", "polynomial"):
        ranker = ObliviousBoosting(leaves, n_estimators=3, depth=3, borders=12, start="linear")
        plain = ranker.fit(X, y, qid=qid)
        names = [name for name in fields_of(type(plain)) if name.startswith(("place_", "feature_"))]
        known = {name: getattr(plain, name) for name in names if hasattr(plain, name)}
        ranker = ranker.fit(X, y, qid=qid, sample_weight=np.full(len(y), weight))
        assert {"feature_mean_", "feature_scale_", "place_starts_"} & set(known)
        for name, value in known.items():
            np.testing.assert_array_equal(getattr(ranker, name), value)


def test_weights_near_whole_ones_are_near_copies():
    """Places of weights without a common unit are finer, and the width of borders is a share of all weight."""
    X, y, qid = made(3000)
    weight = np.random.default_rng(5).integers(1, 3, len(y)).astype(float)
    ranker = ObliviousBoosting("fuzzy", n_estimators=5, depth=3, borders=12)
    near = weight * np.random.default_rng(7).uniform(1 - 1e-4, 1 + 1e-4, len(y))
    one, two = (ranker.fit(X, y, qid=qid, sample_weight=own).predict(X) for own in (weight, near))
    assert np.abs(one - two).max() < 0.02 * one.std()


def test_a_model_goes_on_from_weights():
    X, y, qid = made()
    first = ObliviousBoosting("fuzzy", n_estimators=3, depth=3, borders=12).fit(X[:, :4], y, qid=qid)
    weight = np.random.default_rng(5).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    ranker = ObliviousBoosting("fuzzy", n_estimators=3, depth=3, borders=12)
    one = ranker.fit(X, y, qid=qid, sample_weight=weight * 1.0, init_model=first).predict(X)
    two = ranker.fit(RankingData(X[rows], y[rows], qid[rows]), init_model=first).predict(X)
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
    warm = ObliviousBoosting("fuzzy", n_estimators=2, depth=3, borders=12, warm_start=True)
    warm.fit(X, y, qid=qid, sample_weight=weight * 1.0).set_params(n_estimators=4)
    whole = ObliviousBoosting("fuzzy", n_estimators=4, depth=3, borders=12).fit(
        X, y, qid=qid, sample_weight=weight * 1.0
    )
    np.testing.assert_array_equal(warm.fit(X, y, qid=qid, sample_weight=weight * 1.0).predict(X), whole.predict(X))
