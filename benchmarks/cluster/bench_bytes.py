"""Overhead of a tree level by partitions, and bytes sent: the page's formula beside what was counted."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.cluster.common import made_up, on, workers
from truerank import AdaRank, ListNet, ObliviousBoosting, RankBoost

DEPTH, TREES = 4, 10


def overhead() -> None:
    """Milliseconds a level of trees over few rows, where a level is nothing but overhead."""
    data = made_up(3_200, 8)
    print(f"\n**A level of a tree, 3,200 × 8, two workers of one thread, {TREES} trees of depth {DEPTH}**\n")
    print("| partitions | rounds | ms a round | ms a level, all in |\n| --- | --- | --- | --- |")
    with workers(2) as client:
        for k in (2, 8, 32):
            there = on(client, data, k)
            make = lambda: ObliviousBoosting("constant", n_estimators=TREES, depth=DEPTH)  # noqa: E731
            make().fit(there)
            rounds, start = there.crew.n_rounds, time.perf_counter()
            make().fit(there)
            taken, rounds = time.perf_counter() - start, there.crew.n_rounds - rounds
            print(f"| {k} | {rounds} | {1e3 * taken / rounds:.1f} | {1e3 * taken / (TREES * DEPTH):.1f} |", flush=True)


def bytes_sent() -> None:
    """Bytes that went up the tree of sums, counted and by formula."""
    data = made_up(24_000, 24)
    p, m = data.n_features, data.n_queries
    kinds: dict[str, tuple[Any, Any]] = {
        "trees, plain leaves": (ObliviousBoosting("constant", n_estimators=TREES, depth=DEPTH), _of_trees),
        "AdaRank": (AdaRank(n_estimators=50), lambda r, there, rounds: 8 * m * (p + 2) + m + 8 * m * (rounds - 4)),
        "ListNet": (
            ListNet(),
            lambda r, there, rounds: there.crew.n_workers * (8 * (p + 1) * (rounds - 2) + 8 * p * p),
        ),
        "RankBoost": (RankBoost(n_estimators=50), lambda r, there, rounds: _of_stumps(r, there)),
    }
    print(f"\n**Bytes up, {data.n_rows:,} × {p}, {m} queries, 4 partitions**\n")
    print("| learner | workers | rounds | counted | formula | counted / formula | sent by the client |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n in (1, 2, 4):
        with workers(n) as client:
            for name, (ranker, formula) in kinds.items():
                there = on(client, data, 4)
                up, down, rounds = there.crew.bytes_received, there.crew.bytes_sent, there.crew.n_rounds
                ranker.fit(there)
                up, down, rounds = (
                    there.crew.bytes_received - up, there.crew.bytes_sent - down, there.crew.n_rounds - rounds,
                )  # fmt: skip
                said = formula(ranker, there, rounds)
                cells = [name, there.crew.n_workers, rounds, f"{up:,}", f"{said:,.0f}", f"{up / said:.3f}", f"{down:,}"]
                print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _of_trees(ranker: Any, there: Any, rounds: int) -> float:
    """A worker sends the histograms of all levels and six exact sums a tree; once all values and their counts go up."""
    width = -(-there.n_features // 8) * 8 * (2 * ranker.borders + 1)
    levels = sum(2 ** max(level - 1, 0) for level in range(DEPTH))
    each = TREES * 8 * levels * width + (TREES + 1) * 6 * 32_768
    return there.crew.n_workers * each + (4 + 8) * there.n_rows * there.n_features


def _of_stumps(ranker: Any, there: Any) -> float:
    return there.crew.n_workers * 8 * (there.n_features * 101 + 2) * ranker.n_iter_


def run() -> None:
    """Print both tables."""
    overhead()
    bytes_sent()


if __name__ == "__main__":
    run()
