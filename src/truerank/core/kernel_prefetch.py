"""Asking for memory before it is read, inside kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _prefetching(locality: int) -> Any:
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = context.make_array(signature.args[0])(context, builder, arguments[0])
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            place = builder.bitcast(builder.gep(values.data, [arguments[1]]), byte)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            # To be read (0), where it is kept, data (1).
            call = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            builder.call(call, [place, number(0), number(locality), number(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate

    return prefetch


def _not_compiled(array: np.ndarray, index: int) -> None:
    """Nothing to ask for."""


def _asking(locality: int) -> Any:
    return _not_compiled if numba.config.DISABLE_JIT else intrinsic(_prefetching(locality))  # type: ignore[attr-defined]


#: `prefetch(array, index)` in a kernel asks for an element of a contiguous array (n,); an index outside does nothing.
#: For memory that is read soon, in an order that the processor does not guess. Results never depend on it. What it asks
#: for is kept in the second-level cache, of `prefetch_near` in the first, which has room for a few lines ahead.
prefetch, prefetch_near = _asking(2), _asking(3)
