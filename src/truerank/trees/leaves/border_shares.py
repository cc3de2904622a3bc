"""P(right) of the rows of a tile in the questions about one feature.

P(right) is a factor of the value times a factor of the border (`places`). The factors of a tile's values are read once
for all questions about a feature. They do not fit into a cache, and most values are in a knot, not in a gap: the
factors of a feature's knots are stored together (`knots_first`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.core.kernel import kernel
from truerank.data.grouping import offsets_of


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
    """As `answer`, for observed values of a steep feature, whose factors do not include the powers of p."""
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
