"""Imported models of LightGBM, XGBoost and CatBoost beside their own tools, on rows with missing values.

    python -m benchmarks export/bench_imports

One thread, processor seconds, each in turn, medians; XGBoost by `inplace_predict`, its fastest way from an array.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.export.bench_c import seconds
from truerank import import_model
from truerank.core.printing import table

ROWS, TRAIN, ROUNDS = 100_000, 10_000, 5
Tool = Callable[[np.ndarray, np.ndarray, Path], Callable[[np.ndarray], Any]]


def lightgbm_with(**params: Any) -> Tool:
    """Trains and saves; the result predicts."""

    def make(X: np.ndarray, y: np.ndarray, path: Path) -> Callable[[np.ndarray], Any]:
        import lightgbm

        own = {"verbose": -1, "num_threads": 1, "num_leaves": 31} | params
        booster = lightgbm.train(own, lightgbm.Dataset(X, y), 100)
        booster.save_model(path)
        return lambda rows: booster.predict(rows, raw_score=True, num_threads=1)

    return make


def xgboost_with(**params: Any) -> Tool:
    """The same of XGBoost."""

    def make(X: np.ndarray, y: np.ndarray, path: Path) -> Callable[[np.ndarray], Any]:
        import xgboost

        booster = xgboost.train({"nthread": 1, "max_depth": 6} | params, xgboost.DMatrix(X, y), 100)
        path.write_bytes(booster.save_raw("json"))
        return lambda rows: booster.inplace_predict(rows, predict_type="margin")

    return make


def catboost_with(**params: Any) -> Tool:
    """The same of CatBoost."""

    def make(X: np.ndarray, y: np.ndarray, path: Path) -> Callable[[np.ndarray], Any]:
        import catboost

        own = {"iterations": 100, "depth": 6, "verbose": 0, "thread_count": 1, "allow_writing_files": False} | params
        model = catboost.CatBoostRegressor(**own).fit(X, y)
        model.save_model(str(path), format="json")
        return lambda rows: model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)

    return make


MODELS: dict[str, Tool] = {
    "LightGBM": lightgbm_with(),
    "LightGBM, zero_as_missing": lightgbm_with(zero_as_missing=True),
    "LightGBM, 255 leaves": lightgbm_with(num_leaves=255),
    "XGBoost": xgboost_with(),
    "XGBoost, dart": xgboost_with(booster="dart", rate_drop=0.1),
    "XGBoost, lossguide": xgboost_with(grow_policy="lossguide", max_leaves=31, max_depth=0),
    "CatBoost": catboost_with(),
    "CatBoost, Depthwise": catboost_with(grow_policy="Depthwise"),
    "CatBoost, Lossguide": catboost_with(grow_policy="Lossguide"),
}


def run() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 40))
    y = X[:TRAIN, 0] * X[:TRAIN, 1] + X[:TRAIN, 2] + np.abs(X[:TRAIN, 3])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 7] = np.where(np.abs(X[:, 7]) < 0.8, 0, X[:, 7])
    rows, missing = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number, (title, make) in enumerate(MODELS.items()):
            path = Path(folder) / f"model{number}"
            try:
                theirs = make(X[:TRAIN], y, path)
            except ImportError as error:
                missing.append(f"{title} ({error})")
                continue
            ranker = import_model(path)
            difference = float(np.abs(ranker.predict(X) - theirs(X)).max())
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                times[0].append(seconds(lambda ranker=ranker: ranker.predict(X)))
                times[1].append(seconds(lambda theirs=theirs: theirs(X)))
            ours, own = (1000 * median(part) for part in times)
            rows.append([title, f"{difference:.1e}", f"{ours:.0f}", f"{own:.0f}", f"{ours / own:.2f}"])
    print(f"{ROWS} rows of {X.shape[1]} features, a tenth missing, 100 trees")
    print(table(rows, ["model", "largest difference", "ms here", "ms there", "ratio"]))
    if missing:
        print("left out: " + "; ".join(missing))
