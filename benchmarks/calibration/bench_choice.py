"""The pool beside one chosen method and the best of Platt, isotonic, beta and temperature, on data that ship.

These are part of the data on which the rule of `choose_calibrator` was chosen, so its figures here are no test.
Wine, iris and diabetes (half trains and calibrates, half tests, in turn) and made-up problems of 285
and 900 rows, each with Gaussian naive Bayes and a linear SVM.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from reproductions.calibration.topic_scores import pooled
from sklearn.datasets import load_diabetes, load_iris, load_wine, make_classification
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from truerank.calibration.base import make_calibrator
from truerank.calibration.classifier import classifier_scores
from truerank.calibration.diagnostics import Losses, losses
from truerank.calibration.pool import MEMBERS, choose_calibrator
from truerank.significance import paired_t

PEERS = ("platt", "isotonic", "beta", "temperature")
DRAWS = 5
CLASSIFIERS: dict[str, Any] = {
    "Gaussian naive Bayes": lambda: GaussianNB(var_smoothing=1e-3),
    "linear SVM": lambda: make_pipeline(StandardScaler(), LinearSVC(C=0.01, random_state=0, max_iter=100_000)),
}


def problems() -> Iterator[tuple[str, np.ndarray, np.ndarray, int, int]]:
    """Name of the set, rows, classes, training rows, draws."""
    for name, (X, y) in {"wine": load_wine(return_X_y=True), "iris": load_iris(return_X_y=True)}.items():
        for label in range(3):
            yield name, X, (y == label).astype(int), len(y) // 2, DRAWS
    X, y = load_diabetes(return_X_y=True)
    for level in (0.5, 0.8):
        yield "diabetes", X, (y > np.quantile(y, level)).astype(int), len(y) // 2, DRAWS
    for seed in range(12):
        for n, share in ((285, 0.4), (900, 0.9)):
            X, y = make_classification(
                n + 2000, 30, n_informative=6, n_redundant=10, weights=[share], flip_y=0.02,
                class_sep=(0.8, 1.3, 2.0)[seed % 3], random_state=seed,
            )  # fmt: skip
            yield f"made up, {n} rows", X, y, n, 1


def against_best_peer(chosen: Losses, peers: dict[str, Losses], loss: str) -> tuple[float, float, str, float]:
    """The sum of the chosen method, of the best peer, its name, and p of a paired t test over the decisions."""
    sums = {name: float(getattr(peer, loss).sum()) for name, peer in peers.items()}
    best = min(sums, key=lambda name: sums[name])
    ours, theirs = getattr(chosen, loss), getattr(peers[best], loss)
    return float(ours.sum()), sums[best], best, paired_t(ours, theirs).p


def run() -> None:
    outcomes: dict[tuple[str, str], list[tuple[Losses, Losses, dict[str, Losses]]]] = {}
    seconds = {"pool": 0.0, "one method": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows of a class, separable scores
        for name, X, y, n_train, draws in problems():
            for train, test in StratifiedShuffleSplit(draws, train_size=n_train, random_state=1).split(y, y):
                for classifier, make in CLASSIFIERS.items():
                    scores = np.empty(len(train))
                    for a, b in StratifiedKFold(5).split(train, y[train]):
                        scores[b] = classifier_scores(make().fit(X[train[a]], y[train[a]]), X[train[b]])
                    at_test = classifier_scores(make().fit(X[train], y[train]), X[test])
                    found = []
                    for rule, methods in (("pool", ("pool", *MEMBERS)), ("one method", MEMBERS)):
                        start = time.process_time()
                        choice = choose_calibrator(scores, y[train], methods=methods)
                        seconds[rule] += time.process_time() - start
                        found.append(losses(y[test], choice.calibrator.log_odds(at_test)))
                    peers = {
                        peer: losses(y[test], make_calibrator(peer).fit(scores, y[train]).log_odds(at_test))
                        for peer in PEERS
                    }
                    outcomes.setdefault((name, classifier), []).append((found[0], found[1], peers))
    print("\n| set, classifier | fits | loss | best peer | one method | p | pool | p |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (name, classifier), some in outcomes.items():
        peers = {peer: pooled(outcome[2][peer] for outcome in some) for peer in PEERS}
        pool, one = (pooled(outcome[k] for outcome in some) for k in (0, 1))
        for loss in ("log_loss", "squared_error"):
            found = [against_best_peer(rule, peers, loss) for rule in (one, pool)]
            cells = [f"{found[0][1]:.1f} ({found[0][2]})"]
            cells += [cell for ours, _, _, p in found for cell in (f"{ours:.1f}", f"{p:.3f}")]
            print(f"| {name}, {classifier} | {len(some)} | {loss.replace('_', ' ')} | {' | '.join(cells)} |")
    fits = sum(len(some) for some in outcomes.values())
    print(f"\nCPU seconds a choice, mean of {fits}: " + ", ".join(f"{k} {v / fits:.2f}" for k, v in seconds.items()))
