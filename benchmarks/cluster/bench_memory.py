"""Training on one Parquet file that is larger than the memory of the two workers that learn from it.

    python -m benchmarks cluster/bench_memory
    python -m benchmarks.cluster.bench_memory --rows 25000000 --features 136 --folder DIR --learners trees

The file is written once and kept where a folder is named, so that learners may be run one by one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster.common import workers
from truerank import AdaRank, ObliviousBoosting, RankSVM, RidgeRanker
from truerank.cluster import read_parquet

GROUP = 250_000
MAKES: dict[str, Any] = {
    "trees": lambda: ObliviousBoosting("constant", n_estimators=20, depth=6),
    "adarank": lambda: AdaRank("nDCG@10", n_estimators=20),
    "rank-svm": lambda: RankSVM(),
    "ridge": lambda: RidgeRanker(),
}


def write(path: Path, rows: int, features: int) -> None:
    """A Parquet file of float32 columns in row groups of whole queries, never whole in memory."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    names = [f"f{k}" for k in range(features)]
    part = path.with_suffix(".part")
    writer = None
    for first in range(0, rows, GROUP):
        rng = np.random.default_rng(first)
        X = rng.standard_normal((features, min(GROUP, rows - first)), dtype=np.float32)
        latent = X[0] + X[1] * X[2] + 0.5 * X[3] + rng.standard_normal(X.shape[1], dtype=np.float32)
        y = np.clip(np.floor(latent + 1.5), 0, 4)
        columns: dict[str, Any] = dict(zip(names, X))
        qid = (first + np.arange(X.shape[1])) // 100
        table = pyarrow.table(columns | {"y": y.astype(np.int64), "qid": qid})
        if writer is None:
            writer = ParquetWriter(part, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table, row_group_size=GROUP)
    assert writer is not None
    writer.close()
    part.rename(path)


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def seconds_used() -> float:
    """CPU seconds of this process."""
    return time.process_time()


def train(path: Path, learners: list[str], memory: str) -> None:
    """A row for each learner, each on workers of its own."""
    for name in learners:
        with workers(2, memory) as client:
            start = time.perf_counter()
            data = read_parquet(path, client=client, hold=False, rows_per_partition=GROUP, dtype=np.float32)
            opened = time.perf_counter() - start
            ranker = MAKES[name]().fit(data)
            taken = time.perf_counter() - start
            peaks = sorted(client.run(peak).values())
            used = sum(client.run(seconds_used).values()) + time.process_time()
            both = " and ".join(f"{one / 1e3:.2f}" for one in peaks)
            print(
                f"| {name} | {data.n_rows:,} × {data.n_features} | {path.stat().st_size / 1e9:.2f} | {opened:.0f} | "
                f"{taken:.0f} | {used:.0f} | {both} | {peak() / 1e3:.2f} | {data.crew.n_lost} | {ranker.status_} |",
                flush=True,
            )


def head(memory: str) -> None:
    """The table's head."""
    print(f"\n**Rows not held, two workers that are killed above {memory}; GB of memory are peaks**\n")
    print("| learner | rows | file GB | s to open | s in all | CPU s | workers GB | client GB | lost | it ended |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)


def run() -> None:
    """All learners on a million rows."""
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        head("3GB")
        path = Path(folder, "rows.parquet")
        write(path, 1_000_000, 46)
        train(path, list(MAKES), "3GB")


def main() -> None:
    """One size, in a folder that is kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=46)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--learners", nargs="+", choices=list(MAKES), default=list(MAKES))
    parser.add_argument("--memory", default="3GB", help="of a worker")
    args = parser.parse_args()
    path = Path(args.folder, f"{args.rows}x{args.features}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not path.exists():
            start = time.perf_counter()
            write(path, args.rows, args.features)
            print(f"written in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        head(args.memory)
        train(path, args.learners, args.memory)


if __name__ == "__main__":
    main()
