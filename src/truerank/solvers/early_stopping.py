"""Early stopping on validation queries: the measure after each round, the best round, and when to give up."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.data.ranking_data import RankingData


class ValidationCurve:
    """The validation measure round by round.

    Parameters
    ----------
    valid : RankingData
    measure, convention
        As `parse_measure` takes them.
    patience : int or None
        Rounds without a new best after which `add` says to stop; None never stops.

    Attributes
    ----------
    values : list of float
        The measure after each round.
    best_round : int
        Number of the first round with the largest value, counted from 1; 0 before the first.
    """

    def __init__(self, valid: RankingData, measure: Any, convention: str, patience: int | None) -> None:
        from truerank.measures import parse_measure

        self._measure = parse_measure(measure, convention=convention)
        self._judgements = valid.judgements()
        self._patience = None if patience is None else check_positive_int(patience, "patience")
        self.values: list[float] = []
        self.best_round = 0

    def add(self, scores: np.ndarray) -> bool:
        """Take the scores of the validation rows (grouped order) after one more round; True says to stop."""
        value = float(self._measure.mean(self._judgements, scores))
        if not self.values or value > self.values[self.best_round - 1]:
            self.best_round = len(self.values) + 1
        self.values.append(value)
        return self._patience is not None and len(self.values) - self.best_round >= self._patience
