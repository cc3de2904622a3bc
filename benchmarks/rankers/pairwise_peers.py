"""Programs that RankSVM and pairwise descent are measured beside, where an environment variable names a build of them.

`SOFIA_ML` names the program sofia-ml, `LIBLINEAR_RANKSVM` the training program of liblinear-ranksvm.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np

from benchmarks.harness import run_process
from truerank.data.ranking_data import RankingData


def program(variable: str, name: str) -> str | None:
    """Path of a peer's program, or None with a line that says how to name it."""
    path = os.environ.get(variable) or shutil.which(name)
    if path is None:
        print(f"(left out: {name}; set {variable} to a build of it)")
    return path


def write_svmlight(data: RankingData, path: Path, *, signed: bool = False) -> None:
    """LETOR text with nine digits and a comment on every line, without which sofia-ml crashes; zeros are left out.

    `signed` writes -1 for grade 0.
    """
    with open(path, "w", encoding="ascii") as stream:
        for query in range(data.n_queries):
            for i in range(data.offsets[query], data.offsets[query + 1]):
                columns = np.flatnonzero(data.X[i])
                values = " ".join(f"{j + 1}:{data.X[i, j]:.9g}" for j in columns)
                grade = -1.0 if signed and data.y[i] == 0 else data.y[i]
                stream.write(f"{grade:g} qid:{query + 1} {values} # d\n")


def sofia_seconds(path: str, train: Path, width: int, reg: float, steps: int, model: Path) -> float:
    """CPU seconds of a whole run of sofia-ml's Pegasos on random pairs."""
    process = run_process(
        [path, "--learner_type", "pegasos", "--loop_type", "rank", "--lambda", str(reg), "--iterations", str(steps),
         "--dimensionality", str(width + 1), "--training_file", str(train), "--model_out", str(model)]
    )  # fmt: skip
    if process.code:
        raise RuntimeError(f"sofia-ml failed:\n{process.output[-2000:]}")
    return process.cpu


def liblinear_seconds(path: str, train: Path, C: float, tol: float, model: Path) -> tuple[float, float, np.ndarray]:
    """CPU seconds of a run of liblinear-ranksvm (AA tree), those it prints for training alone, and its weights."""
    process = run_process([path, "-s", "8", "-c", repr(C), "-e", repr(tol), str(train), str(model)])
    if process.code:
        raise RuntimeError(f"liblinear-ranksvm failed:\n{process.output[-2000:]}")
    found = re.search(r"Training time = ([\d.eE+-]+)", process.output)
    training = float(found.group(1)) if found else float("nan")
    lines = model.read_text(encoding="ascii").split("\n")
    weights = np.array([float(line) for line in lines[lines.index("w") + 1 :] if line.strip()])
    return process.cpu, training, weights
