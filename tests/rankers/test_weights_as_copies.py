"""A query weight of 2 equals two copies of the query in every ranker, also where columns are brought to one scale."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from truerank import AdaRank, ListNet, MeasureSVM, PointwiseSVM, RankBoost, RankingData, RankSVM, RidgeRanker
from truerank.cluster import from_parts
from truerank.rankers.sums.linear import LinearProblem


def made(form=np.asarray):
    """Queries with weights 0 to 3, and columns that spread more in heavier ones; the same queries as copies."""
    rng = np.random.default_rng(0)
    m, size = 24, 12
    weight = rng.integers(0, 4, m).astype(float)
    query = np.repeat(np.arange(m), size)
    X = rng.standard_normal((m * size, 4)) * [1.0, 3e4, 1e-3, 50.0] * (1.0 + weight[query, None]) ** [1, 2, 3, 0]
    y = np.clip(np.round(X[:, 0] + X[:, 1] / 3e4 + rng.standard_normal(len(X))), 0, 3)
    weighed = RankingData(form(X), y, query, query_weight=weight)
    copies = RankingData(form(X), y, query).take_queries(np.repeat(np.arange(m), weight.astype(int)))
    return weighed, copies


LINEAR = [
    ListNet(max_iter=50),
    RidgeRanker(),
    RankSVM(tol=1e-8),
    RankSVM(tol=1e-8, weighting="queries"),
    PointwiseSVM(tol=1e-8, max_iter=100_000),
]
DENSE = [AdaRank(n_estimators=10), RankBoost(10), RankBoost(10, thresholds="all"), *LINEAR]


@pytest.mark.parametrize(
    ("ranker", "form"), [(one, np.asarray) for one in DENSE] + [(one, csr_matrix) for one in LINEAR], ids=repr
)
def test_a_weight_of_two_is_two_copies(ranker, form):
    weighed, copies = made(form)
    one, two = ranker.fit(weighed).predict(copies), ranker.fit(copies).predict(copies)
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4 * two.std())
    plain = ranker.fit(RankingData(weighed.X, weighed.y, weighed.qid)).predict(copies)
    assert np.abs(plain - two).max() > 0.01 * two.std()


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_structural_svms_reach_one_objective(form):
    weighed, copies = made(form)
    one, two = (MeasureSVM(tol=1e-6).fit(data) for data in (weighed, copies))
    np.testing.assert_array_equal(one.scale_, two.scale_)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_scales_and_spreads_are_those_of_copies_also_in_partitions(form):
    weighed, copies = made(form)
    given = weighed, copies, weighed.replaced(query_weight=None)
    one, two, plain = (LinearProblem(data.in_parts(None), "auto") for data in given)
    np.testing.assert_array_equal(one.scale, two.scale)
    assert not np.array_equal(one.scale, plain.scale)
    parts = from_parts([weighed.take_queries(np.arange(k, weighed.n_queries, 3)) for k in range(3)])
    many = LinearProblem(parts, "auto", intercept=1.0)
    np.testing.assert_array_equal(many.scale, one.scale)
    w = np.array([1.0, -2.0, 0.5, 3.0])
    for spread in (two.score_spread(w), many.score_spread(np.append(w, 0.0))):
        assert one.score_spread(w) == pytest.approx(spread, rel=1e-12)
