"""Words, mutual information, naive Bayes: arithmetic and scikit-learn as oracles."""

from __future__ import annotations

import re

import numpy as np
import pytest
from reproductions.calibration.pipelines import linear_svm, naive_bayes
from scipy import sparse
from sklearn.metrics import mutual_info_score
from sklearn.naive_bayes import MultinomialNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from truerank.core.errors import ModelFileError
from truerank.core.schema import check_model
from truerank.text.analysers import TOPIC_WORD, WORD
from truerank.text.topic_classifiers import (
    LinearSVM,
    MutualInformationSelector,
    TfIdf,
    TopicNaiveBayes,
    UnitLogCounts,
    WordCounts,
    mutual_information,
)


def expected_failures(estimator):
    if not isinstance(estimator, LinearSVM):
        return {}
    reason = "liblinear goes through the rows in a drawn order, which copies change (expected of LinearSVC too)"
    return dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        reason,
    )


@parametrize_with_checks(
    [MutualInformationSelector(), UnitLogCounts(), TopicNaiveBayes(), TfIdf(), LinearSVM()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    rates = rng.uniform(0.2, 1, (2, 30))
    return sparse.csr_matrix(rng.poisson(rates[y])), y


def test_mutual_information_is_scikit_learns(counts):
    X, y = counts
    Y = np.stack([y, np.arange(len(y)) % 3 == 0], axis=1)
    expected = [[mutual_info_score(Y[:, c], (X[:, w].toarray() > 0).ravel()) for w in range(30)] for c in (0, 1)]
    np.testing.assert_allclose(mutual_information(X, Y), expected, atol=1e-12)
    np.testing.assert_allclose(mutual_information(X.toarray(), y), expected[:1], atol=1e-12)


def test_selection_keeps_the_most_informative(counts):
    X, y = counts
    selector = MutualInformationSelector(5).fit(X, y)
    assert set(selector.kept_) == set(np.argsort(-mutual_information(X, y)[0], kind="stable")[:5])
    assert selector.transform(X).shape == (120, 5)


def test_add_one_is_scikit_learns_naive_bayes(counts):
    X, y = counts
    ours = TopicNaiveBayes("add-one").fit(X, y)
    n = np.bincount(y)
    theirs = MultinomialNB(alpha=1, class_prior=(n + 1) / (n.sum() + 2)).fit(X, y)
    joint = theirs.predict_joint_log_proba(X)
    np.testing.assert_allclose(ours.predict_joint_log_proba(X), joint, rtol=1e-10)


def test_word_prior_by_hand():
    # Counts: class 0 has (2, 0), class 1 has (1, 1); P(w) = (4/6, 2/6); two added counts.
    X, y = np.array([[2, 0], [1, 1]]), [0, 1]
    fitted = TopicNaiveBayes("word-prior").fit(X, y)
    p0, p1 = [(2 + 4 / 3) / 4, (2 / 3) / 4], [(1 + 4 / 3) / 4, (1 + 2 / 3) / 4]
    np.testing.assert_allclose(fitted.word_log_prob_, np.log([p0, p1]))
    np.testing.assert_allclose(fitted.class_log_prior_, np.log([0.5, 0.5]))


def test_unit_log_counts():
    rows = UnitLogCounts().fit_transform(np.array([[1.0, 3.0], [0.0, 0.0]]))
    length = np.hypot(np.log(2), np.log(4))
    np.testing.assert_allclose(rows, [[np.log(2) / length, np.log(4) / length], [0, 0]])


@pytest.mark.parametrize("weighting", ["log-tf", "tf-idf"])
def test_pipelines(counts, weighting):
    X, y = counts
    assert linear_svm(10, weighting=weighting).fit(X, y).score(X, y) > 0.7
    assert naive_bayes(10).fit(X, y).score(X, y) > 0.7


def test_words():
    assert re.findall(TOPIC_WORD, "in 1987 q1 rose 3.5% to mln-dlrs") == ["rose", "mln", "dlrs"]
    assert re.findall(WORD, "u.s. q1-profit: 3.5 mln_dlrs") == ["u", "s", "q1", "profit", "3", "5", "mln", "dlrs"]
    words = WordCounts(min_documents=1, word=WORD).fit(["a b b", "b c"])
    assert words.vocabulary_.tolist() == ["a", "b", "c"]
    assert words.transform(["a b b", "b c"]).toarray().tolist() == [[1, 2, 0], [0, 1, 1]]
    assert words.transform(["c d"]).toarray().tolist() == [[0, 0, 1]]


def test_damaged_parts_are_refused(counts):
    X, y = counts
    selector = MutualInformationSelector(5).fit(X, y)
    selector.kept_ = selector.kept_ + 30
    bayes, svm = TopicNaiveBayes().fit(X, y), LinearSVM().fit(X, y)
    bayes.word_log_prob_ = bayes.word_log_prob_[:, :3]
    svm.coef_ = svm.coef_ * np.nan
    words = WordCounts(1).fit(["heat flow"])
    words.vocabulary_ = np.array(["heat", "heat"])
    tfidf = TfIdf().fit(X)
    tfidf.idf_ = tfidf.idf_[:2]
    for model in (selector, bayes, svm, words, tfidf):
        with pytest.raises(ModelFileError):
            check_model(model)


def test_a_refused_fit_leaves_the_svm_as_it_was():
    X, y = np.eye(6), np.array([0, 1] * 3)
    svm = LinearSVM().fit(X, y)
    for bad in ((X[:, :3], y[:2]), (X[:, :3] * np.nan, y)):
        with pytest.raises(ValueError, match="samples|NaN"):
            svm.fit(*bad)
    assert svm.n_features_in_ == 6
    assert svm.predict(X).shape == (6,)
