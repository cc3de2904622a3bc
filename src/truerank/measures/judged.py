"""Share of judged documents."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.derived import ranks
from truerank.measures.ranking import Ordered


class JudgedShare(Measure):
    """Judged documents among the first k ranks, over the number of documents there: at most k. No query is empty."""

    NAME = "Judged"
    OWN = ("cutoff",)
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        sizes = np.diff(judgements.offsets)
        seen = sizes if self.cutoff is None else np.minimum(sizes, self.cutoff)
        judged = np.ones(judgements.n_rows) if judgements.judged is None else judgements.judged.astype(np.float64)
        value = ordered.smoothed(judged) if ordered.ties == "average" else judged[ordered.rows]
        if self.cutoff is not None:
            value = value * (ranks(judgements) <= self.cutoff)
        return ordered.sum(value) / np.maximum(seen, 1), np.zeros(len(sizes), dtype=bool)

    _average = _values
