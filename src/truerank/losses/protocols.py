"""What a booster of trees may ask of a loss, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np

Derivatives = tuple[np.ndarray, np.ndarray]


@runtime_checkable
class BoostingObjective(Protocol):
    """An objective of boosted trees.

    Attributes
    ----------
    quadratic : bool
        The loss is a quadratic function of each score with the hessians as its constant second derivatives. The change
        of the training loss is then known exactly, and derivatives are so cheap that they are computed twice rather
        than kept while a tree grows.
    """

    quadratic: bool

    def begin(self, rng: np.random.Generator) -> None:
        """Called before each tree with random numbers of its own; a loss that draws none ignores it."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """Score of every row before the first tree, from grades (n,) and row weights (n,)."""

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        """Gradients and hessians (n,), float64, of the rows grouped by query at `offsets` (m + 1,), unweighted.

        The gradients are those of a loss to be made small, the hessians its second derivatives by each score or an
        upper bound of them, never negative.
        """


class FunctionObjective:
    """A user's function `(y, scores, offsets) -> (gradients, hessians)` as an objective that starts at 0."""

    quadratic = False

    def __init__(self, function: Callable[..., Derivatives]) -> None:
        self.function = function

    def begin(self, rng: np.random.Generator) -> None:
        """Nothing is drawn."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """0."""
        return 0.0

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        """What the function returns."""
        return self.function(y, scores, offsets)
