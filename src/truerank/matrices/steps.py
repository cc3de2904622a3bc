"""Count the ascending numbers below a value: the code of a value among borders, or its state among knots.

The numbers of a feature are its *steps*. A grid of even cells over the range of the steps gives the number of steps
before a value's cell. The steps within the cell are searched by halving, mostly in one to three rounds; if most steps
are in one cell, this is a binary search. The count is exact, because one expression gives the cells of values and
steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.types import DTypeLike
from truerank.data.grouping import offsets_of, query_of_rows


class StepIndex(NamedTuple):
    """The steps of some features and their grids, one feature after the other, for kernels."""

    low: np.ndarray  # float64 (u,): the cell of a value is `(x - low) * inverse`, cut to the grid
    inverse: np.ndarray  # float64 (u,)
    halvings: np.ndarray  # int64 (u,): rounds of the search within a cell
    cells: np.ndarray  # uint16: steps before each cell
    first_cell: np.ndarray  # int64 (u + 1,): where each feature's cells begin
    first_step: np.ndarray  # int64 (u + 1,): and its steps
    steps: np.ndarray  # float64, or float32 for values of that type: padded by infinity
    sizes: np.ndarray  # int64 (u,): number of steps

    @classmethod
    def of(cls, all_steps: list[np.ndarray], cells_a_step: float) -> StepIndex:
        """Build the index of features from their steps: ascending float64 arrays of up to 65,535 entries, no NaN."""
        sizes = np.array(list(map(len, all_steps)), dtype=np.int64)
        starts, flat = offsets_of(sizes), np.concatenate([np.empty(0), *all_steps])
        feature = query_of_rows(starts)
        number = np.left_shift(1, np.maximum(2, np.frexp(np.floor(cells_a_step * sizes))[1]), dtype=np.int64)
        finite = np.isfinite(flat)
        ends = np.zeros((2, len(sizes)))  # the least and the largest finite step
        inside = offsets_of(np.bincount(feature[finite], minlength=len(sizes)))
        some = np.diff(inside) > 0
        ends[:, some] = flat[finite][[inside[:-1][some], inside[1:][some] - 1]]
        with np.errstate(all="ignore"):  # a range beyond all floats has one cell
            scale = np.where(some, (number - 1) / (ends[1] - ends[0]), 0.0)
            scale = np.where(np.isfinite(scale), scale, 0.0)
            cell = (flat - ends[0][feature]) * scale[feature]
        cell = np.where(cell > 0.0, np.minimum(cell, number[feature] - 1), 0.0).astype(np.int64)
        first_cell = offsets_of(number)
        counts = np.bincount(cell + first_cell[feature], minlength=int(first_cell[-1]))
        before = np.cumsum(counts) - counts - np.repeat(starts[:-1], number)
        halvings = np.frexp(np.maximum.reduceat(counts, first_cell[:-1]))[1].astype(np.int64)
        first_step = offsets_of(sizes + (1 << halvings))
        steps = np.full(int(first_step[-1]), np.inf)
        steps[np.arange(len(flat)) + (first_step - starts)[feature]] = flat
        return cls(ends[0], scale, halvings, before.astype(np.uint16), first_cell, first_step, steps, sizes)

    def of_type(self, dtype: DTypeLike) -> StepIndex:
        """Return the index for values of a type, float32 or float64."""
        return self if dtype == np.float64 else self._replace(steps=floor_float32(self.steps))


def floor_float32(values: np.ndarray) -> np.ndarray:
    """Return the largest float32 that is at most each value: for float32 x, `x ≤ c` is `x ≤ floor_float32(c)`."""
    with np.errstate(over="ignore"):
        low = values.astype(np.float32)
        below = np.nextafter(low, np.float32(-np.inf))  # of the least float32 it is -inf
    return np.where(low > values, below, low).astype(np.float32)


@kernel
def count_below(x, start, stop, index, k, missing, counts):
    """Write the number of steps of feature k below each of x[start:stop], `missing` for NaN, to `counts[start:stop]`.

    No branch depends on a value, which the processor would mispredict, and 64 searches run side by side, because
    each waits for what it reads.
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
