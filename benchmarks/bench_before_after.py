"""This checkout and another one over the same small work, in turn: did anything become slower?

    BEFORE=DIR [ONLY="trees AdaRank"] python -m benchmarks before_after

`BEFORE` names the other checkout (`git worktree add DIR COMMIT`). Each checkout has a process of its own, which
prepares the work and then runs it when asked, warm, on one thread; the best of three rounds counts. Settings are given
in full, so that a changed default is no change of the work; names that have changed since are tried in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUNDS = 3

WORKER = r"""
import gc, io, os, sys, time, warnings
warnings.simplefilter("ignore")
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import numpy as np
import truerank
from truerank.data.samples import load_sample

data = load_sample()
rng = np.random.default_rng(0)
m, size, p = 600, 50, 40
X = rng.random((m * size, p))
y = np.clip(np.round(3 * X[:, 0] * X[:, 1] + X[:, 2] - 0.5 + 0.3 * rng.standard_normal(m * size)), 0, 3)
qid = np.repeat(np.arange(m), size)
made = truerank.RankingData(X, y, qid)
scores = rng.random(m * size)
folder = sys.argv[1]
path = os.path.join(folder, "rows.txt")
truerank.write_letor(made, path)


def fit(name, settings, on, *others):
    cls = getattr(truerank, name)
    for given in (settings, *others):
        try:
            model = cls(**given)
        except (TypeError, ValueError):  # no such parameter
            continue
        break

    def work():
        model.fit(on)

    return work


def evaluation():
    names = ["AP", "nDCG@10"]
    try:
        return truerank.evaluate(y, scores, names, qid=qid)
    except Exception:  # the order of arguments before judgements came first
        return truerank.evaluate(names, y, scores, qid=qid)


def calibration():
    try:
        from truerank.calibration import calibrator_class
    except ImportError:  # where it was before
        from truerank.calibration.names import calibrator_class

    calibrator_class("asymmetric-laplace")().fit(many, positive)


many = rng.laplace(size=1_000_000)
positive = (rng.random(len(many)) < 0.3).astype(int)
many += 1.5 * positive


def trees(leaves, **own):
    plain = dict(leaves=leaves, n_estimators=20, depth=5, borders=32, learning_rate=0.1, random_state=1)
    return plain | own


WORK = {
    "trees, constant leaves": fit("ObliviousBoosting", trees("constant"), made),
    "trees, constant leaves, lambdarank": fit("ObliviousBoosting", trees("constant", objective="lambdarank"), made),
    "trees, fuzzy leaves": fit(
        "ObliviousBoosting", trees("fuzzy", n_estimators=5, ties="near"), made, trees("fuzzy", n_estimators=5)
    ),
    "trees, polynomial leaves": fit("ObliviousBoosting", trees("polynomial", n_estimators=5), made),
    "trees, the sample": fit("ObliviousBoosting", trees("constant", n_estimators=5), data),
    "AdaRank": fit("AdaRank", dict(measure="AP", n_estimators=100), made),
    "RankBoost": fit("RankBoost", dict(n_estimators=50, thresholds=10), made),
    "RankSVM": fit("RankSVM", dict(C=1e-3, tol=1e-6, scale="never"), made, dict(C=1e-3, tol=1e-6)),
    "ListNet": fit("ListNet", dict(alpha=1.0, scale="never"), made, dict(alpha=1.0)),
    "MeasureSVM": fit("MeasureSVM", dict(rel=2.0, tol=1e-3, scale="never"), made, dict(rel=2.0, tol=1e-3)),
    "PairwiseDescent": fit("PairwiseDescent", dict(alpha=1e-3, scale="never"), made, dict(reg_lambda=1e-3)),
    "RidgeRanker": fit("RidgeRanker", dict(alpha=1.0), made),
    "calibration, 10⁶ scores": calibration,
    "evaluate, AP and nDCG@10": evaluation,
    "grouping of scattered rows": lambda: truerank.RankingData(X[::-1], y, np.tile(np.arange(m), size)),
    "reading LETOR": lambda: truerank.read_letor(path),
    "writing LETOR": lambda: truerank.write_letor(made, path + ".out"),
}
print("\t".join(WORK), file=answers, flush=True)
for line in sys.stdin:
    work = WORK[line.strip()]
    gc.collect()
    start = time.process_time()
    try:
        work()
    except Exception as error:
        print("failed", repr(error)[:200], file=sys.stderr)
        print("nan", file=answers, flush=True)
        continue
    print(time.process_time() - start, file=answers, flush=True)
"""


class Checkout:
    """A process with one checkout's package."""

    def __init__(self, root: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment = os.environ | threads | {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": str(folder / "cache")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.names = self._answer().split("\t")

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of a checkout ended with {self.process.wait()}")
        return line.rstrip("\n")

    def seconds(self, name: str) -> float:
        """CPU seconds of one run of the work."""
        assert self.process.stdin is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """Let the process end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def run() -> None:
    """Print the table."""
    import tempfile

    before = os.environ.get("BEFORE")
    if not before:
        print(
            "set BEFORE to another checkout: git worktree add DIR COMMIT; BEFORE=DIR python -m benchmarks before_after"
        )
        return
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        checkouts: dict[str, Any] = {
            "before": Checkout(Path(before), Path(folder) / "before"),
            "now": Checkout(here, Path(folder) / "now"),
        }
        print("| work | before, CPU s | now, CPU s | now / before |\n| --- | --- | --- | --- |")
        only = os.environ.get("ONLY", "").split()
        for name in checkouts["now"].names:
            if only and not any(part in name for part in only):
                continue
            times: dict[str, list[float]] = {side: [] for side in checkouts}
            for one in checkouts.values():
                one.seconds(name)  # compilation
            for _ in range(ROUNDS):
                for side, one in checkouts.items():
                    times[side].append(one.seconds(name))
            old, new = (min(times[side]) for side in ("before", "now"))
            print(f"| {name} | {old:.4f} | {new:.4f} | {new / old:.2f} |", flush=True)
        for one in checkouts.values():
            one.close()
    print(time.strftime("%Y-%m-%d"))
