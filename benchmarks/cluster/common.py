"""What the benchmarks of a cluster share: made-up data, cuts, and clusters of processes on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from truerank import RankingData
from truerank.cluster import connect, from_parts


def made_up(n: int, p: int, seed: int = 0, rows_a_query: int = 100) -> RankingData:
    """n rows of p features (float32) with grades 0 to 4 that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p), dtype=np.float32)
    latent = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + rng.standard_normal(n, dtype=np.float32)
    y = np.clip(np.floor(latent + 1.5), 0, 4).astype(np.float64)
    return RankingData(X, y, np.arange(n) // rows_a_query)


def cut(data: RankingData, k: int) -> list[RankingData]:
    """k runs of queries."""
    bounds = np.linspace(0, data.n_queries, k + 1).astype(int)
    return [data.take_queries(np.arange(a, b)) for a, b in zip(bounds[:-1], bounds[1:])]


@contextmanager
def workers(n: int, memory: str | None = None) -> Iterator[Any]:
    """A client of n worker processes with one thread each; one that takes more than `memory` is killed."""
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if memory is None:
            client = connect(f"local:{n}")
        else:
            cluster = LocalCluster(n_workers=n, threads_per_worker=1, memory_limit=memory, dashboard_address=None)
            client = Client(cluster, direct_to_workers=True)
        client.wait_for_workers(n, timeout=60)
        try:
            yield client
        finally:
            client.shutdown()


def on(client: Any, data: RankingData, k: int) -> Any:
    """The data in k partitions on the workers."""
    return from_parts(cut(data, k), client=client)
