"""Degenerate data for every ranker and calibrator; the test suite runs a share.

    PYTHONPATH=src:tests python tests/support/degenerate_data.py --fits 1000

Each fit must end in a model that ranks (a calibrator: in probabilities inside (0, 1)), or in a warning or an error that
says why. Anything else is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from truerank.calibration import CALIBRATORS, calibrator_class
from truerank.core.errors import TruerankError
from truerank.data.ranking_data import RankingData
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.oblivious_boosting import ObliviousBoosting

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


def usual(rng: np.random.Generator, n: int = 40, p: int = 5) -> Data:
    X = rng.uniform(size=(n, p))
    return X, (X[:, 0] + 0.5 * rng.uniform(size=n) > 0.75).astype(float), np.arange(n) // 8


def changed(change: Callable[[np.ndarray, np.ndarray, np.ndarray, np.random.Generator], Data]):
    return lambda rng: change(*usual(rng), rng)


def column(values: Callable[[np.ndarray, np.random.Generator], np.ndarray], place: int = 1):
    def change(X, y, qid, rng):
        X = X.copy()
        X[:, place] = values(X[:, place], rng)
        return X, y, qid

    return changed(change)


KINDS = {
    "usual": usual,
    "one row": lambda rng: (rng.uniform(size=(1, 3)), np.ones(1), np.zeros(1, dtype=int)),
    "two rows": lambda rng: (np.array([[0.0], [1.0]]), np.array([0.0, 1.0]), np.zeros(2, dtype=int)),
    "one query": changed(lambda X, y, q, rng: (X, y, np.zeros_like(q))),
    "queries of one row": changed(lambda X, y, q, rng: (X, y, np.arange(len(y)))),
    "one grade": changed(lambda X, y, q, rng: (X, np.ones_like(y), q)),
    "no relevant row": changed(lambda X, y, q, rng: (X, np.zeros_like(y), q)),
    "one grade a query": changed(lambda X, y, q, rng: (X, (q % 2).astype(float), q)),
    "one relevant row": changed(lambda X, y, q, rng: (X, np.eye(1, len(y))[0], q)),
    "negative grades": changed(lambda X, y, q, rng: (X, y - 1, q)),
    "grades of 1e12": changed(lambda X, y, q, rng: (X, y * 1e12, q)),
    "five grades": changed(lambda X, y, q, rng: (X, np.floor(X[:, 0] * 5), q)),
    "constant rows": changed(lambda X, y, q, rng: (np.ones_like(X), y, q)),
    "zero rows": changed(lambda X, y, q, rng: (np.zeros_like(X), y, q)),
    "constant within queries": changed(lambda X, y, q, rng: (np.repeat(q[:, None], 3, 1).astype(float), y, q)),
    "twin columns": changed(lambda X, y, q, rng: (np.repeat(X[:, :1], 4, 1), y, q)),
    "more columns than rows": lambda rng: (rng.uniform(size=(12, 60)), np.arange(12) % 2.0, np.arange(12) // 6),
    "twin rows, other grades": changed(lambda X, y, q, rng: (np.repeat(X[::2], 2, 0), np.arange(len(y)) % 2.0, q)),
    "column of 1e300": column(lambda v, rng: v * 1e300),
    "one cell of 1e300": column(lambda v, rng: np.where(np.arange(len(v)) == 3, 1e300, v)),
    "column of 1e-300": column(lambda v, rng: v * 1e-300, 0),
    "column of 1e15 and a little": column(lambda v, rng: 1e15 + np.round(v * 100), 0),
    "scales from 1e-8 to 1e8": changed(lambda X, y, q, rng: (X * 10.0 ** np.linspace(-8, 8, 5), y, q)),
    "one column": changed(lambda X, y, q, rng: (X[:, :1], y, q)),
    "turned column": changed(lambda X, y, q, rng: (-X[:, :1], y, q)),
    "float32": changed(lambda X, y, q, rng: (X.astype(np.float32), y, q)),
    "whole numbers": changed(lambda X, y, q, rng: (np.round(X * 3), y, q)),
    "noise": changed(lambda X, y, q, rng: (X, rng.integers(0, 2, len(y)).astype(float), q)),
}


def rankers() -> dict[str, Callable[[], object]]:
    def quick(name: str):
        ranker = ranker_class(name)()
        known = ranker.get_params(deep=False)
        few = {"n_estimators": 10, "depth": 3, "max_iter": 3000}
        return ranker.set_params(**{key: value for key, value in few.items() if key in known})

    made: dict[str, Callable[[], object]] = {name: lambda name=name: quick(name) for name in RANKERS}
    for leaves in ("fuzzy", "polynomial"):
        made[f"{leaves} leaves"] = lambda leaves=leaves: ObliviousBoosting(leaves, n_estimators=5, depth=2)
    return made


def outcome(make: Callable[[], object], kind: str, seed: int) -> str:
    """ "ranks", "flat" (in silence), "warns", "refuses"; or what went wrong."""
    X, y, qid = KINDS[kind](np.random.default_rng(seed))
    data = RankingData(X, y, qid=qid)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            ranker = make().fit(data)
        except TruerankError as error:
            return "refuses" if len(str(error)) > 15 else f"refuses without a reason: {error}"
        except ValueError as error:  # scikit-learn's checks
            return "refuses" if "sklearn" in _place(error) else f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        warned = [w for w in caught if not issubclass(w.category, RuntimeWarning | DeprecationWarning)]
        rude = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
        scores = ranker.predict(data)
    if rude:
        return f"RuntimeWarning: {rude[0]}"
    if not np.isfinite(scores).all():
        return "warns" if warned else "scores that are not finite, in silence"
    if warned:
        return "warns"
    return "ranks" if _can_rank(scores, data) else "flat"


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")


def _can_rank(scores: np.ndarray, data: RankingData) -> bool:
    """Whether the scores tell apart any two rows of one query; true where no query has two grades."""
    grouped = data.grouped(scores)
    parts = list(zip(data.offsets[:-1], data.offsets[1:]))
    if not any(len(set(data.y[a:b].tolist())) > 1 for a, b in parts):
        return True
    size = np.abs(scores).max() * 1e-12
    return any(np.ptp(grouped[a:b]) > size for a, b in parts)


SCORES = {
    "usual": lambda rng: rng.normal(size=60),
    "constant": lambda rng: np.ones(60),
    "two values": lambda rng: rng.integers(0, 2, 60).astype(float),
    "separated": lambda rng: np.linspace(-1, 1, 60),
    "1e100": lambda rng: rng.normal(size=60) * 1e100,
    "1e-200": lambda rng: rng.normal(size=60) * 1e-200,
    "offset of 1e12": lambda rng: rng.normal(size=60) + 1e12,
    "one outlier": lambda rng: np.append(rng.normal(size=59), 1e9),
    "turned": lambda rng: -np.linspace(-1, 1, 60),
}
LABELS = {
    "by the score": lambda s, rng: (s + rng.normal(size=len(s)) * (np.ptp(s) or 1.0) > np.median(s)).astype(int),
    "exactly": lambda s, rng: (np.arange(len(s)) >= 30).astype(int),
    "all positive": lambda s, rng: np.ones(len(s), dtype=int),
    "all negative": lambda s, rng: np.zeros(len(s), dtype=int),
    "one positive": lambda s, rng: np.eye(1, len(s), dtype=int)[0],
}


def calibrated(name: str, kind: tuple[str, str], seed: int) -> str:
    """ "calibrates", "warns", "refuses"; or what went wrong."""
    rng = np.random.default_rng(seed)
    scores = SCORES[kind[0]](rng)
    y = LABELS[kind[1]](scores, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            calibrator = calibrator_class(name)().fit(scores, y)
        except TruerankError as error:
            return "refuses" if len(str(error)) > 15 else f"refuses without a reason: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        p = calibrator.predict_proba(np.concatenate([scores, [-1e140, 0.0, 1e140]]))[:, 1]
    rude = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    if rude:
        return f"RuntimeWarning: {rude[0]}"
    if not ((p > 0) & (p < 1)).all():
        return f"probabilities from {p.min()} to {p.max()}"
    return "warns" if caught else "calibrates"


GOOD = ("ranks", "calibrates", "warns", "refuses")


def trials() -> Iterator[tuple[str, object, Callable[[int], str]]]:
    """(learner, kind of data, trial of a seed), once each; the pool, which fits all other calibrators, on a quarter."""
    made = rankers()
    for kind, name in itertools.product(KINDS, made):
        yield name, kind, lambda seed, kind=kind, name=name: outcome(made[name], kind, seed)
    for number, (both, name) in enumerate(itertools.product(itertools.product(SCORES, LABELS), CALIBRATORS)):
        if name != "pool" or number // len(CALIBRATORS) % 4 == 0:
            yield name, both, lambda seed, both=both, name=name: calibrated(name, both, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--fits", type=int, default=1000)
    args = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    seeds = itertools.chain.from_iterable(((*trial, seed) for trial in trials()) for seed in itertools.count())
    for name, kind, trial, seed in itertools.islice(seeds, args.fits):
        found = trial(seed)
        counts[found if found in GOOD else "wrong"] += 1
        if found not in GOOD:
            print(f"{name} on {kind}, seed {seed}: {found}", flush=True)
    print(json.dumps({"fits": sum(counts.values()), **dict(sorted(counts.items()))}))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
