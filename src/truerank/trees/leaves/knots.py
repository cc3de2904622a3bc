"""States of values among the knots of fuzzy borders.

A feature has K knots, ranges [lower, upper] in ascending order. A value in knot k has state 2k + 1, a value in the gap
before it 2k, and a missing value 2K + 1. So the state is the number of *steps* below the value: for each knot the last
number before it, and its upper end.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.matrices.steps import StepIndex, count_below


def knot_index(ends: list[tuple[np.ndarray, np.ndarray]]) -> StepIndex:
    """Return the index of features whose knots have these lower and upper ends, float64 (K,) each."""
    return StepIndex.of([np.stack([np.nextafter(a, -np.inf), b], axis=1).ravel() for a, b in ends], 0.5)


@kernel
def find_states(values, index):
    """Return the state of each value of the index's only feature, uint16 (n,)."""
    out = np.empty(values.size, dtype=np.uint16)
    count_below(values, np.int64(0), values.size, index, np.int64(0), index.sizes[0] + 1, out)
    return out
