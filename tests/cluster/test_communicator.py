"""Members that run a program together: what they tell one another, and how they part."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

import numpy as np
import pytest

from truerank.cluster import communicator as communicator_module
from truerank.cluster import links
from truerank.cluster.communicator import Communicator, Parted
from truerank.cluster.links import Door, Link, Listener
from truerank.cluster.member import Failure, Member
from truerank.cluster.partition import GivenSource, Partition
from truerank.core.errors import ClusterError


def member():
    made = Member(1)
    made.partitions[0] = Partition(0, GivenSource(None))
    return made


async def with_doors(members):
    return [(one, await one.door(0)) for one in members]


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
        members = await with_doors([member() for _ in range(n)])
        runs = [one.together(7, program, arguments, rank, members) for rank, (one, _) in enumerate(members)]
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
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = Door("127.0.0.1", closed.getsockname()[1], b"0" * 16)

    class Gone:
        async def part(self, number):
            raise OSError("unable to contact")

    async def alone():
        here = member()
        return await here.together(1, program, (), 1, [(Gone(), nobody), (here, await here.door(0))])

    failure, _ = asyncio.run(alone())
    assert isinstance(failure.error, ClusterError)
    assert f"127.0.0.1:{nobody.port}" in str(failure.error)
    assert "TRUERANK__PORTS" in str(failure.error)


def test_a_newer_call_ends_the_wait_in_an_older_one():
    async def two_calls():
        members = await with_doors([member(), member()])
        here = members[0][0]
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
        members = await with_doors([member(), member()])
        (early, _), (late, _) = members
        first = asyncio.ensure_future(late.together(3, waits_for_all, (), 1, members))
        await asyncio.sleep(0.05)
        return [answer for answer, _ in (await early.together(3, waits_for_all, (), 0, members), await first)]

    assert asyncio.run(one_after_the_other()) == [([None],), ([None],)]


def test_all_who_wait_part_at_the_end():
    here = Communicator(1)
    here.begin(0, [])
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


class Host:
    """Keeps the links that a listener hands over."""

    def __init__(self, ports=range(1), context=None):
        self.came = threading.Semaphore(0)
        self.links = []
        self.listener = Listener("127.0.0.1", "127.0.0.1", ports, context, self.greeted)

    def greeted(self, number, rank, link):
        self.links.append((number, rank, link))
        self.came.release()

    def next(self):
        assert self.came.acquire(timeout=120)
        return self.links[-1]


def test_who_does_not_know_the_token_is_not_heard(monkeypatch):
    host = Host()
    door = host.listener.door
    Link.to(Door(door.host, door.port, b"?" * 16), 1, 1, None).close()
    with monkeypatch.context() as patch:
        patch.setattr(links, "_GREETING_SECONDS", 0.1)
        with socket.create_connection((door.host, door.port)) as silent:
            assert silent.recv(1) == b""
    there = Link.to(door, 2, 3, None)
    number, rank, here = host.next()
    there.send({"a": np.arange(3)})
    assert here.receive()["a"].tolist() == [0, 1, 2]
    assert [(number, rank), len(host.links)] == [(2, 3), 1]
    there.close()
    with pytest.raises(ConnectionResetError, match="hung up"):
        here.receive()
    here.close()


def test_ports_may_be_limited(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"truerank.ports={port}:{port}"):
            Host(range(port, port + 1))
    dask = pytest.importorskip("dask")
    with dask.config.set({"truerank.ports": "9000:9002"}):
        assert links._ports_allowed() == range(9000, 9003)
    with dask.config.set({"truerank.ports": "many"}), pytest.raises(ClusterError, match="got 'many'"):
        links._ports_allowed()
    assert links._ports_allowed() == range(1)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_links_under_tls(tmp_path):
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-subj", "/CN=cluster", "-keyout", key, "-out", certificate],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    outside = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outside.check_hostname = False  # as Dask does
    for context in (inside, outside):
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    host = Host(context=inside)
    with pytest.raises(ssl.SSLError, match="certificate"):
        Link.to(host.listener.door, 1, 1, ssl.create_default_context())
    there = Link.to(host.listener.door, 1, 1, outside)
    here = host.next()[2]

    def send_and_close():
        there.send(np.arange(300_000))
        there.interrupt()
        there.close()

    sending = threading.Thread(target=send_and_close)
    sending.start()
    time.sleep(0.1)  # what was sent still arrives
    assert here.receive().sum() == sum(range(300_000))
    sending.join(timeout=120)
    here.close()
