"""Equal tuned budgets: 30 trials each for truerank's trees, LightGBM, XGBoost and CatBoost.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_equal_budgets [--sets "mq2008 random" …] [--assignments N] [--seconds N]

The queries are dealt into five parts. Each part is tested once; a trial's worth for it is the mean of validation
nDCG@10 over the other four parts, each ranked by a model that was trained on the remaining three. A model that is
trained without two parts serves both, so a trial costs ten fits. The first trial is the learner's defaults at depth 6
and rate .1, the others are drawn by Optuna (the same for all parts, so that no part's validation decides what is tried
for another) from the same ranges around the defaults: objective, depth, rate, penalty, samples of rows and columns, and
one or two settings that only this learner has. Validation chooses the trial and the number of trees, of 100 at most.
Test values, of what was chosen and of the defaults, are those of the four models by query, averaged. Convention
`ranklib`, ties averaged. p: paired t-test by query of truerank against each peer, Holm over the peers. `--out` keeps
what is finished; nothing is begun after `--seconds`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_quality import MEASURES, assignments
from reproductions import protocol
from truerank import RankingData
from truerank.measures import parse_measure
from truerank.significance import holm, paired_t

TREES = 100
STEPS = (10, 20, 40, 60, 80, TREES)
Settings = dict[str, Any]
Staged = Callable[[RankingData], list[np.ndarray]]  # rows -> scores after each of STEPS
MEASURED = {name: parse_measure(name, "ranklib").tie_averaged() for name in MEASURES}


def common(trial: Any, objectives: list[str], alpha: float) -> Settings:
    """What all learners have, around their defaults; the first objective and `alpha` are these."""
    return {
        "objective": trial.suggest_categorical("objective", objectives),
        "depth": trial.suggest_int("depth", 4, 7),
        "rate": trial.suggest_float("rate", 0.05, 0.2, log=True),
        "alpha": trial.suggest_float("alpha", alpha / 10, alpha * 10, log=True),
        "subsample": trial.suggest_float("subsample", 0.5, 1.0),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.5, 1.0),
    }


def truerank_space(trial: Any) -> Settings:
    return {
        **common(trial, ["mse", "lambdarank", "yetirank"], 1.0),
        "fuzziness": trial.suggest_float("fuzziness", 0.05, 0.2, log=True),
        "start": trial.suggest_categorical("start", ["constant", "linear"]),
    }


def truerank_fit(own: Settings, data: RankingData) -> Staged:
    from truerank import FuzzyLeaves, ObliviousBoosting

    ranker = ObliviousBoosting(
        FuzzyLeaves(own["fuzziness"]), objective=own["objective"], start=own["start"], depth=own["depth"],
        learning_rate=own["rate"], alpha=own["alpha"], subsample=own["subsample"],
        feature_fraction=own["feature_fraction"], n_estimators=TREES, n_jobs=1,
    ).fit(data)  # fmt: skip

    def scores(rows: RankingData) -> list[np.ndarray]:
        stages = list(ranker.staged_predict(rows.X))
        return [stages[min(n, len(stages)) - 1] for n in STEPS]

    return scores


def lightgbm_space(trial: Any) -> Settings:
    return {
        **common(trial, ["lambdarank", "rank_xendcg", "regression"], 1.0),
        "least_rows": trial.suggest_int("least_rows", 5, 80, log=True),
    }


def lightgbm_fit(own: Settings, data: RankingData) -> Staged:
    import lightgbm

    params = {
        "objective": own["objective"], "num_leaves": 1 << own["depth"], "max_depth": own["depth"],
        "learning_rate": own["rate"], "lambda_l2": own["alpha"], "min_data_in_leaf": own["least_rows"],
        "bagging_fraction": own["subsample"], "bagging_freq": 1, "feature_fraction": own["feature_fraction"],
        "num_threads": 1, "seed": 0, "verbose": -1, "deterministic": True,
    }  # fmt: skip
    model = lightgbm.train(params, lightgbm.Dataset(data.X, data.y, group=data.group_sizes), TREES)
    return lambda rows: [np.asarray(model.predict(rows.X, num_iteration=n)) for n in STEPS]


def xgboost_space(trial: Any) -> Settings:
    return {
        **common(trial, ["rank:ndcg", "rank:pairwise", "reg:squarederror"], 1.0),
        "least_weight": trial.suggest_float("least_weight", 0.1, 10.0, log=True),
    }


def xgboost_fit(own: Settings, data: RankingData) -> Staged:
    import xgboost

    matrix = xgboost.QuantileDMatrix(data.X, data.y, nthread=1)
    matrix.set_group(data.group_sizes)
    params = {
        "objective": own["objective"], "max_depth": own["depth"], "eta": own["rate"], "lambda": own["alpha"],
        "min_child_weight": own["least_weight"], "subsample": own["subsample"],
        "colsample_bytree": own["feature_fraction"], "nthread": 1, "seed": 0, "tree_method": "hist",
    }  # fmt: skip
    model = xgboost.train(params, matrix, TREES)
    return lambda rows: [model.inplace_predict(rows.X, iteration_range=(0, n)) for n in STEPS]


def catboost_space(trial: Any) -> Settings:
    return {
        **common(trial, ["YetiRank", "QueryRMSE", "RMSE"], 3.0),
        "noise": trial.suggest_float("noise", 0.0, 2.0),
    }


def catboost_fit(own: Settings, data: RankingData) -> Staged:
    import catboost

    settings = {
        "loss_function": own["objective"], "depth": own["depth"], "learning_rate": own["rate"],
        "l2_leaf_reg": own["alpha"], "random_strength": own["noise"], "bootstrap_type": "Bernoulli",
        "subsample": own["subsample"], "rsm": own["feature_fraction"], "iterations": TREES, "thread_count": 1,
        "random_seed": 0, "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    model = catboost.CatBoost(settings)
    model.fit(catboost.Pool(data.X, data.y, group_id=data.query_index))
    return lambda rows: [model.predict(rows.X, ntree_end=n) for n in STEPS]


SHARED = {"depth": 6, "rate": 0.1, "subsample": 1.0, "feature_fraction": 1.0}
LEARNERS: dict[str, tuple[Callable[[Any], Settings], Settings, Callable[[Settings, RankingData], Staged]]] = {
    "truerank": (
        truerank_space,
        {**SHARED, "objective": "mse", "alpha": 0.1, "fuzziness": 0.1, "start": "constant"},
        truerank_fit,
    ),
    "LightGBM": (lightgbm_space, {**SHARED, "objective": "lambdarank", "alpha": 0.1, "least_rows": 20}, lightgbm_fit),
    "XGBoost": (xgboost_space, {**SHARED, "objective": "rank:ndcg", "alpha": 1.0, "least_weight": 1.0}, xgboost_fit),
    "CatBoost": (catboost_space, {**SHARED, "objective": "YetiRank", "alpha": 3.0, "noise": 1.0}, catboost_fit),
}


def proposals(learner: str, trials: int) -> list[Settings]:
    """The settings that are tried: the defaults, then drawn ones."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, defaults, _ = LEARNERS[learner]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial(defaults)
    return [space(study.ask()) for _ in range(trials)]


def fit_without(learner: str, settings: Settings, parts: list[RankingData], left_out: tuple[int, int]) -> Staged:
    train = RankingData.concatenate([part for i, part in enumerate(parts) if i not in left_out])
    return LEARNERS[learner][2](settings, train)


def validated(learner: str, settings: Settings, parts: list[RankingData]) -> dict[str, Any]:
    """Validation nDCG@10 [part to be tested][validation part][step], by models that saw neither; CPU seconds."""
    began = time.process_time()
    found = np.zeros((len(parts), len(parts), len(STEPS)))
    for pair in combinations(range(len(parts)), 2):
        staged = fit_without(learner, settings, parts, pair)
        for tested, valid in (pair, pair[::-1]):
            judged = parts[valid].judgements()
            found[tested, valid] = [MEASURED["nDCG@10"].mean(judged, scores) for scores in staged(parts[valid])]
    return {"valid": found.tolist(), "seconds": time.process_time() - began}


def tested(learner: str, settings: Settings, step: int, parts: list[RankingData], part: int) -> dict[str, Any]:
    """Values by query of the part, each the mean over the four models that were trained without it."""
    judged = parts[part].judgements()
    values: dict[str, list[np.ndarray]] = {name: [] for name in MEASURED}
    for valid in range(len(parts)):
        if valid != part:
            scores = fit_without(learner, settings, parts, (part, valid))(parts[part])[step]
            for name, measure in MEASURED.items():
                values[name].append(measure.per_query(judged, scores))
    return {name: np.mean(own, axis=0).tolist() for name, own in values.items()}


class OutOfTime(Exception):
    """The deadline has passed with work left."""


def assignment(
    learner: str, key: dict[str, Any], folds: list[protocol.Fold], trials: int, compute: Callable[..., Any]
) -> dict[str, Any]:
    """All that a learner has on one assignment of queries to parts: values by query, validation, CPU seconds."""
    parts = [fold.test for fold in folds]
    settings = proposals(learner, trials)
    key = {**key, "learner": learner}
    runs = [compute({**key, "settings": one}, partial(validated, learner, one, parts)) for one in settings]
    worth = np.array([run["valid"] for run in runs]).sum(axis=2) / (len(parts) - 1)  # [trial, tested part, step]
    chosen = [np.unravel_index(np.argmax(worth[:, part]), worth[:, part].shape) for part in range(len(parts))]
    choices = {"tuned": chosen, "defaults": [(0, len(STEPS) - 1)] * len(parts)}
    values: dict[tuple[str, str], np.ndarray] = {}
    for choice, best in choices.items():
        found = [
            compute(
                {**key, "settings": settings[trial], "step": int(step), "tested": part},
                partial(tested, learner, settings[trial], int(step), parts, part),
            )
            for part, (trial, step) in enumerate(best)
        ]
        for name in MEASURED:
            values[choice, name] = protocol.pool(folds, [one[name] for one in found])
    valid = {choice: np.mean([worth[t, k, s] for k, (t, s) in enumerate(best)]) for choice, best in choices.items()}
    return {"values": values, "valid": valid, "seconds": sum(run["seconds"] for run in runs)}


def show(name: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """The table of a set: tuned learners, then defaults, values by query averaged over assignments."""
    number = len(next(iter(found.values())))
    print(f"\n**{name}** ({number} assignments of queries to five parts)\n")
    print("| learner | validation nDCG@10 | test nDCG@10 | p | test MAP | p | CPU s |\n" + "| --- " * 7 + "|")
    for choice in ("tuned", "defaults"):
        values = {
            (learner, measure): np.mean([run["values"][choice, measure] for run in runs], axis=0)
            for learner, runs in found.items()
            for measure in MEASURED
        }
        peers = [learner for learner in found if learner != "truerank"]
        p = {
            (peer, measure): adjusted
            for measure in MEASURED
            for peer, adjusted in zip(
                peers, holm([paired_t(values["truerank", measure], values[o, measure]).p for o in peers])
            )
        }
        for learner, runs in found.items():
            cells = [f"{np.mean([run['valid'][choice] for run in runs]):.4f}"]
            for measure in ("nDCG@10", "AP"):
                cells += [
                    f"{values[learner, measure].mean():.4f}",
                    f"{p[learner, measure]:.2g}" if learner in peers else "",
                ]
            cpu = f"{sum(run['seconds'] for run in runs):.0f}" if choice == "tuned" else ""
            print(f"| {learner}, {choice} | {' | '.join(cells)} | {cpu} |", flush=True)


def run(argv: list[str] | None = None) -> None:
    """All sets; one that is not done is said to be left out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--out", default="reproduce-output/equal-budgets.jsonl")
    parser.add_argument("--sets", nargs="+", default=["mq2008 random", "ohsumed random", "mslr"])
    parser.add_argument("--assignments", type=int, default=1, help="of queries to parts, where these are random")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    args = parser.parse_args(argv or [])
    if not args.data:
        print("(set TRUERANK_DATA to the folder of the collections)")
        return
    store = protocol.ResultStore(args.out, {"benchmark": "equal budgets", "form": 2})
    deadline = time.monotonic() + args.seconds

    def compute(key: dict[str, Any], work: Callable[[], Any]) -> Any:
        if key not in store and time.monotonic() > deadline:
            raise OutOfTime
        return store.compute(key, work)

    for name in args.sets:
        found: dict[str, list[dict[str, Any]]] = {learner: [] for learner in LEARNERS}
        try:
            for label, folds in assignments(name, args.data, args.assignments):
                for learner, runs in found.items():
                    own = assignment(learner, {"set": name, "folds": label}, folds, args.trials, compute)
                    runs.append(own)
                    print(f"  {name} {label} {learner}: {own['seconds']:.0f} CPU s", flush=True)
        except OutOfTime:
            print(f"({name} is not done: run again to go on)")
            continue
        show(name, found)


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
