"""Level search: each level of a tree asks one question, which all leaves of the level share.

With gradients g and hessians h of the sampled rows, a level asks the (feature, border) that maximises

    Σ_leaves G² / (H + alpha)  -  penalty(leaves),     G = Σ g, H = Σ h over the rows of a leaf.

For squared error (g = score - y, h = 1, alpha = 0), this minimises the squared error within the new leaves. A new level
reads only the rows of the smaller child of each leaf; the other child is the difference from the parent. Missing values
are tried on both sides.

The penalty is `small_leaf_penalty * s² / (1 + n_l)`, summed over the leaves: n_l is the leaf's hessian divided by the
mean hessian of a row, and s² = Σg²/Σh is the loss of a row. The thesis does not specify the form of the penalty.

The number of a leaf has bit t set if the answer at level t was no (`x > c`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.matrices.binning import BLOCK, MISSING, CodedMatrix, column_slots
from truerank.matrices.exact_sums import exact_parts
from truerank.trees.histogram import (
    PackedGradients,
    PackingScales,
    SampledRows,
    answer,
    loss_unit_of,
    split_histograms,
    squared_losses,
)

_ROWS = 65_536
_TASK = 250_000  # nanoseconds of a thread's task; several blocks of features make one
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
        return len(self.features)


@dataclass(frozen=True)
class GrowthRules:
    """The objective and constraints of the level search."""

    depth: int
    alpha: float = 0.0  # added to each leaf's hessian
    small_leaf_penalty: float = 0.0
    monotone: np.ndarray | None = None  # int8 (p,): 1, scores must not fall in the feature; -1, not rise; 0, free
    # float64 (p, 4, 256): smoothing of the histograms by fuzzy borders (see `places`); None searches plain borders
    smoothing: np.ndarray | None = None
    together: np.ndarray | None = None  # bool (sets, p): the features of a tree must all be in one of these sets


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
    """Properties of each feature: arrays (p,), and `smoothing` (p, 4, 256), or (0, 4, 256) for plain borders."""

    n_bins: np.ndarray  # int32: bins in use, without the one of missing values
    missing: np.ndarray  # bool: the feature has missing values
    monotone: np.ndarray  # int8: 1, scores must not fall in the feature; -1, not rise; 0, free
    smoothing: np.ndarray


class Weights(NamedTuple):
    """The constants of the objective, in packed units."""

    alpha: float  # added to the hessian of each leaf
    penalty: float  # cost of an empty leaf
    row: float  # mean hessian of a row
    shift: int  # a word holds G << shift | H


class Found(NamedTuple):
    """The best question of each feature, in arrays over p that kernels write."""

    gains: np.ndarray  # float64 (p,): the objective after the question; -inf where another feature's is larger
    questions: np.ndarray  # int32 (p, 2): code of the border; 1 if missing values go right
    children: np.ndarray  # int64 (p, 2, leaves): sums of words in the left and the right child of each leaf


@dataclass(frozen=True)
class Level:
    """A level before its question is selected."""

    number: int  # the level has `2^number` leaves
    small_is_right: np.ndarray  # bool (leaves of the previous level,): whether the rows of the right child are read
    permitted: np.ndarray  # bool (p,): the features that it may ask about, a subset of those of the previous level
    weights: Weights
    totals: np.ndarray | None  # int64 (leaves,): sums of words; None if no rows are packed yet


class LevelSearch:
    """Base class of the level search. A subclass implements `_best` and `_ask`, for rows in memory or in partitions."""

    def __init__(self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules) -> None:
        self.n_bins, self.has_missing, self.rules = n_bins, has_missing, rules

    def _best(self, level: Level) -> Question | None:
        """Return the best permitted question of a level."""
        raise NotImplementedError

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        """Answer the question for the rows; return `small_is_right` of the next level."""
        raise NotImplementedError

    def _search(
        self,
        allowed: np.ndarray,
        scales: PackingScales,
        n_rows: float,
        total: np.ndarray | None,
        loss_unit: float = 0.0,
    ) -> TreeStructure:
        """Grow a tree; `total` (1,) is the sum of the words of `n_rows` rows, or None without a penalty for small
        leaves.
        """
        together = self.rules.together
        useful = allowed & ((self.n_bins > 1) | self.has_missing)
        hessian_unit = 0.0
        if total is not None:
            hessian_unit = float(scales.unpack(total)[1][0]) / max(1, n_rows)
        weights = Weights(
            float(self.rules.alpha * scales.hessian_scale),
            float(self.rules.small_leaf_penalty * loss_unit),
            float(hessian_unit * scales.hessian_scale),
            scales.shift,
        )
        features, codes, sides, gains = [], [], [], []
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
            features.append(best.feature)
            codes.append(best.code)
            sides.append(best.missing_right)
            gains.append((best.gain - before) * scales.hessian_scale / scales.gradient_scale**2)
            before, words = best.gain, np.concatenate([best.left, best.right])
            small_is_right = self._ask(level, best)
        assert words is not None
        return TreeStructure(
            np.array(features, dtype=np.int32),
            np.array(codes, dtype=np.int32),
            np.array(sides, dtype=np.bool_),
            np.array(gains, dtype=np.float64),
            *scales.unpack(words),
        )


class HistogramSearch(LevelSearch):
    """A level search over histograms, filled by a subclass (`_begin`, `_fill`); 2 KB for each feature and leaf."""

    def __init__(self, n_bins: np.ndarray, has_missing: np.ndarray, rules: GrowthRules, workers: Workers) -> None:
        super().__init__(n_bins, has_missing, rules)
        self.workers = workers
        p = len(n_bins)
        self._slots, self._used = self._blocks()
        self.block_of = self._slots // BLOCK
        n_leaves = 1 << max(0, rules.depth - 1)
        self._hist = np.zeros((len(self._used) // BLOCK, n_leaves, BLOCK * 256), dtype=np.int64)
        self._columns = Columns(
            np.array(n_bins, dtype=np.int32),
            np.array(has_missing, dtype=np.bool_),
            np.zeros(p, np.int8) if rules.monotone is None else np.array(rules.monotone, dtype=np.int8),
            np.empty((0, 4, 256)) if rules.smoothing is None else rules.smoothing,
        )
        self._permitted: np.ndarray | None = None
        self._codes_of_block = np.full(int(self.block_of.max(initial=0)) + 1, _TASK)
        self._codes_of_block[: len(self._hist)] = self._used.reshape(-1, BLOCK).sum(axis=1)
        children = np.empty((p, 2, n_leaves), dtype=np.int64)
        self._found = Found(np.empty(p), np.empty((p, 2), dtype=np.int32), children)

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the slot of each feature, int64 (p,), eight in a block, and the number of used codes of each slot
        without the code of missing values, int64 (8 blocks,). Blocks without used codes have no histograms.
        """
        slots = column_slots(self.n_bins)
        used = np.zeros(-(-len(slots) // BLOCK) * BLOCK, dtype=np.int64)
        used[slots] = np.minimum(self.n_bins, MISSING)
        return slots, used

    def _begin(self, level: Level) -> int:
        """Prepare the rows of a level; return the number of rows that `_fill` reads."""
        raise NotImplementedError

    def _fill(self, level: Level, blocks: np.ndarray) -> None:
        """Write histograms of blocks, for the root or the smaller child of each leaf, after those of the parents."""
        raise NotImplementedError

    def _best(self, level: Level) -> Question | None:
        if level.permitted is not self._permitted:  # mostly the same on all levels of a tree
            self._permitted = level.permitted
            permitted = np.flatnonzero(level.permitted)
            self._features = permitted[np.argsort(self.block_of[permitted], kind="stable")]
            self._present, first = np.unique(self.block_of[self._features], return_index=True)
            self._first = [*first.tolist(), len(permitted)]
            self._codes = self._codes_of_block[self._present]
        if not len(self._features):
            return None
        tasks = self._tasks(self._begin(level), 1 << level.number)
        before = self.workers.run(partial(self._search_blocks, level), tasks)[-1]
        gains = np.where(level.permitted, self._found.gains, -np.inf)
        feature = int(np.argmax(gains))  # of equal gains that of the lowest feature
        code, side = int(self._found.questions[feature, 0]), bool(self._found.questions[feature, 1])
        children = self._found.children[feature, :, : 1 << level.number].copy()
        if not self.has_missing[feature]:  # values that are missing in prediction only go with most of the rows
            left, right = (children.sum(axis=1) & ((1 << level.weights.shift) - 1)).tolist()  # sums of hessians
            side = left < right
        return Question(feature, code, side, before, float(gains[feature]), *children)

    def _tasks(self, n_rows: int, n_leaves: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the blocks of each task, and their features that the level may ask about.

        A row in a block takes about 5 ns, and so does a code in a leaf.
        """
        ends = np.cumsum(5 * (n_rows + n_leaves * self._codes)) // _TASK
        cuts = [0, *(np.flatnonzero(ends[1:] > ends[:-1]) + 1).tolist(), len(ends)]
        first = self._first
        return [(self._present[a:b], self._features[first[a] : first[b]]) for a, b in zip(cuts[:-1], cuts[1:])]

    def _search_blocks(self, level: Level, blocks: np.ndarray, features: np.ndarray) -> float:
        """Fill the histograms of blocks, and find the best question about their features; see `search_level`."""
        kept = blocks[: np.searchsorted(blocks, len(self._hist))]
        self._fill(level, kept)
        if level.number:
            split_histograms(self._hist, kept, self._used, level.small_is_right)
        return self._search_features(self._hist, self._slots[features], features, level)

    def _search_features(self, hist: np.ndarray, places: np.ndarray, features: np.ndarray, level: Level) -> float:
        rules, weights = self.rules, level.weights
        plain = rules.monotone is None and rules.smoothing is None and weights.penalty == 0.0
        # Beyond, the product of two denominators overflows.
        search = search_level if plain and weights.alpha < 1e100 else search_level_with_rules
        before: float = search(hist, 1 << level.number, places, features, self._columns, weights, self._found)
        return before


class Grower(HistogramSearch):
    """A grower of trees over one coded matrix."""

    def __init__(self, matrix: CodedMatrix, rules: GrowthRules, workers: Workers) -> None:
        super().__init__(matrix.n_bins, matrix.has_missing, rules, workers)
        self.matrix = matrix

    def grow(self, packed: PackedGradients, allowed: np.ndarray, counted: float | None = None) -> TreeStructure:
        """Grow a tree of at most `rules.depth` levels from the features `allowed` (p,).

        Growth ends early if no allowed question improves the objective. The sample counts as `counted` rows.
        """
        self._sampled = SampledRows(self.matrix, packed, self.workers)
        total, n_rows = packed.words.sum(keepdims=True), len(packed.rows)
        loss_unit = 0.0
        if self.rules.small_leaf_penalty:
            loss_unit = loss_unit_of(exact_parts(squared_losses(packed)), total, packed.scales.shift)
        tree = self._search(allowed, packed.scales, n_rows if counted is None else counted, total, loss_unit)
        leaf = self._sampled.leaf
        del self._sampled
        return replace(tree, leaf=leaf if n_rows == self.matrix.codes.shape[1] else None)

    def _begin(self, level: Level) -> int:
        return self._sampled.gather(level.number, level.small_is_right)

    def _fill(self, level: Level, blocks: np.ndarray) -> None:
        self._sampled.fill(blocks, self._hist, blocks, (1 << level.number) >> 1, self._used)

    def _ask(self, level: Level, question: Question) -> np.ndarray:
        count = self._sampled.ask(level.number, question.feature, question.code, question.missing_right)
        leaves = 1 << level.number
        return count[leaves:] <= count[:leaves]


def leaf_numbers(matrix: CodedMatrix, tree: TreeStructure, workers: Workers) -> np.ndarray:
    """Return the leaf of every row, int32 (n,)."""
    leaf, everyone = np.zeros(matrix.n_rows, dtype=np.int32), np.empty(0, dtype=np.int32)
    for level in range(tree.depth):
        codes = matrix.codes_at(int(tree.features[level]))
        question = level, int(tree.codes[level]), bool(tree.missing_right[level])
        workers.run(partial(answer, *codes, everyone, leaf, *question), row_blocks(matrix.n_rows, _ROWS))
    return leaf


# One word holds both sums of a bin or a leaf: G in the high bits, H in the low `shift` bits.


@kernel
def search_level(hist, n_leaves, places, features, columns, weights, found):
    """Write the best border of features over all leaves of a level to `found`; return the objective before it.

    A border b of a feature divides every leaf q of the level into a left child L (bins 0 … b) and a right child R. With
    G and H the sums of gradients and hessians in a child, the best border maximises

        Σ_q [ G_L² / (H_L + alpha) + G_R² / (H_R + alpha) ].

    Example: one leaf, alpha = 0, three bins with (G, H) = (4, 2), (-1, 1), (-3, 3), so that G = 0 and H = 6.
        border 0:  L = (4, 2),  R = (-4, 4):  16/2 + 16/4 = 12      <- best: gains = 12, code = 0
        border 1:  L = (3, 3),  R = (-3, 3):   9/3 +  9/3 =  6
    The objective before the question is 0² / 6 = 0, which is returned.

    `hist` is int64 (blocks, n_leaves, 256 * width), one word for each bin; feature `features[j]` is at `places[j]`,
    counted over all blocks. Of equal gains, missing values on the right are selected, then the lowest code. A feature
    that an earlier one surpasses is not computed to the end: its gain is -inf. `search_level_with_rules` adds
    penalties, monotone features and fuzzy borders, and computes every feature.
    """
    totals = np.empty(n_leaves, dtype=np.int64)
    gain = np.empty((2, 256))
    words = np.empty((2, 256), dtype=np.int64)
    least = 0.0
    before, known, width = 0.0, False, hist.shape[2] >> 8
    for j in range(features.size):
        f, own, start = features[j], hist[places[j] // width], 256 * (places[j] % width)
        n_sides, n_borders = _candidates(f, columns)
        # Stage 1. Compute the totals of each leaf from the first feature, as all features have the same.
        if not known:
            before, known = _leaf_totals(own, start, f, columns, weights, totals), True
        # Stage 2. Compute the objective of every border. Divisions are slow: first estimate two borders with one
        # division, then compute only those that may be the best of all features so far.
        largest = _estimate_gains(own, start, totals, n_sides, n_borders, weights, words, gain)
        if largest < least:
            found.gains[f] = -np.inf
            continue
        least = largest * (1.0 - 1e-11)
        _compute_largest(own, start, totals, n_sides, n_borders, least, weights, words, gain)
        # Stage 3. Store the best border, and the sums in its children.
        _note_best(own, start, f, columns, totals, n_sides, n_borders, gain, found)
    return before


@kernel
def search_level_with_rules(hist, n_leaves, places, features, columns, weights, found):
    """Extend `search_level` by the penalty of small children, monotone features and fuzzy borders."""
    totals = np.empty(n_leaves, dtype=np.int64)
    gain = np.empty((2, 256))
    left = np.empty((2, 256))  # G and H of the left child by border
    words = np.empty((2, 256), dtype=np.int64)
    before, known, width = 0.0, False, hist.shape[2] >> 8
    for j in range(features.size):
        f, own, start = features[j], hist[places[j] // width], 256 * (places[j] % width)
        n_sides, n_borders = _candidates(f, columns)
        if not known:
            before, known = _leaf_totals(own, start, f, columns, weights, totals), True
        _compute_gains(own, start, totals, n_sides, n_borders, f, columns, weights, words, left, gain)
        _note_best(own, start, f, columns, totals, n_sides, n_borders, gain, found)
    return before


@kernel
def _candidates(f, columns):
    """Return the numbers of sides for missing values and of borders; with missing values, the last bin is a border."""
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
    """Return the cost of a child with hessian H: `penalty` if it is empty, half of it for the hessian of one row, …"""
    inverse = 1.0 / weights.row if weights.row > 0.0 else 0.0
    return weights.penalty / (1.0 + H * inverse) if weights.penalty > 0.0 else 0.0


@kernel
def _sum(hist, q, start, stop):
    own = hist[q, start:stop]
    total = np.int64(0)
    for i in range(own.size):
        total += own[i]
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
    """Write running sums of a leaf's words: `words[side, b]` is the left child of border b."""
    total = hist[q, start + MISSING] if side == MISSING_LEFT else np.int64(0)
    for b in range(n_borders):
        total += hist[q, np.uint64(start + b)]
        words[side, np.uint64(b)] = total


@kernel
def _estimate_gains(hist, start, totals, n_sides, n_borders, weights, words, gain):
    """Write Σ_q G_L²/H_L + G_R²/H_R of each border over a common denominator, accurate to some units in the last place.

    Return the largest.
    """
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
    largest = 0.0
    for side in range(n_sides):
        for b in range(n_borders):
            largest = max(largest, gain[side, b])
    return largest


@kernel
def _compute_largest(hist, start, totals, n_sides, n_borders, least, weights, words, gain):
    """Replace estimates that may be the largest, given errors below 1e-11, by exact gains, and all others by -inf."""
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
            # The children's values are -G_L/H_L and -G_R/H_R. If they violate the order, the leaf is not split.
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
    """Write the first largest gain of feature f, with its question and children, to `found`."""
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
    """Move the share of each bin that fuzzy borders put on the other side, for all borders in two sweeps.

    Rows of `smoothing`: means of p^(stop - i) / ((1 - p) Z(i)) and of p^(i - start) / ((1 - p) Z(i)) over the positions
    of each bin, p^(width of the bin), and the position of border b at [3, b]; ln p at [2, 255], n at [3, 255]. See
    `places`.
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
