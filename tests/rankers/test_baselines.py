"""Ridge against scikit-learn on centred data, a single column, and chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from rankers.conformance import ranker_checks
from support.refusals import refused
from truerank import RandomRanker, RidgeRanker, SingleFeature, evaluate, load_model, save_model
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.schema import check_model

test_scikit_learn_conformance = ranker_checks([RidgeRanker(), SingleFeature(), RandomRanker()])


def some_data(seed, n=120, p=6, m=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1, 10, 0.1, 1, 1, 1])[:p]
    qid = np.sort(rng.integers(0, m, n))
    return X, rng.integers(0, 3, n).astype(float), qid


@pytest.mark.parametrize("alpha", [0.0, 0.3, 50.0])
def test_ridge_is_scikit_learns_on_data_centred_by_query(alpha):
    X, y, qid = some_data(1)
    weight = np.random.default_rng(2).integers(0, 4, len(np.unique(qid))).astype(float)
    Xc, yc = X.copy(), y.copy()
    for q in np.unique(qid):
        Xc[qid == q] -= X[qid == q].mean(axis=0)
        yc[qid == q] -= y[qid == q].mean()
    row_weight = weight[np.unique(qid, return_inverse=True)[1]]
    expected = Ridge(alpha=alpha, fit_intercept=False, solver="svd").fit(Xc, yc, sample_weight=row_weight).coef_
    for rows in (X, sparse.csr_matrix(X)):
        ranker = RidgeRanker(alpha, scale="never").fit(rows, y, qid=qid, query_weight=weight)
        np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-9, atol=1e-12)
    again = [RidgeRanker(alpha, n_jobs=n).fit(X, y, qid=qid).coef_ for n in (1, 2, 4)]
    assert np.array_equal(again[0], again[1])
    assert np.array_equal(again[0], again[2])


@pytest.mark.filterwarnings("ignore:.*learned nothing")
def test_ridge_with_repeated_and_constant_columns():
    X, y, qid = some_data(3)
    wide = np.column_stack([X, X[:, 0], np.ones(len(X)), qid])
    ranker = RidgeRanker(0.0).fit(wide, y, qid=qid)
    plain = RidgeRanker(0.0).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_[0], ranker.coef_[6], rtol=1e-8)
    np.testing.assert_allclose(ranker.coef_[1:6], plain.coef_[1:], rtol=1e-8)
    np.testing.assert_allclose(ranker.coef_[7:], 0, atol=1e-10)
    nothing = RidgeRanker().fit(X, np.ones(len(X)), qid=qid)
    assert not nothing.coef_.any()
    assert "nothing can be learned" in nothing.status_


def test_ridge_says_at_once_that_wide_data_are_not_for_it():
    X = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [5, 99_999])), shape=(4, 100_000))
    with refused(InvalidInputError, argument="X", code="too-wide"):
        RidgeRanker().fit(X, [0, 1, 0, 1], qid=[1, 1, 2, 2])


def test_ridge_adds_few_matrices_at_a_time(monkeypatch):
    from truerank.rankers import linear

    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(1500, 300)), rng.integers(0, 3, 1500), np.arange(1500) // 10
    monkeypatch.setattr(linear, "_BLOCK_VALUES", 1)  # blocks of 64 rows
    usual = RidgeRanker().fit(X, y, qid=qid).coef_
    monkeypatch.setattr(linear, "_PARTS_BYTES", 1)
    most, run = [], linear.run_blocks
    monkeypatch.setattr(linear, "run_blocks", lambda work, blocks, n: most.append(len(blocks)) or run(work, blocks, n))
    np.testing.assert_array_equal(RidgeRanker().fit(X, y, qid=qid).coef_, usual)
    assert len(most) > 4
    assert max(most) == 4


def test_query_weight_two_is_two_copies():
    X, y, qid = some_data(4, m=5)
    weight = np.array([1.0, 2.0, 1.0, 1.0, 1.0])
    twice = qid == 1
    copied = RidgeRanker().fit(
        np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]), qid=np.concatenate([qid, np.full(twice.sum(), 9)])
    )
    np.testing.assert_allclose(RidgeRanker().fit(X, y, qid=qid, query_weight=weight).coef_, copied.coef_, rtol=1e-10)


def test_single_feature_by_number_name_and_choice():
    pandas = pytest.importorskip("pandas")
    X, y, qid = some_data(5)
    assert np.array_equal(SingleFeature(2).fit(X, y, qid=qid).predict(X), X[:, 2])
    assert np.array_equal(SingleFeature(2, ascending=True).fit(X, y, qid=qid).predict(X), -X[:, 2])
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    assert SingleFeature("c").fit(frame, y, qid=qid).feature_ == 2
    chosen = SingleFeature(measure="AP").fit(X, y, qid=qid)
    means = [[evaluate(y, s * X[:, k], ["AP"], qid=qid)["AP"] for k in range(6)] for s in (1, -1)]
    assert chosen.train_score_ == pytest.approx(np.max(means), abs=1e-12)
    assert means[0 if chosen.sign_ == 1 else 1][chosen.feature_] == np.max(means)


def test_single_feature_puts_missing_values_last(tmp_path):
    X = np.array([[1.0], [np.nan], [-5.0], [-1e150]])
    ranker = SingleFeature(0).fit(X, [0, 1, 2, 0])
    assert ranker.rank(X).tolist() == [1, 4, 2, 3]
    assert SingleFeature(0, ascending=True).fit(X, [0, 1, 2, 0]).rank(X).tolist() == [3, 4, 2, 1]
    save_model(ranker, tmp_path / "m.json")
    assert np.array_equal(load_model(tmp_path / "m.json").predict(X), ranker.predict(X))
    ranker.feature_ = 3
    with refused(ModelFileError, argument="feature_"):
        check_model(ranker)


@pytest.mark.parametrize("feature", [-1, 6, 1.5, True, "title"])
def test_single_feature_names_what_is_wrong(feature):
    X, y, qid = some_data(6)
    with refused(InvalidInputError, argument="feature"):
        SingleFeature(feature).fit(X, y, qid=qid)


def test_random_scores_are_uniform_and_belong_to_the_row(tmp_path):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20_000, 3))
    X[0] = [0.0, -0.0, np.nan]
    y = rng.integers(0, 2, len(X))
    qid = np.zeros(len(y))
    ranker = RandomRanker(random_state=5).fit(X, y, qid=qid)
    scores = ranker.predict(X)
    assert 0 <= scores.min() < scores.max() < 1
    # Kolmogorov-Smirnov's distance at n = 20,000 exceeds 0.0138 once in a thousand.
    assert np.abs(np.sort(scores) - (np.arange(len(X)) + 0.5) / len(X)).max() < 0.0138
    assert np.abs(np.corrcoef(np.column_stack([X[1:], scores[1:], y[1:]]).T)[3, [0, 1, 2, 4]]).max() < 0.03
    order = rng.permutation(len(X))
    assert np.array_equal(ranker.predict(X[order]), scores[order])
    assert ranker.predict([[-0.0, 0.0, np.nan]])[0] == scores[0]
    other = RandomRanker(random_state=6).fit(X, y, qid=qid).predict(X)
    assert abs(np.corrcoef(other, scores)[0, 1]) < 0.03
    save_model(ranker, tmp_path / "m.json")
    assert np.array_equal(load_model(tmp_path / "m.json").predict(X), scores)
