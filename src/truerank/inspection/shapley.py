"""Shapley values of boosted oblivious trees, in closed form.

The game of a tree: let a row's score be Σ_l F(l) Π_j a_j(l) over the leaves l, where a_j(l) is the product of the
probabilities that the row gives the answers of leaf l at the levels that ask feature j (0 or 1 with plain borders).
The answers of an unknown feature have the probabilities of the reference rows *on the path to the leaf*: b_j(l), the
product over its levels of (rows of the child) / (rows of the node), or 1/2 for a node without rows. The value of a
coalition S of known features is

    v(S) = Σ_l F(l) Π_(j ∈ S) a_j(l) Π_(j ∉ S) b_j(l),

so that v(all) is the tree's score and v(none) is its mean over the reference rows, as in path-dependent TreeSHAP. In a
polynomial leaf F(l) is a sum of monomials Π_j z_j^e. An unknown feature has its training mean, z = 0, so that each
monomial is a product of the same form.

The values: with the u features of a tree, Shapley's average over all orders is an integral over the share t of known
features (Owen's multilinear extension),

    φ_j = Σ_l F(l) ∫_0^1 (a_j - b_j) Π_(i ≠ j) (t a_i + (1 - t) b_i) dt,

whose integrand is a polynomial of degree u - 1 in t, which ⌈u / 2⌉ Gauss-Legendre nodes integrate exactly. With plain
borders a row's values depend only on its leaf, so they are computed once for each leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import run_blocks
from truerank.trees.ensemble import Ensemble
from truerank.trees.kept_parts import kept

_MOST_REFERENCE = 4_096  # reference rows of fuzzy leaves, each of which costs 2^d
_ROWS = 4_096


@dataclass(frozen=True)
class ShapleyValues:
    """Contributions of features to scores; the scores are `base + values.sum(axis=1)`."""

    values: np.ndarray  # float64 (n, p)
    base: float  # mean score of the reference rows in the game


def tree_shapley(ranker: Any, X: np.ndarray, reference: np.ndarray) -> ShapleyValues:
    """Return Shapley values of a fitted `ObliviousBoosting` with any kind of leaves and start, for the rows of X.

    The rows of `reference` (r, p) determine the probabilities of the answers. Fuzzy leaves use at most 4,096 reference
    rows, evenly spaced. Plain leaves cost O(4^d d²) for a tree, and O(d) for a row and tree; fuzzy and polynomial
    leaves O(2^d d²) for a row and tree, times the number of monomials.

    References
    ----------
    S. M. Lundberg et al., Nature Machine Intelligence 2, 2020 (the game); G. Owen, Management Science 18, 1972.
    """
    form = ranker.kind_of_leaves.form(kept(ranker, Ensemble), ranker)
    trees = form.trees
    same = X is reference
    X, reference = (part.toarray() if hasattr(part, "toarray") else part for part in (X, reference))
    X = np.ascontiguousarray(ranker.encoded(X), dtype=np.float64)
    reference = X if same else np.ascontiguousarray(ranker.encoded(reference), dtype=np.float64)
    if len(reference) == 0:
        raise InvalidInputError(
            "Shapley values require reference rows, got none. Pass the training or the test rows", argument="reference"
        )
    if form.is_shared and len(reference) > _MOST_REFERENCE:
        reference = reference[np.linspace(0, len(reference) - 1, _MOST_REFERENCE).astype(np.int64)]
    start = ranker._start()
    base = float(start.constant)
    columns = np.ascontiguousarray(X.T)  # the values of a feature are contiguous
    of_reference = columns if X is reference else np.ascontiguousarray(reference.T)
    values = np.zeros(columns.shape)
    if start.linear is not None:
        # An unknown feature has its training mean, where it adds 0.
        every = np.arange(X.shape[1])
        values += start.linear.scaling.standardise(columns.copy(), every) * start.linear.weights[:, None]
    answers, monomials = form.answers(), form.monomials()
    for tree in range(trees.n_trees):
        features, slots = np.unique(trees.features[tree], return_inverse=True)
        u = len(features)
        right = answers(tree, columns)
        seen = right if of_reference is columns else answers(tree, of_reference)
        ratios = _ratios(_rows_by_leaf(seen), slots, u)
        powers, z = _powers(monomials, slots, u), form.variables(columns[features], features)
        coefficients = trees.values[tree].reshape(1 << trees.depth, len(powers))
        # Π_j b_j of each leaf and monomial, with 0 for a feature of the monomial: (2^d, M)
        base += float(np.sum(coefficients * (ratios.prod(axis=1)[:, None] * (powers.sum(axis=1) == 0))))
        # Gauss-Legendre nodes and weights on [0, 1] that integrate polynomials of degree u - 1 exactly
        nodes, weights = np.polynomial.legendre.leggauss((u + 1) // 2)
        game = (slots, np.ascontiguousarray(coefficients), powers, ratios, (nodes + 1) / 2, weights / 2)
        if right.dtype == bool and z is None:
            every_leaf = (np.arange(1 << trees.depth) >> np.arange(trees.depth)[:, None]) & 1
            table = np.ascontiguousarray(_of_rows(every_leaf.astype(np.float64), None, game, ranker.n_jobs).T)
            leaf = _leaf_numbers(right)
            for feature, column in zip(features, table):
                values[feature] += column[leaf]
        else:
            values[features] += _of_rows(right, z, game, ranker.n_jobs).T
    return ShapleyValues(np.ascontiguousarray(values.T), base)


def _of_rows(right: np.ndarray, z: np.ndarray | None, game: tuple[Any, ...], n_jobs: int | None) -> np.ndarray:
    """Return values (n, u) of one tree for rows with P(right) (d, n) and standardised features (n, u)."""
    rows = np.ascontiguousarray(right.T, dtype=np.float64)
    found = np.zeros((len(rows), game[2].shape[1]))
    z = np.zeros_like(found) if z is None else np.ascontiguousarray(z)

    def work(a: int, b: int) -> None:
        _shapley_rows(rows[a:b], z[a:b], *game, found[a:b])

    run_blocks(work, [(i, min(i + _ROWS, len(rows))) for i in range(0, len(rows), _ROWS)], n_jobs)
    return found


def _leaf_numbers(right: np.ndarray) -> np.ndarray:
    """Return the number of each row's leaf (n,): level t is bit t."""
    leaf = np.zeros(right.shape[1], dtype=np.int64)
    for level, answer in enumerate(right):
        leaf |= answer.astype(np.int64) << level
    return leaf


def _rows_by_leaf(right: np.ndarray) -> np.ndarray:
    """Return the rows in each leaf, float64 (2^d,): counts, or sums of probabilities with fuzzy borders."""
    depth, n = right.shape
    if right.dtype == bool:
        return np.bincount(_leaf_numbers(right), minlength=1 << depth).astype(np.float64)
    rows = np.zeros(1 << depth)
    for start in range(0, n, _ROWS):
        shares = np.ones((1, min(_ROWS, n - start)))
        for q in right[:, start : start + _ROWS]:
            shares = np.concatenate([shares * (1 - q), shares * q])
        rows += shares.sum(axis=1)
    return rows


def _ratios(rows: np.ndarray, slots: np.ndarray, u: int) -> np.ndarray:
    """Return b_j(l), float64 (2^d, u): the share of reference rows that follow a leaf's path at a feature's levels."""
    number = np.arange(len(rows))
    ratios = np.ones((len(rows), u))
    for level, slot in enumerate(slots):
        node, child = number & ((1 << level) - 1), number & ((2 << level) - 1)
        in_node = np.bincount(node, weights=rows, minlength=1 << level)[node]
        in_child = np.bincount(child, weights=rows, minlength=2 << level)[child]
        empty = in_node <= 0
        ratios[:, slot] *= np.where(empty, 0.5, in_child / np.where(empty, 1.0, in_node))
    return ratios


def _powers(table: np.ndarray, slots: np.ndarray, u: int) -> np.ndarray:
    """Return the exponent of each of a tree's features in each monomial, int64 (M, u)."""
    powers = np.zeros((len(table), u), dtype=np.int64)
    for j, (earlier, variable) in enumerate(table.tolist()):
        if j:
            powers[j] = powers[earlier]
            powers[j, slots[variable]] += 1
    return powers


@kernel
def _shapley_rows(right, z, slots, coefficients, powers, ratios, nodes, weights, out):
    """Add φ (n, u) of one tree; `right` is (n, d), `coefficients` (2^d, M), `powers` (M, u), `ratios` (2^d, u)."""
    n, depth = right.shape
    u = ratios.shape[1]
    a = np.empty(u)
    known = np.empty(u)
    unknown = np.empty(u)
    before = np.empty(u + 1)
    for i in range(n):
        for leaf in range(coefficients.shape[0]):
            a[:] = 1.0
            for level in range(depth):
                q = right[i, level]
                a[slots[level]] *= q if (leaf >> level) & 1 else 1.0 - q
            for m in range(coefficients.shape[1]):
                c = coefficients[leaf, m]
                if c == 0.0:
                    continue
                for j in range(u):
                    known[j] = a[j]
                    for _ in range(powers[m, j]):
                        known[j] *= z[i, j]
                    unknown[j] = ratios[leaf, j] if powers[m, j] == 0 else 0.0
                for g in range(nodes.size):
                    t = nodes[g]
                    before[0] = c * weights[g]
                    for j in range(u):
                        before[j + 1] = before[j] * (t * known[j] + (1.0 - t) * unknown[j])
                    after = 1.0
                    for back in range(u):
                        j = u - 1 - back
                        out[i, j] += (known[j] - unknown[j]) * before[j] * after
                        after *= t * known[j] + (1.0 - t) * unknown[j]
