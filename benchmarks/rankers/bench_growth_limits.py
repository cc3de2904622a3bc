"""What limits on the growth of trees cost or gain: features that never meet, fewer leaves, on validation queries.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_growth_limits [mq2008] [ohsumed] [mslr] [sample]

Squared error, 100 trees, all else at the defaults; the pairs of training and validation queries of
`bench_oblivious_defaults`. By set and kind of leaves: nDCG@10 (convention `ranklib`) of trees without a limit, and the
difference to it by query, mean ± standard error. An oblivious tree of depth d has 2^d leaves, so that a largest number
of leaves is a depth.

* Each feature alone: `interaction_constraints` of one feature a set, so that the score is a sum of functions of one.
* Eight sets: the features in eight sets, one after the other as the files have them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_defaults import MEASURES, sets
from truerank import ObliviousBoosting
from truerank.core.printing import table


def limits(n_features: int) -> dict[str, dict[str, Any]]:
    """Settings by name; the first is without a limit."""
    columns = np.arange(n_features)
    return {
        "no limit": {},
        "each feature alone": {"interaction_constraints": [[k] for k in columns.tolist()]},
        "eight sets": {"interaction_constraints": [part.tolist() for part in np.array_split(columns, 8)]},
        "8 leaves": {"depth": 3},
        "16 leaves": {"depth": 4},
        "32 leaves": {"depth": 5},
    }


def run(wanted: Sequence[str] = ()) -> None:
    """Print a line for each set, kind of leaves and limit; of all sets where none is named."""
    rows: list[list[Any]] = []
    measure = MEASURES[1]
    for name, pairs in sets(wanted):
        for leaves in ("constant", "fuzzy"):
            free = np.empty(0)
            for limit, settings in limits(pairs[0][0].n_features).items():
                values = np.concatenate(
                    [
                        measure.per_query(v.judgements(), ObliviousBoosting(leaves, **settings).fit(t).predict(v))
                        for t, v in pairs
                    ]
                )
                free = values if limit == "no limit" else free
                d = values - free
                error = d.std(ddof=1) / np.sqrt(len(d))
                rows.append([name, leaves, limit, f"{values.mean():.4f}", f"{d.mean():+.4f} ± {error:.4f}"])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    sys.stdout.write(table(rows, ["set", "leaves", "limit", "nDCG@10", "difference"]) + "\n")


if __name__ == "__main__":
    run(sys.argv[1:])
