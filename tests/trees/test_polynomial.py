from math import comb

import numpy as np
import pytest

from reference import oblivious as slow
from truerank import ObliviousBoosting, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.data.samples import load_sample
from truerank.matrices.binning import code_rows, find_borders
from truerank.trees.grower import TreeStructure
from truerank.trees.leaves.polynomial import (
    PolynomialLeaves,
    fit_neighbours,
    least_norm_solutions,
    monomial_table,
)
from truerank.trees.rows import Rows, Sample
from truerank.trees.scaling import Scaling, column_scaling


@pytest.mark.parametrize(("variables", "degree"), [(1, 0), (1, 3), (3, 2), (6, 2), (4, 3)])
def test_monomials_in_order(variables, degree):
    z = np.random.default_rng(0).standard_normal((5, variables))
    table = monomial_table(variables, degree)
    assert len(table) == comb(variables + degree, degree)
    columns = [np.ones(5)]
    for earlier, variable in table[1:]:
        columns.append(columns[earlier] * z[:, variable])
    np.testing.assert_allclose(np.stack(columns, axis=1), slow.monomials(z, degree))


def problem(levels, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    g, h, drawn = rng.standard_normal(300), rng.random(300), rng.integers(0, 3, 300)
    borders = [find_borders(np.sort(column), 8) for column in X.T]
    rows = Rows(X, code_rows(X, borders))
    tree = TreeStructure(
        np.array([k for k, _ in levels], dtype=np.int32), np.array([c for _, c in levels], dtype=np.int32),
        np.zeros(len(levels), dtype=bool), np.zeros(len(levels)), np.zeros(1), np.zeros(1),
    )  # fmt: skip
    scaling = Scaling.of([column_scaling(np.sort(column)) for column in X.T], True)
    return X, g, h, drawn, borders, rows, tree, scaling


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_first_round_is_weighted_least_squares_in_each_leaf(degree):
    X, g, h, drawn, borders, rows, tree, scaling = problem([(2, 5), (0, 9), (2, 11)])
    with Workers(1) as workers:
        leaves = PolynomialLeaves(0.0, degree, 0.0, 4, scaling, workers)
        values = leaves.fit(tree, rows, Sample(g, h, drawn))
        scores = np.ones(300)
        leaves.add(tree, rows, values, scores)
    leaf = slow.leaf_of(X, [(k, borders[k][c]) for k, c in zip(tree.features, tree.codes)])
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    A = slow.monomials(z[:, [2, 0]], degree)  # the distinct features, once each
    weight = drawn * h
    expected = np.ones(300)
    for q in range(8):
        own = leaf == q
        root = np.sqrt(weight[own])[:, None]
        target = np.where(root[:, 0] > 0, root[:, 0] * -g[own] / h[own], 0)
        coef = np.linalg.lstsq(root * A[own], target, rcond=1e-7)[0] if own.any() else np.zeros(A.shape[1])
        expected[own] += A[own] @ coef
    np.testing.assert_allclose(scores, expected, atol=1e-7)


def test_refit_solves_the_penalised_problem():
    rng = np.random.default_rng(2)
    parts = rng.standard_normal((4, 9, 3))
    matrix = parts.transpose(0, 2, 1) @ parts
    matrix[3] = 0  # a leaf without rows
    right = rng.standard_normal((4, 3))
    right[3] = 0
    first = np.array([np.linalg.solve(a, b) for a, b in zip(matrix[:3], right[:3])])
    got = fit_neighbours(matrix, right, 0.0, 2.5)
    eye = np.eye(3)
    # Leaf 0 has the neighbours 1 and 2; leaf 1 has 0 (3 is empty); leaf 2 has 0; the empty leaf 3 has 1 and 2.
    np.testing.assert_allclose(got[0], np.linalg.solve(matrix[0] + 5 * eye, right[0] + 2.5 * (first[1] + first[2])))
    np.testing.assert_allclose(got[1], np.linalg.solve(matrix[1] + 2.5 * eye, right[1] + 2.5 * first[0]))
    np.testing.assert_allclose(got[2], np.linalg.solve(matrix[2] + 2.5 * eye, right[2] + 2.5 * first[0]))
    np.testing.assert_allclose(got[3], (first[1] + first[2]) / 2)


def test_limits_of_the_penalty():
    rng = np.random.default_rng(3)
    parts = rng.standard_normal((4, 9, 3))
    matrix, right = parts.transpose(0, 2, 1) @ parts, rng.standard_normal((4, 3))
    first = np.linalg.solve(matrix, right[..., None])[..., 0]
    np.testing.assert_allclose(fit_neighbours(matrix, right, 0.0, 0.0), first)
    np.testing.assert_allclose(fit_neighbours(matrix, right, 0.0, 1e-12), first, atol=1e-9)
    mean = np.stack([first[[1, 2]], first[[0, 3]], first[[3, 0]], first[[2, 1]]]).mean(axis=1)
    np.testing.assert_allclose(fit_neighbours(matrix, right, 0.0, 1e12), mean, atol=1e-9)
    np.testing.assert_allclose(fit_neighbours(matrix, right, 0.0, np.inf), mean)


def test_singular_systems_have_the_minimum_norm_solution():
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
    b = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(least_norm_solutions(a[None], b[None])[0], np.linalg.pinv(a) @ b)
    np.testing.assert_array_equal(least_norm_solutions(np.zeros((1, 3, 3)), np.zeros((1, 3))), np.zeros((1, 3)))


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(60)), data.take_queries(range(60, 100))


def test_degree_zero_equals_plain_trees(judged):
    train, test = judged
    kw = {"n_estimators": 10, "depth": 4, "bootstrap": "row", "l2": 0.5}
    plain = ObliviousBoosting(**kw).fit(train)
    flat = ObliviousBoosting("polynomial", degree=0, neighbour_penalty=0.0, **kw).fit(train)
    np.testing.assert_array_equal(flat.tree_features_, plain.tree_features_)
    np.testing.assert_allclose(flat.predict(test), plain.predict(test), atol=1e-8)


def test_a_parabola_is_fitted_by_one_tree():
    x = np.random.default_rng(4).standard_normal((500, 1))
    y = 2 * x[:, 0] ** 2 - x[:, 0] + 3
    for penalty in (0.0, 10.0):
        ranker = ObliviousBoosting("polynomial", n_estimators=1, learning_rate=1.0, degree=2, neighbour_penalty=penalty)
        error = np.abs(ranker.fit(x, y).predict(x) - y).max()
        assert error < 1e-6 if penalty == 0 else error < 0.5


@pytest.mark.parametrize("degree", [1, 2])
def test_continuing_threads_and_files_keep_every_bit(judged, tmp_path, degree):
    train, test = judged
    X, T = train.X.copy(), test.X.copy()
    X[::9, :3] = np.nan
    T[::4, :5] = np.nan
    kw = {"leaves": "polynomial", "depth": 3, "degree": degree}
    whole = ObliviousBoosting(n_estimators=6, **kw).fit(X, train.y, qid=train.qid)
    part = ObliviousBoosting(n_estimators=2, warm_start=True, n_jobs=2, **kw).fit(X, train.y, qid=train.qid)
    part.set_params(n_estimators=6, n_jobs=4).fit(X, train.y, qid=train.qid)
    save_model(part, tmp_path / "m.json")
    expected = whole.predict(T)
    assert np.isfinite(expected).all()
    np.testing.assert_array_equal(part.predict(T), expected)
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").predict(T), expected)
    np.testing.assert_array_equal(whole.predict(T[5:6]), expected[5:6])


def test_clipping_holds_scores_beyond_the_training_range(judged):
    train, _ = judged
    far = train.X.copy() * 1e6
    clipped = ObliviousBoosting("polynomial", n_estimators=3, depth=3).fit(train.X, train.y)
    free = ObliviousBoosting("polynomial", n_estimators=3, depth=3, clip=False).fit(train.X, train.y)
    edge = np.clip(far, train.X.min(axis=0), train.X.max(axis=0))
    np.testing.assert_allclose(clipped.predict(far), clipped.predict(edge))
    assert np.abs(free.predict(far)).max() > 100 * np.abs(clipped.predict(far)).max()


def test_settings_that_do_not_go_together(judged):
    signs = np.ones(judged[0].n_features)
    with pytest.raises(InvalidInputError, match="cannot keep monotone"):
        ObliviousBoosting("polynomial", monotone=signs).fit(judged[0].X, judged[0].y)
    with pytest.raises(InvalidInputError, match="coefficients, more"):
        ObliviousBoosting("polynomial", depth=10, degree=5).fit(judged[0])
