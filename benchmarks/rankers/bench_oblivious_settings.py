"""What each setting of fuzzy trees is worth on validation queries; test queries are not looked at.

Each variant changes one thing of the base: fuzzy borders, yetirank, a bootstrap by row, 100 trees, depth 6, rate 0.1,
32 borders. It is fitted to the training queries of the published folds and of random assignments of queries to folds,
under a few seeds. Printed are MAP and nDCG@10 over all validation queries, and the differences to the base by query:
mean ± standard error. *Averaged* adds the scores of the seeds' fits.

`python -m benchmarks.rankers.bench_oblivious_settings --data DIR [--variants …] [--sets …] [--assignments N]`
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import numpy as np
from reproductions.protocol import Fold

from reproductions import protocol
from truerank import FuzzyLeaves, ObliviousBoosting
from truerank.measures import parse_measure

BASE: dict[str, Any] = {"objective": "yetirank", "bootstrap": "row", "borders": 32}


def query_squared_error(y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared error of grades and scores less their means within the query."""
    residual, sizes = scores - y, np.diff(offsets)
    means = np.add.reduceat(residual, offsets[:-1]) / sizes
    return residual - np.repeat(means, sizes), np.ones_like(scores)


VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "linear start": {"start": "linear"},
    "squared error": {"objective": "mse"},
    "squared error within queries": {"objective": query_squared_error, "alpha": 0.0},
    "lambdarank of AP": {"objective": "lambdarank", "measure": "AP"},
    "lambdarank of nDCG": {"objective": "lambdarank", "measure": "nDCG"},
    "softmax": {"objective": "softmax"},
    "pairwise-logistic": {"objective": "pairwise-logistic"},
    "depth 4": {"depth": 4},
    "depth 8": {"depth": 8},
    "rate 0.05": {"learning_rate": 0.05},
    "fuzziness 0.08": {"leaves": FuzzyLeaves(0.08, ties="near")},
    "fuzziness 0.25": {"leaves": FuzzyLeaves(0.25, ties="near")},
    "fuzziness 0.4": {"leaves": FuzzyLeaves(0.4, ties="near")},
    "ties average": {"leaves": FuzzyLeaves(0.15, ties="average")},
    "fuzzy search": {"leaves": FuzzyLeaves(0.15, ties="near", search=True)},
    "no bootstrap": {"bootstrap": None},
    "bootstrap by query": {"bootstrap": "query"},
    "half of the features": {"feature_fraction": 0.5},
    "alpha 0": {"alpha": 0.0},
    "alpha 5": {"alpha": 5.0},
    "30 rankings": {"objective_params": {"permutations": 30}},
    "decay 0.95": {"objective_params": {"decay": 0.95}},
}
MEASURES = [parse_measure(name, "ranklib") for name in ("AP", "nDCG@10")]


def folds_of(folder: str, name: str, assignments: int) -> list[Fold]:
    """The published folds, and those of random assignments."""
    collection = protocol.load_collection(folder, name)
    folds = list(protocol.letor_folds(collection))
    for repetition in range(assignments):
        folds += protocol.random_folds(collection.data, repetition, seed=77)
    return folds


def by_query(folds: list[Fold], scores: list[np.ndarray]) -> np.ndarray:
    """Values (measures, validation queries of all folds)."""
    values = [[m.per_query(f.valid.judgements(), s) for f, s in zip(folds, scores)] for m in MEASURES]
    return np.array([np.concatenate(parts) for parts in values])


def run(argv: list[str] | None = None) -> None:
    """Every variant on every set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--sets", nargs="+", default=["mq2008", "ohsumed"])
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--assignments", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args(argv or [])
    if not args.data:
        print("(set TRUERANK_DATA to the folder of the collections)")
        return
    for name in args.sets:
        folds = folds_of(args.data, name, args.assignments)
        print(f"\n**{name}**, validation queries of {len(folds)} folds, {args.seeds} seeds\n")
        print("| | MAP | to base | nDCG@10 | to base | averaged: MAP | nDCG@10 |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        base = None
        for variant in dict.fromkeys(["base", *args.variants]):
            fits = [
                [
                    ObliviousBoosting(
                        **({"leaves": FuzzyLeaves(0.15, ties="near")} | BASE | VARIANTS[variant]),
                        random_state=1000 + seed,
                    )
                    .fit(fold.train)
                    .predict(fold.valid)
                    for fold in folds
                ]
                for seed in range(args.seeds)
            ]
            found = np.mean([by_query(folds, scores) for scores in fits], axis=0)
            averaged = by_query(folds, [np.mean(scores, axis=0) for scores in zip(*fits)]).mean(axis=1)
            base = found if base is None else base
            cells = []
            for own, other in zip(found, base):
                change = own - other
                error = change.std() / np.sqrt(len(change))
                cells += [f"{own.mean():.4f}", f"{change.mean():+.4f} ± {error:.4f}" if error else ""]
            print(f"| {variant} | {' | '.join(cells)} | {averaged[0]:.4f} | {averaged[1]:.4f} |", flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
