"""Boosted trees on sparse and wide rows: memory and time of truerank beside LightGBM and XGBoost hist.

100,000 × 10,000 float32 as CSR with 100 values in a row (1 %), queries of 100, 20 trees of depth 6, 255 bins at most,
one thread. Filled "at random": columns drawn freely, of which any two meet in some row; "in groups": one column of
each of 100 groups, which exclude each other. Every contestant fits and predicts in a process of its own, which compiles
or loads what it needs on a few rows first. Memory is the peak beyond what the process held with the rows in memory;
time is CPU seconds, medians over rounds in turn.

`python -m benchmarks.rankers.bench_sparse_trees [--rows N] [--trees N] [--rounds N] [--fills FILL …]`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.rankers.bench_oblivious_speed import fit_lightgbm, fit_truerank, fit_xgboost

WIDTH, PER_ROW = 10_000, 100
FILLS = ["at random", "in groups"]


def filled(n: int, fill: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """CSR rows, grades 0 … 3 and queries."""
    rng = np.random.default_rng(0)
    groups = np.arange(PER_ROW) * (WIDTH // PER_ROW)
    columns = rng.integers(0, WIDTH, (n, PER_ROW), dtype=np.int32)
    values = rng.standard_exponential(columns.size, dtype=np.float32)
    if fill == "in groups":
        columns = (groups + columns % (WIDTH // PER_ROW)).astype(np.int32)
        values = np.ceil(values)
    starts = np.arange(n + 1, dtype=np.int32) * PER_ROW
    X = sparse.csr_matrix((values, columns.ravel(), starts), shape=(n, WIDTH))
    X.sum_duplicates()
    s = X @ rng.standard_normal(WIDTH)
    return X, np.digitize(s, np.quantile(s, [0.5, 0.8, 0.95])).astype(np.float64), np.arange(n) // 100


def predict_xgboost(model: Any, X: Any) -> Any:
    model.set_param({"nthread": 1})
    return model.inplace_predict(X)


CONTESTANTS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "truerank": (fit_truerank, lambda model, X: model.predict(X)),
    "truerank, fuzzy leaves": (partial(fit_truerank, leaves="fuzzy"), lambda model, X: model.predict(X)),
    "LightGBM": (fit_lightgbm, lambda model, X: model.predict(X, num_threads=1)),
    "XGBoost hist": (fit_xgboost, predict_xgboost),
}


class Memory:
    """The peak of this process's memory beyond what it held at the start, in MB."""

    def __init__(self) -> None:
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        self._before = self._status("VmRSS:")

    def beyond(self) -> float:
        return self._status("VmHWM:") - self._before

    @staticmethod
    def _status(name: str) -> float:
        with open("/proc/self/status") as status:
            return 1024e-6 * int(status.read().split(name)[1].split()[0])


def measure(name: str, fill: str, n: int, trees: int) -> dict[str, float]:
    """Memory and time of one contestant's fit and prediction, in this process."""
    fit, predict = CONTESTANTS[name]
    few = filled(2_000, fill)
    predict(fit(*few, 2, 1, "mse"), few[0])
    X, y, qid = filled(n, fill)
    found = {"rows": 1e-6 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)}
    memory, start = Memory(), time.process_time()
    model = fit(X, y, qid, trees, 1, "mse")
    found |= {"fit_mb": memory.beyond(), "fit": time.process_time() - start}
    memory, start = Memory(), time.process_time()
    predict(model, X)
    return found | {"predict_mb": memory.beyond(), "predict": time.process_time() - start}


def table(n: int, trees: int, rounds: int, fill: str, names: list[str]) -> None:
    """All contestants in turn, a process each."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            command = [sys.executable, "-m", __spec__.name, "--measure", name]
            command += ["--fills", fill, "--rows", str(n), "--trees", str(trees)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(json.loads(done.stdout))
            print(f"  {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    rows = found[names[0]][0]["rows"]
    print(f"\n{n:,} × {WIDTH:,}, {PER_ROW} values a row {fill} ({rows:.0f} MB as CSR), {trees} trees, 1 thread\n")
    print("| | fit, MB | fit, CPU s | prediction, MB | prediction, CPU s |\n| --- | ---: | ---: | ---: | ---: |")
    for name, runs in found.items():
        at = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        print(f"| {name} | {at['fit_mb']:.0f} | {at['fit']:.1f} | {at['predict_mb']:.0f} | {at['predict']:.2f} |")


def run(argv: list[str] | None = None) -> None:
    """A table for each fill."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fills", nargs="+", choices=FILLS, default=FILLS)
    parser.add_argument("--contestants", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    parser.add_argument("--measure", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    args = parser.parse_args(argv or [])
    if args.measure:
        print(json.dumps(measure(args.measure, args.fills[0], args.rows, args.trees)))
        return
    for fill in args.fills:
        table(args.rows, args.trees, args.rounds, fill, args.contestants)


if __name__ == "__main__":
    run(sys.argv[1:])
