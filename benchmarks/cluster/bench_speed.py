"""Trees on two worker processes beside one process of two threads, LightGBM's and XGBoost's Dask packages.

python -m benchmarks cluster/bench_speed
python -m benchmarks.cluster.bench_speed --rows 1000000
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cluster.common import made_up, on, workers
from benchmarks.harness import peer
from truerank import ObliviousBoosting

ROWS, FEATURES, TREES, DEPTH = 240_000, 136, 100, 6


def ours(trees: int, n_jobs: int | None = None) -> Any:
    """Boosted trees with plain leaves, squared error."""
    return ObliviousBoosting("constant", objective="mse", n_estimators=trees, depth=DEPTH, n_jobs=n_jobs)


def lightgbm_on(client: Any, X: Any, y: Any, trees: int) -> Any:
    """LightGBM's Dask regressor with trees of as many leaves."""
    lightgbm = peer("lightgbm")
    model = lightgbm.DaskLGBMRegressor(
        client=client, n_estimators=trees, num_leaves=2**DEPTH, max_depth=DEPTH, max_bin=255, verbose=-1
    )
    return model.fit(X, y)


def xgboost_on(client: Any, X: Any, y: Any, trees: int) -> Any:
    """XGBoost's training on Dask, histograms."""
    from xgboost import dask as dxgb

    params = {"objective": "reg:squarederror", "tree_method": "hist", "max_depth": DEPTH, "max_bin": 255}
    return dxgb.train(client, params, dxgb.DaskDMatrix(client, X, y), num_boost_round=trees)["booster"]


def arrays(client: Any, data: Any, k: int) -> tuple[Any, Any]:
    """Dask arrays of rows and grades that live on the workers."""
    from dask import array, persist
    from distributed import wait

    size = -(-data.n_rows // k)
    X, y = array.from_array(data.X, chunks=(size, data.n_features)), array.from_array(data.y, chunks=size)
    X, y = persist(X, y)
    wait([X, y])
    return X, y


def timed(name: str, client: Any, work: Callable[[], Any]) -> tuple[float, float]:
    """Wall seconds of one run, and CPU seconds of the client and of all workers."""
    before = time.process_time() + sum(client.run(time.process_time).values())
    start = time.perf_counter()
    work()
    wall = time.perf_counter() - start
    used = time.process_time() + sum(client.run(time.process_time).values()) - before
    print(f"  {name}: {wall:.1f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    return wall, used


def speed(rows: int = ROWS, trees: int = TREES) -> None:
    """One round of all four."""
    data = made_up(rows, FEATURES)
    taken = {}
    ours(1, 2).fit(data)  # code is loaded, memory is mapped
    with workers(2) as client:
        there = on(client, data, 4)
        ours(1).fit(there)
        taken["truerank, one process, two threads"] = timed("two threads", client, lambda: ours(trees, 2).fit(data))
        taken["truerank, two workers of one thread"] = timed("two workers", client, lambda: ours(trees).fit(there))
        there.crew.close()
        X, y = arrays(client, data, 4)
        for name, fit in (("lightgbm.dask", lightgbm_on), ("xgboost.dask", xgboost_on)):
            try:
                taken[name] = timed(name, client, lambda fit=fit: fit(client, X, y, trees))
            except Exception as error:
                print(f"({name} failed: {error!r:.300})", flush=True)
    print(f"\n**{rows:,} × {FEATURES}, {trees} trees of depth {DEPTH}, squared error (once)**\n")
    print("| | wall s | ratio | CPU s of all processes | ratio |\n| --- | --- | --- | --- | --- |")
    first = next(iter(taken.values()))
    for name, (wall, used) in taken.items():
        print(f"| {name} | {wall:.1f} | {wall / first[0]:.2f} | {used:.1f} | {used / first[1]:.2f} |", flush=True)


def change_with_workers() -> None:
    """Largest difference of predictions between a fit on one and on two workers."""
    data = made_up(20_000, 20)
    scores: dict[str, list[np.ndarray]] = {"truerank": [], "lightgbm.dask": [], "xgboost.dask": []}
    for n in (1, 2):
        with workers(n) as client:
            scores["truerank"].append(ours(20).fit(on(client, data, 4)).predict(data))
            X, y = arrays(client, data, 4)
            scores["lightgbm.dask"].append(lightgbm_on(client, X, y, 20).to_local().predict(data.X))
            import xgboost

            scores["xgboost.dask"].append(xgboost_on(client, X, y, 20).predict(xgboost.DMatrix(data.X)))
    print("\n**Predictions after training on one and on two workers, 20,000 × 20, 4 partitions**\n")
    print("| | rows whose prediction differs | by more than 1e-6 | mean difference | largest |\n" + "| --- " * 5 + "|")
    for name, (one, two) in scores.items():
        apart = np.abs(one - two)
        shares = f"{np.mean(apart > 0):.1%} | {np.mean(apart > 1e-6):.1%}"
        print(f"| {name} | {shares} | {apart.mean():.2g} | {apart.max():.2g} |", flush=True)


def run() -> None:
    """Print both tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        change_with_workers()
        speed()


def main() -> None:
    """One table: that of speed with other numbers of rows and trees, or with no rows the other one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--trees", type=int, default=TREES)
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.rows:
            speed(args.rows, args.trees)
        else:
            change_with_workers()


if __name__ == "__main__":
    main()
