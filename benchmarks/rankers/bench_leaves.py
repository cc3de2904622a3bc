"""Plain, fuzzy and polynomial leaves at one setting and at their defaults: nDCG@5 and squared error on five folds.

100 trees of depth 4, rate 0.1, 32 borders, a bootstrap sample by row for each tree; borders .15 wide with ties near,
polynomials with λ = 1000. Below them each kind with every parameter at its default. Means over two seeds, under the
three ways of stopping of `python -m reproductions oblivious`. Training objectives of polynomial leaves must fall to the
end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import collections
from reproductions import oblivious, protocol
from truerank.rankers.oblivious_boosting import ObliviousBoosting

SEEDS = 2
KINDS: dict[str, Any] = {
    "plain": "constant",
    "fuzzy": {"kind": "fuzzy", "fuzziness": 0.15, "ties": "near"},
    "polynomial": {"kind": "polynomial", "smoothing": 1000.0},
}
DEFAULTS = {"plain": "constant", "fuzzy": "fuzzy", "polynomial": "polynomial"}


def run() -> None:
    """One table for each collection."""
    root = collections()
    if root is None:
        return
    known = ObliviousBoosting().get_params(deep=False)
    own = {name: known[name] for name in ("n_estimators", "learning_rate", "borders", "bootstrap", "depth")}
    settings = {f"{name}, depth 4": {"leaves": leaves, "depth": 4} for name, leaves in KINDS.items()}
    settings |= {f"{name}, defaults": {"leaves": leaves, **own} for name, leaves in DEFAULTS.items()}
    print(f"Defaults: {', '.join(f'{name} {value}' for name, value in own.items())}.")
    for name in oblivious.COLLECTIONS:
        collection = protocol.load_collection(root, name)
        print(f"\n**{name}**: nDCG@5 (1/log2(r + 1)), squared error\n")
        print(f"| | {' | '.join(f'stopped by {stop}' for stop in oblivious.STOPS)} | all trees | training rises |")
        print("| --- | --- | --- | --- | --- |")
        for title, params in settings.items():
            pieces = [
                piece
                for seed in range(SEEDS)
                for piece in oblivious.one_run(collection, params, seed, protocol.ResultStore(None), None)
            ]
            cells = [
                f"{np.mean([p[rule]['ranklib'] for p in pieces]):.4f}, {np.mean([p[rule]['mse'] for p in pieces]):.4f}"
                for rule in oblivious.RULES
            ]
            ranker = oblivious.fit(params, protocol.letor_folds(collection)[0], 0, None)
            rises = int(np.sum(np.diff(ranker.history_["objective"]) > 0))
            print(f"| {title} | {' | '.join(cells)} | {rises} of {ranker.n_iter_} |", flush=True)
