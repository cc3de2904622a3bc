"""Classifiers of a topic against the rest from word counts: selection by mutual information, naive Bayes, linear SVM.

These are the classifiers whose scores P. N. Bennett (2003) calibrates.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from truerank.core.checks import check_choice, check_number, check_positive_int, require_array
from truerank.core.errors import InvalidInputError
from truerank.core.fitting import fits_whole
from truerank.core.parameters import parameters
from truerank.core.types import ArrayLike, Matrix, MatrixLike
from truerank.text.analysers import TOPIC_WORD, folded

MOST = 1e70  # largest value: liblinear computes fourth powers, and does not terminate if they overflow


def mutual_information(X: MatrixLike, Y: Any) -> np.ndarray:
    """Mutual information of each word's presence with each class, in nats, float64 (classes, words).

        I(w; c) = Σ_{w ∈ {0, 1}} Σ_{c ∈ {0, 1}} P(w, c) log(P(w, c)/(P(w) P(c)))

    X holds counts (n, words), and Y is a bool or 0/1 array (n,) or (n, classes). The values equal those of
    scikit-learn's `mutual_info_classif`, which is much slower.

    >>> mutual_information(np.array([[1, 1], [2, 0], [0, 1], [0, 0]]), [1, 1, 0, 0]).round(4).tolist()
    [[0.6931, 0.0]]
    """
    present = (sparse.csr_matrix(X, copy=False) != 0).astype(np.float64)
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


@parameters
class MutualInformationSelector(TransformerMixin, BaseEstimator):
    """Keep the words with the highest mutual information with a class; of equal words the first.

    Parameters
    ----------
    n_words : int, default 300

    Attributes
    ----------
    information_ : float64 array (n_features_in_,)
    kept_ : int64 array (at most n_words,)
        Numbers of the selected columns, ascending.
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("information_", "kept_", "n_features_in_", "feature_names_in_")

    n_words: int = 300

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any) -> Any:
        """Rank the words by their information about the labels `y` (n,)."""
        n_words = check_positive_int(self.n_words, "n_words")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=None, ensure_min_features=1)
        X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        labels = np.unique(y)
        # The largest information about any of the classes; two classes have equal information.
        targets = (y[:, None] == (labels[-1:] if len(labels) <= 2 else labels)).astype(np.float64)
        self.information_ = mutual_information(X, targets).max(axis=0)
        order = np.argsort(-self.information_, kind="stable")
        self.kept_ = np.sort(order[: min(n_words, len(order))])
        return self

    def check_model(self) -> None:
        require_array(self, "kept_", "int", None, low=0, high=self.n_features_in_ - 1)

    def transform(self, X: Matrix) -> Any:
        """Select the columns."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return X[:, self.kept_]


class UnitLogCounts(TransformerMixin, BaseEstimator):
    """log(1 + count), with rows scaled to unit length. Rows of zeros stay zeros."""

    model_attributes: ClassVar[tuple[str, ...]] = ("n_features_in_", "feature_names_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.requires_fit = False
        return tags

    @fits_whole
    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Any:
        """Check that no count is negative."""
        _refuse_negative(validate_data(self, X, accept_sparse="csr", dtype=np.float64))
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Scale the rows; float64."""
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False, copy=True)
        values = _refuse_negative(X)
        np.log1p(values, out=values)
        return normalize(X, copy=False)


@parameters
class TopicNaiveBayes(ClassifierMixin, BaseEstimator):
    """Multinomial naive Bayes whose words are smoothed with their prior.

        log P(c, d) = log P(c) + Σ_w count(w, d) log P(w | c),    P(c) = (|c| + 1)/(n + K)

    with K classes. The fit is that of scikit-learn's `MultinomialNB` with this smoothing.

    Parameters
    ----------
    smoothing : {"word-prior", "add-one"}, default "word-prior"
        "add-one": `P(w | c) = (count(w, c) + 1)/(count(c) + V)`, V the number of words. "word-prior", as in the paper,
        divides the V added counts in proportion to the words of all documents: `(count(w, c) + V P(w))/(count(c) + V)`
        with `P(w) = (count(w) + 1)/(count + V)`.
    strength : float, default 1
        Added counts for each word on average.

    Attributes
    ----------
    classes_ : array (K,)
    word_log_prob_ : float64 array (K, words)
        log P(w | c).
    class_log_prior_ : float64 array (K,)
    n_features_in_ : int

    Examples
    --------
    >>> fitted = TopicNaiveBayes().fit([[2, 0], [1, 1]], ["a", "b"])
    >>> fitted.predict([[3, 0], [0, 3]]).tolist()
    ['a', 'b']
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        "classes_", "word_log_prob_", "class_log_prior_", "n_features_in_", "feature_names_in_",
    )  # fmt: skip

    smoothing: str = "word-prior"
    strength: float = 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to counts `X` (n, words) and labels `y` (n,)."""
        from sklearn.naive_bayes import MultinomialNB

        check_choice(self.smoothing, "smoothing", ("word-prior", "add-one"))
        strength = check_number(self.strength, "strength", minimum=0.0, open_minimum=True)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(f"y must have at least two classes, got one class: {self.classes_.tolist()}")
        _refuse_negative(X)
        refuse_huge(X, type(self).__name__)
        weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=np.float64)
        added: Any = strength
        if self.smoothing == "word-prior":
            total, n_words = np.asarray(X.T @ weight).ravel(), X.shape[1]
            added = strength * n_words * (total + 1.0) / (total.sum() + n_words)
        rows = np.bincount(index, weights=weight) + 1.0
        fitted = MultinomialNB(alpha=added, class_prior=rows / rows.sum(), force_alpha=True)
        fitted.fit(X, index, sample_weight=weight)
        self.word_log_prob_ = fitted.feature_log_prob_
        self.class_log_prior_ = np.log(rows / rows.sum())
        return self

    def predict_joint_log_proba(self, X: MatrixLike) -> np.ndarray:
        """log P(c, d) for each class, float64 (n, K), in nats."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.word_log_prob_.T) + self.class_log_prior_

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """log P(c | d), float64 (n, K), uncalibrated."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Uncalibrated probabilities (n, K). Most are close to 0 or 1."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """The most probable label (n,); the first label on a tie."""
        best = np.argmax(self.predict_joint_log_proba(X), axis=1)
        return self.classes_[best]

    def check_model(self) -> None:
        require_array(self, "word_log_prob_", "float64", len(self.classes_), self.n_features_in_)
        require_array(self, "class_log_prior_", "float64", len(self.classes_), low=-np.inf)


class LinearSVM(LinearSVC):
    """scikit-learn's `LinearSVC`, which model files can hold. Values beyond 1e70 raise an error (see `MOST`)."""

    model_attributes: ClassVar[tuple[str, ...]] = (
        "classes_", "coef_", "intercept_", "n_features_in_", "feature_names_in_", "n_iter_",
    )  # fmt: skip

    @fits_whole
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """See `LinearSVC.fit`."""
        refuse_huge(validate_data(self, X, accept_sparse="csr", dtype=np.float64), type(self).__name__)
        return super().fit(X, y, sample_weight)

    def check_model(self) -> None:
        k = 1 if len(self.classes_) == 2 else len(self.classes_)
        require_array(self, "coef_", "float64", k, self.n_features_in_)
        require_array(self, "intercept_", "float64", k)


class TfIdf(TfidfTransformer):
    """scikit-learn's `TfidfTransformer`, which model files can hold."""

    model_attributes: ClassVar[tuple[str, ...]] = ("idf_", "n_features_in_", "feature_names_in_")

    def check_model(self) -> None:
        require_array(self, "idf_", "float", self.n_features_in_)


@parameters
class WordCounts(TransformerMixin, BaseEstimator):
    """Counts of the words of texts, CSR (n, words): scikit-learn's `CountVectorizer`, which model files can hold.

    Parameters
    ----------
    min_documents : int, default 3
        Number of training texts that must contain a word. If no word has so many, all words are used.
    word : str, default `tokens.TOPIC_WORD`
        Regular expression of a word, in lower case.

    Attributes
    ----------
    vocabulary_ : array (words,) of str
        In alphabetical order.

    Examples
    --------
    >>> words = WordCounts(min_documents=1).fit(["Heat flow, heat", "flow"])
    >>> words.vocabulary_.tolist(), words.transform(["heat heat wing"]).toarray().tolist()
    (['flow', 'heat'], [[0.0, 2.0]])
    """

    model_attributes: ClassVar[tuple[str, ...]] = ("vocabulary_",)

    min_documents: int = 3
    word: str = TOPIC_WORD

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> Any:
        """Collect the words of the texts X (n,)."""
        check_positive_int(self.min_documents, "min_documents")
        texts = texts_of(X)
        for least in dict.fromkeys((min(self.min_documents, len(texts)), 1)):
            vectorizer = CountVectorizer(preprocessor=folded, token_pattern=self.word, min_df=least)
            with suppress(ValueError):  # no word in so many texts
                self.vocabulary_ = np.asarray(vectorizer.fit(texts).get_feature_names_out(), dtype=str)
                return self
        raise InvalidInputError(f"none of the {len(texts)} texts holds a word (pattern {self.word!r})")

    def transform(self, X: MatrixLike) -> Any:
        """Counts of the known words, CSR (n, words)."""
        check_is_fitted(self)
        vectorizer = CountVectorizer(preprocessor=folded, token_pattern=self.word, vocabulary=self.vocabulary_.tolist())
        return vectorizer.transform(texts_of(X)).astype(np.float64)

    def check_model(self) -> None:
        require_array(self, "vocabulary_", "str", None, rising=True)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words."""
        check_is_fitted(self)
        return self.vocabulary_.astype(object)


def texts_of(X: object) -> list[str]:
    """Texts as a list of str."""
    texts = X if isinstance(X, list) else list(np.asarray(X, dtype=object).ravel())
    if not texts:
        raise InvalidInputError("expected texts (a sequence of str), got nothing")
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            what = f"row {row} is {type(text).__name__}; expected texts (a sequence of str)"
            raise InvalidInputError(f"{what}. Use '' for a document without words")
    return texts


def refuse_huge(X: Any, name: str) -> None:
    """Raise an error if products of values would overflow."""
    values = X.data if sparse.issparse(X) else X
    most = float(np.abs(values).max(initial=0.0))
    if most > MOST:
        raise InvalidInputError(
            f"{name}: X holds the value {most:.3g}; expected at most {MOST:g}, because products overflow. Scale the "
            "columns with UnitDeviation, or leave out the damaged one"
        )


def _refuse_negative(X: Any) -> np.ndarray:
    values = X.data if sparse.issparse(X) else X
    if (values < 0).any():
        raise InvalidInputError("Negative values in data: counts are expected")
    return values
