"""`leaves="auto"` beside each kind of leaves: AP and nDCG@10 of held-out validation queries, nothing selected on them.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_leaf_choice [mq2008] [ohsumed] [mslr] [sample] [made]

The pairs of training and validation queries of `bench_oblivious_defaults`; of the shipped sample, and of 60,000 of the
made rows of `bench_time_to_quality`, five random folds. The choice sees training queries alone. By set: means, CPU
seconds of a fit (median over folds), how often each kind was taken, and p of a paired t-test by query of the choice
against each kind (nDCG@10; negative t: the choice is behind).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.rankers.bench_oblivious_defaults import MEASURES, SETS, in_five, sets
from benchmarks.rankers.bench_time_to_quality import synthetic
from truerank import ObliviousBoosting, load_sample
from truerank.core.printing import table

KINDS = ("constant", "fuzzy", "polynomial", "auto")


def run(wanted: Sequence[str] = ()) -> None:
    """Print a line for each set and kind; of all sets where none is named."""
    rows: list[list[Any]] = []
    for name in wanted or (*SETS, "made"):
        if name in ("sample", "made"):
            pairs = in_five(load_sample() if name == "sample" else synthetic(60_000))
        else:
            ((_, pairs),) = sets([name])
        values: dict[str, list[list[np.ndarray]]] = {kind: [[], []] for kind in KINDS}
        seconds: dict[str, list[float]] = {kind: [] for kind in values}
        taken: Counter[str] = Counter()
        for train, valid in pairs:
            judgements = valid.judgements()
            for kind in KINDS:
                ranker = ObliviousBoosting(kind)
                start = time.process_time()
                ranker.fit(train)
                seconds[kind].append(time.process_time() - start)
                scores = ranker.predict(valid)
                for i, measure in enumerate(MEASURES):
                    values[kind][i].append(np.asarray(measure.per_query(judgements, scores)))
                if kind == "auto":
                    taken[ranker.leaves_] += 1
        joined = {kind: [np.concatenate(part) for part in parts] for kind, parts in values.items()}
        for kind in KINDS:
            line = [name, kind, *(f"{part.mean():.4f}" for part in joined[kind]), f"{np.median(seconds[kind]):.2f}"]
            if kind == "auto":
                line.append(", ".join(f"{one} {count}" for one, count in taken.items()))
            else:
                test = stats.ttest_rel(joined["auto"][1], joined[kind][1])
                line.append(f"t {test.statistic:+.2f}, p {test.pvalue:.3f}" if test.pvalue == test.pvalue else "same")
            rows.append(line)
        sys.stdout.write(table(rows, ["set", "leaves", "AP", "nDCG@10", "CPU s", "choice against it"]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1:])
