"""Default calibration beside its members over twenty draws of the halves, where `bench_collections` has one.

    BENCH_COLLECTIONS=wine,iris python -m benchmarks bench_drawn_halves

One division of a small set into halves decides which rare rows a sure calibrator is punished for; a t-test over the
rows of one half, whose differences are skewed (a little on nearly every row, much on a few), does not see that. Here
a line is a set that ships with scikit-learn: mean log loss in nats over the draws, of the default (the pool) and of
the member whose mean is the lowest, on how many draws it was ahead, and p of a t-test over the draws whose variance
is corrected for rows that the draws share (1/n + test rows / training rows in place of 1/n; Nadeau and Bengio 2003).
The p is of the member that is best in hindsight, uncorrected for that choice, with Holm's correction over the sets.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from scipy.stats import t as student

from benchmarks.calibration.bench_collections import losses
from benchmarks.calibration.held_out_scores import BUNDLED
from truerank.significance.corrections import holm

DRAWS = 20


def beside_best(name: str) -> tuple[float, str, np.ndarray]:
    """The default's mean loss, its best member, and by how much that one is ahead on each draw."""
    default, members = [], []
    for seed in range(DRAWS):
        ours, _, theirs, _ = losses(BUNDLED[name](seed=1000 + seed, methods=()))
        default.append(ours.mean())
        members.append({member: loss.mean() for member, loss in theirs.items()})
    mean = {member: np.mean([draw[member] for draw in members]) for member in members[0]}
    best = min(mean, key=lambda member: float(mean[member]))
    return float(np.mean(default)), best, np.array(default) - [draw[best] for draw in members]


def corrected_t(ahead: np.ndarray) -> float:
    """Two-sided p of a mean over draws of halves: test rows are as many as training rows."""
    statistic = ahead.mean() / np.sqrt(ahead.var(ddof=1) * (1.0 / len(ahead) + 1.0))
    return float(2.0 * student.sf(abs(statistic), len(ahead) - 1))


def run() -> None:
    words = [word.strip() for word in os.environ.get("BENCH_COLLECTIONS", "").split(",")]
    print("\n| set | default | best member over the draws | ahead on | p |\n| --- | --- | --- | --- | --- |")
    p = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class, separable scores
        for name in BUNDLED:
            if any(word in name for word in words):
                default, best, ahead = beside_best(name)
                p.append(corrected_t(ahead) if ahead.mean() > 0.0 else 1.0)
                shown = "" if p[-1] == 1.0 else f"{p[-1]:.3f}"
                cells = [name, f"{default:.4f}", f"{default - ahead.mean():.4f} ({best})"]
                print(f"| {' | '.join(cells)} | {(ahead > 0.0).sum()} of {DRAWS} | {shown} |", flush=True)
    behind = sum(one < 0.05 for one in p), int((holm(p) < 0.05).sum())
    print(f"\n{len(p)} sets; the default behind at p < .05 on {behind[0]}, after Holm's correction on {behind[1]}")
