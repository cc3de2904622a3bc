"""RankBoost: 300 rounds on an MQ2008 fold beside RankLib, with ten thresholds and with all; 10⁶ rows × 136.

RankLib is run if RANKLIB_JAR names its jar (`mvn dependency:get -Dartifact=org.codelibs:ranklib:2.10.1`).
TRUERANK_BENCH_LARGE=1 adds the 10⁶ rows (2 GB).

    RANKLIB_JAR=…/ranklib-2.10.1.jar TRUERANK_DATA=DIR python -m benchmarks bench_rank_boost
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from reproductions.protocol import letor_folds, load_collection

from benchmarks.harness import collections, compare
from benchmarks.rankers.ranklib import ranklib
from truerank import RankBoost, RankingData, write_letor
from truerank.measures import parse_measure


def run() -> None:
    root = collections()
    if root is not None:
        _fold(root)
    _growth()
    if os.environ.get("TRUERANK_BENCH_LARGE"):
        _large()


def _fold(root: Path) -> None:
    fold = letor_folds(load_collection(root, "mq2008"))[0]
    train, valid, test = fold.train, fold.valid, fold.test
    timings = compare(
        "fit, 300 rounds, MQ2008 fold 1 in memory (9,630 × 46), warm",
        {
            "ten thresholds": lambda: RankBoost(300, thresholds=10).fit(train),
            "all thresholds": lambda: RankBoost(300, thresholds="all").fit(train),
            "ten thresholds, validation MAP after each round": lambda: RankBoost(300, thresholds=10, measure="AP").fit(
                train, eval_set=valid
            ),
            "all thresholds, validation MAP after each round": lambda: RankBoost(
                300, thresholds="all", measure="AP"
            ).fit(train, eval_set=valid),
        },
        rounds=9,
        unit=1e-3,
        unit_name="ms",
    )
    ap = parse_measure("AP")
    for name, timing in timings.items():
        print(f"{name}: test MAP {ap.mean(test.judgements(), timing.result.predict(test)):.4f}")
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in (("train", train), ("vali", valid), ("test", test)):
            paths[name] = str(Path(folder) / f"{name}.txt")
            write_letor(data, paths[name])
        command = ["-ranker", "2", "-tc", "10", "-round"]
        theirs = ranklib(paths, [*command, "300"], [*command, "1"], rounds=3)
        command[3] = "-1"  # all thresholds; 300 rounds would take a quarter of an hour
        slow = ranklib(paths, [*command, "3"], [*command, "1"], rounds=1)
    if theirs is not None:
        print(
            f"\nRankLib RankBoost, ten thresholds, 300 rounds, validation MAP: process {theirs.process:.2f} CPU s; "
            f"with one round {theirs.start:.2f} (start, reading, sorting, saving); work {theirs.work:.2f}; "
            f"test MAP {theirs.test_map}\n"
        )
        print("| RankLib with ten thresholds / our fit | its work | its process |\n| --- | --- | --- |")
        for name, timing in timings.items():
            print(f"| {name} | {theirs.work / timing.median:.0f} | {theirs.process / timing.median:.0f} |")
    if slow is not None:
        ours = timings["all thresholds, validation MAP after each round"].median / 300
        print(
            f"\nall thresholds on both sides, a round: RankLib {slow.work / 2:.2f} CPU s (two rounds), ours "
            f"{1e3 * ours:.2f} ms, {slow.work / 2 / ours:,.0f} times as much"
        )
    _predict(train)


def _predict(train: RankingData) -> None:
    ranker = RankBoost(300).fit(train)
    X = np.tile(train.X, (20, 1))
    compare(
        f"predict {len(X):,} rows × 46, 300 stumps on {len(np.unique(ranker.feature_))} features",
        {"step functions": lambda: ranker.predict(X), "stump by stump (NumPy)": lambda: _stump_by_stump(ranker, X)},
        rounds=5,
        unit=1e-3,
        unit_name="ms",
    )


def _stump_by_stump(ranker: RankBoost, X: np.ndarray) -> np.ndarray:
    scores = np.zeros(len(X))
    for k, threshold, weight in zip(ranker.feature_, ranker.threshold_, ranker.weight_):
        scores += weight * (X[:, k] > threshold)
    return scores


def _synthetic(n: int, p: int, docs: int = 100) -> RankingData:
    """A few features carry the grade, the others are noise."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=np.float32)
    signal = np.empty(n)
    for start in range(0, n, 100_000):
        block = rng.standard_normal((min(100_000, n - start), p), dtype=np.float32)
        X[start : start + len(block)] = block
        signal[start : start + len(block)] = block[:, :8] @ np.linspace(1, 0.3, 8, dtype=np.float32)
        signal[start : start + len(block)] += 2 * rng.standard_normal(len(block))
    y = np.digitize(signal, np.quantile(signal[:100_000], [0.7, 0.9])).astype(float)
    return RankingData.from_grouped(X, y, np.append(np.arange(0, n, docs), n))


def _growth() -> None:
    print("\n**growth with the pairs of a query: 20,000 rows × 20, ten thresholds, 50 rounds**\n")
    print("| documents a query | pairs | CPU ms |\n| --- | --- | --- |")
    for docs in (10, 100, 1000, 20_000):
        data = _synthetic(20_000, 20, docs)
        RankBoost(2).fit(data)
        start = time.process_time()
        RankBoost(50).fit(data)
        taken = time.process_time() - start
        pairs = 0
        for a, b in zip(data.offsets[:-1], data.offsets[1:]):
            sizes = np.unique(data.y[a:b], return_counts=True)[1]
            pairs += int((b - a) ** 2 - np.sum(sizes**2)) // 2
        print(f"| {docs:,} | {pairs:,} | {taken * 1e3:.0f} |")


def _large() -> None:
    print("\n**300 rounds on 10⁶ rows × 136, float32**\n")
    print("| thresholds | threads | wall s | CPU s |\n| --- | --- | --- | --- |")
    data = _synthetic(1_000_000, 136)
    for thresholds in (10, 255):
        models = []
        for n_jobs in (2, 1):
            wall, cpu = time.perf_counter(), time.process_time()
            models.append(RankBoost(300, thresholds=thresholds, n_jobs=n_jobs).fit(data))
            print(
                f"| {thresholds} | {n_jobs} | {time.perf_counter() - wall:.1f} | {time.process_time() - cpu:.1f} |",
                flush=True,
            )
        assert np.array_equal(models[0].weight_, models[1].weight_)
