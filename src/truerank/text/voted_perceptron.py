"""The voted perceptron (Freund and Schapire 1999, Machine Learning 37): every weight vector of the training votes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.fitting import fits_whole
from truerank.core.kernel import kernel
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import Matrix, RandomState
from truerank.text.index_arrays import lie_within, rise_to
from truerank.text.topic_classifiers import refuse_huge

_BLOCK = 1024
_VOTES = 10_000.0


class VotedPerceptron(ClassifierMixin, BaseEstimator):
    """Linear classifier for two classes whose score is the logarithm of votes for over votes against.

    Training adds y_i x_i to the weights v (0 at first) whenever y_i (v · x_i) ≤ 0. The k-th weights have c_k votes, one
    for each row that leaves the weights unchanged. The score is that of Bennett (2003, section 5),

        score(x) = log(1 + Σ_{k: v_k·x > 0} c_k) - log(1 + Σ_{k: v_k·x ≤ 0} c_k)

    with two changes. One vote is added to each side, so that unanimous votes have a finite logarithm. The votes are
    scaled to a sum of 10,000, so that scores do not grow with the number of training rows. Every x has a 1 appended.
    Cost: O(non-zeros) for a pass of training, O(mistakes · words of the document) for a prediction.

    Parameters
    ----------
    n_epochs : int, default 10
        Passes over the rows. A pass without a mistake ends the training.
    random_state : int or generator, optional
        Draws the order of the rows for each pass.

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

    model_attributes: ClassVar[tuple[str, ...]] = (
        "classes_", "n_features_in_", "votes_", "signs_", "mistaken_values_", "mistaken_columns_", "mistaken_starts_",
    )  # fmt: skip

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
            raise InvalidInputError(f"y must have two classes, got one class: {self.classes_.tolist()}")
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
        """Logarithm of the votes for the positive class over those against it (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        mistaken = self._mistaken_rows()
        votes = self.votes_ * (_VOTES / self.votes_.sum())
        result = np.empty(X.shape[0])
        for start in range(0, X.shape[0], _BLOCK):
            rows = sparse.csr_matrix(X[start : start + _BLOCK])
            products = (rows @ mistaken.T).toarray() + 1.0  # the appended 1
            positive = np.cumsum(products * self.signs_, axis=1) > 0
            votes_for = np.minimum((positive * votes).sum(axis=1), _VOTES)
            result[start : start + _BLOCK] = np.log1p(votes_for) - np.log1p(_VOTES - votes_for)
        return result

    def predict(self, X: Any) -> np.ndarray:
        """The label with more votes (n,); the first label on a tie."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.int64)]

    def check_model(self) -> None:
        starts, columns, values = self.mistaken_starts_, self.mistaken_columns_, self.mistaken_values_
        good = len(self.votes_) == len(self.signs_) == len(starts) - 1 and len(self.classes_) == 2
        good = good and rise_to(starts, len(values)) and lie_within(columns, 0, self.n_features_in_)
        if not good or len(columns) != len(values) or not np.isfinite(values).all():
            raise ModelFileError("VotedPerceptron: the arrays of the mistaken rows are inconsistent")


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
