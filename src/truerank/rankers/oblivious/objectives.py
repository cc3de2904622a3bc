"""Objectives: gradients and hessians of scores, query by query. A tree knows these and no loss.

An objective is a function `objective(y, scores, offsets) -> (gradients, hessians)`: grades (n,), scores (n,) and starts
of queries (m + 1,) in, two float64 arrays (n,) out. The gradients are those of a loss to be made small, the hessians
their (non-negative) second derivatives or an upper bound of these. Any such function of the user's is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class SquaredError:
    """½ Σ (y - s)²: gradient s - y, hessian 1. Boosting starts at the mean grade."""

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return scores - y, np.ones_like(scores)

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """The best constant score."""
        return float(np.average(y, weights=weights))


def checked(objective: Any, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An objective's answer as float64 arrays (n,), or an error that says what is wrong with a user's function."""
    answer = objective(y, scores, offsets)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise InvalidInputError(f"the objective must return (gradients, hessians), got {type(answer).__name__}")
    gradients, hessians = (np.ascontiguousarray(a, dtype=np.float64) for a in answer)
    for name, values in (("gradients", gradients), ("hessians", hessians)):
        if values.shape != y.shape:
            raise InvalidInputError(f"the objective's {name} must have shape {y.shape}, got {values.shape}")
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise InvalidInputError(f"the objective's {name} must be finite, got {values[row]} at row {row}")
    if hessians.min(initial=0.0) < 0:
        raise InvalidInputError("the objective's hessians must not be negative; take an upper bound or 1")
    return gradients, hessians


OBJECTIVES: dict[str, Callable[..., Any]] = {"mse": SquaredError}
