"""What sampling by gradient and dropped trees would be worth: nDCG@10 of validation queries beside what there is.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_sampling [mq2008] [ohsumed] [mslr] [sample]

The pairs of training and validation queries of `bench_oblivious_defaults`, three seeds, 100 trees, the rest at its
defaults. A tree sees three tenths of the rows: drawn evenly (`subsample=.3`), by GOSS (the fifth of the largest
gradients, and a tenth of the rest weighed up), or by MVS (with probability in proportion to sqrt(g² + h²), weighed by
its inverse). DART (squared error alone): each tree is fitted without a tenth of the earlier ones, which are then shrunk
to make room. Differences to all rows, by query, mean ± standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_defaults import MEASURES, sets
from truerank import ObliviousBoosting
from truerank.core.printing import table
from truerank.losses.boosting import make_objective

SEEDS = (0, 1, 2)
SHARE = 0.3
NDCG = MEASURES[1]
Draw = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


class Sampled:
    """An objective whose derivatives are those of drawn rows, weighed up; of others they are 0."""

    quadratic = False

    def __init__(self, objective: str, draw: Draw) -> None:
        self.inner, self.draw = make_objective(objective, None, NDCG, None), draw

    def begin(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def start(self, y: np.ndarray, weights: np.ndarray | None) -> float:
        return self.inner.start(y, weights)

    def __call__(self, y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        g, h = self.inner(y, scores, offsets)
        weights = self.draw(g, h, self.rng)
        return g * weights, h * weights


def goss(g: np.ndarray, h: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights: 1 for the fifth of the largest gradients, 8 for one in eight of the others."""
    weights = np.where(rng.random(len(g)) < 0.125, 8.0, 0.0)
    weights[np.argsort(-np.abs(g))[: len(g) // 5]] = 1.0
    return weights


def mvs(g: np.ndarray, h: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights: the inverse of each drawn row's probability, whose mean is `SHARE`."""
    size = np.sqrt(g**2 + h**2) + 1e-300
    low, high = 0.0, float(size.sum()) / (SHARE * len(g)) + 1e-300
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.minimum(1.0, size / middle).mean() > SHARE else (low, middle)
    p = np.minimum(1.0, size / high)
    return np.where(rng.random(len(g)) < p, 1.0 / p, 0.0)


def dart(train: Any, valid: Any, leaves: str, seed: int) -> np.ndarray:
    """Scores of the validation queries."""
    rng = np.random.default_rng(seed)
    mean = float(train.y.mean())
    own: list[np.ndarray] = []
    other: list[np.ndarray] = []
    for _ in range(100):
        dropped = np.flatnonzero(rng.random(len(own)) < 0.1)
        left = mean + sum((tree for i, tree in enumerate(own) if i not in dropped), np.zeros(train.n_rows))
        tree = ObliviousBoosting(leaves, n_estimators=1, learning_rate=1.0)
        residual = train.y - left
        tree.fit(train.X, residual - residual.min(), qid=train.query_index)  # grades are not negative
        # With k trees dropped the new one counts rate / (k + rate) and these k / (k + rate) of before, as in LightGBM.
        k = len(dropped)
        rate = 0.1 / (k + 0.1) if k else 0.1
        for i in dropped:
            own[i], other[i] = own[i] * (k / (k + 0.1)), other[i] * (k / (k + 0.1))
        own.append(rate * (tree.predict(train) + residual.min()))
        other.append(rate * tree.predict(valid))
    return np.sum(other, axis=0)


def values(objective: str, leaves: str, way: str, train: Any, valid: Any) -> np.ndarray:
    """nDCG@10 by validation query, mean over the seeds."""
    total = np.zeros(valid.n_queries)
    for seed in SEEDS:
        if way == "DART":
            scores = dart(train, valid, leaves, seed)
        else:
            alpha = 0.0 if objective == "mse" else 1.0
            drawn = {"GOSS": goss, "MVS": mvs}.get(way)
            ranker = ObliviousBoosting(
                leaves, objective=objective if drawn is None else Sampled(objective, drawn), alpha=alpha,
                measure="nDCG@10", subsample=SHARE if way == "evenly" else 1.0, random_state=seed,
            )  # fmt: skip
            scores = ranker.fit(train).predict(valid)
        total += np.asarray(NDCG.per_query(valid.judgements(), scores)) / len(SEEDS)
    return total


def run(wanted: Sequence[str] = ()) -> None:
    """Print a table for each set; of all sets where none is named."""
    for name, pairs in sets(Path(os.environ["TRUERANK_DATA"])):
        if wanted and name not in wanted:
            continue
        rows: list[list[Any]] = []
        for objective in ("mse", "lambdarank"):
            for leaves in ("constant", "fuzzy"):
                ways = ["all rows", "evenly", "GOSS", "MVS", *(["DART"] if objective == "mse" else [])]
                found = {way: np.concatenate([values(objective, leaves, way, *pair) for pair in pairs]) for way in ways}
                first = found.pop("all rows")
                line: list[Any] = [objective, leaves, f"{first.mean():.4f}"]
                for own in found.values():
                    gap = own - first
                    line.append(f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}")
                rows.append(line + [""] * (7 - len(line)))
        header = ["objective", "leaves", "all rows", "evenly", "GOSS", "MVS", "DART"]
        sys.stdout.write(f"\n{name}, nDCG@10\n\n{table(rows, header)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1:])
