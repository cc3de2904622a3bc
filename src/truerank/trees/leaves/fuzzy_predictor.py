"""Scores from fuzzy leaves: every tree's leaf values, averaged over the probability of each leaf.

The states of a task's values are found feature by feature, so that a feature's steps stay in the cache. Then each tile
of 64 rows answers every different question of the trees once, and the trees average their leaf values.

P(right) is a factor of the value times a factor of the border (`places`). The factors of a tile of values are read once
for all questions about a feature. They do not fit into a cache, and most values are in a knot, not in a gap: the
factors of a feature's knots are stored together (`knots_first`).

An average takes 63 interpolations a row for a tree of six levels. From the last level up, `a + P(right) (b - a)` halves
the number of values. One loop over 64 rows computes three levels, whose intermediate values stay in registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import row_blocks, run_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.steps import count_below
from truerank.trees.ensemble import Ensemble
from truerank.trees.leaves.places import FlatPlaces, Norms, knot_index, make_shares

ROWS = 64  # rows whose shares are stored together
_TASK = 32 * ROWS  # rows in a task of a thread: their values fit the second-level cache
_LEVELS = 768  # levels of a group of trees: the shares of their questions fit the second-level cache


class StateFactors(NamedTuple):
    """Factors of all values, one feature after the other."""

    first: np.ndarray  # int64 (u + 1,): offsets of the knots of each feature
    pairs: np.ndarray  # float64 (2 Σ(2K + 1),): factors of P(left) and P(right) by state, in the order of `knots_first`
    blocks: np.ndarray  # float64 (2, Σ(2K + 1)): first and last place of each state, for steep features
    steep: np.ndarray  # bool (u,)
    log_p: float


def knots_first(sizes: np.ndarray) -> np.ndarray:
    """Return the states of features with `sizes` knots, one feature after the other: states of knots, then of gaps.

    >>> knots_first(np.array([2, 1])).tolist()
    [1, 3, 0, 2, 4, 6, 5, 7]
    """
    first = offsets_of(2 * sizes + 1)[:-1].tolist()
    parts = [np.arange(a + i, a + 2 * k + 1, 2) for a, k in zip(first, sizes.tolist()) for i in (1, 0)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def leaves_in_order(values: np.ndarray) -> np.ndarray:
    """Return leaf values (trees, 2^d) with the answer to the first question as the first digit of the number.

    >>> leaves_in_order(np.array([[1.0, 2.0, 5.0, 7.0]])).tolist()
    [[1.0, 5.0, 2.0, 7.0]]
    """
    depth = values.shape[1].bit_length() - 1
    return np.ascontiguousarray(values.reshape(-1, *[2] * depth).transpose(0, *range(depth, 0, -1))).reshape(
        values.shape
    )


class Group(NamedTuple):
    """Some trees, and their different questions, feature by feature."""

    columns: np.ndarray  # int64: the features
    asked: np.ndarray  # int64 (features + 1,): offsets of the questions about each
    numbers: np.ndarray  # float64 (5 questions,): see `answer`
    questions: np.ndarray  # int64 (trees · depth,)
    values: np.ndarray  # float64 (trees · 2^depth,): as in `leaves_in_order`


class FuzzyPredictor:
    """Scores from fuzzy leaves.

    For each level (T, depth), `columns` is its used feature, `border_states` the last state left of its border, and
    `border_factors` (T, depth, 3) the border's factors in P(left) and P(right) and the training values at or below it.
    """

    def __init__(self, ensemble: Ensemble, flat: FlatPlaces, p: float, ties: str) -> None:
        self.features = flat.features
        tables = flat.tables()
        norms = Norms(p)
        shares = [make_shares(table, norms, ties) for table in tables]
        pairs = np.concatenate([np.empty((0, 2)), *(np.stack([s.up, s.down], axis=1) for s in shares)])
        self.factors = StateFactors(
            offsets_of(flat.sizes),
            pairs[knots_first(flat.sizes)].ravel(),
            np.concatenate([np.empty((2, 0)), *(np.stack([s.start, s.stop]) for s in shares)], axis=1),
            np.array([s.steep for s in shares], dtype=np.bool_),
            norms.log_p,
        )
        shape = ensemble.features.shape
        self.columns = np.searchsorted(flat.features, ensemble.features).astype(np.int64)
        self.border_states = np.empty(shape, dtype=np.int64)
        self.border_factors = np.empty((*shape, 3))
        for t, level in np.ndindex(*shape):
            k = int(self.columns[t, level])
            b, state = tables[k].place_of_border(float(ensemble.borders[t, level]))
            self.border_states[t, level] = state
            self.border_factors[t, level] = (*shares[k].border_factors(b), b)
        self.missing_right = ensemble.missing_right
        self.values = ensemble.values
        asked = np.stack([self.columns, self.border_states, self.missing_right], axis=-1).reshape(-1, 3)
        _, one, questions = np.unique(asked, axis=0, return_index=True, return_inverse=True)
        self._one, self._questions = one, questions.reshape(shape)
        self._ordered = leaves_in_order(self.values)
        index = knot_index([(table.lower, table.upper) for table in tables])
        self._index = {np.dtype(kind): index.of_type(kind) for kind in (np.float32, np.float64)}

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,) and return these."""
        used = np.unique(self.columns[trees])
        columns = np.searchsorted(used, np.arange(len(self.features)))
        index = self._index[X.dtype]
        n_trees, depth = self._questions[trees].shape
        step = max(1, _LEVELS // max(1, depth))
        groups = [self._group(trees, slice(i, i + step), columns) for i in range(0, n_trees, step)]

        def work(start: int, stop: int) -> None:
            states = _find_states(kernel_array(X[start:stop]), self.features[used], used, index)
            for group in groups:
                _add_trees(states, used, self.factors, group, depth, scores[start:stop])

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores

    def _group(self, trees: slice, group: slice, columns: np.ndarray) -> Group:
        """Return the arrays of some of the trees."""
        asked, questions = np.unique(self._questions[trees][group], return_inverse=True)
        one = self._one[asked]
        features, first_asked = np.unique(self.columns.ravel()[one], return_index=True)
        first_rights, sides = self.border_states.ravel()[one] + 1.0, self.missing_right.ravel()[one]
        numbers = np.column_stack([first_rights, self.border_factors.reshape(-1, 3)[one], sides])
        return Group(
            columns[features], np.append(first_asked, len(asked)), numbers.ravel(), questions.ravel(),
            self._ordered[trees][group].ravel(),
        )  # fmt: skip


@kernel
def _find_states(X, features, used, index):
    """Return the states of the rows' values, uint16 (tiles · features · 64)."""
    n = X.shape[0]
    n_tiles = -(-n // 64)
    values = np.empty((n_tiles, features.size, 64), dtype=X.dtype)
    values[n_tiles - 1] = 0.0  # rows of the last tile may be missing
    for i in range(n):
        x = X[i]
        tile = values[i // 64]
        for j in range(features.size):
            tile[j, i % 64] = x[features[j]]
    states = np.empty((n_tiles, features.size, 64), dtype=np.uint16)
    flat, found = values.ravel(), states.ravel()
    for j in range(used.size):
        for t in range(n_tiles):
            at = 64 * (t * used.size + j)
            count_below(flat, at, at + 64, index, used[j], index.sizes[used[j]] + 1, found)
    return found


@kernel
def _add_trees(states, used, factors, group, depth, scores):
    """Add the expected leaf value of every tree of a group to the scores (n,), tile by tile."""
    n_tiles = -(-scores.size // 64)
    n_trees = group.values.size >> depth
    shares = np.empty((group.numbers.size // 5, 64))
    room = 1 << (depth - 3 if depth > 2 else depth)
    work, spare = np.empty((room, 64)), np.empty((room, 64))
    total = np.zeros(64)
    for t in range(n_tiles):
        rows = min(64, scores.size - 64 * t)
        for j in range(group.columns.size):
            c = group.columns[j]
            at = 64 * (t * used.size + c)
            answer(states, at, factors, used[c], group.asked[j], group.asked[j + 1], group.numbers, shares)
        for i in range(rows):
            total[i] = scores[64 * t + i]
        add_averages(shares, group.questions, group.values, depth, np.int64(0), n_trees, work, spare, total)
        for i in range(rows):
            scores[64 * t + i] = total[i]


@kernel
def answer(states, at, factors, k, first, end, questions, shares):
    """Write P(right) of the rows of a tile in the questions `first` … `end - 1`, all about feature k, to `shares`.

    `states` are read from `at` on. `questions` has five numbers for each: the first state right of the border, the
    border's factors in P(left) and P(right), the places at or below it, and P(right) of a missing value.
    """
    knots = factors.first[k + 1] - factors.first[k]
    origin, lost = 2 * factors.first[k] + k, 2 * knots + 1
    own, pairs = states[at : at + 64], factors.pairs
    state, up, down = np.empty(64), np.empty(64), np.empty(64)
    missing = 0
    for i in range(64):
        here = np.int64(own[i])
        missing += here == lost
        state[i] = here
        some = here if here < lost else 0  # of a missing value any: its factors are not used
        pair = np.uint64(2 * (origin + (some >> 1) + (0 if some & 1 else knots)))
        up[i], down[i] = pairs[pair], pairs[pair + np.uint64(1)]
    for q in range(first, end):
        border, left, right = questions[5 * q], questions[5 * q + 1], questions[5 * q + 2]
        for i in range(64):
            above, below = 1.0 - up[i] * left, down[i] * right
            shares[q, i] = above if state[i] >= border else below
    if factors.steep[k]:
        _answer_steeply(states, at, factors, k, first, end, questions, shares)
    for i in range(64 if missing > 0 else 0):
        if state[i] == lost:
            for q in range(first, end):
                shares[q, i] = questions[5 * q + 4]


@kernel
def _answer_steeply(states, at, factors, k, first, end, questions, shares):
    """Like `answer`, for observed values of a steep feature, whose factors do not include the powers of p."""
    knots = factors.first[k + 1] - factors.first[k]
    origin, lost = 2 * factors.first[k] + k, 2 * knots + 1
    for i in range(64):
        own = np.int64(states[at + i])
        if own == lost:
            continue
        pair = 2 * (origin + (own >> 1) + (0 if own & 1 else knots))
        up, down = factors.pairs[pair], factors.pairs[pair + 1]
        start, stop = factors.blocks[0, origin + own], factors.blocks[1, origin + own]
        for q in range(first, end):
            b = questions[5 * q + 3]
            if own >= questions[5 * q]:
                shares[q, i] = 1.0 - up * np.exp(factors.log_p * (start - b + 1.0)) * questions[5 * q + 1]
            else:
                shares[q, i] = down * np.exp(factors.log_p * (b - stop)) * questions[5 * q + 2]


@kernel
def add_averages(shares, questions, values, depth, start, stop, work, spare, total):
    """Add the averages of trees start … stop - 1 of 64 rows to `total` (64,).

    `shares` (questions, 64) are P(right) of the rows, `questions` (trees · depth) those of each tree, `values`
    (trees · 2^depth) as in `leaves_in_order`. `work` and `spare` (2^depth, 64; from depth 3 an eighth) are scratch.
    """
    for tree in range(start, stop):
        first, leaf, level, size = depth * tree, tree << depth, depth, 1 << depth
        if depth < 3:
            for q in range(size):
                for i in range(64):
                    work[q, i] = values[leaf + q]
        else:
            level, size = depth - 3, size >> 3
            for q in range(size):
                _average_leaves(values, leaf + 8 * q, shares, questions, first + level, work, q)
        while level >= 3:
            level, size = level - 3, size >> 3
            for q in range(size):
                _average_three(work, 8 * q, shares, questions, first + level, spare, q)
            work, spare = spare, work
        while level > 0:
            level, size = level - 1, size >> 1
            r = questions[first + level]
            for q in range(size):
                for i in range(64):
                    left, right = work[2 * q, i], work[2 * q + 1, i]
                    spare[q, i] = left + shares[r, i] * (right - left)
            work, spare = spare, work
        for i in range(64):
            total[i] += work[0, i]


@kernel
def _average_leaves(values, at, shares, questions, question, result, out):
    """Average eight leaf values from `at` on over three questions into `result[out]`, for each of 64 rows."""
    r, s, t = questions[question], questions[question + 1], questions[question + 2]
    a, b, c, d = values[at], values[at + 2], values[at + 4], values[at + 6]
    to_a, to_b, to_c, to_d = values[at + 1] - a, values[at + 3] - b, values[at + 5] - c, values[at + 7] - d
    for i in range(64):
        last, middle = shares[t, i], shares[s, i]
        left, right = a + last * to_a, c + last * to_c
        left += middle * (b + last * to_b - left)
        right += middle * (d + last * to_d - right)
        result[out, i] = left + shares[r, i] * (right - left)


@kernel
def _average_three(values, at, shares, questions, question, result, out):
    """Like `_average_leaves`, of eight values that differ between rows."""
    r, s, t = questions[question], questions[question + 1], questions[question + 2]
    for i in range(64):
        last, middle = shares[t, i], shares[s, i]
        left, b, right, d = values[at, i], values[at + 2, i], values[at + 4, i], values[at + 6, i]
        left += last * (values[at + 1, i] - left)
        b += last * (values[at + 3, i] - b)
        right += last * (values[at + 5, i] - right)
        d += last * (values[at + 7, i] - d)
        left += middle * (b - left)
        right += middle * (d - right)
        result[out, i] = left + shares[r, i] * (right - left)
