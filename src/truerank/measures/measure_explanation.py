"""Explain the value of a measure for one query, rank by rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from truerank.core.printing import styled_table
from truerank.core.results import Result
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import as_read, ideal_grades
from truerank.measures.ndcg import discounts, gain_of_grade
from truerank.measures.ranking import Ranking


class ExplainedRank(NamedTuple):
    """A rank in the list of one query.

    `gained` is the value of the list up to this rank minus the value up to the previous rank. The sum over all ranks is
    the value. `grade` is None for an unjudged document. Only nDCG has `gain`, `discount`, and `ideal_grade` and
    `ideal_gain` of the ideal list at this rank.
    """

    rank: int
    doc_id: str
    score: float
    grade: float | None
    gained: float
    gain: float | None
    discount: float | None
    ideal_grade: float | None
    ideal_gain: float | None


class MeasureExplanation(Result):
    """The result of `explain_measure`, printed as a table.

    `value` is the value of `measure` for the `query`. `ranks` (ExplainedRank) reach down to the cutoff and the last
    document that changes the value, at least to rank ten. `n_ranked` counts the documents in the list, `n_unjudged` the
    unjudged ones among them, and `n_tied` documents whose score occurs again. `n_relevant` counts the relevant
    documents, and `n_unretrieved` the relevant documents outside the list.
    """

    KIND = "measure-explanation"

    def __init__(self, measure: Measure, query: str, judgements: Judgements, scores: np.ndarray) -> None:
        self.measure, self.query = measure, query
        judgements = as_read(judgements, measure.setting("grades")) or judgements
        self.value = float(measure.per_query(judgements, scores)[0])
        ties = measure.OWN_TIES or measure.setting("ties")
        ordered = Ranking(judgements, scores).ordered("trec" if ties == "average" else ties, measure.setting("compare"))
        rows = ordered.rows[0]
        judged = np.ones(len(rows), dtype=bool) if judgements.judged is None else judgements.judged
        rel = measure.setting("rel")
        grades = ideal_grades(judgements)[0]
        self.n_ranked, self.n_unjudged = len(rows), int((~judged).sum())
        self.n_relevant = int((grades >= rel).sum())
        self.n_unretrieved = self.n_relevant - int((judgements.grades >= rel).sum())
        repeated = np.unique(scores.astype(measure.setting("compare")), return_counts=True)[1]
        self.n_tied = int(repeated[repeated > 1].sum())
        gained = np.diff(self._values_of_prefixes(judgements, scores, rows), prepend=0.0)
        worth = np.flatnonzero(gained != 0)
        depth = min(len(rows), max(10, int(worth[-1]) + 1 if len(worth) else 0, measure.cutoff or 0))
        own = measure.NAME == "nDCG"
        weights = discounts(measure.setting("discount"), max(depth, 1)) if own else np.zeros(0)
        gains = gain_of_grade(judgements.grades, measure.setting("gain")) if own else np.zeros(0)
        ideal = gain_of_grade(grades, measure.setting("gain")) if own else np.zeros(0)
        keys = judgements.tie_keys
        self.ranks = []
        for place, row in enumerate(rows[:depth].tolist()):
            inside = own and (measure.cutoff is None or place < measure.cutoff)
            self.ranks.append(
                ExplainedRank(
                    place + 1,
                    str(row if keys is None else keys[row]),
                    float(scores[row]),
                    float(judgements.grades[row]) if judged[row] else None,
                    float(gained[place]),
                    float(gains[row]) if own else None,
                    (float(weights[place]) if inside else 0.0) if own else None,
                    float(grades[place]) if own and place < len(grades) else None,
                    float(ideal[place]) if own and place < len(grades) else None,
                )
            )

    def _values_of_prefixes(self, judgements: Judgements, scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the measure of the first 1, 2, … documents, where all later documents count as not retrieved."""
        n, measure, judged = len(rows), self.measure, judgements.judged
        values = np.full(n, self.value)
        for place in range(min(n - 1, measure.cutoff or n)):
            kept, left = rows[: place + 1], rows[place + 1 :]
            lost = left if judged is None else left[judged[left]]
            absent = judgements.grades[lost]
            if judgements.missing_grades is not None:
                absent = np.concatenate([absent, judgements.missing_grades])
            part = Judgements(
                judgements.grades[kept], np.array([0, place + 1]), judged=None if judged is None else judged[kept],
                missing_grades=absent, missing_offsets=np.array([0, len(absent)]),
            )  # fmt: skip
            value = measure(ties="stable").per_query(part, -np.arange(place + 1.0))[0]
            values[place] = 0.0 if np.isnan(value) else value
        return values

    def _figures(self) -> dict[str, Any]:
        names = ("query", "value", "n_ranked", "n_relevant", "n_unretrieved", "n_unjudged", "n_tied")
        return (
            {"measure": self.measure.name, "convention": self.measure.convention}
            | {name: getattr(self, name) for name in names}
            | {"ranks": [rank._asdict() for rank in self.ranks]}
        )

    def _table(self, style: str) -> str:
        header = ["rank", "document", "score", "grade", "gained"]
        header += ["gain", "discount", "ideal grade", "ideal gain"] if self.measure.NAME == "nDCG" else []
        rows = [list(rank[: len(header)]) for rank in self.ranks]
        for row in rows:
            row[3] = "unjudged" if row[3] is None else f"{row[3]:g}"
        return styled_table(rows, header, style)

    @property
    def summary(self) -> str:
        """A sentence with the value and the counts of documents."""
        return (
            f"{self.measure.name} of query {self.query}: {self.value:.4f}, convention "
            f"{self.measure.convention}; {self.n_ranked} documents, {self.n_unjudged} of them unjudged, {self.n_tied} "
            f"tied; {self.n_relevant} relevant, {self.n_unretrieved} of them not in the list"
        )
