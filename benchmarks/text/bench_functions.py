"""Fifteen retrieval functions at once beside one of them: five functions under three analysers, synthetic documents.

    BENCH_DOCUMENTS=200000 BENCH_INDEX=folder python -m benchmarks text/bench_functions

One is `retrieve` with BM25, the best 1,000 of each of 50 queries; fifteen is `TextFeatures(["functions"])`, the union
of the best 1,000 of each function, all of them scored by all. Documents and queries are those of `text/bench_index`.
The index is made in BENCH_INDEX (default: a temporary folder), and one that is there already is used again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.harness import compare
from benchmarks.text.bench_index import queries, texts
from truerank.io.documents import Document
from truerank.text.features import TextFeatures
from truerank.text.index import Index, build_index
from truerank.text.retrieval import retrieve


def run() -> None:
    n = int(os.environ.get("BENCH_DOCUMENTS", "200000"))
    asked = dict(enumerate(queries()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(os.environ.get("BENCH_INDEX", f"{temporary}/index"))
        if not folder.exists():
            build_index((Document(str(k), {"text": text}, {}, {}) for k, text in enumerate(texts(n))), folder)
        index = Index(folder)
        features = TextFeatures(["functions"], scaled=False).fit(index)
        compare(
            f"{len(asked)} queries over {index.n_documents} documents",
            {
                "one function": lambda: retrieve(index, asked),
                "fifteen": lambda: features.transform(asked, index),
            },
            rounds=15,
        )


if __name__ == "__main__":
    run()
