"""CPU seconds and log loss of CalibratedClassifier and of scikit-learn's CalibratedClassifierCV on eight sets.

`fit` of the second fit in one thread, so that nothing is compiled; the ratio is that to `sigmoid`, which has
`ensemble=False` as CalibratedClassifier has. "best other" is the lowest log loss of scikit-learn's methods.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC

from truerank import CalibratedClassifier

OTHERS: dict[str, dict[str, Any]] = {
    "sigmoid": {"method": "sigmoid", "ensemble": False},
    "sigmoid, ensemble": {"method": "sigmoid", "ensemble": True},
    "isotonic": {"method": "isotonic", "ensemble": False},
    "isotonic, ensemble": {"method": "isotonic", "ensemble": True},
    "temperature": {"method": "temperature", "ensemble": False},
}


def sets() -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield the name of a set, a classifier, and rows with labels."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, naive Bayes", GaussianNB(), X, y
    yield "breast cancer, forest", RandomForestClassifier(50, random_state=0), X, y
    X, y = make_classification(4000, 20, n_informative=8, flip_y=0.1, random_state=1)
    yield "4,000 rows, linear SVM", LinearSVC(), X, y
    yield "4,000 rows, forest", RandomForestClassifier(50, random_state=0), X, y
    X, y = make_classification(20_000, 20, n_informative=8, flip_y=0.1, random_state=2)
    yield "20,000 rows, naive Bayes", GaussianNB(), X, y
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 2, 3000)
    rates = 0.05 * rng.gamma(0.5, size=(2, 500))
    yield "3,000 texts of 500 words, multinomial", MultinomialNB(), rng.poisson(rates[topic]), topic
    X, y = load_digits(return_X_y=True)
    yield "digits (10 classes), naive Bayes", GaussianNB(), X, y
    X, y = load_wine(return_X_y=True)
    yield "wine (3 classes), logistic", LogisticRegression(max_iter=5000), X, y


def measured(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> tuple[float, float]:
    """Return CPU seconds of the second fit, and the log loss of test rows."""
    model.fit(*train)
    start = time.process_time()
    model.fit(*train)
    return time.process_time() - start, log_loss(test[1], model.predict_proba(test[0]))


def run() -> None:
    warnings.simplefilter("ignore")
    rows = []
    for name, classifier, X, y in sets():
        a, b, c, d = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
        found = {
            other: measured(CalibratedClassifierCV(classifier, **settings), (a, c), (b, d))
            for other, settings in OTHERS.items()
        }
        seconds, loss = measured(CalibratedClassifier(classifier), (a, c), (b, d))
        best = min(found, key=lambda other: found[other][1])
        base = found["sigmoid"]
        rows.append([name, f"{base[0]:.3f}", f"{base[1]:.4f}", best, f"{found[best][1]:.4f}", f"{seconds:.3f}",
                     f"{loss:.4f}", f"{seconds / base[0]:.1f}"])  # fmt: skip
    head = ["set", "sigmoid, s", "log loss", "best other", "log loss", "truerank, s", "log loss", "ratio"]
    for cells in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(cells) + " |")
