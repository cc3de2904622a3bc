"""Stumps at all distinct values compared with a trial of each threshold."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.trees.stumps import SortedStumps, Stump

N = 700


def every_edge(column, potentials):
    """Threshold, missing and r of each stump on a column, by threshold."""
    present = np.unique(column[~np.isnan(column)])
    lowest = [-np.inf] if np.isnan(column).any() and len(present) else []
    for threshold in [*lowest, *present[:-1]]:
        for missing in (0, 1):
            yield threshold, missing, potentials[np.where(np.isnan(column), missing == 1, column > threshold)].sum()


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_best_and_apply(missing, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            np.ones(N),
            rng.normal(size=N),
            np.maximum(rng.normal(size=N), 0.0),  # the fullest value is the lowest
            np.minimum(rng.normal(size=N), 0.0),  # the highest
            np.clip(rng.normal(size=N), -0.3, 0.3).round(3),  # at both ends
            np.where(rng.random(N) < 0.3, 0.1, rng.normal(size=N)),  # in the middle
            rng.integers(0, 5, N),
        ]
    )
    X[rng.random(X.shape) < missing] = np.nan
    potentials = rng.normal(size=N) + 0.3 * np.nan_to_num(X[:, rng.integers(1, 7)])
    potentials -= potentials.mean()
    potentials /= np.abs(potentials).sum() / 2
    rows = np.arange(N)
    edges = [(k, *stump) for k in range(X.shape[1]) for stump in every_edge(X[:, k], potentials)]
    largest = max(abs(edge[-1]) for edge in edges)
    expected = next(edge for edge in edges if abs(edge[-1]) >= largest - 1e-12)
    search = SortedStumps(X, rows, 1)
    best = search.best(potentials)
    assert (best.feature, best.threshold, best.missing) == expected[:3]
    assert best.edge == pytest.approx(expected[3], abs=1e-14)
    for k, threshold, side, edge in edges[:: len(edges) // 60]:
        scores = np.full(N, 0.5)
        search.apply(Stump(k, threshold, side, edge), 0.25, scores)
        above = np.where(np.isnan(X[:, k]), side == 1, X[:, k] > threshold)
        np.testing.assert_array_equal(scores, np.where(above, 0.75, 0.5))
