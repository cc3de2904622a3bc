"""Transformers within the query, against plain loops and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.utils.estimator_checks import parametrize_with_checks

from truerank.features.per_query import MinMaxInQuery, PercentileInQuery, ZScoreInQuery

KINDS = [PercentileInQuery, MinMaxInQuery, ZScoreInQuery]


EXPECTED = {"check_methods_subset_invariance": "a value is mapped by the other values of its query"}


@parametrize_with_checks([kind() for kind in KINDS], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_conformance(estimator, check):
    check(estimator)


def plain(kind, values):
    there = ~np.isnan(values)
    result = np.full(len(values), np.nan)
    x = values[there]
    if not len(x):
        return result
    if kind is PercentileInQuery:
        result[there] = (rankdata(x) - 1) / max(len(x) - 1, 1)
    elif kind is MinMaxInQuery:
        result[there] = (x - x.min()) / (x.max() - x.min()) if x.max() > x.min() else 0.0
    else:
        result[there] = (x - x.mean()) / x.std() if x.max() > x.min() else 0.0
    return result


@pytest.mark.parametrize("kind", KINDS)
def test_as_plain_loops_over_queries_in_any_row_order(kind):
    rng = np.random.default_rng(0)
    qid = np.repeat([4, 2, 9, 7], [6, 1, 3, 20])
    X = rng.integers(0, 6, (30, 3)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[qid == 9, 0] = np.nan
    X[qid == 9, 1] = 5.0
    expected = np.empty_like(X)
    for q in np.unique(qid):
        for j in range(3):
            expected[qid == q, j] = plain(kind, X[qid == q, j])
    np.testing.assert_allclose(kind().fit_transform(X, qid=qid), expected, atol=1e-12)
    order = rng.permutation(30)
    np.testing.assert_allclose(kind().fit(X).transform(X[order], qid=qid[order]), expected[order], atol=1e-12)
    before = X.copy()
    kind().fit_transform(X, qid=qid)
    np.testing.assert_array_equal(X, before)


def test_min_max_of_huge_values_does_not_overflow():
    X = np.array([[-1.7e308], [1.7e308], [0.0]])
    assert MinMaxInQuery().fit_transform(X).ravel().tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_columns(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "lm": [0.0, 0.0]})
    assert kind().fit(frame).get_feature_names_out().tolist() == ["bm25", "lm"]
    assert kind().fit([[1.0], [2.0]]).get_feature_names_out().tolist() == ["x0"]
    assert kind().fit([[1.0], [2.0]]).get_feature_names_out(["a"]).tolist() == ["a"]


@pytest.mark.parametrize("scale", [1e-200, 2.0**-1060, 1e200, 2.0**1018])
def test_z_scores_of_values_whose_squares_are_no_numbers(scale):
    X, qid = np.array([[1.0, 3.0], [2.0, 3.0], [6.0, np.nan], [5.0, 1.0]]), [1, 1, 1, 2]
    expected = ZScoreInQuery().fit_transform(X, qid=qid)
    X[:3] *= scale
    np.testing.assert_allclose(ZScoreInQuery().fit_transform(X, qid=qid), expected, atol=1e-12)
