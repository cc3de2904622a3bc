"""AdaRank (Xu & Li, SIGIR 2007): the paper's own protocol on OHSUMED, LETOR's folds, random assignments of queries.

The paper's protocol stands in `trials`. Then, for each LETOR collection: the three updates of the query weights
with E = AP, nDCG@5 and nDCG@10 over the five published folds; the best round is chosen by the validation queries' MAP,
ties averaged. Then, because four digits on the published folds decide nothing, the same over random assignments of the
queries to five parts, with paired tests by query.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol
from reproductions.adarank import trials
from reproductions.protocol import Collection, Fold, ResultStore
from truerank.core.printing import note, print_json, progress, table
from truerank.report.figures import Figure

COLLECTIONS = ("ohsumed", "mq2008")
PARTS = ("trials", "letor")
UPDATES = ("paper", "compound", "adaboost")
DEFAULT_UPDATE = "adaboost"
TRAINED = ("AP", "nDCG@5", "nDCG@10")
REPORTED = ("AP", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@5", "P@10")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the experiment."""
    protocol.add_options(parser, "reproduce-output/adarank")
    parser.add_argument(
        "--assignments", type=int, default=20, metavar="N", help="random assignments of the queries (default: 20)"
    )
    parser.add_argument(
        "--part",
        choices=PARTS,
        nargs="+",
        default=list(PARTS),
        help="trials: the paper's protocol; letor (default: both)",
    )


def run(args: argparse.Namespace) -> int:
    """Fit, test, print."""
    assignments = 2 if args.quick else args.assignments
    store = ResultStore(Path(args.out) / "results.jsonl", {"experiment": "adarank", "form": 3, "seed": args.seed})
    if store.n_resumed:
        note(f"{store.n_resumed} finished pieces found in {store.path}")
    result: dict[str, Any] = {"experiment": "adarank", "default": DEFAULT_UPDATE}
    args.result = result
    if "trials" in args.part:
        ohsumed = protocol.load_collection(args.data, "ohsumed")
        result["trials"] = trials.run_trials(ohsumed, store, assignments=assignments, seed=args.seed, root=args.data)
        if not args.json:
            trials.print_trials(result["trials"])
    results: dict[str, Any] = {}
    result["collections"] = results
    for name in COLLECTIONS if "letor" in args.part else ():
        collection = protocol.load_collection(args.data, name)
        results[name] = run_collection(collection, store, assignments=assignments, seed=args.seed)
        if not args.json:
            _print(name, collection, results[name])
    if args.json:
        print_json(result)
    return 0


def figures(args: argparse.Namespace) -> list[Figure]:
    """The paper's figures 2 and 6 to 11 under its own protocol, of the run that has just ended."""
    return trials.trial_figures(args.result["trials"]) if "trials" in args.result else []


def run_collection(collection: Collection, store: ResultStore, *, assignments: int, seed: int = 0) -> dict[str, Any]:
    """The published folds and the random assignments of one collection, as figures by row and measure."""
    data = collection.data
    folds = protocol.letor_folds(collection)
    rows, pooled = _rows(collection, folds, store, "published")
    repeated: dict[str, list[float]] = {}
    validation: dict[str, list[float]] = {}
    by_query: dict[str, np.ndarray] = {}
    for repetition in progress(range(assignments), f"{collection.name}: random assignments"):
        drawn = protocol.random_folds(data, repetition, seed=seed)
        figures, values = _rows(collection, drawn, store, f"assignment {repetition}")
        for row in figures:
            repeated.setdefault(row, []).append(figures[row]["AP"])
            validation.setdefault(row, []).append(figures[row]["validation AP"])
            by_query[row] = by_query.get(row, np.zeros(data.n_queries)) + values[row] / assignments
    return {
        "convention": collection.convention,
        "queries": data.n_queries,
        "published_folds": rows,
        "tests_published_folds": _tests(pooled),
        "assignments": {
            row: protocol.spread(values) | {"validation": float(np.mean(validation[row]))}
            for row, values in repeated.items()
        },
        "won": {row: _won(repeated, row) for row in repeated},
        "tests_assignments": _tests(by_query),
    }


def _rows(
    collection: Collection, folds: Sequence[Fold], store: ResultStore, assignment: str
) -> tuple[dict[str, dict[str, float]], dict[str, np.ndarray]]:
    """Mean of folds of every row and measure, and every row's AP by query."""
    pieces = {
        (update, trained): [_piece(collection, fold, store, assignment, update, trained) for fold in folds]
        for update in UPDATES
        for trained in TRAINED
    }
    chosen: dict[str, list[dict[str, Any]]] = {
        _row(update, trained): found for (update, trained), found in pieces.items()
    }
    for trained in TRAINED:
        chosen[f"{_row(DEFAULT_UPDATE, trained)}, best training round"] = [
            _piece(collection, fold, store, assignment, DEFAULT_UPDATE, trained, validate=False) for fold in folds
        ]
    # Rows whose settings the validation queries choose, fold by fold.
    chosen["AdaRank-NDCG, default update, cutoff by validation"] = [
        _best([pieces[DEFAULT_UPDATE, trained][k] for trained in TRAINED[1:]]) for k in range(len(folds))
    ]
    chosen["measure and update by validation"] = [
        _best([found[k] for found in pieces.values()]) for k in range(len(folds))
    ]
    figures, values = {}, {}
    for row, found in chosen.items():
        means = {"validation AP": float(np.mean([piece["valid"] for piece in found]))}
        for measure in REPORTED:
            pooled = protocol.pool(folds, [piece["test"][measure] for piece in found])
            means[measure] = protocol.mean_of_folds(folds, pooled)
            if measure == "AP":
                values[row] = pooled
        means["rounds"] = float(np.mean([piece["round"] for piece in found]))
        means["features"] = float(np.mean([piece["features"] for piece in found]))
        figures[row] = means
    return figures, values


def _piece(
    collection: Collection,
    fold: Fold,
    store: ResultStore,
    assignment: str,
    update: str,
    trained: str,
    *,
    validate: bool = True,
) -> dict[str, Any]:
    """One fit: the best round by the validation queries' MAP, or without them by the training measure."""
    from truerank import AdaRank
    from truerank.measures import parse_measure, parse_measures

    def work() -> dict[str, Any]:
        ranker = AdaRank(trained, convention=collection.convention, update=update, validation_measure="AP")
        ranker.fit(fold.train, eval_set=fold.valid if validate else None)
        ap = parse_measure("AP", collection.convention)
        return {
            "valid": ap.mean(fold.valid.judgements(), protocol.grouped_scores(ranker, fold.valid)),
            "round": ranker.best_round_,
            "features": len(ranker.feature_weights()),
            "weights": ranker.feature_weights(),
            "test": protocol.measure_test(ranker, fold, parse_measures(REPORTED, collection.convention)),
        }

    key: dict[str, Any] = {"collection": collection.name, "assignment": assignment, "fold": fold.name}
    key |= {"update": update, "E": trained, "validate": validate}
    return store.compute(key, work)


def _row(update: str, trained: str) -> str:
    name = "AdaRank-MAP" if trained == "AP" else f"AdaRank-N{trained[1:].upper()}"
    return f"{name}, {update}"


def _best(pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first of the pieces with the largest validation MAP."""
    return max(pieces, key=lambda piece: piece["valid"])


def _tests(values: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Default against the paper's form, and compound against it, by query, for each trained measure."""
    if not values:
        return {}
    return {
        f"{_row(update, trained)} against paper": protocol.compare_paired(
            values[_row(update, trained)], values[_row("paper", trained)]
        )
        for trained in TRAINED
        for update in UPDATES[1:]
    }


def _won(repeated: Mapping[str, Sequence[float]], row: str) -> int | None:
    """Assignments in which a row beats the paper's form with the same measure."""
    trained = next((t for t in TRAINED if any(row == _row(update, t) for update in UPDATES)), None)
    if trained is None:
        return None
    return int(np.sum(np.asarray(repeated[row]) > np.asarray(repeated[_row("paper", trained)])))


def _print(name: str, collection: Collection, result: dict[str, Any]) -> None:
    rows = result["published_folds"]
    published = {}
    for row in rows:
        figures = protocol.published("letor")["tables"][name].get("AdaRank-MAP", {}) if "MAP" in row else {}
        published[row] = {"AP" if key == "MAP" else key: value for key, value in figures.items()}
    shown = ["AP", "nDCG@5", "nDCG@10"]
    short = {row: f | {key: f"{f[key]:.1f}" for key in ("rounds", "features")} for row, f in rows.items()}
    lines = [
        f"\n{name}: {result['queries']} queries, convention {result['convention']}, round chosen by validation MAP; "
        "mean of the five published folds",
        "",
        protocol.beside_published(short, published, ["validation AP", *shown, "rounds", "features"], label="learner"),
        "",
        "against the paper's form, AP by query over the published folds",
        "",
        _table_of_tests(result["tests_published_folds"]),
    ]
    if result["assignments"]:
        n = next(iter(result["assignments"].values()))["n"]
        lines += [
            "",
            f"MAP over {n} random assignments of the queries to five parts",
            "",
            table(
                [
                    [row, s["validation"], s["mean"], s["sd"], s["min"], s["max"], result["won"][row]]
                    for row, s in result["assignments"].items()
                ],
                ["learner", "validation", "test mean", "sd", "min", "max", "above paper"],
            ),
            "",
            "against the paper's form, each query's AP averaged over the assignments",
            "",
            _table_of_tests(result["tests_assignments"]),
        ]
    protocol.show("\n".join(lines))


def _table_of_tests(tests: Mapping[str, Mapping[str, float]]) -> str:
    header = ["comparison", "difference", "wins", "losses", "ties", "p (t)", "p (Wilcoxon)", "p (randomisation)"]
    return table([[row, *figures.values()] for row, figures in tests.items()], header)
