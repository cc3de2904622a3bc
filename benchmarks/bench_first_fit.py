"""The first fit of this checkout and of another one, in an empty kernel cache, in turn: what does compilation cost?

    BEFORE=DIR [ONLY="RankSVM AdaRank"] python -m benchmarks first_fit

`BEFORE` names the other checkout (`git worktree add DIR COMMIT`). The figures are CPU seconds of whole processes, with
the bytecode of both checkouts cached; 1,200 rows of 8 columns in 60 queries, one thread, two runs of each.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 2
LEARNERS = {
    "constant": "ObliviousBoosting('constant', n_estimators=20, n_jobs=1)",
    "default": "ObliviousBoosting(n_estimators=20, n_jobs=1)",
    "AdaRank": "AdaRank(n_estimators=20)",
    "RankSVM": "RankSVM()",
}
FIT = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from truerank import AdaRank, ObliviousBoosting, RankingData, RankSVM
rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 8))
y = np.clip(np.round(X[:, 0] + rng.normal(size=1200) + 1), 0, 4)
{learner}.fit(RankingData(X, y, np.repeat(np.arange(60), 20)))
"""


def seconds(root: Path, learner: str, cache: str, bytecode: str) -> float:
    """CPU seconds of a process of a checkout that fits the learner."""
    own = {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    environment = os.environ | own | {"OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", FIT.format(learner=learner)], env=environment, check=True)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime


def run() -> None:
    """Print the table."""
    before = os.environ.get("BEFORE")
    if not before:
        print("set BEFORE to another checkout: git worktree add DIR COMMIT; BEFORE=DIR python -m benchmarks first_fit")
        return
    roots = [Path(before), Path(__file__).parents[1]]
    only = os.environ.get("ONLY", "").split()
    print("| learner | before, CPU s | now, CPU s | now / before, of the best |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as bytecode:
        for root in roots:
            with tempfile.TemporaryDirectory() as cache:
                seconds(root, "AdaRank()", cache, bytecode)  # compiles the bytecode
        for name, learner in LEARNERS.items():
            if only and name not in only:
                continue
            times: list[list[float]] = [[], []]
            for _ in range(RUNS):
                for root, own in zip(roots, times):
                    with tempfile.TemporaryDirectory() as cache:
                        own.append(seconds(root, learner, cache, bytecode))
            cells = [", ".join(f"{one:.1f}" for one in own) for own in times]
            print(f"| {name} | {cells[0]} | {cells[1]} | {min(times[1]) / min(times[0]):.2f} |", flush=True)
