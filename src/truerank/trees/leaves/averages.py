"""Leaf values averaged over the answers of all levels: 63 interpolations a row for a tree of six levels.

The last level is first: 2^(d-1) interpolations turn 2^d values into half as many, and so on. The values on both sides
of a last question stand together as a *pair*: the left one, and the way from there to the right one.

Written as loops over rows, this would keep every number in memory from one loop to the next and take half of the width
of a processor that computes with eight numbers at once. So the sums of up to six levels are laid out one by one, for
two times eight rows: values wait in registers until their neighbours are there, and a sum that waits for another finds
one that does not. Processors with narrower registers take eight numbers in parts. Each product, difference and sum is
rounded by itself, in the order of the loops: the same bits.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from truerank.core.kernel import kernel
from truerank.core.kernel_vectors import in_all

_LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), _LANES)


def leaf_pairs(values: np.ndarray) -> np.ndarray:
    """The pairs (trees, 2^d) of leaf values (trees, 2^d), in the order in which they meet.

    A pair's place is the answers to all questions but the last as binary digits, that to the first question first: the
    level before the last brings neighbours together, the one before that brings neighbours among what is left.

    >>> leaf_pairs(np.array([[1.0, 2.0, 5.0, 7.0]])).tolist()
    [[1.0, 4.0, 2.0, 5.0]]
    """
    depth = values.shape[1].bit_length() - 1
    if depth == 0:
        return np.ascontiguousarray(values)
    left, right = np.moveaxis(values.reshape(-1, *[2] * depth), 1, 0)  # the last level's answer is the first axis
    pairs = np.stack([left, right - left], axis=-1)
    return np.ascontiguousarray(pairs.transpose(0, *range(depth - 1, 0, -1), depth)).reshape(values.shape)


def _add_average(
    context: Any, levels: Any, shares: Any, questions: Any, first: Any, row: Any, pairs: Any, pair: Any,
    out: Any, at: Any,
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = arguments[3].type
        shares, questions, pairs, out = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (1, 2, 5, 7)
        )
        _, _, _, first, row, _, pair, _, at = arguments

        def both(start: Any, index: Any) -> list[Any]:
            """Places of two times eight numbers."""
            ends = [builder.add(index, number(lanes)) for lanes in (0, _LANES)]
            return [builder.bitcast(builder.gep(start, [end]), _VECTOR.as_pointer()) for end in ends]

        def of_all(index: Any) -> Any:
            return in_all(builder, builder.load(builder.gep(pairs, [index])), _LANES)

        rights = []  # of the levels, the first one first
        for level in range(levels.literal_value):
            question = builder.load(builder.gep(questions, [builder.add(first, number(level))]))
            places = both(shares, builder.add(builder.mul(question, number(ROWS)), row))
            rights.append([builder.load(place, align=8) for place in places])

        def average(level: int, pair_number: int) -> list[Any]:
            """Averages over this level and all after it, where the answers before it lead to this pair."""
            if level == levels.literal_value - 1:
                start = builder.add(pair, number(2 * pair_number))
                start, way = of_all(start), of_all(builder.add(start, number(1)))
                return [builder.fadd(start, builder.fmul(right, way)) for right in rights[level]]
            left = average(level + 1, 2 * pair_number)
            right = average(level + 1, 2 * pair_number + 1)
            return [
                builder.fadd(a, builder.fmul(share, builder.fsub(b, a)))
                for share, a, b in zip(rights[level], left, right)
            ]

        for value, place in zip(average(0, 0), both(out, at)):
            builder.store(builder.fadd(builder.load(place, align=8), value), place, align=8)
        return context.get_dummy_value()

    if isinstance(levels, types.IntegerLiteral):
        return types.void(
            levels, shares, questions, types.intp, types.intp, pairs, types.intp, out, types.intp
        ), generate
    return None


def _add_average_plainly(
    levels: int, shares: Any, questions: Any, first: int, row: int, pairs: Any, pair: int, out: Any, at: int
) -> None:
    rows = slice(row, row + 2 * _LANES)
    rights = shares.reshape(-1, ROWS)[questions[first : first + levels], rows]
    start, way = pairs[pair : pair + (1 << levels)].reshape(-1, 2).T
    values = start[:, None] + rights[-1] * way[:, None]
    for right in rights[-2::-1]:
        left = values[::2]
        values = left + right * (values[1::2] - left)
    out[at : at + 2 * _LANES] += values[0]


# `_add_rows(levels, shares, questions, first, row, pairs, pair, out, at)` in a kernel adds the averages of the sixteen
# rows from `row` on to `out` from `at` on. `levels` is a constant, the tree's questions stand from `first` on and its
# pairs from `pair` on; else as in `add_averages`.
_add_rows: Any = (
    _add_average_plainly
    if numba.config.DISABLE_JIT  # type: ignore[attr-defined]
    else intrinsic(prefer_literal=True)(_add_average)
)

ROWS = 64  # whose shares stand together


@kernel
def add_averages(shares, questions, pairs, depth, start, stop, work, total):
    """Add the averages of trees start … stop - 1 of 64 rows to `total` (64,). Many arguments: four are the trees.

    `shares` has P(right) of 64 rows for each question, one question after the other. `questions` (trees · depth) and
    `pairs` (trees · 2^depth) are those of one tree after the other, `work` has room for 2^depth. All are flat: views
    would be counted and discounted once a tree. The choice of the depth stands outside, where it costs nothing.
    """
    if depth == 0:
        for tree in range(start, stop):
            for i in range(64):
                total[i] += pairs[tree]
    elif depth == 1:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(1, shares, questions, tree, row, pairs, 2 * tree, total, row)
    elif depth == 2:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(2, shares, questions, 2 * tree, row, pairs, 4 * tree, total, row)
    elif depth == 3:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(3, shares, questions, 3 * tree, row, pairs, 8 * tree, total, row)
    elif depth == 4:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(4, shares, questions, 4 * tree, row, pairs, 16 * tree, total, row)
    elif depth == 5:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(5, shares, questions, 5 * tree, row, pairs, 32 * tree, total, row)
    elif depth == 6:
        for tree in range(start, stop):
            for row in range(0, 64, 16):
                _add_rows(6, shares, questions, 6 * tree, row, pairs, 64 * tree, total, row)
    else:
        for tree in range(start, stop):
            first = depth * tree
            size = 1 << (depth - 6)
            for q in range(size):
                for row in range(0, 64, 16):
                    at = 64 * q + row
                    work[at : at + 16] = -0.0  # nothing, to the bit: 0.0 would change the sign of a zero
                    _add_rows(6, shares, questions, first + depth - 6, row, pairs, (tree << depth) + 64 * q, work, at)
            for level in range(depth - 7, -1, -1):
                size >>= 1
                right = 64 * questions[first + level]
                for q in range(size):
                    for i in range(64):
                        a, b = work[128 * q + i], work[128 * q + 64 + i]
                        work[64 * q + i] = a + shares[right + i] * (b - a)
            for i in range(64):
                total[i] += work[i]
