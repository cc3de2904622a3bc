"""Compare the pool for several classes with single methods and scikit-learn's calibrators, by mean test log loss.

`python -m benchmarks calibration/bench_several_classes`; BENCH_SETS is a pattern of the names of some. Sets named
"settled" chose an earlier rule for the pool's weights. `excess` is the pool's loss less that of the best single method
in hindsight (softmax forms, and one class against the rest by the pool of two classes, Platt, isotonic and beta). `bar`
is the larger of 1 % of that and 0.006.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.calibration.held_out_scores import reuters
from truerank.calibration.base import quietly
from truerank.calibration.classifier import class_scores
from truerank.calibration.joint import SOFTMAX_METHODS, JointPool, OneVsRestCalibrator, SoftmaxCalibrator

SPLITS = 3
Split = tuple[Any, np.ndarray, Any, np.ndarray]


def split(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n], order[n:][:3000]
    return X[train], y[train], X[test], y[test]


def made(k: int, n: int, separation: float, seed: int, informative: int = 8, redundant: int = 12) -> Split:
    X, y = make_classification(
        n + 3000, 30, n_informative=informative, n_redundant=redundant, n_classes=k, n_clusters_per_class=1,
        class_sep=separation, flip_y=0.02, random_state=seed,
    )  # fmt: skip
    return X[:n], y[:n], X[n:], y[n:]


def texts(k: int, n: int, seed: int) -> Split:
    """Word counts of bursty texts: each text has its own distribution over words around its topic's."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.full(3000, 0.05))
    topics = np.array([rng.dirichlet(base * 300 + 1e-4) for _ in range(k)])
    y = rng.integers(0, k, n + 2000)
    of_text = [rng.dirichlet((0.65 * base + 0.35 * topics[c]) * 60 + 1e-6) for c in y]
    X = np.array([rng.multinomial(int(rng.lognormal(4, 0.7)) + 1, p) for p in of_text], dtype=np.float64)
    return X[:n], y[:n], X[n:], y[n:]


def some_reuters(least: int, n: int, seed: int) -> Split:
    X, y, X_test, y_test = reuters(least)
    rows = np.random.default_rng(seed).permutation(X.shape[0])[:n]
    return X[rows], y[rows], X_test, y_test


def diabetes(k: int, seed: int) -> Split:
    X, y = load_diabetes(return_X_y=True)
    return split(X, np.searchsorted(np.quantile(y, np.arange(1, k) / k), y), 221, seed)


def data_sets() -> Iterator[tuple[str, Callable[[int], Split], Any]]:
    """Name, rows by seed, classifier."""
    gaussian = GaussianNB(var_smoothing=1e-3)
    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.01, random_state=0, max_iter=100_000))
    text_svm = make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC())
    yield "settled: diabetes, 4 classes, nearest neighbours", lambda s: diabetes(4, s), KNeighborsClassifier(10)
    yield "settled: made, 12 classes, 600 rows, naive Bayes", lambda s: made(12, 600, 1.5, 100 + s), gaussian
    yield "settled: made texts, 12 classes, naive Bayes", lambda s: texts(12, 700, 40 + s), MultinomialNB()
    yield "settled: Reuters >= 100, Bernoulli naive Bayes", lambda s: some_reuters(100, 800, s), BernoulliNB()
    yield "settled: Reuters >= 100, linear SVM", lambda s: some_reuters(100, 800, s), text_svm
    yield "made, 25 classes, 2,000 rows, naive Bayes", lambda s: made(25, 2000, 1.5, s, 12, 10), GaussianNB()
    yield (
        "made, 8 classes, 800 rows, nearest neighbours",
        lambda s: made(8, 800, 0.9, 900 + s),
        KNeighborsClassifier(15),
    )
    yield "made texts, 20 classes, 2,500 rows, naive Bayes", lambda s: texts(20, 2500, 70 + s), MultinomialNB()
    yield "made texts, 20 classes, 600 rows, naive Bayes", lambda s: texts(20, 600, 80 + s), MultinomialNB()
    yield "Reuters >= 30, 1,500 rows, naive Bayes", lambda s: some_reuters(30, 1500, 10 + s), MultinomialNB()
    yield "Reuters >= 15, 1,500 rows, naive Bayes", lambda s: some_reuters(15, 1500, 10 + s), MultinomialNB()
    digits, iris, wine = (load(return_X_y=True) for load in (load_digits, load_iris, load_wine))
    yield "digits, 359 rows, multinomial naive Bayes", lambda s: split(*digits, 359, s), MultinomialNB()
    yield "digits, 898 rows, Gaussian naive Bayes", lambda s: split(*digits, 898, s), gaussian
    yield "digits, 898 rows, linear SVM", lambda s: split(*digits, 898, s), svm
    yield "iris, Gaussian naive Bayes", lambda s: split(*iris, 75, s), gaussian
    yield "wine, Gaussian naive Bayes", lambda s: split(*wine, 89, s), gaussian
    yield (
        "wine, logistic regression",
        lambda s: split(*wine, 89, s),
        make_pipeline(StandardScaler(), LogisticRegression()),
    )


def losses(make: Callable[[int], Split], classifier: Any, seed: int) -> dict[str, float]:
    """Mean test log loss of the pool, of each of its members and of other calibrators."""
    X, y, X_test, y_test = make(seed)
    classes, counts = np.unique(y, return_counts=True)
    kept, known = np.isin(y, classes[counts >= 6]), np.isin(y_test, classes[counts >= 6])
    X, X_test = X[np.flatnonzero(kept)], X_test[np.flatnonzero(known)]
    classes, y = np.unique(y[kept], return_inverse=True)
    y_test = np.searchsorted(classes, y_test[known])
    scores = np.empty((len(y), len(classes)))
    for train, test in StratifiedKFold(5).split(scores, y):
        scores[test], logarithms = class_scores(clone(classifier).fit(X[train], y[train]), X[test])
    new, _ = class_scores(clone(classifier).fit(X, y), X_test)
    rows = np.arange(len(y_test))
    found: dict[str, float] = {}
    pool = JointPool(from_log_probabilities=logarithms, random_state=0).fit(scores, y)
    found["pool"] = -float(pool.log_probabilities(new)[rows, y_test].mean())
    singles: dict[str, Any] = {name: SoftmaxCalibrator(**how) for name, how in SOFTMAX_METHODS.items()}
    for method in ("pool", "platt", "isotonic", "beta"):
        singles[f"each class, {method}"] = OneVsRestCalibrator(method, from_log_probabilities=logarithms)
    for name, single in singles.items():
        with quietly():
            found[name] = -float(single.fit(scores, y).log_probabilities(new)[rows, y_test].mean())
    for method in ("sigmoid", "isotonic", "temperature"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = CalibratedClassifierCV(clone(classifier), method=method).fit(X, y).predict_proba(X_test)
        found[f"scikit-learn, {method}"] = -float(np.log(np.maximum(p[rows, y_test], 1e-15)).mean())
    return found


def run() -> None:
    """Print a row a set: means over the splits."""
    print(f"\nMean test log loss over {SPLITS} splits\n")
    print("| set | pool | best single | | excess | bar | best of scikit-learn | its isotonic |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, make, classifier in data_sets():
        if not re.search(os.environ.get("BENCH_SETS", ""), name):
            continue
        found = [losses(make, classifier, seed) for seed in range(SPLITS)]
        mean = {method: float(np.mean([one[method] for one in found])) for method in found[0]}
        theirs = {method: value for method, value in mean.items() if method.startswith("scikit-learn")}
        ours = {method: value for method, value in mean.items() if method != "pool" and method not in theirs}
        best = min(ours, key=ours.__getitem__)
        excess, bar = mean["pool"] - ours[best], max(0.01 * ours[best], 0.006)
        isotonic = theirs["scikit-learn, isotonic"]
        print(
            f"| {name} | {mean['pool']:.4f} | {ours[best]:.4f} | {best} | {excess:+.4f} | {bar:.4f} | "
            f"{min(theirs.values()):.4f} | {isotonic:.4f} |",
            flush=True,
        )
