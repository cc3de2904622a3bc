"""Training and prediction time and memory of boosted trees: truerank beside LightGBM, XGBoost hist and CatBoost.

Synthetic rows, 240,000 × 136 float32 in queries of 100, 255 bins, depth 6 (LightGBM: 64 leaves), rate 0.1. Everybody's
`fit` starts from the float32 matrix: binning is part of it. Contestants take turns, several rounds, medians. One thread
decides: CPU seconds of the process. Two threads are measured in wall seconds, and each round of them is preceded by a
probe of what two threads gain on this machine just now: 2.0 on two free processors, 1.0 where another program has one.

`python -m benchmarks.rankers.bench_oblivious_speed [--rows N] [--trees N] [--rounds N] [--only PART …]`, parts train
(`--objective mse lambdarank`, `--threads 1 2`, `--peers NAME …`: these alone beside plain leaves), predict, memory, and
large (memory of ten million rows).
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Timing, report

FEATURES = 136
OBJECTIVES = ["mse", "lambdarank"]


def synthetic(n: int, p: int = FEATURES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mostly linear grades 0 … 4 in queries of 100."""
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype=np.float32)
    weight = rng.standard_normal(p)
    s = np.empty(n)
    for start in range(0, n, 100_000):
        block = rng.standard_normal((min(100_000, n - start), p)).astype(np.float32)
        X[start : start + len(block)] = block
        s[start : start + len(block)] = block @ weight / np.sqrt(p)
    s += 0.5 * rng.standard_normal(n)
    y = np.digitize(s, np.quantile(s, [0.5, 0.75, 0.9, 0.97])).astype(np.float64)
    return X, y, np.arange(n) // 100


def fit_truerank(X: Any, y: Any, qid: Any, trees: int, threads: int, objective: str, **settings: Any) -> Any:
    from truerank import ObliviousBoosting

    settings = {"leaves": "constant"} | settings
    model = ObliviousBoosting(n_estimators=trees, borders=255, objective=objective, n_jobs=threads, **settings)
    return model.fit(X, y, qid=qid)


def fit_lightgbm(X: Any, y: Any, qid: Any, trees: int, threads: int, objective: str, quantised: bool = False) -> Any:
    import lightgbm

    name = {"mse": "regression", "lambdarank": "lambdarank"}[objective]
    params = {
        "objective": name, "num_leaves": 64, "max_depth": 6, "max_bin": 255, "learning_rate": 0.1,
        "num_threads": threads, "verbose": -1, "use_quantized_grad": quantised,
    }  # fmt: skip
    group = np.bincount(qid) if objective == "lambdarank" else None
    return lightgbm.train(params, lightgbm.Dataset(X, y, group=group), trees)


def fit_xgboost(X: Any, y: Any, qid: Any, trees: int, threads: int, objective: str) -> Any:
    import xgboost

    name = {"mse": "reg:squarederror", "lambdarank": "rank:ndcg"}[objective]
    params = {"objective": name, "max_depth": 6, "max_bin": 255, "eta": 0.1, "nthread": threads, "tree_method": "hist"}
    matrix = xgboost.QuantileDMatrix(X, y, max_bin=255, nthread=threads)
    if objective == "lambdarank":
        matrix.set_group(np.bincount(qid))
    return xgboost.train(params, matrix, trees)


def fit_catboost(X: Any, y: Any, qid: Any, trees: int, threads: int, objective: str) -> Any:
    import catboost

    settings = {
        "iterations": trees, "depth": 6, "learning_rate": 0.1, "border_count": 254, "thread_count": threads,
        "verbose": False, "allow_writing_files": False,
        "loss_function": {"mse": "RMSE", "lambdarank": "YetiRank"}[objective],
    }  # fmt: skip
    if objective == "mse":
        settings |= {"bootstrap_type": "No", "boosting_type": "Plain"}
    return catboost.CatBoost(settings).fit(catboost.Pool(X, y, group_id=qid if objective != "mse" else None))


PEERS = {
    "LightGBM": fit_lightgbm,
    "LightGBM, quantised gradients": partial(fit_lightgbm, quantised=True),
    "XGBoost hist": fit_xgboost,
    "CatBoost": fit_catboost,
}


def in_turn(
    functions: dict[str, Callable[[], Any]],
    rounds: int,
    clock: Callable[[], float],
    before: Callable[[], None] = lambda: None,
) -> dict[str, Timing]:
    """Each function once a round, in turn; `before` each round something that is not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        before()
        for name, function in functions.items():
            gc.collect()
            start = clock()
            function()
            seconds[name].append(clock() - start)
            print(f"  {name}: {seconds[name][-1]:.3g} s", file=sys.stderr, flush=True)
    return {name: Timing(statistics.median(s), min(s), max(s), None) for name, s in seconds.items()}


def train(n: int, trees: int, rounds: int, threads: list[int], objectives: list[str], peers: list[str]) -> None:
    """Training times by objective; of our other leaves where all peers take part."""
    X, y, qid = synthetic(n)
    for objective in objectives:
        fit_truerank(X[:2000], y[:2000], qid[:2000], 2, 1, objective)  # compile
        fit_truerank(X[:2000], y[:2000], qid[:2000], 2, 1, objective, leaves="fuzzy")
        for count in threads:
            functions: dict[str, Callable[[], Any]] = {
                "truerank": lambda o=objective, c=count: fit_truerank(X, y, qid, trees, c, o),
                **{name: partial(PEERS[name], X, y, qid, trees, count, objective) for name in peers},
            }
            whole = len(peers) == len(PEERS)
            if whole:
                functions["truerank, fuzzy leaves"] = lambda o=objective, c=count: fit_truerank(
                    X, y, qid, trees, c, o, leaves="fuzzy"
                )
            if whole and count == 1:
                functions["truerank, polynomial leaves"] = lambda o=objective: fit_truerank(
                    X, y, qid, trees, 1, o, leaves="polynomial"
                )
            probes: list[float] = []
            title = f"{objective}, {n:,} × {FEATURES}, {trees} trees, {count} thread{'s' if count > 1 else ''}"
            if count == 1:
                timings = in_turn(functions, rounds, time.process_time)
                report(title, timings, note=f"median of {rounds} rounds")
            else:
                timings = in_turn(
                    functions, rounds, time.perf_counter, lambda probes=probes: probes.append(scaling_probe())
                )
                report(title, timings, note=f"median of {rounds} rounds", clock="wall")
                print(
                    f"\ntwo-thread probe before each round: two threads did {statistics.median(probes):.2f} times the "
                    f"work of one ({min(probes):.2f} – {max(probes):.2f})"
                )
            best = min(timings[name].median for name in peers)
            print(f"\nours / the fastest peer: {timings['truerank'].median / best:.2f} (bar: 0.35)")
            if whole:
                fuzzy = timings["truerank, fuzzy leaves"].median
                print(f"fuzzy / plain: {fuzzy / timings['truerank'].median:.2f} (bar: 3)")


def scaling_probe() -> float:
    """How much more work two threads do in a second than one, just now, on this machine."""

    def spin(seconds: float) -> int:
        a = np.random.default_rng(0).random(1_000_000)
        done, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            np.sqrt(a, out=a)
            done += 1
        return done

    one = spin(0.5)
    done: list[int] = []
    threads = [threading.Thread(target=lambda: done.append(spin(0.5))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / one


def predict(n: int, trees: int, rounds: int) -> None:
    """Prediction of 61,000 rows from float32, and of one query of 100 documents."""
    X, y, qid = synthetic(n)
    rows = np.ascontiguousarray(X[: min(61_000, n)])
    small = min(n, 60_000)
    functions: dict[str, Callable[[], Any]] = {}
    ours = {}
    for leaves in ("constant", "fuzzy", "polynomial"):
        ours[leaves] = fit_truerank(X[:small], y[:small], qid[:small], trees, 1, "mse", leaves=leaves)
        ours[leaves].predict(rows[:200])
        functions["truerank" if leaves == "constant" else f"truerank, {leaves}"] = partial(ours[leaves].predict, rows)
    import catboost
    import xgboost

    light = fit_lightgbm(X[:small], y[:small], qid[:small], trees, 1, "mse")
    boost = fit_xgboost(X[:small], y[:small], qid[:small], trees, 1, "mse")
    cat = fit_catboost(X[:small], y[:small], qid[:small], trees, 1, "mse")
    functions["LightGBM"] = lambda: light.predict(rows, num_threads=1)
    boost.set_param({"nthread": 1})
    functions["XGBoost hist"] = lambda: boost.inplace_predict(rows)
    functions["CatBoost, from the array"] = lambda: cat.predict(rows, thread_count=1)
    pool = catboost.Pool(rows, thread_count=1)
    functions["CatBoost, from a Pool made before"] = lambda: cat.predict(pool, thread_count=1)
    del xgboost
    timings = in_turn(functions, 3 * rounds, time.process_time)
    report(
        f"prediction, {len(rows):,} × {FEATURES} float32, {trees} trees, 1 thread", timings, unit=1e-3, unit_name="ms"
    )
    plain = timings["truerank"].median
    print(f"\nfuzzy / plain: {timings['truerank, fuzzy'].median / plain:.1f} (bar: 4)")
    print(f"polynomial / plain: {timings['truerank, polynomial'].median / plain:.1f} (bar: 4)")
    best = min(timings["CatBoost, from the array"].median, timings["CatBoost, from a Pool made before"].median)
    print(f"CatBoost (the faster) / ours: {best / plain:.1f} (bar: 2)")
    print(f"LightGBM / ours: {timings['LightGBM'].median / plain:.1f} (bar: 10)")
    query = np.ascontiguousarray(X[:100])
    for leaves, model in ours.items():
        seconds = []
        for _ in range(300):
            start = time.perf_counter()
            model.predict(query)
            seconds.append(time.perf_counter() - start)
        print(f"one query of 100 documents, {leaves} leaves: {1e3 * statistics.median(seconds):.2f} ms (bar: 1)")


def memory(n: int, p: int, trees: int, leaves: str) -> None:
    """Peak memory of a fit beyond the caller's arrays, in a process of its own."""
    code = (
        "import resource, numpy as np\n"
        "from benchmarks.rankers.bench_oblivious_speed import synthetic, fit_truerank\n"
        f"X, y, qid = synthetic(3000, {p})\n"
        f"fit_truerank(X, y, qid, 2, 1, 'mse', leaves={leaves!r})\n"
        f"X, y, qid = synthetic({n}, {p})\n"
        "from truerank import RankingData\n"
        "data = RankingData(X, y, qid)\n"
        "del qid\n"
        "def now():\n"
        "    return 1024 * int(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])\n"
        "def peak():\n"
        "    return 1024 * int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = now()\n"
        "from truerank import ObliviousBoosting\n"
        "import time; start = time.process_time()\n"
        f"ObliviousBoosting({leaves!r}, n_estimators={trees}, borders=255).fit(data)\n"
        "print(peak() - before, time.process_time() - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    extra, seconds = map(float, done.stdout.split())
    allowed = 1.5 * n * p + 200e6
    print(
        f"memory beyond the caller's arrays, {n:,} × {p}, {trees} trees, {leaves} leaves: {extra / 1e6:.0f} MB, "
        f"{extra / (n * p):.2f} bytes a value (bar: {allowed / 1e6:.0f} MB); {seconds:.0f} CPU s",
        flush=True,
    )


def run(argv: list[str] | None = None) -> None:
    """Everything, or the parts named by `--only`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=240_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--objective", nargs="+", choices=OBJECTIVES, default=OBJECTIVES)
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--only", nargs="+", default=["train", "predict", "memory"])
    args = parser.parse_args(argv or [])
    if "train" in args.only:
        train(args.rows, args.trees, args.rounds, args.threads, args.objective, args.peers)
    if "predict" in args.only:
        predict(args.rows, args.trees, args.rounds)
    if "memory" in args.only:
        for leaves in ("constant", "fuzzy", "polynomial"):
            memory(args.rows, FEATURES, 10, leaves)
    if "large" in args.only:
        for leaves in ("constant", "fuzzy"):
            memory(10_000_000, 46, 10, leaves)
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    run(sys.argv[1:])
