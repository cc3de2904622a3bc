"""Twenty workers killed at random moments of fits of every learner: are the models equal?

python -m benchmarks cluster/bench_kills
python -m benchmarks.cluster.bench_kills trees AdaRank
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cluster.common import on, workers
from truerank import AdaRank, ListNet, MeasureSVM, ObliviousBoosting, RankBoost, RankSVM, RidgeRanker, load_sample

MAKES = {
    "trees, plain leaves": lambda: ObliviousBoosting("constant", n_estimators=20, depth=4),
    "trees, fuzzy leaves": lambda: ObliviousBoosting("fuzzy", n_estimators=8, depth=3),
    "trees, yetirank": lambda: ObliviousBoosting("constant", objective="yetirank", n_estimators=8, depth=3),
    "AdaRank": lambda: AdaRank(n_estimators=100),
    "RankBoost": lambda: RankBoost(n_estimators=60),
    "ListNet": lambda: ListNet(),
    "RankSVM": lambda: RankSVM(),
    "RankSVM, hinge": lambda: RankSVM(loss="hinge", tol=1e-3),
    "MeasureSVM": lambda: MeasureSVM("AP", tol=1e-3),
    "ridge": lambda: RidgeRanker(),
}


def run(chosen: Sequence[str] = ("",)) -> None:
    """Two kills for each learner whose name begins so, at moments drawn from the length of the undisturbed fit."""
    rng = np.random.default_rng(0)
    sample = load_sample()
    print("\n**Two kills for each learner, two worker processes, the shipped sample in 6 partitions**\n")
    print("| learner | undisturbed s | killed after s | took s | workers lost | equal bits |")
    print("| --- | --- | --- | --- | --- | --- |")
    makes = {name: make for name, make in MAKES.items() if name.startswith(tuple(chosen))}
    equal = done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with workers(2) as client:
            for name, make in makes.items():
                there = on(client, sample, 6)
                make().fit(there)  # compiles
                start = time.perf_counter()
                expected = make().fit(there).predict(sample)
                whole = time.perf_counter() - start
                for _ in range(2):
                    client.wait_for_workers(2, timeout=90)
                    there = on(client, sample, 6)
                    after = float(rng.uniform(0.05, 0.9)) * whole
                    killer = threading.Timer(after, _kill, [client, there])
                    start = time.perf_counter()
                    killer.start()
                    got = make().fit(there).predict(sample)
                    took = time.perf_counter() - start
                    killer.join()
                    same = bool(np.array_equal(got, expected))
                    equal, done = equal + same, done + 1
                    print(
                        f"| {name} | {whole:.1f} | {after:.1f} | {took:.1f} | {there.crew.n_lost} | {same} |",
                        flush=True,
                    )
    print(f"\n{equal} of {done} models equal")


def _kill(client: Any, there: Any) -> None:
    info = client.scheduler_info(n_workers=-1)["workers"]
    victims = [address for address in info if address in there.crew._held]
    pids = client.run(os.getpid, workers=victims[:1])
    os.kill(next(iter(pids.values())), signal.SIGKILL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chosen", nargs="*", default=[""])
    run(parser.parse_args().chosen)
