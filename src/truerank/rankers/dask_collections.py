"""Dask's arrays and data frames at the border of a ranker: what is done block by block, where the blocks are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from truerank.core.checks import is_dask
from truerank.core.errors import warn
from truerank.core.names import resolve


def in_partitions(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Dask's collections as data on a cluster, which have y and qid of their own; all others as they are."""
    if not is_dask(X):
        return X, y, qid
    return resolve("truerank.cluster.dask_collections:from_dask_collections")(X, y, qid=qid), None, None


def predicted_by_block(ranker: Any, X: Any) -> Any:
    """Scores of a Dask array's rows as a Dask array, of a data frame's as a series; not yet computed."""
    if hasattr(X, "map_partitions"):
        from dask.delayed import delayed

        # Delayed, so that Dask does not look for a name of the ranker in its contents.
        return X.map_partitions(_scores_of_frame, delayed(ranker, pure=False), meta=("score", "float64"))
    return X.rechunk({1: -1}).map_blocks(ranker.predict, dtype=np.float64, drop_axis=1, meta=np.empty(0))


def _scores_of_frame(frame: Any, ranker: Any) -> Any:
    import pandas

    return pandas.Series(ranker.predict(frame), index=frame.index, name="score")


def queries_of_blocks(sizes: Any, numbered: Callable[[Any], np.ndarray]) -> Any:
    """Query of each row, from sizes of consecutive queries in a Dask array or series (m,) that is cut as the rows are.

    `numbered` makes the same, numbers from 0, of one block's sizes. The result is a Dask array of int64 (n,) in as many
    blocks, of unknown lengths; a query's number has its block's in the upper 32 bits.
    """
    sizes = sizes if hasattr(sizes, "map_blocks") else sizes.to_dask_array()

    def queries_of_block(block: np.ndarray, block_id: tuple[int, ...]) -> np.ndarray:
        return numbered(block) + (block_id[0] << 32)

    lengths = ((np.nan,) * len(sizes.chunks[0]),)
    return sizes.map_blocks(queries_of_block, dtype=np.int64, chunks=lengths, meta=np.empty(0, dtype=np.int64))


def watched_on_cluster(sets: Sequence[tuple[str, Any]], more: Sequence[Any]) -> Any:
    """The one of several validation sets (name, data or (X, y, qid)) that fits over partitions watch, the last.

    Dask's collections become data; `more` are measures beside the one that chooses, which are not recorded there.
    """
    if not sets:
        return None
    name, chosen = sets[-1]
    if more or len(sets) > 1:
        warn(
            f"on a cluster the last set of eval_set, {name}, is watched by the last measure alone; evaluate the "
            "others after the fit"
        )
    if isinstance(chosen, tuple) and is_dask(chosen[0]):
        return in_partitions(*(*chosen, None)[:3])[0]
    return chosen
