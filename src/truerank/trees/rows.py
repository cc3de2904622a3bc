"""Coded training rows, and the sample of rows for a tree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.threads import Workers
from truerank.matrices.binning import CodedMatrix
from truerank.trees.grower import TreeStructure, leaf_numbers


@dataclass
class TrainingRows:
    """Training rows as values and as codes."""

    X: Any = field(repr=False)  # float array (n, p) or CSC matrix
    matrix: CodedMatrix
    training: bool = False  # whether trees are grown on these rows, and so may hold their leaves
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)  # for what leaves compute from a column

    def column(self, feature: int) -> np.ndarray:
        """Return the values (n,) of one feature."""
        if not hasattr(self.X, "tocsc"):
            return np.asarray(self.X[:, feature])
        stored = slice(self.X.indptr[feature], self.X.indptr[feature + 1])
        values = np.zeros(self.X.shape[0], dtype=self.X.dtype)
        values[self.X.indices[stored]] = self.X.data[stored]
        return values

    def leaf_numbers(self, tree: TreeStructure, workers: Workers) -> np.ndarray:
        return tree.leaf if self.training and tree.leaf is not None else leaf_numbers(self.matrix, tree, workers)


@dataclass(frozen=True)
class Sample:
    """The weighted gradients and hessians (n,) of a tree, and the draws of each row."""

    gradients: np.ndarray = field(repr=False)
    hessians: np.ndarray = field(repr=False)
    multiplicity: np.ndarray | None = field(repr=False)

    def block(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return gradients and hessians of some rows, times their draws, as contiguous arrays."""
        g, h = self.gradients[start:stop], self.hessians[start:stop]
        if self.multiplicity is not None:
            g, h = g * self.multiplicity[start:stop], h * self.multiplicity[start:stop]
        return np.ascontiguousarray(g), np.ascontiguousarray(h)


def draw_rows(
    rng: np.random.Generator, offsets: np.ndarray, unit: str, replace: bool, share: float
) -> np.ndarray | None:
    """Return how often each row is drawn, int64 (n,), or None if every row is drawn once.

    `share` in (0, 1] of the units, "row" or "query", are drawn, at least one; `replace` draws with replacement.
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
