"""P(right) of the rows of a tile in the questions about one feature.

Shares are a factor of the value times a factor of the border (`places`). A value's factors are read once and wait in
registers while all the feature's questions are answered, for sixteen rows at once. Steep features, whose factors are
powers of a difference of places, are answered row by row.

The factors of all features are more than a cache holds, and most values are in a knot, not in a gap between two: the
factors of a feature's knots stand together (`knots_first`), so that more of what is read is read again.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from truerank.core.kernel import kernel
from truerank.core.kernel_vectors import gather, in_all
from truerank.data.grouping import offsets_of

_LANES = 16
_NUMBER, _REAL = ir.IntType(32), ir.DoubleType()
_STATES, _SHARES = ir.VectorType(_NUMBER, _LANES), ir.VectorType(_REAL, _LANES)


def _answer_sixteen(
    context: Any, states: Any, at: Any, factors: Any, origin: Any, lost: Any, first: Any, end: Any, questions: Any,
    shares: Any, row: Any,
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        states, factors, questions, shares = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2, 7, 8)
        )
        _, at, _, origin, lost, first, end, _, _, row = arguments
        number = at.type

        def all_of(value: Any) -> Any:
            return in_all(builder, value, _LANES)

        place = builder.bitcast(builder.gep(states, [at]), ir.VectorType(ir.IntType(16), _LANES).as_pointer())
        state = builder.zext(builder.load(place, align=2), _STATES)
        is_lost = builder.icmp_unsigned("==", state, all_of(builder.trunc(lost, _NUMBER)))
        some = builder.select(is_lost, ir.Constant(_STATES, [0] * _LANES), state)  # of a missing value any, not used
        half, knots = builder.lshr(some, ir.Constant(_STATES, [1] * _LANES)), builder.lshr(lost, number(1))
        in_knot = builder.trunc(some, ir.VectorType(ir.IntType(1), _LANES))
        some = builder.select(in_knot, half, builder.add(half, all_of(builder.trunc(knots, _NUMBER))))
        pair = builder.gep(factors, [builder.mul(origin, number(2))])
        up = gather(builder, pair, some, _REAL, 16)
        down = gather(builder, builder.gep(pair, [number(1)]), some, _REAL, 16)
        with cgutils.for_range(builder, builder.sub(end, first)) as loop:
            question = builder.add(first, loop.index)
            start = builder.gep(questions, [builder.mul(question, number(5))])
            first_right, left, right, side = (builder.load(builder.gep(start, [number(i)])) for i in (0, 1, 2, 4))
            left, right, side = all_of(left), all_of(right), all_of(side)
            above = builder.icmp_unsigned(">=", state, all_of(builder.fptoui(first_right, _NUMBER)))
            from_right = builder.fsub(ir.Constant(_SHARES, [1.0] * _LANES), builder.fmul(up, left))
            from_left = builder.fmul(down, right)
            share = builder.select(is_lost, side, builder.select(above, from_right, from_left))
            place = builder.gep(shares, [builder.add(builder.mul(question, number(64)), row)])
            builder.store(share, builder.bitcast(place, _SHARES.as_pointer()), align=8)
        return context.get_dummy_value()

    if any(array.layout != "C" for array in (states, factors, questions, shares)):
        return None  # neighbours in memory are taken for neighbours
    whole = types.int64
    return types.void(states, whole, factors, whole, whole, whole, whole, questions, shares, whole), generate


def knots_first(sizes: np.ndarray) -> np.ndarray:
    """The states of features of so many knots, one feature after the other: those in its knots, then those in gaps.

    >>> knots_first(np.array([2, 1])).tolist()
    [1, 3, 0, 2, 4, 6, 5, 7]
    """
    first = offsets_of(2 * sizes + 1)[:-1].tolist()
    parts = [np.arange(a + i, a + 2 * k + 1, 2) for a, k in zip(first, sizes.tolist()) for i in (1, 0)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


_COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_answer_all: Any = intrinsic(_answer_sixteen) if _COMPILED else None


@kernel
def answer(states, at, factors, blocks, origin, lost, steep, log_p, first, end, questions, shares):
    """P(right) of the rows of a tile in the questions `first` … `end - 1`, all about one feature, into `shares`.

    The rows' states stand from `at` on, the feature's from `origin` on, its `factors` in the order
    of `knots_first`; the state of a missing value is `lost`.
    `questions` has five numbers for each: the first state right of the border, the border's factors in P(left) and
    P(right), the places at or below it, and P(right) of a missing value. Arrays are flat and whole.
    """
    if _COMPILED and not steep:
        for row in range(0, 64, 16):
            _answer_all(states, at + row, factors, origin, lost, first, end, questions, shares, row)
        return
    for row in range(64):
        state = np.int64(states[at + row])
        some = state if state < lost else 0
        k = origin + some
        pair = 2 * (origin + (some >> 1) + (0 if some & 1 else lost >> 1))
        up, down = factors[pair], factors[pair + 1]
        for q in range(first, end):
            left, right = questions[5 * q + 1], questions[5 * q + 2]
            b = questions[5 * q + 3]
            if state == lost:
                share = questions[5 * q + 4]
            elif state >= questions[5 * q]:
                power = np.exp(log_p * (blocks[0, k] - b + 1.0)) if steep else 1.0
                share = 1.0 - up * power * left
            else:
                power = np.exp(log_p * (b - blocks[1, k])) if steep else 1.0
                share = down * power * right
            shares[64 * q + row] = share
