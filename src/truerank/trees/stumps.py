"""Threshold stumps on one feature: a stump, applying it, scoring with a sum of them.

A stump is `h(x) = 1[x_k > θ]`, and `missing` (0 or 1) if x_k is NaN. Its edge over documents with potentials π, which
add up to 0, is `r = Σ_x π(x) h(x)`. `grid_stumps` and `sorted_stumps` find the stump with the largest |r|. Candidates
within `TOLERANCE` of it are ties: the lowest feature wins, then the lowest threshold, then `missing = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks

TOLERANCE = 1e-12


@dataclass(frozen=True)
class Stump:
    """A weak ranker with its edge r."""

    feature: int
    threshold: float
    missing: int
    edge: float


def apply_stump(X: np.ndarray, stump: Stump, weight: float, scores: np.ndarray) -> None:
    """Add `weight * h` of the rows of X (n, p) to the scores (n,), in place."""
    _add_stump(X, stump.feature, stump.threshold, stump.missing, weight, scores)


class StepFunctions:
    """A weighted sum of stumps, given as arrays (T,), as one step function for each feature."""

    def __init__(self, feature: np.ndarray, threshold: np.ndarray, missing: np.ndarray, weight: np.ndarray) -> None:
        self.columns = np.unique(feature).astype(np.int64)
        steps, values, starts, absent = [], [], [0], []
        for k in self.columns:
            chosen = feature == k
            places, inverse = np.unique(threshold[chosen], return_inverse=True)
            heights = np.bincount(inverse, weights=weight[chosen], minlength=len(places))
            steps.append(places)
            values.append(np.concatenate([[0.0], np.cumsum(heights)]))
            starts.append(starts[-1] + len(places))
            absent.append(float(np.sum(weight[chosen] * missing[chosen])))
        self.steps = np.concatenate([np.empty(0), *steps])
        self.values = np.concatenate([np.empty(0), *values])
        self.starts = np.array(starts, dtype=np.int64)
        self.absent = np.array(absent, dtype=np.float64)

    def predict(self, X: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Scores (n,) of the rows of X."""
        scores = np.zeros(X.shape[0])

        def work(first: int, last: int) -> None:
            _add_steps(X, self.columns, self.steps, self.starts, self.values, self.absent, scores, first, last)

        run_blocks(work, row_blocks(X.shape[0]), n_jobs)
        return scores

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return what each feature adds to the scores of the rows of X, float64 (n, p); rows sum to `predict`."""
        result = np.zeros(X.shape)
        for c, k in enumerate(self.columns.tolist()):
            first, stop = self.starts[c], self.starts[c + 1]
            x = np.asarray(X[:, k], dtype=np.float64)
            above = np.searchsorted(self.steps[first:stop], x)  # steps below x
            result[:, k] = np.where(np.isnan(x), self.absent[c], self.values[first + c : stop + c + 1][above])
        return result


@kernel
def _add_stump(X, feature, threshold, missing, weight, scores):
    for i in range(len(scores)):
        x = np.float64(X[i, feature])
        if x > threshold or (missing == 1 and x != x):
            scores[i] += weight


@kernel
def _add_steps(X, columns, steps, starts, values, absent, scores, first, last):
    for i in range(first, last):
        score = 0.0
        for c in range(len(columns)):
            x = np.float64(X[i, columns[c]])
            if x != x:
                score += absent[c]
                continue
            base = starts[c]
            left = starts[c + 1] - base
            while left > 1:
                half = left >> 1
                base += half * (steps[base + half - 1] < x)
                left -= half
            # Column c has one value more than steps, so its values start c places later.
            score += values[base + c + (steps[base] < x)]
        scores[i] = score
