"""AdaRank: fit in memory beside RankLib's work on an MQ2008 fold; the whole command; 240,000 × 136; growth with rows.

RankLib is run if RANKLIB_JAR names its jar (`mvn dependency:get -Dartifact=org.codelibs:ranklib:2.10.1`).
TRUERANK_BENCH_LARGE=1 adds the step of 10⁷ rows (1.84 GB of float32).
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from reproductions.protocol import letor_folds, load_collection

from benchmarks.harness import collections, compare, own_peak, run_process
from truerank import AdaRank, RankingData, write_letor
from truerank.measures import parse_measure

ROUNDS = 5


def run() -> None:
    root = collections()
    if root is not None:
        _fold(root)
    _wide()
    _growth()


def _fold(root: Path) -> None:
    fold = letor_folds(load_collection(root, "mq2008"))[0]
    train, valid, test = fold.train, fold.valid, fold.test
    timings = compare(
        "fit on MQ2008 fold 1 in memory, with validation (9,630 training rows × 46), warm",
        {
            "AdaRank('AP')": lambda: AdaRank("AP").fit(train, eval_set=valid),
            "AdaRank('AP', update='compound')": lambda: AdaRank("AP", update="compound").fit(train, eval_set=valid),
            "AdaRank('AP', update='paper')": lambda: AdaRank("AP", update="paper").fit(train, eval_set=valid),
            "AdaRank('nDCG@10')": lambda: AdaRank("nDCG@10").fit(train, eval_set=valid),
        },
        rounds=9,
        unit=1e-3,
        unit_name="ms",
    )
    ap = parse_measure("AP")
    for name, timing in timings.items():
        ranker = timing.result
        print(
            f"{name}: {ranker.n_iter_} rounds, best {ranker.best_round_}; test MAP "
            f"{ap.mean(test.judgements(), ranker.predict(test)):.4f}"
        )
    ours = timings["AdaRank('AP')"].median
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in (("train", train), ("vali", valid), ("test", test)):
            paths[name] = str(Path(folder) / f"{name}.txt")
            write_letor(data, paths[name])
        _command(paths, Path(folder))
        _ranklib(paths, ours)


def _command(paths: dict[str, str], folder: Path) -> None:
    arguments = [sys.executable, "-m", "truerank", "train", paths["train"], "--valid", paths["vali"]]
    arguments += ["--ranker", "adarank", "--model", str(folder / "model.json"), "--json"]
    totals, parts = [], []
    for _ in range(ROUNDS):
        process = run_process(arguments)
        if process.code:
            raise RuntimeError(process.output)
        totals.append(process.cpu)
        parts.append(json.loads(process.output.splitlines()[-1])["cpu_seconds"])
    total = statistics.median(totals)
    read, fit = (statistics.median(part[key] for part in parts) for key in ("read", "fit"))
    print(
        f"\n`truerank train` of the same fold, whole process: {total:.2f} CPU s = start-up and saving "
        f"{total - read - fit:.2f} + reading {read:.2f} + work {fit:.2f} (work includes loading the cached kernel)"
    )


def _ranklib(paths: dict[str, str], ours: float) -> None:
    jar = os.environ.get("RANKLIB_JAR", "")
    if not Path(jar).is_file():
        print("(left out: RANKLIB_JAR does not name RankLib's jar)")
        return

    def java(rounds: int) -> tuple[float, str]:
        process = run_process(
            ["java", "-XX:+UseSerialGC", "-cp", jar, "ciir.umass.edu.eval.Evaluator", "-train", paths["train"],
             "-validate", paths["vali"], "-test", paths["test"], "-ranker", "3", "-metric2t", "MAP",
             "-round", str(rounds)]
        )  # fmt: skip
        if process.code:
            raise RuntimeError(process.output)
        return process.cpu, process.output

    one, full, output = [], [], ""
    for _ in range(ROUNDS):
        one.append(java(1)[0])
        taken, output = java(500)
        full.append(taken)
    work = statistics.median(full) - statistics.median(one)
    test = re.findall(r"MAP on test data: ([0-9.]+)", output)
    print(
        f"\nRankLib AdaRank, MAP, defaults (serial collector): whole process {statistics.median(full):.2f} CPU s; "
        f"with one round {statistics.median(one):.2f} (start, reading, saving); work {work:.2f}; test MAP {test[-1]}\n"
        f"RankLib's work / our fit: {work / ours:.0f}"
    )


def _synthetic(n: int, p: int, dtype: type = np.float32, docs: int = 100) -> RankingData:
    """Mostly linear: a few features carry the grade, the others are noise."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=dtype)
    signal = np.zeros(n)
    for start in range(0, n, 100_000):
        block = rng.standard_normal((min(100_000, n - start), p), dtype=np.float32)
        X[start : start + len(block)] = block
        signal[start : start + len(block)] = block[:, :8] @ np.linspace(1, 0.3, 8, dtype=np.float32)
        signal[start : start + len(block)] += 2 * rng.standard_normal(len(block))
    y = np.digitize(signal, np.quantile(signal[:100_000], [0.7, 0.9])).astype(float)
    return RankingData.from_grouped(X, y, np.append(np.arange(0, n, docs), n))


def _wide() -> None:
    data = _synthetic(240_000, 136)
    timings = compare(
        "240,000 rows × 136 (2,400 queries, float32), 500 rounds at most, patience 50",
        {name: (lambda name=name: AdaRank(name).fit(data)) for name in ("AP", "nDCG@10")},
        rounds=3,
    )
    for name, timing in timings.items():
        print(f"{name}: {timing.result.n_iter_} rounds, {np.count_nonzero(timing.result.coef_)} features")


def _growth() -> None:
    sizes = [10**4, 10**5, 10**6] + ([10**7] if os.environ.get("TRUERANK_BENCH_LARGE") else [])
    print("\n**Growth with rows: × 46, float32, 100 documents a query, AP, 50 rounds**\n")
    print("| rows | CPU s | µs a row | µs a row, measures of all features | µs a row and round | peak MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for n in sizes:
        data = _synthetic(n, 46)
        AdaRank(n_estimators=1).fit(data.take_queries(np.arange(10)))
        full, one = [], []
        for _ in range(3 if n < 10**7 else 1):
            for rounds, seconds in ((1, one), (50, full)):
                start = time.process_time()
                AdaRank(n_estimators=rounds, patience=1000).fit(data)
                seconds.append(time.process_time() - start)
        total, first = statistics.median(full), statistics.median(one)
        print(
            f"| {n:,} | {total:.3g} | {total / n * 1e6:.3g} | {first / n * 1e6:.3g} | "
            f"{(total - first) / 49 / n * 1e6:.3g} | {own_peak():.0f} |",
            flush=True,
        )
        del data


if __name__ == "__main__":
    run()
