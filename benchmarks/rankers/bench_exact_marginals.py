"""Do the exact marginals of equation 4 (Belous 2015) rank better than the printed formula? A plain NumPy booster.

    TRUERANK_DATA=DIR python -m benchmarks.rankers.bench_exact_marginals

The thesis derives P(left of a border) from P(permutation) ∝ p^inversions, and prints marginals ∝ p^|i - j|. The exact
marginals do not factor, so the trees of truerank cannot use them. Here both have a table over 100 places of each
feature (places are ranks, scaled). Trees are oblivious, of depth 4, with a fuzzy level search over 15 borders. There
are 50 trees, rate 0.2, each on a bootstrap sample of the rows, stopped at the best validation nDCG@5. Validation
chooses p. Folds 1 and 2 of MQ2008, three seeds.
"""

from __future__ import annotations

import numpy as np
from reproductions.protocol import Fold

from benchmarks.harness import collections
from reproductions import protocol
from truerank.measures import parse_measure

PLACES, DEPTH, TREES, RATE = 100, 4, 50, 0.2
BORDERS = np.arange(6, PLACES, 6)[:15]
P = (0.85, 0.93, 0.97)
SEEDS = 3


def printed(n: int, p: float) -> np.ndarray:
    """Marginals (n, n) as printed, normalised: ∝ p^|i - j|."""
    shares = p ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return shares / shares.sum(axis=1, keepdims=True)


def exact(n: int, p: float) -> np.ndarray:
    """Marginals (n, n) under P(permutation) ∝ p^inversions, by insertion (`tests/reference/oblivious.py`)."""
    rows = np.zeros((n, n))
    for k in range(n):
        slots = p ** np.arange(k, -1, -1.0)
        slots /= slots.sum()
        moved = np.cumsum(slots)  # a later value that is inserted at or before a place moves it up
        before = rows[:k, :k].copy()
        rows[:k, :k] = before * (1 - moved[:k])
        rows[:k, 1 : k + 1] += before * moved[:k]
        rows[k, : k + 1] = slots
    return rows


def places(train: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Place of each value (n, features) in the sorted training values."""
    ranks = [np.searchsorted(np.sort(a), b, side="left") for a, b in zip(train.T, X.T)]
    return np.minimum(np.stack(ranks, axis=1) * PLACES // len(train), PLACES - 1)


def scores(fold: Fold, left: np.ndarray, seed: int) -> tuple[float, float]:
    """Validation and test nDCG@5 at the tree of the best validation nDCG@5; `left` (places, borders) is P(left)."""
    measure, random = parse_measure("nDCG@5", "ranklib"), np.random.default_rng(seed)
    X = np.asarray(fold.train.X, dtype=float)
    parts = (fold.train, fold.valid, fold.test)
    member = [left[places(X, np.asarray(part.X))].reshape(part.n_rows, -1).astype(np.float32) for part in parts]
    y = np.asarray(fold.train.y, dtype=np.float32)
    sums = [np.full(part.n_rows, y.mean(), dtype=np.float32) for part in parts]
    best = (-1.0, 0.0)
    for _ in range(TREES):
        times = np.bincount(random.integers(0, len(y), len(y)), minlength=len(y)).astype(np.float32)
        residual = times * (y - sums[0])
        shares = [np.ones((part.n_rows, 1), dtype=np.float32) for part in parts]
        for _ in range(DEPTH):
            s, w = (((shares[0] * values[:, None]).T @ member[0]) for values in (residual, times))
            all_s, all_w = (shares[0].T @ values for values in (residual, times))
            gain = s**2 / (w + 1) + (all_s[:, None] - s) ** 2 / (all_w[:, None] - w + 1)
            column = int(np.argmax(gain.sum(axis=0)))
            shares = [
                np.hstack([share * m[:, column : column + 1], share * (1 - m[:, column : column + 1])])
                for share, m in zip(shares, member)
            ]
        values = (shares[0].T @ residual) / (shares[0].T @ times + 1)
        for total, share in zip(sums, shares):
            total += RATE * (share @ values)
        valid, test = (
            measure.mean(part.judgements(), np.asarray(total, dtype=float)) for part, total in zip(parts[1:], sums[1:])
        )
        best = max(best, (valid, test))
    return best


def run() -> None:
    """Print nDCG@5 of both forms by fold and seed, and their mean difference."""
    root = collections()
    if root is None:
        return
    folds = protocol.letor_folds(protocol.load_collection(root, "mq2008"))[:2]
    differences = []
    print("| fold | seed | printed | exact |\n| --- | --- | --- | --- |")
    for fold in folds:
        for seed in range(SEEDS):
            found = []
            for form in (printed, exact):
                tables = [np.cumsum(form(PLACES, p), axis=1)[:, BORDERS - 1] for p in P]
                found.append(max(scores(fold, left, seed) for left in tables)[1])
            differences.append(found[1] - found[0])
            print(f"| {fold.name} | {seed} | {found[0]:.4f} | {found[1]:.4f} |", flush=True)
    d = np.array(differences)
    error = d.std(ddof=1) / np.sqrt(len(d))
    print(f"\nexact minus printed: {d.mean():+.4f}, standard error {error:.4f} over {len(d)} runs")


if __name__ == "__main__":
    run()
