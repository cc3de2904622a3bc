"""The voted perceptron: the algorithm as printed, scikit-learn's checks, the model file."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from reference import voted_perceptron as reference
from truerank.core.errors import ModelFileError
from truerank.core.random_streams import stream
from truerank.models.model_file import load_model, save_model
from truerank.text.voted_perceptron import VotedPerceptron


@parametrize_with_checks([VotedPerceptron()])
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


def test_it_is_the_algorithm_as_printed(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (40, 3)).astype(float)
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    fitted = VotedPerceptron(3, random_state=5).fit(X, y)
    rows = np.column_stack([X, np.ones(40)]).tolist()
    orders = [stream(5, "voted-perceptron", epoch).permutation(40) for epoch in range(3)]
    vectors, votes = reference.train(rows, np.where(y == 1, 1, -1).tolist(), orders)
    assert fitted.votes_.tolist() == votes[1:]
    expected = [reference.score(vectors, votes, row) for row in rows]
    np.testing.assert_allclose(fitted.decision_function(X), expected)
    again = VotedPerceptron(3, random_state=5).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(again.decision_function(sparse.csr_matrix(X)), fitted.decision_function(X))
    save_model(fitted, tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").decision_function(X), fitted.decision_function(X))
    fitted.mistaken_columns_ = fitted.mistaken_columns_ + 3
    with pytest.raises(ModelFileError, match="do not fit together"):
        fitted.check_model()
