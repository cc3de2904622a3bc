"""Scores from fuzzy leaves: every tree's leaf values, averaged over the probability of each leaf.

Rows are taken in tiles of 64, each with room for its values, feature by feature, and for the two factors of these in
the shares of borders. First the factors of all rows are looked up, a feature's tables staying in the second-level cache
while they are asked; then the trees walk over one tile after the other.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.fuzzy import FlatPlaces, contract
from truerank.trees.leaves.knots import KnotIndex, states_of
from truerank.trees.leaves.places import Norms, make_shares
from truerank.trees.predictor import writable

_TILE = 64
_TILE_BYTES = 24 << 20  # of a task's tiles; more rows ask each table more often while it is in the cache
_FEWEST_TILES, _MOST_TILES = 16, 256


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
        self.first = np.concatenate([[0], np.cumsum(flat.sizes)]).astype(np.int64)
        self.factors = np.concatenate([np.empty((0, 2)), *(np.stack([s.up, s.down], axis=1) for s in shares)])
        self.blocks = np.concatenate([np.empty((2, 0)), *(np.stack([s.start, s.stop]) for s in shares)], axis=1)
        self.log_p = norms.log_p
        self.steep = np.array([s.steep for s in shares], dtype=np.bool_)
        shape = ensemble.features.shape
        self.columns = np.searchsorted(flat.features, ensemble.features).astype(np.int64)
        self.border_states = np.empty(shape, dtype=np.int64)
        self.border_factors = np.empty((*shape, 3))
        self._last_left = np.empty(shape)  # the largest value on the left
        for t, level in np.ndindex(*shape):
            k = int(self.columns[t, level])
            b, state = tables[k].place_of_border(float(ensemble.borders[t, level]))
            self.border_states[t, level] = state
            self.border_factors[t, level] = (*shares[k].border_factors(b), b)
            ends = np.concatenate([[-np.inf], tables[k].upper, [np.inf]])
            self._last_left[t, level] = ends[(state + 1) // 2 + (state % 2 == 0)]
        self.missing_right = ensemble.missing_right
        self.values = ensemble.values
        self._index = KnotIndex.of([(table.lower, table.upper) for table in tables])

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these."""
        used = np.unique(self.columns[trees])  # of one tree after the other: no places in other features
        columns = np.searchsorted(used, self.columns[trees])
        planes = 5 if self.steep[used].any() else 3
        tiles = _TILE_BYTES // (8 * _TILE * planes * max(1, len(used)))
        rows = _TILE * min(max(tiles, _FEWEST_TILES), _MOST_TILES)

        def work(start: int, stop: int) -> None:
            block = np.empty((-(-(stop - start) // _TILE), len(used), planes, _TILE))
            _copy_columns(writable(X[start:stop]), self.features[used], block)
            _look_up(block, stop - start, used, self.factors, self.blocks, self.steep, *self._index.arrays)
            _add_trees(
                block, self.steep[used], self.log_p, columns, self._last_left[trees], self.border_factors[trees],
                self.missing_right[trees], self.values[trees], scores[start:stop],
            )  # fmt: skip

        run_blocks(work, row_blocks(len(X), rows), n_jobs)
        return scores


@kernel
def _copy_columns(X, features, tiles):
    """The values of each tile's rows, feature by feature."""
    n = X.shape[0]
    for i in range(n):
        x = X[i]
        tile = tiles[i // 64]
        for k in range(features.size):
            tile[k, 0, i % 64] = x[features[k]]


@kernel
def _look_up(
    tiles, n, used, factors, blocks, steep, low, inverse, halvings, cells, first_cell, first_knot, knots, sizes
):
    """Factors of the values of all tiles, and of steep features their places. Missing values stay nan.

    Many arguments: the eight arrays of the index are among them.
    """
    states = np.empty(64, dtype=np.uint32)
    zero = np.uint32(0)
    state_starts = np.zeros(sizes.size + 1, dtype=np.int64)
    for k in range(sizes.size):
        state_starts[k + 1] = state_starts[k] + 2 * sizes[k] + 1
    for j in range(used.size):
        k = used[j]
        own_cells = cells[first_cell[k] : first_cell[k + 1]]
        own_knots = knots[first_knot[k] : first_knot[k + 1]]
        own = slice(state_starts[k], state_starts[k + 1])
        own_factors = factors[own]
        start, stop = blocks[0, own], blocks[1, own]
        missing = np.uint32(2 * sizes[k] + 1)
        for t in range(tiles.shape[0]):
            rows = min(64, n - 64 * t)
            x, up, down = tiles[t, j, 0], tiles[t, j, 1], tiles[t, j, 2]
            states_of(x[:rows], low[k], inverse[k], halvings[k], own_cells, own_knots, sizes[k], states)
            for i in range(rows):
                s = states[i] if states[i] < missing else zero
                up[i] = own_factors[s, 0]
                down[i] = own_factors[s, 1]
            if steep[k]:
                for i in range(rows):
                    s = states[i] if states[i] < missing else zero
                    tiles[t, j, 3, i] = start[s]
                    tiles[t, j, 4, i] = stop[s]


@kernel
def _add_trees(tiles, steep, log_p, columns, last_left, border_factors, missing_right, values, scores):
    """Add every tree's expected leaf value to the scores (n,), a tile after the other.

    Elements are named in full: views of a tile would be counted and discounted once a level.
    """
    n_trees, depth = columns.shape
    right = np.empty((depth, 64))
    work = np.empty((1 << max(0, depth - 1), 64))
    missing = np.empty(tiles.shape[1], dtype=np.bool_)
    for t in range(tiles.shape[0]):
        rows = min(64, scores.size - 64 * t)
        for k in range(missing.size):
            number = 0
            for i in range(rows):
                number += tiles[t, k, 0, i] != tiles[t, k, 0, i]
            missing[k] = number > 0
        for tree in range(n_trees):
            for level in range(depth):
                k = columns[tree, level]
                border = last_left[tree, level]
                left_factor = border_factors[tree, level, 0]
                right_factor = border_factors[tree, level, 1]
                if steep[k]:
                    b = border_factors[tree, level, 2]
                    for i in range(rows):
                        if tiles[t, k, 0, i] > border:
                            power = np.exp(log_p * (tiles[t, k, 3, i] - b + 1.0))
                            right[level, i] = 1.0 - tiles[t, k, 1, i] * power * left_factor
                        else:
                            power = np.exp(log_p * (b - tiles[t, k, 4, i]))
                            right[level, i] = tiles[t, k, 2, i] * power * right_factor
                else:
                    for i in range(rows):
                        from_right = 1.0 - tiles[t, k, 1, i] * left_factor
                        from_left = tiles[t, k, 2, i] * right_factor
                        right[level, i] = from_right if tiles[t, k, 0, i] > border else from_left
                if missing[k]:
                    side = 1.0 if missing_right[tree, level] else 0.0
                    for i in range(rows):
                        x = tiles[t, k, 0, i]
                        right[level, i] = right[level, i] if x == x else side
            contract(right, depth, rows, values[tree], work, scores[64 * t : 64 * t + rows])
