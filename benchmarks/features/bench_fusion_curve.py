"""How many judged topics, and how many runs, until learning beats reciprocal rank fusion: TREC-9's runs.

    TRUERANK_DATA=… BENCH_RUNS=2,3,5,10,20,60 python -m benchmarks fusion_curve

Eight draws of runs and training topics each; the topics left are tested. What `truerank fuse --curve` prints, without
the cross-validation of all runs before it.
"""

from __future__ import annotations

import os

from benchmarks.features.bench_fusion_quality import trec9
from truerank.inspection.fusion_evidence import fusion_curve

TOPICS = (5, 10, 20, 40)


def run() -> None:
    pool = trec9()
    print("| runs | topics | learned | rrf | best-run | learned won | p |\n| --- | --- | --- | --- | --- | --- | --- |")
    for runs in os.environ.get("BENCH_RUNS", "2,3,5,10,20,60").split(","):
        for row in fusion_curve(pool, n_runs=[int(runs)], n_topics=TOPICS):
            means = " | ".join(f"{row[name]:.3f}" for name in ("learned", "rrf", "best-run"))
            print(
                f"| {runs} | {row['topics']} | {means} | {row['wins']} of {row['draws']} | {row['p']:.2g} |", flush=True
            )


if __name__ == "__main__":
    run()
