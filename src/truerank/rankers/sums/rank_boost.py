"""RankBoost over partitions: each round sums a histogram of potentials by bin and sends back the best stump.

A partition keeps codes, scores and potentials of its rows. Thresholds are those of one machine: evenly spaced over the
range of each column in all partitions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside
from truerank.measures.kernel import QueryMeasure
from truerank.rankers.pair_weights import PairWeights, add_scaled
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.grid_stumps import GridStumps, column_ranges
from truerank.trees.stumps import Stump, apply_stump

Ranges = tuple[np.ndarray, np.ndarray, np.ndarray]


def make_pair_weights(data: Any, n_jobs: int | None) -> Any:
    """Return `PairWeights`, or for a `RowSource` its version over parts."""
    return PartitionedPairWeights(data) if isinstance(data, RowSource) else PairWeights(data, n_jobs)


def stump_scores(valid: RankingData | RowSource, curve: EarlyStopping) -> StumpScores | PartitionedStumpScores:
    """Return the `StumpScores` of validation queries, or for a `RowSource` the version over parts."""
    return PartitionedStumpScores(valid, curve) if isinstance(valid, RowSource) else StumpScores(valid, curve)


class StumpScores:
    """Scores of validation queries, and their measure after each stump."""

    def __init__(self, valid: RankingData, curve: EarlyStopping) -> None:
        self._X, self._weight = valid.X, valid.query_weight
        self._measure = QueryMeasure(valid, curve.measure)
        self._scores = np.zeros(valid.n_rows)

    def value_with(self, stump: Stump, weight: float) -> float:
        """Add `weight * h` to the scores; return the mean of the measure."""
        return self._measure.measure.aggregate(self.by_query_with(stump, weight), self._weight)

    def by_query_with(self, stump: Stump, weight: float) -> np.ndarray:
        """Add `weight * h` to the scores; return the measure by query (m,)."""
        apply_stump(self._X, stump, weight, self._scores)
        return self._measure.of_scores(self._scores)


class PartitionedPairWeights:
    """`PairWeights` over partitions, with its methods; a search is a grid without rows."""

    def __init__(self, data: RowSource) -> None:
        self._rows, self._n_features = data, data.n_features
        self.n_rows = int(self._rows.statistics(_open, keep=True))
        self._first = math.nan
        self.exponential_loss = 1.0

    def search(self, thresholds: int | str) -> GridStumps:
        if isinstance(thresholds, str):
            raise InvalidInputError(
                'thresholds="all" needs all rows in one place; on a cluster give a number, thresholds=1000 for example'
            )
        ranges = self._rows.statistics(_ranges, merge=_wider)
        self._rows.statistics(_code, int(thresholds), ranges, keep=True)
        return _grid(np.zeros((0, self._n_features)), np.zeros(0, np.int64), int(thresholds), ranges)

    def best_stump(self, search: GridStumps) -> Stump | None:
        exponent, total, sums = self._rows.statistics(_sums, merge=add_scaled)
        log_total = exponent + math.log(total)
        if math.isnan(self._first):
            self._first = log_total
        self.exponential_loss = math.exp(min(log_total - self._first, 700.0))
        return search.best_of_bins(np.array(sums) / total)

    def apply(self, search: GridStumps, stump: Stump, weight: float) -> None:
        self._rows.statistics(_add, stump, weight, keep=True)


class PartitionedStumpScores:
    """`StumpScores` over partitions, with its methods."""

    def __init__(self, valid: RowSource, curve: EarlyStopping) -> None:
        self._rows, self._measure, self._weight = valid, curve.measure, valid.query_weight
        self._rows.statistics(_open_scores, curve, keep=True)

    def value_with(self, stump: Stump, weight: float) -> float:
        by_query = self._rows.statistics(_measured, stump, weight, merge=beside, keep=True)
        return float(self._measure.aggregate(np.concatenate(by_query), self._weight))


# Statistics of a partition.


def _wider(a: Ranges, b: Ranges) -> Ranges:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1]), a[2] | b[2]


def _grid(X: np.ndarray, rows: np.ndarray, thresholds: int, ranges: Ranges) -> GridStumps:
    return GridStumps(X, rows, thresholds, 1, (np.array(ranges[0]), np.array(ranges[1]), np.array(ranges[2])))


def _open(partition: Part) -> int:
    pairs = partition.memory["pairs"] = PairWeights(partition.data, 1)
    return pairs.n_rows


def _ranges(partition: Part) -> Ranges:
    return column_ranges(partition.data.X, partition.memory["pairs"].rows)


def _code(partition: Part, thresholds: int, ranges: Ranges) -> None:
    pairs = partition.memory["pairs"]
    partition.memory["grid"] = _grid(partition.data.X, pairs.rows, thresholds, ranges)
    pairs.drop_values()


def _sums(partition: Part) -> tuple[float, float, np.ndarray]:
    return partition.memory["pairs"].sums_by_bin(partition.memory["grid"])


def _add(partition: Part, stump: Stump, weight: float) -> None:
    partition.memory["pairs"].apply(partition.memory["grid"], stump, weight)


def _open_scores(partition: Part, curve: EarlyStopping) -> None:
    partition.memory["scores"] = StumpScores(partition.data, curve)


def _measured(partition: Part, stump: Stump, weight: float) -> list[np.ndarray]:
    return [np.asarray(partition.memory["scores"].by_query_with(stump, weight))]
