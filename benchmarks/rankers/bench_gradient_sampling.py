"""GOSS, MVS and DART beside plain boosting: what they would be worth, on validation queries of real sets.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_gradient_sampling [mq2008] [ohsumed] [mslr] [sample]

The learners have none of the three; here they are made outside, from an objective of one's own. Squared error, 100
trees, all else at the defaults; the pairs of training and validation queries of `bench_oblivious_defaults`. By set and
kind of leaves: nDCG@10 (convention `ranklib`) and its difference to all rows by query, mean ± standard error, with the
mean over three seeds; and the time of a fit to as many rows, drawn alike, as a share of that of all rows.

* Uniform: a share of the rows without replacement for each tree.
* GOSS (LightGBM's): the fifth with the largest gradients, and a tenth of all drawn from the others, times 8.
* MVS (Ibragimov and Gusev 2019, CatBoost's): row i with probability min(1, s_i / m), s_i² = g_i² + λ, times its
  inverse; m such that the share is met, λ the square of the mean |g|.
* DART: each earlier tree is dropped with probability .1 in half of the rounds; of k dropped trees, k/(k + rate) stays,
  and the new one has 1/(k + rate) of its step (as XGBoost normalises them).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_defaults import MEASURES, sets
from truerank import ObliviousBoosting, RankingData
from truerank.core.printing import table

TREES, RATE, SEEDS = 100, 0.1, (0, 1, 2)
Weights = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def everything(gradients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Weights (n,) of all rows."""
    return np.ones(len(gradients))


def uniform(share: float) -> Weights:
    """Weights of rows drawn alike."""

    def draw(gradients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        weights = np.zeros(len(gradients))
        weights[rng.permutation(len(weights))[: round(share * len(weights))]] = 1.0
        return weights

    return draw


def goss(top: float, other: float) -> Weights:
    """Weights of rows drawn by gradient-based one-side sampling."""

    def draw(gradients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        order = np.argsort(-np.abs(gradients), kind="stable")
        n, kept = len(order), round(top * len(order))
        weights = np.zeros(n)
        weights[order[:kept]] = 1.0
        weights[rng.permutation(order[kept:])[: round(other * n)]] = (1.0 - top) / other
        return weights

    return draw


def mvs(share: float) -> Weights:
    """Weights of rows drawn by minimal variance sampling."""

    def draw(gradients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        size = np.sqrt(gradients**2 + np.abs(gradients).mean() ** 2)
        low, high = 0.0, float(size.sum()) / share
        for _ in range(60):  # halving: the expected number of rows falls in m
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.minimum(1.0, size / middle).mean() > share else (low, middle)
        chance = np.minimum(1.0, size / high)
        return np.where(rng.random(len(chance)) < chance, 1.0 / chance, 0.0)

    return draw


SAMPLES: dict[str, tuple[float, Weights]] = {
    "all rows": (1.0, everything),
    "uniform, half": (0.5, uniform(0.5)),
    "uniform, .3": (0.3, uniform(0.3)),
    "GOSS, .2 + .1": (0.3, goss(0.2, 0.1)),
    "MVS, half": (0.5, mvs(0.5)),
    "MVS, .3": (0.3, mvs(0.3)),
}


def sampled(leaves: str, draw: Weights, seed: int, train: RankingData, valid: RankingData) -> np.ndarray:
    """Validation scores of boosting whose every tree sees the rows of one draw."""
    rng = np.random.default_rng(seed)

    def objective(y: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients = scores - (y - y.mean())
        weights = draw(gradients, rng)
        return gradients * weights, weights

    ranker = ObliviousBoosting(leaves, objective=objective, alpha=0.0, n_estimators=TREES, learning_rate=RATE)
    return np.asarray(ranker.fit(train).predict(valid))


def dart(leaves: str, seed: int, train: RankingData, valid: RankingData) -> np.ndarray:
    """Validation scores of trees that were fitted while others were left out."""
    rng = np.random.default_rng(seed)
    assert train.y is not None
    target = train.y - train.y.mean()
    ours, theirs, weight = np.empty((TREES, train.n_rows)), np.empty((TREES, valid.n_rows)), np.zeros(TREES)
    for t in range(TREES):
        out = np.flatnonzero(rng.random(t) < 0.1) if rng.random() < 0.5 else np.empty(0, dtype=np.int64)
        kept = np.setdiff1d(np.arange(t), out)
        rest = target - weight[kept] @ ours[kept]
        # One tree, which all of the learner's own rate is for.
        tree = ObliviousBoosting(
            leaves, objective=lambda y, s, o, rest=rest: (s - rest, np.ones(len(s))), alpha=0.0, n_estimators=1,
            learning_rate=1.0,
        ).fit(train)  # fmt: skip
        ours[t], theirs[t] = tree.predict(train.X), tree.predict(valid.X)
        weight[t] = RATE / (len(out) + RATE) if len(out) else RATE
        weight[out] *= len(out) / (len(out) + RATE)
    return np.asarray(weight @ theirs)


def cpu_seconds(train: RankingData, leaves: str, share: float) -> float:
    """The least of three fits."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        ObliviousBoosting(leaves, subsample=share, n_estimators=TREES).fit(train)
        taken.append(time.process_time() - start)
    return min(taken)


def run(wanted: Sequence[str] = ()) -> None:
    """Print a line for each set, kind of leaves and way of sampling; of all sets where none is named."""
    rows: list[list[Any]] = []
    measure = MEASURES[1]
    for name, pairs in sets(wanted):
        for leaves in ("constant", "fuzzy"):
            times = {share: cpu_seconds(pairs[0][0], leaves, share) for share in (1.0, 0.5, 0.3)}
            ways: dict[str, tuple[float, Callable[..., np.ndarray]]] = {
                way: (share, lambda *args, draw=draw: sampled(args[0], draw, *args[1:]))
                for way, (share, draw) in SAMPLES.items()
            }
            ways["DART"] = (1.0, dart)
            base = np.empty(0)
            for way, (share, scores) in ways.items():
                values = np.concatenate(
                    [
                        np.mean(
                            [measure.per_query(v.judgements(), scores(leaves, seed, t, v)) for seed in SEEDS], axis=0
                        )
                        for t, v in pairs
                    ]
                )
                base = values if way == "all rows" else base
                d = values - base
                error = d.std(ddof=1) / np.sqrt(len(d))
                ratio = f"{times[share] / times[1.0]:.2f}" if way != "DART" else ""
                rows.append([name, leaves, way, f"{values.mean():.4f}", f"{d.mean():+.4f} ± {error:.4f}", ratio])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    header = ["set", "leaves", "rows of a tree", "nDCG@10", "difference", "time"]
    sys.stdout.write(table(rows, header) + "\n")


if __name__ == "__main__":
    run(sys.argv[1:])
