"""Equal tuned budgets: 30 trials of Optuna for truerank's trees, LightGBM, XGBoost and CatBoost each.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_equal_budgets [--sets mq2008 ohsumed mslr …] [--trials N] [--seconds N]

For each fold and learner the same sampler (TPE, seeded) proposes settings, among them the learner's objective, its
sampling and penalties; every trial grows 100 trees, and validation nDCG@10 chooses the trial and the number of trees.
The test queries are looked at once, with what was chosen. Convention `ranklib`, ties averaged. p: paired t-test by
query of truerank against each peer, Holm over the peers. `--out` keeps finished folds; no fold is begun after
`--seconds`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_quality import MEASURES, assignments
from truerank.measures import parse_measure
from truerank.papers import protocol
from truerank.papers.protocol import Fold
from truerank.significance import holm, paired_t

TREES = 100
STEPS = (10, 20, 40, 60, 80, TREES)
Staged = Callable[[Any], list[np.ndarray]]  # rows -> scores after each of STEPS


def truerank_trial(trial: Any, fold: Fold) -> Staged:
    from truerank import FuzzyLeaves, ObliviousBoosting

    kind = trial.suggest_categorical("leaves", ["fuzzy", "constant", "polynomial"])
    leaves = FuzzyLeaves(trial.suggest_float("fuzziness", 0.03, 0.3, log=True)) if kind == "fuzzy" else kind
    ranker = ObliviousBoosting(
        leaves, objective=trial.suggest_categorical("objective", ["mse", "lambdarank", "yetirank"]),
        n_estimators=TREES, depth=trial.suggest_int("depth", 3, 7),
        learning_rate=trial.suggest_float("rate", 0.02, 0.3, log=True),
        alpha=trial.suggest_float("alpha", 0.1, 100.0, log=True),
        subsample=trial.suggest_float("subsample", 0.4, 1.0),
        feature_fraction=trial.suggest_float("feature_fraction", 0.3, 1.0), n_jobs=1,
    ).fit(fold.train)  # fmt: skip

    def scores(data: Any) -> list[np.ndarray]:
        stages = list(ranker.staged_predict(data.X))
        return [stages[min(n, len(stages)) - 1] for n in STEPS]

    return scores


def lightgbm_trial(trial: Any, fold: Fold) -> Staged:
    import lightgbm

    depth = trial.suggest_int("depth", 3, 7)
    params = {
        "objective": trial.suggest_categorical("objective", ["lambdarank", "rank_xendcg", "regression"]),
        "num_leaves": 1 << depth, "max_depth": depth, "learning_rate": trial.suggest_float("rate", 0.02, 0.3, log=True),
        "lambda_l2": trial.suggest_float("alpha", 0.1, 100.0, log=True),
        "min_data_in_leaf": trial.suggest_int("least rows", 1, 100, log=True),
        "bagging_fraction": trial.suggest_float("subsample", 0.4, 1.0), "bagging_freq": 1,
        "feature_fraction": trial.suggest_float("feature_fraction", 0.3, 1.0),
        "num_threads": 1, "seed": 0, "verbose": -1, "deterministic": True,
    }  # fmt: skip
    model = lightgbm.train(params, lightgbm.Dataset(fold.train.X, fold.train.y, group=fold.train.group_sizes), TREES)
    return lambda data: [model.predict(data.X, num_iteration=n) for n in STEPS]


def xgboost_trial(trial: Any, fold: Fold) -> Staged:
    import xgboost

    matrix = xgboost.QuantileDMatrix(fold.train.X, fold.train.y, nthread=1)
    matrix.set_group(fold.train.group_sizes)
    params = {
        "objective": trial.suggest_categorical("objective", ["rank:ndcg", "rank:pairwise", "reg:squarederror"]),
        "max_depth": trial.suggest_int("depth", 3, 7), "eta": trial.suggest_float("rate", 0.02, 0.3, log=True),
        "lambda": trial.suggest_float("alpha", 0.1, 100.0, log=True),
        "min_child_weight": trial.suggest_float("least weight", 0.01, 30.0, log=True),
        "subsample": trial.suggest_float("subsample", 0.4, 1.0),
        "colsample_bytree": trial.suggest_float("feature_fraction", 0.3, 1.0),
        "nthread": 1, "seed": 0, "tree_method": "hist",
    }  # fmt: skip
    model = xgboost.train(params, matrix, TREES)
    return lambda data: [model.inplace_predict(data.X, iteration_range=(0, n)) for n in STEPS]


def catboost_trial(trial: Any, fold: Fold) -> Staged:
    import catboost

    settings = {
        "loss_function": trial.suggest_categorical("objective", ["YetiRank", "QueryRMSE", "RMSE"]),
        "depth": trial.suggest_int("depth", 3, 7), "learning_rate": trial.suggest_float("rate", 0.02, 0.3, log=True),
        "l2_leaf_reg": trial.suggest_float("alpha", 0.1, 100.0, log=True),
        "random_strength": trial.suggest_float("noise", 0.0, 3.0), "bootstrap_type": "Bernoulli",
        "subsample": trial.suggest_float("subsample", 0.4, 1.0),
        "rsm": trial.suggest_float("feature_fraction", 0.3, 1.0),
        "iterations": TREES, "thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    model = catboost.CatBoost(settings)
    model.fit(catboost.Pool(fold.train.X, fold.train.y, group_id=fold.train.query_index))
    return lambda data: [model.predict(data.X, ntree_end=n) for n in STEPS]


LEARNERS: dict[str, Callable[[Any, Fold], Staged]] = {
    "truerank": truerank_trial,
    "LightGBM": lightgbm_trial,
    "XGBoost": xgboost_trial,
    "CatBoost": catboost_trial,
}


def piece(learner: str, fold: Fold, trials: int) -> dict[str, Any]:
    """Test values by query of the trial and the number of trees that validation has chosen; CPU seconds of all."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    measures = {name: parse_measure(name, "ranklib").tie_averaged() for name in MEASURES}
    judged, best = fold.valid.judgements(), (-1.0, np.empty(0))
    began = time.process_time()

    def value_of(trial: Any) -> float:
        nonlocal best
        staged = LEARNERS[learner](trial, fold)
        values = [float(measures["nDCG@10"].mean(judged, scores)) for scores in staged(fold.valid)]
        step = int(np.argmax(values))
        if values[step] > best[0]:
            best = values[step], np.asarray(staged(fold.test)[step])
        return values[step]

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(value_of, n_trials=trials)
    test = {name: one.per_query(fold.test.judgements(), best[1]).tolist() for name, one in measures.items()}
    return {
        "valid": best[0],
        "settings": study.best_params,
        "test": test,
        "seconds": time.process_time() - began,
    }


def show(name: str, values: dict[str, dict[str, np.ndarray]], valid: dict[str, float], cpu: dict[str, float]) -> None:
    """The table of a set."""
    print(f"\n**{name}**\n")
    print("| learner | validation nDCG@10 | test nDCG@10 | p | test MAP | p | CPU s |\n" + "| --- " * 7 + "|")
    peers = [learner for learner in values if learner != "truerank"]
    p = {
        measure: dict(zip(peers, holm([paired_t(values["truerank"][measure], values[o][measure]).p for o in peers])))
        for measure in MEASURES
    }
    for learner, own in values.items():
        cells = [f"{valid[learner]:.4f}"]
        for measure in ("nDCG@10", "AP"):
            cells += [f"{own[measure].mean():.4f}", f"{p[measure][learner]:.2g}" if learner in peers else ""]
        print(f"| {learner} | {' | '.join(cells)} | {cpu[learner]:.0f} |", flush=True)


def run(argv: list[str] | None = None) -> None:
    """All sets; one whose folds are not all done is said to be left out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--out", default="reproduce-output/equal-budgets.jsonl")
    parser.add_argument("--sets", nargs="+", default=["mq2008", "ohsumed", "mslr"], help="also 'mq2008 random'")
    parser.add_argument("--assignments", type=int, default=1, help="of queries to folds, where these are random")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    args = parser.parse_args(argv or [])
    if not args.data:
        print("(set TRUERANK_DATA to the folder of the collections)")
        return
    store = protocol.ResultStore(args.out, {"benchmark": "equal budgets", "form": 1})
    deadline = time.monotonic() + args.seconds
    for name in args.sets:
        values: dict[str, dict[str, list[np.ndarray]]] = {learner: {m: [] for m in MEASURES} for learner in LEARNERS}
        valid: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
        cpu = dict.fromkeys(LEARNERS, 0.0)
        whole = True
        for label, folds in assignments(name, args.data, args.assignments):
            pieces: dict[str, list[Any]] = {learner: [] for learner in LEARNERS}
            for fold in folds:
                for learner in LEARNERS:
                    key = {"set": name, "folds": label, "fold": fold.name, "learner": learner, "trials": args.trials}
                    if key not in store and time.monotonic() > deadline:
                        whole = False
                        continue
                    done = store.compute(key, partial(piece, learner, fold, args.trials))
                    pieces[learner].append(done)
                    print(f"  {name} {label} {fold.name} {learner}: {done['seconds']:.0f} CPU s", flush=True)
            for learner, own in pieces.items() if whole else ():
                for measure in MEASURES:
                    values[learner][measure].append(protocol.pool(folds, [one["test"][measure] for one in own]))
                valid[learner] += [one["valid"] for one in own]
                cpu[learner] += sum(one["seconds"] for one in own)
        if not whole:
            print(f"({name} is not done: run again to go on)")
            continue
        means = {learner: {m: np.mean(runs, axis=0) for m, runs in own.items()} for learner, own in values.items()}
        show(name, means, {learner: float(np.mean(own)) for learner, own in valid.items()}, cpu)


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
