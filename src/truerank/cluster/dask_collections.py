"""Convert Dask arrays, data frames and series to judged rankings in partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.cluster.data import ClusterRankingData, refuse_persisted
from truerank.cluster.partition import Source, Whole
from truerank.core.checks import is_dask
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike
from truerank.data.ranking_data import RankingData


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


@dataclass(frozen=True)
class BlockSource(Whole):
    """A block of rows as the tasks that produce it. The worker that holds the partition runs them."""

    tasks: Any

    def read(self) -> RankingData:
        """Return the rows. The tasks run in this thread, because a worker's thread cannot wait for its scheduler."""
        rows: RankingData = self.tasks.compute(scheduler="synchronous")
        return rows


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
        On anything that is not of Dask, on blocks of other numbers or lengths, on collections that were persisted.

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
            raise InvalidInputError(f"{name} has {len(own)} blocks and X has {len(blocks['X'])}; make these equal")
    rows = delayed(RankingData, pure=False)
    sources: list[Source] = []
    for one in zip(*blocks.values()):
        [tasks] = optimize(rows(**dict(zip(blocks, one))))  # without those of the other blocks
        sources.append(BlockSource(tasks))
    return ClusterRankingData(sources, client, hold)


def _blocks_of(values: ArrayLike, name: str) -> list[Any]:
    """Return the blocks of rows as Dask's delayed objects."""
    if not is_dask(values) or not hasattr(values, "to_delayed"):
        raise InvalidInputError(
            f"{name} must be a Dask array, data frame or series like X, got {type(values).__name__}"
            + (": pass the query of each row, fit(X, y, qid=qid)" if name == "qid" and values is None else "")
        )
    refuse_persisted(values)
    if getattr(values, "ndim", 1) == 2 and hasattr(values, "rechunk"):
        values = values.rechunk({1: -1})
    delayed = values.to_delayed()
    return list(delayed.ravel() if hasattr(delayed, "ravel") else delayed)
