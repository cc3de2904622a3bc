"""The voted perceptron: the algorithm as printed, scikit-learn's checks, the model file."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from reference import voted_perceptron as reference
from support.refusals import refused
from truerank.core.errors import ModelFileError
from truerank.core.random_streams import stream
from truerank.core.schema import check_model
from truerank.models.model_file import load_model, save_model
from truerank.text.topic_classifiers import VotedPerceptron


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
    with refused(ModelFileError, argument="mistaken_columns_", code="range"):
        check_model(fitted)


def test_scores_do_not_grow_with_the_number_of_votes():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    fitted = VotedPerceptron(3, random_state=0).fit(X, (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int))
    scores = fitted.decision_function(X)
    assert np.ptp(scores) > 1
    fitted.votes_ = fitted.votes_ * 7
    np.testing.assert_allclose(fitted.decision_function(X), scores, rtol=1e-12)


def test_the_last_weights_are_the_sum_of_the_mistakes():
    rng = np.random.default_rng(2)
    X = rng.integers(-2, 3, (30, 3)).astype(float)
    y = (X[:, 0] + rng.normal(size=30) > 0).astype(int)
    fitted = VotedPerceptron(2, random_state=3).fit(X, y)
    orders = [stream(3, "voted-perceptron", epoch).permutation(30) for epoch in range(2)]
    rows = np.column_stack([X, np.ones(30)]).tolist()
    vectors, _ = reference.train(rows, np.where(y == 1, 1, -1).tolist(), orders)
    assert fitted.mistakes_.shape == (len(fitted.votes_), 3)
    np.testing.assert_allclose(np.asarray(fitted.mistakes_.sum(axis=0)).ravel(), vectors[-1][:3])
