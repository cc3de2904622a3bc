"""Expected reciprocal rank."""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import LARGEST_EXPONENT, SMALLEST, best_grade
from truerank.measures.ranking import Ordered


class ExpectedReciprocalRank(Measure):
    """ERR = Σ_r 1/r · R_r · Π_{i<r} (1 - R_i) with R = (2^grade - 1) / 2^max_grade (Chapelle and others 2009).

    `max_grade` is by default the largest grade of the judgements. Set `max_grade` to compare values between data sets.
    """

    NAME = "ERR"
    OWN = ("cutoff", "max_grade")

    def largest(self, judgements: Judgements) -> float:
        """Return the `max_grade` for these judgements."""
        given = self.setting("max_grade")
        return float(best_grade(judgements).max(initial=0.0)) if given is None else float(given)

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        best = best_grade(judgements)
        largest = self.largest(judgements)
        if best.max(initial=0.0) > largest:
            raise InvalidInputError(
                f"ERR: max_grade is {largest:g}, but a document has grade {best.max():g}. Set max_grade={best.max():g}",
                code="max-grade",
            )
        if largest > LARGEST_EXPONENT:
            raise InvalidInputError(
                f"ERR: a grade of {largest:g} is too large for 2^grade. Map the grades to a few levels",
                code="large-grade",
            )
        hits, ranks = ordered.hits(SMALLEST), ordered.hit_ranks(SMALLEST)
        rows = ordered.rows[hits.mask[ordered.rows]].reshape(ordered.k, -1)
        stop = (np.exp2(judgements.grades[rows]) - 1.0) / np.exp2(largest)
        if self.cutoff is not None:
            stop[ranks > self.cutoff] = 0.0
        # Go down the ranks of all queries at once; queries with most relevant documents come first.
        order = np.argsort(-hits.ranked[hits.queries], kind="stable")
        starts, counts = hits.starts[order], hits.ranked[hits.queries[order]]
        going = np.ones((ordered.k, len(starts)))
        total = np.zeros_like(going)
        deepest = int(counts[0]) if len(counts) else 0
        for j in range(deepest if self.cutoff is None else min(deepest, self.cutoff)):
            live = int(np.searchsorted(-counts, -j, side="left"))
            at = starts[:live] + j
            total[:, :live] += going[:, :live] * stop[:, at] / ranks[:, at]
            going[:, :live] *= 1.0 - stop[:, at]
        result = np.zeros((ordered.k, judgements.n_queries))
        result[:, hits.queries[order]] = total
        return result, best <= 0
