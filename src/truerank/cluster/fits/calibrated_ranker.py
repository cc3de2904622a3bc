"""CalibratedRanker over partitions: rankers are trained and score there; scores and grades come here to be calibrated.

The client holds 24 bytes a row. Folds are those of one machine, by the names of the queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from truerank.calibration.ranker import on_one_level
from truerank.cluster.data import ClusterRankingData
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.data.splits import query_folds
from truerank.rankers.base import Ranker


def fit_partitions(ranker: Any, data: ClusterRankingData, valid: ClusterRankingData | None) -> None:
    """Set the fitted attributes of `ranker`."""
    if not isinstance(ranker.ranker, Ranker):
        raise InvalidInputError(
            f"on a cluster CalibratedRanker takes one of truerank's rankers, got {type(ranker.ranker).__name__}"
        )
    if ranker.cv == "prefit":
        ranker.ranker_ = ranker.ranker
        scores = data.grouped_scores(ranker.ranker_)
    else:
        cv = check_positive_int(ranker.cv, "cv", 2)
        if data.n_queries < 2:
            raise InvalidInputError('one query leaves none to hold out; on a cluster give two queries, or cv="prefit"')
        scores = np.empty(data.n_rows)
        light = data.without_features()
        given = {} if valid is None else {"eval_set": valid}
        ranker.ranker_ = clone(ranker.ranker).fit(data, **given)
        own = data.grouped_scores(ranker.ranker_)
        folds = query_folds(
            data.n_queries, min(cv, data.n_queries), random_state=ranker.random_state, query_ids=data.query_ids
        )
        for fold in folds:
            held = np.isin(light.query_index, fold)
            fitted = clone(ranker.ranker).fit(data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold)), **given)
            theirs = data.grouped_scores(fitted)
            scores[held] = on_one_level(theirs[held], theirs[~held], own[~held])
    ranker._calibrate(scores, data.without_features())
