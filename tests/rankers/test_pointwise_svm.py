"""PointwiseSVM: liblinear and cutting planes at one optimum, class weights, pipelines acc3 and acc4."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.features.per_query import MinMaxInQuery, PercentileInQuery
from truerank.features.score_binning import ScoreBinning
from truerank.matrices.content import order_by_content
from truerank.models.model_file import load_model, save_model
from truerank.rankers.pointwise_svm import PointwiseSVM
from truerank.solvers.result import Status

test_scikit_learn_conformance = ranker_checks([PointwiseSVM(C=1e-6, rel=1)])


def judged(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ [1.0, -1, 0.5, 0] + rng.normal(size=n) > 1.5).astype(float), np.arange(n) // 20


@pytest.mark.parametrize("class_weight", [None, "ratio", {0: 2.0, 1: 0.5}])
def test_liblinear_and_cutting_planes_reach_the_same_objective(class_weight):
    X, y, _ = judged()
    binned = ScoreBinning(n_thresholds=6, strategy="quantile", output="binned").fit_transform(X)
    ours = PointwiseSVM(C=0.1, class_weight=class_weight, tol=1e-6).fit(binned, y)
    theirs = PointwiseSVM(C=0.1, class_weight=class_weight, tol=1e-8, max_iter=10**6).fit(binned.to_csr().toarray(), y)
    assert ours.gap_ <= 1e-6 * max(1, ours.objective_)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-4)
    assert ours.dual_objective_ <= theirs.objective_ + 1e-9
    assert np.isnan(theirs.gap_)
    np.testing.assert_allclose(ours.predict(binned), theirs.predict(binned.to_csr().toarray()), atol=0.02)


def test_it_is_scikit_learns_linear_svc():
    X, y, _ = judged(1)
    svc = LinearSVC(
        loss="hinge", C=0.3, random_state=0, max_iter=10_000, class_weight={0: 1, 1: (y == 0).sum() / y.sum()}
    )
    order, _ = order_by_content(X, y, np.array([0, len(y)]))  # liblinear draws its coordinates by row
    svc.fit(X[order], y[order])
    ranker = PointwiseSVM(C=0.3, class_weight="ratio").fit(X, y)
    np.testing.assert_allclose(ranker.predict(X), svc.decision_function(X), rtol=1e-6)
    margins = np.where(y == 1, 1, -1) * svc.decision_function(X)
    weight = np.where(y == 1, (y == 0).sum() / y.sum(), 1.0)
    norm = svc.coef_[0] @ svc.coef_[0] + svc.intercept_[0] ** 2
    assert ranker.objective_ == pytest.approx(0.5 * norm + 0.3 * weight @ np.maximum(0, 1 - margins))


def test_sparse_rows_query_weights_and_relevant_grades():
    X, y, qid = judged(2)
    dense, rows = (PointwiseSVM(C=0.5).fit(x, y) for x in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(dense.coef_, rows.coef_, atol=1e-3)
    weight = np.ones(15)
    weight[3] = 0
    without = PointwiseSVM(C=0.5, tol=1e-8, max_iter=10**6).fit(X[qid != 3], y[qid != 3])
    weighted = PointwiseSVM(C=0.5, tol=1e-8, max_iter=10**6).fit(X, y, qid=qid, query_weight=weight)
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-5)
    graded = y + np.arange(300) % 2
    assert PointwiseSVM().fit(X, graded).rel_ == 1
    assert PointwiseSVM(convention="mslr").fit(X, graded).rel_ == 2
    assert PointwiseSVM(convention="mslr").fit(X, y).rel_ == 1  # two grades: the higher
    for wrong in ("balanced", {0: 1}, 3):
        with refused(InvalidInputError, argument="class_weight"):
            PointwiseSVM(class_weight=wrong).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_one_class_and_early_stop():
    X, y, _ = judged(3)
    flat = PointwiseSVM().fit(X, np.zeros(len(y)))
    assert flat.status_ == Status.NOTHING_TO_LEARN.value
    assert not flat.predict(X).any()
    with pytest.warns(ConvergenceWarning):
        PointwiseSVM(C=100.0, max_iter=1).fit(X, y)


@pytest.mark.parametrize("step", [PercentileInQuery(), MinMaxInQuery()])
def test_acc3_and_acc4_are_pipelines_that_are_saved_as_such(step, tmp_path):
    X, y, qid = judged(4)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    with config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [("map", step), ("bins", ScoreBinning(10, strategy="uniform", output="binned")), ("svm", PointwiseSVM(0.1))]
        )
        pipeline.fit(X, y, qid=qid)
        scores = pipeline.predict(X, qid=qid)
        by_hand = PointwiseSVM(0.1)
        bins = ScoreBinning(10, strategy="uniform", output="binned").fit(X)
        mapped = bins.transform(type(step)().fit_transform(X, qid=qid))
        np.testing.assert_array_equal(by_hand.fit(mapped, y, qid=qid).predict(mapped), scores)
        save_model(pipeline, tmp_path / "acc.json")
        loaded = load_model(tmp_path / "acc.json")
        np.testing.assert_array_equal(loaded.predict(X, qid=qid), scores)
