"""ListNet: the objective as printed, its derivatives, the optimum, the paper's descent."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from rankers.conformance import ranker_checks
from reference import listnet as reference
from support.refusals import refused
from truerank import ListNet, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.losses import cross_entropy
from truerank.matrices.content import order_by_content
from truerank.rankers.sums.linear import LinearProblem, SummedCrossEntropy
from truerank.solvers import lbfgs

test_scikit_learn_conformance = ranker_checks(
    [ListNet(), ListNet(solver="gradient-descent", max_iter=20, learning_rate=0.001)]
)


def some_data(seed, n=80, p=5, m=9):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.integers(0, 4, n).astype(float), np.sort(rng.integers(0, m, n))


def cross_entropy_of(data, alpha, normalize=False):
    return SummedCrossEntropy(LinearProblem(data.in_parts(None), "never"), alpha, normalize, None)


def by_content(X, y, qid):
    """The same rows in the order in which training takes them, queries numbered in that order."""
    offsets = RankingData(X, y, qid).offsets
    rows, queries = order_by_content(X, y, offsets)
    return X[rows], y[rows], np.repeat(np.arange(len(queries)), np.diff(offsets)[queries])


def test_two_documents_by_hand():
    # P_y = (1/(1+e), e/(1+e)); P_s is the same when w (x_2 - x_1) = 1, so w = 1/2 here, and the loss is the entropy.
    ranker = ListNet(alpha=0.0).fit([[1.0], [3.0]], [0, 1])
    assert ranker.coef_[0] == pytest.approx(0.5, abs=1e-6)
    share = 1 / (1 + math.e)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert ranker.objective_ == pytest.approx(entropy, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0, 100.0])
def test_reaches_the_optimum_to_the_stated_gradient_norm(alpha):
    X, y, qid = some_data(3)
    X = X * np.array([1e-3, 1.0, 1e3, 1.0, 1.0])
    if alpha == 0.0:
        X[:, 4] = X[:, 3]  # a direction without curvature
    ranker = ListNet(alpha, scale="never").fit(X, y, qid=qid)
    assert ranker.gradient_norm_ <= 1e-6
    assert "converged" in ranker.status_
    # Newton's method from the reference, in scaled columns, cannot find anything better.
    scale = X.std(axis=0)
    problem = cross_entropy_of(RankingData(X, y, qid), alpha)
    found = optimize.minimize(
        lambda v: problem.value_and_gradient(v / scale)[0],
        np.zeros(5),
        jac=lambda v: problem.value_and_gradient(v / scale)[1] / scale,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    assert ranker.objective_ <= found.fun + 1e-9
    assert ranker.objective_ == pytest.approx(reference.objective(ranker.coef_, X, y, qid, alpha), rel=1e-12)


def test_sparse_and_wide_rows_reach_the_same_optimum(monkeypatch):
    X, y, qid = some_data(4)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0
    dense = ListNet(0.1).fit(X, y, qid=qid)
    rows = ListNet(0.1).fit(sparse.csr_matrix(X), y, qid=qid)
    monkeypatch.setattr(lbfgs, "_DENSE_HESSIAN", 2)
    wide = ListNet(0.1).fit(X, y, qid=qid)
    for other in (rows, wide):
        assert other.gradient_norm_ <= 1e-6
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-5)


def test_no_overflow_at_scores_of_ten_thousand():
    X, y, qid = some_data(5)
    data = RankingData(X * 1e4, y, qid)
    for scale in (1.0, -1.0, 1e3):
        value, gradient = cross_entropy_of(data, 0.0).value_and_gradient(scale * np.ones(5))
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    # Columns times c and alpha times c^2 give weights divided by c.
    ranker = ListNet(alpha=1e6, scale="never").fit(X * 1e4, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_ * 1e4, ListNet(alpha=1e-2).fit(X, y, qid=qid).coef_, atol=1e-6)
    descent = ListNet(solver="gradient-descent", learning_rate=10.0, max_iter=20, scale="never")
    descent.fit(X * 1e3, y, qid=qid)
    assert np.isfinite(descent.coef_).all()


def test_the_papers_descent_step_by_step():
    X, y, qid = some_data(6, n=30, p=3, m=4)
    y[qid == 1] = 2.0
    for epochs in (1, 5):
        expected = reference.gradient_descent(*by_content(X, y, qid), 0.05, epochs, 0.5)
        for rows in (X, sparse.csr_matrix(X)):
            ranker = ListNet(0.5, solver="gradient-descent", learning_rate=0.05, max_iter=epochs).fit(rows, y, qid=qid)
            np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-10)
            assert ranker.n_iter_ == epochs
    long = ListNet(0.5, solver="gradient-descent", learning_rate=0.01, max_iter=3000).fit(X, y, qid=qid)
    assert long.objective_ == pytest.approx(ListNet(0.5).fit(X, y, qid=qid).objective_, rel=1e-3)


def test_descent_that_diverges_says_so():
    X, y, qid = some_data(7)
    with refused(InvalidInputError, code="diverged"):
        ListNet(1e6, solver="gradient-descent", learning_rate=1.0, max_iter=500).fit(X, y, qid=qid)


def test_stops_at_max_iter_with_a_warning():
    X, y, qid = some_data(8)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        ranker = ListNet(1e-4, max_iter=1).fit(X, y, qid=qid)
    assert ranker.n_iter_ == 1


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_nothing_to_learn():
    ranker = ListNet().fit([[1.0], [2.0], [3.0]], [1, 1, 2], qid=[1, 1, 2])
    assert ranker.coef_.tolist() == [0.0]
    assert "nothing can be learned" in ranker.status_


def test_query_weight_two_is_two_copies_and_normalize_divides():
    X, y, qid = some_data(9, m=4)
    twice = qid == 1
    copied = ListNet(0.3).fit(
        np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]), qid=np.concatenate([qid, np.full(twice.sum(), 9)])
    )
    weighted = ListNet(0.3).fit(X, y, qid=qid, query_weight=[1, 2, 1, 1])
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-6)
    mean = ListNet(0.3 / 4, normalize=True, tol=1e-7).fit(X, y, qid=qid)
    np.testing.assert_allclose(mean.coef_, ListNet(0.3).fit(X, y, qid=qid).coef_, atol=1e-6)


def test_shifted_grades_scores_and_row_order_do_not_matter():
    X, y, qid = some_data(10)
    base = ListNet().fit(X, y, qid=qid)
    shifted = ListNet().fit(X + 100 * qid[:, None], y + qid, qid=qid)
    np.testing.assert_allclose(shifted.coef_, base.coef_, atol=1e-6)
    order = np.random.default_rng(0).permutation(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # queries in pieces
        moved = ListNet().fit(X[order], y[order], qid=qid[order])
    assert np.array_equal(moved.coef_, base.coef_)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(cross_entropy, "query_blocks", lambda offsets, _: [(i, i + 1) for i in range(len(offsets) - 1)])
    X, y, qid = some_data(11)
    fits = [ListNet(0.1, n_jobs=n).fit(X, y, qid=qid) for n in (1, 2, 4)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert np.array_equal(fits[0].coef_, fits[2].coef_)


@pytest.mark.parametrize("solver", ["lbfgs", "gradient-descent"])
def test_early_stopping_keeps_the_best_iterate(solver, tmp_path):
    X, y, qid = some_data(12, n=300, p=8, m=30)
    valid = (X[150:], y[150:], qid[150:])
    params = {"solver": solver, "measure": "AP", "max_iter": 40}
    full = ListNet(1e-4, **params).fit(X[:150], y[:150], qid=qid[:150], eval_set=valid)
    scores = full.validation_scores_
    assert full.n_iter_ == 1 + np.argmax(scores)
    assert full.score(*valid[:2], qid=valid[2]) == pytest.approx(scores.max(), abs=1e-12)
    early = ListNet(1e-4, patience=1, **params).fit(X[:150], y[:150], qid=qid[:150], eval_set=valid)
    assert np.array_equal(early.validation_scores_, scores[: len(early.validation_scores_)])
    assert "stopped early" in early.status_
    assert full.history_["validation"] is scores
    objective = full.history_["objective"]
    assert len(objective) == len(scores)
    if solver == "lbfgs":
        assert (np.diff(objective) < 0).all()
        assert objective[full.n_iter_ - 1] == pytest.approx(full.objective_, rel=1e-12)
    else:
        assert np.isnan(objective).all()
    save_model(full, tmp_path / "m.json")
    assert np.array_equal(load_model(tmp_path / "m.json").predict(X), full.predict(X))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1}, {"argument": "alpha", "value": -1}),
        ({"solver": "newton"}, {"argument": "solver", "value": "newton"}),
        ({"tol": 0}, {"argument": "tol", "value": 0}),
        ({"learning_rate": 0}, {"argument": "learning_rate", "value": 0}),
        ({"max_iter": 0}, {"argument": "max_iter", "value": 0}),
    ],
)
def test_parameters_out_of_range(params, message):
    with refused(InvalidInputError, **message):
        ListNet(**params).fit([[1.0], [2.0]], [0, 1])
