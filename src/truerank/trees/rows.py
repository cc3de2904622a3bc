"""What the stages of one fit hand each other: coded rows, and the sample that one tree sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truerank.core.threads import Workers
from truerank.matrices.binning import CodedMatrix
from truerank.trees.grower import TreeStructure, leaf_numbers


@dataclass
class Rows:
    """Rows as values and as codes.

    Attributes
    ----------
    X : float array (n, p)
        The caller's values, never changed.
    matrix : CodedMatrix
    training : bool
        Whether trees are grown on these rows, so that a tree may know their leaves.
    cache : dict
        What leaves derive from a column and keep.
    """

    X: np.ndarray = field(repr=False)
    matrix: CodedMatrix
    training: bool = False
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

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


def draw_rows(
    rng: np.random.Generator, offsets: np.ndarray, unit: str, replace: bool, share: float
) -> np.ndarray | None:
    """How often each row is drawn, int64 (n,); None when every row is drawn once.

    Parameters
    ----------
    rng : Generator
    offsets : int64 array (m + 1,)
    unit : {"row", "query"}
        What is drawn: rows, or whole queries.
    replace : bool
        Draw with replacement (a bootstrap).
    share : float in (0, 1]
        Number of draws as a share of the number of rows or queries, at least one.
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
