"""Indexing and top-1,000 retrieval beside bm25s and tantivy: synthetic documents, words by Zipf's law, one thread.

    BENCH_DOCUMENTS=1000000 python -m benchmarks text/bench_index

Documents of 20 to 80 words from 500,000, the k-th with probability proportional to 1/(k + 2.7); queries of three words
drawn the same way, without the 100 most frequent. Everyone splits at blanks and lowers; nobody stems or stops.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import compare, peer
from truerank.io.documents import Document
from truerank.text.index import build_index
from truerank.text.retrieval import retrieve

WORDS, DEPTH, QUERIES = 500_000, 1000, 50


def texts(n: int) -> list[str]:
    """Synthetic documents."""
    draw = np.random.default_rng(0)
    weights = 1.0 / (np.arange(WORDS) + 2.7)
    edges = np.cumsum(weights) / weights.sum()
    names = np.array([f"w{k}" for k in range(WORDS)])
    result: list[str] = []
    while len(result) < n:
        sizes = draw.integers(20, 81, size=min(20_000, n - len(result)))
        words = names[np.minimum(np.searchsorted(edges, draw.random(int(sizes.sum()))), WORDS - 1)].tolist()
        ends = np.cumsum(sizes).tolist()
        result += [" ".join(words[stop - size : stop]) for size, stop in zip(sizes.tolist(), ends)]
    return result


def queries() -> list[str]:
    """Queries of three words."""
    draw = np.random.default_rng(1)
    weights = 1.0 / (np.arange(WORDS) + 2.7)
    weights[:100] = 0
    picked = draw.choice(WORDS, size=(QUERIES, 3), p=weights / weights.sum())
    return [" ".join(f"w{k}" for k in row) for row in picked.tolist()]


def timed(name: str, work: Callable[[], Any]) -> Any:
    """Run once and print CPU seconds and the peak of memory so far."""
    start = time.process_time()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"| {name} | {time.process_time() - start:.1f} | {peak:.2f} |", flush=True)
    return result


def run() -> None:
    n = int(os.environ.get("BENCH_DOCUMENTS", "1000000"))
    bodies, asked = texts(n), queries()
    folder = Path(tempfile.mkdtemp())
    build_index([Document("warm", {"text": "up"}, {}, {})], folder / "warm")
    print(f"{n} documents\n\n| indexing | CPU s | peak of the process so far, GB |\n| --- | --- | --- |")
    index = timed(
        "truerank, plain",
        lambda: build_index(
            (Document(str(k), {"text": text}, {}, {}) for k, text in enumerate(bodies)),
            folder / "i",
            analysers=["plain"],
        ),
    )
    contestants: dict[str, Callable[[], Any] | None] = {}

    def ours() -> Any:
        return retrieve(index, dict(enumerate(asked)), "bm25(analyser=plain, k3=inf)", depth=DEPTH)

    contestants["truerank"] = ours
    bm25s = peer("bm25s")
    if bm25s:

        def make() -> Any:
            tokens = bm25s.tokenize(bodies, stopwords=None, token_pattern=r"\w+", show_progress=False)
            model = bm25s.BM25(backend="numba")
            model.index(tokens, show_progress=False)
            return model

        model = timed("bm25s", make)
        tokens = bm25s.tokenize(asked, stopwords=None, token_pattern=r"\w+", show_progress=False, return_ids=False)
        contestants["bm25s, numba"] = lambda: model.retrieve(tokens, k=DEPTH, show_progress=False, n_threads=1)
    tantivy = peer("tantivy")
    if tantivy:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=False, tokenizer_name="whitespace")
        schema.add_integer_field("id", stored=True)

        def write() -> Any:
            (folder / "t").mkdir()
            store = tantivy.Index(schema.build(), path=str(folder / "t"))
            writer = store.writer(heap_size=256_000_000, num_threads=1)
            for k, text in enumerate(bodies):
                writer.add_document(tantivy.Document(text=[text], id=k))
            writer.commit()
            writer.wait_merging_threads()
            store.reload()
            return store

        store = timed("tantivy", write)
        searcher = store.searcher()
        contestants["tantivy"] = lambda: [
            searcher.search(store.parse_query(text, ["text"]), DEPTH, count=False).hits for text in asked
        ]
    compare(f"top {DEPTH} of {QUERIES} queries", contestants, rounds=5)
    shutil.rmtree(folder)
    print(f"\nPython {sys.version.split()[0]}")


if __name__ == "__main__":
    run()
