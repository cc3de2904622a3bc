"""Inferred average precision."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered

_EPSILON = 1e-5


class InferredAP(Measure):
    """Average precision estimated from a judged sample of the pool (Yilmaz and Aslam 2006; trec_eval's infAP).

    A negative grade marks a document that was pooled but not judged. A document without a grade was not pooled. The
    expected precision at a relevant document of rank r is 1/r + (r - 1)/r · pooled/(r - 1) · (R + ε)/(R + N + 2ε).
    Above that document, R documents were judged relevant, N not relevant, and `pooled` were in the pool; ε = 0.00001.
    """

    NAME = "infAP"
    OWN = ("rel",)

    @property
    def rises_with_grades(self) -> bool:
        """Return False: pooled documents without a judgement increase the value of documents below them."""
        return False

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements, hits = ordered.judgements, ordered.hits(self.rel)
        judged = np.ones(judgements.n_rows, dtype=bool) if judgements.judged is None else judgements.judged
        not_relevant = judged & (judgements.grades >= 0) & ~hits.mask
        pooled = judged & (judgements.grades < 0)
        rank, above = ordered.hit_ranks(self.rel), hits.ordinal - 1.0
        bad, unjudged = ordered.count_above(not_relevant, hits), ordered.count_above(pooled, hits)
        before = np.maximum(rank - 1.0, 1.0)
        share = (above + _EPSILON) / (above + bad + 2 * _EPSILON)
        value = 1.0 / rank + (rank - 1.0) / rank * ((above + bad + unjudged) / before) * share
        return hits.sum(np.where(rank == 1, 1.0, value)) / np.maximum(hits.total, 1), hits.total == 0
