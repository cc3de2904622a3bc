"""The hinge of single documents as an oracle of the cutting-plane solver."""

from __future__ import annotations

import numpy as np


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
