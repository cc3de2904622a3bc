"""CPU seconds and memory of exhaustive retrieval by inner product, beside the flat index of faiss.

    python benchmarks/exhaustive_vectors.py [--rows 1000000] [--queries 100] [--depth 1000] [--faiss PYTHON]

Vectors of 384 numbers are written to a file once. Each library runs in a process of its own with one thread, reads the
file, and ranks the queries. `--faiss` names a Python that has faiss. Memory is the largest growth of anonymous memory
(RssAnon), of which pages of the mapped file are no part. The best documents of both must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

P = 384
COMMON = """
import json, sys, threading, time
import numpy as np
path, m, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
queries = np.random.default_rng(1).random((m, 384), dtype=np.float32) - np.float32(0.5)
def own():
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("RssAnon"))
"""
OURS = """
from truerank import read_vectors, retrieve_vectors
def ready():
    held = np.load(path, mmap_mode="r")
    return read_vectors(held, list(map(str, range(len(held)))))
def search(held):
    found = retrieve_vectors(held, read_vectors(queries, list(map(str, range(m)))), depth=depth)
    return np.array(found.doc_ids.tolist()).reshape(m, -1)[:, :10].tolist()
"""
FAISS = """
import faiss
faiss.omp_set_num_threads(1)
def ready():
    index = faiss.IndexFlatIP(384)
    index.add(np.load(path))
    return index
def search(index):
    return index.search(queries, depth)[1][:, :10].astype(str).tolist()
"""
MEASURED = """
largest, done = [own()], []
before = largest[0]
def watch():
    while not done:
        largest[0] = max(largest[0], own())
        time.sleep(0.02)
thread = threading.Thread(target=watch)
thread.start()
start = time.process_time()
held = ready()
middle = time.process_time()
best = search(held)
end = time.process_time()
done.append(1)
thread.join()
print(json.dumps([middle - start, end - middle, (largest[0] - before) / 1e6, best]))
"""


def measured(python: str, code: str, words: list[str]) -> list:
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    source = COMMON + code + MEASURED
    done = subprocess.run([python, "-c", source, *words], capture_output=True, text=True, env=os.environ | one)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--faiss", metavar="PYTHON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "docs.npy")
        held, rng = np.lib.format.open_memmap(path, "w+", np.float32, (args.rows, P)), np.random.default_rng(0)
        for start in range(0, args.rows, 1 << 15):
            block = held[start : start + (1 << 15)]
            block[:] = rng.random(block.shape, dtype=np.float32) - np.float32(0.5)
        held.flush()
        del held
        words, best = [str(path), str(args.queries), str(args.depth)], []
        print("| library | CPU s to open | CPU s to search | GB of anonymous memory |\n| --- | --- | --- | --- |")
        for name, python, code in (("truerank", sys.executable, OURS), ("faiss", args.faiss, FAISS)):
            if python:
                opened, searched, memory, found = measured(python, code, words)
                best.append(found)
                print(f"| {name} | {opened:.1f} | {searched:.1f} | {memory:.2f} |", flush=True)
        if len(best) == 2:
            same = sum(a == b for a, b in zip(*best))
            print(f"\nThe first 10 documents are equal, in the same order, for {same} of {args.queries} queries.")


if __name__ == "__main__":
    main()
