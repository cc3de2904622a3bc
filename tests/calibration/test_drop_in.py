"""CalibratedClassifier in the place of scikit-learn's CalibratedClassifierCV: arguments, values, files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from support.refusals import refused
from truerank import CalibratedClassifier, load_model, save_model
from truerank.core.errors import InvalidInputError
from truerank.core.schema import check_model

TWO = make_classification(240, 6, n_informative=4, flip_y=0.2, random_state=0)
THREE = make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
NAMED = (THREE[0], np.array(["a", "b", "c"])[THREE[1]])


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("frozen", [True, False])
def test_platt_has_the_probabilities_of_scikit_learn(ensemble, frozen):
    X, y = TWO
    base = FrozenEstimator(LogisticRegression().fit(X[:80], y[:80])) if frozen else LogisticRegression()
    ours = CalibratedClassifier(base, method="sigmoid", cv=3, ensemble=ensemble).fit(X, y)
    theirs = CalibratedClassifierCV(base, method="sigmoid", cv=3, ensemble=ensemble).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert len(ours.calibrated_classifiers_) == len(theirs.calibrated_classifiers_) == (3 if ensemble else 1)


@pytest.mark.parametrize("data", [TWO, THREE, NAMED], ids=["two", "three", "named"])
def test_an_ensemble_is_the_average_of_its_members(data):
    X, y = data
    fitted = CalibratedClassifier(GaussianNB(), cv=KFold(3, shuffle=True, random_state=0), ensemble=True).fit(X, y)
    members = np.mean([one.predict_proba(X) for one in fitted.calibrated_classifiers_], axis=0)
    np.testing.assert_allclose(fitted.predict_proba(X), members, atol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), members, atol=1e-12)
    assert set(fitted.predict(X)) <= set(y)


def test_an_ensemble_of_labels_averages_each():
    X, y = TWO
    labels = np.stack([y, X[:, 0] > 0, np.arange(len(y)) == 3], axis=1).astype(int)
    with pytest.warns(UserWarning, match="too few"):
        fitted = CalibratedClassifier(GaussianNB(), method="platt", cv=3, ensemble=True).fit(X, labels)
    members = np.mean([one.predict_proba(X) for one in fitted.ensemble_], axis=0)
    np.testing.assert_allclose(fitted.predict_proba(X), members, atol=1e-12)
    check_model(fitted)


def test_prefit_is_a_frozen_estimator_and_none_a_linear_svm():
    X, y = TWO
    base = GaussianNB().fit(X[:100], y[:100])
    prefit = CalibratedClassifier(base, cv="prefit").fit(X[100:], y[100:])
    frozen = CalibratedClassifier(FrozenEstimator(base)).fit(X[100:], y[100:])
    np.testing.assert_array_equal(prefit.predict_proba(X), frozen.predict_proba(X))
    default = CalibratedClassifier(cv=None, n_jobs=2).fit(X, y)
    named = CalibratedClassifier(LinearSVC(random_state=0)).fit(X, y)
    np.testing.assert_array_equal(default.predict_proba(X), named.predict_proba(X))


def test_what_cannot_be_folds_is_refused():
    X, y = TWO
    with refused(InvalidInputError, argument="cv"):
        CalibratedClassifier(GaussianNB(), cv=len(y) + 1).fit(X, y)
    with refused(InvalidInputError, code="class-missing-in-fold", value=(1, y[:1].tolist())):
        CalibratedClassifier(GaussianNB(), method="platt", cv=LeaveOneOut(), ensemble=True).fit(X[:40], y[:40])


@pytest.mark.parametrize("data", [TWO, NAMED], ids=["two", "named"])
@pytest.mark.parametrize("settings", [{}, {"ensemble": True, "cv": 3}, {"cv": "prefit"}], ids=str)
@pytest.mark.parametrize(
    "base",
    [LinearSVC(), LogisticRegression(max_iter=2000), SGDClassifier(random_state=0), GaussianNB(), MultinomialNB(),
     BernoulliNB(), make_pipeline(StandardScaler(), LinearSVC())],
    ids=lambda base: type(base).__name__,
)  # fmt: skip
def test_a_calibrated_classifier_is_saved(base, settings, data, tmp_path):
    X, y = data[0] - data[0].min(), data[1]
    base = base.fit(X, y) if settings.get("cv") == "prefit" else base
    fitted = CalibratedClassifier(base, method="platt", **settings).fit(X, y)
    save_model(fitted, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_damaged_classifiers_are_refused(tmp_path):
    X, y = TWO
    path = tmp_path / "model.json"
    save_model(CalibratedClassifier(LinearSVC(), method="platt").fit(X, y), path)
    text = path.read_text()
    for old, new in (('"coef_"', '"coefficient_"'), ('"intercept_"', '"intercepts_"')):
        assert old in text
        path.write_text(text.replace(old, new))
        with refused(ValueError, code="unknown-attribute"):
            load_model(path)
