"""Boosted trees on small and wide rows beside LightGBM's defaults: made-up data with the shape of its example.

3,005 rows in 201 queries, 300 features: a third of them empty, the others with 2 to 98 different values in any
share of the rows, about 32 % in all. One thread, CPU seconds, in turn.

`python -m benchmarks.rankers.bench_small_wide [--rounds N] [--file FILE --queries FILE]`; a file in LETOR form without
qid and its query sizes, such as LightGBM's `rank.train` and `rank.train.query`, take the place of the made-up rows.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

ROWS, QUERIES, FEATURES = 3005, 201, 300


def made(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, grades 0 … 4, and the number of rows of each query."""
    rng = np.random.default_rng(seed)
    filled = np.where(rng.random(FEATURES) < 1 / 3, 0.0, rng.beta(0.4, 0.5, FEATURES))
    steps = np.round(np.exp(rng.uniform(np.log(2), np.log(98), FEATURES)))
    X = np.ceil(rng.random((ROWS, FEATURES)) * steps) / 100 * (rng.random((ROWS, FEATURES)) < filled)
    scores = X[:, rng.permutation(FEATURES)[:40]] @ rng.standard_normal(40) + 0.5 * rng.standard_normal(ROWS)
    y = np.digitize(scores, np.quantile(scores, [0.21, 0.62, 0.9, 0.977])).astype(np.float64)
    sizes = 1 + np.bincount(rng.integers(0, QUERIES, ROWS - QUERIES), minlength=QUERIES)
    return X, y, sizes


def run(arguments: list[str] | None = None) -> None:
    """Print the table."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file")
    parser.add_argument("--queries")
    args = parser.parse_args(arguments)

    import truerank
    from benchmarks.harness import compare, peer

    X, y, sizes = made()
    if args.file:
        from sklearn.datasets import load_svmlight_file

        stored, y = load_svmlight_file(args.file)
        X, sizes = stored.toarray(), np.loadtxt(args.queries, dtype=int)
    print(f"{X.shape[0]:,} × {X.shape[1]}, {np.mean(X != 0):.0%} filled")
    data = truerank.RankingData(X, y, np.repeat(np.arange(len(sizes)), sizes))
    lightgbm: Any = peer("lightgbm")

    def fit_lightgbm() -> Any:
        return lightgbm.LGBMRanker(n_jobs=1, verbose=-1).fit(X, y, group=sizes)

    compare(
        "A fit on small and wide rows",
        {
            "LightGBM, defaults": None if lightgbm is None else fit_lightgbm,
            "truerank, constant leaves": lambda: truerank.ObliviousBoosting(leaves="constant").fit(data),
            "truerank, defaults": lambda: truerank.ObliviousBoosting().fit(data),
        },
        rounds=args.rounds,
    )


if __name__ == "__main__":
    run()
