"""ClusterRankingData: judged rankings in partitions of whole queries that live on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from truerank.cluster.clients import current_client
from truerank.cluster.partition import (
    FrameSource,
    GivenSource,
    LetorSource,
    Source,
    TableSource,
    expand,
    row_groups,
)
from truerank.cluster.partitioned_data import PartitionedData
from truerank.core.checks import check_positive_int
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.data.columns import Columns
from truerank.data.ranking_data import RankingData
from truerank.io.tables import table_kind

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def read_letor(
    paths: Paths,
    *,
    client: object = None,
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
    client: object = None,
    hold: bool = True,
    n_jobs: int | None = None,
    rows_per_partition: int = 1_000_000,
    **options: Any,
) -> Any:
    """Judged rankings from Parquet files (or other tables), which the workers read.

    A file is a partition; a Parquet file of more rows and of several row groups is cut between these, and one without
    rows is left out. Columns are matched by name: those of the first file give their order.

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
    if not sources:
        raise DataFileError("neither this file nor another one holds rows", expand(paths)[0])
    return ClusterRankingData(sources, client, hold, n_jobs)


def from_dask_dataframe(
    ddf: Any, qid: str = "qid", y: str | None = "y", *, client: object = None, hold: bool = True, **options: Any
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
    client = current_client(client)
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


def from_parts(parts: Sequence[RankingData], *, client: object = None, n_jobs: int | None = None) -> Any:
    """Partitions that are in memory here and are sent to the workers: for tests, and for data made by code."""
    return ClusterRankingData([GivenSource(part) for part in parts], client, True, n_jobs)


class ClusterRankingData(PartitionedData):
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
