"""Is the advice of `truerank fuse` good: when it says "use the learned fusion", does that win on topics not yet seen?

    TRUERANK_DATA=… BENCH_DRAWS=40 python -m benchmarks fusion_advice

Each draw takes runs and judged topics at random, asks the cross-validation over these topics for its advice, learns
from all of them, and measures on the topics left, on which the advice could not rest. Runs: TREC-9's 104, and five
functions of our own index (BM25, tf-idf, cosine, Dirichlet, latent) on Cranfield, CISI and NPL.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.features.bench_fusion_quality import trec9
from benchmarks.text.bench_collections import FILES
from truerank import RunFusion, RunPool, cross_validate_fusion, retrieve
from truerank.core.random_streams import stream
from truerank.inspection.fusion_evidence import DEPTH, LEARNED, UNLEARNED, list_values, titled
from truerank.io.documents import read_documents, read_judgements, read_queries
from truerank.text.index import build_index

FUNCTIONS = ("bm25", "latent", "dirichlet", "tfidf", "cosine")
RUNS = (2, 3, 5, 10)
TOPICS = (10, 15, 20, 30, 40, 80, 120)
FEWEST_TESTED = 10


def own_runs(name: str) -> RunPool:
    """Runs of our own index over a collection of texts, a hundred documents deep."""
    documents, queries, judgements = (Path(os.environ["TRUERANK_DATA"]) / name / file for file in FILES[name])
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(read_documents(documents), Path(folder) / "index")
        asked = read_queries(queries)
        runs = {function: retrieve(index, asked, function, depth=200) for function in FUNCTIONS}
    return RunPool(runs, read_judgements(judgements))


def draws(pool: RunPool, r: int, t: int, number: int) -> Iterator[tuple[bool, float]]:
    """Of each draw: whether learning was advised, and what it then gained over RRF in MAP on the other topics."""
    parsed = titled("AP", "trec")
    for draw in range(number):
        generator = stream(draw, f"advice {r} {t}")
        part = pool.select_runs(np.sort(generator.permutation(pool.n_runs)[:r]).tolist())
        topics = generator.permutation(part.n_queries)
        judged, tested = part.take(np.sort(topics[:t])), part.take(np.sort(topics[t:]))
        advised = cross_validate_fusion(judged, measures="AP", topics="all", random_state=draw).recommended == LEARNED
        scores = {LEARNED: RunFusion().fit(judged).pool_scores(tested), "rrf": UNLEARNED["rrf"](tested)}
        means = {name: list_values(tested, one, parsed, DEPTH)["MAP"].mean() for name, one in scores.items()}
        yield advised, float(means[LEARNED] - means["rrf"])


def run() -> None:
    number = int(os.environ.get("BENCH_DRAWS", "40"))
    names = os.environ.get("BENCH_COLLECTIONS", "trec9,cranfield,cisi,npl").split(",")
    print(
        f"{number} draws each; gains are learned less RRF, in MAP on the topics left\n\n"
        "| runs of | runs | judged topics | learning advised | of these it lost | mean gain there | RRF advised | "
        f"learning would have won | mean gain there |\n|{' --- |' * 9}"
    )
    for name in names:
        pool = trec9() if name == "trec9" else own_runs(name)
        for r in [r for r in RUNS if r <= pool.n_runs]:
            for t in [t for t in TOPICS if t <= pool.n_queries - FEWEST_TESTED]:
                found = list(draws(pool, r, t, number))
                followed = np.array([gain for advised, gain in found if advised])
                kept = np.array([gain for advised, gain in found if not advised])
                cells = [
                    f"{len(own)} | {(own < 0).sum() if own is followed else (own > 0).sum()} | "
                    + (f"{own.mean():+.4f}" if len(own) else "")
                    for own in (followed, kept)
                ]
                print(f"| {name} | {r} | {t} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    run()
