import numpy as np
import pytest
from scipy.stats import kendalltau

from truerank import ObliviousBoosting, RankingData
from truerank.data.samples import load_sample
from truerank.inspection.stability import _steps, kendall_distances, ranking_stability


class ByFirst:
    def predict(self, X):
        return X[:, 0]


def test_distance_is_the_share_of_pairs_in_other_order():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 8, 9, 21])
    a, b = rng.permutation(21).astype(float), rng.permutation(21).astype(float)
    got = kendall_distances(a, b, offsets)
    assert np.isnan(got[1])
    for q in (0, 2):
        rows = slice(offsets[q], offsets[q + 1])
        assert got[q] == pytest.approx((1 - kendalltau(a[rows], b[rows]).statistic) / 2)
    assert kendall_distances(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]), np.array([0, 3]))[0] == pytest.approx(
        0.5 / 3
    )
    assert kendall_distances(np.array([1.0, 2]), np.array([2.0, 1]), np.array([0, 2]))[0] == 1


def test_neighbours_are_the_next_observed_values():
    down, up = _steps(np.array([3.0, 1.0, np.nan, 3.0, 7.0]))
    np.testing.assert_array_equal(down, [1, 3, np.nan, 1, 3])
    np.testing.assert_array_equal(up, [7, 3, np.nan, 7, 3])
    down, up = _steps(np.array([2.0, 2.0]))
    np.testing.assert_array_equal([down, up], [[2, 2], [2, 2]])


def test_the_seed_decides_and_the_data_stay():
    rng = np.random.default_rng(1)
    data = RankingData(rng.standard_normal((60, 3)), np.zeros(60), np.repeat(np.arange(6), 10))
    kept = data.X.copy()
    one = ranking_stability(ByFirst(), data, random_state=4)
    np.testing.assert_array_equal(one, ranking_stability(ByFirst(), data, random_state=4))
    np.testing.assert_array_equal(data.X, kept)
    assert (one > 0).any()


def test_fuzzy_borders_rank_more_steadily_than_plain_ones():
    data = load_sample()
    train, test = data.take_queries(range(120)), data.take_queries(range(120, 180))
    plain, fuzzy = (
        ranking_stability(ObliviousBoosting(leaves, n_estimators=40).fit(train), test, repeats=5, random_state=0)
        for leaves in ("constant", "fuzzy")
    )
    assert np.nanmean(fuzzy) < np.nanmean(plain)
