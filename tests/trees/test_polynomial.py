from math import comb

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from reference import oblivious as slow
from reproductions import protocol
from support.refusals import refused
from truerank import ObliviousBoosting, PolynomialLeaves, RankingData, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.core.threads import Workers
from truerank.data.samples import load_sample
from truerank.matrices.binning import code_rows, find_borders
from truerank.measures import parse_measure
from truerank.trees.grower import TreeStructure
from truerank.trees.leaves.polynomial import (
    PolynomialFitter,
    least_norm_solutions,
    monomial_table,
    solve_in_two_rounds,
    solve_jointly,
)
from truerank.trees.rows import Sample, TrainingRows
from truerank.trees.training_columns import Scaling, column_scaling


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
    rows = TrainingRows(X, code_rows(X, borders))
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
        leaves = PolynomialFitter(0.0, PolynomialLeaves(degree, smoothing=0.0), 4, scaling, workers)
        values = leaves.values(tree, *leaves.sums(tree, rows, Sample(g, h, drawn)), 1.0)
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
    got = solve_in_two_rounds(matrix, right, 0.0, 2.5)
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
    np.testing.assert_allclose(solve_in_two_rounds(matrix, right, 0.0, 0.0), first)
    np.testing.assert_allclose(solve_in_two_rounds(matrix, right, 0.0, 1e-12), first, atol=1e-9)
    mean = np.stack([first[[1, 2]], first[[0, 3]], first[[3, 0]], first[[2, 1]]]).mean(axis=1)
    np.testing.assert_allclose(solve_in_two_rounds(matrix, right, 0.0, 1e12), mean, atol=1e-9)
    np.testing.assert_allclose(solve_in_two_rounds(matrix, right, 0.0, np.inf), mean)


def test_singular_systems_have_the_minimum_norm_solution():
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
    b = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(least_norm_solutions(a[None], b[None])[0], np.linalg.pinv(a) @ b)
    np.testing.assert_array_equal(least_norm_solutions(np.zeros((1, 3, 3)), np.zeros((1, 3))), np.zeros((1, 3)))


@pytest.mark.parametrize("seed", range(24))
def test_joint_solution_is_the_dense_one_of_minimum_norm(seed):
    rng = np.random.default_rng(seed)
    depth, m, n = rng.integers(1, 5), rng.integers(1, 7), rng.integers(1, 80)
    X = rng.standard_normal((n, m)) * 10 ** rng.uniform(-2, 2, m)
    X[:, 0] = 1.0
    if m > 2 and seed % 3 == 0:
        X[:, 2] = X[:, 1]  # as a feature that stands twice: no row tells the two apart
    leaf = np.zeros(n, dtype=int) if seed % 4 == 1 else rng.integers(0, 1 << depth, n)  # most leaves without rows
    target, weight = rng.standard_normal(n), 2 * rng.random(n)
    penalty, alpha = 10 ** rng.uniform(-3, 4), (0.5, 0.0)[seed % 2]
    matrix, right = np.zeros((1 << depth, m, m)), np.zeros((1 << depth, m))
    for x, q, value, w in zip(X, leaf, target, weight):
        matrix[q] += w * np.outer(x, x)
        right[q] += w * value * x
    expected = slow.joint_polynomials(X, leaf, target, weight, 1 << depth, penalty, alpha)
    got = solve_jointly(matrix, right, alpha, penalty)
    np.testing.assert_allclose(got, expected, atol=1e-7 * np.abs(expected).max())


def test_limits_of_the_joint_penalty():
    rng = np.random.default_rng(3)
    parts = rng.standard_normal((4, 9, 3))
    matrix, right = parts.transpose(0, 2, 1) @ parts, rng.standard_normal((4, 3))
    own = np.linalg.solve(matrix, right[..., None])[..., 0]
    np.testing.assert_allclose(solve_jointly(matrix, right, 0.0, 0.0), own)
    np.testing.assert_allclose(solve_jointly(matrix, right, 0.0, 1e-12), own, atol=1e-8)
    shared = np.linalg.solve(matrix.sum(axis=0), right.sum(axis=0))
    np.testing.assert_allclose(solve_jointly(matrix, right, 0.0, 1e12), [shared] * 4, atol=1e-7)
    np.testing.assert_allclose(solve_jointly(matrix, right, 0.0, np.inf), [shared] * 4)


@pytest.fixture(scope="module")
def judged():
    data = load_sample()
    return data.take_queries(range(60)), data.take_queries(range(60, 100))


def test_degree_zero_equals_plain_trees(judged):
    train, test = judged
    kw = {"n_estimators": 10, "depth": 4, "bootstrap": "row", "alpha": 0.5}
    plain = ObliviousBoosting("constant", **kw).fit(train)
    flat = ObliviousBoosting(PolynomialLeaves(degree=0, smoothing=0.0), **kw).fit(train)
    np.testing.assert_array_equal(flat.tree_features_, plain.tree_features_)
    np.testing.assert_allclose(flat.predict(test), plain.predict(test), atol=1e-8)


def test_a_parabola_is_fitted_by_one_tree():
    x = np.random.default_rng(4).standard_normal((500, 1))
    y = 2 * x[:, 0] ** 2 - x[:, 0] + 3
    for penalty in (0.0, 10.0):
        ranker = ObliviousBoosting(PolynomialLeaves(degree=2, smoothing=penalty), n_estimators=1, learning_rate=1.0)
        error = np.abs(ranker.fit(x, y).predict(x) - y).max()
        assert error < 1e-6 if penalty == 0 else error < 0.5


@pytest.mark.parametrize("degree", [1, 2])
def test_continuing_threads_and_files_keep_every_bit(judged, tmp_path, degree):
    train, test = judged
    X, T = train.X.copy(), test.X.copy()
    X[::9, :3] = np.nan
    T[::4, :5] = np.nan
    kw = {"leaves": PolynomialLeaves(degree), "depth": 3}
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
    clipped = ObliviousBoosting("polynomial", n_estimators=3, depth=3).fit(train.X, train.y, qid=train.qid)
    free = ObliviousBoosting("polynomial", n_estimators=3, depth=3, clip=False).fit(train.X, train.y, qid=train.qid)
    edge = np.clip(far, train.X.min(axis=0), train.X.max(axis=0))
    np.testing.assert_allclose(clipped.predict(far), clipped.predict(edge))
    assert np.abs(free.predict(far)).max() > 100 * np.abs(clipped.predict(far)).max()


def test_settings_that_do_not_go_together(judged):
    signs = np.ones(judged[0].n_features)
    with refused(InvalidInputError, argument="monotone"):
        ObliviousBoosting("polynomial", monotone=signs).fit(judged[0])
    with refused(InvalidInputError, code="too-many-coefficients"):
        ObliviousBoosting(PolynomialLeaves(degree=5), depth=10).fit(judged[0])


def squared_error(y, s, offsets):
    return np.mean((y - s) ** 2)


def pairwise_logistic(y, s, offsets):
    total = 0.0
    for a, b in zip(offsets[:-1], offsets[1:]):
        better = y[a:b, None] > y[None, a:b]
        total += np.logaddexp(0, (s[None, a:b] - s[a:b, None])[better]).sum()
    return total


def softmax(y, s, offsets):
    total = 0.0
    for a, b in zip(offsets[:-1], offsets[1:]):
        target = np.exp(y[a:b] - y[a:b].max())
        z = s[a:b] - s[a:b].max()
        total -= target @ (z - np.log(np.exp(z).sum())) / target.sum()
    return total


LOSSES = {"mse": squared_error, "pairwise-logistic": pairwise_logistic, "softmax": softmax}


def losses_by_tree(ranker, data, objective):
    grouped = RankingData(data.X, data.y, data.qid)
    return [LOSSES[objective](data.y, scores, data.offsets) for scores in ranker.staged_predict(grouped)]


def heavy_tails(n=900):
    """Made data whose leaves often hold a few rows far out: where two rounds of fits fly apart."""
    rng = np.random.default_rng(5)
    X = np.exp(1.5 * rng.standard_normal((n, 12)))
    X[:, 6:] = np.round(X[:, 6:])
    y = np.digitize(np.log(X[:, 0]) * (X[:, 6] > 1) + rng.standard_normal(n), [0.5, 2.0]).astype(float)
    return RankingData(X, y, np.repeat(np.arange(n // 30), 30))


@pytest.mark.parametrize("objective", ["mse", "pairwise-logistic", "softmax"])
@pytest.mark.parametrize(("degree", "depth"), [(1, 2), (1, 6), (2, 4), (3, 3)])
@pytest.mark.parametrize("smoothing", [None, 0.0, 1.0, np.inf])
@pytest.mark.parametrize("alpha", [None, 0.0])
def test_training_objective_falls_to_the_last_tree(objective, degree, depth, smoothing, alpha):
    data = heavy_tails()
    ranker = ObliviousBoosting(
        PolynomialLeaves(degree, smoothing), objective=objective, depth=depth, alpha=alpha, n_estimators=30, borders=16
    ).fit(data)
    losses = losses_by_tree(ranker, data, objective)
    assert len(losses) == 30
    assert np.diff(losses).max() <= 1e-9 * losses[0]
    if objective == "mse":
        change = 2 * ranker.history_["objective"] / data.n_rows
        np.testing.assert_allclose(np.var(data.y) + change, losses, rtol=1e-9)


@pytest.mark.parametrize("name", ["mq2008", "ohsumed"])
@pytest.mark.parametrize(("leaves", "depth"), [(PolynomialLeaves(), 5), (PolynomialLeaves(2, 10.0), 3)])
def test_long_runs_on_real_data_fall_and_rank(collections, name, leaves, depth):
    fold = protocol.letor_folds(protocol.load_collection(collections, name))[0]
    ranker = ObliviousBoosting(leaves, depth=depth, n_estimators=150, borders=32).fit(fold.train)
    assert ranker.n_iter_ == 150
    assert (np.diff(ranker.history_["objective"]) < 0).all()
    measure = parse_measure("nDCG@10", "ranklib")
    chance = measure.mean(fold.test.judgements(), np.random.default_rng(0).random(fold.test.n_rows))
    assert measure.mean(fold.test.judgements(), protocol.grouped_scores(ranker, fold.test)) > chance + 0.05


def test_leaves_that_diverge_say_so_and_stop():
    data = heavy_tails()
    two_rounds = PolynomialLeaves(smoothing=10.0, solution="two-rounds")
    with pytest.warns(ConvergenceWarning, match=r"training diverges.*Lower learning_rate"):
        ranker = ObliviousBoosting(two_rounds, n_estimators=200, depth=6, borders=16, learning_rate=0.3).fit(data)
    assert "diverges" in ranker.status_
    assert ranker.n_iter_ < 200
    assert ranker.n_iter_ == np.argmin(ranker.history_["objective"]) + 1
    losses = losses_by_tree(ranker, data, "mse")
    assert losses[-1] < np.var(data.y)
    assert losses[-1] == min(losses)


def test_a_rate_beyond_two_diverges_at_once():
    with refused(InvalidInputError, code="diverged"):
        ObliviousBoosting("constant", n_estimators=300, learning_rate=2.5).fit(heavy_tails())
