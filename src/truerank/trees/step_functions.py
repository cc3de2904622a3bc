"""A weighted sum of stumps, scored feature by feature."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import row_blocks, run_blocks


class StepFunctions:
    """A weighted sum of stumps as one step function for each feature: a row costs one search a feature.

    Parameters
    ----------
    feature, threshold, missing, weight : arrays (T,)
        The stumps.
    """

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


@kernel
def _add_steps(X, columns, steps, starts, values, absent, scores, first, last):  # type: ignore[no-untyped-def]
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
