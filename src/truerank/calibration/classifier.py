"""Any scikit-learn classifier with calibrated probabilities, from cross-validated scores."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, assert_all_finite, indexable
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from truerank.calibration.base import Calibrator, probability_pairs
from truerank.calibration.decisions import decide
from truerank.calibration.names import calibrator_class
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.core.fitting import fits_whole
from truerank.core.threads import run_blocks

# Log-odds of classifiers whose probabilities reach 0 and 1 (forests) are held within ±log(10⁶).
_LARGEST_LOG_ODDS = float(np.log(1e6))


def make_calibrator(method: Any, *, monotone: bool | None = None) -> Calibrator:
    """A new calibrator from its name ("asymmetric-laplace"), or from an unfitted one, which is cloned.

    `monotone` sets that parameter of a calibrator that is given by name; None leaves its default.
    """
    if isinstance(method, str):
        return calibrator_class(method)(**({} if monotone is None else {"monotone": monotone}))
    if isinstance(method, Calibrator):
        return clone(method)
    raise InvalidInputError(f"method must be the name of a calibrator or a calibrator, got {method!r}")


def classifier_scores(estimator: Any, X: Any) -> np.ndarray:
    """Scores of the second class of a fitted binary classifier, float64 (n,), that do not saturate.

    The decision function where there is one; else the difference of the joint log probabilities (naive Bayes, also as
    the last step of a pipeline, as what a search found, or both), which are not normalised and so keep log-odds of any
    size; else the log-odds of `predict_log_proba` or `predict_proba`, held within ±log(10⁶).
    """
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    last, before = estimator, []
    while True:
        if hasattr(last, "best_estimator_"):
            last = last.best_estimator_
        elif hasattr(last, "steps") and len(last.steps) > 1:
            before.append(last[:-1])
            last = last[-1]
        else:
            break
    if hasattr(last, "predict_joint_log_proba"):
        for transformer in before:
            X = transformer.transform(X)
        joint = last.predict_joint_log_proba(X)
        return np.asarray(joint[:, 1] - joint[:, 0], dtype=np.float64)
    with np.errstate(divide="ignore"):
        if hasattr(estimator, "predict_log_proba"):
            log_p = np.asarray(estimator.predict_log_proba(X), dtype=np.float64)
        elif hasattr(estimator, "predict_proba"):
            log_p = np.log(np.asarray(estimator.predict_proba(X), dtype=np.float64))
        else:
            raise InvalidInputError(
                f"{type(estimator).__name__} has neither decision_function nor predict_proba; calibration needs scores"
            )
    log_p = np.maximum(log_p, -1e300)
    return np.clip(log_p[:, 1] - log_p[:, 0], -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrated probabilities for a classifier, binary, multi-class or multi-label.

    The scores that the calibrator is fitted to come from cross-validation on the training data; the classifier is then
    refitted on all of it (Bennett 2003, section 4.5). Several classes and several labels are taken one against the
    rest; the probabilities of several classes are divided by their sum.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier; its decision function, or the log-odds of a naive Bayes, are the scores
        (`classifier_scores`). A `FrozenEstimator` stays as it is: the data then serve for calibration only.
    method : str or Calibrator, default "asymmetric-laplace"
        Name of a calibrator, or one that is cloned: `SplineCalibrator(monotone=True)`.
    cv : int, splitter or iterable, default 5
        As in scikit-learn; an int makes stratified folds. A class with fewer rows than folds lowers the number of
        folds; a label with a single row (or none) on either side gets the smoothed prior, with a warning.
    n_jobs : int, optional
        Threads over classes or labels.

    Attributes
    ----------
    classes_ : array (classes,) or list of arrays (labels,)
    estimators_ : list
        One fitted binary classifier a class or label (one for two classes); None where only the prior is given.
    calibrators_ : list of Calibrator
    n_features_in_ : int
        Where the estimator has it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, random_state=0)
    >>> classifier = CalibratedClassifier(LogisticRegression(), method="platt").fit(X, y)
    >>> classifier.predict_proba(X[:3]).shape
    (3, 2)
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("classes_", "estimators_", "calibrators_")

    def __init__(
        self, estimator: Any, method: Any = "asymmetric-laplace", cv: Any = 5, n_jobs: int | None = None
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.classifier_tags.multi_label = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Cross-validate, calibrate, refit.

        Parameters
        ----------
        X : whatever the estimator takes, n rows
        y : array (n,) of labels, or 0/1 indicator (n, labels)
        sample_weight : array (n,), optional
            Passed to the estimator where it takes weights, and to the calibrator.
        """
        make_calibrator(self.method)
        (X,) = indexable(X)
        if y is None:
            raise InvalidInputError("CalibratedClassifier requires y to be passed, but the target y is None")
        targets, names = self._targets(y)
        n = _num_samples(X)
        if len(targets[0]) != n:
            raise InvalidInputError(f"y has {len(targets[0])} rows but X has {n}: inconsistent numbers of samples")
        if sample_weight is not None:
            from truerank.calibration.base import as_weight

            sample_weight = as_weight(sample_weight, n)
        fits = run_blocks(
            lambda number: self._fit_one(X, targets[number], names[number], sample_weight),
            [(number,) for number in range(len(targets))],
            self.n_jobs,
        )
        self.estimators_ = [fit[0] for fit in fits]
        self.calibrators_ = [fit[1] for fit in fits]
        for attribute in ("n_features_in_", "feature_names_in_"):
            source = next((e for e in self.estimators_ if hasattr(e, attribute)), None)
            if source is not None:
                setattr(self, attribute, getattr(source, attribute))
        return self

    def _targets(self, y: Any) -> tuple[list[np.ndarray], list[str]]:
        """One binary target (n,) for each class or label, as the labels that the estimator is to see."""
        if getattr(getattr(y, "dtype", None), "kind", "") == "f" and not hasattr(y, "tocsr"):
            assert_all_finite(y, input_name="y")
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            indicator = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
            self.classes_: Any = [np.array([0, 1]) for _ in range(indicator.shape[1])]
            columns = (indicator != 0).astype(np.int64)
            return list(np.ascontiguousarray(columns.T)), [f"label {k}" for k in range(columns.shape[1])]
        from sklearn.utils.validation import column_or_1d

        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(f"y must have at least two classes, got one class: {self.classes_.tolist()}")
        if len(self.classes_) == 2:
            return [labels], [repr(self.classes_[1])]
        return [(index == k).astype(np.int64) for k in range(len(self.classes_))], [repr(c) for c in self.classes_]

    def _fit_one(self, X: Any, target: np.ndarray, name: str, weight: Any) -> tuple[Any, Calibrator]:
        classes, index = np.unique(target, return_inverse=True)
        positive = index == 1 if len(classes) == 2 else target != 0
        rarest = min(int(positive.sum()), int((~positive).sum()))
        calibrator = make_calibrator(self.method)
        if len(classes) < 2 or rarest < 2:
            warnings.warn(
                f"class {name} has {rarest} rows on one side, too few to cross-validate: its probability is the prior",
                TruerankWarning,
                stacklevel=6,
            )
            return None, calibrator_class("platt")().fit(np.zeros(len(positive)), positive, weight)
        splits = list(self._splitter(target, rarest).split(X, target))
        scores = np.full(len(positive), np.nan)
        for train, test in splits:
            fold_weight = None if weight is None else weight[train]
            fitted = self._fit_estimator(_safe_indexing(X, train), target[train], fold_weight)
            scores[test] = classifier_scores(fitted, _safe_indexing(X, test))
        held_out = ~np.isnan(scores)
        calibrator.fit(scores[held_out], positive[held_out], None if weight is None else weight[held_out])
        return self._fit_estimator(X, target, weight), calibrator

    def _splitter(self, target: np.ndarray, rarest: int) -> Any:
        if isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool):
            if self.cv < 2:
                raise InvalidInputError(f"cv must be at least 2 folds, got {self.cv}")
            return StratifiedKFold(min(int(self.cv), rarest))
        return check_cv(self.cv, target, classifier=True)

    def _fit_estimator(self, X: Any, target: np.ndarray, weight: Any) -> Any:
        estimator = clone(self.estimator)
        if weight is not None and has_fit_parameter(estimator, "sample_weight"):
            return estimator.fit(X, target, sample_weight=weight)
        return estimator.fit(X, target)

    def log_odds(self, X: Any) -> np.ndarray:
        """Calibrated log-odds of each class or label, float64 (n, classes or labels); (n,) for two classes."""
        check_is_fitted(self, "calibrators_")
        n = _num_samples(X)
        columns = [
            calibrator.log_odds(np.zeros(n) if estimator is None else classifier_scores(estimator, X))
            for estimator, calibrator in zip(self.estimators_, self.calibrators_)
        ]
        return columns[0] if self._is_binary() else np.stack(columns, axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probabilities: (n, 2), (n, classes) with rows that add up to 1, or (n, labels)."""
        log_odds = self.log_odds(X)
        if self._is_binary():
            return probability_pairs(log_odds)
        n, k = log_odds.shape
        p = probability_pairs(log_odds.ravel())[:, 1].reshape(n, k)
        if isinstance(self.classes_, list):
            return p
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / k)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class (n,), or for several labels the indicator (n, labels) of P ≥ 1/2."""
        check_is_fitted(self, "calibrators_")
        if isinstance(self.classes_, list):
            return (self.log_odds(X) >= 0).astype(np.int64)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def decide(self, X: Any, **costs: float) -> np.ndarray:
        """Decisions of least expected cost, `decisions.decide(probabilities, **costs)`: (n,) or (n, labels).

        Raises
        ------
        InvalidInputError
            With more than two classes; use `least_expected_cost(predict_proba(X), costs)` there.
        """
        check_is_fitted(self, "calibrators_")
        if self._is_binary():
            return decide(self.predict_proba(X), **costs)
        if not isinstance(self.classes_, list):
            raise InvalidInputError("several classes need costs: least_expected_cost(predict_proba(X), costs)")
        return np.stack([decide(column, **costs) for column in self.predict_proba(X).T], axis=1)

    def _is_binary(self) -> bool:
        return not isinstance(self.classes_, list) and len(self.classes_) == 2
