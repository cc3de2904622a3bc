"""What the stages of one fit hand each other: coded rows, and the sample that one tree sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import RankingData
from truerank.losses.protocols import BoostingObjective, Derivatives, checked
from truerank.matrices.binning import CodedMatrix
from truerank.matrices.content import order_by_content
from truerank.matrices.stored_values import kernel_array
from truerank.trees.grower import TreeStructure, leaf_numbers


@dataclass
class Rows:
    """Rows as values and as codes."""

    X: Any = field(repr=False)  # float array (n, p) or CSC matrix, the caller's, never changed
    matrix: CodedMatrix
    training: bool = False  # whether trees are grown on these rows, so that a tree may know their leaves
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)  # what leaves derive from a column and keep

    def column(self, feature: int) -> np.ndarray:
        """Values (n,) of one feature."""
        if not hasattr(self.X, "tocsc"):
            return np.asarray(self.X[:, feature])
        stored = slice(self.X.indptr[feature], self.X.indptr[feature + 1])
        values = np.zeros(self.X.shape[0], dtype=self.X.dtype)
        values[self.X.indices[stored]] = self.X.data[stored]
        return values

    def leaf_numbers(self, tree: TreeStructure, workers: Workers) -> np.ndarray:
        """Leaf of every row, int32 (n,)."""
        return tree.leaf if self.training and tree.leaf is not None else leaf_numbers(self.matrix, tree, workers)


@dataclass(frozen=True)
class Sample:
    """One tree's gradients and hessians (n,), weights included, and how often each row was drawn (None: once).

    `unit` is the mean hessian of a row by weight, in which a smoothing of leaves counts: 1 for squared error.
    """

    gradients: np.ndarray = field(repr=False)
    hessians: np.ndarray = field(repr=False)
    multiplicity: np.ndarray | None = field(repr=False)
    unit: float = 1.0

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians of some rows, times their draws, as contiguous arrays."""
        g, h = self.gradients[start:stop], self.hessians[start:stop]
        if self.multiplicity is not None:
            g, h = g * self.multiplicity[start:stop], h * self.multiplicity[start:stop]
        return np.ascontiguousarray(g), np.ascontiguousarray(h)


class ContentOrder:
    """Draws of rows, and derivatives of an objective that breaks ties or draws by place, for any order of the rows.

    Both are made with the rows in the order of `matrices.content.order_by_content` and brought back to where the rows
    stand. That costs the order once, some 10 ns a value, and for each tree two passes over n numbers.
    """

    def __init__(self, data: RankingData) -> None:
        assert data.y is not None
        self.rows, queries = order_by_content(data.X, data.y, data.offsets, data.query_weight)
        self.offsets = offsets_of(np.diff(data.offsets)[queries])
        self.y = data.y[self.rows]

    def draw(self, rng: np.random.Generator, unit: str, replace: bool, share: float) -> np.ndarray | None:
        """As `draw_rows`."""
        drawn = draw_rows(rng, self.offsets, unit, replace, share)
        return None if drawn is None else at_places(drawn, self.rows)

    def derivatives(self, objective: BoostingObjective, scores: np.ndarray, workers: Workers) -> Derivatives:
        """The objective's gradients and hessians (n,) at scores (n,)."""
        blocks = row_blocks(len(scores))
        placed = np.empty_like(scores)
        workers.run(lambda a, b: _take(scores, self.rows[a:b], placed[a:b]), blocks)
        there = checked(objective, self.y, placed, self.offsets)
        here = np.empty_like(scores), np.empty_like(scores)
        pairs = [(kernel_array(values), result) for values, result in zip(there, here)]
        workers.run(
            lambda a, b, values, result: _put(values[a:b], self.rows[a:b], result),
            [(*block, *pair) for pair in pairs for block in blocks],
        )
        return here


def draw_rows(
    rng: np.random.Generator, offsets: np.ndarray, unit: str, replace: bool, share: float
) -> np.ndarray | None:
    """How often each row is drawn, int64 (n,); None when every row is drawn once.

    What is drawn, rows or whole queries, is the `unit`, "row" or "query": a `share` in (0, 1] of their number, at least
    one, and with `replace` with replacement (a bootstrap).
    """
    units = int(offsets[-1]) if unit == "row" else len(offsets) - 1
    draws = max(1, round(share * units))
    if replace:
        times = np.bincount(rng.integers(0, units, draws), minlength=units)
    elif draws >= units:
        return None
    else:
        times = np.zeros(units, dtype=np.int64)
        times[rng.permutation(units)[:draws]] = 1
    return times if unit == "row" else np.repeat(times, np.diff(offsets))


@kernel
def _take(values, places, result):
    """`values[places]` into `result`."""
    for i in range(places.size):
        result[i] = values[np.uint64(places[i])]


@kernel
def _put(values, places, result):
    """`result[places] = values`."""
    for i in range(places.size):
        result[np.uint64(places[i])] = values[i]
