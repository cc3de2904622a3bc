"""A warning after a fit whose scores cannot rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from truerank.core.errors import warn
from truerank.data.ranking_data import RankingData

_LOOKED_AT = 20_000  # rows whose scores are looked at after a fit
_ROUNDING = 1e-13  # of the largest score: a spread up to this is rounding


def warn_of_flat_scores(ranker: Any, data: RankingData) -> None:
    """Warn if the scores of the training queries cannot rank: they are not finite, or equal within every query."""
    last = int(np.searchsorted(data.offsets, _LOOKED_AT, side="right"))  # whole queries, one at least
    offsets = data.offsets[: max(last, 2)]
    with np.errstate(all="ignore"):
        scores = np.asarray(ranker._predict(data.X[: int(offsets[-1])]), dtype=np.float64)
    name = type(ranker).__name__
    if not np.isfinite(scores).all():
        warn(
            f"{name}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} training scores are not finite; "
            "scale the columns of X (see `truerank describe` for huge ones), or raise the regularisation",
            ConvergenceWarning,
        )
        return
    starts = offsets[:-1][np.diff(offsets) > 0]
    if len(starts) == 0:
        return
    spread = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
    if spread.max() > _ROUNDING * max(float(np.abs(scores).max()), np.finfo(float).tiny):
        return
    warn(
        f"{name} learned nothing: its scores are the same for all documents of a query. Training "
        f"{getattr(ranker, 'status_', 'gave no reason')}. Check that queries have documents of different grades "
        "(`rel` or the convention may leave none) and different features; else regularise less (a larger C, a "
        "smaller alpha), scale the columns, or train on another measure",
        ConvergenceWarning,
    )
