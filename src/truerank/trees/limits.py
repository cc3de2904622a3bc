"""Limits of grades and weights, so that squares of their sums are finite."""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError

_LARGEST = 1e100


def check_weights(weight: np.ndarray | None) -> None:
    """Raise `InvalidInputError` if all weights (n,) are 0, or squares of their sums would over- or underflow."""
    if weight is None:
        return
    largest = float(weight.max())
    if largest <= 0:
        raise InvalidInputError("Sample weights must contain at least one non-zero number")
    if not 1.0 / _LARGEST <= largest <= _LARGEST:
        raise InvalidInputError(
            f"the largest weight of a row is {largest:g}; it must lie between {1.0 / _LARGEST:g} and {_LARGEST:g}: "
            "divide all weights by it"
        )


def check_grades(y: np.ndarray) -> None:
    """Raise `InvalidInputError` if sums of squared grades would overflow."""
    largest = float(np.abs(y).max(initial=0.0))
    if largest > _LARGEST:
        raise InvalidInputError(f"y must lie within ±{_LARGEST:g}, got a magnitude of {largest:g}: scale it")
