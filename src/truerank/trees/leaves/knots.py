"""Where values stand among the knots of fuzzy borders: which of them they are in, or between which two.

A feature's knots are ranges [lower, upper] in ascending order, K of them. A value is in one of 2K + 1 *states*: 2k + 1
in knot k, 2k in the gap before it, and a missing value in state 2K + 1. So a value's state is the number of *steps*
below it: for each knot the last number before it, and its upper end.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.matrices.step_counts import count_below
from truerank.matrices.steps import StepIndex


def knot_index(ends: list[tuple[np.ndarray, np.ndarray]]) -> StepIndex:
    """The index of features whose knots have these lower and upper ends, float64 (K,) each."""
    return StepIndex.of([np.stack([np.nextafter(a, -np.inf), b], axis=1).ravel() for a, b in ends], 0.5)


@kernel
def find_states(values, index):
    """State of each value of the index's one feature, uint16 (n,)."""
    out = np.empty(values.size, dtype=np.uint16)
    count_below(values, np.int64(0), values.size, index, np.int64(0), index.sizes[0] + 1, out)
    return out
