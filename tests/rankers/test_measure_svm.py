"""MeasureSVM: parameters, certificate, C path, binned scores, model file, conformance, real data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.matrices.binned import BinnedMatrix
from truerank.measures import AP, nDCG
from truerank.models.model_file import load_model, save_model
from truerank.rankers.measure_svm import MeasureSVM
from truerank.rankers.rank_svm import RankSVM
from truerank.solvers.result import Status

test_scikit_learn_conformance = ranker_checks([MeasureSVM(rel=1, C=0.1), MeasureSVM("ROC", C=0.1, rel=1)])


def judged(seed=0, m=30, p=5, noise=0.7):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(m), rng.integers(3, 15, m))
    X = rng.normal(size=(len(qid), p))
    y = (X @ np.array([2.0, -1, 0.5, 0, 0])[:p] + noise * rng.normal(size=len(qid)) > 1).astype(float)
    return X, y, qid


@pytest.mark.parametrize("measure", ["AP", "ROC", "RR", "nDCG", "nDCG@3", nDCG(convention="letor3", short="pad") @ 5])
def test_every_measure_learns_and_certifies(measure):
    X, y, qid = judged()
    ranker = MeasureSVM(measure, C=5.0).fit(X, y, qid=qid)
    assert 0 <= ranker.gap_ <= 1e-4 * max(1, ranker.objective_)
    assert ranker.gap_ == pytest.approx(ranker.objective_ - ranker.dual_objective_)
    assert ranker.status_ == Status.CONVERGED.value
    assert np.corrcoef(ranker.coef_, [2, -1, 0.5, 0, 0])[0, 1] > 0.95
    data = RankingData(X, y, qid)
    kept = np.array([0 < y[qid == q].sum() < (qid == q).sum() for q in range(30)])
    assert ranker.n_queries_left_out_ == (~kept).sum()
    assert 1 - ranker.score(data.take_queries(kept)) <= ranker.loss_bound_ + 1e-9


def test_n_slack_has_the_same_optimum():
    X, y, qid = judged(1)
    one, many = (MeasureSVM(C=3.0, tol=1e-8, solver=name).fit(X, y, qid=qid) for name in ("1-slack", "n-slack"))
    assert abs(one.objective_ - many.objective_) <= 2e-8 * max(1, one.objective_)
    np.testing.assert_allclose(one.coef_, many.coef_, atol=1e-3)
    assert many.n_iter_ < one.n_iter_


@pytest.mark.parametrize("slack_tol", [0.1, 0.01, 0.001])
def test_a_tolerance_on_each_slack_bounds_the_gap(slack_tol):
    """Algorithm 1 stops when no constraint is violated by more than ε; then P - D <= C Σ v_i ε = C ε."""
    X, y, qid = judged(1)
    C = 30.0
    exact = MeasureSVM(C=C, tol=1e-8, solver="n-slack").fit(X, y, qid=qid)
    loose = MeasureSVM(C=C, tol=1e-8, solver="n-slack", slack_tol=slack_tol).fit(X, y, qid=qid)
    assert loose.n_iter_ < exact.n_iter_
    assert (
        1e-8 * loose.objective_ < loose.gap_ <= 1.2 * C * slack_tol
    )  # the small program is solved to a tenth of a gap
    assert loose.objective_ >= exact.dual_objective_
    assert loose.status_ == Status.CONVERGED.value


def test_a_tolerance_on_each_slack_needs_a_slack_for_each_query():
    X, y, qid = judged(1)
    for settings in ({}, {"measure": "nDCG@3", "solver": "n-slack"}):
        with refused(InvalidInputError, argument="slack_tol"):
            MeasureSVM(slack_tol=0.1, **settings).fit(X, y, qid=qid)


def test_weights_are_those_of_rank_svm_for_roc():
    """ROC with v = 2w is the pairwise hinge with weights 1/(R N); the squared hinge only points the same way."""
    X, y, qid = judged(2, m=12)
    roc = MeasureSVM("ROC", C=1.0).fit(X, y, qid=qid)
    rank = RankSVM(C=0.1).fit(X, y, qid=qid)
    cosine = roc.coef_ @ rank.coef_ / np.linalg.norm(roc.coef_) / np.linalg.norm(rank.coef_)
    assert cosine > 0.95


def test_relevant_grades():
    X, y, qid = judged(3)
    graded = y * 2 + (np.arange(len(y)) % 5 == 0)
    assert MeasureSVM().fit(X, graded, qid=qid).rel_ == 1
    assert MeasureSVM(convention="mslr").fit(X, graded, qid=qid).rel_ == 2
    assert MeasureSVM("AP(rel=2)").fit(X, graded, qid=qid).rel_ == 2
    assert MeasureSVM(rel=1).fit(X, graded, qid=qid).rel_ == 1
    by_rel, by_hand = MeasureSVM(AP, rel=2).fit(X, graded, qid=qid), MeasureSVM().fit(X, y, qid=qid)
    assert np.array_equal(by_rel.coef_, by_hand.coef_)
    assert np.array_equal(MeasureSVM().fit(X, y * 4 - 1, qid=qid).coef_, by_hand.coef_)


def test_path_over_C_is_chosen_on_validation_queries_by_any_measure():
    X, y, qid = judged(4, m=60, noise=2.0)
    train, valid = qid < 30, qid >= 30
    eval_set = (X[valid], y[valid], qid[valid])
    ranker = MeasureSVM(C=[10.0, 0.001, 0.1], validation_measure="nDCG@5")
    ranker.fit(X[train], y[train], qid=qid[train], eval_set=eval_set)
    assert [step["C"] for step in ranker.path_] == [0.001, 0.1, 10.0]
    values = [step["validation"] for step in ranker.path_]
    assert [0.001, 0.1, 10.0][int(np.argmax(values))] == ranker.C_
    with refused(InvalidInputError, code="measure"):
        MeasureSVM(C=[0.1, 1.0], validation_measure="").fit(X[train], y[train], qid=qid[train], eval_set=eval_set)
    alone = MeasureSVM(C=ranker.C_).fit(X[train], y[train], qid=qid[train])
    assert abs(alone.objective_ - ranker.objective_) <= 2e-4 * max(1, alone.objective_)
    data = RankingData(X[valid], y[valid], qid[valid])
    assert (nDCG @ 5).mean(data.judgements(), ranker.predict(data)) == pytest.approx(max(values))
    with refused(InvalidInputError, argument="C"):
        MeasureSVM(C=[1.0, 2.0]).fit(X, y, qid=qid)
    for wrong in ([], [1.0, -1.0], 0, "1"):
        with refused(InvalidInputError, argument="C"):
            MeasureSVM(C=wrong).fit(X, y, qid=qid)


def test_binned_scores_equal_the_dense_binary_matrix():
    X, y, qid = judged(5)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    binning = ScoreBinning(n_thresholds=7, strategy="quantile", output="binned").fit(X)
    binned = binning.transform(X)
    one = MeasureSVM(C=2.0, tol=1e-7).fit(binned, y, qid=qid)
    two = MeasureSVM(C=2.0, tol=1e-7).fit(binned.to_csr().toarray(), y, qid=qid)
    assert abs(one.objective_ - two.objective_) <= 2e-7 * max(1, one.objective_)
    np.testing.assert_allclose(one.predict(binned), two.predict(binned.to_csr().toarray()), atol=2e-3)
    assert len(one.coef_) == binned.n_binary
    name, weight = next(iter(one.feature_weights().items()))
    assert name.startswith("feature ")
    assert abs(weight) == np.abs(one.coef_).max()
    data = RankingData(binned, y, qid)
    assert np.array_equal(MeasureSVM(C=2.0, tol=1e-7).fit(data).coef_, one.coef_)


def test_binned_scores_with_other_edges_or_none_are_refused():
    X, y, qid = judged(6)
    binned = ScoreBinning(n_thresholds=5, output="binned").fit_transform(X)
    ranker = MeasureSVM().fit(binned, y, qid=qid)
    with refused(InvalidInputError, code="other-edges"):
        ranker.predict(BinnedMatrix.from_values(X, [[0.0]] * 5))
    with refused(InvalidInputError, code="binned"):
        ranker.predict(X)
    with refused(InvalidInputError, code="binned"):
        MeasureSVM().fit(X, y, qid=qid).predict(binned)
    with refused(InvalidInputError, code="binned"):
        MeasureSVM().fit(binned, y, qid=qid, eval_set=(X, y, qid))


def test_binned_scores_have_no_names_of_an_earlier_fit():
    X, y, qid = judged(6)
    binned = ScoreBinning(n_thresholds=5, output="binned").fit_transform(X)
    names = [f"f{k}" for k in range(X.shape[1])]
    ranker = MeasureSVM().fit(RankingData(X, y, qid, feature_names=names)).fit(binned, y, qid=qid)
    assert not hasattr(ranker, "feature_names_in_")
    with refused(InvalidInputError, code="width"):
        ranker.predict(BinnedMatrix.from_values(X[:, :2], [[0.0]] * 2))


def test_model_file_keeps_the_certificate(tmp_path):
    X, y, qid = judged(7)
    binned = ScoreBinning(n_thresholds=5, output="binned").fit_transform(X)
    for rows in (X, binned):
        ranker = MeasureSVM(nDCG @ 5, C=[0.5, 1.0], tol=1e-6).fit(rows, y, qid=qid, eval_set=(rows, y, qid))
        save_model(ranker, tmp_path / "model.json")
        loaded = load_model(tmp_path / "model.json")
        assert np.array_equal(loaded.predict(rows), ranker.predict(rows))
        for name in ("objective_", "dual_objective_", "gap_", "loss_bound_", "C_", "n_iter_", "round_", "status_"):
            np.testing.assert_equal(getattr(loaded, name), getattr(ranker, name))
        np.testing.assert_equal(loaded.path_, ranker.path_)
        loaded.coef_ = loaded.coef_[1:]
        with refused(ModelFileError, argument="coef_", code="shape"):
            check_model(loaded)


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_early_stop_and_nothing_to_learn_are_explained():
    X, y, qid = judged(8)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        ranker = MeasureSVM(C=100.0, max_iter=2).fit(X, y, qid=qid)
    assert ranker.gap_ > 1e-4 * ranker.objective_
    empty = MeasureSVM().fit(X, np.zeros(len(y)), qid=qid)
    assert empty.status_ == Status.NOTHING_TO_LEARN.value
    assert not empty.coef_.any()
    assert empty.n_queries_left_out_ == 30


def test_row_order_and_query_names_do_not_matter():
    X, y, qid = judged(9)
    ranker = MeasureSVM(tol=1e-7).fit(X, y, qid=qid)
    order = np.concatenate([np.flatnonzero(qid == q)[::-1] for q in np.random.default_rng(0).permutation(30)])
    moved = MeasureSVM(tol=1e-7).fit(X[order], y[order], qid=[f"q{q}" for q in qid[order]])
    np.testing.assert_allclose(moved.coef_, ranker.coef_, atol=2e-3)


@pytest.mark.data
def test_mq2008_fold_within_a_tight_gap(collections):
    from truerank.io.letor.read import read_letor

    data = read_letor(collections / "letor4-mq2008" / "S1.txt.gz")
    ranker = MeasureSVM(rel=1, C=10.0, tol=1e-8).fit(data)
    assert ranker.gap_ <= 1e-8 * ranker.objective_
    assert ranker.n_queries_left_out_ == 52 + sum(
        bool((data.y[a:b] >= 1).all()) for a, b in zip(data.offsets[:-1], data.offsets[1:])
    )
    assert ranker.score(data) > 0.45


def test_threads_do_not_show_in_the_weights_of_binned_scores():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(70_000, 8)).astype(np.float32)
    X[rng.random(X.shape) < 0.9] = np.nan
    y = (np.nansum(X, axis=1) + rng.normal(size=70_000) > 2).astype(float)
    qid = np.arange(70_000) // 30_000
    binned = ScoreBinning(20, output="binned").fit_transform(X)
    one, two = (MeasureSVM(tol=1e-2, n_jobs=jobs).fit(binned, y, qid=qid) for jobs in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    assert one.dual_objective_ == two.dual_objective_
