"""Compute AdaRank's measures of queries by part. The fit holds the measures of every query and feature, (m, p).

Each round sends the weights to the parts and m numbers back. Sums run over the queries in the order of the parts, so
the model has the same bits for any parts if the order of the queries is the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.types import MeasureLike
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside, joined
from truerank.matrices.rows import FEW, combine_columns, linear_scores
from truerank.measures.kernel import QueryMeasure

_TIE = 1e-12


class QueryMeasures:
    """The measures E_i(f_t) of all queries.

    E is the measure, or 1 minus the measure if lower values are better; `reported` converts a mean of E back.
    """

    def __init__(self, data: RowSource, measure: Any) -> None:
        self._data, self.measure = data, measure
        data.statistics(_open, measure, keep=True)
        self._skipped = self._gather("skipped")
        self._any_skipped = bool(self._skipped.any())
        weight = np.where(self._skipped, 0.0, data.weight_by_query)
        self._weight = weight / (weight.sum() or 1.0)

    def evaluate(self, coef: np.ndarray) -> np.ndarray:
        """Return the measure of every query (m,), from scores with the bits of `predict`."""
        return self._gather("evaluate", coef)

    def of_columns(self, *, descending: bool = True) -> np.ndarray:
        """Return E of every query ranked by each column, (m, p)."""
        return self._gather("of_columns", descending, self._data.part_jobs)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the measures (m,) of the best and of the worst order by grade."""
        both = self._gather("extremes")
        return both[:, 0], both[:, 1]

    def reported(self, value: float) -> float:
        """Return the mean of the measure, given the mean of E."""
        return value if self.measure.higher_is_better else 1.0 - value

    def offers_choice(self) -> bool:
        """Return whether the order of documents changes the measure of a query with positive weight."""
        best, worst = self.extremes()
        return bool((np.abs(best - worst)[self._weight > 0] > _TIE).any())

    def mean(self, values: np.ndarray) -> float:
        """Return the weighted mean of the measure from E of each query (m,), without skipped queries."""
        if self._any_skipped:
            values = np.where(self._skipped, 0.0, values)
        return self.reported(float(np.add.reduce(self._weight * values)))

    def _gather(self, what: str, *arguments: Any) -> np.ndarray:
        return joined(self._data.statistics(_ask, what, *arguments, merge=beside))


class MeasuresOfPart:
    """The measures E_i(f_t) of the queries of a part, from the columns that f_t uses."""

    def __init__(self, part: Part, measure: Any) -> None:
        data = part.data
        self.measure = QueryMeasure(data, measure)
        self._sparse, self._names = is_sparse(data.X), data.feature_names
        self._columns: dict[int, np.ndarray] = {}
        # Any scores show which queries the measure skips.
        self._skipped = np.isnan(self.measure.of_scores(np.zeros(data.n_rows)))

    def skipped(self, part: Part) -> np.ndarray:
        """Return the queries that the measure skips, bool (m,)."""
        return self._skipped

    def evaluate(self, part: Part, coef: np.ndarray) -> np.ndarray:
        coef = np.array(coef)  # what was received may be read-only
        used = np.flatnonzero(coef).tolist()
        if self._sparse or not 0 < len(used) <= FEW:
            return self._of_scores(linear_scores(part.data.X, coef))
        for k in used:
            if k not in self._columns:
                self._columns[k] = np.ascontiguousarray(part.columns([k], self._names)[:, 0])
        return self._of_scores(combine_columns([self._columns[k] for k in used], coef[used]))

    def of_columns(self, part: Part, descending: bool, n_jobs: int | None) -> np.ndarray:
        return self._turned(self.measure.of_columns(part.data.X, descending=descending, n_jobs=n_jobs))

    def extremes(self, part: Part) -> np.ndarray:
        """Return the measures of the best and of the worst order by grade, (m, 2)."""
        grades = self.measure.judgements.grades
        return np.stack([self._of_scores(grades), self._of_scores(-grades)], axis=1)

    def _of_scores(self, scores: np.ndarray) -> np.ndarray:
        return self._turned(self.measure.of_scores(scores))

    def _turned(self, values: np.ndarray) -> np.ndarray:
        return values if self.measure.measure.higher_is_better else np.subtract(1.0, values, out=values)


# Statistics of a part.


def _open(part: Part, measure: MeasureLike) -> None:
    part.memory["measures"] = MeasuresOfPart(part, measure)


def _ask(part: Part, what: str, *arguments: Any) -> list[np.ndarray]:
    return [getattr(part.memory["measures"], what)(part, *arguments)]
