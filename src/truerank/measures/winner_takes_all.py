"""Winner takes all."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import best_grade, query_of_row
from truerank.measures.ranking import Ordered


class WinnerTakesAll(Measure):
    """1 if the top document has the best grade of the query, else 0. A query whose best grade is ≤ 0 is empty."""

    NAME = "WTA"
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        best = best_grade(judgements)
        result = np.zeros((ordered.k, judgements.n_queries))
        full = np.flatnonzero(np.diff(judgements.offsets))
        top = ordered.rows[:, judgements.offsets[:-1][full]]
        result[:, full] = judgements.grades[top] == best[full]
        return result, best <= 0

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        best = best_grade(judgements)
        is_best = judgements.grades == best[query_of_row(judgements)]
        result = np.zeros((ordered.k, judgements.n_queries))
        full = np.flatnonzero(np.diff(judgements.offsets))
        result[:, full] = ordered.smoothed(is_best.astype(np.float64))[:, judgements.offsets[:-1][full]]
        return result, best <= 0
