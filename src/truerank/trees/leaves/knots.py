"""Where values stand among the knots of fuzzy borders: which of them they are in, or between which two.

A feature's knots are ranges [lower, upper] in ascending order, K of them. A value is in one of 2K + 1 *states*: 2k + 1
in knot k, 2k in the gap before it, and a missing value in state 2K + 1. A grid of even cells over the range says how
many knots end before a value's cell; those that end within it are searched by halving, mostly in two steps or three.
Where most values crowd into one cell, this is a binary search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from truerank.core.kernel import kernel


@dataclass(frozen=True)
class KnotIndex:
    """The knots of some features and their grids, one feature after the other.

    Attributes
    ----------
    low, inverse : float64 arrays (u,)
        Cell of a value: `(x - low) * inverse`, cut to the grid.
    halvings : int64 array (u,)
        Steps of the search within a cell.
    cells : uint16 array
        Knots that end before each cell.
    first_cell, first_knot : int64 arrays (u + 1,)
        Where each feature's cells and knots begin.
    knots : float64 array (·, 2)
        Lower and upper ends, padded by ends that no value reaches.
    sizes : int64 array (u,)
        K.
    """

    low: np.ndarray
    inverse: np.ndarray
    halvings: np.ndarray
    cells: np.ndarray = field(repr=False)
    first_cell: np.ndarray
    first_knot: np.ndarray
    knots: np.ndarray = field(repr=False)
    sizes: np.ndarray

    @classmethod
    def of(cls, ends: list[tuple[np.ndarray, np.ndarray]]) -> KnotIndex:
        """The index of features whose knots have these lower and upper ends, float64 (K,) each."""
        low, inverse, halvings, cells, knots = [], [], [], [np.empty(0, dtype=np.uint16)], [np.empty((0, 2))]
        for lower, upper in ends:
            number = 1 << max(2, len(upper).bit_length())
            first = float(upper[0]) if len(upper) else 0.0
            with np.errstate(all="ignore"):  # a range beyond all floats has one cell
                scale = (number - 1) / (upper[-1] - first) if len(upper) else 0.0
                scale = float(scale) if np.isfinite(scale) else 0.0
                cell = (upper - first) * scale
            cell = np.where(cell > 0.0, np.minimum(cell, number - 1), 0.0).astype(np.int64)
            before = np.searchsorted(cell, np.arange(number + 1))
            steps = int(np.diff(before).max()).bit_length()
            own = np.full((len(upper) + (1 << steps), 2), (np.nan, np.inf))
            own[: len(upper), 0], own[: len(upper), 1] = lower, upper
            low.append(first)
            inverse.append(scale)
            halvings.append(steps)
            cells.append(before[:-1].astype(np.uint16))
            knots.append(own)
        first_cell, first_knot = (np.cumsum([len(one) for one in parts], dtype=np.int64) for parts in (cells, knots))
        return cls(
            np.array(low), np.array(inverse), np.array(halvings, dtype=np.int64), np.concatenate(cells), first_cell,
            first_knot, np.concatenate(knots), np.array([len(upper) for _, upper in ends], dtype=np.int64),
        )  # fmt: skip

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What kernels take."""
        return (
            self.low, self.inverse, self.halvings, self.cells, self.first_cell, self.first_knot, self.knots, self.sizes
        )  # fmt: skip


@kernel
def find_states(values, low, inverse, halvings, cells, first_cell, first_knot, knots, sizes):
    """State of each value of the index's one feature, uint16 (n,)."""
    out = np.empty(values.size, dtype=np.uint16)
    states = np.empty(64, dtype=np.uint32)
    for start in range(0, values.size, 64):
        rows = min(64, values.size - start)
        states_of(values[start : start + rows], low[0], inverse[0], halvings[0], cells, knots, sizes[0], states)
        for i in range(rows):
            out[start + i] = states[i]
    return out


@kernel
def states_of(x, low, inverse, halvings, cells, knots, size, states):
    """States of a few values of one feature, all searched for at once, step by step and without a branch on a value.

    Unsigned numbers spare the compiler the question whether an index counts from the end.
    """
    n = x.size
    one = np.uint32(1)
    last = np.float64(cells.size - 1)
    for i in range(n):
        cell = (x[i] - low) * inverse
        cell = cell if cell > 0.0 else 0.0  # nan too
        states[i] = np.uint32(cell if cell < last else last)
    for i in range(n):
        states[i] = cells[states[i]]
    half = np.uint32(1 << halvings)
    for _ in range(halvings):
        half = half >> one
        for i in range(n):
            k = states[i]
            states[i] = k + (half if knots[k + half - one, 1] < x[i] else np.uint32(0))
    missing = np.uint32(2 * size + 1)
    for i in range(n):
        k = states[i]
        inside = one if x[i] >= knots[k, 0] else np.uint32(0)
        states[i] = k + k + inside if x[i] == x[i] else missing
