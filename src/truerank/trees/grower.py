"""Level search: one question a level, the same in all of its leaves.

With packed gradients g and hessians h of the sampled rows, a level asks the (feature, border) that maximises

    Σ_leaves G² / (H + alpha)  -  penalty(leaves),     G = Σ g, H = Σ h over a leaf's rows,

which for squared error (g = h(x) - y, h = 1, alpha = 0) minimises the summed squared error inside the regions of the
new level. Every feature's histograms are kept for all leaves of a level; a new level reads only the rows of the smaller
child of each leaf and takes the other child as the difference. Missing values are tried on both sides.

The penalty for small leaves is `small_leaf_penalty * s² / (1 + n_l)` summed over the level's leaves, with n_l the
leaf's hessian in units of the mean hessian of a row (for squared error: its number of rows) and s² = Σg²/Σh the loss of
a row: an empty leaf costs `small_leaf_penalty` times an average row's squared error. The thesis leaves its form open.

The number of a leaf has bit t set when the answer at level t was no (`x > c`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.matrices.binning import BLOCK, CodedMatrix
from truerank.matrices.exact_sums import exact_parts
from truerank.trees.histogram import PackedGradients, PackingScales, split_histograms
from truerank.trees.sampled_rows import SampledRows, answer, loss_unit_of, squared_losses

_ROWS = 65_536


@dataclass(frozen=True)
class TreeStructure:
    """The questions of one tree, and the sums in its leaves."""

    features: np.ndarray  # int32 (d,)
    codes: np.ndarray  # int32 (d,): level t asks `code ≤ codes[t]`; a code of `n_bins - 1` asks "is it observed at all"
    missing_right: np.ndarray  # bool (d,): where a missing value goes
    gains: np.ndarray  # float64 (d,): how much each level added to `Σ G² / (H + alpha)`
    gradients: np.ndarray = field(repr=False)  # float64 (2^d,): sums over the sampled rows of each leaf
    hessians: np.ndarray = field(repr=False)
    # int32 (n,): leaf of every training row, where no row was left out of the sample
    leaf: np.ndarray | None = field(default=None, repr=False)

    @property
    def depth(self) -> int:
        """Number of levels d."""
        return len(self.features)


@dataclass(frozen=True)
class GrowthRules:
    """What the level search maximises and may choose."""

    depth: int
    alpha: float = 0.0  # added to each leaf's hessian
    small_leaf_penalty: float = 0.0
    monotone: np.ndarray | None = None  # int8 (p,): 1, scores must not fall in the feature; -1, not rise; 0, free
    # float64 (p, 4, 256): how fuzzy borders smooth the histogram (see `places`); None searches plain borders
    smoothing: np.ndarray | None = None
    together: np.ndarray | None = None  # bool (sets, p): sets of features; those of a tree must all be in one of them
    # float64 (p,): what the first question of all trees about a feature costs, as a share of Σg²/h of the tree's rows
    costs: np.ndarray | None = None

    @property
    def reads_losses(self) -> bool:
        """Whether the search needs the rows' summed losses Σg²/h."""
        return bool(self.small_leaf_penalty) or self.costs is not None


@dataclass(frozen=True)
class Question:
    """The best question of a level."""

    feature: int
    code: int
    missing_right: bool
    before: float  # the level's sum before it, in packed units
    gain: float  # and after it
    net: float  # `gain` less what the first question about the feature costs; -inf where nothing may be asked
    left: np.ndarray = field(repr=False)  # int64 (leaves,): sums of words in the children of each leaf
    right: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Level:
    """What a level's question is chosen by."""

    number: int  # of the level, whose leaves are `2^number`
    # bool (leaves of the level before,): which child's rows are read, of each; those of the other are the difference
    small_is_right: np.ndarray
    permitted: np.ndarray  # bool (p,): the features it may ask about, which are only ever fewer from level to level
    fees: np.ndarray | None  # float64 (p,): what a question about each feature costs, in packed units
    # float64 (3,): alpha, the penalty of an empty leaf and the mean hessian of a row, in packed units
    weights: np.ndarray
    shift: int  # bits of the hessian's sum
    totals: np.ndarray | None  # int64 (leaves of the level,): sums of words; None where no rows are packed yet


class LevelSearch:
    """The level search, whose questions a subclass finds: here, or with the histograms shared out over a cluster."""

    def __init__(self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules) -> None:
        self.n_bins, self.has_missing, self.rules = n_bins, has_missing, rules
        self.paid = np.zeros(len(n_bins), dtype=np.bool_)  # features that trees have asked about

    # What a subclass writes.

    def _best(self, level: Level) -> Question | None:
        """The best question that the level may ask."""
        raise NotImplementedError

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        """Put the chosen question to the rows; returns of each leaf which child is read at the next level."""
        raise NotImplementedError

    def _useful(self, allowed: np.ndarray) -> np.ndarray:
        """The features that a tree may ask about."""
        useful: np.ndarray = allowed & ((self.n_bins > 1) | self.has_missing)
        return useful

    def _search(
        self,
        allowed: np.ndarray,
        scales: PackingScales,
        n_rows: float,
        total: np.ndarray | None,
        loss_unit: float = 0.0,
    ) -> TreeStructure:
        """The tree of at most `rules.depth` levels; `total` (1,) is the sum of all words, of what counts as `n_rows`.

        It may be None where there is a feature to ask about, and the rules read no losses.
        """
        together, costs = self.rules.together, self.rules.costs
        useful = self._useful(allowed)
        loss = hessian_unit = 0.0
        if total is not None:
            loss = loss_unit * float(int(total[0]) & ((1 << scales.shift) - 1))
            hessian_unit = float(scales.unpack(total)[1][0]) / max(1, n_rows)
        weights = np.array(
            [
                self.rules.alpha * scales.hessian_scale,
                self.rules.small_leaf_penalty * loss_unit,
                hessian_unit * scales.hessian_scale,
            ]
        )
        asked: list[Question] = []
        gains: list[float] = []
        small_is_right = np.zeros(1, dtype=np.bool_)
        words, before = total, -np.inf
        for number in range(self.rules.depth):
            permitted = useful if together is None else useful & together.any(axis=0)
            fees = None if costs is None else np.where(self.paid, 0.0, costs * loss)
            level = Level(number, small_is_right, permitted, fees, weights, scales.shift, words)
            best = self._best(level)
            if best is None:
                break
            if number == 0:
                before, words = best.before, best.left + best.right
            if not best.net > before + 1e-12 * abs(before):
                break
            self.paid[best.feature] = True
            if together is not None:
                together = together[together[:, best.feature]]
            asked.append(best)
            gains.append((best.gain - before) * scales.hessian_scale / scales.gradient_scale**2)
            before, words = best.gain, np.concatenate([best.left, best.right])
            small_is_right = self._ask(level, best)
        assert words is not None
        return TreeStructure(
            np.array([question.feature for question in asked], dtype=np.int32),
            np.array([question.code for question in asked], dtype=np.int32),
            np.array([question.missing_right for question in asked], dtype=np.bool_),
            np.array(gains, dtype=np.float64),
            *scales.unpack(words),
        )


class HistogramSearch(LevelSearch):
    """The level search over histograms that a subclass fills: from the rows, or from the sums of many partitions.

    A subclass writes `_begin` and `_fill`. Memory: 2 KB a leaf and feature of all levels but the last, whose histograms
    have no children, `2^(d-2) * p * 2` KB; and those of eight features on the last level for each thread.
    """

    def __init__(self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules, workers: Workers) -> None:
        super().__init__(n_bins, has_missing, rules)
        self.workers = workers
        p = len(n_bins)
        self._members, n_kept = self._blocks()
        self._block_of = np.zeros(p, dtype=np.int64)
        for block, own in enumerate(self._members):
            self._block_of[own] = block
        self._hist = np.zeros((n_kept, 1 << max(0, rules.depth - 2), BLOCK * 256), dtype=np.int64)
        self._spare: list[np.ndarray] = []  # one for each thread: what is added to stays in its cache
        self._n_bins, self._missing = np.array(n_bins, dtype=np.int32), np.array(has_missing, dtype=np.bool_)
        self._monotone = np.zeros(p, np.int8) if rules.monotone is None else np.array(rules.monotone, dtype=np.int8)
        self._smoothing = np.empty((0, 4, 256)) if rules.smoothing is None else rules.smoothing
        self._mask = self._permitted = self._used = np.empty(0, dtype=np.int64)  # of the level searched last
        # The best question of each feature at the level that was searched last.
        self._gains, self._questions = np.empty(p), np.empty((p, 2), dtype=np.int32)
        # And the sums of words in the left and the right child of each leaf.
        self._children = np.empty((p, 2, 1 << max(0, rules.depth - 1)), dtype=np.int64)

    def _blocks(self) -> tuple[list[np.ndarray], int]:
        """The features that a thread searches at once, and of how many such blocks the histograms are kept."""
        members = np.split(np.arange(len(self.n_bins)), range(BLOCK, len(self.n_bins), BLOCK))
        return members, len(members)

    # What a subclass writes.

    def _begin(self, level: Level) -> None:
        """Called before the blocks of a level are searched."""
        raise NotImplementedError

    def _fill(self, block: int, fresh: np.ndarray) -> None:
        """Write the histograms of the root, or of the smaller child of each leaf, of one block into zeros."""
        raise NotImplementedError

    def _best(self, level: Level) -> Question | None:
        if level.permitted is not self._mask:  # mostly the same on all levels of a tree
            self._mask, self._permitted = level.permitted, np.flatnonzero(level.permitted)
            # Only ever fewer: a block's histograms are those of the level before, divided.
            self._used = np.flatnonzero(np.bincount(self._block_of[self._permitted]))
        permitted, used = self._permitted, self._used
        if not len(permitted):
            return None
        before = self._search_blocks(used, level)
        gains = self._gains[permitted]
        net = gains if level.fees is None else gains - level.fees[permitted]
        best = int(np.argmax(net))  # of equal gains the lowest feature's
        feature = int(permitted[best])
        code, side = int(self._questions[feature, 0]), bool(self._questions[feature, 1])
        left, right = self._children[feature, :, : 1 << level.number].copy()
        if not self.has_missing[feature]:  # what is missing for the first time at prediction goes with most of the rows
            mask = (1 << level.shift) - 1
            side = bool((left & mask).sum() < (right & mask).sum())
        return Question(feature, code, side, before, float(gains[best]), float(net[best]), left, right)

    def _search_blocks(self, used: np.ndarray, level: Level) -> float:
        """Find the best question of each feature in some blocks; returns the sum of G²/H before the question."""
        self._begin(level)
        return self.workers.run(lambda block: self._search_block(block, level), [(one,) for one in used.tolist()])[-1]

    def _search_block(self, block: int, level: Level) -> float:
        """Find the best question of each feature in a block, from the level's histograms, which are filled here.

        Returns the sum of G²/H before the question.
        """
        n_leaves = 1 << level.number
        half = n_leaves >> 1
        try:
            hist = self._spare.pop()
        except IndexError:
            hist = np.empty((1 << (self.rules.depth - 1), BLOCK * 256), dtype=np.int64)
        fresh = hist[half:n_leaves] if half else hist[:1]
        fresh[:] = 0
        self._fill(block, fresh)
        if half:
            split_histograms(self._hist[block], hist, level.small_is_right)
        if level.number + 1 < self.rules.depth:
            self._hist[block, :n_leaves] = hist[:n_leaves]
        before = self._search_members(hist, block, level)
        self._spare.append(hist)
        return before

    def _search_members(self, hist: np.ndarray, block: int, level: Level) -> float:
        """As `_search_block`, given the histograms of the block."""
        return self._search_features(hist, self._members[block], level)

    def _search_features(self, hist: np.ndarray, features: np.ndarray, level: Level) -> float:
        """`search_level` for some features."""
        before: float = search_level(
            hist, 1 << level.number, features, level.permitted, self._n_bins, self._missing, self._monotone,
            self._smoothing, level.weights, level.shift, self._gains, self._questions, self._children,
        )  # fmt: skip
        return before


class Grower(HistogramSearch):
    """Grows trees over one coded matrix, block by block; holds the histograms between levels and trees."""

    def __init__(self, matrix: CodedMatrix, rules: GrowthRules, workers: Workers) -> None:
        super().__init__(matrix.n_bins, matrix.has_missing, rules, workers)
        self.matrix = matrix

    def grow(self, packed: PackedGradients, allowed: np.ndarray, counted: float | None = None) -> TreeStructure:
        """The tree of at most `rules.depth` levels for these gradients, from the features `allowed` (p,).

        Growth ends early when no allowed question improves the level. The sampled rows count as `counted` rows where
        they do not count once each.
        """
        self._sampled = SampledRows(self.matrix, packed, self.workers)
        total, n_rows = packed.words.sum(keepdims=True), len(packed.rows)
        loss_unit = 0.0
        if self.rules.reads_losses:
            loss_unit = loss_unit_of(exact_parts(squared_losses(packed)), total, packed.scales.shift)
        tree = self._search(allowed, packed.scales, n_rows if counted is None else counted, total, loss_unit)
        leaf = self._sampled.leaf
        del self._sampled
        return replace(tree, leaf=leaf if n_rows == self.matrix.n_rows else None)

    def _begin(self, level: Level) -> None:
        self._sampled.gather(level.number, level.small_is_right)

    def _fill(self, block: int, fresh: np.ndarray) -> None:
        self._sampled.fill(block, fresh)

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        count = self._sampled.ask(level.number, question.feature, question.code, question.missing_right)
        leaves = 1 << level.number
        return count[leaves:] <= count[:leaves]


def leaf_numbers(matrix: CodedMatrix, tree: TreeStructure, workers: Workers) -> np.ndarray:
    """Leaf of every row, int32 (n,)."""
    leaf, everyone = np.zeros(matrix.n_rows, dtype=np.int32), np.empty(0, dtype=np.int32)
    for level in range(tree.depth):
        codes, shift = matrix.codes_at(int(tree.features[level]))
        question = level, int(tree.codes[level]), bool(tree.missing_right[level])

        def ask(start: int, stop: int, codes: np.ndarray = codes, shift: Any = shift, question: Any = question) -> None:
            answer(codes[start:stop], shift, everyone, leaf[start:stop], *question)

        workers.run(ask, row_blocks(matrix.n_rows, _ROWS))
    return leaf


@kernel
def search_level(
    hist, n_leaves, features, permitted, n_bins, missing, monotone, smoothing, scales, shift, gains, questions, children
):
    """Best border of each of some features, whose histograms stand side by side, over all leaves of a level.

    Writes what is found of feature f to `gains[f]`, to `questions[f]`, its code, and 1 if a missing value goes right,
    and to `children[f]` the sums of words in the left and the right child of each leaf. Returns the sum of G²/H before
    the question, in packed units.

    Divisions take most of the time. Where nothing but G²/H counts, gains are estimated first, with one division for
    two, and those that may be the largest are then computed as elsewhere: the same question. Many arguments: what is
    known of each feature, and what is found, are arrays of their own.
    """
    alpha, penalty, unit = scales[0], scales[1], scales[2]
    inverse_unit = 1.0 / unit if unit > 0.0 else 0.0
    mask = (np.int64(1) << shift) - 1
    gain = np.empty((2, 256))
    left = np.empty(256, dtype=np.int64)
    gl = np.empty(256)
    hl = np.empty(256)
    totals = np.empty(n_leaves, dtype=np.int64)
    before = 0.0
    known = False
    for j in range(features.size):
        f = features[j]
        if not permitted[f]:
            continue
        here = 256 * j
        bins = n_bins[f]
        sign = monotone[f]
        n_sides = 2 if missing[f] else 1
        last = bins if missing[f] else bins - 1  # one past the last candidate
        if not known:
            for q in range(n_leaves):
                totals[q] = _sum(hist[q, here : here + bins]) + (hist[q, here + 255] if missing[f] else 0)
                th, tg = np.float64(totals[q] & mask), np.float64(totals[q] >> shift)
                before += tg * tg / (max(th, 1.0) + alpha) - (
                    penalty / (1.0 + th * inverse_unit) if penalty > 0.0 else 0.0
                )
            known = True
        estimated = sign == 0 and penalty == 0.0 and smoothing.shape[0] == 0 and alpha < 1e100
        for attempt in range(0 if estimated else 1, 2):
            gain[:n_sides, :last] = 0.0
            for q in range(n_leaves):
                h = hist[q, here : here + 256]
                total = np.int64(0)
                for b in range(bins):
                    total += h[b]
                    left[b] = total
                th, tg = np.float64(totals[q] & mask), np.float64(totals[q] >> shift)
                for side in range(n_sides):
                    # side 0: a missing value goes right; side 1: left
                    extra = h[255] if side == 1 else np.int64(0)
                    out = gain[side]
                    if attempt == 0:
                        for b in range(last):
                            packed = left[b] + extra
                            k, g = np.float64(packed & mask), np.float64(packed >> shift)
                            e, m = tg - g, max(th - k, 1.0) + alpha
                            k = max(k, 1.0) + alpha
                            out[b] += (g * g * m + e * e * k) / (k * m)
                        continue
                    for b in range(last):
                        packed = left[b] + extra
                        hl[b] = np.float64(packed & mask)
                        gl[b] = np.float64(packed >> shift)
                    if smoothing.shape[0]:
                        _smooth(h, bins, mask, shift, smoothing[f], gl, hl)
                    if sign == 0:
                        for b in range(last):
                            g, k = gl[b], hl[b]
                            e, m = tg - g, th - k
                            out[b] += g * g / (max(k, 1.0) + alpha) + e * e / (max(m, 1.0) + alpha)
                    else:
                        whole = tg * tg / (max(th, 1.0) + alpha)
                        for b in range(last):
                            g, k = gl[b], hl[b]
                            e, m = tg - g, th - k
                            k, m = max(k, 1.0) + alpha, max(m, 1.0) + alpha
                            # Leaf values are -g/k and -e/m; where they would break the order, the leaf stays whole.
                            out[b] += whole if sign * (g * m - e * k) < 0.0 else g * g / k + e * e / m
                    if penalty > 0.0:
                        for b in range(last):
                            out[b] -= penalty / (1.0 + hl[b] * inverse_unit)
                            out[b] -= penalty / (1.0 + (th - hl[b]) * inverse_unit)
            if attempt == 0 and _compute_largest(hist, here, totals, n_sides, last, alpha, shift, gain):
                break
        most, code, to_left = -np.inf, 0, 1
        for side in range(n_sides):
            for b in range(last):
                if gain[side, b] > most:
                    most, code, to_left = gain[side, b], b, side
        gains[f], questions[f, 0], questions[f, 1] = most, code, 1 - to_left
        for q in range(n_leaves):
            lower = _sum(hist[q, here : here + code + 1])
            if to_left and missing[f]:
                lower += hist[q, here + 255]
            children[f, 0, q], children[f, 1, q] = lower, totals[q] - lower
    return before


@kernel
def _sum(words):
    total = np.int64(0)
    for i in range(words.size):
        total += words[i]
    return total


@kernel
def _compute_largest(hist, here, totals, n_sides, last, alpha, shift, gain):
    """Replace estimates of gains by what they are where they may be the largest, and elsewhere by -inf.

    An estimate is off by some units in the last place for each leaf, less than 1e-11 of it. Returns False, with nothing
    replaced, where there are more than eight.
    """
    mask = (np.int64(1) << shift) - 1
    least = 0.0
    for side in range(n_sides):
        least = max(least, gain[side, :last].max())
    least *= 1.0 - 1e-11
    number = np.int64(0)
    for side in range(n_sides):
        for b in range(last):
            number += gain[side, b] >= least
    if number > 8:
        return False
    for side in range(n_sides):
        for b in range(last):
            if gain[side, b] < least:
                gain[side, b] = -np.inf
                continue
            gain[side, b] = 0.0
            for q in range(totals.size):
                packed = _sum(hist[q, here : here + b + 1]) + (hist[q, here + 255] if side == 1 else 0)
                k, g = np.float64(packed & mask), np.float64(packed >> shift)
                e, m = np.float64(totals[q] >> shift) - g, np.float64(totals[q] & mask) - k
                gain[side, b] += g * g / (max(k, 1.0) + alpha) + e * e / (max(m, 1.0) + alpha)
    return True


@kernel
def _smooth(h, bins, mask, shift, smoothing, gl, hl):
    """Move the share of each bin that fuzzy borders put on the other side, for every border in two sweeps.

    smoothing rows: mean of p^(stop - i) / ((1 - p) Z(i)) and of p^(i - start) / ((1 - p) Z(i)) over the bin's places,
    p^(width of the bin), and at [3, b] the place of border b, n at [3, 255], ln p at [2, 255]. See `places`.
    """
    n = smoothing[3, 255]
    log_p = smoothing[2, 255]
    # Below a border: P(right) = p^(b - stop) (1 - p^(n - b)) S_down.
    g = 0.0
    k = 0.0
    for b in range(bins - 1):
        word = h[b]
        g = g * smoothing[2, b] + np.float64(word >> shift) * smoothing[0, b]
        k = k * smoothing[2, b] + np.float64(word & mask) * smoothing[0, b]
        share = 1.0 - np.exp(log_p * (n - smoothing[3, b]))
        gl[b] -= share * g
        hl[b] -= share * k
    # Above it: P(left) = p^(start - b + 1) (1 - p^b) S_up.
    g = 0.0
    k = 0.0
    p = np.exp(log_p)
    for b in range(bins - 2, -1, -1):
        word = h[b + 1]
        g = g * smoothing[2, b + 1] + np.float64(word >> shift) * smoothing[1, b + 1]
        k = k * smoothing[2, b + 1] + np.float64(word & mask) * smoothing[1, b + 1]
        share = p * (1.0 - np.exp(log_p * smoothing[3, b]))
        gl[b] += share * g
        hl[b] += share * k
