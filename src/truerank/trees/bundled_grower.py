"""Growth over sparse rows: histograms of bundles, and of features that are kept as their stored values.

The sum of the rows at a feature's default code is the leaf's sum minus those of its other codes. Sums are integers, so
that this is exact, and the trees equal those of dense rows.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers
from truerank.matrices.binning import BLOCK, CodedMatrix
from truerank.matrices.bundles import BundledMatrix, sums_by_code, unbundle
from truerank.trees.grower import Grower, GrowthRules, Level

_TASK = 128  # features without bytes that a thread searches at once
_HISTOGRAMS = 512  # histograms of features in a thread at once: a megabyte


class BundledGrower(Grower):
    """Grows trees over blocks of eight bundles, and then blocks of features that have no bytes.

    Histograms of bundles are kept from level to level, 2 KB a leaf. Histograms of features without bytes are computed
    again on every level, from all stored values.
    """

    def __init__(self, matrix: BundledMatrix, rules: GrowthRules, workers: Workers) -> None:
        self._bundles = matrix
        super().__init__(matrix, rules, workers)

    def _blocks(self) -> tuple[list[np.ndarray], int]:
        bundled = self._bundles.features_by_block()
        apart = np.flatnonzero(self._bundles.bundle < 0)
        return bundled + np.split(apart, range(_TASK, len(apart), _TASK)), len(bundled)

    def _begin(self, level: Level) -> None:
        super()._begin(level)
        self._by_row = self._sampled.of_all_rows()

    def _search_block(self, level: Level, block: int) -> float:
        if block < len(self._hist):
            return super()._search_block(level, block)
        return self._search_members(np.empty((0, BLOCK * 256), dtype=np.int64), block, self._members[block], level)

    def _search_members(self, hist: np.ndarray, block: int, features: np.ndarray, level: Level) -> float:
        members = features[level.permitted[features]]
        leaves = 1 << level.number
        width = min(len(members), max(BLOCK, _HISTOGRAMS // leaves))
        histograms = np.empty((leaves, width * 256), dtype=np.int64)
        before = 0.0
        for start in range(0, len(members), width):
            some = members[start : start + width]
            self._take_apart(hist, block, some, level, histograms)
            before = super()._search_members(histograms, block, some, level)
        return before

    def _take_apart(self, hist: np.ndarray, block: int, features: np.ndarray, level: Level, out: np.ndarray) -> None:
        """Write the histograms (leaves, 256 each) of some features of a block."""
        own, stored = self._bundles, self._bundles.stored
        codes = own.default[features], own.n_bins[features], own.has_missing[features]
        if block < len(self._hist):
            slots = own.bundle[features] % BLOCK
            unbundle(hist, level.totals, slots, own.first[features], *codes, out)
        else:
            where = stored.starts, stored.rows, stored.ranks
            accumulate_stored(*where, features, *self._by_row, level.totals, *codes, out)


def grower_of(matrix: CodedMatrix, rules: GrowthRules, workers: Workers) -> Grower:
    """Return the grower for coded rows, dense or sparse."""
    if isinstance(matrix, BundledMatrix):
        return BundledGrower(matrix, rules, workers)
    return Grower(matrix, rules, workers)


@kernel
def accumulate_stored(starts, rows, ranks, features, words, leaf, totals, default, n_bins, has_missing, out):
    """Write histograms (leaves, 256 each) of features; `words` and `leaf` (n,) are 0 for rows outside the sample."""
    for f in range(features.size):
        width = n_bins[f] + 1
        by_rank = np.zeros(totals.size * width, dtype=np.int64)
        for at in range(starts[features[f]], starts[features[f] + 1]):
            row = np.uint64(rows[at])
            by_rank[np.uint64(leaf[row]) * np.uint64(width) + np.uint64(ranks[at])] += words[row]
        for q in range(totals.size):
            sums_by_code(
                by_rank[q * width + 1 : (q + 1) * width], totals[q], default[f], n_bins[f], has_missing[f],
                out[q, 256 * f : 256 * f + 256],
            )  # fmt: skip
