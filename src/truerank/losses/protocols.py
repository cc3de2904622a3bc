"""Protocols of losses for solvers and boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from truerank.core.errors import InvalidInputError

Derivatives = tuple[np.ndarray, np.ndarray]


@runtime_checkable
class BoostingObjective(Protocol):
    """An objective of boosted trees.

    `quadratic` says that the loss is quadratic in each score, with the hessians as constant second derivatives. The
    change of the training loss is then exact, and derivatives are computed twice instead of kept in memory.

    Three more members are optional. `by_row = True`: a row's gradient depends on its own grade and score only, and
    all hessians are equal, so that several threads pass parts of the rows. `by_place = True`: places of rows break
    ties or order random numbers, so that rows are passed in an order by content. `reorder(rows)` is called first
    with this order.
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


class PlainObjective:
    """Defaults of objectives: not quadratic, nothing random, and a start at 0."""

    quadratic = False

    def begin(self, rng: np.random.Generator) -> None:
        """Draw from `rng` for the next tree; most draw nothing."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        return 0.0


class FunctionObjective(PlainObjective):
    """A user's function `(y, scores, offsets) -> (gradients, hessians)` as an objective that starts at 0."""

    def __init__(self, function: Callable[..., Derivatives]) -> None:
        self.function = function

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        return self.function(y, scores, offsets)


def checked(
    objective: BoostingObjective, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray, first_row: int = 0
) -> Derivatives:
    """Return an objective's answer as float64 arrays (n,), or raise `InvalidInputError`.

    `first_row` is the number of the first of these rows among all.
    """
    answer: Any = objective(y, scores, offsets)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise InvalidInputError(f"the objective must return (gradients, hessians), got {type(answer).__name__}")
    gradients = np.ascontiguousarray(answer[0], dtype=np.float64)
    hessians = np.asarray(answer[1], dtype=np.float64)
    for name, values in (("gradients", gradients), ("hessians", hessians)):
        if values.shape != y.shape:
            raise InvalidInputError(f"the objective's {name} must have shape {y.shape}, got {values.shape}")
        # One number may stand for all.
        if not np.isfinite(values[:1] if values.strides == (0,) else values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidInputError(
                f"the objective's {name} must be finite, got {values[row]} at row {first_row + row}"
            )
    if (hessians[:1] if hessians.strides == (0,) else hessians).min(initial=0.0) < 0:
        raise InvalidInputError("the objective's hessians must not be negative; take an upper bound or 1")
    return gradients, hessians


class Oracle(Protocol):
    """A loss that is a maximum over outcomes, for the cutting-plane solver (`worst_rankings`, `ramp`, `graded_pairs`).

    `offsets` int64 (m + 1,) are the rows of each query. Queries that are not `kept` have loss and coefficients 0.
    """

    offsets: np.ndarray
    kept: np.ndarray

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss (m,) of each worst outcome and coefficients c (n,) of the scores: the value is `loss + Σ
        c·s`.
        """


class SumOverQueries(Protocol):
    """A differentiable loss of linear weights that adds up over queries, for steps by query (`cross_entropy`)."""

    n_weights: int

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the objective, penalty included, and its gradient (n_weights,)."""

    def pass_over_queries(self, weights: np.ndarray, learning_rate: float) -> None:
        """Step after each query; `weights` change in place."""


class SmoothLoss(Protocol):
    """A smooth convex loss of linear weights, for L-BFGS (`cross_entropy`); `hessian` needs `has_hessian`."""

    n_weights: int
    has_hessian: bool

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """See `SumOverQueries`."""

    def hessian(self, weights: np.ndarray, max_rows: float = ...) -> np.ndarray:
        """Return second derivatives (n_weights, n_weights), from the first queries up to `max_rows` rows."""

    def curvature(self) -> np.ndarray:
        """Return an upper bound of the diagonal of the second derivatives at 0, (n_weights,)."""
