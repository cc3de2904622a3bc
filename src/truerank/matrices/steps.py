"""How many of some ascending numbers lie below a value: the code of a value among borders, its state among knots.

A feature's *steps* are ascending numbers. A grid of even cells over their range says how many steps lie before a
value's cell; those within it are searched by halving, mostly in one round to three. Where most steps crowd into one
cell, this is a binary search. The count is exact: a value's cell and a step's are found by one expression, which never
falls as its argument rises. `step_counts.count_below` is the search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.core.types import DTypeLike
from truerank.data.grouping import offsets_of


class StepIndex(NamedTuple):
    """The steps of some features and their grids, one feature after the other; kernels read it as it is."""

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
        """The index of features with these steps, ascending float64 arrays without nan of at most 65,535."""
        low, inverse, halvings, cells, steps = [], [], [], [np.empty(0, dtype=np.uint16)], [np.empty(0)]
        for own in all_steps:
            number = 1 << max(2, int(cells_a_step * len(own)).bit_length())
            finite = own[np.isfinite(own)]
            first = float(finite[0]) if len(finite) else 0.0
            with np.errstate(all="ignore"):  # a range beyond all floats has one cell
                scale = float((number - 1) / (finite[-1] - first)) if len(finite) else 0.0
                scale = scale if np.isfinite(scale) else 0.0
                cell = (own - first) * scale
            cell = np.where(cell > 0.0, np.minimum(cell, number - 1), 0.0).astype(np.int64)
            before = np.searchsorted(cell, np.arange(number + 1))
            rounds = int(np.diff(before).max()).bit_length()
            low.append(first)
            inverse.append(scale)
            halvings.append(rounds)
            cells.append(before[:-1].astype(np.uint16))
            steps.append(np.concatenate([own, np.full(1 << rounds, np.inf)]))
        return cls(
            np.array(low), np.array(inverse), np.array(halvings, dtype=np.int64),
            np.concatenate(cells),
            offsets_of([len(own) for own in cells[1:]]), offsets_of([len(own) for own in steps[1:]]),
            np.concatenate(steps), np.array([len(own) for own in all_steps], dtype=np.int64),
        )  # fmt: skip

    def of_type(self, dtype: DTypeLike) -> StepIndex:
        """The index for values of a type, float32 or float64."""
        return self if dtype == np.float64 else self._replace(steps=floor_float32(self.steps))


def floor_float32(values: np.ndarray) -> np.ndarray:
    """The largest float32 that is no larger: for float32 x, `x ≤ c` is `x ≤ floor_float32(c)`."""
    with np.errstate(over="ignore"):
        low = values.astype(np.float32)
        below = np.nextafter(low, np.float32(-np.inf))  # of the least float32 it is -inf
    return np.where(low > values, below, low).astype(np.float32)
