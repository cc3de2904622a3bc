"""Classify texts, or rows of numbers, with calibrated probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from truerank.calibration.classifier import CalibratedClassifier
from truerank.calibration.decisions import decide
from truerank.core.checks import check_choice, check_positive_int, column_labels, is_sparse
from truerank.core.errors import InvalidInputError, warn
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.schema import check_fields
from truerank.core.types import Matrix, MatrixLike
from truerank.data.grouping import is_missing
from truerank.features.columns import UnitDeviation
from truerank.text.topic_classifiers import (
    LinearSVM,
    MutualInformationSelector,
    TfIdf,
    TopicNaiveBayes,
    VotedPerceptron,
    WordCounts,
    texts_of,
)

CLASSIFIERS = ("naive-bayes", "linear-svm", "voted-perceptron")


@parameters
class TextClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts with calibrated probabilities, by word counts, a classifier and a calibrator in one estimator.

    If every document has one label, the labels exclude each other. If some documents have no label or several labels,
    each label is decided by itself. X may also be a table of numbers; "naive-bayes" requires counts.

    Parameters
    ----------
    classifier : {"naive-bayes", "linear-svm", "voted-perceptron"} or a scikit-learn classifier, default "linear-svm"
        "naive-bayes": multinomial, words smoothed with the word prior. "linear-svm": scikit-learn's LinearSVC on
        (1 + log count) · idf rows of unit length (of a table: on columns scaled to unit deviation).
        "voted-perceptron": on the same rows. A classifier object receives the word counts.
    method : str or calibrator, default "pool"
        As in `CalibratedClassifier`.
    n_words : int, optional
        Number of words with the highest mutual information with the label (with any of several classes), chosen in
        every fold; 300 or 1,000 a topic in the paper. None keeps all.
    min_documents : int, default 3
        Least number of training texts with a word.
    cv : int, default 5
        Folds, as in `CalibratedClassifier`.
    random_state : int or generator, optional

    Attributes
    ----------
    classes_ : array (labels,)
        Labels in ascending order.
    multi_label_ : bool
    feature_names_in_ : array (p,) of str
        Names of the table's columns, which select those of data frames in predictions.
    classifier_ : CalibratedClassifier

    Examples
    --------
    >>> texts = ["profit rose", "wheat crop", "profit share", "wheat tonnes", "share rose", "crop tonnes"] * 3
    >>> fitted = TextClassifier("naive-bayes", method="platt").fit(texts, ["earn", "grain"] * 9)
    >>> fitted.predict(["profit share rose"]).tolist()
    ['earn']
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "classes_": "array[] unbounded | list[] of any",
        "multi_label_ from_text_": "bool",
        "feature_names_in_": "str[]??",
        "classifier_": "CalibratedClassifier",
    }

    classifier: Any = "linear-svm"
    method: Any = "pool"
    _: KW_ONLY
    n_words: int | None = None
    min_documents: int = 3
    cv: int = 5
    random_state: Any = None

    @fits_whole
    def fit(self, X: Any, y: Any, *, feature_names: Sequence[str] | None = None) -> Any:
        """Fit to texts X (n,) or a table X (n, p), and labels; return self.

        Parameters
        ----------
        X : sequence of str, array (n, p) or data frame
        y : sequence (n,) of labels, or of lists of labels
            Lists make a multi-label classifier, unless each has one entry.
        feature_names : sequence of str, optional
            Names of the table's columns. A data frame provides its own names by default.

        Raises
        ------
        InvalidInputError
            If texts and labels differ in number, there is only one label, labels are missing, or they are both texts
            and numbers.

        Warns
        -----
        TruerankWarning
            If some documents have no label and the others have one each. Each label is then decided by itself.
        """
        if isinstance(self.classifier, str):
            check_choice(self.classifier, "classifier", CLASSIFIERS)
        self.__dict__.pop("feature_names_in_", None)  # an earlier fit's
        columns = column_labels(X) or None if feature_names is None else feature_names
        X, self.from_text_ = _as_rows(X)
        if columns is not None:
            self.feature_names_in_ = np.array(list(columns), dtype=str)
            if self.from_text_ or len(columns) != X.shape[1]:
                raise InvalidInputError(
                    f"feature_names must have one name for each column, got {len(columns)} for "
                    f"{'texts' if self.from_text_ else f'{X.shape[1]} columns'}. Pass one name for each column",
                    code="column-names",
                )
        sets = [_as_labels(entry) for entry in y]
        if len(sets) != len(X):
            raise InvalidInputError(
                f"y must have one entry for each of the {len(X)} documents, got {len(sets)}", argument="y"
            )
        names = _names(sets)
        self.multi_label_ = any(len(labels) != 1 for labels in sets)
        bare = sum(not labels for labels in sets)
        if bare and len(names) > 1 and all(len(labels) < 2 for labels in sets):
            warn(
                f"{bare} of {len(sets)} documents {'has' if bare == 1 else 'have'} no label, so each label is decided "
                "by itself, and a document may get no label or several. If each document has exactly one label, "
                "leave out those without"
            )
        if not names or (len(names) < 2 and not self.multi_label_):
            raise InvalidInputError(f"the documents must have at least two labels, got {names}", code="one-label")
        self.classes_ = np.array(names)
        target: Any
        if self.multi_label_:
            target = np.array([[name in labels for name in names] for labels in map(set, sets)], dtype=np.int64)
            if target.shape[1] == 1:
                target = target[:, 0]
                if target.all():
                    raise InvalidInputError(f"every document has the label {names[0]!r}. Add documents without it")
        else:
            target = np.array([labels[0] for labels in sets])
        self.classifier_ = CalibratedClassifier(self._pipeline(), self.method, self.cv).fit(X, target)
        return self

    def _pipeline(self) -> Pipeline:
        steps: list[tuple[str, Any]] = []
        on_words = self.classifier in ("linear-svm", "voted-perceptron") if isinstance(self.classifier, str) else False
        if self.from_text_:
            steps.append(("words", WordCounts(self.min_documents)))
            if on_words:
                steps.append(("scale", TfIdf(sublinear_tf=True)))
        elif on_words:
            steps.append(("scale", UnitDeviation()))
        if self.n_words is not None:
            steps.append(("select", MutualInformationSelector(check_positive_int(self.n_words, "n_words"))))
        last = {
            "naive-bayes": TopicNaiveBayes,
            "linear-svm": lambda: LinearSVM(random_state=0, max_iter=20_000),
            "voted-perceptron": lambda: VotedPerceptron(random_state=self.random_state),
        }
        classifier = last[self.classifier]() if isinstance(self.classifier, str) else self.classifier
        return Pipeline([*steps, ("classify", classifier)])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(label) of each document, float64 (n, labels); rows add up to 1 if labels exclude each other."""
        check_is_fitted(self, "classifier_")
        p = self.classifier_.predict_proba(self._rows(X))
        return p[:, 1:] if self.multi_label_ and len(self.classes_) == 1 else p

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, which do not saturate."""
        check_is_fitted(self, "classifier_")
        log_p = self.classifier_.predict_log_proba(self._rows(X))
        return log_p[:, 1:] if self.multi_label_ and len(self.classes_) == 1 else log_p

    def predict(self, X: Any) -> Any:
        """Return the most probable label (n,), or for each document a list of its labels with P ≥ 1/2."""
        return self.decide(X)

    def decide(self, X: MatrixLike, **costs: float) -> Any:
        """Return labels of least expected cost, (n,) if labels exclude each other, else a list for each document.

        `costs` are those of `decisions.decide` (`cost_fp`, `cost_fn`, …; default: errors of equal cost). They raise
        `InvalidInputError` if three or more labels exclude each other.
        """
        if self.multi_label_:
            p = self.predict_proba(X)
            taken = np.stack([decide(p[:, k], **costs) == 1 for k in range(p.shape[1])], axis=1)
            return [self.classes_[row].tolist() for row in taken]
        if costs and len(self.classes_) > 2:
            raise InvalidInputError(
                f"{', '.join(costs)} require two labels, or documents with any number of labels, but each document "
                f"has one of {len(self.classes_)} labels. Omit {', '.join(costs)}"
            )
        if costs:
            return self.classes_[(decide(self.predict_proba(X)[:, 1], **costs) == 1).astype(np.int64)]
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def _rows(self, X: Matrix) -> Any:
        given, wanted = column_labels(X), getattr(self, "feature_names_in_", None)
        if given and wanted is not None:
            missing = [name for name in wanted.tolist() if name not in given]
            if missing:
                raise InvalidInputError(
                    f"the data lack the column {missing[0]!r}, with which the classifier was trained. Add it",
                    code="lost-column",
                )
            own = [given[name] for name in wanted.tolist()]
            X = X.select(own) if hasattr(X, "select") else X[own]
        rows, from_text = _as_rows(X)
        if from_text != self.from_text_:
            theirs, ours = ("texts", "a table") if self.from_text_ else ("a table", "texts")
            raise InvalidInputError(
                f"this classifier was trained on {theirs}, got {ours}. Pass {theirs}", code="other-input"
            )
        return rows

    def check_model(self) -> None:
        """Check a loaded model: labels and classifier must fit together."""
        n = 2 if self.multi_label_ and len(self.classes_) == 1 else len(self.classes_)
        check_fields(self, {"classifier_.classes_": f"array[{n}] unbounded | list[{n}] of any"})


def _as_rows(X: Any) -> tuple[Any, bool]:
    """Return texts as a list or numbers as an array, and whether they are texts."""
    if is_sparse(X):
        return X.tocsr(), False
    if isinstance(X, str):
        raise InvalidInputError("expected a sequence of texts, got one text. Pass a list: [text]", argument="X")
    array = np.asarray(X, dtype=object) if isinstance(X, Sequence) else np.asarray(X)
    if array.dtype.kind in "OUT" and array.ndim == 1 and any(isinstance(text, str) for text in array):
        return list(map(str, texts_of(array))), True
    values = np.asarray(X, dtype=np.float64, order="C")  # sums of a row in one order, however a frame keeps its columns
    if values.ndim != 2:
        raise InvalidInputError(f"X must be texts (n,) or a table (n, p), got the shape {values.shape}")
    return values, False


def _as_labels(entry: object) -> list[Any]:
    """Return the labels of one document, without repeats."""
    labels = entry if isinstance(entry, list | tuple | set | frozenset | np.ndarray) else [entry]
    return list(dict.fromkeys(label.item() if isinstance(label, np.generic) else label for label in labels))


def _names(sets: list[list[Any]]) -> list[Any]:
    """Return all labels in ascending order."""
    first: dict[bool, tuple[Any, int]] = {}
    for number, labels in enumerate(sets):
        for label in labels:
            if is_missing(label):
                raise InvalidInputError(
                    f"y[{number}] is {label!r}, which is not a label. Leave the document out, or pass []",
                    code="no-label",
                )
            first.setdefault(isinstance(label, str), (label, number))
    if len(first) > 1:
        (text, at), (other, place) = first[True], first[False]
        raise InvalidInputError(
            f"labels must be all text or all numbers: y[{at}] is {text!r} and y[{place}] is {other!r}. Use str(label)",
            code="mixed-labels",
        )
    return sorted({label for labels in sets for label in labels})
