"""The kernel's values are the measure's own, under every convention that it serves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.measures import CONVENTIONS, parse_measure
from truerank.measures import kernel as query_measure
from truerank.measures.kernel import QueryMeasure

NAMES = ("AP", "AP@5", "nDCG", "nDCG@5", "RR", "RR@3", "P@5", "WTA", "ROC")


def judged(seed=0, *, sizes=None, grades=4, decimals=1, p=4):
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([rng.integers(1, 40, 30), [200]]) if sizes is None else np.asarray(sizes)
    n = int(sizes.sum())
    y = rng.integers(0, grades, n).astype(float) * (rng.random(n) < rng.random())
    y[-100:] = rng.integers(0, grades, n)[-100:]
    X = np.round(rng.normal(size=(n, p)), decimals)
    return RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes), doc_ids=rng.permutation(n).astype(str))


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_all_columns_at_once_equal_the_measure(convention):
    data = judged()
    for name in NAMES:
        try:
            measure = parse_measure(name, convention)
        except InvalidInputError:  # scikit-learn's average over ties has no closed form for every measure
            assert convention == "sklearn"
            continue
        evaluator = QueryMeasure(data, measure)
        expected = measure.per_query(data.judgements(), data.X.T).T
        np.testing.assert_allclose(evaluator.of_columns(data.X), expected, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(evaluator.of_scores(data.X[:, 1]), expected[:, 1], rtol=1e-13, atol=1e-14)
        rising = measure.per_query(data.judgements(), -data.X.T.astype(np.float32)).T
        given = evaluator.of_columns(data.X.astype(np.float32), descending=False)
        np.testing.assert_allclose(given, rising, rtol=1e-13, atol=1e-14)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
    st.integers(2, 5),
    st.sampled_from(NAMES[:7]),
)
def test_any_shape(seed, sizes, grades, name):
    data = judged(seed, sizes=sizes, grades=grades, decimals=seed % 3)
    measure = parse_measure(name, ("ranklib", "trec", "catboost")[seed % 3])
    expected = measure.per_query(data.judgements(), data.X.T).T
    np.testing.assert_allclose(QueryMeasure(data, measure).of_columns(data.X), expected, rtol=1e-13, atol=1e-14)


def test_blocks_threads_and_sparse_rows_change_no_bit(monkeypatch):
    data = judged()
    for name in ("nDCG@10", "ROC"):
        evaluator = QueryMeasure(data, parse_measure(name))
        whole = evaluator.of_columns(data.X)
        with monkeypatch.context() as patch:
            patch.setattr(query_measure, "_BLOCK_VALUES", 100)
            assert np.array_equal(evaluator.of_columns(data.X, n_jobs=3), whole)
            assert np.array_equal(evaluator.of_columns(sparse.csr_matrix(data.X)), whole)


def test_empty_queries_follow_the_rule():
    data = RankingData([[1.0], [2.0], [3.0]], [0, 0, 1], ["a", "a", "b"])
    for empty, value in (("zero", 0.0), ("one", 1.0), ("skip", np.nan)):
        values = QueryMeasure(data, parse_measure(f"AP(empty={empty})")).of_columns(data.X)
        np.testing.assert_array_equal(values, [[value], [1.0]])


def test_scores_out_of_range_are_an_error():
    with pytest.raises(InvalidInputError, match="scale the features"):
        QueryMeasure(judged(), parse_measure("AP")).of_scores(np.full(judged().n_rows, np.inf))
