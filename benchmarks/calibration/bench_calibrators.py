"""Calibrators on scores of known densities, 30 to 10⁶ rows, beside scikit-learn, betacal, netcal, sort and expit.

Scores come from asymmetric Laplace classes, so the true posterior is known: besides CPU seconds each table has the log
loss, the Brier score and the mean distance to the true posterior on fresh rows. netcal needs torch: set
TRUERANK_NETCAL_PYTHON to a Python that has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.harness import compare, peer
from truerank.calibration import CALIBRATORS, calibrator_class

# Mode, inverse scale to the left and to the right, of the negative and of the positive class.
MINUS, PLUS, SHARE = (-1.0, 0.5, 1.5), (2.0, 1.0, 2.0), 0.2
SIZES = (30, 100, 1_000, 10_000, 100_000, 1_000_000)
TEST_ROWS = 100_000
# Samples of 1,000 rows and fewer; of more there is one.
SAMPLES = 10


def draw(rng: np.random.Generator, n: int, density: tuple[float, float, float]) -> np.ndarray:
    theta, beta, gamma = density
    left = rng.uniform(size=n) < gamma / (beta + gamma)
    return np.where(left, theta - rng.exponential(1 / beta, n), theta + rng.exponential(1 / gamma, n))


def log_density(x: np.ndarray, density: tuple[float, float, float]) -> np.ndarray:
    theta, beta, gamma = density
    d = x - theta
    return np.log(beta * gamma / (beta + gamma)) + np.where(d <= 0, beta * d, -gamma * d)


def sample(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, classes and the true P(positive | score); at least two rows of each class."""
    y = (rng.uniform(size=n) < SHARE).astype(np.int64)
    y[:2], y[2:4] = 1, 0
    scores = np.where(y == 1, draw(rng, n, PLUS), draw(rng, n, MINUS))
    odds = np.log(SHARE / (1 - SHARE)) + log_density(scores, PLUS) - log_density(scores, MINUS)
    return scores, y, expit(odds)


def peers() -> dict[str, Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]]:
    """Name -> fit(scores, y), which returns predict(scores) -> P(positive). Those of libraries that are there."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.isotonic import IsotonicRegression

    class Scores(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose decision function is its one column: scikit-learn calibrates classifiers only."""

        def fit(self, X: Any, y: Any) -> Any:
            self.classes_ = np.array([0, 1])
            return self

        def decision_function(self, X: Any) -> np.ndarray:
            return np.asarray(X)[:, 0]

        def predict(self, X: Any) -> np.ndarray:
            return (self.decision_function(X) > 0).astype(int)

    class OneFold:
        """All rows as the one held-out fold: a frozen classifier needs no more."""

        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            rows = np.arange(len(X))
            yield rows[:2], rows

        def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
            return 1

    def scikit_learn(method: str) -> Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
        def fit(scores: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            frozen = FrozenEstimator(Scores().fit(None, None))
            fitted = CalibratedClassifierCV(frozen, method=method, cv=OneFold(), ensemble=True).fit(scores[:, None], y)
            return lambda x: fitted.predict_proba(x[:, None])[:, 1]

        return fit

    def isotonic(scores: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(scores, y).predict

    found: dict[str, Any] = {
        "scikit-learn sigmoid": scikit_learn("sigmoid"),
        "scikit-learn isotonic": isotonic,
        "scikit-learn temperature": scikit_learn("temperature"),
    }
    betacal = peer("betacal")
    if betacal is not None:

        def beta(scores: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            fitted = betacal.BetaCalibration(parameters="abm").fit(expit(scores)[:, None], y)
            return lambda x: fitted.predict(expit(x)[:, None])

        found["betacal"] = beta
    return found


def ours(name: str, **settings: Any) -> Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    def fit(scores: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        fitted = calibrator_class(name)(**settings).fit(scores, y)
        return lambda x: fitted.predict_proba(x)[:, 1]

    return fit


def losses(p: np.ndarray, y: np.ndarray, truth: np.ndarray) -> tuple[float, float, float]:
    """Log loss (probabilities cut off at 1e-15, as others' reach 0), Brier score, mean |p - truth|."""
    cut = np.clip(p, 1e-15, 1 - 1e-15)
    return (
        float(-np.mean(np.where(y == 1, np.log(cut), np.log1p(-cut)))),
        float(np.mean((p - y) ** 2)),
        float(np.mean(np.abs(p - truth))),
    )


def netcal(samples: list[tuple[np.ndarray, np.ndarray]], test: np.ndarray) -> dict[str, tuple[float, list[np.ndarray]]]:
    """Method -> CPU seconds of a fit, P(positive) of the test rows for each sample; empty where netcal is not there."""
    import json

    python = os.environ.get("TRUERANK_NETCAL_PYTHON", "")
    if not python:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/test.npy", test)
        for number, (scores, y) in enumerate(samples):
            np.save(f"{folder}/scores-{number}.npy", scores)
            np.save(f"{folder}/y-{number}.npy", y)
        script = os.path.join(os.path.dirname(__file__), "netcal_peer.py")
        words = [python, "-W", "ignore", script, folder, str(len(samples)), "1" if len(samples) > 1 else "3"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            print(f"(netcal failed, left out: {done.stderr.strip().splitlines()[-1:]})")
            return {}
        seconds = json.loads(done.stdout.strip().splitlines()[-1])
        return {
            name: (taken, [np.load(f"{folder}/{name}-{number}.npy") for number in range(len(samples))])
            for name, taken in seconds.items()
        }


def run() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    test, y_test, truth_test = sample(rng, TEST_ROWS)
    scores, y, _ = sample(rng, 1_000_000)
    laplace = calibrator_class("asymmetric-laplace")
    fitted = laplace().fit(scores, y)
    compare(
        "fit of the asymmetric Laplace, 10⁶ scores",
        {"numpy.sort": lambda: np.sort(scores), "truerank": lambda: laplace().fit(scores, y)},
        rounds=9, unit=1e-3, unit_name="ms",
    )  # fmt: skip
    compare(
        "prediction, 10⁶ scores",
        {
            "scipy.special.expit": lambda: expit(scores),
            "truerank log_odds": lambda: fitted.log_odds(scores),
            "truerank predict_proba (n, 2)": lambda: fitted.predict_proba(scores),
        },
        rounds=9, unit=1e-3, unit_name="ms",
    )  # fmt: skip
    methods = {name: ours(name) for name in CALIBRATORS}
    methods["spline, monotone"] = ours("spline", monotone=True)
    methods |= peers()
    columns = {n: _measure(n, methods, rng, test, y_test, truth_test) for n in SIZES}
    for number, title in enumerate(("Fit, CPU ms", "Log loss", "Brier score", "Mean distance to the true posterior")):
        _print(title, number, columns)


# Fit in CPU milliseconds, log loss, Brier score, distance.
Figures = tuple[float, float, float, float]


def _measure(
    n: int, methods: dict[str, Any], rng: np.random.Generator, test: np.ndarray, y_test: np.ndarray, truth: np.ndarray
) -> dict[str, Figures]:
    """Figures of each method for samples of n rows: CPU seconds in turn, losses averaged over the samples."""
    repeats = SAMPLES if n <= 1000 else 1
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    samples = [sample(rng, n)[:2] for _ in range(repeats)]
    for scores, y in samples:
        # The first turn is not timed: it compiles, and its fit is judged.
        for turn in range(2 if repeats > 1 or n > 100_000 else 4):
            for name, fit in methods.items():
                start = time.process_time()
                predict = fit(scores, y)
                taken = time.process_time() - start
                if turn:
                    seconds[name].append(taken)
                else:
                    figures[name].append(losses(predict(test), y_test, truth))
    result: dict[str, Figures] = {"true posterior": (float("nan"), *losses(truth, y_test, truth))}
    for name in methods:
        log_loss, brier, distance = np.mean(figures[name], axis=0).tolist()
        result[name] = (1e3 * float(np.median(seconds[name])), log_loss, brier, distance)
    for name, (taken, predictions) in netcal(samples, test).items():
        log_loss, brier, distance = np.mean([losses(p, y_test, truth) for p in predictions], axis=0).tolist()
        result[f"netcal {name}"] = (1e3 * taken, log_loss, brier, distance)
    print(f"({n:,} scores: done)", file=sys.stderr, flush=True)
    return result


def _print(title: str, number: int, columns: dict[int, dict[str, Figures]]) -> None:
    """One table: a row a method, a column a sample size."""
    print(f"\n**{title}**\n\n| | " + " | ".join(f"{n:,}" for n in columns) + " |")
    print("| --- |" + " --- |" * len(columns))
    for name in next(iter(columns.values())):
        values = [column[name][number] for column in columns.values()]
        if not np.isnan(values).any():
            shown = [f"{value:.3g}" if number == 0 else f"{value:.5f}" for value in values]
            print(f"| {name} | " + " | ".join(shown) + " |")
    sys.stdout.flush()
