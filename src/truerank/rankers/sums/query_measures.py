"""AdaRank over partitions: the client holds the measure of every query by every feature, (m, p).

Each round sends the weights to the workers and m numbers to the client. Sums run over the queries in the order of the
partitions, so the model has the bits of one machine if the order of the queries is the same.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from truerank.core.types import MeasureLike
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside
from truerank.matrices.rows import FEW, combine_columns, linear_scores
from truerank.measures.kernel import QueryMeasure

_TIE = 1e-12


def combined(data: RankingData | RowSource, measure: MeasureLike) -> Combined:
    """Return `Combined`, or for a `RowSource` its version over parts."""
    return PartitionedCombined(data, measure) if isinstance(data, RowSource) else Combined(data, measure)


class Combined:
    """E_i(f_t) of queries, from the columns that f_t uses.

    E is the measure, or 1 minus a measure of which less is better; `reported` converts a mean of E back.
    """

    def __init__(self, data: RankingData, measure: Any) -> None:
        self.measure = QueryMeasure(data, measure)
        self.X = data.X
        self._columns: dict[int, np.ndarray] = {}
        # Any scores show which queries the measure skips.
        self._skip(np.isnan(self.measure.of_scores(np.zeros(data.n_rows))), data.weight_by_query)

    def _skip(self, skipped: np.ndarray, weight: np.ndarray) -> None:
        self._skipped, self._any_skipped = skipped, bool(skipped.any())
        weight = np.where(skipped, 0.0, weight)
        self._weight = weight / (weight.sum() or 1.0)

    def evaluate(self, coef: np.ndarray) -> np.ndarray:
        """Return the measure of every query (m,), from scores with the bits of `predict`."""
        used = np.flatnonzero(coef).tolist()
        if hasattr(self.X, "tocsr") or not 0 < len(used) <= FEW:
            return self.of_scores(linear_scores(self.X, coef))
        for k in used:
            if k not in self._columns:
                self._columns[k] = np.ascontiguousarray(self.X[:, k])
        return self.of_scores(combine_columns([self._columns[k] for k in used], coef[used]))

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return E of every query (m,) for scores (n,)."""
        return self._turned(self.measure.of_scores(scores))

    def of_columns(self, *, descending: bool = True, n_jobs: int | None = None) -> np.ndarray:
        """Return E of every query ranked by each column, (m, p)."""
        return self._turned(self.measure.of_columns(self.X, descending=descending, n_jobs=n_jobs))

    def reported(self, value: float) -> float:
        """Return the mean of the measure, given the mean of E."""
        return value if self.measure.measure.higher_is_better else 1.0 - value

    def _turned(self, values: np.ndarray) -> np.ndarray:
        return values if self.measure.measure.higher_is_better else np.subtract(1.0, values, out=values)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the measures (m,) of the best and of the worst order by grade."""
        grades = self.measure.judgements.grades
        return self.of_scores(grades), self.of_scores(-grades)

    def offers_choice(self) -> bool:
        """Whether the order matters for some query with weight."""
        best, worst = self.extremes()
        return bool((np.abs(best - worst)[self._weight > 0] > _TIE).any())

    def mean(self, values: np.ndarray) -> float:
        """Return the weighted mean of the measure from E of each query (m,), without skipped queries."""
        if self._any_skipped:
            values = np.where(self._skipped, 0.0, values)
        return self.reported(float(np.add.reduce(self._weight * values)))


class PartitionedCombined(Combined):
    """`Combined` over partitions, with its methods."""

    def __init__(self, data: RowSource, measure: MeasureLike) -> None:
        self._rows = data
        self._rows.statistics(_open, measure, keep=True)
        self.measure: Any = SimpleNamespace(measure=measure)
        self._skip(self._gather("skipped").astype(bool), data.weight_by_query)

    def evaluate(self, coef: np.ndarray) -> np.ndarray:
        return self._gather("evaluate", coef)

    def of_columns(self, *, descending: bool = True, n_jobs: int | None = None) -> np.ndarray:
        return self._gather("columns", descending)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        both = self._gather("extremes")
        return both[:, 0], both[:, 1]

    def _gather(self, what: str, *arguments: Any) -> np.ndarray:
        return np.concatenate(self._rows.statistics(_ask, what, *arguments, merge=beside))


class MatrixOfSource:
    """The matrix of a partition whose rows are read from the source on demand."""

    def __init__(self, partition: Part, data: RankingData) -> None:
        self._partition, self._names, self.shape = partition, data.feature_names, data.X.shape

    def __getitem__(self, key: tuple[slice, int]) -> np.ndarray:
        rows, column = key
        return self._partition.columns([column], self._names)[rows, 0]

    def linear_scores(self, coef: np.ndarray) -> np.ndarray:
        return linear_scores(self._partition.data.X, coef)


class SparseOfSource(MatrixOfSource):
    """A sparse `MatrixOfSource`, which is read as a whole."""

    def tocsr(self) -> Any:
        return self._partition.data.X


def _open(partition: Part, measure: MeasureLike) -> None:
    data = partition.data
    combined = partition.memory["combined"] = Combined(data, measure)
    if not partition.hold:
        combined.X = (SparseOfSource if hasattr(data.X, "tocsr") else MatrixOfSource)(partition, data)


def _ask(partition: Part, what: str, *arguments: Any) -> list[np.ndarray]:
    combined = partition.memory["combined"]
    if what == "skipped":
        return [combined._skipped]
    if what == "extremes":
        return [np.stack(combined.extremes(), axis=1)]
    if what == "columns":
        whole = combined if partition.hold else Combined(partition.data, combined.measure.measure)
        return [whole.of_columns(descending=arguments[0], n_jobs=1)]
    return [combined.evaluate(np.array(arguments[0]))]
