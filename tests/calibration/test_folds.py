"""Folds whose training part lacks a class are refused, or never made."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from truerank import CalibratedClassifier, CalibratedRanker, PooledCalibrator, RidgeRanker, TextClassifier
from truerank.calibration.pool import folds_of
from truerank.core.errors import InvalidInputError

RNG = np.random.default_rng(0)
CLASS = np.repeat([0, 1, 2], 60)
X = RNG.normal(size=(180, 2)) + np.array([[0, 0], [6, 0], [0, 6]])[CLASS]


def lacking(model, *rows, **more):
    """Return the fold (0: none holds it out) and the class or grade that it lacks."""
    with pytest.raises(InvalidInputError) as caught:
        model.fit(*rows, **more)
    assert caught.value.code in ("class-missing-in-fold", "grade-missing-in-fold")
    return caught.value.value


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(random_state=0)])
def test_a_fold_without_a_class_is_refused_by_name(estimator):
    assert lacking(CalibratedClassifier(estimator, cv=KFold(3)), X, CLASS) == (1, 0)
    assert lacking(CalibratedClassifier(estimator, cv=KFold(2)), X[:120], CLASS[:120]) == (1, 0)
    words = np.array(["low", "mid", "top"])[CLASS]
    assert lacking(CalibratedClassifier(estimator, cv=TimeSeriesSplit(3)), X, words) in [(1, "mid"), (1, "top")]
    labels = np.stack([CLASS % 2, CLASS == 2], axis=1).astype(int)
    assert lacking(CalibratedClassifier(estimator, cv=KFold(3)), X, labels) in [(2, 1), (3, 1)]
    # A row of weight 0 is no row.
    weight = np.where((CLASS == 1) & (np.arange(180) % 60 > 2), 0.0, 1.0)
    folds = PredefinedSplit(np.where(CLASS == 1, 0, np.arange(180) % 2))
    assert lacking(CalibratedClassifier(GaussianNB(), cv=folds), X, CLASS, weight) == (1, 1)
    # A class that is never held out has nothing to be calibrated on.
    part = [(np.arange(0, 180, 2), np.arange(1, 120, 2))]
    assert lacking(CalibratedClassifier(estimator, cv=part), X, CLASS) == (0, 2)


def test_folds_with_every_class_are_taken():
    for cv in (StratifiedKFold(3), KFold(3, shuffle=True, random_state=0), 3):
        model = CalibratedClassifier(GaussianNB(), "platt", cv=cv).fit(X, CLASS)
        assert np.mean(model.predict(X) == CLASS) > 0.95
    # No fold trains a frozen estimator, so that any division will do.
    frozen = CalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, CLASS)), "platt", cv=KFold(3)).fit(X, CLASS)
    assert np.mean(frozen.predict(X) == CLASS) > 0.95


def test_texts_and_tables():
    texts = ["profit share rose", "wheat crop tonnes", "oil barrel price"] * 20
    labels = np.repeat(["a", "b"], 30)
    assert lacking(TextClassifier("naive-bayes", "platt", cv=KFold(2)), texts, labels) == (1, "a")


def test_random_folds_of_stratified_rows():
    """Trials: with an int, each class of two rows or more is in every fold's training part."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, size=int(rng.integers(8, 40)), p=[0.6, 0.3, 0.1])
        if len(np.unique(y)) < 3:
            continue
        rows = rng.normal(size=(len(y), 2)) + np.array([[0, 0], [4, 0], [0, 4]])[y]
        p = CalibratedClassifier(GaussianNB(), "platt").fit(rows, y).predict_proba(rows)
        assert np.isfinite(p).all()


def test_rankers_folds_that_train_on_one_grade_are_refused():
    qid = np.repeat(np.arange(10), 6)
    rows = RNG.normal(size=(60, 3))
    y = np.zeros(60)
    y[:3] = 1  # relevant documents in one query alone
    fold, grade = lacking(CalibratedRanker(RidgeRanker(), "platt"), rows, y, qid=qid)
    assert fold in range(1, 6)
    assert grade == 1
    y[7] = 1
    model = CalibratedRanker(RidgeRanker(), "platt", cv=10).fit(rows, y, qid=qid)
    assert np.isfinite(model.predict_proba(rows)).all()


def test_groups_are_dealt_so_that_every_fold_trains_with_both_classes():
    """Trials: whole groups in folds, with a class in as few as two groups."""
    for seed in range(500):
        rng = np.random.default_rng(seed)
        n_groups = int(rng.integers(3, 12))
        group = np.repeat(np.arange(n_groups), 5)
        y = np.zeros(len(group), dtype=bool)
        for one in rng.choice(n_groups, size=2, replace=False):
            y[5 * one : 5 * one + int(rng.integers(1, 6))] = True
        if rng.uniform() < 0.3:
            y = ~y
        if min(len(np.unique(group[y])), len(np.unique(group[~y]))) < 2:
            continue
        fold = folds_of(y, group, int(rng.integers(2, 6)), np.random.default_rng(seed))
        assert len(np.unique(fold * n_groups + group)) == n_groups  # a group has one fold
        for number in np.unique(fold):
            assert len(np.unique(y[fold != number])) == 2


def test_a_class_in_one_group_leaves_the_safest_method():
    group = np.repeat(np.arange(8), 10)
    y = (group == 3) & (np.arange(80) % 2 == 0)
    pool = PooledCalibrator().fit(RNG.normal(size=80) + y, y, groups=group)
    assert pool.methods_ == ["platt"]
