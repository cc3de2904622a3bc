"""Whole numbers that several threads count with, inside kernels."""

from __future__ import annotations

import threading
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic


def _adding() -> Any:
    def fetch_add(context: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = context.make_array(signature.args[0])(context, builder, arguments[0])
            added = context.cast(builder, arguments[2], signature.args[2], types.int64)
            place = builder.gep(values.data, [arguments[1]])
            return builder.atomic_rmw("add", place, added, "seq_cst")

        return types.int64(array, index, value), generate

    return fetch_add


_lock = threading.Lock()


def _not_compiled(array: np.ndarray, index: int, value: int) -> int:
    with _lock:
        before = int(array[index])
        array[index] += value
        return before


#: `fetch_add(array, index, value)` in a kernel adds to an element of a contiguous int64 array (n,) and returns what
#: stood there before, as one step that no other thread divides. What a thread wrote before it adds, another one sees
#: that has found the sum.
fetch_add: Any = _not_compiled if numba.config.DISABLE_JIT else intrinsic(_adding())  # type: ignore[attr-defined]
