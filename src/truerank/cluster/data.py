"""ClusterRankingData: judged rankings in partitions of whole queries on the workers of a Dask cluster."""

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
    """Read judged rankings from LETOR files on the workers, one partition per file.

    Parameters
    ----------
    paths : str or list of str
        Files or patterns, such as `"parts/*.txt"`. Every worker must have access to them under these names.
    client : distributed.Client, optional
        By default the current client of this process (`distributed.Client(...)`). Without a client, this process holds
        the partitions.
    hold : bool, default True
        Whether the workers keep the rows in memory. If False, each pass reads the files, for data beyond memory.
    n_jobs : int, optional
        Threads without a client; workers use their own threads.
    columns : Columns, optional
        Columns that are features (`truerank.data.columns`); by default all.
    **options
        Options of `truerank.read_letor` (`missing`, `n_features`, `dtype`, …).

    Returns
    -------
    ClusterRankingData

    Raises
    ------
    InvalidInputError, DataFileError
        If no file matches, or a file cannot be read; the message names file and line.

    Notes
    -----
    Give `n_features` if a file lacks the highest features. Each file is read once for its queries.
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
    """Read judged rankings from Parquet files or other tables on the workers.

    A file is a partition. A large Parquet file is split between its row groups, and a file without rows is skipped.
    Columns are matched by name, in the order of the first file.

    Parameters
    ----------
    paths, client, hold, n_jobs
        As in `read_letor`.
    qid, y : str, optional
        Columns of the query and of the grade; by default "qid" and "y".
    rows_per_partition : int, default 1,000,000
        Approximate number of rows of a partition; row groups of a Parquet file are combined up to it. While a worker
        reads a partition it holds all values, 8 bytes each (4 with `dtype=numpy.float32`). Queries in several
        partitions are joined.
    **options
        Options of `truerank.read_table` (`document`, `features`, `missing`, `dtype`).

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
    """Return judged rankings from a Dask data frame with the same partitions; split queries are joined.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        One row per document. The tasks of a partition run on the worker that holds it, and on another worker if that
        one is lost. The frame must not be persisted, because this removes its tasks.
    qid, y : str
        Columns of the query and of the grade. All others are features, unless `features` is given.
    client, hold
        As in `read_letor`.
    **options
        Options of `truerank.read_table`.

    Raises
    ------
    InvalidInputError
        If the frame is not a Dask data frame, or was persisted.

    Notes
    -----
    Each partition runs all tasks that it depends on. After a shuffle, write the frame to Parquet first and use
    `read_parquet`.
    """
    client = current_client(client)
    if not hasattr(ddf, "to_delayed"):
        raise InvalidInputError(f"from_dask_dataframe expects a Dask data frame, got {type(ddf).__name__}")
    frames = ddf.to_delayed()
    refuse_persisted(ddf)
    options = {"query": qid} | ({} if y is None else {"grade": y}) | options
    return ClusterRankingData([FrameSource(frame, options) for frame in frames], client, hold)


def refuse_persisted(collection: Any) -> None:
    """Raise for a persisted Dask collection: its partitions could not be computed again."""
    if any(hasattr(task, "key") and hasattr(task, "client") for task in dict(collection.dask).values()):
        raise InvalidInputError(
            f"the {type(collection).__name__} was persisted, so its partitions cannot be made again where a worker is "
            "lost; pass it before `persist()`, or write it to Parquet and use read_parquet"
        )


def from_parts(parts: Sequence[RankingData], *, client: object = None, n_jobs: int | None = None) -> Any:
    """Send partitions that are in memory here to the workers: for tests and for generated data."""
    return ClusterRankingData([GivenSource(part) for part in parts], client, True, n_jobs)


class ClusterRankingData(PartitionedData):
    """Judged rankings in partitions of whole queries on workers; `read_parquet` and other functions return it.

    `fit`, `predict` and `rank` of rankers and `evaluate` accept it in place of a `RankingData`. The client holds one
    number per query and partition. `query_ids` (m,) are in the order of the partitions. `crew.bytes_sent` and
    `crew.bytes_received` count the traffic of the workers.

    Set `checkpoint` to a folder before `fit`. If the client is killed, the same fit to the same data resumes there and
    ends with the same bits. The file grows by some kilobytes per round and is deleted when the fit is done.
    """
