"""Base of objectives over queries: blocks of whole queries, one task of a thread each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from truerank.core.threads import query_blocks, run_blocks
from truerank.losses.protocols import PlainObjective


class Block(NamedTuple):
    """The queries first … last - 1 of all rows, and where their derivatives are written.

    The kernels of the objectives take these first, as `kernel(*block, ...)`.
    """

    y: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    first: int
    last: int
    gradients: np.ndarray
    hessians: np.ndarray

    def mixed(self) -> Iterator[tuple[int, slice]]:
        """Number and rows of each query whose grades are not all equal."""
        for q in range(self.first, self.last):
            rows = slice(int(self.offsets[q]), int(self.offsets[q + 1]))
            if rows.start < rows.stop and np.ptp(self.y[rows]) > 0:
                yield q, rows


class ByQuery(PlainObjective):
    """Base of objectives over queries: blocks of whole queries, one task of a thread each.

    `by_place` says that ties are broken, or numbers drawn, by the places of the rows: boosting then hands the rows over
    in an order by content, so that the model does not depend on the file's, and tells an objective that keeps values by
    row that order by `reorder(rows)`.
    """

    by_place = False
    n_jobs: int | None = None

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, hessians = np.zeros(len(y)), np.zeros(len(y))

        def work(first: int, last: int) -> Any:
            return self.add(Block(y, scores, offsets, first, last, gradients, hessians))

        self.collect(run_blocks(work, query_blocks(offsets, 16_384), self.n_jobs))
        return gradients, hessians

    def add(self, block: Block) -> Any:
        """Write the gradients and hessians of a block of queries."""
        raise NotImplementedError

    def collect(self, answers: list[Any]) -> None:
        """Take what `add` returned for each block, in order; most return nothing."""
