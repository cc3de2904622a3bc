"""Surface: what listens while a fit runs on a cluster: links between members, and the processes of a local cluster."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from truerank import ObliviousBoosting, load_sample
from truerank.cluster import connect, from_parts, links
from truerank.cluster.communicator import Communicator
from truerank.cluster.links import Door, Link, Listener
from truerank.core.errors import ClusterError

pytest.importorskip("distributed")


class Host:
    """A member that hears others."""

    def __init__(self):
        self.heard, self.came = [], threading.Semaphore(0)
        self.listener = Listener("127.0.0.1", "127.0.0.1", range(1), None, self.greeted)
        self.door = self.listener.door

    def greeted(self, number, rank, link):
        self.heard.append((number, rank, link))
        self.came.release()

    def answers(self):
        """Whether a member that knows the token is heard, and nobody else was."""
        before = len(self.heard)
        there = Link.to(self.door, 1, 1, None)
        assert self.came.acquire(timeout=120)
        there.send("here")
        return len(self.heard) == before + 1 and self.heard[-1][2].receive() == "here"

    def knock(self, data=b""):
        made = socket.create_connection((self.door.host, self.door.port))
        made.sendall(data)
        return made


def hung_up(connection):
    """Whether the other side ends a connection without a word."""
    connection.settimeout(120)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


RIGHT_SIZE = links._GREETING.size
JUNK = {
    "zeros": bytes(RIGHT_SIZE),
    "text": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "much": b"\xff" * 100_000,
    "pickle": b"\x80\x05cos\nsystem\n(S'true'\ntR." + bytes(RIGHT_SIZE),
    "TLS": bytes.fromhex("160301020001fc03") + bytes(RIGHT_SIZE),
}


@pytest.mark.parametrize("name", JUNK)
def test_junk_is_not_heard(name):
    host = Host()
    with host.knock(JUNK[name]) as junk:
        assert hung_up(junk)
    assert host.heard == []
    assert host.answers()


def test_a_token_that_is_wrong_in_one_bit_is_not_heard():
    host = Host()
    for place in (0, 7, 15):
        wrong = bytearray(host.door.token)
        wrong[place] ^= 1
        with host.knock(links._GREETING.pack(bytes(wrong), 1, 1)) as other:
            assert hung_up(other)
    assert host.heard == []


def test_a_greeting_in_drops_has_one_deadline(monkeypatch):
    monkeypatch.setattr(links, "_GREETING_SECONDS", 0.5)
    host = Host()
    greeting = links._GREETING.pack(host.door.token, 1, 1)
    with host.knock() as slow, pytest.raises(OSError):  # a reset, or a broken pipe
        for drop in greeting[:-1]:  # less than half a second between two of them, 27 in all
            slow.sendall(bytes([drop]))
            threading.Event().wait(0.2)
        slow.sendall(greeting[-1:])
        slow.sendall(b"?")
        slow.settimeout(30)
        if slow.recv(1) == b"":
            raise ConnectionResetError
    assert host.heard == []
    assert host.answers()


def test_silent_connections_hold_few_threads_and_others_are_heard_after_them(monkeypatch):
    monkeypatch.setattr(links, "_GREETING_SECONDS", 1.0)
    host = Host()
    before = threading.active_count()
    silent = [host.knock() for _ in range(100)]
    threading.Event().wait(0.3)
    assert threading.active_count() - before <= 2 * links._MOST_GREETINGS
    assert host.answers()
    for one in silent:
        one.close()


def test_a_greeting_that_is_sent_again_changes_nothing():
    host, here = Host(), Communicator(5)
    here.begin(0, [Door("", 0, b"")] * 2)
    there = Link.to(host.door, 5, 1, None)
    assert host.came.acquire(timeout=120)
    with host.knock(links._GREETING.pack(host.door.token, 5, 1)) as again:
        assert host.came.acquire(timeout=120)
        for _, rank, link in host.heard:
            here.welcome(rank, link)
        assert hung_up(again)
    there.send("first")
    assert here.hear(1) == "first"
    here.close()
    there.close()


@pytest.fixture(scope="module")
def client():
    made = connect("local:1")
    yield made
    made.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_a_local_cluster_is_under_tls_and_shows_no_page(client):
    addresses = [client.scheduler.address, *client.scheduler_info()["workers"]]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    for address in addresses:
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(bytes(64))
            plain.settimeout(120)
            answer = b""
            try:
                while part := plain.recv(100):
                    answer += part
            except ConnectionResetError:
                pass
        assert answer[:1] in (b"", b"\x15")  # nothing, or an alert of TLS
    served = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.http_server.port)
    for port in [served, *client.run(lambda dask_worker: dask_worker.http_server.port).values()]:
        for page in ("/status", "/info/main/workers.html", "/json/counts.json", "/metrics"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=60)


@pytest.mark.filterwarnings("ignore")
def test_a_client_without_the_certificate_is_refused_by_a_local_cluster(client):
    from distributed import Client

    with pytest.raises((OSError, TypeError)):
        Client(client.scheduler.address.replace("tls", "tcp"), timeout=2)


@pytest.mark.filterwarnings("ignore")
def test_links_of_a_local_cluster_are_under_tls(client):
    from distributed import get_worker

    def context():
        made = links.connection_context(get_worker())
        return made is not None and made.verify_mode.name

    assert client.submit(context).result(timeout=120) == "CERT_REQUIRED"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.filterwarnings("ignore")
def test_a_killed_scheduler_is_reported_as_such(tmp_path):
    from distributed import Client

    file = str(tmp_path / "scheduler.json")
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", file],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", file, "--no-nanny", "--nthreads",
         "1", "--no-dashboard", "--local-directory", str(tmp_path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with Client(scheduler_file=file, timeout=120) as made:
            made.wait_for_workers(1, timeout=120)
            rows = load_sample().take_queries(range(12))
            data = from_parts([rows.take_queries(np.arange(i, 12, 2)) for i in range(2)], client=made)

            def kill(info):
                if info.round == 2:
                    scheduler.kill()
                    scheduler.wait()

            trees = ObliviousBoosting("constant", n_estimators=2_000, depth=2, n_jobs=1)
            with pytest.raises(ClusterError, match=r"the scheduler at tcp://.* has ended"):
                trees.fit(data, callbacks=[kill])
    finally:
        for one in (worker, scheduler):
            one.kill()
            one.wait()
