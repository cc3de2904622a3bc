"""The C file of 100 constant trees of depth 6 beside truerank's kernel and treelite, interpreted and compiled."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from truerank import ObliviousBoosting, RankingData, export_model
from truerank.core.printing import table
from truerank.export.run import compile_c

ROWS, ROUNDS = 100_000, 7


def seconds(call: Any) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def treelite_calls(text: str, X: np.ndarray, folder: Path) -> dict[str, Any]:
    """Scores by treelite's interpreter, and by the C code that tl2cgen writes and compiles (its default, -O3)."""
    calls: dict[str, Any] = {}
    (folder / "model.txt").write_text(text)
    try:
        import treelite

        own = treelite.frontend.load_lightgbm_model(str(folder / "model.txt"))
        calls["treelite, interpreted"] = lambda: treelite.gtil.predict(own, X, nthread=1)
        import tl2cgen

        tl2cgen.export_lib(own, "gcc", folder / "model.so", nthread=1)
        compiled = tl2cgen.Predictor(folder / "model.so", nthread=1)
        rows = tl2cgen.DMatrix(X, dtype="float64")
        calls["treelite, compiled"] = lambda: compiled.predict(rows)
    except ImportError as error:
        print(f"left out: {error.name}")
    return calls


def loaded(text: str, compiler: str, options: tuple[str, ...]) -> Any:
    """The compiled function in this process, where its time can be taken."""
    with tempfile.TemporaryDirectory() as folder:
        compile_c(text, compiler, options, f"{folder}/model.so")
        function = ctypes.CDLL(f"{folder}/model.so").model_score_rows
    pointer = ctypes.POINTER(ctypes.c_double)
    function.argtypes, function.restype = [pointer, ctypes.c_size_t, pointer], None

    def score(X: np.ndarray) -> np.ndarray:
        scores = np.empty(len(X))
        function(X.ctypes.data_as(pointer), len(X), scores.ctypes.data_as(pointer))
        return scores

    return score


def run() -> None:
    """Print medians, each in turn in one process, on one thread."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("left out: no C compiler")
        return
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 46))
    y = np.clip(np.round(X[:, 0] * X[:, 1] + X[:, 2]), 0, 3)
    few = RankingData(X[:5000], y[:5000], np.repeat(np.arange(100), 50))
    model = ObliviousBoosting(leaves="constant", n_estimators=100, depth=6).fit(few)
    text = str(export_model(model, "c"))
    calls: dict[str, Any] = {"truerank": lambda: model.predict(X)}
    for options in (("-O2",), ("-O3",), ("-O3", "-march=native")):
        score = loaded(text, compiler, options)
        np.testing.assert_array_equal(score(X), model.predict(X))
        calls[f"C {' '.join(options)}"] = lambda score=score: score(X)
    with tempfile.TemporaryDirectory() as folder:
        calls |= treelite_calls(export_model(model, "lightgbm"), X, Path(folder))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call))
    base = median(times["truerank"])
    rows = [[name, f"{median(own) * 1000:.0f}", f"{median(own) / base:.2f}"] for name, own in times.items()]
    print(table(rows, ["program", "ms", "ratio to truerank"]))
