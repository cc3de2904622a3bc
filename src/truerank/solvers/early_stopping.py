"""Early stopping by the values of a measure in each round."""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.types import MeasureLike
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.measures.base import Measure
from truerank.measures.kernel import QueryMeasure


class EarlyStopping:
    """The best of several rounds by a measure, with ties averaged unless the measure has a rule for ties.

    `add` requires the validation queries `valid`, whose `query_weight` weights the mean; `add_value` requires only
    values. Both return True after `patience` rounds (None: never) without a new best value, which must be better by
    more than `tolerance`. `values` has the values of all rounds; `best_round` counts from 1, and is 0 at the start.

    Examples
    --------
    >>> stopping = EarlyStopping("pairs(2,0)", "ranklib", patience=2)  # lower is better
    >>> [stopping.add_value(value) for value in (0.4, 0.3, 0.35, 0.5)], stopping.best_round
    ([False, False, False, True], 2)
    """

    def __init__(
        self,
        measure: MeasureLike,
        convention: str,
        patience: int | None = None,
        *,
        valid: RankingData | None = None,
        tolerance: float = 0.0,
    ) -> None:
        self.measure: Measure = parse_measure(measure, convention=convention).tie_averaged()
        self.patience = None if patience is None else check_positive_int(patience, "patience")
        self.tolerance = tolerance
        self.values: list[float] = []
        self.best_round = 0
        self._queries = None if valid is None else QueryMeasure(valid, self.measure)
        self._weight = None if valid is None else valid.query_weight

    def value_of(self, scores: np.ndarray) -> float:
        """Return the measure's mean over the validation queries for scores (n,) of their rows in grouped order."""
        assert self._queries is not None  # made with validation queries
        return self.measure.aggregate(self._queries.of_scores(scores), self._weight)

    def add(self, scores: np.ndarray) -> bool:
        """Add a round by the scores of the validation rows in grouped order; return True to stop."""
        return self.add_value(self.value_of(scores))

    def add_value(self, value: float) -> bool:
        """Add a round by the measure's value; return True to stop."""
        best = self.values[self.best_round - 1] if self.best_round else None
        self.values.append(float(value))
        if self.measure.improves(float(value), best, self.tolerance):
            self.best_round = len(self.values)
        return self.exhausted

    @property
    def exhausted(self) -> bool:
        """Return True if the last `patience` rounds had no new best value."""
        return self.patience is not None and len(self.values) - self.best_round >= self.patience

    @property
    def is_best(self) -> bool:
        return self.best_round == len(self.values) > 0
