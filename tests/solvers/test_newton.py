"""Newton's method on pairs where conjugate gradients have a hard time."""

from __future__ import annotations

import numpy as np
import pytest

from reference.pairs import pair_objective
from support.made_up_rows import graded
from truerank.losses.graded_pairs import GradedPairs
from truerank.matrices.rows import LinearRows
from truerank.solvers.newton import PairSums, minimise_pairs
from truerank.solvers.result import Status


def test_columns_that_conjugate_gradients_cannot_tell_apart(monkeypatch):
    rng = np.random.default_rng(21)
    X, y, offsets, _ = graded(21, [30] * 8, 3, p=10)
    X = np.hstack([X + 1e-4 * rng.normal(size=X.shape) for _ in range(6)]) * 10.0 ** rng.integers(-4, 5, 60)
    result = {}
    for most_columns in (0, 1000):
        monkeypatch.setattr("truerank.solvers.newton._MOST_COLUMNS", most_columns)
        pairs = GradedPairs(y, offsets)
        result[most_columns] = minimise_pairs(PairSums(LinearRows(X), pairs), 10.0, 1e-7, 200)
    by_matrix = result[1000]
    assert by_matrix.status is Status.CONVERGED
    assert by_matrix.details["n_products"] < result[0].details["n_products"]
    assert by_matrix.objective <= result[0].objective * (1 + 1e-7)
    value, gradient = pair_objective(by_matrix.coef, X, y, offsets, 10.0)
    assert 0.5 * gradient @ gradient <= 2e-7 * value


@pytest.mark.filterwarnings("ignore:RankSVM stopped because floating point")
def test_columns_whose_spread_is_lost_in_rounding():
    """A column of 10^15 beside small ones left a negative curvature by rounding; its root was nan, and fit failed."""
    from support.fuzz_exports import drawn
    from truerank.rankers.rank_svm import RankSVM

    data, *_ = drawn(410)
    assert np.isfinite(RankSVM().fit(data).coef_).all()
