"""Training over partitions: for each ranker what a partition adds up, and the step that is taken from the sums.

The estimators stay what they are: they check their parameters, keep the result and predict. Here stands, one file a
family, how `fit` gets there without the rows: `statistics(partition, state) -> arrays that add up` run where the
partitions live, `step(sum, state) -> state` on the client.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.cluster.checkpoint import Checkpoint, name_of_fit
from truerank.cluster.partitioned_data import PartitionedData
from truerank.core.errors import InvalidInputError
from truerank.core.fitting import whole_fit
from truerank.core.rounds import Callback, fitting
from truerank.data.ranking_data import RankingData
from truerank.rankers.round_results import values_by_round

# Class -> module with `fit_partitions(ranker, data, valid)`, which sets the fitted attributes; None where the
# estimator's own fit does, as its sums are made where the rows live.
FITS = {
    "AdaRank": None,
    "CalibratedRanker": "calibrated_ranker",
    "ListNet": "linear",
    "MeasureSVM": "linear",
    "ObliviousBoosting": "oblivious_boosting",
    "PointwiseSVM": "linear",
    "RandomRanker": "baselines",
    "RankBoost": None,
    "RankSVM": "linear",
    "RidgeRanker": "linear",
    "SingleFeature": "baselines",
}
_INSTEAD = {
    "PairwiseDescent": "it learns from a stream: `fit_file` reads a LETOR file of any size block by block",
}


def fit(ranker: Any, data: PartitionedData, eval_set: Any = None, callbacks: Sequence[Callback] = ()) -> Any:
    """Fit a ranker to data on a cluster; on any error it is as it was before.

    Raises
    ------
    InvalidInputError
        For a ranker that does not learn from partitions, and for what it refuses on one machine too.
    """
    name = type(ranker).__name__
    if name not in FITS:
        reason = _INSTEAD.get(
            name, f"on a cluster learn {', '.join(FITS)}; fit to `data.gather()` if the rows fit here"
        )
        raise InvalidInputError(f"{name} does not learn from partitions: {reason}")
    if eval_set is not None and not ranker.uses_eval_set:
        raise InvalidInputError(f"eval_set: {name} has nothing that validation queries could choose; leave it out")
    with fitting(name, callbacks) as told, whole_fit(ranker) as fresh:
        valid = None if eval_set is None else _validation(eval_set, data)
        if valid is not None:
            told.watched = "valid_0", fresh._watched_measure().name
        for one in (data, valid):
            if one is not None:
                _check(fresh, one)
        fresh.n_features_in_, fresh.n_queries_in_ = data.n_features, data.n_queries
        fresh.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            fresh.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
        fresh._take_category_names(data)
        log = None if data.checkpoint is None else Checkpoint(data.checkpoint, name_of_fit(ranker, data, valid))
        crews = [one.crew for one in (data, valid) if one is not None]
        done = False
        try:
            for crew in crews:
                crew.begin(log)
            fresh.__dict__.pop("evals_result_", None)  # of an earlier fit
            if FITS[name] is None:
                fresh._fit(data, valid)
            else:
                importlib.import_module(f"truerank.cluster.fits.{FITS[name]}").fit_partitions(fresh, data, valid)
            if valid is not None:
                fresh.evals_result_ = values_by_round(fresh, [("valid_0", valid)])
            done = True
        finally:
            if log is not None:
                log.close(done)
        for crew in crews:
            crew.begin()
    return ranker


def _validation(eval_set: Any, data: PartitionedData) -> PartitionedData:
    if isinstance(eval_set, PartitionedData):
        return eval_set
    if not isinstance(eval_set, RankingData):
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 3:
            raise InvalidInputError("eval_set must be (X, y, qid), a RankingData or a ClusterRankingData")
        eval_set = RankingData(*eval_set)
    return data.beside(eval_set)


def _check(ranker: Any, data: PartitionedData) -> None:
    name = type(ranker).__name__
    if not data.judged:
        raise InvalidInputError("these data have no grades (y); training needs them")
    if data.n_rows == 0:
        raise InvalidInputError("these data have no rows; training needs some")
    if not data.dense and not ranker.allow_sparse:
        raise InvalidInputError(f"{name} needs a dense matrix, these data are sparse")
    if not data.finite:
        data.crew.round(_check_values, ranker)
    if data.weighs_rows and not ranker.allow_sample_weight:
        raise InvalidInputError(f"{name} does not weigh single rows, and these data have a sample_weight")


def _check_values(partition: Any, ranker: Any) -> None:
    ranker._check_values(partition.data.X)
