"""Reading 100 MB of LETOR text, dense, document ids kept, beside scikit-learn, fastrank and XGBoost."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.harness import collections, compare, peak_memory, peer

MEGABYTES = 100


def run() -> None:
    """Speed on rows of MQ2008 and on shortest decimals of random numbers; memory on the former."""
    from truerank import read_letor

    with tempfile.TemporaryDirectory() as folder:
        files = {}
        source = collections()
        if source is not None:
            files["rows of MQ2008: 46 features, six decimals"] = _repeated(source, Path(folder) / "mq2008.txt")
        files["46 random numbers a row, 16 or 17 digits"] = _random(Path(folder) / "random.txt")
        for what, path in files.items():
            size = path.stat().st_size / 1e6
            contestants: dict[str, Any] = {
                "truerank, document ids": lambda path=path: read_letor(path, comments=False),
                "truerank, document ids, float32": lambda path=path: read_letor(path, comments=False, dtype="float32"),
                "truerank, document ids and comments": lambda path=path: read_letor(path),
                "truerank, sparse": lambda path=path: read_letor(path, sparse=True, comments=False),
                **_peers(path),
            }
            timings = compare(f"{what}: {size:.0f} MB", contestants, rounds=5)
            print("\n| | MB for each CPU second |\n| --- | --- |")
            for name, timing in timings.items():
                print(f"| {name} | {size / timing.median:.0f} |")
            _check(timings)
        path = next(iter(files.values()))
        for options in ("", ", comments=False", ", dtype='float32'"):
            setup = (
                "import warnings; warnings.simplefilter('ignore')\nfrom truerank import read_letor\n"
                # Kernel and libraries are loaded before the count starts.
                f"text = open({str(path)!r}, 'rb').read(3_000_000).rpartition(b'\\n')[0]\n"
                "import io, numba; read_letor(io.BytesIO(text)); del text"
            )
            before, peak = peak_memory(f"data = read_letor({str(path)!r}{options})", setup)
            arrays = _arrays(read_letor(path, **eval(f"dict({options[2:]})")))
            bound = 1.3 * arrays + 64e6 / 2**20
            print(
                f"\nread_letor(path{options}): {peak - before:.0f} MiB beyond what stood before; the arrays take "
                f"{arrays:.0f} MiB; 1.3 times these and 64 MB: {bound:.0f} MiB"
            )


def _peers(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    from sklearn.datasets import load_svmlight_file

    found["scikit-learn (sparse; document ids lost)"] = lambda: load_svmlight_file(str(path), query_id=True)
    fastrank = peer("fastrank")
    if fastrank is not None:
        found["fastrank"] = lambda: fastrank.CDataset.open_ranksvm(str(path))
    xgboost = peer("xgboost")
    if xgboost is not None:

        def read() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return xgboost.DMatrix(f"{path}?format=libsvm", nthread=1)

        found["XGBoost (document ids lost)"] = read
    return found


def _check(timings: Any) -> None:
    """All that give a matrix gave the same one."""
    ours = timings["truerank, document ids"].result
    theirs = timings["scikit-learn (sparse; document ids lost)"].result
    assert ours.doc_ids is not None
    # scikit-learn rounds long decimals otherwise at times; the last bit may differ.
    np.testing.assert_allclose(theirs[0].toarray(), ours.X, rtol=1e-15, atol=0)
    assert (theirs[1] == ours.y).all()


def _arrays(data: Any) -> float:
    """MiB of the arrays that hold the data."""
    total = data.X.nbytes + data.y.nbytes
    for column in (data.doc_ids, data.comments):
        if column is not None:
            # 16 bytes an entry, and what exceeds 15 bytes of text.
            total += column.nbytes + sum(len(text) + 1 for text in column.tolist() if len(text) > 15)
    return total / 2**20


def _repeated(source: Path, path: Path) -> Path:
    """The five parts of MQ2008 over and over, with new query ids each time."""
    parts = [gzip.decompress((source / f"letor4-mq2008/S{k}.txt.gz").read_bytes()) for k in range(1, 6)]
    text, copies = b"".join(parts), 0
    with path.open("wb") as stream:
        while stream.tell() < MEGABYTES * 1e6:
            copies += 1
            stream.write(text.replace(b" qid:", b" qid:%d" % copies))
    return path


def _random(path: Path) -> Path:
    rng = np.random.default_rng(0)
    row = 0
    with path.open("w") as stream:
        while stream.tell() < MEGABYTES * 1e6:
            for values in rng.random((1000, 46)).tolist():
                body = " ".join(f"{k}:{value!r}" for k, value in enumerate(values, 1))
                stream.write(f"{row % 3} qid:{row // 50} {body} #docid = GX{row:09d}\n")
                row += 1
    return path
