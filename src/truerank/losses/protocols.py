"""Protocols of losses for solvers and boosted trees, and base classes of objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from truerank.core.checks import check_function
from truerank.core.errors import InvalidInputError
from truerank.core.threads import query_blocks, run_blocks

Derivatives = tuple[np.ndarray, np.ndarray]


@runtime_checkable
class BoostingObjective(Protocol):
    """An objective of boosted trees.

    `quadratic` means that the loss is quadratic in each score, with the hessians as constant second derivatives. The
    change of the training loss is then exact, and derivatives are computed twice instead of stored.

    Three more members are optional. `by_row = True`: a row's gradient depends only on its own grade and score, and all
    hessians are equal, so that several threads process parts of the rows. `by_place = True`: positions of rows break
    ties or order random numbers, so that rows are passed in an order that depends only on their content.
    `reorder(rows)` is called first with this order of rows.
    """

    quadratic: bool

    def begin(self, rng: np.random.Generator) -> None:
        """Prepare the next tree; `rng` belongs to this tree alone, and losses without random numbers ignore it."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """Return the score of every row before the first tree, from grades (n,) and row weights (n,)."""

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        """Return gradients and hessians (n,), float64, without row weights; queries start at `offsets` (m + 1,).

        Boosting minimises the loss of these gradients. A hessian is the loss's second derivative by the row's score,
        or an upper bound of this derivative, and is never negative.
        """


class PlainObjective:
    """Default properties of an objective, which is not quadratic, uses no random numbers, and starts at 0."""

    quadratic = False

    def begin(self, rng: np.random.Generator) -> None:
        """Draw random numbers for the next tree from `rng`; most objectives draw no numbers."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        return 0.0


class FunctionObjective(PlainObjective):
    """A user's function `(y, scores, offsets) -> (gradients, hessians)` as an objective that starts at 0."""

    def __init__(self, function: Callable[..., Derivatives]) -> None:
        check_function(function, "objective", "y, scores, offsets")
        self.function = function

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        return self.function(y, scores, offsets)


class Block(NamedTuple):
    """The queries first … last - 1, and the arrays for their derivatives (the first arguments of each kernel)."""

    y: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    first: int
    last: int
    gradients: np.ndarray
    hessians: np.ndarray

    def mixed(self) -> Iterator[tuple[int, slice]]:
        """Yield the number and the rows of each query whose grades differ."""
        for q in range(self.first, self.last):
            rows = slice(int(self.offsets[q]), int(self.offsets[q + 1]))
            if rows.start < rows.stop and np.ptp(self.y[rows]) > 0:
                yield q, rows


class ByQuery(PlainObjective):
    """Base class of objectives over queries; a subclass implements `add`.

    `by_place` means that positions of rows break ties or order random numbers. Boosting then passes the rows in an
    order that depends only on their content, so that the model does not depend on the order of the file, and calls
    `reorder(rows)` if it exists.
    """

    by_place = False
    n_jobs: int | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Derivatives:
        gradients, hessians = np.zeros(len(y)), np.zeros(len(y))

        def work(first: int, last: int) -> Any:
            return self.add(Block(y, scores, offsets, first, last, gradients, hessians))

        self.collect(run_blocks(work, query_blocks(offsets, 16_384), self.n_jobs))
        return gradients, hessians

    def add(self, block: Block) -> Any:
        """Write the gradients and hessians of a block of queries."""
        raise NotImplementedError

    def collect(self, answers: list[Any]) -> None:
        """Receive the return values of `add` for all blocks, in order."""


def checked(
    objective: BoostingObjective, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray, first_row: int = 0
) -> Derivatives:
    """Return the result of an objective as float64 arrays (n,), or raise `InvalidInputError`.

    `first_row` is the number of the first row of this part among all rows.
    """
    answer: Any = objective(y, scores, offsets)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise InvalidInputError(
            f"the objective must return (gradients, hessians), got {type(answer).__name__}", code="objective-result"
        )
    gradients = np.ascontiguousarray(answer[0], dtype=np.float64)
    hessians = np.asarray(answer[1], dtype=np.float64)
    for name, values in (("gradients", gradients), ("hessians", hessians)):
        if values.shape != y.shape:
            raise InvalidInputError(
                f"the objective's {name} must have shape {y.shape}, got {values.shape}", code="objective-shape"
            )
        # One number may stand for all.
        if not np.isfinite(values[:1] if values.strides == (0,) else values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidInputError(
                f"the objective's {name} must be finite, got {values[row]} at index {first_row + row}",
                code="objective-finite",
            )
    if (hessians[:1] if hessians.strides == (0,) else hessians).min(initial=0.0) < 0:
        raise InvalidInputError(
            f"the objective's hessians must be >= 0, got {hessians.min():g} at index {first_row + hessians.argmin()}",
            code="negative-hessians",
        )
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
