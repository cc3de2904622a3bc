"""Judged rankings in partitions: what is known of them here, and what is asked of the workers that hold the rows."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from truerank.cluster.clients import current_client
from truerank.cluster.crew import Crew
from truerank.cluster.partition import GivenSource, JoinedSource, Partition, QueriesSource, Source
from truerank.cluster.sums import beside
from truerank.core.errors import InvalidInputError
from truerank.core.printing import note
from truerank.data.checkup import Look, look
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import Judgements, RankingData


class PartitionedData:
    """The data of `ClusterRankingData`, which says what its attributes are."""

    is_cluster_data = True

    def __init__(self, sources: list[Source], client: Any = None, hold: bool = True, n_jobs: int | None = None) -> None:
        if not sources:
            raise InvalidInputError("there are no partitions; expected at least one")
        self.client, self.n_jobs, self.hold = current_client(client), n_jobs, hold
        self.checkpoint: str | os.PathLike[str] | None = None
        self.crew = Crew(self.client, sources, hold, n_jobs)
        shapes = self.crew.round(_describe, merge=beside)
        joined = self._join(sources, [shape["queries"] for shape in shapes])
        if joined is not None:
            self.crew = Crew(self.client, joined, hold, n_jobs)
            shapes = self.crew.round(_describe, merge=beside)
        self._take(shapes)

    @property
    def weight_by_query(self) -> np.ndarray:
        """Weight of each query, float64 (m,): 1 where none was given."""
        return np.ones(self.n_queries) if self.query_weight is None else self.query_weight

    def _take(self, shapes: list[dict[str, Any]]) -> None:
        widths = [shape["n_features"] for shape in shapes]
        if len(set(widths)) > 1:
            other = next(i for i, width in enumerate(widths) if width != widths[0])
            raise InvalidInputError(
                f"partition {other} has {widths[other]} features and partition 0 has {widths[0]}; all must have the "
                "same (LETOR files that lack the last features need n_features)"
            )
        for i, shape in enumerate(shapes):
            if shape["names"] != shapes[0]["names"]:
                raise InvalidInputError(f"partition {i} names its features otherwise than partition 0")
            if shape["categories"] != shapes[0]["categories"]:
                raise InvalidInputError(
                    f"partition {i} numbers the texts of a column otherwise than partition 0; name them all: "
                    'categories={"column": ["a", "b"]}'
                )
        self.n_features, self.feature_names = widths[0], shapes[0]["names"]
        self.category_names = shapes[0]["categories"]
        self.judged = all(shape["judged"] for shape in shapes)
        self.dense = all(shape["dense"] for shape in shapes)
        self.finite = all(shape["finite"] for shape in shapes)
        self.rows_by_partition = np.array([shape["n_rows"] for shape in shapes], dtype=np.int64)
        self.first_rows = offsets_of(self.rows_by_partition)
        self.queries_by_partition = np.array([len(shape["queries"]) for shape in shapes], dtype=np.int64)
        self.query_ids = np.array([query for shape in shapes for query in shape["queries"]])
        weights = [shape["query_weight"] for shape in shapes]
        self.query_weight = None
        if any(weight is not None for weight in weights):
            filled = [np.ones(n) if weight is None else weight for n, weight in zip(self.queries_by_partition, weights)]
            self.query_weight = np.concatenate(filled)
        self.weighs_rows = any(shape["weighs_rows"] for shape in shapes)
        self.largest_grade = max(shape["largest_grade"] for shape in shapes)
        given = [shape["largest_weight"] for shape in shapes if shape["largest_weight"] is not None]
        self.largest_weight = max(given, default=None)

    def _join(self, sources: list[Source], queries: list[list[Any]]) -> list[Source] | None:
        """Sources in which every query is whole, at the first partition that has it; None where it is so already."""
        home: dict[Any, int] = {}
        foreign: list[set[Any]] = [set() for _ in sources]
        more: list[dict[int, set[Any]]] = [{} for _ in sources]
        for i, names in enumerate(queries):
            for query in names:
                first = home.setdefault(query, i)
                if first != i:
                    foreign[i].add(query)
                    more[first].setdefault(i, set()).add(query)
        split = set().union(*foreign)
        if not split:
            return None
        note(f"truerank: {len(split)} queries were split over partitions; their rows now live with the first of them")
        return [
            JoinedSource(
                source, frozenset(foreign[i]), tuple((sources[j], frozenset(names)) for j, names in more[i].items())
            )
            if foreign[i] or more[i]
            else source
            for i, source in enumerate(sources)
        ]

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return self.crew.n_partitions

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return int(self.first_rows[-1])

    @property
    def n_queries(self) -> int:
        """Number of queries m."""
        return len(self.query_ids)

    # What estimators and measures call. They know this class by these methods alone.

    def predict_with(self, ranker: Any, method: str = "predict") -> list[np.ndarray]:
        """Scores of each partition (list of arrays (n_i,)), in the order of its rows; or what another method gives."""
        return list(self.crew.round(_predicted, ranker, method, merge=beside))

    def rank_with(self, ranker: Any) -> list[np.ndarray]:
        """Ranks within queries of each partition (list of arrays (n_i,)), in the order of its rows."""
        return list(self.crew.round(_ranks, ranker, merge=beside))

    def scored_with(self, ranker: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
        """Of each partition: names and offsets of its queries, document ids or None, and scores in grouped order."""
        return list(self.crew.round(_scored, ranker, merge=beside))

    def score_of(self, ranker: Any, measure: Any) -> float:
        """Mean of a measure (a value) over all queries, ranked by a ranker."""
        return float(measure.mean(self.judgements(), self.grouped_scores(ranker)))

    def judgements(self) -> Judgements:
        """Grades and offsets of all partitions, gathered here: 16 bytes a row; X stays where it is."""
        if not self.judged:
            raise InvalidInputError("these data have no grades (y); measures and training need them")
        return self.without_features().judgements()

    @property
    def query_index(self) -> np.ndarray:
        """Number of each row's query, int64 (n,), partition by partition; gathered here."""
        return self.without_features().query_index

    def restore(self, values: np.ndarray) -> list[np.ndarray]:
        """Values (n,) in grouped order as `predict` gives scores: of each partition, in the order of its rows."""
        parts = zip(np.split(values, self.first_rows[1:-1]), self.crew.round(_orders, merge=beside))
        return [own if order is None else at_places(own, order) for own, order in parts]

    def look(self) -> Look:
        """What the check-up behind `describe` sees: its findings are those of one machine."""
        seen: Look = self.crew.round(_look)
        return seen

    def without_features(self) -> RankingData:
        """Grades, queries and weights of all partitions in one `RankingData` on the client, without X."""
        return RankingData.concatenate(self.crew.round(_light, merge=beside))

    def evaluate(self, measures: Any, scores: Any, *, convention: str = "ranklib") -> Any:
        """`truerank.evaluate` of a ranker, or of the scores that its `predict` gave, over all partitions.

        Parameters
        ----------
        measures : str, Measure or a list of these
        scores : ranker, or list of arrays (n_i,) as `predict` gives them
        convention : str
        """
        from truerank.measures.evaluation import evaluate

        return evaluate(measures, self.judgements(), self.grouped_scores(scores), convention=convention)

    def grouped_scores(self, scores: Any) -> np.ndarray:
        """Scores (n,) of all rows in grouped order, partition by partition: of a ranker, or as `predict` gave them."""
        if hasattr(scores, "predict"):
            return np.concatenate([part[3] for part in self.scored_with(scores)])
        if len(scores) != self.n_partitions:
            raise InvalidInputError(
                f"scores must be a ranker or a list of {self.n_partitions} arrays, one a partition, as predict gives "
                f"them; got {type(scores).__name__} of {len(scores)}"
            )
        orders = self.crew.round(_orders, merge=beside)
        grouped = []
        for number, (values, order, n) in enumerate(zip(scores, orders, self.rows_by_partition.tolist())):
            values = np.asarray(values, dtype=np.float64)
            if values.shape != (n,):
                raise InvalidInputError(f"partition {number} has {n} rows, its scores have the shape {values.shape}")
            grouped.append(values if order is None else values[order])
        return np.concatenate(grouped)

    def take_queries(self, chosen: Any) -> Self:
        """The data of some queries (bool (m,), or their numbers), in the same partitions.

        The workers read their partitions once more for it, and hold these rows beside the others.
        """
        index = np.asarray(chosen)
        wanted = np.zeros(self.n_queries, dtype=bool)
        wanted[index] = True
        starts = offsets_of(self.queries_by_partition)
        sources: list[Source] = [
            QueriesSource(source, np.flatnonzero(wanted[a:b]))
            for source, a, b in zip(self.crew.sources, starts[:-1], starts[1:])
        ]
        return type(self)(sources, self.client, self.hold, self.n_jobs)

    def beside(self, part: RankingData) -> Self:
        """Rows that are in memory here as data on the same cluster, one partition of them."""
        return type(self)([GivenSource(part)], self.client, True, self.n_jobs)

    def gather(self) -> RankingData:
        """All rows in one `RankingData` on the client: for data that fit there."""
        return RankingData.concatenate(self.crew.round(_whole, merge=beside))


def without_features(data: RankingData) -> RankingData:
    """The data without X."""
    return data.replaced(X=np.zeros((data.n_rows, 0)), feature_names=None, comments=None, order=None)


# Statistics of a partition.


def _look(partition: Partition) -> Look:
    return look(partition.data)


def _describe(partition: Partition) -> list[dict[str, Any]]:
    data = partition.data
    values = data.X.data if hasattr(data.X, "tocsr") else data.X
    with np.errstate(all="ignore"):
        finite = bool(np.isfinite(np.sum(values, dtype=np.float64))) or bool(np.isfinite(values).all())
    return [
        {
            "n_rows": data.n_rows,
            "n_features": data.n_features,
            "queries": data.query_ids.tolist(),
            "names": data.feature_names,
            "categories": data.category_names,
            "judged": data.y is not None,
            "dense": not hasattr(data.X, "tocsr"),
            "finite": finite,
            "query_weight": data.query_weight,
            "weighs_rows": data.sample_weight is not None,
            "largest_grade": 0.0 if data.y is None else float(np.abs(data.y).max(initial=0.0)),
            "largest_weight": None if data.row_weight is None else float(data.row_weight.max(initial=0.0)),
        }
    ]


def _predicted(partition: Partition, ranker: Any, method: str) -> list[np.ndarray]:
    return [np.asarray(getattr(ranker, method)(partition.data))]


def _scored(partition: Partition, ranker: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]]:
    data = partition.data
    scores = np.asarray(ranker.predict(data))
    return [(data.query_ids, data.offsets, data.doc_ids, data.grouped(scores))]


def _ranks(partition: Partition, ranker: Any) -> list[np.ndarray]:
    return [np.asarray(ranker.rank(partition.data))]


def _light(partition: Partition) -> list[RankingData]:
    return [without_features(partition.data)]


def _orders(partition: Partition) -> list[np.ndarray | None]:
    return [partition.data.order]


def _whole(partition: Partition) -> list[RankingData]:
    return [partition.data]
