"""The planes of an oracle over the rows of a matrix, for tests of the solver without a ranker."""

from __future__ import annotations

import numpy as np

from truerank.solvers.cutting_planes import CuttingPlanes, block_bounds


class PlanesOfRows(CuttingPlanes):
    """`weight` (m,) has the weights of the queries, None for 1; `n_blocks` is as in `block_bounds`."""

    def __init__(self, rows, oracle, *, weight=None, n_blocks=1, n_jobs=None):
        self.rows, self.oracle, self.n_jobs = rows.lay_out(), oracle, n_jobs
        m = len(oracle.kept)
        self.weight = np.where(oracle.kept, np.ones(m) if weight is None else weight, 0.0)
        self.bounds = block_bounds(oracle.offsets, self.weight > 0, n_blocks)
        self.row_weight = np.repeat(self.weight, np.diff(oracle.offsets))
        n_left_out = m - int(oracle.kept.sum())
        super().__init__(rows.n_weights, len(self.bounds) - 1, bool(self.weight.any()), n_left_out)

    def planes_at(self, w):
        loss, coefficients = self.oracle(self.rows.scores(w), self.n_jobs)
        gradients = self.rows.block_sums(coefficients * self.row_weight, self.oracle.offsets[self.bounds])
        return gradients, np.add.reduceat(loss * self.weight, self.bounds[:-1])

    def _block_weight(self):
        return np.add.reduceat(self.weight, self.bounds[:-1])
