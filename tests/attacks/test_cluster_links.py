"""Surface: what listens while a fit runs on a cluster: the processes of a local cluster."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from support.refusals import refused
from truerank import ObliviousBoosting, load_sample
from truerank.cluster import connect, from_parts
from truerank.core.errors import ClusterError

pytest.importorskip("distributed")


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
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=60)


@pytest.mark.filterwarnings("ignore")
def test_a_client_without_the_certificate_is_refused_by_a_local_cluster(client):
    from distributed import Client

    with pytest.raises((OSError, TypeError)):
        Client(client.scheduler.address.replace("tls", "tcp"), timeout=2)


@pytest.mark.filterwarnings("ignore")
def test_messages_between_workers_of_a_local_cluster_are_under_tls(client):
    from distributed import get_worker

    def mode():
        return get_worker().rpc.connection_args["ssl_context"].verify_mode.name

    assert client.submit(mode).result(timeout=120) == "CERT_REQUIRED"


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
            with refused(ClusterError, code="no-scheduler"):
                trees.fit(data, callbacks=[kill])
    finally:
        for one in (worker, scheduler):
            one.kill()
            one.wait()
