"""Growth over sparse rows, with histograms of bundles and of features that are stored as their values.

The sum of the rows at a feature's default code is the leaf's sum minus the sums at all other codes. Sums are integers,
so that this difference is exact, and the trees equal the trees of dense rows.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers
from truerank.matrices.binning import BLOCK, MISSING, CodedMatrix
from truerank.matrices.bundles import BundledMatrix, sums_by_code, unbundle
from truerank.trees.grower import Grower, GrowthRules, Level

_TASK = 128  # features without bytes that a thread searches at once
_HISTOGRAMS = 512  # histograms of features in a thread at once: a megabyte


class BundledGrower(Grower):
    """A grower of trees that reads blocks of eight bundles, followed by blocks of features without bytes.

    Histograms of bundles are kept from level to level, 2 KB for each leaf. Histograms of features without bytes are
    computed again on every level, from all stored values.
    """

    def __init__(self, matrix: BundledMatrix, rules: GrowthRules, workers: Workers) -> None:
        self._bundles = matrix
        super().__init__(matrix, rules, workers)

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        bundle, n_kept = self._bundles.bundle, len(self._bundles.codes)
        without = np.cumsum(bundle < 0) - 1
        slots = np.where(bundle < 0, BLOCK * (n_kept + without // _TASK), bundle)
        return slots, np.full(n_kept * BLOCK, MISSING)

    def _begin(self, level: Level) -> int:
        n_rows = super()._begin(level)
        self._by_row = self._sampled.of_all_rows()
        return n_rows

    def _search_features(self, hist: np.ndarray, places: np.ndarray, features: np.ndarray, level: Level) -> float:
        leaves = 1 << level.number
        width = min(len(features), max(BLOCK, _HISTOGRAMS // leaves))
        histograms = np.empty((1, leaves, width * 256), dtype=np.int64)
        n_bundled = np.count_nonzero(self._bundles.bundle[features] >= 0)
        before = 0.0
        for part in np.split(features, [n_bundled]):
            for start in range(0, len(part), width):
                some = part[start : start + width]
                self._take_apart(hist, some, level, histograms[0])
                before = super()._search_features(histograms, np.arange(len(some)), some, level)
        return before

    def _take_apart(self, hist: np.ndarray, features: np.ndarray, level: Level, out: np.ndarray) -> None:
        """Write the histograms (leaves, 256 each) of some features, which all have bytes or all have no bytes."""
        own, stored = self._bundles, self._bundles.stored
        codes = own.default[features], own.n_bins[features], own.has_missing[features]
        bundle = own.bundle[features]
        if bundle[0] >= 0:
            unbundle(hist, level.totals, bundle, own.first[features], *codes, out)
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
