"""The link of one of two workers is cut for 20 seconds in the middle of a fit: network namespaces, as root."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

CUT_SECONDS = 20.0
_HOSTS = {"scheduler": "10.77.0.1", "worker1": "10.77.0.2", "worker2": "10.77.0.3"}


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def build() -> None:
    """Three namespaces on one bridge, which stands in the scheduler's."""
    for host in _HOSTS:
        ip("netns", "add", f"tr-{host}")
        ip("-n", f"tr-{host}", "link", "set", "lo", "up")
    ip("-n", "tr-scheduler", "link", "add", "bridge0", "type", "bridge")
    ip("-n", "tr-scheduler", "addr", "add", f"{_HOSTS['scheduler']}/24", "dev", "bridge0")
    ip("-n", "tr-scheduler", "link", "set", "bridge0", "up")
    for host in ("worker1", "worker2"):
        peer = ["type", "veth", "peer", "name", "eth0", "netns", f"tr-{host}"]
        ip("-n", "tr-scheduler", "link", "add", f"to-{host}", *peer)
        ip("-n", "tr-scheduler", "link", "set", f"to-{host}", "master", "bridge0")
        ip("-n", "tr-scheduler", "link", "set", f"to-{host}", "up")
        ip("-n", f"tr-{host}", "addr", "add", f"{_HOSTS[host]}/24", "dev", "eth0")
        ip("-n", f"tr-{host}", "link", "set", "eth0", "up")


def tear_down() -> None:
    """Remove the namespaces."""
    for host in _HOSTS:
        subprocess.run(["ip", "netns", "del", f"tr-{host}"], check=False, capture_output=True)


def inside(host: str, *words: str) -> subprocess.Popen[Any]:
    """A Python process in a namespace."""
    return subprocess.Popen(["ip", "netns", "exec", f"tr-{host}", sys.executable, *words], stderr=subprocess.DEVNULL)


def fit() -> None:
    """The client's part: fit, say when the fit has begun, compare with one machine."""
    import numpy as np
    from distributed import Client

    from benchmarks.cluster.common import cut
    from truerank import AdaRank, ObliviousBoosting, load_sample
    from truerank.cluster import from_parts

    warnings.simplefilter("ignore")
    sample = load_sample()
    with Client(f"tcp://{_HOSTS['scheduler']}:8786", direct_to_workers=True, timeout=60) as client:
        client.wait_for_workers(2, timeout=60)
        makes = {
            "trees": lambda: ObliviousBoosting("constant", n_estimators=60, depth=4),
            "AdaRank": lambda: AdaRank(n_estimators=300),
        }
        for name, make in makes.items():
            data = from_parts(cut(sample, 6), client=client)
            from_before = make().fit(sample).predict(sample)
            rounds: list[float] = []

            def look(crew: Any, rounds: list[float] = rounds) -> None:
                rounds.append(time.monotonic())
                if len(rounds) == 40:
                    print("cut now", flush=True)

            data.crew.progress = look
            start = time.monotonic()
            got = make().fit(data).predict(sample)
            taken = time.monotonic() - start
            longest = float(np.diff(rounds).max())
            print(
                f"| {name} | {taken:.1f} | {longest:.1f} | {data.crew.n_lost} | {np.array_equal(got, from_before)} |",
                flush=True,
            )


def run() -> None:
    """Build, fit in two ways with a cut in each, tear down."""
    if os.geteuid() != 0:
        print("(needs root, for network namespaces)")
        return
    tear_down()
    processes: list[subprocess.Popen[Any]] = []
    print(f"\n**Two workers, the link of one cut for {CUT_SECONDS:g} s in the middle of the fit**\n")
    print("| learner | s | longest round s | workers lost | equal bits |\n| --- | --- | --- | --- | --- |", flush=True)
    try:
        build()
        processes.append(inside("scheduler", "-m", "distributed.cli.dask_scheduler", "--host", _HOSTS["scheduler"],
                                "--port", "8786", "--no-dashboard"))  # fmt: skip
        for host in ("worker1", "worker2"):
            words = [f"tcp://{_HOSTS['scheduler']}:8786", "--host", _HOSTS[host], "--no-nanny", "--nthreads", "1"]
            processes.append(inside(host, "-m", "distributed.cli.dask_worker", *words, "--no-dashboard"))
        client = subprocess.Popen(
            ["ip", "netns", "exec", "tr-scheduler", sys.executable, __file__, "--fit"],
            stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        processes.append(client)
        assert client.stdout is not None
        for line in client.stdout:
            if line.startswith("cut now"):
                ip("-n", "tr-scheduler", "link", "set", "to-worker2", "down")
                time.sleep(CUT_SECONDS)
                ip("-n", "tr-scheduler", "link", "set", "to-worker2", "up")
            else:
                print(line, end="", flush=True)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
        tear_down()


if __name__ == "__main__":
    if sys.argv[1:] == ["--fit"]:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        fit()
    else:
        run()
