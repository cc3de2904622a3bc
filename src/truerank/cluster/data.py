"""Read judged rankings into partitions on the workers of a Dask cluster, or convert Dask collections."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from truerank.cluster.partition import (
    Source,
    expand,
    given_rows,
    read_letor_file,
    read_table_file,
    row_groups,
    run_tasks,
)
from truerank.cluster.partitioned_data import ClusterRankingData
from truerank.core.checks import check_positive_int, is_dask
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.columns import Columns
from truerank.data.ranking_data import RankingData
from truerank.io.tables import read_table, table_kind

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
        By default the current client of this process (`distributed.Client(...)`). Without a client, everything runs in
        the current process.
    hold : bool, default True
        Whether the workers keep the rows in memory. If False, each pass reads the files again, for data larger than
        memory.
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
    sources = [partial(read_letor_file, path, options, columns or Columns()) for path in expand(paths)]
    return ClusterRankingData(sources, client, hold, n_jobs)


def from_memory(rows: RankingData) -> ClusterRankingData:
    """Return rows in memory as one partition of this process, whose `checkpoint` can be set; without Dask."""
    return ClusterRankingData([partial(given_rows, rows)])


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
        if table_kind(path) == "parquet":
            sources += row_groups(path, rows, options)
        else:
            sources.append(partial(read_table_file, path, options))
    if not sources:
        raise DataFileError("neither this file nor any other file has rows", expand(paths)[0], code="no-rows")
    return ClusterRankingData(sources, client, hold, n_jobs)


def from_dask_dataframe(
    ddf: Any, qid: str = "qid", y: str | None = "y", *, client: object = None, hold: bool = True, **options: Any
) -> Any:
    """Return judged rankings from a Dask data frame with the same partitions; split queries are joined.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        One row per document. The tasks of a partition run on the worker that holds it, and on another worker if this
        worker is lost. The frame must not be persisted, because this removes its tasks.
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
    if not hasattr(ddf, "to_delayed"):
        raise InvalidInputError(f"ddf must be a Dask data frame, got {type(ddf).__name__}", argument="ddf")
    from dask.base import optimize
    from dask.delayed import delayed

    _refuse_persisted(ddf)
    options = {"query": qid} | ({} if y is None else {"grade": y}) | options
    read = delayed(read_table, pure=False)
    # Each without the tasks of the other partitions.
    tasks = [optimize(read(frame, **options))[0] for frame in ddf.to_delayed()]
    return ClusterRankingData([partial(run_tasks, one) for one in tasks], client, hold)


def _refuse_persisted(collection: Any) -> None:
    """Raise an error for a persisted Dask collection, whose partitions could not be computed again."""
    if any(hasattr(task, "key") and hasattr(task, "client") for task in dict(collection.dask).values()):
        raise InvalidInputError(
            f"the {type(collection).__name__} was persisted, so its partitions cannot be computed again if a worker "
            "is lost. Pass it before `persist()`, or write it to Parquet and use read_parquet",
            code="persisted",
        )


def from_parts(parts: Sequence[RankingData], *, client: object = None, n_jobs: int | None = None) -> Any:
    """Send partitions from the memory of this process to the workers, for tests and generated data."""
    return ClusterRankingData([partial(given_rows, part) for part in parts], client, True, n_jobs)


def from_dask_collections(X: Any, y: Any = None, *, qid: Any, client: Any = None, hold: bool = True) -> Any:
    """Return judged rankings from a Dask array or data frame, its grades and queries; one partition per block.

    A ranker's `fit` calls this for the collections that it receives.

    Parameters
    ----------
    X : dask array or data frame (n, p)
        One row per document. X must not be persisted, because a lost block could then not be computed again.
    y, qid : dask array or series (n,)
        Grade and query of each row, in as many blocks as X and of the same lengths. A query may be split over blocks.
    client, hold
        As in `read_letor`.

    Returns
    -------
    ClusterRankingData

    Raises
    ------
    InvalidInputError
        If an argument is not a Dask collection, has other blocks than X, or was persisted.

    Examples
    --------
    >>> import dask.array as da, truerank
    >>> rows = truerank.load_sample()
    >>> X, y, qid = (da.from_array(values, chunks=-1) for values in (rows.X, rows.y, rows.query_index))
    >>> from_dask_collections(X, y, qid=qid).n_queries == rows.n_queries
    True
    """
    from dask.base import optimize
    from dask.delayed import delayed

    blocks = {
        name: _blocks_of(values, name)
        for name, values in (("X", X), ("y", y), ("qid", qid))
        if name != "y" or y is not None
    }
    for name, own in blocks.items():
        if len(own) != len(blocks["X"]):
            raise InvalidInputError(
                f"{name} has {len(own)} blocks and X has {len(blocks['X'])}. Pass the same blocks", argument=name
            )
    rows = delayed(RankingData, pure=False)
    sources = []
    for one in zip(*blocks.values()):
        [tasks] = optimize(rows(**dict(zip(blocks, one))))  # without those of the other blocks
        sources.append(partial(run_tasks, tasks))
    return ClusterRankingData(sources, client, hold)


def _blocks_of(values: ArrayLike, name: str) -> list[Any]:
    """Return the blocks of rows as Dask's delayed objects."""
    if not is_dask(values) or not hasattr(values, "to_delayed"):
        raise InvalidInputError(
            f"{name} must be a Dask array, data frame or series like X, got {type(values).__name__}"
            + (". Pass the query of each row: fit(X, y, qid=qid)" if name == "qid" and values is None else ""),
            argument=name,
        )
    _refuse_persisted(values)
    if getattr(values, "ndim", 1) == 2 and hasattr(values, "rechunk"):
        values = values.rechunk({1: -1})
    delayed = values.to_delayed()
    return list(delayed.ravel() if hasattr(delayed, "ravel") else delayed)


@dataclass(frozen=True)
class DaskBlocks:
    """A Dask array, data frame or series as an argument of a ranker; functions run block by block on the workers."""

    values: Any

    def source(self, y: object, qid: object) -> ClusterRankingData:
        """Return the rows with their grades and queries; see `from_dask_collections`."""
        return from_dask_collections(self.values, y, qid=qid)

    def each(self, function: Callable[..., Any], *state: Any) -> Any:
        """Return `function(rows, *state)` as a lazy Dask array, or as a series for a data frame."""
        if hasattr(self.values, "map_partitions"):
            from dask.delayed import delayed

            # Delayed, so that Dask does not look for a name of the ranker in its contents.
            given = [delayed(one, pure=False) for one in state]
            return self.values.map_partitions(_of_frame, function, *given, meta=("score", "float64"))
        rows = self.values.rechunk({1: -1})
        return rows.map_blocks(lambda block: function(block, *state), dtype=np.float64, drop_axis=1, meta=np.empty(0))

    def queries(self, numbered: Callable[[Any], np.ndarray]) -> Any:
        """Return the query of each row, from sizes (m,) of consecutive queries in the same blocks as the rows.

        The result is a Dask array of int64 (n,) with blocks of unknown lengths. The upper 32 bits of a query's number
        are the number of its block.
        """
        sizes = self.values if hasattr(self.values, "map_blocks") else self.values.to_dask_array()

        def queries_of_block(block: np.ndarray, block_id: tuple[int, ...]) -> np.ndarray:
            return numbered(block) + (block_id[0] << 32)

        lengths = ((np.nan,) * len(sizes.chunks[0]),)
        return sizes.map_blocks(queries_of_block, dtype=np.int64, chunks=lengths, meta=np.empty(0, dtype=np.int64))


def _of_frame(frame: Any, function: Callable[..., Any], *state: Any) -> Any:
    import pandas

    return pandas.Series(function(frame, *state), index=frame.index, name="score")
