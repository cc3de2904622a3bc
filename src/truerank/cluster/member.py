"""Run one worker's part of a fit on a cluster."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from truerank.cluster.communicator import Communicator, Parted, size_of
from truerank.cluster.partition import Partition, Source
from truerank.core.threads import Workers
from truerank.data.rows import Merge

_REMEMBERED = 256  # calls that a member remembers to have ended

Step = Callable[..., Any]
Call = tuple[int, Step, tuple[Any, ...]]
Nodes = dict[tuple[int, int], Any]


class Failure:
    """An error of a step, returned as an answer. The error ends the fit; a connection error moves partitions instead.

    `number` is the number of the partition, or None if the error concerns no single partition.
    """

    def __init__(self, number: int | None, error: BaseException) -> None:
        self.number, self.error = number, error


class Member:
    """The partitions of one worker.

    Long work runs on a separate thread. The member can then answer `state` at any time, and members of two data sets on
    one worker do not block each other.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.partitions: dict[int, Partition] = {}
        if n_threads is None:
            from distributed import get_worker

            n_threads = int(get_worker().state.nthreads)
        self._workers = Workers(n_threads)
        self._thread = ThreadPoolExecutor(1)
        self._under_way: set[int] = set()
        self._ended: deque[int] = deque(maxlen=_REMEMBERED)
        self._latest = 0  # of the rounds that were heard of
        self._met = 0, Communicator()  # the newest call
        self._lock = threading.Lock()

    async def state(self) -> tuple[list[int], list[int], list[int]]:
        """Return the numbers of running calls, of ended calls, and of the partitions of this member."""
        return list(self._under_way), list(self._ended), sorted(self.partitions)

    async def do(self, call: int, method: str, arguments: tuple[Any, ...], below: list[Any]) -> Any:
        """Run a method here and on the members below as call number `call`, and join the answers."""
        self._under_way.add(call)
        if call > self._met[0]:
            self._communicator(call)  # the thread may wait in an older one
        try:
            answers = [actor.do(call, method, arguments, under) for actor, under in below]
            mine = await self._aside(getattr(self, method), *arguments)
            theirs = [await answer for answer in answers]
            if method != "run":
                return mine
            return await self._aside(self.join, [mine, *theirs], *arguments[-2:])
        finally:
            self._under_way.discard(call)
            self._ended.append(call)

    async def together(
        self, number: int, program: Step, arguments: tuple[Any, ...], rank: int, members: list[Any]
    ) -> tuple[Any, int]:
        """Run the program of call `number` as one of `members`, which all run it at the same time."""
        communicator = self._communicator(number)
        self._under_way.add(number)
        try:
            communicator.begin(rank, members)
            answer, sent = await self._aside(self.run_program, communicator, program, arguments)
            if not isinstance(answer, tuple):  # others may wait for what would not come
                others = [member.part(number) for i, member in enumerate(members) if i != rank]
                await asyncio.gather(*others, return_exceptions=True)
            return answer, sent
        finally:
            communicator.end()
            self._under_way.discard(number)
            self._ended.append(number)

    async def hear(self, number: int, other: int, turn: int, value: object) -> None:
        """Accept message `turn` of another member in the program of call `number`."""
        with suppress(Parted):
            self._communicator(number).welcome(other, turn, value)

    async def part(self, number: int) -> None:
        """End the common program of call `number`."""
        self._communicator(number).end()

    def _communicator(self, number: int) -> Communicator:
        """Return the communicator of a call, which may not have begun yet; end older ones."""
        with self._lock:
            if number < self._met[0]:
                raise Parted
            if number > self._met[0]:
                self._met[1].end()
                self._met = number, Communicator(number)
            return self._met[1]

    def run_program(
        self, communicator: Communicator, program: Step, arguments: tuple[Any, ...]
    ) -> tuple[tuple[Any] | Failure | None, int]:
        """Return a tuple of the result of `program(communicator, workers, partitions, *arguments)`, or None if the
        members have parted, and the bytes sent.
        """
        partitions = [self.partitions[number] for number in sorted(self.partitions)]
        answer: tuple[Any] | Failure | None
        try:
            answer = (program(communicator, self._workers, partitions, *arguments),)
            communicator.finish()
        except Parted:
            answer = None
        except Exception as error:
            answer = Failure(None, error)
        communicator.end()
        return answer, communicator.bytes_sent

    async def _aside(self, work: Callable[..., Any], *arguments: Any) -> Any:
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: context.run(work, *arguments))

    def take(self, partitions: list[tuple[int, Source, bool]], journal: list[Call]) -> Failure | None:
        """Hold these partitions, and bring them to the present state of the fit."""
        return self._play([Partition(*one) for one in partitions], journal)

    def replay(self, journal: list[Call]) -> Failure | None:
        """Clear the memory of earlier fits, and bring the partitions to the end of this journal."""
        for partition in self.partitions.values():
            partition.memory.clear()
            partition.last = (-1, None)
        return self._play(list(self.partitions.values()), journal)

    def _play(self, partitions: list[Partition], journal: list[Call]) -> Failure | None:
        """Run the steps of a journal, and hold the partitions for which they succeed."""

        def play(partition: Partition) -> Failure | None:
            try:
                for _, step, arguments in journal:
                    step(partition, *arguments)
            except Exception as error:
                return Failure(partition.number, error)
            self.partitions[partition.number] = partition
            return None

        answers = self._workers.run(play, [(partition,) for partition in partitions])
        return next((answer for answer in answers if answer is not None), None)

    def run(
        self, serial: int, step: Step, arguments: tuple[Any, ...], merge: Merge, n: int
    ) -> tuple[Nodes | Failure, int]:
        """Run round `serial`; return this worker's unfolded nodes of the tree of sums, and 0 bytes sent."""

        self._latest = max(self._latest, serial)

        def one(number: int) -> Any:
            partition = self.partitions[number]
            if serial < self._latest:  # a late message of a round that was given up
                return Failure(number, RuntimeError(f"round {serial} is over"))
            if partition.last[0] != serial:
                try:
                    partition.last = (serial, step(partition, *arguments))
                except Exception as error:
                    return Failure(number, error)
            return partition.last[1]

        numbers = sorted(self.partitions)
        values = self._workers.run(one, [(number,) for number in numbers])
        failed = [value for value in values if isinstance(value, Failure)]
        return (failed[0] if failed else {(0, number): value for number, value in zip(numbers, values)}), 0

    @staticmethod
    def join(answers: list[tuple[Nodes | Failure, int]], merge: Merge, n: int) -> tuple[Nodes | Failure, int]:
        """Return the folded nodes of several members, and the bytes that they and this member send."""
        nodes: Nodes = {}
        sent = sum(count for _, count in answers)
        for theirs, _ in answers:
            if isinstance(theirs, Failure):
                return theirs, sent
            nodes.update(theirs)
        nodes = fold(nodes, merge, n)
        return nodes, sent + size_of(list(nodes.values()))


def fold(nodes: Nodes, merge: Merge, n: int) -> Nodes:
    """Merge those nodes of the binary tree over partitions 0 … n - 1 whose two children are available.

    Node (level, i) stands for the partitions `i 2^level … (i + 1) 2^level - 1`, and is the merge of (level - 1, 2i) and
    (level - 1, 2i + 1). A node without a right child equals its left child. The tree is fixed, so that the bits of sums
    do not depend on which worker holds which partition.

    >>> from operator import add
    >>> fold({(1, 1): "c", (0, 0): "a", (0, 1): "b"}, add, 3)
    {(2, 0): 'abc'}
    """
    nodes, level = dict(nodes), 0
    while (last := (n - 1) >> level) > 0:  # of the nodes on this level
        for i in range(0, last + 1, 2):
            left, right, above = (level, i), (level, i + 1), (level + 1, i // 2)
            if left in nodes and i == last:
                nodes[above] = nodes.pop(left)
            elif left in nodes and right in nodes:
                nodes[above] = merge(nodes.pop(left), nodes.pop(right))
        level += 1
    return nodes
