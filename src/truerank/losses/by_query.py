"""Base of objectives over queries, whose threads work on blocks of whole queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from truerank.core.threads import query_blocks, run_blocks
from truerank.losses.protocols import PlainObjective


class Block(NamedTuple):
    """The queries first … last - 1, and the arrays for their derivatives: the first arguments of each kernel."""

    y: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    first: int
    last: int
    gradients: np.ndarray
    hessians: np.ndarray

    def mixed(self) -> Iterator[tuple[int, slice]]:
        """Yield the number and the rows of each query whose grades differ."""
        for q in range(self.first, self.last):
            rows = slice(int(self.offsets[q]), int(self.offsets[q + 1]))
            if rows.start < rows.stop and np.ptp(self.y[rows]) > 0:
                yield q, rows


class ByQuery(PlainObjective):
    """Base of objectives over queries; a subclass writes `add`.

    `by_place` says that places of rows break ties or order random numbers. Boosting then passes the rows in an order
    by content, so that the model does not depend on the order of the file, and calls `reorder(rows)` if it exists.
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
        """Receive what `add` returned for each block, in order."""
