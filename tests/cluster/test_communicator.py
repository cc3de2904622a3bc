"""Members that run a program together: what they tell one another, and how they part."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from functools import partial

import numpy as np
import pytest

from truerank.cluster import communicator as communicator_module
from truerank.cluster.communicator import Communicator, Parted
from truerank.cluster.member import Failure, Member
from truerank.cluster.partition import Partition, given_rows
from truerank.core.errors import ClusterError


def member():
    made = Member(1)
    made.partitions[0] = Partition(0, partial(given_rows, None))
    return made


def others_of(communicator):
    return [i for i in range(communicator.size) if i != communicator.rank]


def told_by_all(communicator, workers, partitions, value):
    """What the others say in two turns, the lower ranks late."""
    time.sleep(0.01 * (communicator.size - communicator.rank))
    for turn in (1, 2):
        for i in others_of(communicator):
            communicator.tell(i, (value, turn, communicator.rank))
    return [[communicator.hear(i) for i in others_of(communicator)] for _ in (1, 2)]


def large_at_once(communicator, workers, partitions):
    """Messages larger than what connections hold, all begun before any is taken."""
    mine = np.full(1_000_000, communicator.rank)
    for i in others_of(communicator):
        communicator.tell(i, (mine, "and", mine[:3]))
    heard = [communicator.hear(i) for i in others_of(communicator)]
    return [(whole.sum(), word, few.tolist(), whole.flags.writeable) for whole, word, few in heard]


def raises_at_rank_1(communicator, workers, partitions):
    if communicator.rank == 1:
        raise ValueError("a step that fails")
    return communicator.hear(1)


def waits_for_all(communicator, workers, partitions):
    for i in others_of(communicator):
        communicator.tell(i, None)
    return [communicator.hear(i) for i in others_of(communicator)]


def tells_all(communicator, workers, partitions):
    for i in others_of(communicator):
        communicator.tell(i, None)


def run(program, *arguments, n=4):
    async def together():
        members = [member() for _ in range(n)]
        runs = [one.together(7, program, arguments, rank, members) for rank, one in enumerate(members)]
        return await asyncio.gather(*runs)

    return [answer for answer, _ in asyncio.run(together())]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_each_hears_all_others_turn_by_turn(n):
    said = [[[("x", turn, i) for i in range(n) if i != rank] for turn in (1, 2)] for rank in range(n)]
    assert run(told_by_all, "x", n=n) == [(own,) for own in said]


def test_members_that_send_much_to_one_another_do_not_wait_for_each_other():
    expected = {i: (i * 1_000_000, "and", [i] * 3, True) for i in range(3)}
    assert run(large_at_once, n=3) == [([expected[i] for i in range(3) if i != rank],) for rank in range(3)]


def test_a_member_that_fails_ends_the_program_of_all():
    answers = run(raises_at_rank_1)
    assert isinstance(answers[1], Failure)
    assert str(answers[1].error) == "a step that fails"
    assert [answers[i] for i in (0, 2, 3)] == [None] * 3


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts the files of /proc")
def test_nothing_stays_open():
    run(told_by_all, "x")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for program in (told_by_all, raises_at_rank_1):
        run(program, *(["x"] if program is told_by_all else []))
    until = time.monotonic() + 20
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < until:
        gc.collect()  # an error's traceback holds its member, and a thread may hold both a while longer
        time.sleep(0.05)  # the threads of listeners whose members are gone
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("program", [waits_for_all, tells_all])
def test_a_member_that_is_not_reached_is_an_error_that_says_what_to_open(monkeypatch, program):
    monkeypatch.setattr(communicator_module, "_REACH_SECONDS", 0.2)

    class Gone:
        _address = "tcp://127.0.0.1:9"

        async def hear(self, number, other, turn, value):
            raise OSError("unable to contact")

        async def part(self, number):
            raise OSError("unable to contact")

    async def alone():
        here = member()
        return await here.together(1, program, (), 1, [Gone(), here])

    failure, _ = asyncio.run(alone())
    assert isinstance(failure.error, ClusterError)
    assert "tcp://127.0.0.1:9 (unable to contact)" in str(failure.error)
    assert "Open the ports" in str(failure.error)


def test_a_newer_call_ends_the_wait_in_an_older_one():
    async def two_calls():
        members = [member(), member()]
        here = members[0]
        older = asyncio.ensure_future(here.together(1, waits_for_all, (), 0, members))
        await asyncio.sleep(0.05)
        assert (await here.state())[0] == [1]
        assert await here.do(2, "replay", ([],), []) is None
        with pytest.raises(Parted):
            here._communicator(1)
        return await older

    assert asyncio.run(two_calls())[0] is None


def test_who_is_told_before_it_begins_hears_it_then():
    async def one_after_the_other():
        members = [member(), member()]
        early, late = members
        first = asyncio.ensure_future(late.together(3, waits_for_all, (), 1, members))
        await asyncio.sleep(0.05)
        return [answer for answer, _ in (await early.together(3, waits_for_all, (), 0, members), await first)]

    assert asyncio.run(one_after_the_other()) == [([None],), ([None],)]


def test_all_who_wait_part_at_the_end():
    here = Communicator(1)
    ended = []

    def wait(other):
        with pytest.raises(Parted):
            here.hear(other)
        ended.append(other)

    waiting = [threading.Thread(target=wait, args=(other,)) for other in range(1, 6)]
    for thread in waiting:
        thread.start()
    time.sleep(0.02)
    here.end()
    for thread in waiting:
        thread.join(timeout=120)
    assert sorted(ended) == [1, 2, 3, 4, 5]
    with pytest.raises(Parted):
        here.tell(1, None)


def test_messages_that_arrive_in_another_order_or_twice_are_heard_once_in_order():
    here = Communicator(1)
    for turn in (2, 1, 1, 3):
        here.welcome(1, turn, f"message {turn}")
    assert [here.hear(1), here.hear(1)] == ["message 1", "message 2"]
    here.welcome(1, 2, "again")
    assert here.hear(1) == "message 3"
