"""A user's own measure: a Python function of the grades in ranked order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class UserMeasure(Measure):
    """`function(grades_in_ranked_order) -> float`, called once a query; no query is empty to it.

    `parse_measure` makes one of a function, so that learners and `evaluate` take functions as they take names. Two
    measures are equal when their functions are the same object. Pickling needs a function that pickles; a model file
    keeps none.

    Parameters
    ----------
    function : callable (float64 array (documents of the query,)) -> float
    """

    NAME = "user"
    __slots__ = ("function",)

    function: Callable[[np.ndarray], float]

    def __init__(self, function: Callable[[np.ndarray], float], **settings: Any) -> None:
        super().__init__(**settings)
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "_key", (*self._key, function))

    def __call__(self, *positional: Any, **settings: Any) -> UserMeasure:
        """The same function under other settings."""
        return type(self)(self.function, *positional, **{**self._given, **settings})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.function, self._given)

    def _text(self, given: dict[str, Any]) -> str:
        inside = [getattr(self.function, "__name__", repr(self.function))]
        return f"user({','.join(inside + [f'{key}={value!r}' for key, value in sorted(given.items())])})"

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        offsets, grades = ordered.judgements.offsets, ordered.grades
        result = np.zeros((ordered.k, len(offsets) - 1))
        for i, (start, stop) in enumerate(zip(offsets[:-1], offsets[1:])):
            for row in range(ordered.k):
                value = self.function(grades[row, start:stop].copy())
                try:
                    result[row, i] = value
                except (TypeError, ValueError):
                    result[row, i] = np.nan
                if not np.isfinite(result[row, i]):
                    raise InvalidInputError(f"{self!r} must return a finite number for every query, got {value!r}")
        return result, np.zeros(len(offsets) - 1, dtype=bool)


def _rebuild(function: Callable[[np.ndarray], float], given: dict[str, Any]) -> UserMeasure:
    return UserMeasure(function, **given)
