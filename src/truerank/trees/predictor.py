"""Scores of rows from an ensemble of oblivious trees with constant leaves.

The used columns of a block of rows are copied side by side, so that an instruction answers a question for many rows.
Nothing is binned: 100 trees of depth 6 cost 600 comparisons a row, for any number of features.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks
from truerank.matrices.steps import floor_float32
from truerank.matrices.stored_values import kernel_array
from truerank.trees.ensemble import Ensemble

_ROWS = 256  # rows of a block: their used columns stay in the second-level cache
_TASK = 16_384  # rows of one task of a thread


class ConstantPredictor:
    """Scores from constant leaves, added in the order of the trees: a row has the same bits alone and among others."""

    def __init__(self, ensemble: Ensemble) -> None:
        self.used = np.unique(ensemble.features).astype(np.int64)
        self.columns = np.searchsorted(self.used, ensemble.features).astype(np.int64)
        self.borders = {np.dtype(np.float64): ensemble.borders, np.dtype(np.float32): floor_float32(ensemble.borders)}
        self.missing_right = ensemble.missing_right
        self.values = ensemble.values

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these."""
        borders = self.borders[X.dtype]

        def work(start: int, stop: int) -> None:
            _add_constant(
                kernel_array(X[start:stop]), self.used, self.columns[trees], borders[trees], self.missing_right[trees],
                self.values[trees], scores[start:stop],
            )  # fmt: skip

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores


@kernel
def _add_constant(X, used, columns, borders, missing_right, values, scores):
    """Add every tree's leaf value to `scores` (n,), 256 rows at a time; columns of 272 values share no lines of the
    cache.
    """
    n = X.shape[0]
    n_trees, depth = columns.shape
    block = np.empty((used.size, 272), dtype=X.dtype)
    leaf = np.empty(256, dtype=np.uint16)
    zero = np.uint16(0)
    for start in range(0, n, 256):
        rows = min(256, n - start)
        for i in range(rows):
            x = X[start + i]
            for k in range(used.size):
                block[k, i] = x[used[k]]
        missing = 0
        for k in range(used.size):
            x = block[k]
            for i in range(rows):
                missing += x[i] != x[i]
        for tree in range(n_trees):
            for i in range(rows):
                leaf[i] = zero
            level = 0
            while missing == 0 and level + 1 < depth:
                x, x_next = block[columns[tree, level]], block[columns[tree, level + 1]]
                c, c_next = borders[tree, level], borders[tree, level + 1]
                bit, bit_next = np.uint16(1 << level), np.uint16(2 << level)
                for i in range(rows):
                    leaf[i] |= (bit if x[i] > c else zero) | (bit_next if x_next[i] > c_next else zero)
                level += 2
            while level < depth:
                x = block[columns[tree, level]]
                c = borders[tree, level]
                bit = np.uint16(1 << level)
                if missing_right[tree, level]:
                    for i in range(rows):
                        leaf[i] |= zero if x[i] <= c else bit
                else:
                    for i in range(rows):
                        leaf[i] |= bit if x[i] > c else zero
                level += 1
            value = values[tree]
            for i in range(rows):
                scores[start + i] += value[leaf[i]]
