"""Calibrated classifiers: scikit-learn's checks, several classes and labels, naive Bayes without saturation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from support.refusals import refused
from truerank.calibration.classifier import CalibratedClassifier, classifier_scores
from truerank.calibration.densities import AsymmetricLaplaceCalibrator
from truerank.calibration.posteriors import PlattCalibrator
from truerank.core.errors import InvalidInputError, TruerankWarning


@parametrize_with_checks([CalibratedClassifier(LogisticRegression(), method="platt", cv=2)])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def binary():
    return make_classification(400, 6, n_informative=3, weights=[0.7], flip_y=0.1, random_state=0)


def test_it_is_cross_validation_then_a_refit(binary):
    X, y = binary
    fitted = CalibratedClassifier(LinearSVC(random_state=0), "asymmetric-laplace", cv=5).fit(X, y)
    scores = cross_val_predict(LinearSVC(random_state=0), X, y, cv=StratifiedKFold(5), method="decision_function")
    expected = AsymmetricLaplaceCalibrator().fit(scores, y)
    refitted = LinearSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.log_odds(X), expected.log_odds(refitted.decision_function(X)))
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


def test_several_classes_and_threads():
    X, y = load_iris(return_X_y=True)
    fitted = CalibratedClassifier(LogisticRegression(max_iter=1000), "platt").fit(X, y)
    p = fitted.predict_proba(X)
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert fitted.score(X, y) > 0.85
    threads = CalibratedClassifier(LogisticRegression(max_iter=1000), "platt", n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.predict_proba(X), p)
    with refused(InvalidInputError, argument="costs"):
        fitted.decide(X, cost_fn=5)
    np.testing.assert_array_equal(fitted.decide(X, costs=1 - np.eye(3)), p.argmax(axis=1))
    with refused(InvalidInputError, argument="costs"):
        CalibratedClassifier(LogisticRegression(max_iter=1000), "platt").fit(X, y > 1).decide(X, costs=1 - np.eye(2))


def test_several_labels(binary):
    X, y = binary
    rare = np.zeros(len(y), dtype=int)
    rare[3] = 1
    Y = np.stack([y, 1 - y, rare], axis=1)
    with pytest.warns(TruerankWarning, match="label 2: one class has 1 row"):
        fitted = CalibratedClassifier(LogisticRegression(), "platt").fit(X, Y)
    p = fitted.predict_proba(X)
    assert p.shape == (400, 3)
    np.testing.assert_allclose(p[:, 2], 2 / 402)
    assert fitted.predict(X).shape == (400, 3)
    np.testing.assert_array_equal(fitted.decide(X, cost_fn=9.0)[:, 0], p[:, 0] >= 0.1)
    single = CalibratedClassifier(LogisticRegression(), "platt").fit(X, y)
    np.testing.assert_allclose(p[:, 0], single.predict_proba(X)[:, 1])


def test_naive_bayes_does_not_saturate():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = sparse.csr_matrix(rng.poisson(np.where(y[:, None] == 1, [60.0, 20.0], [20.0, 60.0])))
    plain, piped = MultinomialNB().fit(X, y), make_pipeline(FunctionTransformer(), MultinomialNB()).fit(X, y)
    scores = classifier_scores(plain, X)
    np.testing.assert_array_equal(classifier_scores(piped, X), scores)
    searched = GridSearchCV(
        make_pipeline(FunctionTransformer(), MultinomialNB()), {"multinomialnb__alpha": [1.0]}, cv=2
    )
    for wrapped in (searched, make_pipeline(FunctionTransformer(), searched), FrozenEstimator(piped)):
        np.testing.assert_array_equal(classifier_scores(wrapped.fit(X, y), X), scores)
    # The probabilities are 0 or 1; the log-odds are distinct, as many as there are differences of counts.
    assert np.abs(scores).max() > 37
    assert len(np.unique(scores.round(6))) > len(np.unique(plain.predict_proba(X)[:, 1]))
    assert np.isfinite(CalibratedClassifier(MultinomialNB()).fit(X, y).log_odds(X)).all()


def test_forests_and_frozen_estimators(binary):
    X, y = binary
    forest = RandomForestClassifier(10, random_state=0)
    assert np.isfinite(CalibratedClassifier(forest, "isotonic", cv=3).fit(X, y).log_odds(X)).all()
    half = X[:200], y[:200]
    frozen = FrozenEstimator(forest.fit(*half))
    fitted = CalibratedClassifier(frozen, "platt").fit(X[200:], y[200:])
    expected = PlattCalibrator().fit(classifier_scores(forest, X[200:]), y[200:])
    np.testing.assert_allclose(fitted.log_odds(X), expected.log_odds(classifier_scores(forest, X)))


def test_what_cannot_be_is_refused(binary):
    X, y = binary
    with refused(InvalidInputError, code="unknown-name"):
        CalibratedClassifier(LogisticRegression(), "plat").fit(X, y)
    with refused(InvalidInputError, argument="cv"):
        CalibratedClassifier(LogisticRegression(), "platt", cv=1).fit(X, y)
    with refused(InvalidInputError, argument="estimator"):
        classifier_scores(object(), X)
    assert np.isfinite(CalibratedClassifier(DummyClassifier(), "platt").fit(X, y).predict_proba(X)).all()


def test_weights_reach_the_estimator_and_the_calibrator(binary):
    X, y = binary
    weight = np.ones(len(y))
    unweighted = CalibratedClassifier(LogisticRegression(), "platt").fit(X, y)
    weighted = CalibratedClassifier(LogisticRegression(), "platt").fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.log_odds(X), unweighted.log_odds(X), rtol=1e-6)
    heavy = CalibratedClassifier(LogisticRegression(), "platt").fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    assert heavy.predict_proba(X)[:, 1].mean() > weighted.predict_proba(X)[:, 1].mean() + 0.1


def test_several_classes_are_calibrated_together():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    fitted = CalibratedClassifier(LinearSVC(random_state=0)).fit(X, names)
    assert type(fitted.calibrators_[0]).__name__ == "JointPool"
    assert len(fitted.estimators_) == 1
    p = fitted.predict_proba(X)
    np.testing.assert_allclose(np.log(p), fitted.predict_log_proba(X), atol=1e-9)
    np.testing.assert_allclose(1 / (1 + np.exp(-fitted.log_odds(X))), p, atol=1e-9)
    assert fitted.score(X, names) > 0.9
    bayes = CalibratedClassifier(MultinomialNB(), "temperature").fit(X, names)
    assert bayes.calibrators_[0].form == "temperature"
    scores = cross_val_predict(MultinomialNB(), X, names, cv=StratifiedKFold(5), method="predict_log_proba")
    calibrator = bayes.calibrators_[0].__class__("temperature").fit(scores, names)
    refitted = MultinomialNB().fit(X, names).predict_log_proba(X)
    np.testing.assert_allclose(bayes.predict_proba(X), calibrator.predict_proba(refitted), atol=1e-5)
    sigmoid = CalibratedClassifier(MultinomialNB(), "sigmoid").fit(X, names)
    platt = CalibratedClassifier(MultinomialNB(), "platt").fit(X, names)
    np.testing.assert_array_equal(sigmoid.predict_proba(X), platt.predict_proba(X))
    pairs = CalibratedClassifier(SVC(decision_function_shape="ovo"), "vector").fit(X, names)
    assert pairs.predict_proba(X).shape == (150, 3)
    frozen = CalibratedClassifier(FrozenEstimator(MultinomialNB().fit(X, names)), "dirichlet").fit(X, names)
    np.testing.assert_allclose(frozen.predict_proba(X).sum(axis=1), 1)


def test_two_classes_by_joint_names(binary):
    X, y = binary
    words = np.where(y == 1, "spam", "ham")
    for joint, form in (("matrix", "platt"), ("dirichlet", "beta")):
        a, b = (CalibratedClassifier(LogisticRegression(), method).fit(X, words) for method in (joint, form))
        np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
        np.testing.assert_allclose(np.log(a.predict_proba(X)), a.predict_log_proba(X), atol=1e-9)
        assert set(a.predict(X)) == {"ham", "spam"}


class Recorder(LogisticRegression):
    """Keeps what its fit is given."""

    def fit(self, X, y, tags=None, rate=None):
        self.given_ = (len(X), None if tags is None else list(tags), rate)
        assert tags is None or [X[i, 0] for i in range(len(X))] == list(tags)
        return super().fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_arguments_of_fit_reach_the_estimator_and_weights_that_it_ignores_are_named(classes):
    X, y = np.arange(30.0)[:, None], np.arange(30) % classes
    fitted = CalibratedClassifier(Recorder(), "platt", cv=3).fit(X, y, tags=X[:, 0].tolist(), rate="fast")
    assert fitted.estimators_[0].given_ == (30, X[:, 0].tolist(), "fast")
    with pytest.warns(TruerankWarning, match="Recorder does not accept sample_weight: training uses equal weights"):
        CalibratedClassifier(Recorder(), "platt", cv=3).fit(X, y, sample_weight=np.ones(30))
