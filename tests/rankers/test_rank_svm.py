"""RankSVM against solvers that list the pairs, its certificate, weights, sparse rows, threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from rankers.conformance import ranker_checks
from reference.pairs import hinge_minimum, listed_pairs, pair_objective, squared_hinge_minimum
from support.made_up_rows import graded
from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.core.threads import query_blocks
from truerank.data.ranking_data import RankingData
from truerank.models.model_file import load_model, save_model
from truerank.rankers.rank_svm import RankSVM

test_scikit_learn_conformance = ranker_checks([RankSVM()])


CASES = [([30, 1, 12, 25], 2), ([9] * 6, 3), ([40, 35], 5), ([60], 1000), ([2, 3, 50], 25)]


@pytest.mark.parametrize(("sizes", "n_grades"), CASES)
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_minimum_is_that_of_the_listed_pairs(sizes, n_grades, C):
    X, y, offsets, qid = graded(7, sizes, n_grades, decimals=1)
    ranker = RankSVM(C=C, tol=1e-9).fit(X, y, qid=qid)
    value, gradient = pair_objective(ranker.coef_, X, y, offsets, C)
    assert ranker.objective_ == pytest.approx(value, rel=1e-12)
    # The certificate: half the squared gradient norm, and a lower bound on every objective.
    assert ranker.gap_ == pytest.approx(0.5 * gradient @ gradient, rel=1e-3, abs=1e-14 * value)
    _, minimum = squared_hinge_minimum(X, y, offsets, C)
    assert ranker.objective_ <= minimum * (1 + 1e-6)
    assert ranker.dual_objective_ <= minimum * (1 + 1e-12)


def test_minimum_is_that_of_liblinear_on_the_listed_pairs():
    X, y, offsets, qid = graded(8, [20, 15, 18], 3)
    pairs, _ = listed_pairs(y, offsets)
    z = X[pairs[:, 0]] - X[pairs[:, 1]]
    sign = np.where(np.arange(len(z)) % 2, 1, -1)  # LinearSVC wants two classes; -z of class -1 is the same pair
    peer = LinearSVC(C=0.02, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(z * sign[:, None], sign)
    ranker = RankSVM(C=0.02, tol=1e-12).fit(X, y, qid=qid)
    assert ranker.objective_ == pytest.approx(pair_objective(peer.coef_[0], X, y, offsets, 0.02)[0], rel=1e-8)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], atol=1e-5)


def test_two_documents_as_arithmetic():
    # One pair with z = (2,): ½w² + C(1 - 2w)² is least at w = 4C / (1 + 8C).
    ranker = RankSVM(C=0.5, tol=1e-14).fit([[2.0], [0.0]], [1, 0])
    assert ranker.coef_[0] == pytest.approx(2 / 5)
    assert ranker.objective_ == pytest.approx(0.5 * 0.16 + 0.5 * 0.04)
    assert ranker.n_pairs_ == 1


def test_a_query_weight_of_two_is_two_copies():
    X, y, _, qid = graded(12, [10, 12, 14, 9], 3)
    weight = np.array([1.0, 2.0, 0.0, 3.0])
    weighted = RankSVM(C=0.1, tol=1e-13).fit(X, y, qid=qid, query_weight=weight)
    copies = RankingData(X, y, qid).take_queries(np.repeat(np.arange(4), weight.astype(int)))
    np.testing.assert_allclose(weighted.coef_, RankSVM(C=0.1, tol=1e-13).fit(copies).coef_, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("weighting", ["rows", "queries"])
def test_weighting_by_rows_or_queries_is_a_weight_of_each_pair(weighting, loss):
    X, y, offsets, qid = graded(22, [6, 20, 1, 11, 4], 3)
    y[offsets[4] :] = 1.0  # a query without pairs
    own = np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    n_pairs = np.bincount(np.searchsorted(offsets, listed_pairs(y, offsets)[0][:, 0], side="right") - 1, minlength=5)
    size = np.array([6.0, 20, 0, 11, 0]) if weighting == "rows" else np.array([1.0, 1, 0, 1, 0])
    weight = own * size / np.maximum(n_pairs, 1)
    weight *= (own @ n_pairs) / (weight @ n_pairs)  # the same total as for single pairs
    ranker = RankSVM(C=0.05, loss=loss, weighting=weighting, tol=1e-9).fit(X, y, qid=qid, query_weight=own)
    power = 2 if loss == "squared_hinge" else 1
    value, _ = pair_objective(ranker.coef_, X, y, offsets, 0.05, weight, power=power)
    assert ranker.objective_ == pytest.approx(value, rel=1e-10)
    explicit = RankSVM(C=0.05, loss=loss, tol=1e-9).fit(X, y, qid=qid, query_weight=weight)
    assert explicit.objective_ == pytest.approx(ranker.objective_, rel=1e-8)
    copies = RankingData(X, y, qid).take_queries([0, 1, 1, 2, 3, 4])
    twice = RankSVM(C=0.05, loss=loss, weighting=weighting, tol=1e-9)
    one = twice.fit(RankingData(X, y, qid), query_weight=[1, 2, 1, 1, 1]).objective_
    assert twice.fit(copies).objective_ == pytest.approx(one, rel=1e-7)


def test_sparse_and_float32_rows():
    X, y, _, qid = graded(13, [50] * 60, 3, p=40)
    X[np.abs(X) < 1] = 0.0
    X = X.astype(np.float32)
    ranker = RankSVM(C=0.01, tol=1e-10).fit(X, y, qid=qid)
    same = RankSVM(C=0.01, tol=1e-10).fit(sparse.csr_matrix(X), y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, same.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ranker.predict(X), same.predict(sparse.csr_matrix(X)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, loss):
    X, y, _, qid = graded(13, [50] * 60, 3, p=8)
    data = RankingData(X.astype(np.float32), y, qid)
    assert data.X.dtype == np.float32
    # Small blocks, so that there are many.
    monkeypatch.setattr("truerank.solvers.newton._BLOCK_VALUES", 1 << 10)
    monkeypatch.setattr("truerank.losses.graded_pairs.query_blocks", lambda offsets: query_blocks(offsets, 300))
    fits = [RankSVM(C=0.01, loss=loss, n_jobs=n_jobs).fit(data).coef_.tobytes() for n_jobs in (None, 2, 3, 2)]
    assert len(set(fits)) == 1


def test_columns_of_very_different_scale_converge():
    X, y, _, qid = graded(14, [40] * 10, 3, p=6)
    X *= np.array([1e-3, 1.0, 1e4, 1e2, 1.0, 1e6])
    ranker = RankSVM(C=0.1, tol=1e-8).fit(X, y, qid=qid)
    assert ranker.gap_ <= 1e-8 * ranker.objective_


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_without_pairs_the_weights_are_zero():
    ranker = RankSVM().fit([[1.0], [2.0], [3.0]], [1, 1, 0], qid=[1, 1, 2])
    assert ranker.coef_.tolist() == [0.0]
    assert "nothing" in ranker.status_ or "nothing can be learned" in ranker.status_
    assert ranker.objective_ == 0.0


def test_warm_start_arrives_at_once_and_max_iter_warns():
    X, y, _, qid = graded(15, [30] * 8, 3)
    ranker = RankSVM(C=0.1, warm_start=True).fit(X, y, qid=qid)
    first = ranker.coef_
    assert ranker.fit(X, y, qid=qid).n_iter_ == 0
    assert ranker.coef_.tolist() == first.tolist()
    with pytest.warns(UserWarning, match="raise max_iter or tol"):
        RankSVM(C=10.0, max_iter=1).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    "wrong", [{"C": 0.0}, {"C": "1"}, {"loss": "log"}, {"weighting": "documents"}, {"tol": -1}, {"max_iter": 0}]
)
def test_bad_parameters(wrong):
    with refused(InvalidInputError, argument=next(iter(wrong))):
        RankSVM(**wrong).fit([[1.0], [2.0]], [0, 1])


def test_model_file_keeps_every_bit(tmp_path):
    X, y, _, qid = graded(16, [12, 13], 3)
    ranker = RankSVM().fit(X, y, qid=qid)
    save_model(ranker, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.predict(X).tobytes() == ranker.predict(X).tobytes()
    assert loaded.gap_ == ranker.gap_


@pytest.mark.parametrize(("sizes", "n_grades"), [([12, 1, 9], 2), ([10, 8], 3), ([15], 100)])
@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0])
def test_hinge_minimum_lies_between_dual_and_primal_of_the_listed_pairs(sizes, n_grades, C):
    X, y, offsets, qid = graded(17, sizes, n_grades, decimals=1)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(sizes))
    ranker = RankSVM(C=C, loss="hinge", tol=1e-7).fit(X, y, qid=qid, query_weight=weight)
    assert ranker.gap_ <= 1e-7 * ranker.objective_
    value, _ = pair_objective(ranker.coef_, X, y, offsets, C, weight, power=1)
    assert ranker.objective_ == pytest.approx(value, rel=1e-12)
    _, primal, dual = hinge_minimum(X, y, offsets, C, weight)
    assert dual <= ranker.objective_ * (1 + 1e-12)
    assert ranker.objective_ <= primal * (1 + 1e-7)
    # The reference's own gap is small enough to tell.
    assert primal - dual <= 1e-4 * primal


def test_hinge_minimum_is_that_of_liblinear_on_the_listed_pairs():
    X, y, offsets, qid = graded(18, [14, 10, 12], 3)
    pairs, _ = listed_pairs(y, offsets)
    z = X[pairs[:, 0]] - X[pairs[:, 1]]
    sign = np.where(np.arange(len(z)) % 2, 1, -1)
    peer = LinearSVC(C=0.05, loss="hinge", fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    peer.fit(z * sign[:, None], sign)
    ranker = RankSVM(C=0.05, loss="hinge", tol=1e-8).fit(X, y, qid=qid)
    assert ranker.objective_ == pytest.approx(pair_objective(peer.coef_[0], X, y, offsets, 0.05, power=1)[0], rel=1e-6)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], atol=1e-3)


def test_hinge_query_weight_of_two_is_two_copies_and_its_round_limit_warns():
    X, y, _, qid = graded(19, [10, 12, 14], 3)
    weight = np.array([1.0, 2.0, 0.0])
    weighted = RankSVM(C=0.1, loss="hinge", tol=1e-9).fit(X, y, qid=qid, query_weight=weight)
    copies = RankingData(X, y, qid).take_queries(np.repeat(np.arange(3), weight.astype(int)))
    copied = RankSVM(C=0.1, loss="hinge", tol=1e-9).fit(copies)
    assert weighted.objective_ == pytest.approx(copied.objective_, rel=1e-8)
    with pytest.warns(UserWarning, match="raise max_iter or tol"):
        RankSVM(C=10.0, loss="hinge", max_iter=2).fit(X, y, qid=qid)


def test_hinge_takes_sparse_and_float32_rows():
    X, y, _, qid = graded(20, [30] * 4, 3, p=12)
    X[np.abs(X) < 1] = 0.0
    X = X.astype(np.float32)
    dense = RankSVM(C=0.01, loss="hinge").fit(X, y, qid=qid)
    thin = RankSVM(C=0.01, loss="hinge").fit(sparse.csr_matrix(X), y, qid=qid)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=2e-6)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix])
def test_huge_columns_are_brought_to_size_before_they_are_squared(stored):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    plain, *huge = (stored(X * [1.0, 2.0**power, 1.0]) for power in (40, 300, 490))
    expected = RankSVM().fit(plain, y, qid=qid).predict(plain)
    for rows in huge:
        np.testing.assert_allclose(RankSVM().fit(rows, y, qid=qid).predict(rows), expected, rtol=1e-6)
