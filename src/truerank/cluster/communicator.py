"""What the members that run one program together tell one another, without the client.

A member asks one of a lower rank, and what that one answers comes back with the same message. The turns between two
members are counted on both sides, so that whoever comes first waits for the other.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

from truerank.cluster.sums import size_of

_LONGEST_WAIT = 3600.0  # seconds; the client, which looks after the members, ends a wait much sooner


class Parted(RuntimeError):
    """The program is not run together any more: a member is lost or has failed, or a newer call has come."""


class Communicator:
    """This member among those that run one program together.

    Parameters
    ----------
    number : int
        Of the call.

    Attributes
    ----------
    rank, size : int
        This member's place, and how many there are.
    bytes_sent : int
    """

    def __init__(self, number: int = 0) -> None:
        self._number, self.rank, self.size, self.bytes_sent = number, 0, 1, 0
        self._members: Sequence[Any] = ()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._over = False
        self._meetings: dict[tuple[int, int], Meeting] = {}
        self._asked: set[Future[Any]] = set()

    def begin(self, rank: int, members: Sequence[Any]) -> None:
        """Take the place `rank` among `members`, which have a coroutine `meet`; to be called in the event loop."""
        self.rank, self.size, self._members = rank, len(members), members
        self._loop = asyncio.get_running_loop()

    def ask(self, other: int, value: Any) -> Callable[[], Any]:
        """Begin to tell `value` to a member of a lower rank; what is returned waits for the answer and gives it.

        Raises
        ------
        Parted
            Here, or by what is returned.
        """
        turn = self._next_turn(other, value)

        async def message() -> Any:
            return await self._members[other].meet(self._number, self.rank, turn, value)

        with self._lock:
            self._check()
            assert self._loop is not None
            future = asyncio.run_coroutine_threadsafe(message(), self._loop)
            self._asked.add(future)

        def answer() -> Any:
            try:
                return wait(future)
            finally:
                with self._lock:  # which `end` holds while it goes through them
                    self._asked.discard(future)

        return answer

    def asked(self, other: int) -> Meeting:
        """The next meeting with a member of a higher rank, which asks."""
        return self._meeting(other, self._next_turn(other, None))

    def exchange(self, other: int, value: Any) -> Callable[[], Any]:
        """Begin to give `value` to a member; what is returned waits for what that one gives in the same turn."""
        if other < self.rank:
            return self.ask(other, value)
        meeting = self.asked(other)
        self.answer(meeting, value)
        return meeting.question

    def answer(self, meeting: Meeting, value: Any) -> None:
        """Give the answer that the other member waits for."""
        self.bytes_sent += size_of(value)
        with self._lock:
            self._check()
            try:
                meeting.to_give.set_result(value)
            except InvalidStateError:  # cancelled, with the connection on which it was asked
                raise Parted from None

    async def meet(self, other: int, turn: int, value: Any) -> Any:
        """Another member asks, with its turn: the answer, when it is there."""
        meeting = self._meeting(other, turn)
        with self._lock:
            self._check()
            meeting.given.set_result(value)
        try:
            return await asyncio.wrap_future(meeting.to_give)
        finally:
            with self._lock:  # memory
                self._meetings.pop((other, turn), None)

    def end(self) -> None:
        """Nobody waits here any more."""
        with self._lock:
            self._over = True
            for future in self._asked:
                future.cancel()
            for meeting in self._meetings.values():
                for promised in (meeting.given, meeting.to_give):
                    if not promised.done():
                        promised.set_exception(Parted())

    def _next_turn(self, other: int, value: Any) -> int:
        self.bytes_sent += size_of(value)
        self._turns[other] += 1
        return self._turns[other]

    def _meeting(self, other: int, turn: int) -> Meeting:
        with self._lock:
            self._check()
            return self._meetings.setdefault((other, turn), Meeting())

    def _check(self) -> None:
        if self._over:
            raise Parted


class Meeting:
    """One turn between two members, on the side of the one that answers."""

    def __init__(self) -> None:
        self.given: Future[Any] = Future()
        self.to_give: Future[Any] = Future()

    def question(self) -> Any:
        """What the other member asks; waits for it."""
        return wait(self.given)


def wait(future: Future[Any]) -> Any:
    """The result; `Parted` where it will not come, whatever the reason."""
    try:
        return future.result(timeout=_LONGEST_WAIT)
    except Exception as error:
        raise Parted from error
