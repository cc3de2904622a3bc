"""The C file of 100 constant trees of depth 6 beside truerank's kernel and treelite's interpreter."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from truerank import ObliviousBoosting, RankingData, export_model
from truerank.core.printing import table
from truerank.export.run import run_c

ROWS, ROUNDS = 100_000, 7


def seconds(call: Any) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


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
        score = run_c(text, compiler, options)
        np.testing.assert_array_equal(score(X), model.predict(X))
        calls[f"C {' '.join(options)}"] = lambda score=score: score(X)
    try:
        import treelite

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.txt"
            path.write_text(export_model(model, "lightgbm"))
            own = treelite.frontend.load_lightgbm_model(str(path))
        calls["treelite"] = lambda: treelite.gtil.predict(own, X, nthread=1)
    except ImportError:
        print("left out: treelite")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            times[name].append(seconds(call))
    base = median(times["truerank"])
    rows = [[name, f"{median(own) * 1000:.0f}", f"{median(own) / base:.2f}"] for name, own in times.items()]
    print(table(rows, ["program", "ms", "ratio to truerank"]))
