"""ListNet: fit to a gradient norm of 1e-6 on an MQ2008 fold beside RankLib and beside the same loss in PyTorch.

RankLib is run if RANKLIB_JAR names its jar (`mvn dependency:get -Dartifact=org.codelibs:ranklib:2.10.1`). PyTorch is
run in a process of TORCH_PYTHON (an interpreter that can import torch and numpy), on one thread, warm.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
from reproductions.protocol import letor_folds, load_collection

from benchmarks.harness import collections, compare, run_process
from benchmarks.rankers.ranklib import ranklib
from truerank import ListNet, write_letor
from truerank.losses.cross_entropy import CrossEntropy
from truerank.matrices.rows import LinearRows
from truerank.measures import parse_measure

ALPHA = 1.0

TORCH = """
import json, sys, time
import numpy as np, torch

torch.set_num_threads(1)
stored = np.load(sys.argv[1])
alpha = float(sys.argv[2])
X, target, query = (torch.from_numpy(stored[k]) for k in ("X", "target", "query"))
m = int(query[-1]) + 1


def loss(w):
    s = X @ w
    high = torch.full((m,), -float("inf"), dtype=s.dtype).scatter_reduce(0, query, s.detach(), "amax")
    shifted = s - high[query]
    total = torch.zeros(m, dtype=s.dtype).index_add(0, query, shifted.exp())
    return total.log().sum() - (target * shifted).sum() + 0.5 * alpha * (w @ w)


def value_and_gradient(w):
    w.grad = None
    value = loss(w)
    value.backward()
    return value


def fit():
    w = torch.zeros(X.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [w], lr=1, max_iter=5000, max_eval=20000, history_size=20, tolerance_grad=1e-7, tolerance_change=0,
        line_search_fn="strong_wolfe",
    )
    optimiser.step(lambda: value_and_gradient(w))
    value = value_and_gradient(w)
    return float(value), float(w.grad.norm()), optimiser.state[w]["func_evals"]


def seconds(work, repeat):
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        taken.append(time.process_time() - start)
    return sorted(taken)[len(taken) // 2], result


w = torch.zeros(X.shape[1], dtype=torch.float64, requires_grad=True)
seconds(lambda: value_and_gradient(w), 20)
evaluation, _ = seconds(lambda: value_and_gradient(w), 100)
fit()
total, (value, norm, evaluations) = seconds(fit, 5)
print(json.dumps({"version": torch.__version__, "evaluation": evaluation, "fit": total, "objective": value,
                  "norm": norm, "evaluations": evaluations}))
"""


def run() -> None:
    root = collections()
    if root is None:
        return
    fold = letor_folds(load_collection(root, "mq2008"))[0]
    train, valid, test = fold.train, fold.valid, fold.test
    problem = CrossEntropy(LinearRows(train.X), train.y, train.offsets, alpha=ALPHA)
    zero = np.zeros(train.n_features)
    timings = compare(
        "MQ2008 fold 1 in memory (9,630 × 46), warm",
        {
            f"fit, alpha={ALPHA:g}": lambda: ListNet(ALPHA).fit(train),
            "fit, alpha=0.0001": lambda: ListNet(1e-4).fit(train),
            "fit, validation MAP after each iteration": lambda: ListNet(ALPHA, measure="AP").fit(train, eval_set=valid),
            "gradient descent, 100 passes": lambda: ListNet(ALPHA, solver="gradient-descent", max_iter=100).fit(train),
            "loss and gradient once": lambda: problem.value_and_gradient(zero),
        },
        rounds=9,
        unit=1e-3,
        unit_name="ms",
    )
    ap = parse_measure("AP")
    for name, timing in list(timings.items())[:-1]:
        r = timing.result
        print(
            f"{name}: {r.n_iter_} iterations, gradient norm {r.gradient_norm_:.1e}, objective {r.objective_:.9f}, "
            f"test MAP {ap.mean(test.judgements(), r.predict(test)):.4f}"
        )
    fit, evaluation = timings[f"fit, alpha={ALPHA:g}"].median, timings["loss and gradient once"].median
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, data in (("train", train), ("vali", valid), ("test", test)):
            paths[name] = str(Path(folder) / f"{name}.txt")
            write_letor(data, paths[name])
        theirs = ranklib(paths, ["-ranker", "7"], ["-ranker", "7", "-epoch", "1"], rounds=3)
        if theirs is not None:
            own = timings["fit, validation MAP after each iteration"].median
            print(
                f"\nRankLib ListNet, defaults (1,500 passes of gradient descent), validation MAP: whole process "
                f"{theirs.process:.2f} CPU s; with one pass {theirs.start:.2f}; work {theirs.work:.2f}; test MAP "
                f"{theirs.test_map}\nRankLib's work / our fit with validation: {theirs.work / own:.0f}"
            )
        _torch(problem, train.X, Path(folder), fit, evaluation)


def _torch(problem: CrossEntropy, X: np.ndarray, folder: Path, fit: float, evaluation: float) -> None:
    python = os.environ.get("TORCH_PYTHON", "")
    if not python:
        print("(left out: TORCH_PYTHON does not name an interpreter that has torch)")
        return
    kept = np.flatnonzero(problem.weight)  # queries of two grades and more
    rows = np.concatenate([np.arange(problem.offsets[q], problem.offsets[q + 1]) for q in kept])
    query = np.repeat(np.arange(problem.n_queries), np.diff(problem.offsets)[kept])
    np.savez(folder / "fold.npz", X=X[rows], target=problem.targets[rows], query=query)
    (folder / "listnet_torch.py").write_text(TORCH)
    process = run_process([python, str(folder / "listnet_torch.py"), str(folder / "fold.npz"), str(ALPHA)])
    if process.code:
        print(f"(left out: PyTorch failed: {process.output.strip().splitlines()[-1]})")
        return
    theirs = json.loads(process.output.splitlines()[-1])
    print(
        f"\nPyTorch {theirs['version']}, one thread, the same rows: loss and gradient {theirs['evaluation'] * 1e3:.3f} "
        f"CPU ms (ours {evaluation * 1e3:.3f}, ratio {theirs['evaluation'] / evaluation:.2f}); torch.optim.LBFGS "
        f"{theirs['fit'] * 1e3:.1f} CPU ms, {theirs['evaluations']} evaluations, gradient norm {theirs['norm']:.1e}, "
        f"objective {theirs['objective']:.9f} (our fit {fit * 1e3:.1f} ms, ratio {theirs['fit'] / fit:.1f})"
    )
