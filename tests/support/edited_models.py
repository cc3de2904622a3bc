"""Edited model files: every kind of model, one value of its JSON replaced, taken away or doubled at random.

    PYTHONPATH=src:tests python tests/support/edited_models.py --edits 10000 --only calibrat

Each is refused, or gives finite scores; a calibrator probabilities inside (0, 1) of scores of every size, which rise
with the score where it is said to be monotone. Anything else is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import math
import random
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from truerank.calibration import CALIBRATORS, SOFTMAX_METHODS, calibrator_class
from truerank.calibration.base import LARGEST_SCORE, Calibrator
from truerank.calibration.joint import (
    JointCalibrator,
    JointPool,
    OneVsRestCalibrator,
    SoftmaxCalibrator,
)
from truerank.calibration.ranker import CalibratedRanker
from truerank.core.errors import TruerankError
from truerank.data.ranking_data import RankingData
from truerank.features.per_query import MinMaxInQuery
from truerank.models.model_file import load_model, save_model
from truerank.models.registry import RANKERS, ranker_class
from truerank.rankers.adarank import AdaRank
from truerank.rankers.oblivious_boosting import ObliviousBoosting

JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 5, 2**31, 2**63, 10**30, 0.5, -0.5, 1e308, -1e308, "", "x", "nan", "inf", [], {}, [1],
    [[]], [None], {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": 5}, {"$class": "AdaRank"},
    {"$class": None}, {"$measure": "AP"}, {"$measure": "x("}, {"$array": "float64", "shape": [2], "values": [1, 2]},
    {"$array": "float64", "shape": [0], "values": []}, {"$array": "int64", "shape": [1], "values": [-7]},
    {"$array": "float64", "shape": [1], "values": ["nan"]}, {"$array": None}, {"a": 1}, "é" * 50,
]  # fmt: skip
SIZES = (0, 1e-300, 5e-324, -1e-300, 1e18, 1e300, -1e300, 1.7976931348623157e308)


def models() -> dict[str, Any]:
    """A small fitted model of every kind, by name."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 4))
    y = (X[:, 0] + X[:, 1] > 1.0).astype(float) + (X[:, 0] > 0.8)
    data = RankingData(X, y, qid=np.repeat(np.arange(6), 10), feature_names=["a", "b", "c", "d"])
    few = {"n_estimators": 4, "depth": 2, "rel": 1, "max_iter": 100}
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in RANKERS:
            ranker = ranker_class(name)()
            known = ranker.get_params(deep=False)
            made[name] = ranker.set_params(**{k: v for k, v in few.items() if k in known}).fit(data)
        for leaves in ("fuzzy", "polynomial"):
            made[leaves] = ObliviousBoosting(leaves, n_estimators=3, depth=2, alpha=0.1).fit(data)
        scores = rng.normal(size=200)
        positive = scores + rng.normal(size=200) > 0
        for name in CALIBRATORS:
            calibrator = calibrator_class(name)()
            made[f"calibrator {name}"] = calibrator.fit(scores, positive)
            if "monotone" in calibrator.get_params() and not calibrator.always_monotone:
                made[f"calibrator {name}, monotone"] = clone(calibrator).set_params(monotone=True).fit(scores, positive)
                made[f"calibrator {name}, falling"] = clone(calibrator).set_params(monotone=True).fit(-scores, positive)
        joint: dict[str, Any] = {name: SoftmaxCalibrator(**how) for name, how in SOFTMAX_METHODS.items()}
        joint |= {"one against the rest": OneVsRestCalibrator("spline"), "joint pool": JointPool(cv=2)}
        vectors = X[:, :3] + np.eye(3)[y.astype(int)]
        made |= {f"calibrator {name}": calibrator.fit(vectors, y) for name, calibrator in joint.items()}
        made["calibrated"] = CalibratedRanker(AdaRank(n_estimators=3), method="platt").fit(data)
        made["pipeline"] = make_pipeline(MinMaxInQuery(), AdaRank(n_estimators=3)).fit(X, y)
    return made


def documents(folder: Path) -> dict[str, Any]:
    """The JSON of each model."""
    found = {}
    for name, model in models().items():
        path = folder / "model.json"
        save_model(model, path)
        found[name] = json.loads(path.read_text())
    return found


def unsealed(value: Any) -> Any:
    """A copy of JSON without checksums, as a file written by hand."""
    if isinstance(value, dict):
        return {key: unsealed(item) for key, item in value.items() if key != "checksums"}
    return list(map(unsealed, value)) if isinstance(value, list) else value


def edited(document: Any, rng: random.Random) -> Any:
    """A copy with one to three edits at random places."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(document["model"] if isinstance(document.get("model"), dict) else document))
        if not places:
            break
        holder, key = rng.choice(places)
        action = rng.randrange(8)
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif action == 2 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = rng.choice((-holder[key], holder[key] * 1e6, holder[key] + 1, holder[key] * 1e300, *SIZES))
        else:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
    return document


def _places(value: Any) -> Any:
    """Every (container, key) below a JSON value, arrays' values as often as everything else together."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def trial(path: Path) -> str:
    """Load an edited model and use it: "refused", "works", or what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = load_model(path)
    except TruerankError:
        return "refused"
    except Exception as error:
        return f"load: {type(error).__name__}: {error}"
    rng = np.random.default_rng(1)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if isinstance(model, Calibrator):
                fine = _calibrates(model)
            elif isinstance(model, JointCalibrator):
                k = len(model.classes_)
                p = model.predict_proba(np.concatenate([rng.normal(size=(50, k)) * 3, 1e100 * np.eye(k), -np.eye(k)]))
                fine = bool(((p >= 0) & (p <= 1)).all())
            else:
                first = model.steps[0][1] if hasattr(model, "steps") else model
                X = rng.uniform(-1, 2, size=(7, first.n_features_in_))
                scores = model.predict(X)
                fine = bool(np.isfinite(scores).all())
                if hasattr(model, "predict_proba"):
                    p = model.predict_proba(X)
                    fine = fine and bool(((p >= 0) & (p <= 1)).all())
    except TruerankError:
        return "works"  # an error that says what to do
    except Exception as error:
        return f"use: {type(error).__name__}: {error}"
    return "works" if fine else "wrong numbers"


def _calibrates(model: Calibrator) -> bool:
    """Whether probabilities of scores of every size are inside (0, 1), and rise where that is promised."""
    far = np.geomspace(1e-320, 0.99 * LARGEST_SCORE, 120)
    scores = np.concatenate([-far[::-1], np.linspace(-8.0, 8.0, 400), far])
    scores.sort()
    p, log_odds = model.predict_proba(scores), model.log_odds(scores)
    rising = model.always_monotone or getattr(model, "monotone", None) is True
    falls = np.diff(log_odds) < -1e-6 * (1.0 + np.abs(log_odds[1:]))
    return bool(((p > 0) & (p < 1)).all() and np.isfinite(log_odds).all() and not (rising and falls.any()))


def fuzz(folder: Path, n: int, seed: int, only: str = "") -> tuple[dict[str, int], list[tuple[str, str, Any]]]:
    """Counts by outcome, and the edits that neither were refused nor work: (model, what, JSON)."""
    rng = random.Random(seed)
    originals = {name: document for name, document in documents(folder).items() if only in name}
    path = folder / "edited.json"
    counts = {"refused": 0, "works": 0}
    wrong = []
    for number in range(n):
        name = list(originals)[number % len(originals)]
        document = edited(unsealed(originals[name]), rng)
        path.write_text(json.dumps(document, allow_nan=False, default=str) if _finite(document) else "{}")
        outcome = trial(path)
        if outcome in counts:
            counts[outcome] += 1
        else:
            wrong.append((name, outcome, document))
    return counts, wrong


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict | list):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return True


def main() -> int:
    """Run as many edits as asked, print the counts and what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="models whose name holds this")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts, wrong = fuzz(Path(folder), args.edits, args.seed, args.only)
    print(", ".join(f"{what} {count:,}" for what, count in counts.items()) + f", wrong {len(wrong):,}")
    for (name, what), count in collections.Counter((name, what) for name, what, _ in wrong).most_common():
        print(f"{name}: {what}: {count}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
