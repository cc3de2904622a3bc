"""Messages between members that run one program together, without the client."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from truerank.cluster.links import Door, Link
from truerank.cluster.sums import size_of
from truerank.core.errors import ClusterError

_LONGEST_WAIT = 3600.0  # seconds; the client, which looks after the members, ends a wait much sooner
_REACH_SECONDS = 90.0  # for which a member is tried to be reached: longer than the client waits for a silent worker
_PAUSE_SECONDS = 0.5  # between two attempts


class Parted(RuntimeError):
    """Raised when the common program has ended: a member is lost or has failed, or a newer call has arrived."""


class Communicator:
    """The messages of member `rank` of `size` in a common program; `number` is the number of the call."""

    def __init__(self, number: int = 0) -> None:
        self._number, self.rank, self.size, self.bytes_sent = number, 0, 1, 0
        self._doors: Sequence[Door] = ()
        self._context: Any = None
        self._senders: dict[int, ThreadPoolExecutor] = {}  # one thread each: two members may send to one another
        self._to: dict[int, Link] = {}
        self._from: dict[int, Future[Link]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._error: Exception | None = None

    def begin(self, rank: int, doors: Sequence[Door], context: object = None) -> None:
        """Join the program as member `rank`. `doors` are the members' doors, `context` is the TLS context, if any."""
        self.rank, self.size, self._doors, self._context = rank, len(doors), doors, context

    def tell(self, other: int, value: object) -> None:
        """Start to send a value to another member. The value must not be changed afterwards.

        Raises
        ------
        Parted
        ClusterError
            Where a member could not be reached.
        """
        self.bytes_sent += size_of(value)
        with self._lock:
            self._check()
            if other not in self._senders:
                self._senders[other] = ThreadPoolExecutor(1)
            self._senders[other].submit(self._send, other, value)

    def hear(self, other: int) -> Any:
        """Wait for the next value from another member; raises as `tell`."""
        try:
            return self._link_from(other).result(timeout=_LONGEST_WAIT).receive()
        except Exception as error:
            self._check()
            raise Parted from error

    def welcome(self, other: int, link: Link) -> None:
        """Accept the link on which another member sends."""
        promised = self._link_from(other)
        with self._lock:
            if self._ended.is_set() or promised.done():
                link.close()
            else:
                promised.set_result(link)

    def end(self, error: Exception | None = None) -> None:
        """End all waits."""
        with self._lock:
            if not self._ended.is_set() and not isinstance(error, OSError | Parted):
                self._error = error
            self._ended.set()
            for link in self._to.values():
                link.interrupt()
            for promised in self._from.values():
                if not promised.done():
                    promised.set_exception(Parted())
                elif promised.exception() is None:
                    promised.result().interrupt()

    def finish(self) -> None:
        """Wait until all values are sent; raises as `tell`."""
        for sender in self._senders.values():
            sender.shutdown()
        with self._lock:
            self._check()

    def close(self) -> None:
        """Close the links after the last send."""
        self.end()
        for sender in self._senders.values():
            sender.shutdown()
        links = [promised.result() for promised in self._from.values() if promised.exception() is None]
        for link in [*self._to.values(), *links]:
            link.close()

    def _link_from(self, other: int) -> Future[Link]:
        with self._lock:
            self._check()
            return self._from.setdefault(other, Future())

    def _send(self, other: int, value: object) -> None:
        try:
            if other not in self._to:
                link = self._reach(self._doors[other])
                with self._lock:
                    self._to[other] = link  # which `end` looks through, and `close` after this thread
                    self._check()
            self._to[other].send(value)
        except Exception as error:
            self.end(error)

    def _reach(self, door: Door) -> Link:
        until = time.monotonic() + _REACH_SECONDS
        while True:
            try:
                return Link.to(door, self._number, self.rank, self._context)
            except OSError as error:
                self._check()
                if time.monotonic() > until:
                    raise ClusterError(
                        f"a worker cannot reach another one at {door.host}:{door.port} ({error}); open that "
                        "port between the workers (DASK_TRUERANK__PORTS=first:last in their environment limits which)"
                    ) from error
            self._ended.wait(_PAUSE_SECONDS)

    def _check(self) -> None:
        if self._ended.is_set():
            raise self._error or Parted()
