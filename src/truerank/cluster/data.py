"""ClusterRankingData: judged rankings in partitions of whole queries that live on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.cluster.crew import Crew
from truerank.cluster.partition import (
    FrameSource,
    GivenSource,
    JoinedSource,
    LetorSource,
    Partition,
    QueriesSource,
    Source,
    TableSource,
    expand,
    row_groups,
)
from truerank.cluster.sums import beside
from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, imports_of_extra
from truerank.core.printing import note
from truerank.data.checkup import Look, look
from truerank.data.columns import Columns
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.tables import table_kind

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_letor(
    paths: Paths,
    *,
    client: Any = None,
    hold: bool = True,
    n_jobs: int | None = None,
    columns: Columns | None = None,
    **options: Any,
) -> Any:
    """Judged rankings from LETOR files, one partition a file, which the workers read.

    Parameters
    ----------
    paths : str or list of str
        Files or patterns, `"parts/*.txt"`; every worker must see them under these names.
    client : distributed.Client, optional
        None: the client of this process (`distributed.Client(...)`), or this process itself where there is none.
    hold : bool, default True
        Whether the workers keep the rows in memory. False reads a file anew in each pass: for more data than memory.
    n_jobs : int, optional
        Threads, without a client; workers use their own threads.
    columns : Columns, optional
        Which columns are features (`truerank.data.columns`); all of them by default.
    **options
        As `truerank.read_letor` takes them (`missing`, `n_features`, `dtype`, …).

    Returns
    -------
    ClusterRankingData

    Raises
    ------
    InvalidInputError, DataFileError
        When no file fits, or a file cannot be read, with its name and line.

    Notes
    -----
    A file that lacks the highest features needs `n_features`. Each file is read once for its queries.
    """
    return ClusterRankingData(
        [LetorSource(path, options, columns or Columns()) for path in expand(paths)], client, hold, n_jobs
    )


def read_parquet(
    paths: Paths,
    *,
    qid: str | None = None,
    y: str | None = None,
    client: Any = None,
    hold: bool = True,
    n_jobs: int | None = None,
    rows_per_partition: int = 1_000_000,
    **options: Any,
) -> Any:
    """Judged rankings from Parquet files (or other tables), which the workers read.

    A file is a partition; a Parquet file of more rows and of several row groups is cut between these.

    Parameters
    ----------
    paths, client, hold, n_jobs
        As in `read_letor`.
    qid, y : str, optional
        Columns of the query and of the grade; None means "qid" and "y".
    rows_per_partition : int, default 1,000,000
        Row groups of a Parquet file are put together up to about so many rows. A worker that reads a partition holds
        its values, 8 bytes each (4 with `dtype=numpy.float32`), whatever `hold` is; queries over a cut are joined.
    **options
        As `truerank.read_table` takes them (`document`, `features`, `missing`, `dtype`).

    Examples
    --------
    >>> import tempfile, truerank
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train = truerank.load_sample()
    ...     truerank.write_table(train.take_queries(range(9)), folder + "/1.parquet")
    ...     truerank.write_table(train.take_queries(range(9, 20)), folder + "/2.parquet")
    ...     data = read_parquet(folder + "/*.parquet")
    ...     data.n_partitions, data.n_queries
    (2, 20)
    """
    options |= {name: value for name, value in (("query", qid), ("grade", y)) if value is not None}
    rows = check_positive_int(rows_per_partition, "rows_per_partition")
    sources: list[Source] = []
    for path in expand(paths):
        sources += row_groups(path, rows, options) if table_kind(path) == "parquet" else [TableSource(path, options)]
    return ClusterRankingData(sources, client, hold, n_jobs)


def from_dask_dataframe(
    ddf: Any, qid: str = "qid", y: str | None = "y", *, client: Any = None, hold: bool = True, **options: Any
) -> Any:
    """Judged rankings from a Dask data frame, one partition each; queries split over partitions are joined.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        One row a document. Each partition's tasks run on the worker that holds it, and again on another one where that
        is lost, never on the client. Not `persist`ed: then the tasks are gone and only results are left.
    qid, y : str
        Columns of the query and of the grade; all others are features, unless `features` names these.
    client, hold
        As in `read_letor`.
    **options
        As `truerank.read_table` takes them.

    Raises
    ------
    InvalidInputError
        When the frame is not a Dask data frame, or was persisted.

    Notes
    -----
    Tasks that several partitions share (a shuffle, say) are run by each of them: write such a frame to Parquet first
    and use `read_parquet`.
    """
    client = _current(client)
    if not hasattr(ddf, "to_delayed"):
        raise InvalidInputError(f"from_dask_dataframe takes a Dask data frame, got {type(ddf).__name__}")
    frames = ddf.to_delayed()
    refuse_persisted(ddf)
    options = {"query": qid} | ({} if y is None else {"grade": y}) | options
    return ClusterRankingData([FrameSource(frame, options) for frame in frames], client, hold)


def refuse_persisted(collection: Any) -> None:
    """Refuse a Dask collection of results, which nothing could make again."""
    if any(hasattr(task, "key") and hasattr(task, "client") for task in dict(collection.dask).values()):
        raise InvalidInputError(
            f"the {type(collection).__name__} was persisted, so its partitions cannot be made again where a worker is "
            "lost; pass it before `persist()`, or write it to Parquet and use read_parquet"
        )


def from_parts(parts: Sequence[RankingData], *, client: Any = None, n_jobs: int | None = None) -> Any:
    """Partitions that are in memory here and are sent to the workers: for tests, and for data made by code."""
    return ClusterRankingData([GivenSource(part) for part in parts], client, True, n_jobs)


class ClusterRankingData:
    """Rows grouped by query in partitions of whole queries, which live on workers; made by `read_parquet` and others.

    Every ranker's `fit`, `predict` and `rank`, and `evaluate`, take it in place of a `RankingData`. What the client
    holds of it is one number a query and partition.

    Attributes
    ----------
    n_partitions, n_rows, n_queries, n_features : int
    feature_names : list of str or None
    category_names : dict of column name to list of str, or None
    query_ids : array (m,)
        Names of the queries, partition by partition.
    crew : Crew
        The workers; `crew.bytes_sent` and `crew.bytes_received` count what went over the wire.
    checkpoint : path or None
        A folder, to be set before `fit`: a fit whose client is killed goes on there when it is called again with the
        same settings and data, and ends with the same bits. The file in it grows by the answers of the rounds (of trees
        some kilobytes each) and is deleted when the fit is done.
    """

    is_cluster_data = True

    def __init__(self, sources: list[Source], client: Any = None, hold: bool = True, n_jobs: int | None = None) -> None:
        if not sources:
            raise InvalidInputError("there are no partitions; expected at least one")
        self.client, self.n_jobs, self.hold = _current(client), n_jobs, hold
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

    @property
    def X(self) -> Any:
        """A stand-in for the matrix of features, which knows its shape and linear scores (gathered here)."""
        from truerank.cluster.fits.linear import PartitionedMatrix

        return PartitionedMatrix(self)

    # What estimators and measures call. They know this class by these methods alone.

    def fit_ranker(self, ranker: Any, eval_set: Any = None, callbacks: Any = None, **given: Any) -> Any:
        """What `ranker.fit(self)` does: see `truerank.cluster.fits`."""
        from truerank.cluster.fits import fit

        named = [name for name, value in given.items() if value is not None]
        if named:
            raise InvalidInputError(
                f"data on a cluster learn from their own queries, grades and weights alone; do not pass "
                f"{', '.join(named)}, or fit to `data.gather()` if the rows fit here"
            )
        return fit(ranker, self, eval_set, callbacks or ())

    def linear_problem(self, scale: str, intercept: float = 0.0) -> Any:
        """What linear learners ask of the rows, as sums over partitions."""
        from truerank.cluster.fits.linear import PartitionedProblem

        return PartitionedProblem(self, scale, intercept)

    def combined(self, measure: Any) -> Any:
        """What AdaRank asks of the rows."""
        from truerank.cluster.fits.adarank import PartitionedCombined

        return PartitionedCombined(self, measure)

    def pair_weights(self) -> Any:
        """What RankBoost asks of the rows."""
        from truerank.cluster.fits.rank_boost import PartitionedPairWeights

        return PartitionedPairWeights(self)

    def stump_scores(self, curve: Any) -> Any:
        """What RankBoost asks of validation queries."""
        from truerank.cluster.fits.rank_boost import PartitionedStumpScores

        return PartitionedStumpScores(self, curve)

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

    def take_queries(self, chosen: Any) -> ClusterRankingData:
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
        return ClusterRankingData(sources, self.client, self.hold, self.n_jobs)

    def gather(self) -> RankingData:
        """All rows in one `RankingData` on the client: for data that fit there."""
        return RankingData.concatenate(self.crew.round(_whole, merge=beside))


def _current(client: Any) -> Any:
    """The client given, or that of this process, or None."""
    if client is not None:
        return client
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


# For the C library of our workers: histograms of some megabytes come and go in every round, in pages that it would else
# give back and get anew (with Dask's sampling of stacks a quarter of a fit's CPU seconds).
_KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}
# A process that looks at itself 50 times a second takes 2 % of a core for it, and .4 % so.
_LOOK_SELDOM = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.profile.enabled": False,
}


def connect(where: str) -> Any:
    """A client: `"local:N"` starts N worker processes on this machine, `"tcp://host:port"` joins a scheduler.

    A `MissingExtraError` without the extra `cluster`; an `InvalidInputError` when `where` is neither.
    """
    with imports_of_extra("distributed", "cluster", "training on a cluster"):
        from dask import config
        from distributed import Client, LocalCluster
    kind, _, rest = where.partition(":")
    if kind == "local" and rest.isdigit() and int(rest) >= 1:
        environment = "distributed.nanny.pre-spawn-environ"
        kept = {environment: {**config.get(environment), **_KEEP_MEMORY}}
        with config.set({**kept, **_LOOK_SELDOM}):
            cluster = LocalCluster(
                n_workers=int(rest),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
        # A worker that is killed while it starts is not started again by its nanny: this asks for another one.
        cluster.adapt(minimum=int(rest), maximum=int(rest), interval="2s")
        return Client(cluster, direct_to_workers=True)
    if kind in ("tcp", "tls", "ucx", "ws") and rest.startswith("//"):
        return Client(where, direct_to_workers=True, timeout=30)
    raise InvalidInputError(f"a cluster is local:N (N worker processes) or tcp://scheduler:port, got {where!r}")


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
