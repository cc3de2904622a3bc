"""CalibratedRanker over partitions: rankers are trained and score there; scores and grades come here to be calibrated.

The client holds 24 bytes a row. Folds are those of one machine, by the names of the queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from truerank.calibration.ranker import on_one_level
from truerank.cluster.partitioned_data import PartitionedData
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.data.splits import query_folds
from truerank.rankers.base import Ranker


def fit_partitions(ranker: Any, data: PartitionedData, valid: PartitionedData | None) -> None:
    """Set the fitted attributes of `ranker`."""
    if not isinstance(ranker.ranker, Ranker):
        raise InvalidInputError(
            f"on a cluster CalibratedRanker takes one of truerank's rankers, got {type(ranker.ranker).__name__}"
        )
    if ranker.cv == "prefit":
        ranker.ranker_ = ranker.ranker
        scores = data.grouped_scores(ranker.ranker_)
    else:
        scores, ranker.ranker_ = held_out_scores(ranker.ranker, data, ranker.cv, valid, ranker.random_state)
    ranker._calibrate(scores, data.without_features())


def held_out_scores(
    ranker: Any, data: PartitionedData, cv: int, valid: PartitionedData | None, random_state: Any
) -> tuple[np.ndarray, Any]:
    """`cross_fitted_scores` over partitions, and a clone of the ranker that was trained on all."""
    cv = check_positive_int(cv, "cv", 2)
    if data.n_queries < 2:
        raise InvalidInputError('one query leaves none to hold out; on a cluster give two queries, or cv="prefit"')
    scores, query = np.empty(data.n_rows), data.without_features().query_index
    given = {} if valid is None else {"eval_set": valid}
    whole = clone(ranker).fit(data, **given)
    own = data.grouped_scores(whole)
    for fold in query_folds(
        data.n_queries, min(cv, data.n_queries), random_state=random_state, query_ids=data.query_ids
    ):
        held = np.isin(query, fold)
        part = clone(ranker).fit(data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold)), **given)
        theirs = data.grouped_scores(part)
        scores[held] = on_one_level(theirs[held], theirs[~held], own[~held])
    return scores, whole
