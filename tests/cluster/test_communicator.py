"""Members that run a program together: what they tell one another, and how they part."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from truerank.cluster.communicator import Communicator, Parted
from truerank.cluster.member import Failure, Member
from truerank.cluster.partition import GivenSource, Partition


def member():
    made = Member(1)
    made.partitions[0] = Partition(0, GivenSource(None))
    return made


class Gone:
    """A member whose worker is not there."""

    async def meet(self, *question):
        raise OSError("unable to contact")

    part = meet


def told_by_all(communicator, workers, partitions, value):
    """What the others say in two turns, the lower ranks late."""
    time.sleep(0.01 * (communicator.size - communicator.rank))
    others = [i for i in range(communicator.size) if i != communicator.rank]
    rounds = [[communicator.exchange(i, (value, turn, communicator.rank)) for i in others] for turn in (1, 2)]
    return [[answer() for answer in begun] for begun in rounds]


def raises_at_rank_1(communicator, workers, partitions):
    if communicator.rank == 1:
        raise ValueError("a step that fails")
    return communicator.exchange(1, None)()


def waits_for_all(communicator, workers, partitions):
    return [communicator.exchange(i, None)() for i in range(communicator.size) if i != communicator.rank]


def run(program, *arguments, members=None, n=4):
    members = members or [member() for _ in range(n)]

    async def together():
        return await asyncio.gather(
            *(
                one.together(7, program, arguments, rank, members)
                for rank, one in enumerate(members)
                if isinstance(one, Member)
            )
        )

    return [answer for answer, _ in asyncio.run(together())]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_each_hears_all_others_turn_by_turn(n):
    said = [[[("x", turn, i) for i in range(n) if i != rank] for turn in (1, 2)] for rank in range(n)]
    assert run(told_by_all, "x", n=n) == [(own,) for own in said]


def test_a_member_that_fails_ends_the_program_of_all():
    answers = run(raises_at_rank_1)
    assert isinstance(answers[1], Failure)
    assert str(answers[1].error) == "a step that fails"
    assert [answers[i] for i in (0, 2, 3)] == [None] * 3


def test_a_member_that_is_gone_ends_the_program_of_those_that_ask_it():
    assert run(waits_for_all, members=[Gone(), member(), member()]) == [None, None]


def test_what_was_told_is_not_kept():
    members = [member() for _ in range(3)]
    run(told_by_all, "x", members=members)
    assert not any(one._met[1]._meetings or one._met[1]._asked for one in members)


def test_an_answer_that_nobody_waits_for_any_more_parts():
    here = Communicator(1)

    async def asked_and_given_up():
        question = asyncio.ensure_future(here.meet(1, 1, "asked"))
        await asyncio.sleep(0)
        meeting = here.asked(1)
        assert meeting.question() == "asked"
        question.cancel()
        await asyncio.sleep(0)
        with pytest.raises(Parted):
            here.answer(meeting, "too late")

    asyncio.run(asked_and_given_up())


def test_a_newer_call_ends_the_wait_in_an_older_one():
    here, silent = member(), member()

    async def two_calls():
        older = asyncio.ensure_future(here.together(1, waits_for_all, (), 0, [here, silent]))
        await asyncio.sleep(0.05)
        assert (await here.state())[0] == [1]
        assert await here.do(2, "replay", ([],), []) is None
        with pytest.raises(Parted):
            await here.meet(1, 1, 1, None)
        return await older

    assert asyncio.run(two_calls())[0] is None


def test_who_is_met_before_it_begins_answers_then():
    early, late = member(), member()

    async def one_after_the_other():
        first = asyncio.ensure_future(late.together(3, waits_for_all, (), 1, [early, late]))
        await asyncio.sleep(0.05)
        return [answer for answer, _ in (await early.together(3, waits_for_all, (), 0, [early, late]), await first)]

    assert asyncio.run(one_after_the_other()) == [([None],), ([None],)]


def test_all_who_wait_for_an_answer_part_at_the_end():
    """Each takes its question back while the end goes through them."""

    class Silent:
        async def meet(self, *question):
            await asyncio.sleep(60)

    async def end_of(communicator):
        communicator.begin(20, [Silent()] * 20)
        waiting = [asyncio.to_thread(communicator.ask(other, None)) for other in range(20)]
        ended = asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0.02)
        communicator.end()
        return await ended

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(1, 6):
            answers = asyncio.run(end_of(Communicator(number)))
            assert [type(answer) for answer in answers] == [Parted] * 20
    finally:
        sys.setswitchinterval(interval)
