"""SVM-acc on TREC-9's runs: what its MAP hangs on, with five trials of `truerank reproduce svm-map`.

The published SVM-acc is .213. Varied here: how strongly the intercept is regularised (κ, where the penalty is ½(b/κ)²),
the range of C, and how exactly the problem is solved. C is chosen by MAP of the validation topics as in the experiment.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import collections
from truerank.data.ranking_data import RankingData
from truerank.data.splits import balanced_trials
from truerank.features.score_binning import ScoreBinning
from truerank.papers import svm_map
from truerank.papers.protocol import rows_of
from truerank.rankers.pointwise_svm import PointwiseSVM

N_TRIALS = 5
WIDE = tuple(10.0**k for k in range(-4, 4))
FREE = 30.0  # κ with which the intercept is as good as free: it pays (b / 30)²/2
ROWS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("κ = 1, gap 1e-4, C as the experiment", {"grid": svm_map.GRIDS["svm-acc"]}),
    ("κ = 1, gap 1e-4", {}),
    ("κ = 30, gap 1e-3", {"kappa": FREE, "tol": 1e-3}),
    ("κ = 30, gap 1e-4", {"kappa": FREE}),
    ("κ = 30, gap 1e-6", {"kappa": FREE, "tol": 1e-6}),
)


def run() -> None:
    """One table: MAP of the test topics, mean over the trials, and the values of C that were chosen."""
    root = collections()
    if root is None:
        return
    folder = Path(root, "trec9-web-runs")
    parser = argparse.ArgumentParser()
    svm_map.configure(parser)
    args = parser.parse_args(["--runs", str(folder / "runs"), "--qrels", str(folder / "qrels.451-500.txt.xz")])
    task, rule = svm_map.load_task(args)
    roles = balanced_trials(task.data.n_queries, (10, 5, 35), 50, random_state=args.seed)[:N_TRIALS]
    binned = [
        ScoreBinning(output="binned").fit(task.data.X[rows_of(task.data, trial[0])]).transform(task.data.X)
        for trial in roles
    ]
    print(f"{rule}; {N_TRIALS} trials; C times the mean over the training documents.\n")
    print("| | MAP | sd over trials | C chosen, by trial |")
    print("| --- | --- | --- | --- |")
    for title, settings in ROWS:
        found = [one_trial(task, matrix, trial, **settings) for trial, matrix in zip(roles, binned)]
        values = [value for value, _ in found]
        chosen = " ".join(f"{c:.2g}" for _, c in found)
        print(f"| {title} | {np.mean(values):.4f} | {np.std(values, ddof=1):.4f} | {chosen} |", flush=True)


def one_trial(
    task: svm_map.Task,
    matrix: Any,
    roles: Any,
    *,
    grid: Any = WIDE,
    kappa: float = 1.0,
    tol: float = svm_map.TOL,
) -> tuple[float, float]:
    """MAP of the test topics, and the C that was chosen times the number of training documents."""
    train, valid, test = roles
    measure = svm_map.average_precision()
    fold = RankingData.from_grouped(matrix, task.data.y, task.data.offsets).take_queries(train)
    valid_judgements, valid_rows = svm_map.part_of(task, matrix, valid)
    test_judgements, test_rows = svm_map.part_of(task, matrix, test)
    watched = RankingData.from_grouped(valid_rows, valid_judgements.grades, valid_judgements.offsets)
    svm = PointwiseSVM(
        [c / fold.n_rows for c in grid], class_weight=None, rel=1, tol=tol, intercept_scaling=kappa,
        validation_measure=measure,
    )  # fmt: skip
    svm.fit(fold, eval_set=watched.with_judgements(valid_judgements))
    return float(measure.mean(test_judgements, svm.predict(test_rows))), svm.C_ * fold.n_rows
