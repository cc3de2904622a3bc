"""Features of Cranfield's judged pairs from a running OpenSearch: collected over a kill, and trained on.

    TRUERANK_DATA=… python -m benchmarks text/bench_engine_features

Starts the engine on loopback (`benchmarks/search_server.py`), indexes Cranfield and asks for the ten features of
`examples/opensearch/features.yaml` by `truerank features`, which is killed (SIGKILL) after some answers
and started again; the file must be that of a run that nobody killed. Then rankers over five folds of queries beside the
engine's own BM25. Equal scores are ranked by document id: the file has each query's one document that is not relevant
last, so that the file's order would tell the grades.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.search_server import SearchServer
from truerank import AdaRank, MeasureSVM, ObliviousBoosting, compare, cross_validate, read_letor

EXAMPLE = Path(__file__).parents[2] / "examples" / "opensearch"
KILL_AFTER = 60
RANKERS = {
    "adarank": AdaRank(measure="AP"),
    "measure-svm": MeasureSVM(measure="AP", C=0.1, tol=1e-2),
    "oblivious-boosting": ObliviousBoosting(leaves="fuzzy", start="linear", depth=4),
}


def collect(url: str, folder: Path, output: Path, kill_after: int | None = None) -> str:
    """Run `truerank features`, or kill it after so many answers; what it said last."""
    words = ["features", "--engine", url, "--features", str(EXAMPLE / "features.yaml"), "-o", str(output)]
    words += ["--queries", str(folder / "cran.qry.gz"), "--qrels", str(folder / "cranqrel.gz")]
    with subprocess.Popen([sys.executable, "-m", "truerank", *words], stderr=subprocess.PIPE, text=True) as process:
        partial = Path(f"{output}.partial")
        while kill_after is not None and process.poll() is None:
            if partial.exists() and partial.read_bytes().count(b"\n") > kill_after:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
        told = process.communicate(timeout=300)[1]
    if kill_after is None and process.returncode:
        raise ValueError(told)
    return " ".join(told.split("\n")[-4:]).strip()


def run() -> None:
    folder = Path(os.environ["TRUERANK_DATA"]) / "cranfield"
    with SearchServer() as server, tempfile.TemporaryDirectory() as place:
        print(server.version)
        index = runpy.run_path(str(EXAMPLE / "index_collection.py"))["main"]
        index(server.url, "cranfield", str(folder / "cran.all.1400.gz"))
        killed, whole = Path(place) / "killed.txt", Path(place) / "whole.txt"
        collect(server.url, folder, killed, kill_after=KILL_AFTER)
        if killed.exists():
            raise ValueError("the command had ended before it could be killed")
        print(f"killed after {KILL_AFTER} answers, started again: {collect(server.url, folder, killed)}")
        collect(server.url, folder, whole)
        print(f"the same bytes as a run that nobody killed: {killed.read_bytes() == whole.read_bytes()}\n")
        data = read_letor(whole)
    found = cross_validate(RANKERS, data, "AP", cv=5, validate=False, convention="trec", random_state=0)
    bm25 = (data.feature_names or []).index("text_porter")
    scores = {"BM25 of text": data.X[:, bm25], **found.scores}
    print(f"{data.n_rows} pairs, {data.n_queries} queries, {data.n_features} features\n")
    print(compare(data, scores, "AP", convention="trec", test="t"))


if __name__ == "__main__":
    run()
