"""Peak memory of two workers that train on Parquet by row groups, and what it grows by with the rows."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster.common import workers
from truerank import ObliviousBoosting, RidgeRanker
from truerank.cluster import read_parquet

FEATURES, GROUP = 46, 250_000


def write(path: Path, rows: int) -> None:
    """A Parquet file of float32 columns in row groups, never whole in memory."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    names = [f"f{k}" for k in range(FEATURES)]
    writer = None
    for first in range(0, rows, GROUP):
        rng = np.random.default_rng(first)
        X = rng.standard_normal((min(GROUP, rows - first), FEATURES), dtype=np.float32)
        y = np.clip(np.floor(X[:, 0] + X[:, 1] * X[:, 2] + 1.5), 0, 4)
        columns: dict[str, Any] = dict(zip(names, X.T))
        qid = (first + np.arange(len(X))) // 100
        table = pyarrow.table(columns | {"y": y.astype(np.int64), "qid": qid})
        if writer is None:
            writer = ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table, row_group_size=GROUP)
    assert writer is not None
    writer.close()


def peak() -> float:
    """Largest resident memory of this process so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run(sizes: tuple[int, ...] = (1_000_000, 3_000_000)) -> None:
    """A row for each size: bytes of the file, seconds, and the largest peak of a worker and of the client."""
    print(f"\n**n × {FEATURES} float32 from one Parquet file, rows not held, 20 trees and ridge, two workers**\n")
    print("| rows | values MB | partitions | s trees | s ridge | peak of a worker MB | client MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for rows in sizes:
            path = Path(folder, "rows.parquet")
            write(path, rows)
            with workers(2) as client:
                data = read_parquet(path, client=client, hold=False, rows_per_partition=GROUP, dtype=np.float32)
                start = time.perf_counter()
                ObliviousBoosting("constant", n_estimators=20, depth=6).fit(data)
                trees, start = time.perf_counter() - start, time.perf_counter()
                RidgeRanker().fit(data)
                ridge = time.perf_counter() - start
                largest = max(client.run(peak).values())
                size = path.stat().st_size / 1e6
                print(
                    f"| {rows:,} | {size:.0f} | {data.n_partitions} | {trees:.0f} | {ridge:.0f} | {largest:.0f} "
                    f"| {peak():.0f} |",
                    flush=True,
                )
            os.unlink(path)


if __name__ == "__main__":
    run()
