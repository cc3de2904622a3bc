"""Leaf values averaged over the answers of all levels: 63 interpolations a row for a tree of six levels.

From the last level up, interpolations `a + P(right) (b - a)` halve the number of values. Three levels are one loop over
64 rows, whose intermediate values stay in registers.
"""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel

ROWS = 64  # rows whose shares are stored together


def leaves_in_order(values: np.ndarray) -> np.ndarray:
    """Return leaf values (trees, 2^d) with the answer to the first question as the first digit of the number.

    >>> leaves_in_order(np.array([[1.0, 2.0, 5.0, 7.0]])).tolist()
    [[1.0, 5.0, 2.0, 7.0]]
    """
    depth = values.shape[1].bit_length() - 1
    return np.ascontiguousarray(values.reshape(-1, *[2] * depth).transpose(0, *range(depth, 0, -1))).reshape(
        values.shape
    )


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
    """As `_average_leaves`, of eight values that differ between rows."""
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
