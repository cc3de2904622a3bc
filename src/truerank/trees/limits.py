"""Limits of grades and weights, so that squares of their sums are finite."""

from __future__ import annotations

from truerank.core.errors import InvalidInputError

_LARGEST = 1e100


def check_limits(largest_grade: float, largest_weight: float | None) -> None:
    """Raise if squares of sums of grades or weights would over- or underflow, or if all weights of rows are 0."""
    if largest_grade > _LARGEST:
        raise InvalidInputError(f"y must lie within ±{_LARGEST:g}, got a magnitude of {largest_grade:g}: scale it")
    if largest_weight is None:
        return
    largest = largest_weight
    if largest <= 0:
        raise InvalidInputError("Sample weights must contain at least one non-zero number")
    if not 1.0 / _LARGEST <= largest <= _LARGEST:
        raise InvalidInputError(
            f"the largest weight of a row is {largest:g}; it must lie between {1.0 / _LARGEST:g} and {_LARGEST:g}: "
            "divide all weights by it"
        )
