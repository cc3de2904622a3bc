"""SVM-acc, acc2 and acc4 on TREC-9's runs: what their MAP depends on.

It runs five trials of `python -m reproductions svm-map`.

Varied: how strongly the intercept is regularised (κ, where the penalty is ½(b/κ)²), the range of C, how exactly the
problem is solved, and for acc2 whose ratio of other to relevant documents weighs the relevant ones. C is chosen by MAP
of the validation topics as in the experiment.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from reproductions.protocol import rows_of

from benchmarks.harness import collections
from reproductions import svm_map
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.rankers.pointwise_svm import PointwiseSVM

N_TRIALS = 5
WIDE = tuple(10.0**k for k in range(-4, 4))
FREE = 30.0  # κ with which the intercept is as good as free: it pays (b / 30)²/2
# Title, method of the experiment, settings.
ROWS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("acc, κ = 1, gap 1e-4, C as the experiment", "svm-acc", {"grid": svm_map.GRIDS["svm-acc"]}),
    ("acc, κ = 1, gap 1e-4", "svm-acc", {}),
    ("acc, κ = 30, gap 1e-3", "svm-acc", {"kappa": FREE, "tol": 1e-3}),
    ("acc, κ = 30, gap 1e-4", "svm-acc", {"kappa": FREE}),
    ("acc, κ = 30, gap 1e-6", "svm-acc", {"kappa": FREE, "tol": 1e-6}),
    ("acc4, κ = 1, gap 1e-4, C as the experiment", "svm-acc4", {"grid": svm_map.GRIDS["svm-acc4"]}),
    ("acc4, κ = 30, gap 1e-3", "svm-acc4", {"kappa": FREE, "tol": 1e-3}),
    ("acc4, κ = 30, gap 1e-4", "svm-acc4", {"kappa": FREE}),
    ("acc2, κ = 1, gap 1e-4, ratio of the training topics", "svm-acc2", {}),
    ("acc2, κ = 1, gap 1e-4, ratio of all topics", "svm-acc2", {"all_topics": True}),
)


def run() -> None:
    """One table: MAP of the test topics, mean over the trials, and the values of C that were chosen."""
    root = collections()
    if root is None:
        return
    parser = argparse.ArgumentParser()
    svm_map.configure(parser)
    args = parser.parse_args(["--data", str(root)])
    task, rule = svm_map.load_task(args)
    trials = svm_map.Trials(task, None, args.trials, args)
    roles = trials.roles[:N_TRIALS]
    binned = [
        ScoreBinning(output="binned").fit(task.data.X[rows_of(task.data, trial[0])]).transform(task.data.X)
        for trial in roles
    ]
    print(f"{rule}; {N_TRIALS} trials; C times the summed weights of the training documents.\n")
    print("| | MAP | sd over trials | C chosen, by trial |")
    print("| --- | --- | --- | --- |")
    for title, method, settings in ROWS:
        mapped = trials.mapped(method)
        found = [
            one_trial(task, own if mapped is None else mapped, trial, method, **settings)
            for trial, own in zip(roles, binned)
        ]
        values = [value for value, _ in found]
        chosen = " ".join(f"{c:.2g}" for _, c in found)
        print(f"| {title} | {np.mean(values):.4f} | {np.std(values, ddof=1):.4f} | {chosen} |", flush=True)


def one_trial(
    task: svm_map.Task,
    matrix: Any,
    roles: Any,
    method: str,
    *,
    grid: Any = WIDE,
    kappa: float = 1.0,
    tol: float = svm_map.TOL,
    all_topics: bool = False,
) -> tuple[float, float]:
    """MAP of the test topics, and the C that was chosen times the summed weights of the training documents."""
    train, valid, test = roles
    measure = svm_map.average_precision()
    fold = RankingData.from_grouped(matrix, task.data.y, task.data.offsets).take_queries(train)
    weights = {0: 1.0, 1: 1.0}
    if method == "svm-acc2":
        relevant = np.asarray(task.data.y if all_topics else fold.y) >= 1
        weights[1] = float((~relevant).sum() / relevant.sum())
    total = float(np.where(np.asarray(fold.y) >= 1, weights[1], weights[0]).sum())
    valid_judgements, valid_rows = svm_map.part_of(task, matrix, valid)
    test_judgements, test_rows = svm_map.part_of(task, matrix, test)
    watched = RankingData.from_grouped(valid_rows, valid_judgements.grades, valid_judgements.offsets)
    svm = PointwiseSVM(
        [c / total for c in grid], class_weight=weights, rel=1, tol=tol, intercept_scaling=kappa,
        validation_measure=measure,
    )  # fmt: skip
    svm.fit(fold, eval_set=watched.with_judgements(valid_judgements))
    return float(measure.mean(test_judgements, svm.predict(test_rows))), svm.C_ * total
