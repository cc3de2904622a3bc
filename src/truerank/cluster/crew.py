"""Lead the workers of one data set: partitions, rounds of statistics over all partitions, and lost workers.

A round applies `step(partition, *arguments)` to every partition on its worker and adds the results along a fixed binary
tree (`fold`). Rounds that change the memory of a partition are recorded in a journal. If a worker is lost, others read
its partitions from the source and replay the journal. An interrupted round is repeated; a partition that has already
answered returns the same answer without computing it again. An interrupted program, which all members run together,
starts again.

Every wait has a limit. After two seconds, and again every two seconds, the client asks the scheduler for the workers
and each member for the call. A worker that has left the cluster counts as lost immediately. A worker that is silent for
`SILENCE_SECONDS` is not used again. If a member did not receive the call, the call is sent again.

With `client=None`, everything runs in the current process, without Dask.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from truerank.cluster.checkpoint import Checkpoint
from truerank.cluster.communicator import Communicator, size_of
from truerank.cluster.member import Call, Failure, Member, Nodes, Step, fold
from truerank.cluster.partition import Source
from truerank.core.errors import ClusterError
from truerank.core.printing import counted, note
from truerank.core.threads import resolve_n_jobs
from truerank.data.rows import Merge, add
from truerank.trees.shared_growth import FAN_IN

T = TypeVar("T")

SILENCE_SECONDS = 60.0  # after which a worker that answers nothing is given up, and the scheduler too
_RETURN_SECONDS = 5.0  # in which a scheduler that has closed its connection may come back
_LOOK_SECONDS = 2.0  # between two checks of the workers
_UNKNOWN_LOOKS = 3  # after which a call that a member does not know of is sent again
_ATTEMPTS = 20  # at one round, or at giving partitions to workers


class Crew:
    """The members that hold the partitions of one data set.

    With `client=None`, the current process holds all partitions, and `n_jobs` threads run the rounds. `bytes_sent`
    counts bytes from the client to the workers, `bytes_received` bytes up the tree of sums; `n_rounds` and `n_lost`
    count rounds and lost workers. `progress`, if set, is called with the crew after each round.
    """

    def __init__(self, client: Any, sources: Sequence[Source], hold: bool = True, n_jobs: int | None = None) -> None:
        self.client, self.sources, self.hold = client, list(sources), hold
        self.n_partitions = len(self.sources)
        self._serial = self._calls = 0
        self._journal: list[Call] = []
        self._members: dict[str, Any] = {}
        self._futures: dict[str, Any] = {}  # as long as they are held, their workers keep the members
        self._held: dict[str, list[int]] = {}
        self._given_up: set[str] = set()
        self._log: Checkpoint | None = None
        self._behind = False
        self.progress: Callable[[Crew], None] | None = None
        self.bytes_sent = self.bytes_received = self.n_rounds = self.n_lost = 0
        if client is None:
            self._here = Member(resolve_n_jobs(n_jobs))
            self._members = {"": self._here}
            _raise(self._here.take(self._parts(range(len(sources))), []))
        else:
            self._settle()

    @property
    def n_workers(self) -> int:
        """Number of workers that hold partitions."""
        return len(self._members)

    def begin(self, log: Checkpoint | None = None) -> None:
        """Begin a new fit with an empty journal; `log` stores the answers of its rounds."""
        self._journal.clear()
        self._log, self._behind = log, False
        self._try("replay", ([],))

    def end(self) -> None:
        """Detach the checkpoint at the end of a fit, also of a failed fit."""
        self._log = None

    def _try(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Call a method of all members."""
        if self.client is None:
            _raise(getattr(self._here, method)(*arguments))
            return

        def once() -> None:
            for answer in self._gather([(address, "do", (method, arguments, [])) for address in self._members]):
                _raise(answer)

        self.retried(once)

    def retried(self, work: Callable[[], T]) -> T:
        """Return `work()`. If a worker is lost, the whole call is repeated."""
        for _ in range(_ATTEMPTS):
            try:
                return work()
            except _Lost:
                self._settle()
        raise self._no_progress()

    def mark(self) -> int:
        """Return a position in the journal, for `rewind`."""
        return len(self._journal)

    def note(self, step: Step, *arguments: Any) -> None:
        """Record a step in the journal that replaces rounds that are done."""
        self._journal.append((-1, step, arguments))

    def rewind(self, mark: int) -> None:
        """Drop the journal's entries since `mark`; the next recorded round contains their result."""
        del self._journal[mark:]

    def round(self, step: Step, *arguments: Any, merge: Merge = add, keep: bool = False) -> Any:
        """Return `step(partition, *arguments)` of all partitions, merged; with `keep`, record it in the journal.

        An error of a step is raised with the partition's number in a note. ClusterError: If no worker is left, or the
        scheduler does not answer.
        """
        call = self._call(step, arguments)
        result = self.remembered(step.__qualname__, lambda: self._ask(call, merge))
        if keep:
            self._journal.append(call)
        if self.progress is not None:
            self.progress(self)
        return result

    def together(self, program: Step, *arguments: Any) -> Any:
        """Run `program(communicator, workers, partitions, *arguments)` on all members, and return the first result.

        The members exchange messages without the client. Call this inside `retried`: if a member is lost, the program
        ends everywhere.
        """
        self._call(program, arguments)
        self._catch_up()
        if self.client is None:
            answers = [self._here.run_program(Communicator(), program, arguments)]
        else:
            names = [name for name, held in self._held.items() if held]
            members = [self._members[name] for name in names]
            self.bytes_sent += size_of(arguments) * len(names)
            answers = self._gather(
                [(name, "together", (program, arguments, rank, members)) for rank, name in enumerate(names)]
            )
        for theirs, sent in answers:
            self.bytes_received += sent
            _raise(theirs)
        whole = [theirs for theirs, _ in answers if isinstance(theirs, tuple)]
        if len(whole) < len(answers):
            raise _Lost
        if self.progress is not None:
            self.progress(self)
        return whole[0][0]

    def _call(self, step: Step, arguments: tuple[Any, ...]) -> Call:
        self._serial += 1
        self.n_rounds += 1
        return self._serial, step, arguments

    def remembered(self, what: str, work: Callable[[], Any]) -> Any:
        """Return `work()`, which may be several rounds. A checkpoint stores its result as `what`, not their answers."""
        log, self._log = self._log, None
        try:
            if log is not None and log.replaying:
                self._behind = True
                return log.answer(what)
            value = work()
            if log is not None:
                log.add(what, value)
            return value
        finally:
            self._log = log

    def _catch_up(self) -> None:
        """Bring the partitions to the state of a resumed fit."""
        if self._behind:
            self._try("replay", (list(self._journal),))
            self._behind = False

    def _ask(self, call: Call, merge: Merge) -> Any:
        self._catch_up()
        return self.retried(lambda: self._ask_once(call, merge))

    def _ask_once(self, call: Call, merge: Merge) -> Any:
        arguments = (*call, merge, self.n_partitions)
        answers: list[Any]
        if self.client is None:
            answers = [self._here.run(*arguments)]
        else:
            self.bytes_sent += size_of(call[2]) * len(self._members)
            answers = self._gather([(address, "do", ("run", arguments, below)) for address, below in self._tree()])
        nodes: Nodes = {}
        for theirs, sent in answers:
            self.bytes_received += sent
            _raise(theirs)
            nodes.update(theirs)
        whole = fold(nodes, merge, self.n_partitions)
        if len(whole) != 1:  # a member does not hold what it should
            raise _Lost
        return next(iter(whole.values()))

    def _tree(self) -> list[tuple[str, list[Any]]]:
        """Arrange the members in a tree of at most `FAN_IN` roots: the parent of member i is i // FAN_IN - 1."""
        members = list(self._members.items())
        below: list[list[Any]] = [[] for _ in members]
        for i in range(len(members) - 1, FAN_IN - 1, -1):
            below[i // FAN_IN - 1].append((members[i][1], below[i]))
        return [(address, own) for (address, _), own in zip(members[:FAN_IN], below)]

    # Calls and their answers.

    def _gather(self, starts: list[tuple[str, str, tuple[Any, ...]]]) -> list[Any]:
        """Return the answers to calls; a call is an address, a method and its arguments."""
        self._calls += 1
        call = _Watch(self._calls, time.monotonic())
        futures = [self._start(address, method, call.number, *own) for address, method, own in starts]
        return [self._wait(future, call) for future in futures]

    def _start(self, address: str, method: str, *arguments: Any) -> Any:
        """Start a method of a member; raise `_Lost` if it is known to be gone."""
        try:
            return getattr(self._members[address], method)(*arguments)
        except Exception as error:
            raise _Lost from error

    def _wait(self, future: Any, call: _Watch) -> Any:
        """Wait for an answer; raise `_Lost` if none will come."""
        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                self._look(call)
            except (OSError, ValueError, KeyError, RuntimeError) as error:
                # An error of a step is an answer (`Failure`); any other is of the connection.
                raise _Lost from error

    def _look(self, call: _Watch) -> None:
        """Raise `_Lost` if a member has left, has not answered for too long, or does not know the call."""
        if not set(self._members) <= set(self._addresses()):
            raise _Lost
        now = time.monotonic()
        for address in self._members:
            question = call.questions.pop(address, None)
            if question is not None and question.done():
                try:
                    under_way, ended, _ = question.result(timeout=1)
                except Exception:
                    question = None
                else:
                    question = None
                    call.heard[address] = now
                    if call.number in under_way:
                        call.unknown[address] = 0
                    elif call.number not in ended or now - call.begun > 5 * SILENCE_SECONDS:
                        call.unknown[address] = call.unknown.get(address, 0) + 1
                    if call.unknown.get(address, 0) >= _UNKNOWN_LOOKS:
                        raise _Lost
            call.questions[address] = self._start(address, "state") if question is None else question
            if now - call.heard.get(address, call.begun) > SILENCE_SECONDS:
                raise _Lost

    # Workers that join and leave.

    def _addresses(self) -> list[str]:
        """Return the scheduler's workers that are still in use."""
        until = time.monotonic() + _RETURN_SECONDS
        while self.client.status != "running":
            if self.client.status != "connecting" or time.monotonic() > until:
                raise ClusterError(
                    f"the scheduler at {self.client.scheduler.address} closed its connection, and did not return "
                    f"within {_RETURN_SECONDS:g} s. Start it, and fit again (checkpoints keep finished rounds)",
                    code="no-scheduler",
                )
            time.sleep(0.2)
        try:
            known = self.client.sync(
                self.client.scheduler.identity, n_workers=-1, callback_timeout=SILENCE_SECONDS
            )["workers"]  # fmt: skip
        except Exception as error:
            raise ClusterError(f"the scheduler does not answer ({error!r}). Start it, and fit again") from error
        return sorted(set(known) - self._given_up)

    def _settle(self) -> None:
        """Assign the partitions of lost members to other members, so that every partition has a member."""
        for _ in range(_ATTEMPTS):
            try:
                self._count()
                homeless = set(range(self.n_partitions)) - {n for held in self._held.values() for n in held}
                if homeless:
                    self._spread(sorted(homeless))
                return
            except _Lost:
                continue
        raise self._no_progress()

    def _count(self) -> None:
        """Drop members that are gone or silent, and ask the other members which partitions they hold."""
        until = time.monotonic() + SILENCE_SECONDS
        waiting, lost = set(self._members), []
        while waiting:
            alive = set(self._addresses())
            for address in sorted(waiting - alive):
                lost.append(address)
                waiting.remove(address)
            for address in sorted(waiting):
                try:
                    self._held[address] = self._start(address, "state").result(timeout=_LOOK_SECONDS)[2]
                    waiting.remove(address)
                except Exception:  # no answer, whatever the reason
                    continue
            if waiting and time.monotonic() > until:
                self._give_up(waiting)
                lost += waiting
                break
            if waiting:
                time.sleep(0.2)
        homeless = sum(len(self._held.get(address, [])) for address in lost)
        for address in lost:
            for of in (self._members, self._held, self._futures):
                of.pop(address, None)
        if lost:
            self.n_lost += len(lost)
            again = f"Other workers read {counted(homeless, 'partition')} again"
            note(f"truerank: lost {counted(len(lost), 'worker')}. {again}")

    def _give_up(self, silent: set[str]) -> None:
        for address in sorted(silent):
            note(f"truerank: worker {address} has not answered for {SILENCE_SECONDS:g} s and is no longer used")
        self._given_up |= silent

    def _spread(self, numbers: list[int]) -> None:
        """Distribute partitions: first to the members with the fewest partitions, consecutive partitions together."""
        self._enlist()
        share = -(-(sum(map(len, self._held.values())) + len(numbers)) // len(self._members))
        rest = list(numbers)
        given: dict[str, tuple[Any, ...]] = {}
        for address in sorted(self._members, key=lambda name: (len(self._held[name]), name)):
            room = max(0, share - len(self._held[address]))
            mine, rest = rest[:room], rest[room:]
            if mine:
                given[address] = (self._parts(mine), list(self._journal))
        for failed in self._gather([(address, "do", ("take", own, [])) for address, own in given.items()]):
            _raise(failed)
        for address, (parts, _) in given.items():
            self._held[address] = sorted({*self._held[address], *(number for number, _, _ in parts)})

    def _parts(self, numbers: Sequence[int]) -> list[tuple[int, Source, bool]]:
        return [(number, self.sources[number], self.hold) for number in numbers]

    def _enlist(self) -> None:
        """Create a member on every worker; wait for a worker if there is none."""
        until = time.monotonic() + SILENCE_SECONDS
        while True:
            fresh = [address for address in self._addresses() if address not in self._members]
            futures = {
                address: self.client.submit(Member, workers=[address], actor=True, pure=False) for address in fresh
            }
            for address, future in futures.items():
                self._make(address, future)
            if self._members:
                return
            if time.monotonic() > until:
                silent = f" ({len(self._given_up)} did not answer)" if self._given_up else ""
                raise ClusterError(
                    f"no worker is left in the cluster{silent}, and none joined within {SILENCE_SECONDS:g} s. "
                    "Start workers, and fit again",
                    code="no-worker",
                )
            time.sleep(0.5)

    def _make(self, address: str, future: Any) -> None:
        from distributed import Actor, wait

        until = time.monotonic() + SILENCE_SECONDS
        while not future.done():
            if address not in self._addresses():
                return
            if time.monotonic() > until:
                self._give_up({address})
                return
            try:
                wait([future], timeout=_LOOK_SECONDS)
            except TimeoutError:
                continue
        if future.status == "error":
            if address in self._addresses():
                raise ClusterError(f"worker {address} cannot store its partitions: {future.exception()!r}")
            return
        if future.status != "finished":
            return
        with self.client.as_current():  # this process may have several clients, and the actor must be of this one
            self._members[address] = Actor(Member, address, future.key)
        self._futures[address], self._held[address] = future, []

    def _no_progress(self) -> ClusterError:
        return ClusterError(
            f"{_ATTEMPTS} attempts at round {self._serial} failed: workers were lost or did not answer, often for "
            "lack of memory. Read their logs, and give them more memory or smaller partitions"
        )

    def close(self) -> None:
        """Release the partitions."""
        for of in (self._members, self._held, self._futures):
            of.clear()


class _Watch:
    """The state of a running call at the client."""

    def __init__(self, number: int, begun: float) -> None:
        self.number, self.begun = number, begun
        self.questions: dict[str, Any] = {}
        self.heard: dict[str, float] = {}
        self.unknown: dict[str, int] = {}


class _Lost(Exception):
    """An error: a worker left, does not answer, or does not know the call."""


def _raise(answer: object) -> None:
    if isinstance(answer, Failure):
        if answer.number is not None:
            answer.error.add_note(f"partition {answer.number}")
        raise answer.error
