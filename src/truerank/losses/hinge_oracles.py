"""Hinges of pairs and of single documents as oracles of the cutting-plane solver."""

from __future__ import annotations

import numpy as np

from truerank.losses.graded_pairs import HINGE, GradedPairs


class PairHingeOracle:
    """`Σ max(0, 1 - (s_a - s_b))` over a query's pairs with grade a above grade b: RankSVM's loss.

    The worst outcome is a set of violated pairs, and with three or more grades no ranking. Cost: O(n log n), and O(n
    log L) for L grades. `n_pairs` float64 (m,) are the pairs of each query; a query without pairs is not `kept`.

    >>> oracle = PairHingeOracle(np.array([2.0, 1.0, 0.0]), np.array([0, 3]))
    >>> loss, coefficients = oracle(np.array([1.8, 0.9, 0.0]))
    >>> loss.tolist(), coefficients.tolist(), round(float(loss[0] + coefficients @ [1.8, 0.9, 0.0]), 12)
    ([2.0], [-1.0, 0.0, 1.0], 0.2)
    """

    def __init__(self, grades: np.ndarray, offsets: np.ndarray) -> None:
        self._pairs = GradedPairs(grades, offsets)
        self.offsets, self.n_pairs, self.kept = self._pairs.offsets, self._pairs.n_pairs, self._pairs.n_pairs > 0

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the violated pairs (m,) and the coefficients (n,) of the scores in `Σ_violated (1 - s_a + s_b)`."""
        self._pairs.n_jobs = n_jobs
        _, coefficients = self._pairs.loss(np.ascontiguousarray(scores, dtype=np.float64), HINGE)
        return self._pairs.n_violated(), coefficients


class HingeOracle:
    """`Σ_i c_i max(0, 1 - z_i s_i)` of all rows as one query, with `signs` z, +1 or -1, and `weight` c >= 0 (n,)."""

    def __init__(self, signs: np.ndarray, weight: np.ndarray) -> None:
        self._gain = signs * weight
        self.signs, self.weight = signs, weight
        self.offsets = np.array([0, len(signs)], dtype=np.int64)
        self.kept = np.array([True])

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the summed weight of the rows within the margin (1,), and the coefficients (n,) of the scores."""
        inside = self.signs * scores < 1.0
        return np.array([self.weight[inside].sum()]), np.where(inside, -self._gain, 0.0)
