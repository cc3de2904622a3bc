"""Check whether the order of the rows reveals the grades, by AP of constant scores with ties in file order."""

from __future__ import annotations

import numpy as np

from truerank.core.random_streams import stream
from truerank.data.ranking_data import RankingData
from truerank.data.remarks import Remark
from truerank.measures.names import AP

_LEAST = 0.005  # smaller differences of AP are harmless
_STANDARD_ERRORS = 3.0
_FEW = 100  # with fewer queries, compare with random orders: three standard errors of few values are not rare
_SHUFFLES, _LEVEL = 999, 0.005


def file_order_finding(data: RankingData) -> list[Remark]:
    """Return the finding "file-order" if AP of constant scores differs between file order and averaged ties.

    The mean difference over queries must be above 0.005 and above 3 standard errors. With fewer than 100 queries, at
    most 5 of 1,000 random row orders may have as large a mean difference. Grades of 1 and more are relevant. The check
    costs two evaluations of AP, and 999 more with fewer than 100 queries.
    """
    if data.y is None or data.n_queries < 2:
        return []
    judgements, constant = data.judgements(), np.zeros(data.n_rows)
    in_order = AP(rel=1, ties="stable").per_query(judgements, constant)
    averaged = AP(rel=1, ties="average").per_query(judgements, constant)
    there = np.isfinite(in_order) & np.isfinite(averaged)
    difference = (in_order - averaged)[there]
    if len(difference) < 2:
        return []
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    mean = float(difference.mean())
    if abs(mean) <= max(_LEAST, _STANDARD_ERRORS * error):
        return []
    if len(difference) < _FEW:
        rng, measure = stream(0, "file order"), AP(rel=1, ties="stable")
        drawn = [measure.per_query(judgements, rng.random(data.n_rows))[there].mean() for _ in range(_SHUFFLES)]
        as_large = np.count_nonzero(np.abs(np.array(drawn) - averaged[there].mean()) >= abs(mean) - 1e-12)
        if (as_large + 1) / (_SHUFFLES + 1) > _LEVEL:
            return []
    where = f"AP of constant scores {np.nanmean(in_order):.4f} in file order, {np.nanmean(averaged):.4f} on average"
    return [Remark("file-order", where, int((difference != 0).sum()), [])]
