"""Calibrate the probabilities of any scikit-learn classifier by cross-validated scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.svm import LinearSVC
from sklearn.utils import _safe_indexing, assert_all_finite, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from truerank.calibration.base import as_weight, log_probability_pairs, make_calibrator, probability_pairs
from truerank.calibration.decisions import decide, least_expected_cost
from truerank.calibration.joint import JointCalibrator, log_odds_of, make_joint
from truerank.calibration.pool import pooled_log_odds
from truerank.core.checks import check_not_masked, is_sparse
from truerank.core.errors import InvalidInputError, ModelFileError, warn
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.printing import counted
from truerank.core.schema import check_fields
from truerank.core.threads import run_blocks
from truerank.core.types import ArrayLike, Matrix, MatrixLike
from truerank.data.grouping import is_missing

# Methods that equal the joint methods for two classes.
_BINARY_FORMS = {"vector": "platt", "matrix": "platt", "dirichlet": "beta"}
# Bound of the log-odds of classifiers whose probabilities reach 0 and 1 (forests).
_LARGEST_LOG_ODDS = float(np.log(1e6))


def classifier_scores(estimator: object, X: MatrixLike) -> np.ndarray:
    """Return scores of the second class of a fitted binary classifier, float64 (n,), that do not saturate.

    These are its decision function, else the difference of the joint log probabilities of a naive Bayes (also inside a
    pipeline or a search), else the log-odds of `predict_log_proba` or `predict_proba`, clipped to ±log(10⁶).
    """
    scores, are_log_p = class_scores(estimator, X)
    return scores[:, 1] - scores[:, 0] if are_log_p else scores[:, 0]


def class_scores(estimator: Any, X: Any) -> tuple[np.ndarray, bool]:
    """Return scores of a fitted classifier, float64 (n, classes), and whether they are log probabilities + a constant.

    The sources are those of `classifier_scores`. The decision function of two classes has one column.
    """
    check_not_masked(X, "X")
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return scores[:, None] if scores.ndim == 1 else scores, False
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
        return np.maximum(np.asarray(last.predict_joint_log_proba(X), dtype=np.float64), -1e140), True
    with np.errstate(divide="ignore"):
        if hasattr(estimator, "predict_log_proba"):
            log_p = np.asarray(estimator.predict_log_proba(X), dtype=np.float64)
        elif hasattr(estimator, "predict_proba"):
            log_p = np.log(np.asarray(estimator.predict_proba(X), dtype=np.float64))
        else:
            raise InvalidInputError(
                f"{type(estimator).__name__} has neither decision_function nor predict_proba. Calibration requires one",
                argument="estimator",
            )
    # No class is further below the best than the bound on log-odds.
    return np.maximum(log_p, log_p.max(axis=1, keepdims=True) - _LARGEST_LOG_ODDS), True


@parameters
class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Calibrate the probabilities of a binary, multi-class or multi-label classifier.

    Cross-validation on the training data gives the scores that the calibrator is fitted to. The classifier is then
    refitted on all data (Bennett 2003, section 4.5). If there are several labels, each has its own calibrator. Several
    classes are calibrated together from the classifier's scores of each class. A classifier that supports only two
    classes is fitted to each class against the rest. The default, "pool", averages calibrators with weights from their
    cross-validated log losses (`pool`, and `joint` for several classes).

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier (`classifier_scores` gives its scores). A `FrozenEstimator` is not refitted: all
        data are used for calibration.
    method : str or Calibrator, default "pool"
        Name of a calibrator, or a calibrator to clone: `SplineCalibrator(monotone=True)`. scikit-learn's "sigmoid" is
        "platt". For several classes, "temperature", "vector", "matrix", "dirichlet" and "pool" are fitted jointly. The
        others are fitted to each class against the rest, and the probabilities are divided by their sum. For two
        classes or several labels, "vector" and "matrix" equal "platt", and "dirichlet" equals "beta".
    cv : int, splitter or iterable, default 5
        As in scikit-learn. An int is the number of stratified folds, at most the rows of the rarest class. A label with
        fewer than two rows on one side gets the smoothed prior as its probability, with a warning. Every fold must
        train with every class that has two rows or more, and every such class must be held out. None is 5. "prefit", as
        in older releases of scikit-learn: the estimator is fitted, as in a `FrozenEstimator`.
    n_jobs : int, optional
        Threads over labels.
    ensemble : bool or "auto", default "auto"
        True: keep the classifier of each fold, with a calibrator of the rows that it did not see, and average their
        probabilities. With False and "auto", one calibrator is fitted to all held-out scores, and a classifier to all
        rows.

    Attributes
    ----------
    classes_ : array (classes,) or list of arrays (labels,)
    estimators_, calibrators_ : lists
        One fitted classifier, or one for each label (None if the probability is the prior), and their calibrators. With
        `ensemble=True`, those of each fold follow each other.
    ensemble_ : list of CalibratedClassifier
        With `ensemble=True`, one for each fold.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, random_state=0)
    >>> classifier = CalibratedClassifier(LogisticRegression(), method="platt").fit(X, y)
    >>> classifier.predict_proba(X[:3]).shape
    (3, 2)
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "n_features_in_": "int in [1, inf]??",
        "feature_names_in_": "str[p]??",
        "classes_": "array[] unbounded | list[] of any",
        "estimators_ calibrators_": "list[] of any",
        "ensemble_": "list[] of CalibratedClassifier??",
    }

    estimator: Any = None
    method: object = "pool"
    cv: Any = 5
    n_jobs: int | None = None
    ensemble: bool | str = "auto"

    @property
    def _base(self) -> Any:
        """The classifier; by default a linear SVM, as in scikit-learn."""
        base = LinearSVC(random_state=0) if self.estimator is None else self.estimator
        return FrozenEstimator(base) if isinstance(self.cv, str) and self.cv == "prefit" else base

    @property
    def calibrated_classifiers_(self) -> list[Any]:
        """The fitted classifiers whose probabilities are averaged, as scikit-learn calls them."""
        check_is_fitted(self, "calibrators_")
        return [
            SimpleNamespace(
                estimator=one.estimators_[0], calibrators=one.calibrators_, classes=one.classes_,
                predict_proba=one.predict_proba,
            )
            for one in getattr(self, "ensemble_", None) or [self]
        ]  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.classifier_tags.multi_label = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Any:
        """Cross-validate, calibrate and refit; return self.

        Parameters
        ----------
        X : n rows, of any type that the estimator accepts
        y : array (n,) of labels, or 0/1 indicator (n, labels)
        sample_weight : array (n,), optional
            For the calibrator, and for the estimator if it accepts weights (else there is a warning).
        **fit_params
            Further arguments of the estimator's `fit`. Arguments with n entries are indexed by the rows of each fold.

        Raises
        ------
        InvalidInputError
            If a fold of `cv` trains without a class, or no fold holds a class out. The message names both.
        """
        if not isinstance(self.method, JointCalibrator) and str(self.method) not in _BINARY_FORMS:
            make_calibrator(self.method)  # an error unless it is a calibrator or the name of one
        check_not_masked(X, "X")
        check_not_masked(y, "y")
        (X,) = indexable(X)
        if y is None:
            raise InvalidInputError("CalibratedClassifier requires y to be passed, but the target y is None")
        classes, targets, names = self._targets(y)
        n = _num_samples(X)
        if len(targets[0]) != n:
            raise InvalidInputError(
                f"y has {len(targets[0])} labels, but X has {n} rows: inconsistent numbers of samples"
            )
        weight = as_weight(sample_weight, n)
        if weight is not None and not has_fit_parameter(self._base, "sample_weight"):
            warn(
                f"{type(self._base).__name__} does not accept sample_weight: training uses equal weights, and the "
                "weights affect only the calibration"
            )
        if not isinstance(classes, list) and len(classes) > 2:
            labels = [self._fit_jointly(X, targets[0], classes, weight, fit_params)]
        else:
            labels = run_blocks(
                lambda number: self._fit_one(X, targets[number], names[number], weight, fit_params),
                [(number,) for number in range(len(targets))],
                self.n_jobs,
            )
        self.classes_: Any = classes
        # A label whose probability is the prior has one fit, which is in every member.
        members = [[fits[place % len(fits)] for fits in labels] for place in range(max(map(len, labels)))]
        self.estimators_ = [estimator for fits in members for estimator, _ in fits]
        self.calibrators_ = [calibrator for fits in members for _, calibrator in fits]
        self.ensemble_ = [self._member(fits) for fits in members] if len(members) > 1 else []
        for attribute in ("n_features_in_", "feature_names_in_"):
            source = next((e for e in self.estimators_ if hasattr(e, attribute)), None)
            if source is not None:
                setattr(self, attribute, getattr(source, attribute))
            elif hasattr(self, attribute):
                delattr(self, attribute)
        return self

    def _member(self, fits: list[tuple[Any, Any]]) -> CalibratedClassifier:
        """Return the classifier of one fold, from a fitted estimator and its calibrator for each label."""
        member = CalibratedClassifier(None, self.method, ensemble=False)
        member.classes_, member.ensemble_ = self.classes_, []
        member.estimators_, member.calibrators_ = [fit[0] for fit in fits], [fit[1] for fit in fits]
        return member

    def _targets(self, y: ArrayLike) -> tuple[Any, list[np.ndarray], list[str]]:
        """Return the classes, and for each label its target (n,) and its name in messages."""
        if getattr(getattr(y, "dtype", None), "kind", "") == "f" and not is_sparse(y):
            assert_all_finite(y, input_name="y")
        _check_labels(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            indicator = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
            columns = (indicator != 0).astype(np.int64)
            classes = [np.array([0, 1]) for _ in range(columns.shape[1])]
            return classes, list(np.ascontiguousarray(columns.T)), [f"label {k}" for k in range(columns.shape[1])]
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        names = np.unique(labels)
        if len(names) < 2:
            raise InvalidInputError(f"y must have at least two classes, got one class: {names.tolist()}", argument="y")
        return names, [labels], [repr(names[-1].item() if isinstance(names[-1], np.generic) else names[-1])]

    def _fit_one(
        self, X: Matrix, target: np.ndarray, name: str, weight: Any, given: dict[str, Any]
    ) -> list[tuple[Any, Any]]:
        """Return the estimator and the calibrator of two classes, or one pair for each fold of an ensemble."""
        classes, index = np.unique(target, return_inverse=True)
        positive = index == 1 if len(classes) == 2 else target != 0
        rarest = min(int(positive.sum()), int((~positive).sum()))
        calibrator = make_calibrator(_BINARY_FORMS.get(str(self.method), self.method))
        if len(classes) < 2 or rarest < 2:
            what = f"{name}: one class has {counted(rarest, 'row')}, too few to cross-validate"
            warn(f"{what}. The probability is the prior")
            return [(None, make_calibrator("platt").fit(np.zeros(len(positive)), positive, weight))]
        scores = np.full(len(positive), np.nan)
        about = f" of {name}" if name.startswith("label") else ""
        members = []
        for test, fitted in self._fold_fits(self._base, X, target, rarest, weight, given, about):
            scores[test] = classifier_scores(fitted, _safe_indexing(X, test))
            if self.ensemble is True:
                part = None if weight is None else weight[test]
                members.append((fitted, deepcopy(calibrator).fit(scores[test], positive[test], part)))
        if members:
            return members
        held_out = ~np.isnan(scores)
        calibrator.fit(scores[held_out], positive[held_out], None if weight is None else weight[held_out])
        return [(self._fit_estimator(self._base, X, target, weight, given), calibrator)]

    def _fit_jointly(
        self, X: Matrix, target: np.ndarray, classes: np.ndarray, weight: Any, given: dict[str, Any]
    ) -> list[tuple[Any, Any]]:
        """Return the estimator and the joint calibrator of several classes, or one pair per fold of an ensemble."""
        estimator = _for_several_classes(self._base)
        rows = np.bincount(np.searchsorted(classes, target))
        if rows.max() < 2:
            raise InvalidInputError(
                f"each of {len(rows)} classes in y has one row, so none can be held out. Check that y has labels",
                code="nothing-held-out",
            )
        scores, are_log_p = np.full((len(target), len(classes)), np.nan), False
        members = []
        # A class with a single row has the lowest score in the fold that lacks it in training.
        for test, fitted in self._fold_fits(estimator, X, target, max(2, int(rows.min())), weight, given):
            scores[test], are_log_p = _scores_of_classes(fitted, _safe_indexing(X, test), classes)
            if self.ensemble is True:
                part = None if weight is None else weight[test]
                joint = make_joint(self.method, are_log_p).fit(scores[test], target[test], part, classes=classes)
                members.append((fitted, joint))
        if members:
            return members
        held_out = ~np.isnan(scores).any(axis=1)
        calibrator = make_joint(self.method, are_log_p)
        calibrator.fit(
            scores[held_out], target[held_out], None if weight is None else weight[held_out], classes=classes
        )
        return [(self._fit_estimator(estimator, X, target, weight, given), calibrator)]

    def _fold_fits(
        self,
        estimator: object,
        X: Matrix,
        target: np.ndarray,
        rarest: int,
        weight: Any,
        given: dict[str, Any],
        about: str = "",
    ) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield the held-out rows of each fold, and a clone that was fitted to the other rows."""
        cv = 5 if self.cv is None or (isinstance(self.cv, str) and self.cv == "prefit") else self.cv
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if cv < 2:
                raise InvalidInputError(f"cv must be at least 2 folds, got {cv}", argument="cv")
            if cv > len(target):
                raise InvalidInputError(f"cv={cv} requires at least {cv} rows, got {len(target)}", argument="cv")
            splitter: Any = StratifiedKFold(min(int(cv), rarest))
        else:
            splitter = check_cv(cv, target, classifier=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class in y")
            splits = list(splitter.split(X, target))
        counts = np.ones(len(target), dtype=bool) if weight is None else weight > 0
        # Folds do not train a frozen estimator.
        trained = [] if isinstance(estimator, FrozenEstimator) else [train for train, _ in splits]
        held_out = np.concatenate([np.arange(len(target))[test] for _, test in splits])
        classes, rows = np.unique(target[counts], return_counts=True)
        for number, part in enumerate([held_out, *trained]):
            lacking = np.setdiff1d(classes[rows > 1], target[part][counts[part]]).tolist()
            if lacking:
                raise InvalidInputError(
                    f"{f'fold {number} trains without' if number else 'no fold holds out'} class {lacking[0]!r}{about}"
                    ", which would get wrong probabilities. Shuffle the rows, or stratify: "
                    "cv=StratifiedKFold(5, shuffle=True)",
                    value=(number, lacking[0]),
                    code="class-missing-in-fold",
                )
        for number, (_, test) in enumerate(splits if self.ensemble is True else (), 1):
            if len(own := np.unique(target[test]).tolist()) < 2:
                raise InvalidInputError(
                    f"ensemble=True requires two classes in the held-out rows of each fold, got {own} in fold "
                    f"{number}{about}. Use ensemble=False, or cv=5",
                    value=(number, own),
                    code="class-missing-in-fold",
                )
        for train, test in splits:
            yield test, self._fit_estimator(estimator, X, target, weight, given, train)

    def _fit_estimator(
        self, estimator: object, X: Any, target: np.ndarray, weight: Any, given: dict[str, Any], rows: Any = None
    ) -> Any:
        """Return a clone that is fitted to some rows, or to all."""
        fresh = clone(estimator)
        if rows is not None:
            several = {name: value for name, value in given.items() if not isinstance(value, str)}
            given = given | _check_method_params(X, several, rows)
        inner = fresh.estimator if isinstance(fresh, EachAgainstTheRest) else fresh
        if weight is not None and has_fit_parameter(inner, "sample_weight"):
            given = given | {"sample_weight": weight if rows is None else weight[rows]}
        if rows is not None:
            X, target = _safe_indexing(X, rows), target[rows]
        return fresh.fit(X, target, **given)

    def log_odds(self, X: Any) -> np.ndarray:
        """Return calibrated log-odds of each class or label, float64 (n, classes or labels); (n,) for two classes."""
        if getattr(self, "ensemble_", None) and self._kind() != "classes":
            found = np.stack([member.log_odds(X) for member in self.ensemble_])
            equal = np.full(len(found), 1.0 / len(found))
            return pooled_log_odds(found.reshape(len(found), -1), equal).reshape(found.shape[1:])
        if self._kind() == "classes":
            return log_odds_of(self.predict_log_proba(X))
        n = _num_samples(X)
        columns = [
            calibrator.log_odds(np.zeros(n) if estimator is None else classifier_scores(estimator, X))
            for estimator, calibrator in zip(self.estimators_, self.calibrators_)
        ]
        return columns[0] if self._kind() == "binary" else np.stack(columns, axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return calibrated probabilities: (n, classes) with rows that add up to 1, or (n, labels)."""
        if self._kind() == "classes":
            return np.exp(self.predict_log_proba(X))
        pairs = probability_pairs(self.log_odds(X))
        return pairs if self._kind() == "binary" else pairs[..., 1]

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, which do not saturate."""
        if self._kind() == "classes" and getattr(self, "ensemble_", None):
            found = np.stack([member.predict_log_proba(X) for member in self.ensemble_])
            return np.logaddexp.reduce(found, axis=0) - np.log(len(found))
        if self._kind() == "classes":
            scores, _ = _scores_of_classes(self.estimators_[0], X, self.classes_)
            return self.calibrators_[0].log_probabilities(scores)
        pairs = log_probability_pairs(self.log_odds(X))
        return pairs if self._kind() == "binary" else pairs[..., 1]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class (n,), or for several labels the indicator (n, labels) of P ≥ 1/2."""
        if self._kind() == "labels":
            return (self.log_odds(X) >= 0).astype(np.int64)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def decide(self, X: MatrixLike, *, costs: ArrayLike | None = None, **of_two: float) -> np.ndarray:
        """Return the decisions of least expected cost: an array (n,), or (n, labels) for several labels.

        For two classes or several labels, pass the costs of `decisions.decide`, such as `cost_fp`. More classes require
        `costs[c, d]` of decision d for class c, as in `decisions.least_expected_cost`.
        """
        p, kind = self.predict_proba(X), self._kind()
        if (kind == "classes") != (costs is not None):
            raise InvalidInputError(
                "several classes require costs. Pass costs=1 - np.eye(n_classes), or other costs[class, decision]"
                if costs is None
                else "costs are for several classes. Pass cost_fp and cost_fn",
                argument="costs",
            )  # fmt: skip
        if costs is not None:
            return least_expected_cost(p, costs, **of_two)
        return decide(p, **of_two) if kind == "binary" else np.stack([decide(one, **of_two) for one in p.T], axis=1)

    def _kind(self) -> str:
        """Return "labels", "binary" or "classes", after a check that this classifier is fitted."""
        check_is_fitted(self, "calibrators_")
        return "labels" if isinstance(self.classes_, list) else "binary" if len(self.classes_) == 2 else "classes"

    def check_model(self) -> None:
        """Check a loaded model: estimators, calibrators and classes must fit together."""
        kind = self._kind()
        n = len(self.classes_) if kind == "labels" else 1
        n *= max(1, len(getattr(self, "ensemble_", None) or []))
        own = "JointCalibrator" if kind == "classes" else "Calibrator"
        check_fields(self, {"estimators_": f"list[{n}] of any", "calibrators_": f"list[{n}] of {own}"})
        if kind == "classes" and (found := len(self.calibrators_[0].classes_)) != len(self.classes_):
            raise ModelFileError(f"CalibratedClassifier: the calibrator has {found} classes, not {len(self.classes_)}")


class EachAgainstTheRest(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit one classifier, in `estimators_`, for each class against the rest, with scores that do not saturate.

    scikit-learn's `OneVsRestClassifier` uses probabilities if there is no decision function, which saturate for a naive
    Bayes. Moreover, model files cannot store `OneVsRestClassifier`.
    """

    model_attributes: ClassVar[dict[str, str]] = {"classes_": "array[k] unbounded", "estimators_": "list[k] of any"}

    def __init__(self, estimator: object) -> None:
        self.estimator = estimator

    @fits_whole
    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        """Fit a clone of the estimator to each class of y (n,); return self."""
        self.classes_ = np.unique(y)
        self.estimators_ = [
            clone(self.estimator).fit(X, (y == c).astype(np.int64), **fit_params) for c in self.classes_
        ]
        return self

    def decision_function(self, X: MatrixLike) -> np.ndarray:
        """Return the score of each class, float64 (n, classes)."""
        check_is_fitted(self, "estimators_")
        return np.stack([classifier_scores(estimator, X) for estimator in self.estimators_], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the highest score (n,)."""
        return self.classes_[np.argmax(self.decision_function(X), axis=1)]


def _check_labels(y: Any) -> None:
    """Raise if labels are missing, or are both texts and numbers, which scikit-learn's messages do not state."""
    dtype = getattr(y, "dtype", None)
    if is_sparse(y) or (isinstance(dtype, np.dtype) and dtype.kind in "biufU"):
        return
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1:
        return
    absent = sum(map(is_missing, labels.tolist()))
    kinds = sorted({"texts" if isinstance(label, str) else "numbers" for label in labels.tolist()})
    if absent:
        raise InvalidInputError(
            f"labels in y are missing: {absent} of {len(labels)}. Leave their rows out.", code="missing-labels"
        )
    if len(kinds) > 1:
        raise InvalidInputError(
            "the labels in y are numbers and texts, which have no common order. Use y.astype(str).", code="mixed-labels"
        )


def _for_several_classes(estimator: Any) -> Any:
    """Return the estimator if it gives each class a score, else one estimator for each class against the rest."""
    params = estimator.get_params()
    by_pairs = any(name.endswith("decision_function_shape") and params[name] == "ovo" for name in params)
    tags = get_tags(estimator).classifier_tags
    if by_pairs or (tags is not None and not tags.multi_class):
        return EachAgainstTheRest(estimator)
    return estimator


def _scores_of_classes(estimator: Any, X: Matrix, classes: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return scores (n, classes), lowest for classes that a fold lacks, and whether these are log probabilities."""
    scores, are_log_p = class_scores(estimator, X)
    seen = estimator.classes_
    if scores.shape[1] == 1 and len(seen) == 2:
        scores = np.stack([-scores[:, 0], scores[:, 0]], axis=1)
    if scores.shape[1] != len(seen):
        raise InvalidInputError(
            f"{type(estimator).__name__} gives {scores.shape[1]} scores for {len(seen)} classes, but calibration of "
            "several classes requires one score for each class"
        )
    if len(seen) == len(classes):
        return scores, are_log_p
    result = np.repeat(scores.min(axis=1, keepdims=True), len(classes), axis=1)
    result[:, np.searchsorted(classes, seen)] = scores
    return result, are_log_p
