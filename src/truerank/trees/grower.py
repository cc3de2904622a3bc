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
from typing import Any, NamedTuple

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.matrices.binning import BLOCK, MISSING, CodedMatrix
from truerank.matrices.exact_sums import exact_parts
from truerank.trees.histogram import PackedGradients, PackingScales, split_histograms
from truerank.trees.sampled_rows import SampledRows, answer, loss_unit_of, squared_losses

_ROWS = 65_536
MISSING_RIGHT, MISSING_LEFT = 0, 1  # sides on which a question can put missing values


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


@dataclass(frozen=True)
class Question:
    """The best question of a level."""

    feature: int
    code: int
    missing_right: bool
    before: float  # the level's sum before it, in packed units
    gain: float  # and after it
    left: np.ndarray = field(repr=False)  # int64 (leaves,): sums of words in the children of each leaf
    right: np.ndarray = field(repr=False)


class Columns(NamedTuple):
    """What is known of each feature: arrays (p,), and `smoothing` (p, 4, 256), or (0, 4, 256) for plain borders."""

    permitted: np.ndarray  # bool: the level may ask about the feature
    n_bins: np.ndarray  # int32: bins in use, without the one of missing values
    missing: np.ndarray  # bool: the feature has missing values
    monotone: np.ndarray  # int8: 1, scores must not fall in the feature; -1, not rise; 0, free
    smoothing: np.ndarray


class Weights(NamedTuple):
    """Constants of the objective, in packed units."""

    alpha: float  # added to the hessian of each leaf
    penalty: float  # cost of an empty leaf
    row: float  # mean hessian of a row
    shift: int  # a word holds G << shift | H


class Found(NamedTuple):
    """Where the best question of each feature is written: arrays over p."""

    gains: np.ndarray  # float64 (p,): the objective after the question
    questions: np.ndarray  # int32 (p, 2): code of the border; 1 if missing values go right
    children: np.ndarray  # int64 (p, 2, leaves): sums of words in the left and the right child of each leaf


@dataclass(frozen=True)
class Level:
    """What a level's question is chosen by."""

    number: int  # of the level, whose leaves are `2^number`
    # bool (leaves of the level before,): which child's rows are read, of each; those of the other are the difference
    small_is_right: np.ndarray
    permitted: np.ndarray  # bool (p,): the features it may ask about, which are only ever fewer from level to level
    weights: Weights
    totals: np.ndarray | None  # int64 (leaves of the level,): sums of words; None where no rows are packed yet


class LevelSearch:
    """The level search, whose questions a subclass finds: here, or with the histograms shared out over a cluster."""

    def __init__(self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules) -> None:
        self.n_bins, self.has_missing, self.rules = n_bins, has_missing, rules

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

        It may be None where there is a feature to ask about, and small leaves cost nothing.
        """
        together = self.rules.together
        useful = self._useful(allowed)
        hessian_unit = 0.0
        if total is not None:
            hessian_unit = float(scales.unpack(total)[1][0]) / max(1, n_rows)
        weights = Weights(
            float(self.rules.alpha * scales.hessian_scale),
            float(self.rules.small_leaf_penalty * loss_unit),
            float(hessian_unit * scales.hessian_scale),
            scales.shift,
        )
        asked: list[Question] = []
        gains: list[float] = []
        small_is_right = np.zeros(1, dtype=np.bool_)
        words, before = total, -np.inf
        for number in range(self.rules.depth):
            permitted = useful if together is None else useful & together.any(axis=0)
            level = Level(number, small_is_right, permitted, weights, words)
            best = self._best(level)
            if best is None:
                break
            if number == 0:
                before, words = best.before, best.left + best.right
            if not best.gain > before + 1e-12 * abs(before):
                break
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
        self._columns = Columns(
            np.empty(0, dtype=np.bool_),
            np.array(n_bins, dtype=np.int32),
            np.array(has_missing, dtype=np.bool_),
            np.zeros(p, np.int8) if rules.monotone is None else np.array(rules.monotone, dtype=np.int8),
            np.empty((0, 4, 256)) if rules.smoothing is None else rules.smoothing,
        )
        self._permitted = self._used = np.empty(0, dtype=np.int64)  # of the level searched last
        children = np.empty((p, 2, 1 << max(0, rules.depth - 1)), dtype=np.int64)
        self._found = Found(np.empty(p), np.empty((p, 2), dtype=np.int32), children)  # at the level searched last

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
        if level.permitted is not self._columns.permitted:  # mostly the same on all levels of a tree
            self._columns = self._columns._replace(permitted=level.permitted)
            self._permitted = np.flatnonzero(level.permitted)
            # Only ever fewer: a block's histograms are those of the level before, divided.
            self._used = np.flatnonzero(np.bincount(self._block_of[self._permitted]))
        permitted, used = self._permitted, self._used
        if not len(permitted):
            return None
        before = self._search_blocks(used, level)
        gains = self._found.gains[permitted]
        best = int(np.argmax(gains))  # of equal gains the lowest feature's
        feature = int(permitted[best])
        code, side = int(self._found.questions[feature, 0]), bool(self._found.questions[feature, 1])
        left, right = self._found.children[feature, :, : 1 << level.number].copy()
        if not self.has_missing[feature]:  # what is missing for the first time at prediction goes with most of the rows
            mask = (1 << level.weights.shift) - 1
            side = bool((left & mask).sum() < (right & mask).sum())
        return Question(feature, code, side, before, float(gains[best]), left, right)

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
        rules, weights = self.rules, level.weights
        plain = rules.monotone is None and rules.smoothing is None and weights.penalty == 0.0
        # Beyond, the product of two denominators overflows.
        search = search_level if plain and weights.alpha < 1e100 else search_level_with_rules
        before: float = search(hist, 1 << level.number, features, self._columns, weights, self._found)
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
        if self.rules.small_leaf_penalty:
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


# One word holds both sums of a bin or a leaf: G in the high bits, H in the low `shift` bits.


@kernel
def search_level(hist, n_leaves, features, columns, weights, found):
    """Write the best border of each of some features over all leaves of a level to `found`; return Σ G²/H before it.

    A border b of a feature divides every leaf q of the level into a left child L (bins 0 … b) and a right child R. With
    G and H the sums of gradients and hessians in a child, the best border maximises

        Σ_q [ G_L² / (H_L + alpha) + G_R² / (H_R + alpha) ].

    Example: one leaf, alpha = 0, three bins with (G, H) = (4, 2), (-1, 1), (-3, 3), so that G = 0 and H = 6.
        border 0:  L = (4, 2),  R = (-4, 4):  16/2 + 16/4 = 12      <- best: gains = 12, code = 0
        border 1:  L = (3, 3),  R = (-3, 3):   9/3 +  9/3 =  6
    The objective before the question is 0² / 6 = 0, which is returned.

    `hist` is int64 (n_leaves, 256 * len(features)), one word for each bin. Of equal gains the lowest code wins, and
    missing values on the right. `search_level_with_rules` knows penalties, orders and fuzzy borders too.
    """
    totals = np.empty(n_leaves, dtype=np.int64)
    gain = np.empty((2, 256))
    words = np.empty((2, 256), dtype=np.int64)
    before, known = 0.0, False
    for j in range(features.size):
        f, start = features[j], 256 * j
        if not columns.permitted[f]:
            continue
        n_sides, n_borders = _candidates(f, columns)
        # Stage 1. Totals of each leaf: the same from any feature, so the first one gives them.
        if not known:
            before, known = _leaf_totals(hist, start, f, columns, weights, totals), True
        # Stage 2. The objective of every border. Divisions take most of the time: one for two gives estimates, and the
        # few borders that may be the best are computed as they are.
        _estimate_gains(hist, start, totals, n_sides, n_borders, weights, words, gain)
        _compute_largest(hist, start, totals, n_sides, n_borders, weights, words, gain)
        # Stage 3. The best border, and the sums in the children that it makes.
        _note_best(hist, start, f, columns, totals, n_sides, n_borders, gain, found)
    return before


@kernel
def search_level_with_rules(hist, n_leaves, features, columns, weights, found):
    """As `search_level`, with what small children cost, the order of their values, and fuzzy borders."""
    totals = np.empty(n_leaves, dtype=np.int64)
    gain = np.empty((2, 256))
    left = np.empty((2, 256))  # G and H of the left child by border
    words = np.empty((2, 256), dtype=np.int64)
    before, known = 0.0, False
    for j in range(features.size):
        f, start = features[j], 256 * j
        if not columns.permitted[f]:
            continue
        n_sides, n_borders = _candidates(f, columns)
        if not known:
            before, known = _leaf_totals(hist, start, f, columns, weights, totals), True
        _compute_gains(hist, start, totals, n_sides, n_borders, f, columns, weights, words, left, gain)
        _note_best(hist, start, f, columns, totals, n_sides, n_borders, gain, found)
    return before


@kernel
def _candidates(f, columns):
    """Number of sides for missing values, and of borders: the last bin is one where missing values can follow it."""
    if columns.missing[f]:
        return 2, columns.n_bins[f]
    return 1, columns.n_bins[f] - 1


@kernel
def _gradient(word, weights):
    return np.float64(word >> weights.shift)


@kernel
def _hessian(word, weights):
    return np.float64(word & ((np.int64(1) << weights.shift) - 1))


@kernel
def _penalty(H, weights):
    """What a child with hessian H costs: `penalty` if it is empty, half of that with the hessian of one row, …"""
    inverse = 1.0 / weights.row if weights.row > 0.0 else 0.0
    return weights.penalty / (1.0 + H * inverse) if weights.penalty > 0.0 else 0.0


@kernel
def _sum(hist, q, start, stop):
    total = np.int64(0)
    for i in range(start, stop):
        total += hist[q, i]
    return total


@kernel
def _leaf_totals(hist, start, f, columns, weights, totals):
    """Write the sum of words of each leaf to `totals`; return the objective of the leaves as they are."""
    before = 0.0
    for q in range(totals.size):
        totals[q] = _sum(hist, q, start, start + columns.n_bins[f])
        if columns.missing[f]:
            totals[q] += hist[q, start + MISSING]
        G, H = _gradient(totals[q], weights), _hessian(totals[q], weights)
        before += G * G / (max(H, 1.0) + weights.alpha) - _penalty(H, weights)
    return before


@kernel
def _left_words(hist, q, start, side, n_borders, words):
    """Running sums of a leaf's words: `words[side, b]` is the left child of border b."""
    total = hist[q, start + MISSING] if side == MISSING_LEFT else np.int64(0)
    for b in range(n_borders):
        total += hist[q, start + b]
        words[side, b] = total


@kernel
def _estimate_gains(hist, start, totals, n_sides, n_borders, weights, words, gain):
    """Write Σ_q G_L²/H_L + G_R²/H_R of each border over a common denominator: some units in the last place off."""
    for side in range(n_sides):
        for b in range(n_borders):
            gain[side, b] = 0.0
    for q in range(totals.size):
        G, H = _gradient(totals[q], weights), _hessian(totals[q], weights)
        for side in range(n_sides):
            _left_words(hist, q, start, side, n_borders, words)
            for b in range(n_borders):
                G_L, H_L = _gradient(words[side, b], weights), _hessian(words[side, b], weights)
                G_R, H_R = G - G_L, max(H - H_L, 1.0) + weights.alpha
                H_L = max(H_L, 1.0) + weights.alpha
                gain[side, b] += (G_L * G_L * H_R + G_R * G_R * H_L) / (H_L * H_R)


@kernel
def _compute_largest(hist, start, totals, n_sides, n_borders, weights, words, gain):
    """Replace estimates of gains by what they are where they may be the largest, and elsewhere by -inf.

    An estimate is off by some units in the last place for each leaf, less than 1e-11 of it.
    """
    least = 0.0
    for side in range(n_sides):
        for b in range(n_borders):
            least = max(least, gain[side, b])
    least *= 1.0 - 1e-11
    number = 0
    chosen = np.empty((512, 2), dtype=np.int64)
    for side in range(n_sides):
        for b in range(n_borders):
            if gain[side, b] < least:
                gain[side, b] = -np.inf
            else:
                gain[side, b], chosen[number, 0], chosen[number, 1] = 0.0, side, b
                number += 1
    few = number <= 8
    for q in range(totals.size):
        for side in range(0 if few else n_sides):
            _left_words(hist, q, start, side, n_borders, words)
        for i in range(number):
            side, b = chosen[i]
            word = words[side, b]
            if few:
                word = _sum(hist, q, start, start + b + 1)
                if side == MISSING_LEFT:
                    word += hist[q, start + MISSING]
            G, H = _gradient(word, weights), _hessian(word, weights)
            G_R, H_R = _gradient(totals[q], weights) - G, _hessian(totals[q], weights) - H
            gain[side, b] += G * G / (max(H, 1.0) + weights.alpha) + G_R * G_R / (max(H_R, 1.0) + weights.alpha)


@kernel
def _compute_gains(hist, start, totals, n_sides, n_borders, f, columns, weights, words, left, gain):
    """Write the objective of each border, with all rules: smoothing, order and penalty."""
    alpha, sign = weights.alpha, columns.monotone[f]
    for side in range(n_sides):
        for b in range(n_borders):
            gain[side, b] = 0.0
    for q in range(totals.size):
        G, H = _gradient(totals[q], weights), _hessian(totals[q], weights)
        whole = G * G / (max(H, 1.0) + alpha)
        for side in range(n_sides):
            # The sums in the left child; fuzzy borders then move a share of each bin to the other side.
            _left_words(hist, q, start, side, n_borders, words)
            for b in range(n_borders):
                left[0, b], left[1, b] = _gradient(words[side, b], weights), _hessian(words[side, b], weights)
            if columns.smoothing.shape[0]:
                _smooth(hist[q, start : start + 256], columns.n_bins[f], weights, columns.smoothing[f], left)
            # The children's values are -G_L/H_L and -G_R/H_R. Where they would break the order, the leaf stays whole.
            for b in range(n_borders):
                G_L, H_L = left[0, b], max(left[1, b], 1.0) + alpha
                G_R, H_R = G - G_L, max(H - left[1, b], 1.0) + alpha
                breaks_order = sign != 0 and sign * (G_L * H_R - G_R * H_L) < 0.0
                gain[side, b] += whole if breaks_order else G_L * G_L / H_L + G_R * G_R / H_R
            if weights.penalty > 0.0:
                for b in range(n_borders):
                    gain[side, b] -= _penalty(left[1, b], weights)
                    gain[side, b] -= _penalty(H - left[1, b], weights)


@kernel
def _note_best(hist, start, f, columns, totals, n_sides, n_borders, gain, found):
    """Write the largest gain of feature f, of equal ones the first, and its question and children to `found`."""
    best, code, at = -np.inf, 0, MISSING_LEFT
    for side in range(n_sides):
        for b in range(n_borders):
            if gain[side, b] > best:
                best, code, at = gain[side, b], b, side
    found.gains[f], found.questions[f, 0], found.questions[f, 1] = best, code, at == MISSING_RIGHT
    for q in range(totals.size):
        lower = _sum(hist, q, start, start + code + 1)
        if at == MISSING_LEFT and columns.missing[f]:
            lower += hist[q, start + MISSING]
        found.children[f, 0, q], found.children[f, 1, q] = lower, totals[q] - lower


@kernel
def _smooth(words, bins, weights, smoothing, left):
    """Move the share of each bin that fuzzy borders put on the other side, for every border in two sweeps.

    smoothing rows: mean of p^(stop - i) / ((1 - p) Z(i)) and of p^(i - start) / ((1 - p) Z(i)) over the bin's places,
    p^(width of the bin), and at [3, b] the place of border b, n at [3, 255], ln p at [2, 255]. See `places`.
    """
    n = smoothing[3, 255]
    log_p = smoothing[2, 255]
    # Below a border: P(right) = p^(b - stop) (1 - p^(n - b)) S_down.
    G, H = 0.0, 0.0
    for b in range(bins - 1):
        word = words[b]
        G = G * smoothing[2, b] + _gradient(word, weights) * smoothing[0, b]
        H = H * smoothing[2, b] + _hessian(word, weights) * smoothing[0, b]
        share = 1.0 - np.exp(log_p * (n - smoothing[3, b]))
        left[0, b] -= share * G
        left[1, b] -= share * H
    # Above it: P(left) = p^(start - b + 1) (1 - p^b) S_up.
    G, H = 0.0, 0.0
    p = np.exp(log_p)
    for b in range(bins - 2, -1, -1):
        word = words[b + 1]
        G = G * smoothing[2, b + 1] + _gradient(word, weights) * smoothing[1, b + 1]
        H = H * smoothing[2, b + 1] + _hessian(word, weights) * smoothing[1, b + 1]
        share = p * (1.0 - np.exp(log_p * smoothing[3, b]))
        left[0, b] += share * G
        left[1, b] += share * H
