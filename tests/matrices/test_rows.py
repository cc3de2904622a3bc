"""Products of dense, sparse and binned rows: order, scale and intercept against the plain matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from support.refusals import refused
from truerank.core.errors import InvalidInputError
from truerank.matrices.binned import BinnedMatrix
from truerank.matrices.rows import LinearRows, linear_scores
from truerank.matrices.stored_values import csr_parts

KINDS = ["dense", "float32", "sparse", "codes", "present"]


def problem(kind, seed=0, n=60, p=11):
    """A matrix of one kind, and the plain matrix of its features."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, p)), 2)
    if kind in ("codes", "present"):
        X[rng.random(X.shape) < (0.9 if kind == "present" else 0.3)] = np.nan
        binned = BinnedMatrix.from_values(X, [[-0.5, 0.5], *[[0.1, 0.2, 0.9]] * (p - 1)])
        return binned, binned.to_csr().toarray()
    X[rng.random(X.shape) < 0.5] = 0.0
    if kind == "float32":
        X = X.astype(np.float32)
    return (sparse.csr_matrix(X) if kind == "sparse" else X), X.astype(np.float64)


@pytest.mark.parametrize("intercept", [0.0, 3.0])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_plain_matrix(kind, copied, moved, intercept, monkeypatch):
    monkeypatch.setattr("truerank.matrices.rows._COPIED_BYTES", 10**9 if copied else -1)
    X, plain = problem(kind)
    n, p = plain.shape
    rng = np.random.default_rng(1)
    order = rng.permutation(n) if moved else None
    scale = None
    if moved and kind not in ("codes", "present"):
        scale = 2.0 ** rng.integers(-3, 4, p)
        scale[2] = 0.0
    seen = plain if order is None else plain[order]
    if scale is not None:
        seen = seen * np.divide(1.0, scale, out=np.zeros(p), where=scale > 0)
    if intercept:
        seen = np.column_stack([seen, np.full(n, intercept)])
    rows = LinearRows(X, order=order, scale=scale, intercept=intercept)
    assert rows.n_weights == seen.shape[1]
    w, c = rng.normal(size=rows.n_weights), rng.normal(size=n) * (rng.random(n) < 0.7)
    np.testing.assert_allclose(rows.scores(w), seen @ w, atol=1e-12)
    assert not rows.scores(np.zeros(rows.n_weights)).any()
    part = np.full(n, np.nan)
    rows.write_scores(w, part, 7, 20)
    assert np.array_equal(part[7:20], rows.scores(w)[7:20])
    assert np.isnan(part[20:]).all()
    np.testing.assert_allclose(rows.sums(c, 5, 50), seen[5:50].T @ c[5:50], atol=1e-12)
    bounds = np.array([0, 10, 10, n])
    blocks = [seen[a:b].T @ c[a:b] for a, b in zip(bounds[:-1], bounds[1:])]
    np.testing.assert_allclose(rows.block_sums(c, bounds), blocks, atol=1e-12)
    np.testing.assert_allclose(rows.square_sums(c), (seen**2).T @ c, atol=1e-12)
    # The weights for the columns as they are give the same scores.
    folded = linear_scores(X, rows.coef(w)) + (intercept * w[-1] if intercept else 0.0)
    np.testing.assert_allclose(folded if order is None else folded[order], seen @ w, atol=1e-12)


def test_weights_of_another_length_are_refused():
    for weights in (np.zeros(4), np.ones(4)):
        with refused(InvalidInputError, code="different-shapes"):
            LinearRows(np.zeros((2, 3))).scores(weights)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_copied_into_the_order_give_the_same_bits(kind, monkeypatch):
    X, plain = problem(kind)
    rng = np.random.default_rng(2)
    order, w, c = rng.permutation(len(plain)), rng.normal(size=plain.shape[1]), rng.normal(size=len(plain))
    bits = []
    for limit in (-1, 10**9):
        monkeypatch.setattr("truerank.matrices.rows._COPIED_BYTES", limit)
        rows = LinearRows(X, order=order)
        bits.append((rows.scores(w).tobytes(), rows.sums(c, 3, 50).tobytes(), rows.square_sums(c).tobytes()))
    assert bits[0] == bits[1]


def test_indices_of_any_integers_give_the_same_bits_and_int32_is_not_copied():
    rng = np.random.default_rng(4)
    X = sparse.random(50, 9, density=0.3, format="csr", random_state=rng)
    wide = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert np.shares_memory(csr_parts(X)[1], X.indices)
    weights, coefficients = rng.standard_normal(9), rng.standard_normal(50)
    for found, expected in (
        (LinearRows(wide).scores(weights), LinearRows(X).scores(weights)),
        (LinearRows(wide).sums(coefficients, 0, 50), LinearRows(X).sums(coefficients, 0, 50)),
    ):
        assert found.tobytes() == expected.tobytes()
