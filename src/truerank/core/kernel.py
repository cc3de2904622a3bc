"""The one way in which truerank compiles a loop.

`kernel` is numba's `njit` with the house's options: results cached on disk, the GIL released, no fast-math (the same
bits everywhere). Modules that own kernels import this file and so numba; `data`, `measures` and `significance` do so
only inside functions, because importing numba costs more than most evaluations.

A kernel takes C-contiguous arrays and scalars and nothing else: no functions, no lists, no strings. Each new dtype,
layout or read-only flag is one more compilation, so callers normalise at the border. So is a number written out in a
call between kernels: write `np.int64(0)` there. Copies between slices and `sum` take three times a loop's time to
compile.
`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python.
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
    """Compile a serial loop: cached on disk, GIL released, IEEE arithmetic in the written order.

    numba caches beside the source, or in the user's cache folder when the installation is read-only. Where neither
    can be written the function is compiled anew in each process and one warning says how to avoid that.
    """
    global _warned
    config: Any = numba.config
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # compiled code, too, says nothing of inf - inf
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


class _FirstCompilation(event.Listener):
    """Print one line when this process first compiles a kernel that no cache holds, where progress is shown.

    On a new machine the first use of a command compiles for some seconds, and a person should know why.
    """

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            self.said = show_line("truerank: compiling numerical code (only at the first use on this machine) …")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
