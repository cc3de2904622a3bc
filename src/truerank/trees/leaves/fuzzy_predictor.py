"""Scores from fuzzy leaves: every tree's leaf values, averaged over the probability of each leaf.

Rows are taken in tiles of 64. First the states of a task's values are found, feature by feature, so that a feature's
steps stay in the cache while they are asked. Then tile after tile takes the two factors of its values in the shares of
borders, which fit the second-level cache, and the trees walk over it.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.steps import count_below
from truerank.matrices.stored_values import kernel_array
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.fuzzy import FlatPlaces, contract
from truerank.trees.leaves.knots import knot_index
from truerank.trees.leaves.places import Norms, make_shares

_TILE = 64
_TASK = 256 * _TILE  # rows of one task of a thread


class FuzzyPredictor:
    """Scores from fuzzy leaves: d contractions of a 2^d vector a row and tree.

    Attributes
    ----------
    first : int64 array (u + 1,)
        Where the knots of each used feature begin.
    factors : float64 array (Σ(2K + 1), 2)
        Factors of P(left) and of P(right) by state, of one feature after the other.
    blocks : float64 array (2, Σ(2K + 1))
        First and last place of each state, which steep features ask for.
    columns, border_states, missing_right : arrays (T, depth)
        The used feature that a level asks about, and the last state left of its border.
    border_factors : float64 array (T, depth, 3)
        Factors of the border in P(left) and P(right), and the number of training values at or below it.
    """

    def __init__(self, ensemble: Ensemble, flat: FlatPlaces, p: float, ties: str) -> None:
        self.features = flat.features
        tables = flat.tables()
        norms = Norms(p)
        shares = [make_shares(table, norms, ties) for table in tables]
        self.first = offsets_of(flat.sizes)
        self.factors = np.concatenate([np.empty((0, 2)), *(np.stack([s.up, s.down], axis=1) for s in shares)])
        self.blocks = np.concatenate([np.empty((2, 0)), *(np.stack([s.start, s.stop]) for s in shares)], axis=1)
        self.log_p = norms.log_p
        self.steep = np.array([s.steep for s in shares], dtype=np.bool_)
        shape = ensemble.features.shape
        self.columns = np.searchsorted(flat.features, ensemble.features).astype(np.int64)
        self.border_states = np.empty(shape, dtype=np.int64)
        self.border_factors = np.empty((*shape, 3))
        for t, level in np.ndindex(*shape):
            k = int(self.columns[t, level])
            b, state = tables[k].place_of_border(float(ensemble.borders[t, level]))
            self.border_states[t, level] = state
            self.border_factors[t, level] = (*shares[k].border_factors(b), b)
        self.missing_right = ensemble.missing_right
        self.values = ensemble.values
        index = knot_index([(table.lower, table.upper) for table in tables])
        self._index = {np.dtype(kind): index.arrays(kind) for kind in (np.float32, np.float64)}

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these."""
        used = np.unique(self.columns[trees])  # of one tree after the other: no states of other features
        columns = np.searchsorted(used, self.columns[trees])
        first_rights = (self.border_states + 1).astype(np.uint16)
        index = self._index[X.dtype]

        def work(start: int, stop: int) -> None:
            states = _find_states(kernel_array(X[start:stop]), self.features[used], used, *index)
            _add_trees(
                states, used, self.first, self.factors, self.blocks, self.steep, self.log_p, columns,
                first_rights[trees], self.border_factors[trees], self.missing_right[trees], self.values[trees],
                scores[start:stop],
            )  # fmt: skip

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores


@kernel
def _find_states(X, features, used, low, inverse, halvings, cells, first_cell, first_step, steps, sizes):
    """States uint16 (tiles, features, 64) of the rows' values. Many arguments: eight are the index."""
    n = X.shape[0]
    n_tiles = -(-n // 64)
    values = np.empty((n_tiles, features.size, 64), dtype=X.dtype)
    values[n_tiles - 1] = 0.0  # rows of the last tile may be missing
    for i in range(n):
        x = X[i]
        tile = values[i // 64]
        for j in range(features.size):
            tile[j, i % 64] = x[features[j]]
    states = np.empty((n_tiles, features.size, 64), dtype=np.uint16)
    found = np.empty(64, dtype=np.uint32)
    for j in range(used.size):
        k = used[j]
        own_cells = cells[first_cell[k] : first_cell[k + 1]]
        own_steps = steps[first_step[k] : first_step[k + 1]]
        for t in range(n_tiles):
            count_below(values[t, j], low[k], inverse[k], halvings[k], own_cells, own_steps, sizes[k] + 1, found)
            for i in range(64):
                states[t, j, i] = found[i]
    return states


@kernel
def _take_factors(states, used, first, factors, blocks, steep, tile, missing):
    """The factors of a tile's values, and of steep features their places; and which features have a missing value."""
    for j in range(used.size):
        k = used[j]
        own = slice(2 * first[k] + k, 2 * first[k + 1] + k + 1)
        own_factors = factors[own]
        lost = np.uint32(own_factors.shape[0])
        number = 0
        for i in range(64):
            s = np.uint32(states[j, i])
            number += s == lost
            s = s if s < lost else np.uint32(0)
            tile[j, 0, i] = own_factors[s, 0]
            tile[j, 1, i] = own_factors[s, 1]
        missing[j] = number > 0
        if steep[k]:
            start, stop = blocks[0, own], blocks[1, own]
            for i in range(64):
                s = np.uint32(states[j, i])
                s = s if s < lost else np.uint32(0)
                tile[j, 2, i] = start[s]
                tile[j, 3, i] = stop[s]


@kernel
def _add_trees(
    states, used, first, factors, blocks, steep, log_p, columns, first_rights, border_factors, missing_right, values,
    scores,
):  # fmt: skip
    """Add every tree's expected leaf value to the scores (n,), a tile after the other.

    Elements are named in full: views of a tile would be counted and discounted once a level.
    Many arguments: seven are the shares of all values, five the trees.
    """
    n_trees, depth = columns.shape
    right = np.empty((depth, 64))
    work = np.empty((1 << max(0, depth - 1), 64))
    tile = np.empty((used.size, 4 if steep[used].any() else 2, 64))
    missing = np.empty(used.size, dtype=np.bool_)
    for t in range(states.shape[0]):
        rows = min(64, scores.size - 64 * t)
        _take_factors(states[t], used, first, factors, blocks, steep, tile, missing)
        for tree in range(n_trees):
            for level in range(depth):
                j = columns[tree, level]
                k = used[j]
                first_right = first_rights[tree, level]
                left_factor = border_factors[tree, level, 0]
                right_factor = border_factors[tree, level, 1]
                if steep[k]:
                    b = border_factors[tree, level, 2]
                    for i in range(rows):
                        if states[t, j, i] >= first_right:
                            power = np.exp(log_p * (tile[j, 2, i] - b + 1.0))
                            right[level, i] = 1.0 - tile[j, 0, i] * power * left_factor
                        else:
                            power = np.exp(log_p * (b - tile[j, 3, i]))
                            right[level, i] = tile[j, 1, i] * power * right_factor
                else:
                    for i in range(64):
                        from_right = 1.0 - tile[j, 0, i] * left_factor
                        from_left = tile[j, 1, i] * right_factor
                        right[level, i] = from_right if states[t, j, i] >= first_right else from_left
                if missing[j]:
                    side = 1.0 if missing_right[tree, level] else 0.0
                    lost = 2 * (first[k + 1] - first[k]) + 1
                    for i in range(rows):
                        right[level, i] = side if states[t, j, i] == lost else right[level, i]
            contract(right, depth, rows, values[tree], work, scores[64 * t : 64 * t + rows])
