"""Where values stand among the knots of fuzzy borders: which of them they are in, or between which two.

A feature's knots are ranges [lower, upper] in ascending order, K of them. A value is in one of 2K + 1 *states*: 2k + 1
in knot k, 2k in the gap before it, and a missing value in state 2K + 1. So a value's state is the number of *steps*
below it: for each knot the last number before it, and its upper end. A grid of even cells over the range says how many
steps lie before a value's cell; those within it are searched by halving, mostly in three rounds or four. Where most
values crowd into one cell, this is a binary search.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.matrices.binning import floor_float32


@dataclass(frozen=True)
class KnotIndex:
    """The knots of some features and their grids, one feature after the other."""

    low: np.ndarray  # float64 (u,): the cell of a value is `(x - low) * inverse`, cut to the grid
    inverse: np.ndarray  # float64 (u,)
    halvings: np.ndarray  # int64 (u,): rounds of the search within a cell
    cells: np.ndarray = field(repr=False)  # uint16: steps before each cell
    first_cell: np.ndarray  # int64 (u + 1,): where each feature's cells begin
    first_step: np.ndarray  # int64 (u + 1,): and its steps
    steps: np.ndarray = field(repr=False)  # float64: padded by infinity
    sizes: np.ndarray  # int64 (u,): K

    @classmethod
    def of(cls, ends: list[tuple[np.ndarray, np.ndarray]]) -> KnotIndex:
        """The index of features whose knots have these lower and upper ends, float64 (K,) each."""
        low, inverse, halvings, cells, steps = [], [], [], [np.empty(0, dtype=np.uint16)], [np.empty(0)]
        for lower, upper in ends:
            own = np.stack([np.nextafter(lower, -np.inf), upper], axis=1).ravel()
            number = 1 << max(2, len(upper).bit_length())
            first = float(upper[0]) if len(upper) else 0.0
            with np.errstate(all="ignore"):  # a range beyond all floats has one cell
                scale = (number - 1) / (upper[-1] - first) if len(upper) else 0.0
                scale = float(scale) if np.isfinite(scale) else 0.0
                cell = (own - first) * scale
            cell = np.where(cell > 0.0, np.minimum(cell, number - 1), 0.0).astype(np.int64)
            before = np.searchsorted(cell, np.arange(number + 1))
            rounds = int(np.diff(before).max()).bit_length()
            low.append(first)
            inverse.append(scale)
            halvings.append(rounds)
            cells.append(before[:-1].astype(np.uint16))
            steps.append(np.concatenate([own, np.full(1 << rounds, np.inf)]))
        first_cell, first_step = (np.cumsum([len(one) for one in parts], dtype=np.int64) for parts in (cells, steps))
        return cls(
            np.array(low), np.array(inverse), np.array(halvings, dtype=np.int64), np.concatenate(cells), first_cell,
            first_step, np.concatenate(steps), np.array([len(upper) for _, upper in ends], dtype=np.int64),
        )  # fmt: skip

    def arrays(self, dtype: Any) -> tuple[np.ndarray, ...]:
        """What kernels take for values of a type, float32 or float64."""
        return (
            self.low, self.inverse, self.halvings, self.cells, self.first_cell, self.first_step,
            self.steps if dtype == np.float64 else floor_float32(self.steps), self.sizes,
        )  # fmt: skip


@kernel
def find_states(values, low, inverse, halvings, cells, first_cell, first_step, steps, sizes):
    """State of each value of the index's one feature, uint16 (n,)."""
    out = np.empty(values.size, dtype=np.uint16)
    states = np.empty(64, dtype=np.uint32)
    for start in range(0, values.size, 64):
        rows = min(64, values.size - start)
        states_of(values[start : start + rows], low[0], inverse[0], halvings[0], cells, steps, sizes[0], states)
        for i in range(rows):
            out[start + i] = states[i]
    return out


@kernel
def states_of(x, low, inverse, halvings, cells, steps, size, states):
    """States of at most 64 values of one feature, searched for together, round by round, without a branch on a value.

    Unsigned numbers spare the compiler the question whether an index counts from the end.
    """
    n = x.size
    last = np.float64(cells.size - 1)
    for i in range(n):
        cell = (x[i] - low) * inverse
        cell = cell if cell > 0.0 else 0.0  # nan too
        states[i] = np.uint32(cell if cell < last else last)
    for i in range(n):
        states[i] = cells[states[i]]
    half = np.uint32(1 << halvings)
    for _ in range(halvings):
        half = half >> np.uint32(1)
        for i in range(n):
            k = states[i]
            states[i] = k + (np.uint32(0) if x[i] <= steps[k + half - np.uint32(1)] else half)
    missing = np.uint32(2 * size + 1)
    for i in range(n):
        states[i] = states[i] if x[i] == x[i] else missing
