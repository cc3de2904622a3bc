"""Exchange messages between members that run one program together, over Dask's connections between workers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from truerank.core.errors import ClusterError

_LONGEST_WAIT = 3600.0  # seconds; the client, which monitors the members, ends a wait much sooner
_REACH_SECONDS = 90.0  # of attempts to reach a member: longer than the client waits for a silent worker
_PAUSE_SECONDS = 0.5  # between two attempts


class Parted(RuntimeError):
    """The common program has ended, because a member is lost or has failed, or a newer call has arrived."""


class Communicator:
    """The messages of member `rank` of `size` in a common program; `number` is the number of the call.

    Messages from one member to another are numbered, because Dask may deliver them in another order.
    """

    def __init__(self, number: int = 0) -> None:
        self._number, self.rank, self.size, self.bytes_sent = number, 0, 1, 0
        self._members: Sequence[Any] = ()
        self._loop: Any = None
        self._sends: list[Future[None]] = []
        self._told: Counter[int] = Counter()
        self._heard: Counter[int] = Counter()
        self._values: dict[tuple[int, int], Future[Any]] = {}  # by member and number of the message
        self._lock = threading.Lock()
        self._ended = False
        self._error: Exception | None = None

    def begin(self, rank: int, members: Sequence[Any]) -> None:
        """Join the program as member `rank` of `members`, from the event loop that sends the messages."""
        self.rank, self.size, self._members = rank, len(members), members
        self._loop = asyncio.get_running_loop()

    def tell(self, other: int, value: object) -> None:
        """Start to send a value to another member; the value must not be changed afterwards.

        Raises Parted, or ClusterError if a member could not be reached.
        """
        self.bytes_sent += size_of(value)
        with self._lock:
            self._check()
            self._told[other] += 1
            sending = self._send(other, self._told[other], value)
            self._sends.append(asyncio.run_coroutine_threadsafe(sending, self._loop))

    def hear(self, other: int) -> Any:
        """Wait for the next value from another member; errors are those of `tell`."""
        number = self._heard[other] + 1
        with self._lock:
            self._check()
            promised = self._values.setdefault((other, number), Future())
        value = self._result(promised)
        with self._lock:
            self._heard[other] = number
            del self._values[other, number]
        return value

    def welcome(self, other: int, number: int, value: object) -> None:
        """Accept message `number` of another member; a repeated message has no effect."""
        with self._lock:
            if self._ended or number <= self._heard[other]:
                return
            promised = self._values.setdefault((other, number), Future())
            if not promised.done():
                promised.set_result(value)

    def end(self, error: Exception | None = None) -> None:
        """End all waits."""
        with self._lock:
            if not self._ended:
                self._ended, self._error = True, error
            for promised in self._values.values():
                if not promised.done():
                    promised.set_exception(Parted())
            for sending in self._sends:
                sending.cancel()

    def finish(self) -> None:
        """Wait until all values are sent; errors are those of `tell`."""
        for sending in self._sends:
            self._result(sending)
        with self._lock:
            self._check()

    def _result(self, promised: Future[Any]) -> Any:
        try:
            return promised.result(timeout=_LONGEST_WAIT)
        except Exception as error:
            with self._lock:
                self._check()
            raise Parted from error

    async def _send(self, other: int, number: int, value: object) -> None:
        until = time.monotonic() + _REACH_SECONDS
        while True:
            try:
                await self._members[other].hear(self._number, self.rank, number, value)
                return
            except (OSError, RuntimeError, KeyError) as error:  # the worker is gone, or not there yet
                if time.monotonic() > until:
                    address = getattr(self._members[other], "_address", "an unknown address")
                    unreached = f"a worker cannot reach the worker at {address} ({error})"
                    self.end(ClusterError(f"{unreached}. Open the ports between the workers"))
                    return
            except Exception as error:
                self.end(error)
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    def _check(self) -> None:
        if self._ended:
            raise self._error or Parted()


def size_of(value: object) -> int:
    """Return the bytes of the arrays in a message; other objects count by their pickled size."""
    if hasattr(value, "nbytes") and not (isinstance(value, np.ndarray) and value.dtype.hasobject):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(size_of(part) for part in value)
    if isinstance(value, dict):
        return sum(size_of(part) for part in value.values())
    if isinstance(value, bool | int | float) or value is None:
        return 8
    import pickle

    return len(pickle.dumps(value))
