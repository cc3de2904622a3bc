"""Trees that grow over partitions, with the histograms of a level shared out over workers by features.

A worker adds up the histograms of its own rows. For each block of features one of the workers, its owner, collects the
sums over all, takes the larger children as differences, and finds the best question about its features; the client
chooses among as many questions as there are owners, and no process ever holds all histograms. What an owner holds is
lost with it: a tree that loses a worker begins anew, with the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.cluster.crew import Crew
from truerank.cluster.partition import Partition
from truerank.core.threads import Workers
from truerank.matrices.binning import BLOCK
from truerank.matrices.exact_sums import exact_parts
from truerank.trees.grower import GrowthRules, HistogramSearch, Level, LevelSearch, Question, TreeStructure
from truerank.trees.histogram import PackedGradients, PackingScales, drawn_rows, pack_rows
from truerank.trees.sampled_rows import SampledRows, loss_unit_of, squared_losses


@dataclass(frozen=True)
class LevelRound:
    """What partitions and owners must know of a level.

    Attributes
    ----------
    level : Level
    scales : PackingScales or None
        Where the rows are yet to be packed.
    asked : tuple of feature, code and whether a missing value goes right, or None
        At the level before.
    """

    level: Level
    scales: PackingScales | None
    asked: tuple[int, int, bool] | None

    def blocks(self, shares: int) -> list[list[int]]:
        """The blocks of each share in which a feature is permitted."""
        permitted = self.level.permitted
        bounds = share_bounds(len(permitted), shares)
        return [
            [block for block in range(a, b) if permitted[block * BLOCK : (block + 1) * BLOCK].any()]
            for a, b in zip(bounds[:-1], bounds[1:])
        ]


def share_bounds(n_features: int, shares: int) -> list[int]:
    """The first block of each share, and the number of blocks."""
    n_blocks = -(-n_features // BLOCK)
    return [n_blocks * share // shares for share in range(shares + 1)]


class PartitionGrower(LevelSearch):
    """The level search whose questions are found by the owners of shares of the features."""

    def __init__(self, crew: Crew, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules) -> None:
        super().__init__(n_bins, has_missing, rules)
        self._crew = crew

    def grow(self, scales: PackingScales, n_rows: int, allowed: np.ndarray) -> TreeStructure:
        """The tree for gradients that the partitions have derived."""
        paid = self.paid

        def once() -> TreeStructure:
            self.paid = paid.copy()
            return self._grow(scales, n_rows, allowed)

        return self._crew.retried(once)

    def _grow(self, scales: PackingScales, n_rows: int, allowed: np.ndarray) -> TreeStructure:
        self._asked: tuple[int, int, bool] | None = None
        self._scales: PackingScales | None = scales
        if not self.rules.reads_losses and self._useful(allowed).any():
            return self._search(allowed, scales, n_rows, None)
        total, losses = self._crew.round(_pack, scales)
        self._scales = None
        return self._search(allowed, scales, n_rows, total, loss_unit_of(losses, total, scales.shift))

    def _best(self, level: Level) -> Question | None:
        if not level.permitted.any():
            return None
        told = LevelRound(level, self._scales, self._asked)
        self._scales = None
        found = [one for one in self._crew.shared_round(_histograms, _best_of_share, told) if one is not None]
        return max(found, key=lambda question: (question.net, -question.feature))

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        self._asked = question.feature, question.code, question.missing_right
        mask = (1 << level.shift) - 1
        smaller: np.ndarray = (question.right & mask) <= (question.left & mask)
        return smaller


class ShareSearch(HistogramSearch):
    """The search among the features of one share, over histograms summed over all partitions."""

    def __init__(
        self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules, share: int, shares: int, workers: Workers
    ) -> None:
        bounds = share_bounds(len(n_bins), shares)
        self.place = share, shares
        self._first = bounds[share]
        self._own = own = slice(bounds[share] * BLOCK, bounds[share + 1] * BLOCK)
        monotone = None if rules.monotone is None else rules.monotone[own]
        smoothing = None if rules.smoothing is None else rules.smoothing[own]
        rules = replace(rules, monotone=monotone, smoothing=smoothing, together=None, costs=None)
        super().__init__(n_bins[own], has_missing[own], rules, workers)

    def answer(self, told: LevelRound, sums: np.ndarray) -> Question | None:
        """The best question about the share's features, given the sums for its blocks."""
        level, own = told.level, self._own
        share, shares = self.place
        self._sums = {block - self._first: sums_there for block, sums_there in zip(told.blocks(shares)[share], sums)}
        fees = None if level.fees is None else level.fees[own]
        found = self._best(replace(level, permitted=level.permitted[own], fees=fees))
        return None if found is None else replace(found, feature=found.feature + own.start)

    def _begin(self, level: Level) -> None:
        """The sums are there already."""

    def _fill(self, block: int, fresh: np.ndarray) -> None:
        sums = self._sums[block]
        widened = fresh.reshape(len(fresh), BLOCK, 256)
        widened[:, :, : sums.shape[2] - 1] = sums[:, :, :-1]
        widened[:, :, 255] = sums[:, :, -1]


# Statistics of a partition.


def _packed(trees: Any, scales: PackingScales) -> PackedGradients:
    first = int(trees.setup.first_rows[trees.number])
    packed = pack_rows(*drawn_rows(trees.g, trees.h, trees.drawn), scales, first)
    trees.sampled = SampledRows(trees.rows.matrix, packed)
    return packed


def _pack(partition: Partition, scales: PackingScales) -> tuple[np.ndarray, np.ndarray]:
    packed = _packed(partition.memory["trees"], scales)
    return packed.words.sum(keepdims=True), exact_parts(squared_losses(packed))


def _histograms(partition: Partition, shares: int, told: LevelRound) -> tuple[np.ndarray, ...]:
    """Words by leaf, feature and code, for each share int64 (blocks, leaves, 8, codes + 1), missing values last."""
    trees, level = partition.memory["trees"], told.level
    if told.scales is not None:
        _packed(trees, told.scales)
    if told.asked is not None:
        trees.sampled.ask(level.number - 1, *told.asked)
    trees.sampled.gather(level.number, np.array(level.small_is_right))
    leaves, width = 1 << max(0, level.number - 1), int(trees.n_bins.max(initial=1))
    fresh = np.empty((leaves, BLOCK * 256), dtype=np.int64)
    parts = []
    for blocks in told.blocks(shares):
        part = np.empty((len(blocks), leaves, BLOCK, width + 1), dtype=np.int64)
        for i, block in enumerate(blocks):
            fresh[:] = 0
            trees.sampled.fill(block, fresh)
            by_code = fresh.reshape(leaves, BLOCK, 256)
            part[i, :, :, :-1] = by_code[:, :, :width]
            part[i, :, :, -1] = by_code[:, :, 255]
        parts.append(part)
    return tuple(parts)


def _best_of_share(
    workers: Workers, partition: Partition, sums: np.ndarray, share: int, shares: int, told: LevelRound
) -> Question | None:
    trees = partition.memory["trees"]
    place = share, shares
    if place not in trees.shares:
        trees.shares[place] = ShareSearch(trees.n_bins, trees.has_missing, trees.setup.plan.rules, *place, workers)
    found: Question | None = trees.shares[place].answer(told, sums)
    return found
