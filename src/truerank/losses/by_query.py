"""Base of objectives over queries: blocks of whole queries, one task of a thread each."""

from __future__ import annotations

import numpy as np

from truerank.core.threads import query_blocks, run_blocks


class ByQuery:
    """Base of objectives over queries: blocks of whole queries, one task of a thread each.

    `by_place` says that ties are broken, or numbers drawn, by the places of the rows: boosting then hands the rows over
    in an order by content, so that the model does not depend on the file's, and tells an objective that keeps values by
    row that order by `reorder(rows)`.
    """

    quadratic = False
    by_place = False
    n_jobs: int | None = None

    def begin(self, rng: np.random.Generator) -> None:
        """Draw from `rng` for the next tree; most draw nothing."""

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        """0: only differences within a query count."""
        return 0.0

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, hessians = np.zeros(len(y)), np.zeros(len(y))

        def work(first: int, last: int) -> None:
            self.add(y, scores, offsets, first, last, gradients, hessians)

        run_blocks(work, query_blocks(offsets, 16_384), self.n_jobs)
        return gradients, hessians

    def add(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        first: int,
        last: int,
        gradients: np.ndarray,
        hessians: np.ndarray,
    ) -> None:
        """Write the gradients and hessians of the queries first … last - 1."""
        raise NotImplementedError
