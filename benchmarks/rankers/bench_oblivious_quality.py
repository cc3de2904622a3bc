"""Quality of boosted trees on real judged rankings: truerank beside LightGBM, XGBoost and CatBoost, one evaluator.

Two comparisons on the same folds. *Equal*: 100 trees, depth 6, rate 0.1 for everybody (LightGBM: 64 leaves, depth at
most 6). *Tuned*: every learner has the same budget, six settings (depth and rate; ours trade these for widths of the
fuzzy borders and for where the trees start), and validation MAP chooses among these and the numbers of trees in
`STEPS`. Test folds are looked at once, with what validation chose.

`python -m benchmarks.rankers.bench_oblivious_quality --data DIR --out FILE [--sets …] [--parts equal tuned]` resumes.
`--parts cross-validated` chooses our setting on MQ2008's official folds by cross-validation over the queries that are
not tested.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from reproductions.protocol import Fold, ResultStore

from reproductions import protocol
from truerank.measures import parse_measure
from truerank.significance import holm, paired_t

STEPS = (10, 20, 40, 60, 100, 150, 200)
MEASURES = ("AP", "nDCG@10")
EQUAL: dict[str, Any] = {"depth": 6, "rate": 0.1}
PLAIN_GRID = [{"depth": depth, "rate": rate} for depth in (4, 6) for rate in (0.03, 0.06, 0.12)]
OWN_GRID = [{"depth": depth, "rate": 0.06, "width": width} for depth in (4, 6) for width in (0.15, 0.3, 0.6)]
RANKING_GRID = [
    {"depth": 6, "rate": 0.1, "width": width, "start": start}
    for start in ("constant", "linear")
    for width in (0.08, 0.15, 0.25)
]
OURS = "truerank fuzzy, yetirank"
GRID_NUMBER = {OURS: 2}  # a grid that was changed: its results go by another key

Staged = Callable[[Any, int], np.ndarray]  # (data, trees) -> grouped scores


def leaves_of(kind: str, settings: dict[str, Any]) -> Any:
    """The leaves by name; fuzzy borders as the thesis has ties, of the settings' width."""
    return {"kind": kind, "fuzziness": settings.get("width", 0.15), "ties": "near"} if kind == "fuzzy" else kind


def truerank_trees(objective: str, leaves: str = "fuzzy") -> Callable[..., Staged]:
    def make(fold: Fold, settings: dict[str, Any], trees: int, seed: int) -> Staged:
        from truerank import ObliviousBoosting

        ranker = ObliviousBoosting(
            leaves_of(leaves, settings), objective=objective, depth=settings["depth"],
            learning_rate=settings["rate"], n_estimators=trees,
            bootstrap="row" if objective == "yetirank" else None, borders=32,
            start=settings.get("start", "constant"), random_state=seed,
        ).fit(fold.train)  # fmt: skip
        return staged(lambda data: list(ranker.staged_predict(data.X)))

    return make


def lightgbm_lambdarank(fold: Fold, settings: dict[str, Any], trees: int, seed: int) -> Staged:
    import lightgbm

    params = {
        "objective": "lambdarank", "num_leaves": 1 << settings["depth"], "max_depth": settings["depth"],
        "learning_rate": settings["rate"], "num_threads": 1, "seed": seed, "verbose": -1, "deterministic": True,
    }  # fmt: skip
    data = lightgbm.Dataset(fold.train.X, fold.train.y, group=fold.train.group_sizes)
    model = lightgbm.train(params, data, trees)
    return lambda data, n: model.predict(data.X, num_iteration=n)


def xgboost_ranker(objective: str) -> Callable[..., Staged]:
    def make(fold: Fold, settings: dict[str, Any], trees: int, seed: int) -> Staged:
        import xgboost

        matrix = xgboost.DMatrix(fold.train.X, fold.train.y)
        matrix.set_group(fold.train.group_sizes)
        params = {
            "objective": objective, "max_depth": settings["depth"], "eta": settings["rate"], "nthread": 1,
            "seed": seed, "tree_method": "hist",
        }  # fmt: skip
        model = xgboost.train(params, matrix, trees)
        return lambda data, n: model.predict(xgboost.DMatrix(data.X), iteration_range=(0, n))

    return make


def catboost_ranker(loss: str) -> Callable[..., Staged]:
    def make(fold: Fold, settings: dict[str, Any], trees: int, seed: int) -> Staged:
        import catboost

        model = catboost.CatBoost(
            {
                "loss_function": loss, "iterations": trees, "depth": settings["depth"],
                "learning_rate": settings["rate"], "thread_count": 1, "random_seed": seed, "verbose": False,
                "allow_writing_files": False,
            }
        )  # fmt: skip
        model.fit(catboost.Pool(fold.train.X, fold.train.y, group_id=fold.train.query_index))
        return lambda data, n: model.predict(data.X, ntree_end=n)

    return make


def staged(compute: Callable[[Any], list[np.ndarray]]) -> Staged:
    kept: dict[int, list[np.ndarray]] = {}

    def scores(data: Any, n: int) -> np.ndarray:
        if id(data) not in kept:
            kept[id(data)] = compute(data)
        return kept[id(data)][n - 1]

    return scores


LEARNERS: dict[str, tuple[Callable[..., Staged], list[dict[str, Any]]]] = {
    "truerank fuzzy, squared error": (truerank_trees("mse"), OWN_GRID),
    "truerank fuzzy, yetirank": (truerank_trees("yetirank"), RANKING_GRID),
    "truerank plain, squared error": (truerank_trees("mse", "constant"), PLAIN_GRID),
    "LightGBM lambdarank": (lightgbm_lambdarank, PLAIN_GRID),
    "XGBoost rank:ndcg": (xgboost_ranker("rank:ndcg"), PLAIN_GRID),
    "XGBoost rank:pairwise": (xgboost_ranker("rank:pairwise"), PLAIN_GRID),
    "CatBoost QueryRMSE": (catboost_ranker("QueryRMSE"), PLAIN_GRID),
    "CatBoost YetiRank": (catboost_ranker("YetiRank"), PLAIN_GRID),
}


def assignments(name: str, data_folder: str, repetitions: int) -> Iterator[tuple[str, list[Fold]]]:
    """Folds of a set: the published ones, or random assignments of its queries."""
    if name == "mslr":
        from truerank.io.letor.read import read_letor

        data = read_letor(os.path.join(data_folder, "mslr-web10k-sample", "fold1.train.5k.txt.gz"))
        data = data.take_queries([i for i, q in enumerate(data.query_ids) if str(q) != "631"])  # cut off
        for repetition in range(repetitions):
            yield f"assignment {repetition}", protocol.random_folds(data, repetition)
        return
    collection = protocol.load_collection(data_folder, name.removesuffix(" random"))
    if name.endswith(" random"):
        for repetition in range(repetitions):
            yield f"assignment {repetition}", protocol.random_folds(collection.data, repetition)
    else:
        yield "published", protocol.letor_folds(collection)


def piece(learner: str, part: str, fold: Fold, seed: int) -> dict[str, Any]:
    """Test values by query of one learner on one fold."""
    make, grid = LEARNERS[learner]
    measures = {name: parse_measure(name, "ranklib") for name in MEASURES}
    judged = fold.valid.judgements()
    best: tuple[float, Any, int, dict[str, Any]] | None = None
    for settings in [EQUAL] if part == "equal" else grid:
        trees = 100 if part == "equal" else STEPS[-1]
        scores = make(fold, settings, trees, seed)
        for n in (100,) if part == "equal" else STEPS:
            value = float(measures["AP"].mean(judged, scores(fold.valid, n)))
            if best is None or value > best[0]:
                best = value, scores, n, settings
    assert best is not None
    tested = best[1](fold.test, best[2])
    test = {name: m.per_query(fold.test.judgements(), tested).tolist() for name, m in measures.items()}
    return {"valid": best[0], "trees": best[2], "settings": best[3], "test": test}


def evaluate(name: str, part: str, data_folder: str, store: ResultStore, repetitions: int) -> dict[str, Any]:
    """Mean of folds and values by query (mean over assignments) of every learner."""
    values: dict[str, dict[str, np.ndarray]] = {}
    means: dict[str, dict[str, list[float]]] = {}
    rounds = 0
    for label, folds in assignments(name, data_folder, repetitions):
        rounds += 1
        for learner in LEARNERS:
            pieces = [
                store.compute(
                    {
                        "set": name,
                        "part": part,
                        "folds": label,
                        "fold": fold.name,
                        "learner": learner,
                        "grid": GRID_NUMBER.get(learner, 1) if part == "tuned" else 1,
                    },
                    lambda fold=fold, learner=learner, seed=rounds: piece(learner, part, fold, seed),
                )
                for fold in folds
            ]
            print(f"{name} {part} {label} {learner}", flush=True)
            for measure in MEASURES:
                pooled = protocol.pool(folds, [p["test"][measure] for p in pieces])
                kept = values.setdefault(learner, {})
                kept[measure] = kept.get(measure, 0.0) + pooled
                means.setdefault(learner, {}).setdefault(measure, []).append(protocol.mean_of_folds(folds, pooled))
            means[learner].setdefault("valid", []).append(float(np.mean([p["valid"] for p in pieces])))
    for kept in values.values():
        for measure in MEASURES:
            kept[measure] = kept[measure] / rounds
    return {"means": means, "values": values}


def show(name: str, part: str, result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Print a table; returns the mean of each learner and measure."""
    print(f"\n**{name}, {part}** (mean of folds; convention ranklib; p: paired t by query against ours, Holm)\n")
    print("| learner | validation MAP | MAP | p | nDCG@10 | p |\n| --- | --- | --- | --- | --- | --- |")
    others = [learner for learner in LEARNERS if not learner.startswith("truerank")]
    p = {
        measure: dict(
            zip(
                others,
                holm([paired_t(result["values"][OURS][measure], result["values"][o][measure]).p for o in others]),
            )
        )
        for measure in MEASURES
    }
    found = {}
    for learner, figures in result["means"].items():
        found[learner] = {measure: float(np.mean(figures[measure])) for measure in (*MEASURES, "valid")}
        cells = [f"{np.mean(figures['valid']):.4f}"]
        for measure in MEASURES:
            cells += [f"{found[learner][measure]:.4f}", f"{p[measure][learner]:.3g}" if learner in others else ""]
        print(f"| {learner} | {' | '.join(cells)} |")
    return found


def cross_validated(name: str, data_folder: str, objective: str) -> None:
    """Official folds; the setting and the number of trees by MAP cross-validated over each fold's four other parts."""
    from reproductions.protocol import letor_fold_parts

    from truerank import ObliviousBoosting

    collection = protocol.load_collection(data_folder, name)
    parts = collection.parts
    measures = [parse_measure(m, "ranklib") for m in MEASURES]
    found = []
    for number in range(1, 6):
        train, valid, test = letor_fold_parts(number)
        own = [*train, valid]

        def rotated(held: int, own: list[int] = own, test: int = test) -> Fold:
            rows = np.concatenate([parts[k - 1] for k in own if k != held])
            return Fold(f"held {held}", collection.data, rows, parts[held - 1], parts[test - 1])

        def ranker(settings: dict[str, Any], trees: int) -> Any:
            return ObliviousBoosting(
                leaves_of("fuzzy", settings), objective=objective, depth=settings["depth"],
                learning_rate=settings["rate"], n_estimators=trees, borders=32, measure="AP",
                bootstrap="row" if objective == "yetirank" else None, start=settings.get("start", "constant"),
            )  # fmt: skip

        grid = OWN_GRID if objective == "mse" else RANKING_GRID
        curves = []
        for settings in grid:
            folds = [rotated(held) for held in own]
            fits = [ranker(settings, STEPS[-1]).fit(fold.train, eval_set=fold.valid) for fold in folds]
            curves.append(np.mean([fit.validation_scores_ for fit in fits], axis=0))
        best, trees = np.unravel_index(np.argmax(curves), np.shape(curves))
        fold = rotated(valid)
        fitted = ranker(grid[best], int(trees) + 1).fit(fold.train)
        scores = protocol.grouped_scores(fitted, fold.test)
        found.append([m.mean(fold.test.judgements(), scores) for m in measures])
        print(f"fold {number}: {grid[best]}, {trees + 1} trees: {np.round(found[-1], 4).tolist()}", flush=True)
    means = ", ".join(f"{m} {v:.4f}" for m, v in zip(MEASURES, np.mean(found, axis=0)))
    print(f"\n**{name}, fuzzy, {objective}, cross-validated setting**: {means}\n")


def run(argv: list[str] | None = None) -> None:
    """All sets and parts; figures are kept in `--out` and found again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--out", default="reproduce-output/oblivious-quality.jsonl")
    parser.add_argument(
        "--sets", nargs="+", default=["mq2008", "ohsumed", "mslr", "mq2008 random", "ohsumed random"],
        help="sets, 'NAME:N' for N assignments of its queries to folds instead of --repetitions",
    )  # fmt: skip
    parser.add_argument("--parts", nargs="+", default=["equal", "tuned"], choices=["equal", "tuned", "cross-validated"])
    parser.add_argument("--repetitions", type=int, default=10)
    args = parser.parse_args(argv or [])
    if not args.data:
        print("(set TRUERANK_DATA to the folder of the collections)")
        return
    store = ResultStore(args.out, {"benchmark": "oblivious quality", "form": 1})
    for part in args.parts:
        if part == "cross-validated":
            for objective in ("mse", "yetirank"):
                cross_validated("mq2008", args.data, objective)
            continue
        ranks: dict[str, list[float]] = {}
        alone: dict[str, list[float]] = {}  # one of ours and the peers
        for name in args.sets:
            name, _, number = name.partition(":")
            found = show(name, part, evaluate(name, part, args.data, store, int(number or args.repetitions)))
            for measure in MEASURES:
                order = sorted(found, key=lambda learner: -found[learner][measure])
                peers = [learner for learner in order if learner == OURS or not learner.startswith("truerank")]
                for places, entrants in ((ranks, order), (alone, peers)):
                    for place, learner in enumerate(entrants, start=1):
                        places.setdefault(learner, []).append(place)
        for title, places in (("all", ranks), (f"{OURS} and the peers", alone)):
            print(f"\n**{part}**: mean rank over sets and measures, {title}\n")
            for learner, found_places in sorted(places.items(), key=lambda item: np.mean(item[1])):
                print(f"* {learner}: {np.mean(found_places):.2f}")


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
