"""A user-defined function as a measure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.checks import check_function
from truerank.core.errors import InvalidInputError
from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class FunctionMeasure(Measure):
    """A function `function(grades) -> float` of the grades in ranked order, called once for each query with documents.

    The function maps a float64 array (n_i,) to a finite number. Ties, conventions and `judged_only` work as for other
    measures, but no query is empty. The measure is printed as the name of its function. Model files do not store it.

    >>> from truerank import evaluate
    >>> from truerank.measures import FunctionMeasure
    >>> def second(grades):
    ...     return grades[1]
    >>> evaluate([0, 2, 1], [0.3, 0.1, 0.2], [second], qid=[7, 7, 7])
    {'second': 1.0}
    """

    NAME = "FunctionMeasure"
    OWN = REQUIRED = POSITIONAL = ("function",)

    def __repr__(self) -> str:
        return f"FunctionMeasure({self.name})"

    @property
    def function(self) -> Any:
        """The function, or None if no function was given."""
        return self._given.get("function")

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def rises_with_grades(self) -> bool:
        """Return False, because the function may return any value."""
        return False

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        meaning = ", which returns the value of one query from its grades in the order of the ranking"
        check_function(self.function, f"measure {self.name}", "grades", meaning)
        offsets = ordered.judgements.offsets
        result = np.zeros((ordered.k, len(offsets) - 1))
        for row, grades in enumerate(ordered.grades):
            for query in np.flatnonzero(np.diff(offsets)):
                value = self.function(grades[offsets[query] : offsets[query + 1]].copy())
                try:
                    number = float(value)
                except (TypeError, ValueError):
                    number = math.nan
                if not math.isfinite(number):
                    raise InvalidInputError(
                        f"{self.name} must be finite, got {value!r} for query {ordered.judgements.query_ids[query]}",
                        code="not-finite",
                    )
                result[row, query] = number
        return result, np.zeros(len(offsets) - 1, dtype=bool)
