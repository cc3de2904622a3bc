"""The kernels of the structural SVM on tiny data, compiled or as plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from reference.rankings import worst_by_enumeration
from support.planes import PlanesOfRows
from truerank.losses.graded_pairs import GradedPairs
from truerank.losses.worst_rankings import RankingOracle
from truerank.matrices.binned import BinnedMatrix
from truerank.matrices.rows import LinearRows

X = np.random.default_rng(1).normal(size=(24, 3))
Y = (np.random.default_rng(2).random(24) < 0.4).astype(float)
OFFSETS = np.array([0, 5, 24])


@pytest.mark.parametrize(
    ("measure", "cutoff"), [("AP", None), ("ROC", None), ("RR", None), ("nDCG", None), ("nDCG", 2)]
)
def test_worst_rankings(measure, cutoff):
    scores = X[:5, 0] / 4
    oracle = RankingOracle(measure, Y[:5], np.array([0, 5]), cutoff=cutoff)
    loss, c = oracle(scores)
    assert loss[0] + c @ scores == pytest.approx(worst_by_enumeration(measure, Y[:5] == 1, scores, cutoff))


def test_products():
    w, c = np.array([1.0, -2.0, 0.5]), X[:, 1] * (X[:, 1] > 0)
    expected = np.array([X[:5].T @ c[:5], X[5:].T @ c[5:]])
    for rows in (LinearRows(X), LinearRows(sparse.csr_matrix(X)), LinearRows(X, n_jobs=2)):
        np.testing.assert_allclose(rows.scores(w), X @ w)
        np.testing.assert_allclose(rows.block_sums(c, OFFSETS), expected)
    binned = BinnedMatrix.from_values(np.where(X > 1, np.nan, X), [[-1.0, 0.0], [0.0], []])
    dense, rows = binned.to_csr().toarray(), LinearRows(binned)
    v = np.arange(6.0)
    np.testing.assert_allclose(rows.scores(v), dense @ v)
    np.testing.assert_allclose(rows.block_sums(c, OFFSETS), [dense[:5].T @ c[:5], dense[5:].T @ c[5:]], atol=1e-15)


def test_certificate():
    for oracle in (RankingOracle("AP", Y, OFFSETS), GradedPairs(Y, OFFSETS)):
        for n_blocks in (1, None):
            result = PlanesOfRows(LinearRows(X), oracle, n_blocks=n_blocks).solve(0.5, tol=1e-4)
            assert result.gap <= 1e-4 * max(1, result.objective)
