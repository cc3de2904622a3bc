"""The best single feature, and chance, over partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.cluster.partition import Partition
from truerank.cluster.partitioned_data import PartitionedData
from truerank.cluster.sums import beside
from truerank.measures import Measure
from truerank.rankers.baselines import SingleFeature, last_if_missing
from truerank.solvers.result import Status


def fit_partitions(ranker: Any, data: PartitionedData, valid: PartitionedData | None) -> None:
    """Set the fitted attributes of `ranker`."""
    if isinstance(ranker, SingleFeature) and ranker.feature is None:

        def mean_of(measure: Measure, k: int, sign: int) -> float:
            by_query = np.concatenate(data.crew.round(_measured, k, sign, measure, merge=beside))
            return measure.aggregate(by_query, data.query_weight)

        ranker.choose(data.n_features, mean_of)
        ranker._finish(Status.CONVERGED)
    else:  # nothing is learned from the rows
        ranker._fit(data, None)


def _measured(partition: Partition, k: int, sign: int, measure: Any) -> list[np.ndarray]:
    data = partition.data
    scores = last_if_missing(sign * data.X[:, k].astype(np.float64))
    return [np.asarray(measure.per_query(data.judgements(), scores))]
