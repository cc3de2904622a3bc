"""The kernels of RankSVM and pairwise descent on tiny data, compiled or as plain Python."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from reference.descent import plain_descent
from reference.pairs import pair_objective
from truerank.core.random_streams import stream
from truerank.losses.graded_pairs import SQUARED_HINGE, GradedPairs
from truerank.matrices.content import order_by_content
from truerank.rankers.pairwise_descent import PairwiseDescent
from truerank.rankers.rank_svm import RankSVM
from truerank.solvers.pair_sampling import make_sampler

X = np.random.default_rng(1).normal(size=(24, 3))
Y = np.random.default_rng(2).integers(0, 3, 24).astype(float)
OFFSETS = np.array([0, 3, 24])
QID = np.repeat([0, 1], [3, 21])


def test_counted_losses():
    for y in (Y, np.arange(24.0)):
        loss, derivative = GradedPairs(y, OFFSETS).loss(X[:, 0], SQUARED_HINGE)
        w = np.array([1.0, 0.0, 0.0])
        value, gradient = pair_objective(w, X, y, OFFSETS, 1.0)
        np.testing.assert_allclose(loss, value - 0.5)
        np.testing.assert_allclose(X.T @ derivative, gradient - w, rtol=1e-9)


def test_rank_svm_reaches_its_certificate():
    for rows in (X, sparse.csr_matrix(X)):
        ranker = RankSVM(C=0.1).fit(rows, Y, qid=QID)
        assert ranker.gap_ <= 1e-6 * ranker.objective_


def test_descent_takes_the_same_steps_as_the_plain_version():
    order, queries = order_by_content(X, Y, OFFSETS)
    offsets = np.concatenate([[0], np.cumsum(np.diff(OFFSETS)[queries])])
    draws = make_sampler("rank", Y[order], offsets, None).draw(stream(0, "pairwise-descent"), 70)
    expected = plain_descent(X[order], Y[order], draws, reg=0.1, average_from=10)
    for rows in (X, sparse.csr_matrix(X)):
        ranker = PairwiseDescent(0.1, max_iter=70, average=10).fit(rows, Y, qid=QID)
        np.testing.assert_allclose(ranker.coef_, expected[:-1], rtol=1e-9)
