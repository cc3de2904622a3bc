"""How many of a feature's steps lie below each of its values: the search in a `StepIndex`, 64 values at a time."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel


@kernel
def count_below(x, start, stop, index, k, missing, counts):
    """Number of steps of feature k below each of x[start:stop], `missing` where it is nan, into `counts[start:stop]`.

    No branch depends on a value, since the processor would guess it wrong half of the time, and 64 searches go on at
    once, since each waits for what it reads.
    """
    low, inverse, cells, steps = index.low[k], index.inverse[k], index.cells, index.steps
    first_cell, first_step = index.first_cell[k], index.first_step[k]
    last = np.float64(index.first_cell[k + 1] - first_cell - 1)
    found = np.empty(64, dtype=np.int64)
    for at in range(start, stop, 64):
        own, out = x[at : min(at + 64, stop)], counts[at : min(at + 64, stop)]
        # Steps before the cell of each value; a nan is in cell 0. Unsigned indices do not count from the end.
        for i in range(own.size):
            cell = (own[i] - low) * inverse
            cell = cell if cell > 0.0 else 0.0
            found[i] = cells[np.uint64(first_cell + np.int64(cell if cell < last else last))]
        # And those in its cell, by halving.
        for place in range(index.halvings[k] - 1, -1, -1):
            middle = first_step + (1 << place) - 1
            for i in range(own.size):
                found[i] += np.int64(own[i] > steps[np.uint64(middle + found[i])]) << place
        for i in range(own.size):
            out[i] = found[i] if own[i] == own[i] else missing
