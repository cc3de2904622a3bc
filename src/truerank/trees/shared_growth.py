"""Grow trees over partitions: the workers share the histograms of a level by features.

A member adds up the histograms of its own rows. Each share of the features has an owner, one of the first eight
members, which adds up these sums over all members and finds the best question about its features. The owners exchange
their questions, and all choose the same one. The other members send their sums through one of the first eight.

While the sums are small, every owner receives those of all features. If a worker is lost, the tree starts again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from truerank.core.threads import Workers
from truerank.data.row_source import Part, RowSource
from truerank.matrices.binning import BLOCK
from truerank.matrices.exact_sums import exact_parts
from truerank.trees.grower import HistogramSearch, Level, LevelSearch, Question, TreeStructure
from truerank.trees.histogram import (
    PackedGradients,
    PackingScales,
    SampledRows,
    drawn_rows,
    loss_unit_of,
    pack_rows,
    squared_losses,
)

FAN_IN = 8  # members whose sums one of them adds up
_WHOLE = 16  # messages between owners, times leaves, up to which each of them gets the sums of all features


class Communicator(Protocol):
    """Messages between the members of one program."""

    rank: int
    size: int

    def tell(self, other: int, value: object) -> None:
        """Start to send a value to another member."""

    def hear(self, other: int) -> Any:
        """Return the next value that another member sends."""


def grow_over_parts(
    crew: RowSource, scales: PackingScales, n_rows: float, allowed: np.ndarray, packs: bool
) -> TreeStructure:
    """Grow a tree over parts, which with `packs` add up their packed rows before the search."""
    packed: tuple[np.ndarray, float] | None = None
    if packs:
        total, losses = crew.statistics(_pack, scales)
        packed = total, loss_unit_of(losses, total, scales.shift)
    tree: TreeStructure = crew.together(_grow_together, scales, n_rows, allowed, packed)
    return tree


def _grow_together(
    communicator: Communicator,
    workers: Workers,
    partitions: list[Part],
    scales: PackingScales,
    n_rows: float,
    allowed: np.ndarray,
    packed: tuple[np.ndarray, float] | None,
) -> TreeStructure | None:
    """Return the tree at the first member; `packed` is the sum of all words and the loss unit of packed rows."""
    together = [partition.memory["trees"] for partition in partitions]
    if packed is None:
        workers.run(_packed, [(trees, scales) for trees in together])
    tree = GrowthTogether(communicator, workers, together).grow(allowed, scales, n_rows, packed)
    return tree if communicator.rank == 0 else None


class GrowthTogether(LevelSearch):
    """The level search of one member, with the rows of some partitions."""

    def __init__(self, communicator: Communicator, workers: Workers, together: list[Any]) -> None:
        first = together[0]
        super().__init__(first.setup.columns.n_bins, first.has_missing, first.setup.plan.rules)
        self._communicator, self._workers, self._together = communicator, workers, together
        if first.search is None:
            first.search = SumSearch(self.n_bins, self.has_missing, self.rules, workers)
        self._search_of_sums: SumSearch = first.search
        self._width = int(self.n_bins.max(initial=1))
        # Member i ≥ FAN_IN sends its sums to member i // FAN_IN - 1.
        rank, size = communicator.rank, communicator.size
        self._owners = min(FAN_IN, size)
        self._others = [(rank + turn) % self._owners for turn in range(1, self._owners)]
        self._below = [i for i in range(FAN_IN, size) if i // FAN_IN - 1 == rank]

    def grow(
        self, allowed: np.ndarray, scales: PackingScales, n_rows: float, packed: tuple[np.ndarray, float] | None
    ) -> TreeStructure:
        used = self._blocks(allowed & ((self.n_bins > 1) | self.has_missing))
        bounds = [len(used) * share // self._owners for share in range(self._owners + 1)]
        self._shares = [used[a:b] for a, b in zip(bounds[:-1], bounds[1:])]
        return self._search(allowed, scales, n_rows, *(packed or (None,)))

    def _best(self, level: Level) -> Question | None:
        if not level.permitted.any():
            return None
        for_each = [(trees,) for trees in self._together]
        self._workers.run(lambda trees: trees.sampled.gather(level.number, level.small_is_right), for_each)
        communicator, used = self._communicator, self._blocks(level.permitted)
        from_below = [communicator.hear(member) for member in self._below]
        if communicator.rank < self._owners:
            best = self._best_of_owners(level, used, from_below)
        else:
            above = communicator.rank // FAN_IN - 1
            communicator.tell(above, sum(from_below, self._histograms(level, used)))
            best = communicator.hear(above)
        for member in self._below:
            communicator.tell(member, best)
        return best

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        asked = level.number, question.feature, question.code, question.missing_right
        self._workers.run(lambda trees: trees.sampled.ask(*asked), [(trees,) for trees in self._together])
        mask = (1 << level.weights.shift) - 1
        return np.asarray((question.right & mask) <= (question.left & mask))

    def _best_of_owners(self, level: Level, used: np.ndarray, from_below: list[np.ndarray]) -> Question | None:
        """Return the best question; `from_below` are the sums of other members for the blocks `used`."""

        def sums(blocks: np.ndarray) -> np.ndarray:
            there = np.searchsorted(used, blocks)
            return sum((part[there] for part in from_below), self._histograms(level, blocks))

        tell, hear = self._communicator.tell, self._communicator.hear
        # What goes to others is under way while this owner's own is added up.
        if self._owners * len(self._others) << level.number <= _WHOLE:
            whole = sums(used)
            for other in self._others:
                tell(other, whole)
            return self._search_of_sums.best(level, used, sum(map(hear, self._others), whole))
        shares = [share[np.isin(share, used)] for share in self._shares]
        for other in self._others:
            tell(other, sums(shares[other]))
        own = shares[self._communicator.rank]
        found = self._search_of_sums.best(level, own, sum(map(hear, self._others), sums(own)))
        for other in self._others:
            tell(other, found)
        questions = [one for one in [found, *map(hear, self._others)] if one is not None]
        return max(questions, key=lambda question: (question.gain, -question.feature))

    def _blocks(self, features: np.ndarray) -> np.ndarray:
        return np.unique(self._search_of_sums.block_of[features])

    def _histograms(self, level: Level, blocks: np.ndarray) -> np.ndarray:
        """Return histograms of packed sums, int64 (blocks, leaves, 8 features, bins + 1), missing values last."""
        leaves, width = 1 << max(0, level.number - 1), self._width
        words = np.empty((len(blocks), leaves, BLOCK, width + 1), dtype=np.int64)

        def fill(block: int, own: np.ndarray) -> None:
            fresh = np.zeros((1, leaves, BLOCK * 256), dtype=np.int64)
            for trees in self._together:
                trees.sampled.fill(np.array([block]), fresh, np.zeros(1, dtype=np.int64))
            by_code = fresh.reshape(leaves, BLOCK, 256)
            own[:, :, :-1] = by_code[:, :, :width]
            own[:, :, -1] = by_code[:, :, 255]

        self._workers.run(fill, list(zip(blocks.tolist(), words)))
        return words


class SumSearch(HistogramSearch):
    """The level search over sums of histograms that the caller passes."""

    def best(self, level: Level, blocks: np.ndarray, sums: np.ndarray) -> Question | None:
        """Return the best question about the features of some blocks, given the sums of these blocks."""
        self._sums = dict(zip(blocks.tolist(), sums))
        here = np.isin(self.block_of, blocks)
        return self._best(replace(level, permitted=level.permitted & here))

    def _begin(self, level: Level) -> int:
        return 0  # the sums exist

    def _fill(self, level: Level, blocks: np.ndarray) -> None:
        n_leaves = 1 << level.number
        for block in blocks.tolist():
            sums = self._sums[block]
            widened = self._hist[block, n_leaves >> 1 : n_leaves].reshape(-1, BLOCK, 256)
            widened[:, :, : sums.shape[2] - 1] = sums[:, :, :-1]
            widened[:, :, 255] = sums[:, :, -1]


# Statistics of a partition.


def _packed(trees: Any, scales: PackingScales) -> PackedGradients:
    first = int(trees.setup.first_rows[trees.number])
    packed = pack_rows(*drawn_rows(trees.g, trees.h, trees.drawn), scales, trees.workers, first)
    trees.sampled = SampledRows(trees.rows.matrix, packed, trees.workers)
    return packed


def _pack(partition: Part, scales: PackingScales) -> tuple[np.ndarray, np.ndarray]:
    packed = _packed(partition.memory["trees"], scales)
    return packed.words.sum(keepdims=True), exact_parts(squared_losses(packed))
