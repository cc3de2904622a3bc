"""337 files of LETOR text, 2 GB in all, beside one file of the same rows."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
from benchmarks.harness import collections, compare

FILES, BYTES = 337, 2_000_000_000


def run() -> None:
    """The files at once, each by itself, and the one file."""
    from truerank import read_letor

    source = collections()
    if source is None:
        return
    text = gzip.decompress((source / "mslr-web10k-sample/fold1.train.5k.txt.gz").read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.txt"
        many = [Path(folder) / f"part-{number:03d}.txt" for number in range(FILES)]
        with one.open("wb") as whole:
            for number, path in enumerate(many):
                _write(path, text, number)
                whole.write(path.read_bytes())
        size = one.stat().st_size / 1e6
        timings = compare(
            f"Rows of MSLR's sample over and over, 136 features: {size:.0f} MB",
            {
                f"{FILES} files at once": lambda: read_letor(many, dtype=np.float32),
                f"{FILES} files, each by itself": lambda: [read_letor(path, dtype=np.float32) for path in many],
                "one file": lambda: read_letor(one, dtype=np.float32),
            },
            rounds=3,
        )
        at_once, parts, whole_data = (timing.result for timing in timings.values())
        for data in (at_once, *parts, whole_data):
            assert data.n_features == 136
        assert np.array_equal(at_once.X, whole_data.X)
        assert sum(part.n_rows for part in parts) == whole_data.n_rows
        print(f"\n{whole_data.n_rows:,} rows, {whole_data.n_queries:,} queries; equal bits")


def _write(path: Path, text: bytes, number: int) -> None:
    """A file of about its share of the bytes, with query ids of its own."""
    copies = 0
    with path.open("wb") as stream:
        while stream.tell() < BYTES / FILES - len(text) / 2:
            stream.write(text.replace(b" qid:", b" qid:%d%02d" % (number + 1, copies)))
            copies += 1
