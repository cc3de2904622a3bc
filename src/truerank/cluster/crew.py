"""The workers of one data set: who holds which partition, one round of statistics over all of them, and their loss.

A round applies `step(partition, *arguments)` to every partition where it lives and adds the answers along a fixed
binary tree (`sums`). Rounds that change what a partition remembers are kept in a journal; where a worker is lost, its
partitions go to the others, which read them again from their source and play the journal. A round that was broken off
is asked again: a partition that had answered already gives the same answer without working twice.

The same class runs without Dask: with `client=None` the partitions live in this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from truerank.cluster.partition import Partition, Source
from truerank.cluster.sums import Merge, Nodes, add, fold, size_of
from truerank.core.errors import TruerankError
from truerank.core.printing import note
from truerank.core.threads import Workers

FAN_IN = 8  # workers whose sums one process adds up
_LOOK_SECONDS = 2.0  # between two looks whether a silent worker is still there
_REMEMBERED = 2  # answers that a partition keeps for a round that is asked again

Step = Callable[..., Any]
Call = tuple[int, Step, tuple[Any, ...]]


class ClusterError(TruerankError):
    """The cluster cannot go on: no worker is left, or none answers."""


class Failure:
    """An error of a step, as an answer: it ends the fit, where an error of the connection moves partitions."""

    def __init__(self, number: int, error: BaseException) -> None:
        self.number, self.error = number, error


class Member:
    """What runs on one worker: its partitions, and their part of each round."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.partitions: dict[int, Partition] = {}
        if n_threads is None:
            from distributed import get_worker

            n_threads = int(get_worker().state.nthreads)
        self._workers = Workers(n_threads)

    def take(self, partitions: list[tuple[int, Source, bool]], journal: list[Call]) -> Any:
        """Hold these partitions, and bring them to where the fit is."""

        def open_one(number: int, source: Source, hold: bool) -> Failure | None:
            partition = Partition(number, source, hold)
            try:
                for _, step, arguments in journal:
                    step(partition, *arguments)
            except Exception as error:
                return Failure(number, error)
            self.partitions[number] = partition
            return None

        failed = [answer for answer in self._workers.run(open_one, partitions) if answer is not None]
        return failed[0] if failed else None

    def here(self) -> bool:
        """Whether this member answers."""
        return True

    def forget(self) -> None:
        """Forget what a fit has left behind."""
        for partition in self.partitions.values():
            partition.memory.clear()
            partition.last = (-1, None)

    def run(
        self, serial: int, step: Step, arguments: tuple[Any, ...], merge: Merge, n: int, below: list[Any]
    ) -> tuple[Nodes | Failure, int]:
        """This worker's nodes of the tree of sums, with those of the workers below it; and the bytes sent so far."""
        answers = [actor.run(serial, step, arguments, merge, n, under) for actor, under in below]

        def one(number: int) -> Any:
            partition = self.partitions[number]
            if partition.last[0] != serial:
                try:
                    partition.last = (serial, step(partition, *arguments))
                except Exception as error:
                    return Failure(number, error)
            return partition.last[1]

        numbers = sorted(self.partitions)
        values = self._workers.run(one, [(number,) for number in numbers])
        nodes: Nodes = {}
        sent = 0
        failed: Failure | None = None
        for number, value in zip(numbers, values):
            if isinstance(value, Failure):
                failed = failed or value
            nodes[0, number] = value
        for answer in answers:
            theirs, count = answer.result()
            sent += count
            if isinstance(theirs, Failure):
                failed = failed or theirs
            else:
                nodes.update(theirs)
        if failed is not None:
            return failed, sent
        nodes = fold(nodes, merge, n)
        return nodes, sent + size_of(list(nodes.values()))


class Crew:
    """The members that hold the partitions of one data set.

    Parameters
    ----------
    client : distributed.Client or None
        None: this process holds all partitions, and a thread pool runs the rounds.
    sources : list of Source
    hold : bool
    n_jobs : int, optional
        Threads without a client.

    Attributes
    ----------
    bytes_sent, bytes_received : int
        What the client has sent to all workers, and what all processes have sent up the tree of sums.
    n_rounds, n_lost : int
        Rounds, and workers that were lost.
    """

    def __init__(self, client: Any, sources: Sequence[Source], hold: bool = True, n_jobs: int | None = None) -> None:
        self.client, self.sources, self.hold = client, list(sources), hold
        self._serial = 0
        self._journal: list[Call] = []
        self._members: dict[str, Any] = {}
        self._held: dict[str, list[int]] = {}
        self.bytes_sent = self.bytes_received = self.n_rounds = self.n_lost = 0
        if client is None:
            from truerank.core.threads import resolve_n_jobs

            self._members = {"": Member(resolve_n_jobs(n_jobs))}
            self._held = {"": []}
        self._spread(list(range(len(sources))))

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        return len(self.sources)

    @property
    def n_workers(self) -> int:
        """Workers that hold partitions."""
        return len(self._members)

    def begin(self) -> None:
        """A new fit: nothing is remembered of an earlier one."""
        self._journal.clear()
        for address in list(self._members):
            try:
                self._wait(address, self._call(address, "forget"))
            except _Lost:
                self._replace_lost()

    def mark(self) -> int:
        """A place in the journal, for `rewind`."""
        return len(self._journal)

    def note(self, step: Step, *arguments: Any) -> None:
        """Put a step into the journal that stands for rounds that have been done."""
        self._journal.append((-1, step, arguments))

    def rewind(self, mark: int) -> None:
        """Drop what the journal holds since `mark`: rounds whose result the next kept round says in short."""
        del self._journal[mark:]

    def round(self, step: Step, *arguments: Any, merge: Merge = add, keep: bool = False) -> Any:
        """`step(partition, *arguments)` of all partitions, merged; with `keep` the journal notes it.

        Raises
        ------
        Exception
            What a step raised, with the partition's number in a note.
        ClusterError
            When no worker is left.
        """
        self._serial += 1
        self.n_rounds += 1
        call = (self._serial, step, arguments)
        while True:
            try:
                result = self._ask(call, merge)
                break
            except _Lost:
                self._replace_lost()
        if keep:
            self._journal.append(call)
        return result

    def _ask(self, call: Call, merge: Merge) -> Any:
        roots = self._tree(list(self._members))
        arguments = (*call, merge, self.n_partitions)
        self.bytes_sent += size_of(call[2]) * len(self._members)
        futures = [(address, self._call(address, "run", *arguments, below)) for address, below in roots]
        nodes: Nodes = {}
        for address, future in futures:
            theirs, sent = self._wait(address, future)
            self.bytes_received += sent if self.client is not None else 0
            _raise(theirs)
            nodes.update(theirs)
        whole = fold(nodes, merge, self.n_partitions)
        if len(whole) != 1:  # a member was replaced and does not hold what it should
            raise _Lost
        return next(iter(whole.values()))

    def _call(self, address: str, method: str, *arguments: Any) -> Any:
        """Start a method of a member; `_Lost` where it is known to be gone."""
        try:
            return getattr(self._members[address], method)(*arguments)
        except Exception as error:
            if self.client is None:
                raise
            raise _Lost from error

    def _tree(self, addresses: list[str]) -> list[tuple[str, list[Any]]]:
        """At most `FAN_IN` roots, each with at most as many below it: member i hangs under member i // FAN_IN - 1."""
        below: dict[int, list[Any]] = {i: [] for i in range(len(addresses))}
        for i in range(len(addresses) - 1, FAN_IN - 1, -1):
            below[i // FAN_IN - 1].append((self._members[addresses[i]], below[i]))
        return [(addresses[i], below[i]) for i in range(min(FAN_IN, len(addresses)))]

    # Workers come and go.

    def _addresses(self) -> list[str]:
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])

    def _spread(self, numbers: list[int]) -> None:
        """Give partitions to members, to those with the fewest first, neighbours together."""
        if self.client is None:
            self._give("", numbers)
            return
        addresses = self._addresses()
        until = time.monotonic() + 60.0
        while not addresses:
            if time.monotonic() > until:
                raise ClusterError(
                    "no worker is left in the cluster, and none came within 60 s; start workers and fit again"
                )
            time.sleep(0.5)
            addresses = self._addresses()
        for address in addresses:
            if address not in self._members:
                actor = self.client.submit(Member, workers=[address], actor=True, pure=False)
                try:
                    self._members[address] = actor.result(timeout=60)
                except Exception as error:
                    if address in self._addresses():
                        raise ClusterError(f"worker {address} cannot hold partitions: {error!r}") from error
                    continue
                self._held[address] = []
        if not self._members:
            self._spread(numbers)
            return
        share = -(-(sum(map(len, self._held.values())) + len(numbers)) // len(self._members))
        rest = list(numbers)
        for address in sorted(self._members, key=lambda name: (len(self._held[name]), name)):
            room = max(0, share - len(self._held[address]))
            mine, rest = rest[:room], rest[room:]
            if mine:
                self._give(address, mine)

    def _give(self, address: str, numbers: list[int]) -> None:
        self._held[address] += numbers
        parts = [(number, self.sources[number], self.hold) for number in numbers]
        _raise(self._wait(address, self._call(address, "take", parts, self._journal)))

    def _wait(self, address: str, future: Any) -> Any:
        """The answer of a member; `_Lost` where it is no longer there."""
        if self.client is None:
            return future
        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                alive = set(self._addresses())
                if not set(self._members) <= alive:
                    raise _Lost from None
            except Exception as error:
                # An error of a step is an answer (`Failure`); any other is of the connection.
                time.sleep(0.1)
                if not isinstance(error, OSError | ValueError | KeyError | RuntimeError):
                    raise
                raise _Lost from error

    def _replace_lost(self) -> None:
        """Give the partitions of lost workers to the others."""
        until = time.monotonic() + 120.0
        while True:
            alive = set(self._addresses())
            lost = [address for address in self._members if address not in alive]
            silent = [] if lost else self._silent()
            if lost or not silent:
                break
            if time.monotonic() > until:
                raise ClusterError(
                    f"worker {silent[0]} is in the cluster and does not answer; restart it and fit again"
                )
            time.sleep(0.5)
        homeless: list[int] = []
        for address in lost:
            del self._members[address]
            homeless += self._held.pop(address)
        self.n_lost += len(lost)
        if not lost:
            return
        note(f"truerank: lost {len(lost)} worker(s); {len(homeless)} partition(s) are read again by the others")
        try:
            self._spread(sorted(homeless))
        except _Lost:
            missing = set(range(self.n_partitions)) - {n for held in self._held.values() for n in held}
            self._replace_lost()
            if missing:
                self._spread(sorted(missing))

    def _silent(self) -> list[str]:
        """Members that the scheduler knows and that do not answer."""
        silent = []
        for address, actor in self._members.items():
            try:
                actor.here().result(timeout=10)
            except Exception:
                silent.append(address)
        return silent

    def close(self) -> None:
        """Let go of the partitions."""
        self._members.clear()
        self._held.clear()


class _Lost(Exception):
    """A worker does not answer any more."""


def _raise(answer: Any) -> None:
    if isinstance(answer, Failure):
        answer.error.add_note(f"partition {answer.number}")
        raise answer.error
