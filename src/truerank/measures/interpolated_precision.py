"""Interpolated precision at a level of recall."""

from __future__ import annotations

import numpy as np

from truerank.measures.base import Measure
from truerank.measures.ranking import Ordered


class InterpolatedPrecision(Measure):
    """Interpolated precision. `IPrec@0.1` is the highest precision at a recall of at least 0.1.

    The measure is trec_eval's iprec_at_recall. The recall is reached at recall · R documents, rounded to the nearest
    number (`rounding="nearest"`, version 10), or at ⌊recall · R + 0.9⌋ documents (`"truncated"`, version 9). The value
    is 0 if fewer relevant documents were retrieved.
    """

    NAME = "IPrec"
    OWN = ("recall", "rel", "rounding")
    AT = "recall"
    REQUIRED = ("recall",)

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        hits = ordered.hits(self.rel)
        added = 0.9 if self.setting("rounding") == "truncated" else 0.5
        wanted = np.floor(float(self.setting("recall")) * hits.total + added)[hits.query]
        precision = np.where(hits.ordinal >= wanted, hits.ordinal / ordered.hit_ranks(self.rel), 0.0)
        result = np.zeros((ordered.k, ordered.judgements.n_queries))
        if len(hits.queries):
            result[:, hits.queries] = np.maximum.reduceat(precision, hits.starts, axis=1)
        return result, hits.total == 0
