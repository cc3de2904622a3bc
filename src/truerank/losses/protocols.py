"""What a solver, or a booster of trees, may ask of a loss. A loss knows no solver and no estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from truerank.core.errors import InvalidInputError

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

    Notes
    -----
    Three more members are optional. `by_row`, where it is True, says that a row's gradient depends on its own grade and
    score alone and that one hessian is everybody's: some rows may then be handed over without the others, of a query
    too, by several threads at once. `by_place`, where it is True, says that ties are broken or numbers drawn by places
    of the rows: these are then handed over in an order by their content. `reorder(rows)` is called first with that
    order, for what the objective keeps by row.
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
    """What most objectives are: not quadratic, without draws, from scores of 0, as only differences count."""

    quadratic = False

    def begin(self, rng: np.random.Generator) -> None:
        """Draw from `rng` for the next tree; most draw nothing."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """0."""
        return 0.0


class FunctionObjective(PlainObjective):
    """A user's function `(y, scores, offsets) -> (gradients, hessians)` as an objective that starts at 0."""

    def __init__(self, function: Callable[..., Derivatives]) -> None:
        self.function = function

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        """What the function returns."""
        return self.function(y, scores, offsets)


def checked(objective: Any, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray, first_row: int = 0) -> Derivatives:
    """An objective's answer as float64 arrays (n,), or an error that says what is wrong with a user's function.

    `first_row` is the number of the first of these rows among all.
    """
    answer = objective(y, scores, offsets)
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
    """A loss that is a maximum over outcomes, for the cutting-plane solver (`worst_rankings`, `ramp`, `pair_oracle`).

    Attributes
    ----------
    offsets : int64 array (m + 1,)
        Rows of each query.
    kept : bool array (m,)
        Queries that offer a choice; the others have loss and coefficients 0.
    """

    offsets: np.ndarray
    kept: np.ndarray

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Loss (m,) of each worst outcome and coefficients (n,) of the scores; its value is `loss + Σ c·scores`."""
        ...


class SumOverQueries(Protocol):
    """A differentiable loss of linear weights that adds up over queries, for steps by query (`cross_entropy`)."""

    n_weights: int

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective, penalty included, and its gradient (n_weights,)."""
        ...

    def pass_over_queries(self, weights: np.ndarray, learning_rate: float) -> None:
        """One step after each query; `weights` is changed in place."""
        ...


class SmoothLoss(Protocol):
    """A smooth convex loss of linear weights with second derivatives, for L-BFGS (`cross_entropy`).

    Attributes
    ----------
    n_weights : int
    has_hessian : bool
        Whether `hessian` may be asked; else only `curvature`.
    """

    n_weights: int
    has_hessian: bool

    def value_and_gradient(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective, penalty included, and its gradient (n_weights,)."""
        ...

    def hessian(self, weights: np.ndarray, max_rows: float = ...) -> np.ndarray:
        """Second derivatives (n_weights, n_weights), from the first queries up to `max_rows` rows."""
        ...

    def curvature(self) -> np.ndarray:
        """An upper bound of the diagonal of the second derivatives at 0, (n_weights,)."""
        ...
