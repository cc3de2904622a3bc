"""Compile loops with numba, with equal options for all kernels.

Modules with kernels import this file and therefore numba. `data`, `measures` and `significance` import it only inside
functions, because the import of numba takes longer than most evaluations.

Arguments of a kernel are C-contiguous arrays and scalars. Each new dtype, layout or read-only flag requires another
compilation, so callers convert arrays to one form. A literal number in a call between kernels also requires one: write
`np.int64(0)` instead. Copies between slices and `sum` compile three times as long as a loop. `NUMBA_DISABLE_JIT=1` runs
kernels in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import event

from truerank.core.errors import warn
from truerank.core.rounds import show_line

_warned = False


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a serial loop: cached on disk, GIL released, IEEE arithmetic in the written order (no fast-math).

    numba stores the cache next to the source, or in the user's cache folder. If neither folder is writable, each
    process compiles the function again, and one warning states how to avoid that.
    """
    global _warned
    config: Any = numba.config
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # compiled code does not warn about inf - inf either
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:  # numba: "cannot cache function ...: no locator available for file ..."
        if "locator" not in str(error):
            raise
        if not _warned:
            _warned = True
            warn(
                "compiled code cannot be cached, so every process compiles again: neither the installation nor your "
                "cache folder is writable. Set NUMBA_CACHE_DIR to a writable folder"
            )
        return numba.njit(**options)(function)


def kernel_array(array: np.ndarray) -> np.ndarray:
    """Return the array, copied if it is read-only or not C-contiguous, for which numba would compile again."""
    return array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")


class _FirstCompilation(event.Listener):
    """Print one line, if progress is shown, when this process first compiles a kernel that is not cached."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = show_line("truerank: compiling numerical code (only at the first use on this machine) …")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
