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
    """Bytes that went up, counted and by formula: of trees those of ten trees, of the others those of a fit."""
    data = made_up(24_000, 24)
    p, m = data.n_features, data.n_queries
    kinds: dict[str, tuple[Any, Any]] = {
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
            there = on(client, data, 4)
            few, many = (
                _counted(ObliviousBoosting("constant", n_estimators=k * TREES, depth=DEPTH), there) for k in (1, 2)
            )
            trees = [b - a for a, b in zip(few, many)]
            _row(f"{TREES} trees, plain leaves", there, trees, _of_trees(there))
            _row("before the first tree", there, [a - b for a, b in zip(few, trees)], None)
            for name, (ranker, formula) in kinds.items():
                there = on(client, data, 4)
                counted = _counted(ranker, there)
                _row(name, there, counted, formula(ranker, there, counted[0]))


def _counted(ranker: Any, there: Any) -> list[int]:
    """Rounds, bytes up and bytes down of a fit."""
    before = there.crew.n_rounds, there.crew.bytes_received, there.crew.bytes_sent
    ranker.fit(there)
    after = there.crew.n_rounds, there.crew.bytes_received, there.crew.bytes_sent
    return [b - a for a, b in zip(before, after)]


def _row(name: str, there: Any, counted: list[int], said: float | None) -> None:
    rounds, up, down = counted
    formula = ["", ""] if said is None else [f"{said:,.0f}", f"{up / said:.3f}"]
    cells = [name, there.crew.n_workers, rounds, f"{up:,}", *formula, f"{down:,}"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def _of_trees(there: Any) -> float:
    """The sums of all levels, whole to all or a share to each, with the questions found; three exact sums a worker."""
    n = there.crew.n_workers
    width = -(-there.n_features // 8) * 8 * (2 * 64 + 1)
    sent = 0
    for level in range(DEPTH):
        sums = 8 * 2 ** max(level - 1, 0) * width
        whole = n * (n - 1) << level <= 16
        sent += n * (n - 1) * sums if whole else (n - 1) * sums + n * (n - 1) * 16 * 2**level
    return TREES * (sent + n * 3 * 32_768)


def _of_stumps(ranker: Any, there: Any) -> float:
    return there.crew.n_workers * 8 * (there.n_features * 101 + 2) * ranker.n_iter_


def run() -> None:
    """Print both tables."""
    overhead()
    bytes_sent()


if __name__ == "__main__":
    run()
