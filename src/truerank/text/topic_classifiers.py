"""Classifiers of a topic against all others from word counts: mutual information, naive Bayes, perceptron, SVM.

P. N. Bennett (2003) calibrates the scores of these classifiers.
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
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.fitting import fits_whole
from truerank.core.kernel import kernel
from truerank.core.parameters import parameters
from truerank.core.random_streams import seed_of, stream
from truerank.core.schema import COLUMNS
from truerank.core.types import ArrayLike, Matrix, MatrixLike, RandomState
from truerank.text.analysers import TOPIC_WORD, folded

_ROWS = 1024  # whose votes are counted at a time
_VOTES = 10_000.0
MOST = 1e70  # largest value: liblinear computes fourth powers, and does not terminate if they overflow


def mutual_information(X: MatrixLike, Y: Any) -> np.ndarray:
    """Return the mutual information of each word's presence with each class, in nats, float64 (classes, words).

        I(w; c) = Σ_{w ∈ {0, 1}} Σ_{c ∈ {0, 1}} P(w, c) log(P(w, c)/(P(w) P(c)))

    X holds counts (n, words), and Y is a bool or 0/1 array (n,) or (n, classes). The values equal scikit-learn's
    `mutual_info_classif`, which is much slower.

    >>> mutual_information(np.array([[1, 1], [2, 0], [0, 1], [0, 0]]), [1, 1, 0, 0]).round(4).tolist()
    [[0.6931, 0.0]]
    """
    present = (sparse.csr_matrix(X, copy=False) != 0).astype(np.float64)
    member = np.asarray(Y, dtype=np.float64)
    member = member[:, None] if member.ndim == 1 else member
    n = present.shape[0]
    if member.shape[0] != n:
        raise InvalidInputError(f"Y has {member.shape[0]} rows but X has {n}", argument="Y")
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
    """Select the words with the highest mutual information with a class; of equal words, the first words are selected.

    Parameters
    ----------
    n_words : int, default 300

    Attributes
    ----------
    information_ : float64 array (n_features_in_,)
    kept_ : int64 array (at most n_words,)
        Numbers of the selected columns, ascending.
    """

    model_attributes: ClassVar[dict[str, str]] = {
        **COLUMNS,
        "information_": "any??",
        "kept_": "int[] in [0, p)",
    }

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
        if not len(self.kept_):
            raise ModelFileError(f"{type(self).__name__}: kept_ must have a column")

    def transform(self, X: Matrix) -> Any:
        """Select the columns."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=None, reset=False)
        return X[:, self.kept_]


class UnitLogCounts(TransformerMixin, BaseEstimator):
    """Transform counts to log(1 + count), with rows scaled to unit length. Rows of zeros remain zeros."""

    model_attributes: ClassVar[dict[str, str]] = COLUMNS

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

    with K classes. The fit equals scikit-learn's `MultinomialNB` with this smoothing.

    Parameters
    ----------
    smoothing : {"word-prior", "add-one"}, default "word-prior"
        "add-one": `P(w | c) = (count(w, c) + 1)/(count(c) + V)`, V the number of words. "word-prior", as in the paper,
        divides the V added counts in proportion to the words of all documents: `(count(w, c) + V P(w))/(count(c) + V)`
        with `P(w) = (count(w) + 1)/(count + V)`.
    strength : float, default 1
        Mean number of added counts for each word.

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

    model_attributes: ClassVar[dict[str, str]] = {
        **COLUMNS,
        "classes_": "array[k] unbounded",
        "word_log_prob_": "float64[k, p]",
        "class_log_prior_": "float64[k] in [-inf, inf)",
    }

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
        strength = check_number(self.strength, "strength", "(0, inf)")
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
        """Return log P(c, d) for each class, float64 (n, K), in nats."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.word_log_prob_.T) + self.class_log_prior_

    def predict_log_proba(self, X: MatrixLike) -> np.ndarray:
        """Return log P(c | d), float64 (n, K), uncalibrated."""
        from scipy.special import log_softmax

        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Return uncalibrated probabilities (n, K). Most probabilities are close to 0 or 1."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Return the most probable label (n,), or the first label on a tie."""
        best = np.argmax(self.predict_joint_log_proba(X), axis=1)
        return self.classes_[best]


class LinearSVM(LinearSVC):
    """scikit-learn's `LinearSVC`, which model files can store. Values beyond 1e70 raise an error (see `MOST`)."""

    model_attributes: ClassVar[dict[str, str]] = {
        **COLUMNS,
        "classes_": "array[] unbounded",
        "coef_": "float64[k, p]",
        "intercept_": "float64[k]",
        "n_iter_": "any??",
    }

    @fits_whole
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Fit as `LinearSVC.fit` does."""
        refuse_huge(validate_data(self, X, accept_sparse="csr", dtype=np.float64), type(self).__name__)
        given = self.get_params()["random_state"]
        self.random_state = seed_of(given) % 2**31  # without a seed scikit-learn reads NumPy's global generator
        super().fit(X, y, sample_weight)
        self.random_state = given

    def check_model(self) -> None:
        if len(self.coef_) != (1 if len(self.classes_) == 2 else len(self.classes_)):
            raise ModelFileError(f"LinearSVM: coef_ has {len(self.coef_)} rows for {len(self.classes_)} classes")


class TfIdf(TfidfTransformer):
    """scikit-learn's `TfidfTransformer`, which model files can store."""

    model_attributes: ClassVar[dict[str, str]] = {**COLUMNS, "idf_": "float[p]"}


class VotedPerceptron(ClassifierMixin, BaseEstimator):
    """A linear classifier for two classes whose score is the log-ratio of votes for and votes against.

    Training adds y_i x_i to the weights v (0 at first) whenever y_i (v · x_i) ≤ 0. The k-th weights have c_k votes, one
    for each row that leaves the weights unchanged. The score follows Bennett (2003, section 5),

        score(x) = log(1 + Σ_{k: v_k·x > 0} c_k) - log(1 + Σ_{k: v_k·x ≤ 0} c_k)

    with two changes. One vote is added to each side, so that unanimous votes have a finite logarithm. The votes are
    scaled to a sum of 10,000, so that scores do not grow with the number of training rows. Every x has a 1 appended.
    Cost: O(non-zeros) for a pass of training, O(mistakes · words of the document) for a prediction.

    Parameters
    ----------
    n_epochs : int, default 10
        Maximum number of passes over the rows. Training ends after a pass without a mistake.
    random_state : int or generator, optional
        Seed of the order of the rows in each pass.

    Attributes
    ----------
    classes_ : array (2,)
        The greater label is the positive class.
    votes_, signs_ : int64 and float64 arrays (mistakes,)
    mistakes_ : float64 CSR matrix (mistakes, columns)
        Mistaken rows times their sign, in order.

    Examples
    --------
    >>> fitted = VotedPerceptron().fit([[2.0, 0.0], [3.0, 1.0], [0.0, 2.0], [1.0, 3.0]], ["a", "a", "b", "b"])
    >>> fitted.predict([[4.0, 1.0], [1.0, 4.0]]).tolist()
    ['a', 'b']
    """

    model_attributes: ClassVar[dict[str, str]] = {
        "n_features_in_": "int in [1, inf]",
        "classes_": "array[2] unbounded",
        "votes_ signs_": "array[mistakes]",
        "mistaken_values_": "float64[values]",
        "mistaken_columns_": "int[values] in [0, p)",
        "mistaken_starts_": "int[mistakes+1] in [0, values]",
    }

    def __init__(self, n_epochs: int = 10, *, random_state: RandomState = None) -> None:
        self.n_epochs = n_epochs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    @fits_whole
    def fit(self, X: Any, y: Any) -> Any:
        """Learn from `X` (n, p), dense or sparse, and two labels `y` (n,)."""
        n_epochs = check_positive_int(self.n_epochs, "n_epochs")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        refuse_huge(X, type(self).__name__)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, index = np.unique(y, return_inverse=True)
        if kind != "binary":
            raise InvalidInputError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(self.classes_) != 2:
            raise InvalidInputError(f"y must have two classes, got one class: {self.classes_.tolist()}", argument="y")
        rows = sparse.csr_matrix(X)
        columns, starts = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        sign = np.where(index == 1, 1.0, -1.0)
        weights = np.zeros(rows.shape[1] + 1)
        seed = seed_of(self.random_state)
        mistaken, votes = [], [0]
        for epoch in range(n_epochs):
            order = stream(seed, "voted-perceptron", epoch).permutation(len(sign))
            wrong, survived = np.empty(len(sign), dtype=np.int64), np.zeros(len(sign) + 1, dtype=np.int64)
            n_wrong = _one_pass(rows.data, columns, starts, sign, order, weights, wrong, survived)
            votes[-1] += int(survived[0])
            votes += survived[1 : n_wrong + 1].tolist()
            mistaken.append(wrong[:n_wrong])
            if n_wrong == 0:
                break
        which = np.concatenate(mistaken)
        kept = rows[which]
        self.signs_ = sign[which]
        self.votes_ = np.array(votes[1:], dtype=np.int64)  # without the votes of the zero vector
        self.mistaken_values_ = np.asarray(kept.data, dtype=np.float64)
        self.mistaken_columns_ = np.asarray(kept.indices, dtype=np.int64)
        self.mistaken_starts_ = np.asarray(kept.indptr, dtype=np.int64)
        return self

    @property
    def mistakes_(self) -> sparse.csr_matrix:
        check_is_fitted(self)
        return sparse.csr_matrix(self._mistaken_rows().multiply(self.signs_[:, None]))

    def _mistaken_rows(self) -> sparse.csr_matrix:
        shape = (len(self.votes_), self.n_features_in_)
        return sparse.csr_matrix((self.mistaken_values_, self.mistaken_columns_, self.mistaken_starts_), shape)

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Return the logarithm of the ratio of votes for and against the positive class (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        mistaken = self._mistaken_rows()
        votes = self.votes_ * (_VOTES / self.votes_.sum())
        result = np.empty(X.shape[0])
        for start in range(0, X.shape[0], _ROWS):
            rows = sparse.csr_matrix(X[start : start + _ROWS])
            products = (rows @ mistaken.T).toarray() + 1.0  # the appended 1
            positive = np.cumsum(products * self.signs_, axis=1) > 0
            votes_for = np.minimum((positive * votes).sum(axis=1), _VOTES)
            result[start : start + _ROWS] = np.log1p(votes_for) - np.log1p(_VOTES - votes_for)
        return result

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with more votes (n,), or the first label on a tie."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.int64)]

    def check_model(self) -> None:
        starts = self.mistaken_starts_
        if starts[0] != 0 or starts[-1] != len(self.mistaken_values_) or (starts[1:] < starts[:-1]).any():
            raise ModelFileError("VotedPerceptron: the arrays of the mistaken rows are inconsistent")


@parameters
class WordCounts(TransformerMixin, BaseEstimator):
    """Counts of the words of texts, CSR (n, words): scikit-learn's `CountVectorizer`, which model files can store.

    Parameters
    ----------
    min_documents : int, default 3
        Minimum number of training texts that contain a word. If no word is in so many texts, all words are used.
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

    model_attributes: ClassVar[dict[str, str]] = {"vocabulary_": "str[] rising"}

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
        raise InvalidInputError(f"the {len(texts)} texts contain no word (pattern {self.word!r})", code="no-word")

    def transform(self, X: MatrixLike) -> Any:
        """Return the counts of the known words, CSR (n, words)."""
        check_is_fitted(self)
        vectorizer = CountVectorizer(preprocessor=folded, token_pattern=self.word, vocabulary=self.vocabulary_.tolist())
        return vectorizer.transform(texts_of(X)).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the words."""
        check_is_fitted(self)
        return self.vocabulary_.astype(object)


def texts_of(X: object) -> list[str]:
    """Return texts as a list of str."""
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
            f"{name}: X contains the value {most:.3g}; expected at most {MOST:g}, because products overflow. Scale "
            "the columns with UnitDeviation, or omit the damaged column",
            argument="X",
            value=most,
        )


def _refuse_negative(X: Any) -> np.ndarray:
    values = X.data if sparse.issparse(X) else X
    if (values < 0).any():
        raise InvalidInputError("Negative values in data: counts are expected")
    return values


@kernel
def _one_pass(data, columns, starts, sign, order, weights, wrong, survived):
    """A pass in the given order: updates the weights (p + 1,), fills the mistaken rows `wrong` and their votes."""
    n_wrong = 0
    last = len(weights) - 1
    for i in order:
        product = weights[last]
        for place in range(starts[i], starts[i + 1]):
            product += data[place] * weights[columns[place]]
        if sign[i] * product > 0.0:
            survived[n_wrong] += 1
            continue
        for place in range(starts[i], starts[i + 1]):
            weights[columns[place]] += sign[i] * data[place]
        weights[last] += sign[i]
        wrong[n_wrong] = i
        n_wrong += 1
        survived[n_wrong] = 1  # the new vector gets the vote of this row
    return n_wrong
