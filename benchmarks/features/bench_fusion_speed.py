"""Fusing runs of TREC-9 by reciprocal rank beside ranx, which is warm (compiled); and reading the files, by each.

    TRUERANK_DATA=… BENCH_RUNS=104 python -m benchmarks fusion_speed

ranx normalises before it fuses unless it is told not to (`norm=None`), which changes nothing in ranks: both are shown.
"""

from __future__ import annotations

import lzma
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness import compare, peer
from truerank import RunPool, fuse, read_run
from truerank.features.fusion import METHODS
from truerank.io.streams import files_of

RUNS = int(os.environ.get("BENCH_RUNS", "10"))


def run() -> None:
    ranx = peer("ranx")
    folder = Path(os.environ["TRUERANK_DATA"]) / "trec9-web-runs" / "runs"
    with tempfile.TemporaryDirectory() as place:
        paths = []
        for packed in files_of(folder)[:RUNS]:
            paths.append(Path(place) / f"{packed.name.split('.')[0]}.trec")
            paths[-1].write_bytes(lzma.decompress(packed.read_bytes()))

        def read_ours() -> dict[str, Any]:
            return {path.stem: read_run(path) for path in paths}

        def read_theirs() -> list[Any]:
            return [ranx.Run.from_file(str(path), kind="trec") for path in paths]

        ours = read_ours()

        def fuse_ours() -> Any:
            pool = RunPool(ours)
            fused = pool.to_run(METHODS["rrf"](pool))
            return fused, fused.doc_ids  # strings, as ranx gives them

        theirs = None if ranx is None else read_theirs()
        compare(
            f"RRF of {RUNS} runs that are in memory",
            {
                "truerank": fuse_ours,
                "ranx": None if ranx is None else lambda: ranx.fuse(theirs, method="rrf"),
                "ranx, norm=None": None if ranx is None else lambda: ranx.fuse(theirs, norm=None, method="rrf"),
            },
            rounds=7 if RUNS <= 20 else 3,
        )
        compare(
            f"From {RUNS} files to the fused run",
            {
                "truerank": lambda: fuse(read_ours(), "rrf").doc_ids,
                "ranx": None if ranx is None else lambda: ranx.fuse(read_theirs(), method="rrf"),
            },
            rounds=3,
        )
        compare(
            f"Reading {RUNS} runs", {"truerank": read_ours, "ranx": None if ranx is None else read_theirs}, rounds=3
        )


if __name__ == "__main__":
    run()
