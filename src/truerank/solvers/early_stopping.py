"""Early stopping: values of a measure round by round, the best round, and when to give up."""

from __future__ import annotations

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.types import MeasureLike
from truerank.data.ranking_data import RankingData
from truerank.measures import parse_measure
from truerank.measures.base import Measure
from truerank.measures.kernel import QueryMeasure


class EarlyStopping:
    """The best of several rounds by a measure, and the word to stop.

    It knows which way the measure is better, and looks at ties so that no order of the rows decides
    (`Measure.tie_averaged`; a tie rule written into the measure is kept).

    Parameters
    ----------
    measure : str, Measure or callable
    convention : str
        What the measure's name leaves open.
    patience : int or None
        Rounds without a new best after which `add_value` says to stop; None never stops.
    valid : RankingData, optional
        Validation queries, for `add`; their `query_weight` counts in the mean.
    tolerance : float, default 0.0
        A round must be better by more than this to be a new best.

    Attributes
    ----------
    measure : Measure
        With its convention and tie rule in force.
    values : list of float
        The measure after each round.
    best_round : int
        Number of the first round with the best value, counted from 1; 0 before the first.

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
        """The measure's mean over the validation queries for scores (n,) of their rows in grouped order."""
        assert self._queries is not None  # made with validation queries
        return self._queries.mean_of_scores(scores, self._weight)

    def add(self, scores: np.ndarray) -> bool:
        """Take the scores of the validation rows (grouped order) after one more round; True says to stop."""
        return self.add_value(self.value_of(scores))

    def add_value(self, value: float) -> bool:
        """Take the measure's value after one more round; True says to stop."""
        best = self.values[self.best_round - 1] if self.best_round else None
        self.values.append(float(value))
        if self.measure.improves(float(value), best, self.tolerance):
            self.best_round = len(self.values)
        return self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether `patience` rounds have gone by without a new best."""
        return self.patience is not None and len(self.values) - self.best_round >= self.patience

    @property
    def is_best(self) -> bool:
        """Whether the latest round is the best."""
        return self.best_round == len(self.values) > 0
