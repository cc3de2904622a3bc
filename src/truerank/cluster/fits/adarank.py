"""AdaRank over partitions: the measure of every query by every feature comes to the client, and stays small.

The client holds m · p numbers for m queries, the workers the rows, or of rows that are not held the columns in use, up
to `FEW`; a round sends the weights down and m numbers up.
Every sum runs over the queries in the order of the partitions, so the model is one machine's, bit for bit, where no
query changes its place.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from truerank.cluster.partition import Partition, matrix_of_source
from truerank.cluster.partitioned_data import PartitionedData
from truerank.cluster.sums import beside
from truerank.rankers.adarank import Combined


class PartitionedCombined(Combined):
    """`Combined` whose queries live in partitions."""

    def __init__(self, data: PartitionedData, measure: Any) -> None:
        self._crew = data.crew
        self._crew.round(_open, measure, keep=True)
        self.measure: Any = SimpleNamespace(measure=measure)
        weight = data.weight_by_query
        self._skipped = self._gather("skipped").astype(bool)
        self._any_skipped = bool(self._skipped.any())
        weight = np.where(self._skipped, 0.0, weight)
        self._weight = weight / (weight.sum() or 1.0)

    def evaluate(self, coef: np.ndarray) -> np.ndarray:
        """E of every query (m,) ranked by the weights (p,)."""
        return self._gather("evaluate", coef)

    def of_columns(self, *, descending: bool = True, n_jobs: int | None = None) -> np.ndarray:
        """E of every query by each column, (m, p)."""
        return self._gather("columns", descending)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Measures (m,) of the best and of the worst order by grade."""
        both = self._gather("extremes")
        return both[:, 0], both[:, 1]

    def _gather(self, what: str, *arguments: Any) -> np.ndarray:
        return np.concatenate(self._crew.round(_ask, what, *arguments, merge=beside))


def _open(partition: Partition, measure: Any) -> None:
    data = partition.data
    combined = partition.memory["combined"] = Combined(data, measure)
    if not partition.hold:
        combined.X = matrix_of_source(partition, data)


def _ask(partition: Partition, what: str, *arguments: Any) -> list[np.ndarray]:
    combined = partition.memory["combined"]
    if what == "skipped":
        return [combined._skipped]
    if what == "extremes":
        return [np.stack(combined.extremes(), axis=1)]
    if what == "columns":
        whole = combined if partition.hold else Combined(partition.data, combined.measure.measure)
        return [whole.of_columns(descending=arguments[0], n_jobs=1)]
    return [combined.evaluate(np.array(arguments[0]))]
