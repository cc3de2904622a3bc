"""How many of a feature's steps lie below each of its values: the search in a `StepIndex`, sixteen values at once."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from truerank.core.kernel import kernel
from truerank.core.kernel_vectors import gather, in_all

_LANES = 16
_COUNTS = ir.VectorType(ir.IntType(32), _LANES)
_CELLS = ir.VectorType(ir.DoubleType(), _LANES)


def _count_sixteen(
    context: Any, x: Any, at: Any, low: Any, inverse: Any, halvings: Any, cells: Any, first_cell: Any, last: Any,
    steps: Any, first_step: Any, missing: Any, counts: Any,
) -> Any:  # fmt: skip
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, cells, steps, counts = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 5, 8, 11)
        )
        _, at, low, inverse, halvings, _, first_cell, last, _, first_step, missing, _ = arguments
        number, size = ir.IntType(32), signature.args[0].dtype.bitwidth // 8

        def sixteen(start: Any) -> Any:
            """Place of the sixteen numbers from `at` on."""
            return builder.bitcast(builder.gep(start, [at]), ir.VectorType(start.type.pointee, _LANES).as_pointer())

        def all_of(value: Any) -> Any:
            return in_all(builder, value, _LANES)

        values = builder.load(sixteen(x), align=size)
        cell = values if size == 8 else builder.fpext(values, _CELLS)
        cell = builder.fmul(builder.fsub(cell, all_of(low)), all_of(inverse))
        zero, last = ir.Constant(_CELLS, [0.0] * _LANES), all_of(last)
        cell = builder.select(builder.fcmp_ordered(">", cell, zero), cell, zero)  # nan too
        cell = builder.fptosi(builder.select(builder.fcmp_ordered("<", cell, last), cell, last), _COUNTS)
        pair = gather(builder, builder.gep(cells, [first_cell]), cell, number, 2)  # a cell and the next one
        count = cgutils.alloca_once_value(builder, builder.and_(pair, ir.Constant(_COUNTS, [0xFFFF] * _LANES)))
        start, rounds = builder.gep(steps, [first_step]), builder.trunc(halvings, number)
        with cgutils.for_range(builder, rounds) as loop:
            place = builder.sub(builder.sub(rounds, loop.index), number(1))
            before = builder.sub(builder.shl(number(1), place), number(1))
            k = builder.load(count)
            middle = builder.gep(start, [builder.zext(before, ir.IntType(64))])
            above = builder.fcmp_ordered(">", values, gather(builder, middle, k, start.type.pointee, size))
            builder.store(builder.add(k, builder.shl(builder.zext(above, _COUNTS), all_of(place))), count)
        lost = all_of(builder.trunc(missing, number))
        k = builder.select(builder.fcmp_unordered("uno", values, values), lost, builder.load(count))
        width = signature.args[11].dtype.bitwidth
        if width < 32:
            k = builder.trunc(k, ir.VectorType(ir.IntType(width), _LANES))
        builder.store(k, sixteen(counts), align=width // 8)
        return context.get_dummy_value()

    if any(array.layout != "C" for array in (x, cells, steps, counts)):
        return None  # neighbours in memory are taken for neighbours
    whole, real = types.int64, types.float64
    return types.void(x, whole, real, real, whole, cells, whole, real, steps, whole, whole, counts), generate


_COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_count_all: Any = intrinsic(_count_sixteen) if _COMPILED else None


@kernel
def count_below(
    x, start, stop, low, inverse, halvings, cells, first_cell, end_cell, steps, first_step, missing, counts
):  # fmt: skip
    """Number of one feature's steps below each of x[start:stop], `missing` where it is nan, into `counts[start:stop]`.

    Many arguments: a feature of the index, seven, whose cells end at `end_cell`. Arrays are flat and whole: views would
    be counted and discounted. No branch depends on a value: it would be guessed wrong half the time.
    """
    last = np.float64(end_cell - first_cell - 1)
    rest = start
    if _COMPILED:
        rest = stop - (stop - start) % 16
        for i in range(start, rest, 16):
            _count_all(x, i, low, inverse, halvings, cells, first_cell, last, steps, first_step, missing, counts)
    for i in range(rest, stop):
        cell = (x[i] - low) * inverse
        cell = cell if cell > 0.0 else 0.0
        k = np.int64(cells[first_cell + np.int64(cell if cell < last else last)])
        for place in range(halvings - 1, -1, -1):
            k += np.int64(x[i] > steps[first_step + k + (1 << place) - 1]) << place
        counts[i] = k if x[i] == x[i] else missing
