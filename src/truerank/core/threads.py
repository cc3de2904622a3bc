"""Run work on fixed blocks in a pool of threads.

The blocks do not depend on the number of threads, and results are returned in block order, so sums do not depend on
`n_jobs`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import starmap
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from truerank.core.errors import InvalidInputError

T = TypeVar("T")
MOST_THREADS = 1024  # each needs memory, and results do not depend on their number


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads: 1 for None, all processors of this process for -1, all but one for -2, …"""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise InvalidInputError(
            argument="n_jobs", expected="None, a positive number of threads or -1 for all", value=n_jobs
        )
    if n_jobs > 0:
        return min(int(n_jobs), MOST_THREADS)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, available + 1 + int(n_jobs))


def row_blocks(n_rows: int, block: int = 65_536) -> list[tuple[int, int]]:
    """Return half-open ranges `[start, stop)` of at most `block` rows that cover `range(n_rows)`."""
    starts = range(0, n_rows, block)
    return list(zip(starts, [*starts[1:], n_rows]))


def query_blocks(offsets: np.ndarray, block: int = 65_536) -> list[tuple[int, int]]:
    """Return ranges of whole queries with about `block` rows each; a larger query has a block of its own."""
    blocks: list[tuple[int, int]] = []
    m = len(offsets) - 1
    start = 0
    while start < m:
        stop = int(np.searchsorted(offsets, offsets[start] + block, side="right")) - 1
        stop = min(max(stop, start + 1), m)
        blocks.append((start, stop))
        start = stop
    return blocks


def run_blocks(work: Callable[..., T], blocks: Sequence[tuple[Any, ...]], n_jobs: int | None = None) -> list[T]:
    """Call `work(*block)` for every block and return the results in block order.

    `work` should spend its time in kernels or NumPy calls that release the GIL. One thread or block requires no pool.
    """
    n_threads = min(resolve_n_jobs(n_jobs), len(blocks))
    if n_threads <= 1:
        return list(starmap(work, blocks))
    with Workers(n_threads) as workers:
        return workers.run(work, blocks)


_blas: dict[tuple[int, int], Any] = {}  # the libraries found last, by process and number of modules


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run BLAS and LAPACK on one thread within the block, because the bits of results depend on the number of threads.

    >>> with one_blas_thread():
    ...     factor = np.linalg.cholesky(np.eye(2))
    """
    from threadpoolctl import ThreadpoolController

    # A search for the libraries costs milliseconds, and finds new ones only after another import.
    loaded = (os.getpid(), len(sys.modules))
    controller = _blas.get(loaded)
    if controller is None:
        controller = ThreadpoolController()
        _blas.clear()
        _blas[loaded] = controller
    return controller.limit(limits=1, user_api="blas")


class Workers:
    """A thread pool, as a context manager, for learners that call `run` thousands of times.

    >>> with Workers(2) as workers:
    ...     workers.run(lambda a, b: a + b, [(1, 2), (3, 4)])
    [3, 7]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = resolve_n_jobs(n_jobs)
        self._asked: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = []
        for _ in range(self.n_threads - 1):
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()

    def _serve(self) -> None:
        while (work := self._asked.get()) is not None:
            work()
            del work  # otherwise this thread would keep the data in memory until the next call

    def run(self, work: Callable[..., T], blocks: Sequence[tuple[Any, ...]], *more: Iterable[Any]) -> list[T]:
        """Run as `run_blocks` does, with one further argument for each block from each of `more`.

        The call does not wait for threads that start after all blocks are taken.
        """
        if more:
            longer = []
            for block, *others in zip(blocks, *more):
                longer.append((*block, *others))
            blocks = longer
        if not self._threads or len(blocks) <= 1:
            return list(starmap(work, blocks))
        results: list[Any] = [None] * len(blocks)
        errors: dict[int, BaseException] = {}
        left = iter(range(len(blocks)))  # shared by the threads
        ended: SimpleQueue[int] = SimpleQueue()

        def work_off() -> None:
            for i in left:
                try:
                    if not errors:
                        results[i] = work(*blocks[i])
                except BaseException as error:
                    errors[i] = error
                finally:
                    ended.put(i)

        for _ in range(min(self.n_threads, len(blocks)) - 1):
            self._asked.put(work_off)
        try:
            work_off()
        finally:
            for i in left:  # after an interrupt between blocks nobody begins another
                ended.put(i)
            for _ in blocks:
                ended.get()
        if errors:
            raise errors[min(errors)]  # of the first block
        return results

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            thread.join()
