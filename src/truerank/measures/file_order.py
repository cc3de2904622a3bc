"""Does the order of the rows tell the grades? Constant scores, ties in file order, against ties averaged."""

from __future__ import annotations

import numpy as np

from truerank.data.checkup import Finding
from truerank.data.ranking_data import RankingData
from truerank.measures.names import AP

_LEAST = 0.005  # of AP, below which it does no harm
_STANDARD_ERRORS = 3.0


def file_order_finding(data: RankingData) -> list[Finding]:
    """The finding "file-order", where AP of constant scores depends on whether ties stand in file order.

    Found when the mean difference over queries is above .005 and 3 of its standard errors, so that chance in the
    order of a few rows is no finding. Two evaluations of AP; grades of 1 and more are relevant.
    """
    if data.y is None or data.n_queries < 2:
        return []
    judgements, constant = data.judgements(), np.zeros(data.n_rows)
    in_order = AP(rel=1, ties="stable").per_query(judgements, constant)
    averaged = AP(rel=1, ties="average").per_query(judgements, constant)
    difference = (in_order - averaged)[np.isfinite(in_order) & np.isfinite(averaged)]
    if len(difference) < 2:
        return []
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    mean = float(difference.mean())
    if abs(mean) <= max(_LEAST, _STANDARD_ERRORS * error):
        return []
    where = f"AP of constant scores {np.nanmean(in_order):.4f} in file order, {np.nanmean(averaged):.4f} on average"
    return [Finding("file-order", where, int((difference != 0).sum()), [])]
