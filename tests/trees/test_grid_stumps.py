"""The grid of thresholds and the codes of rows on it."""

import numpy as np
import pytest

from truerank.trees.stumps import GridStumps


@pytest.mark.parametrize("n_thresholds", [1, 10, 253, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_count_the_thresholds_below(n_thresholds, dtype):
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(200, 4)).astype(dtype)
    X[rng.random(200) < 0.1, 1] = np.nan
    X[:, 2] = 1.0
    rows = rng.permutation(200)[:150]
    stumps = GridStumps(X, rows, n_thresholds, None)
    assert stumps.columns.tolist() == [0, 1, 3]
    for codes, thresholds, k in zip(stumps.codes, stumps.thresholds, stumps.columns):
        x = X[rows, k].astype(np.float64)
        below = (thresholds[None, :] < x[:, None]).sum(axis=1)
        np.testing.assert_array_equal(codes, np.where(np.isnan(x), len(thresholds) + 1, below))
