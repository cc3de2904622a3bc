"""Linear scores: bits that depend on the row alone, and what linear rankers share."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from support.refusals import refused
from truerank.core.errors import ModelFileError
from truerank.core.schema import check_model
from truerank.matrices.rows import linear_scores
from truerank.rankers.linear import LinearRanker


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7, 8, 9, 46, 136])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_alone_and_anywhere(p, dtype):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(300, p)).astype(dtype)
    w = rng.normal(size=p)
    scores = linear_scores(X, w)
    np.testing.assert_allclose(scores, X.astype(float) @ w, rtol=1e-12, atol=1e-12)
    assert all(linear_scores(X[i : i + 1], w)[0] == scores[i] for i in range(300))
    assert all(np.array_equal(linear_scores(X[s:], w), scores[s:]) for s in (1, 2, 3, 5, 7))
    order = rng.permutation(300)
    assert np.array_equal(linear_scores(X[order], w), scores[order])
    shifted = np.empty(X.nbytes + 64, dtype=np.uint8)[X.itemsize : X.itemsize + X.nbytes].view(dtype).reshape(X.shape)
    shifted[:] = X
    assert np.array_equal(linear_scores(shifted, w), scores)


def test_blocks_do_not_show(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 5))
    w = np.arange(5.0)
    whole = linear_scores(X, w)
    monkeypatch.setattr("truerank.matrices.rows._FEW_BLOCK_VALUES", 35)
    assert np.array_equal(linear_scores(X, w), whole)


def test_sparse_rows_agree_with_dense_ones():
    X = sparse.random(200, 40, density=0.1, random_state=1, format="csr")
    w = np.random.default_rng(1).normal(size=40)
    np.testing.assert_allclose(linear_scores(X, w), X.toarray() @ w, atol=1e-12)
    np.testing.assert_allclose(linear_scores(X.astype(np.float32), w), X.astype(np.float32).toarray() @ w, atol=1e-6)


def test_no_rows_and_no_columns():
    assert linear_scores(np.zeros((0, 3)), np.ones(3)).shape == (0,)
    assert linear_scores(np.zeros((4, 0)), np.ones(0)).tolist() == [0.0] * 4


def test_bits_do_not_depend_on_blas_threads():
    code = (
        "import json, numpy as np; from truerank.matrices.rows import linear_scores\n"
        "r = np.random.default_rng(3); print(json.dumps(linear_scores(r.normal(size=(2000, 300)), "
        "r.normal(size=300)).tolist()))"
    )
    results = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                env={"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": ":".join(filter(None, sys.path))},
            ).stdout
        )
        for threads in ("1", "2")
    ]
    assert results[0] == results[1]


def test_weights_by_name_and_the_check_of_a_loaded_model():
    ranker = LinearRanker()
    ranker.n_features_in_, ranker.coef_, ranker.n_queries_in_ = 3, np.array([0.5, 0.0, -2.0]), 1
    assert ranker.feature_weights() == {"feature 3": -2.0, "feature 1": 0.5}
    ranker.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
    assert list(ranker.feature_weights()) == ["c", "a"]
    check_model(ranker)
    ranker.coef_ = np.array([0.5, np.nan, 1.0])
    with refused(ModelFileError, argument="coef_", code="range"):
        check_model(ranker)
    ranker.coef_ = np.zeros(2)
    with refused(ModelFileError, argument="coef_", code="shape"):
        check_model(ranker)
