"""Golden file: Lucene's scores of made-up documents of fewer than 40 words, whose lengths it keeps exactly.

LUCENE_JAR=lucene-core-8.11.4.jar PYTHONPATH=src:. python tests/text/golden/make.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from benchmarks.text.bench_lucene import lucene


def main() -> None:
    """Write documents, queries and scores."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(30)]
    weights = 1.0 / np.arange(1.0, 31.0)

    def text(n: int) -> str:
        return " ".join(rng.choice(words, size=n, p=weights / weights.sum()).tolist())

    documents = {f"d{k}": text(int(rng.integers(1, 40))) for k in range(60)}
    queries = {f"q{k}": text(int(rng.integers(1, 6))) for k in range(12)}
    entry = {"documents": documents, "queries": queries, "scores": lucene(documents, queries)}
    (Path(__file__).parent / "lucene.json").write_text(json.dumps(entry, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
