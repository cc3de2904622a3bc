"""PageRank of 10⁷ random links among 10⁶ pages, and of a tenth of them beside networkx."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import peer
from truerank.links.graph import LinkGraph, pagerank


def links(n_nodes: int, n_links: int) -> tuple[np.ndarray, np.ndarray]:
    """Sources at random, targets by a law of powers, as on the web."""
    draw = np.random.default_rng(0)
    targets = np.minimum((n_nodes * draw.random(n_links) ** 3).astype(np.int64), n_nodes - 1)
    return draw.integers(0, n_nodes, n_links), targets


def timed(work: Any) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def run() -> None:
    sources, targets = links(1_000_000, 10_000_000)
    made, made_cpu, graph = timed(lambda: LinkGraph(sources, targets, 1_000_000))
    solved, solved_cpu, _ = timed(lambda: pagerank(graph, tol=1e-6))
    print(f"{graph}: CPU s: graph {made_cpu:.2f}, PageRank to 1e-6 {solved_cpu:.2f}; wall {made + solved:.2f} s in all")
    networkx = peer("networkx")
    if networkx is None:
        return
    few = links(100_000, 1_000_000)
    _, ours, ranks = timed(lambda: pagerank(LinkGraph(*few, 100_000), tol=1e-6))
    theirs = networkx.DiGraph()
    theirs.add_nodes_from(range(100_000))
    made_theirs = timed(lambda: theirs.add_edges_from(zip(few[0].tolist(), few[1].tolist())))[1]
    _, cpu, wanted = timed(lambda: networkx.pagerank(theirs, tol=1e-6 / 100_000))
    largest = max(abs(ranks[k] - wanted[k]) for k in range(100_000))
    print(
        f"10⁶ links, CPU s: ours, graph and ranks {ours:.2f}; networkx, graph {made_theirs:.2f}, ranks {cpu:.2f}: "
        f"{(made_theirs + cpu) / ours:.0f} times; largest difference {largest:.1e}"
    )


if __name__ == "__main__":
    run()
