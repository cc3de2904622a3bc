"""Classifiers of a topic against the rest from word counts: selection by mutual information, naive Bayes, linear SVM.

These are the classifiers whose scores P. N. Bennett (2003) calibrates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.fitting import fits_whole


def mutual_information(X: Any, Y: Any) -> np.ndarray:
    """Mutual information of each word's presence with each class, in nats, float64 (classes, words).

        I(w; c) = Σ_{w ∈ {0, 1}} Σ_{c ∈ {0, 1}} P(w, c) log(P(w, c)/(P(w) P(c)))

    All classes in one sparse product of presences.

    Parameters
    ----------
    X : sparse matrix or array (n, words)
        Counts; a word is present where they are not 0.
    Y : bool or 0/1 array (n,) or (n, classes)

    Examples
    --------
    A word that stands exactly in the documents of the class carries the class's entropy, log 2.

    >>> mutual_information(np.array([[1, 1], [2, 0], [0, 1], [0, 0]]), [1, 1, 0, 0]).round(4).tolist()
    [[0.6931, 0.0]]
    """
    present = sparse.csr_matrix(X, copy=False)
    present = sparse.csr_matrix(
        ((present.data != 0).astype(np.float64), present.indices, present.indptr), shape=present.shape
    )
    member = np.asarray(Y, dtype=np.float64)
    member = member[:, None] if member.ndim == 1 else member
    n = present.shape[0]
    if member.shape[0] != n:
        raise InvalidInputError(f"Y has {member.shape[0]} rows but X has {n}")
    both = np.asarray(present.T @ member).T
    with_word = np.asarray(present.sum(axis=0), dtype=np.float64).ravel()
    in_class = member.sum(axis=0)[:, None]
    information = np.zeros_like(both)
    for cell, words, classes in (
        (both, with_word, in_class),
        (in_class - both, n - with_word, in_class),
        (with_word - both, with_word, n - in_class),
        (n - with_word - in_class + both, n - with_word, n - in_class),
    ):
        product = words * classes
        some = (cell > 0) & (product > 0)
        ratio = np.divide(n * cell, product, out=np.ones_like(both), where=some)
        information += cell / n * np.log(ratio)
    return np.maximum(information, 0.0)


class MutualInformationSelector(TransformerMixin, BaseEstimator):
    """Keep the words with the highest mutual information with a binary class; the first of equal ones.

    Parameters
    ----------
    n_words : int, default 300

    Attributes
    ----------
    information_ : float64 array (n_features_in_,)
    kept_ : int64 array (at most n_words,)
        Columns that are kept, ascending.
    """

    def __init__(self, n_words: int = 300) -> None:
        self.n_words = n_words

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any) -> Any:
        """Rank the words by their information about `y` (n,), a class or one class against the rest by label."""
        n_words = check_positive_int(self.n_words, "n_words")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None, ensure_min_features=1)
        X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        labels = np.unique(y)
        # Several classes: the greatest information about any of them; two classes inform about each other alike.
        targets = (y[:, None] == (labels[-1:] if len(labels) <= 2 else labels)).astype(np.float64)
        self.information_ = mutual_information(X, targets).max(axis=0)
        order = np.argsort(-self.information_, kind="stable")
        self.kept_ = np.sort(order[: min(n_words, len(order))])
        return self

    def transform(self, X: Any) -> Any:
        """The kept columns."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return X[:, self.kept_]


class UnitLogCounts(TransformerMixin, BaseEstimator):
    """log(1 + count), rows scaled to unit length: real-valued features of the linear SVM. Rows of zeros stay."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.requires_fit = False
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any = None) -> Any:
        """Nothing to learn; negative counts are refused."""
        _refuse_negative(validate_data(self, X, accept_sparse="csr", dtype=np.float64))
        return self

    def transform(self, X: Any) -> Any:
        """Scaled rows, float64."""
        from sklearn.preprocessing import normalize

        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False, copy=True)
        values = _refuse_negative(X)
        np.log1p(values, out=values)
        return normalize(X, copy=False)


class TopicNaiveBayes(ClassifierMixin, BaseEstimator):
    """Multinomial naive Bayes for a class against the rest, with log-odds that never saturate.

        score(d) = log P(+)/P(-) + Σ_w count(w, d) log P(w | +)/P(w | -),    P(c) = (|c| + 1)/(n + 2)

    Parameters
    ----------
    smoothing : {"word-prior", "add-one"}, default "word-prior"
        "add-one": `P(w | c) = (count(w, c) + 1)/(count(c) + V)`, V the number of words. "word-prior" is the source's:
        the V added counts are spread as the words are in all documents, `(count(w, c) + V P(w))/(count(c) + V)` with
        `P(w) = (count(w) + 1)/(count + V)`.
    strength : float, default 1
        Added counts per word on average.

    Attributes
    ----------
    classes_ : array (2,)
    coef_ : float64 array (words,)
        log P(w | +) - log P(w | -).
    intercept_ : float
    """

    def __init__(self, smoothing: str = "word-prior", strength: float = 1.0) -> None:
        self.smoothing = smoothing
        self.strength = strength

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Count words by class; `X` (n, words) counts, `y` (n,) two labels, the greater is the positive class."""
        from sklearn.utils.validation import _check_sample_weight

        check_choice(self.smoothing, "smoothing", ("word-prior", "add-one"))
        strength = check_number(self.strength, "strength", minimum=0.0, open_minimum=True)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, index = np.unique(y, return_inverse=True)
        if kind != "binary":
            raise InvalidInputError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) != 2:
            raise InvalidInputError(f"y must have two classes, got one class: {self.classes_.tolist()}")
        _refuse_negative(X)
        weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=np.float64)
        member = np.stack([weight * (index == 0), weight * (index == 1)], axis=1)
        counts = np.asarray(X.T @ member).T
        n_words = X.shape[1]
        if self.smoothing == "add-one":
            added = np.full(n_words, strength)
        else:
            total = counts.sum(axis=0)
            added = strength * n_words * (total + 1.0) / (total.sum() + n_words)
        log_p = np.log(counts + added) - np.log(counts.sum(axis=1, keepdims=True) + added.sum())
        self.coef_ = log_p[1] - log_p[0]
        rows = member.sum(axis=0)
        self.intercept_ = math.log((rows[1] + 1.0) / (rows[0] + 1.0))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the positive class (n,), in nats."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_) + self.intercept_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Uncalibrated probabilities (n, 2): naive Bayes believes too much, most are 0 or 1."""
        from scipy.special import expit

        log_odds = self.decision_function(X)
        return np.stack([expit(-log_odds), expit(log_odds)], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable label (n,)."""
        log_odds = self.decision_function(X)
        return self.classes_[(log_odds > 0).astype(np.int64)]


def _refuse_negative(X: Any) -> np.ndarray:
    values = X.data if sparse.issparse(X) else X
    if (values < 0).any():
        raise InvalidInputError("Negative values in data: counts are expected")
    return values


def naive_bayes(n_words: int = 300, smoothing: str = "word-prior") -> Pipeline:
    """The paper's naive Bayes from word counts: selection of words, then `TopicNaiveBayes`."""
    return Pipeline([("select", MutualInformationSelector(n_words)), ("classify", TopicNaiveBayes(smoothing))])


def linear_svm(n_words: int = 300, C: float = 1.0, weighting: str = "log-tf") -> Pipeline:
    """The paper's linear SVM from word counts: real-valued rows of unit length, selection of words, LinearSVC (hinge).

    Parameters
    ----------
    n_words : int, default 300
    C : float, default 1
    weighting : {"log-tf", "tf-idf", "selected-log-tf"}
        "log-tf": log(1 + count), rows scaled over all words and then cut down to the selected ones. "tf-idf":
        (1 + log count) · idf (scikit-learn's, smoothed), the same. "selected-log-tf": log(1 + count), rows scaled over
        the selected words only.
    """
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    check_choice(weighting, "weighting", ("log-tf", "tf-idf", "selected-log-tf"))
    svm = LinearSVC(C=C, loss="hinge", random_state=0, max_iter=100_000)
    scale = ("scale", TfidfTransformer(sublinear_tf=True) if weighting == "tf-idf" else UnitLogCounts())
    select = ("select", MutualInformationSelector(n_words))
    steps = [select, scale] if weighting == "selected-log-tf" else [scale, select]
    return Pipeline([*steps, ("classify", svm)])
