"""The ranks that the kernels count and bisect, against sorting."""

from __future__ import annotations

import numpy as np
import pytest

from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.measures.kernel import QueryMeasure


@pytest.mark.parametrize("name", ["AP", "nDCG@3", "RR", "P@2"])
@pytest.mark.parametrize("relevant", [3, 30])  # counting, and sorting with bisection
def test_values_of_two_queries(name, relevant):
    rng = np.random.default_rng(relevant)
    n = relevant + 10
    y = np.concatenate([rng.permutation(n) < relevant, [0, 1, 2, 0]]) * 1.0
    data = RankingData(rng.integers(0, 9, (n + 4, 2)).astype(float), y, [0] * n + [1] * 4)
    measure = parse_measure(name)
    expected = measure.per_query(data.judgements(), data.X.T).T
    np.testing.assert_allclose(QueryMeasure(data, measure).of_columns(data.X), expected, rtol=1e-13)
