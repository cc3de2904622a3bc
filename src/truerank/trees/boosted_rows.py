"""Training and validation rows of boosted trees, in memory."""

from __future__ import annotations

import numpy as np

from truerank.core.random_streams import stream
from truerank.core.threads import Workers, row_blocks
from truerank.data.ranking_data import Judgements, RankingData
from truerank.losses.protocols import BoostingObjective, Derivatives, checked
from truerank.matrices.exact_sums import exact_total
from truerank.matrices.row_copies import RowCopies
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.boosting import Plan, change_parts
from truerank.trees.bundled_grower import grower_of
from truerank.trees.grower import TreeStructure
from truerank.trees.histogram import GradientSizes, pack_gradients
from truerank.trees.leaves.base import LeafFitter
from truerank.trees.rows import ContentOrder, Rows, Sample


class RowsHere:
    """`BoostedRows` of data in memory; `scores` (n,) change in place.

    The scores include the trees of a continued model, whose `gains` are given. `start` is a number or an array (n,),
    the scores before the first tree.
    """

    def __init__(
        self,
        data: RankingData,
        rows: Rows,
        scores: np.ndarray,
        start: float | np.ndarray,
        gains: list[np.ndarray],
        objective: BoostingObjective,
        leaves: LeafFitter,
        plan: Plan,
        workers: Workers,
        copies: RowCopies | None,
    ) -> None:
        self._data, self._rows, self._scores, self._start, self._copies = data, rows, scores, start, copies
        self._weight = data.row_weight
        self._objective, self._leaves, self._plan, self._workers = objective, leaves, plan, workers
        self.borders = rows.matrix.borders
        self._samples = plan.replace or plan.subsample < 1.0
        by_place = getattr(objective, "by_place", False)
        self._order = ContentOrder(data) if self._samples or by_place else None
        self._by_place = self._order if by_place else None
        if self._by_place is not None and hasattr(objective, "reorder"):
            objective.reorder(self._by_place.rows)
        self._grower = grower_of(rows.matrix, plan.rules, workers)
        self._taken: Derivatives | None = None
        if gains:
            objective.begin(stream(plan.seed, "objective", 0))
            self._taken = self._derivatives(np.broadcast_to(start, scores.shape).astype(np.float64))

    def derive(self, t: int) -> None:
        self._taken = None  # memory
        self._objective.begin(stream(self._plan.seed, "objective", t))
        self._taken = self._derivatives(self._scores)

    def sizes(self) -> GradientSizes:
        assert self._taken is not None
        return GradientSizes.of(*self._taken, self._workers)

    def change(self) -> float:
        assert self._taken is not None
        return exact_total(change_parts(self._start, *self._taken, self._scores, self._workers))

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        assert self._taken is not None
        drawn = None
        if self._samples and self._order is not None:
            plan = self._plan
            drawn = self._order.draw(stream(plan.seed, "rows", t), plan.unit, plan.replace, plan.subsample)
        packed = pack_gradients(*self._taken, drawn, self._workers)
        sample = None
        if self._leaves.needs_sample and not self._objective.quadratic:
            total = float(len(self._scores)) if self._weight is None else float(np.sum(self._weight))
            sample = Sample(*self._taken, drawn, float(np.sum(self._taken[1])) / total)
        self._taken = None  # memory
        counted = None if self._copies is None else self._copies.rows_of(int(self._copies.counts[packed.rows].sum()))
        tree = self._grower.grow(packed, allowed, counted)
        del packed
        if self._leaves.needs_sample and self._objective.quadratic:
            sample = Sample(*self._derivatives(self._scores), drawn, 1.0)
        return tree, self._leaves.fit(tree, self._rows, sample)

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        self._leaves.add(tree, self._rows, values, self._scores)

    def _derivatives(self, scores: np.ndarray) -> Derivatives:
        """Return gradients and hessians (n,), weights included."""
        data = self._data
        assert data.y is not None
        if self._by_place is not None:
            gradients, hessians = self._by_place.derivatives(self._objective, scores)
        elif getattr(self._objective, "by_row", False):
            gradients, hessians = self._derivatives_by_row(data.y, scores)
        else:
            gradients, hessians = checked(self._objective, data.y, scores, data.offsets)
        if self._weight is None:
            return gradients, hessians
        return gradients * self._weight, hessians * self._weight

    def _derivatives_by_row(self, y: np.ndarray, scores: np.ndarray) -> Derivatives:
        """Compute the derivatives of an objective whose rows are independent, by all threads."""
        gradients = np.empty_like(scores)

        def derive(start: int, stop: int) -> float:
            rows = slice(start, stop)
            gradients[rows], hessians = checked(self._objective, y[rows], scores[rows], self._data.offsets, start)
            return float(hessians[0])

        hessian = self._workers.run(derive, row_blocks(len(scores)))[0]
        return gradients, np.broadcast_to(hessian, scores.shape)


class WatchedHere:
    """`Watched` of validation queries in memory; `scores` (n,) are changed in place."""

    def __init__(
        self, rows: Rows, scores: np.ndarray, judgements: Judgements, leaves: LeafFitter, stopping: EarlyStopping
    ) -> None:
        self._rows, self._scores, self._judgements, self._leaves = rows, scores, judgements, leaves
        self.stopping = stopping

    def value_with(self, tree: TreeStructure, values: np.ndarray) -> float:
        self._leaves.add(tree, self._rows, values, self._scores)
        return float(self.stopping.measure.mean(self._judgements, self._scores))
