"""Every learner on LETOR's OHSUMED and MQ2008: published folds, random folds, paired tests, figures.

For each collection: (1) the five published folds with a few settings for each learner, chosen by validation MAP;
(2) the same folds with a wider grid; (3) the wider grid over 20 random assignments of queries to folds. Tests compare
each query's mean over the assignments, since assignments share their queries.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol
from reproductions.adarank.trials import pairs_by_query
from reproductions.letor.discussions import discussion_figures, learning_curves
from reproductions.letor.learners import PUBLISHED, Learner, choose, known_learners
from truerank.core.errors import InvalidInputError
from truerank.core.printing import note, print_json, progress, table
from truerank.measures import parse_measure
from truerank.report.figures import Figure

COLLECTION_NAMES = ("ohsumed", "mq2008")
MEASURES = ("AP", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10")
TIED = "AP, ties averaged"  # beside the convention's order of tied documents, which is the file's
SHOWN = {"AP": "MAP", TIED: "MAP, ties averaged"}
REPEATED = ("AP", TIED, "nDCG@10")  # what is kept of the random assignments
PAIRS = ("pairs(2, 0)", "pairs(2, 1)", "pairs(1, 0)")
TRAINING = ("AP", "nDCG@5")
REPETITIONS = 20
GRIDS = ("plain", "wide")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options."""
    protocol.add_options(parser, "letor-results")
    parser.add_argument(
        "--collections",
        nargs="+",
        choices=COLLECTION_NAMES,
        default=list(COLLECTION_NAMES),
        metavar="NAME",
        help="ohsumed, mq2008 (default: both)",
    )
    parser.add_argument("--learners", nargs="+", metavar="RANKER", help="registered rankers to run (default: all)")
    parser.add_argument(
        "--grids",
        nargs="+",
        choices=GRIDS,
        help="plain: a few settings; wide: many (default: both; plain with --quick)",
    )
    parser.add_argument(
        "--repetitions", type=int, metavar="N", help=f"random assignments (default: {REPETITIONS}; 2 with --quick)"
    )


def run(args: argparse.Namespace) -> int:
    """Run, or go on with, the experiment and print its tables."""
    args.result = result = compute(args)
    if args.json:
        print_json(result)
    else:
        for name, part in result["collections"].items():
            print_text(name, part)
    return 0


def figures(args: argparse.Namespace) -> list[Figure]:
    """The AdaRank paper's figures 6 to 11, of the run that `args` names (computed where it is not kept yet)."""
    if "ohsumed" not in args.collections:
        return []
    result = getattr(args, "result", None) or compute(args)
    return discussion_figures(result["collections"]["ohsumed"], result["learning_curves"])


def compute(args: argparse.Namespace) -> dict[str, Any]:
    """All results: kept ones from the folder `--out`, the others computed."""
    stamp = {"experiment": "letor", "version": 2, "seed": args.seed, "quick": bool(args.quick)}
    store = protocol.ResultStore(Path(args.out) / "results.jsonl", stamp)
    if store.n_resumed:
        note(f"{store.n_resumed} finished pieces found in {store.path}")
    repetitions = args.repetitions if args.repetitions is not None else (2 if args.quick else REPETITIONS)
    learners = known_learners(args.learners)
    grids = [grid for grid in GRIDS if grid in (args.grids or (GRIDS[:1] if args.quick else GRIDS))]
    if not learners:
        raise InvalidInputError(f"--learners: none of {args.learners} has a row in these tables")
    result: dict[str, Any] = {"seed": args.seed, "quick": bool(args.quick), "collections": {}}
    for name in args.collections:
        collection = protocol.load_collection(args.data, name)
        result["collections"][name] = _Run(collection, store, learners, args.seed, grids).results(repetitions)
        if name == "ohsumed":
            work = partial(learning_curves, protocol.letor_folds(collection)[0], 50 if args.quick else 350)
            result["learning_curves"] = store.compute({"learning curves": name, "quick": bool(args.quick)}, work)
    return result


class _Run:
    """One collection's share of the experiment."""

    def __init__(
        self,
        collection: protocol.Collection,
        store: protocol.ResultStore,
        learners: list[Learner],
        seed: int,
        grids: list[str],
    ) -> None:
        self.collection, self.store, self.learners = collection, store, learners
        self.seed, self.grids = seed, grids
        self.selector = parse_measure("AP", convention=collection.convention)

    def results(self, repetitions: int) -> dict[str, Any]:
        folds = protocol.letor_folds(self.collection)
        data = self.collection.data
        empty = int(np.sum(np.maximum.reduceat(data.judgements().grades, data.offsets[:-1]) <= 0))
        official = {scheme: self._official(scheme, folds) for scheme in self.grids}
        return {
            "convention": self.collection.convention,
            "queries": data.n_queries,
            "queries_without_relevant": empty,
            "documents": data.n_rows,
            "pairs_by_query": pairs_by_query(data).tolist(),
            "official": official,
            "trivial": self._trivial(folds, official),
            "random": self._random(repetitions),
        }

    def _official(self, scheme: str, folds: list[protocol.Fold]) -> dict[str, Any]:
        names = (*MEASURES, TIED, *PAIRS)
        result = {}
        learners = [x for x in self.learners if _candidates(x, scheme)]
        for learner in progress(learners, f"{self.collection.name}, published folds, {scheme} grids"):
            pieces = [self._piece(learner, scheme, fold, names, TRAINING) for fold in folds]
            row: dict[str, Any] = {"chosen": [p["params"] for p in pieces], "status": [p["status"] for p in pieces]}
            row["fit_seconds"] = float(np.mean([p["fit_seconds"] for p in pieces]))
            pooled = {n: protocol.pool(folds, [p["test"][n] for p in pieces]) for n in names}
            row["test"] = {SHOWN.get(n, n): protocol.mean_of_folds(folds, pooled[n]) for n in (*MEASURES, TIED)}
            row["wrong_pairs"] = {n: float(np.nanmean(pooled[n])) for n in PAIRS}
            row["train"] = {SHOWN.get(n, n): [p["train"][n] for p in pieces] for n in TRAINING}
            row["ap_by_query"] = pooled["AP"].tolist()
            row["published"] = PUBLISHED[self.collection.name].get(learner.name, {})
            result[learner.name] = row
        return result

    def _trivial(self, folds: list[protocol.Fold], official: dict[str, Any]) -> dict[str, Any]:
        """MAP and AP by query of constant scores, and of the single feature where it was run."""
        measure = parse_measure("AP", convention=self.collection.convention)
        flat = [measure.per_query(fold.test.judgements(), np.zeros(fold.test.n_rows)).tolist() for fold in folds]
        pooled = protocol.pool(folds, flat)
        found = {"constant scores": {"MAP": protocol.mean_of_folds(folds, pooled), "ap_by_query": pooled.tolist()}}
        single = next(iter(official.values()), {}).get("single feature")
        if single is not None:
            found["best single feature"] = {"MAP": single["test"]["MAP"], "ap_by_query": single["ap_by_query"]}
        return found

    def _random(self, repetitions: int) -> dict[str, Any]:
        scheme = self.grids[-1]
        learners = [x for x in self.learners if _candidates(x, scheme)]
        means: dict[str, dict[str, list[float]]] = {x.name: {n: [] for n in REPEATED} for x in learners}
        by_query: dict[str, dict[str, list[np.ndarray]]] = {x.name: {n: [] for n in REPEATED} for x in learners}
        for repetition in progress(range(repetitions), f"{self.collection.name}, random assignments"):
            folds = protocol.random_folds(self.collection.data, repetition, seed=self.seed)
            for learner in learners:
                pieces = [self._piece(learner, scheme, fold, REPEATED, ()) for fold in folds]
                for n in REPEATED:
                    pooled = protocol.pool(folds, [p["test"][n] for p in pieces])
                    means[learner.name][n].append(protocol.mean_of_folds(folds, pooled))
                    by_query[learner.name][n].append(pooled)
        if not repetitions:
            return {"repetitions": 0, "grid": scheme, "learners": {}, "tests": []}
        average = {k: {n: np.mean(v[n], axis=0) for n in REPEATED} for k, v in by_query.items()}
        rows = {
            name: {SHOWN.get(n, n): protocol.spread(values[n]) for n in REPEATED}
            | {"published": PUBLISHED[self.collection.name].get(name, {})}
            for name, values in means.items()
        }
        return {
            "repetitions": repetitions,
            "grid": scheme,
            "learners": rows,
            "tests": _tests({name: a[TIED] for name, a in average.items()}),
        }

    def _piece(
        self, learner: Learner, scheme: str, fold: protocol.Fold, names: tuple[str, ...], training: tuple[str, ...]
    ) -> dict[str, Any]:
        """What is kept of one learner on one fold."""
        candidates = _candidates(learner, scheme)
        key = {
            "collection": self.collection.name,
            "fold": fold.name,
            "learner": learner.name,
            "candidates": list(candidates),
            "measures": [*names, *training],
        }

        def work() -> dict[str, Any]:
            start = time.process_time()
            chosen = choose(learner, candidates, fold, self.selector, self.collection.convention, self.seed)
            seconds = (time.process_time() - start) / len(candidates)
            convention = self.collection.convention
            measures = {n: _measure(n, convention) for n in names}
            scores = protocol.grouped_scores(chosen.ranker, fold.train)
            judgements = fold.train.judgements()
            return {
                "params": chosen.params,
                "valid": chosen.value,
                "status": chosen.ranker.status_,
                "fit_seconds": seconds,
                "test": protocol.measure_test(chosen.ranker, fold, measures),
                "train": {n: parse_measure(n, convention=convention).mean(judgements, scores) for n in training},
            }

        return self.store.compute(key, work)


def _measure(name: str, convention: str) -> Any:
    if name == TIED:
        return parse_measure("AP", convention=convention).tie_averaged()
    return parse_measure(name, convention=convention)


def _candidates(learner: Learner, scheme: str) -> tuple[dict[str, Any], ...]:
    return learner.plain if scheme == "plain" else learner.wide


def _tests(by_query: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Every pair of learners by a paired t test on queries, corrected over all pairs by Holm's method."""
    from truerank.significance import holm

    rows = []
    for a, b in combinations(by_query, 2):
        rows.append({"a": a, "b": b} | protocol.compare_paired(by_query[a], by_query[b]))
    for name in ("p_paired_t", "p_randomisation"):
        for row, p in zip(rows, holm([row[name] for row in rows])):
            row[f"{name}_holm"] = float(p)
    return rows


def print_text(name: str, part: dict[str, Any]) -> None:
    """Tables of one collection."""
    out = protocol.show
    out(f"\n{name}: {part['queries']} queries ({part['queries_without_relevant']} without a relevant document), ")
    out(f"{part['documents']} documents, convention {part['convention']}, settings by validation MAP, ties averaged")
    columns = ["MAP", SHOWN[TIED], "nDCG@5", "nDCG@10"]
    for scheme, rows in part["official"].items():
        out(f"\npublished folds, {scheme} grids, mean of the five test folds\n")
        ours = {learner: row["test"] for learner, row in rows.items()}
        published = {learner: row["published"] for learner, row in rows.items()}
        out(protocol.beside_published(ours, published, columns, label="learner"))
    repeated = part["random"]
    if not repeated["repetitions"]:
        return
    out(f"\n{repeated['repetitions']} random assignments of the queries to five folds, {repeated['grid']} grids\n")
    better: dict[str, list[str]] = {}
    for test in repeated["tests"]:
        if test["p_paired_t_holm"] < 0.05:
            winner, loser = (test["a"], test["b"]) if test["difference"] > 0 else (test["b"], test["a"])
            better.setdefault(winner, []).append(loser)
    rows_ = []
    for learner, row in sorted(repeated["learners"].items(), key=lambda item: -item[1]["MAP"]["mean"]):
        m, n, tied = row["MAP"], row["nDCG@10"], row[SHOWN[TIED]]["mean"]
        published = row["published"].get("MAP")
        rows_.append([learner, m["mean"], m["sd"], m["min"], m["max"], published, tied, n["mean"], n["sd"]]
                     + [", ".join(better.get(learner, [])) or "-"])  # fmt: skip
    out(
        table(
            rows_,
            [
                "learner",
                "MAP",
                "sd",
                "min",
                "max",
                "publ.",
                "ties averaged",
                "nDCG@10",
                "sd",
                "better than (paired t, Holm)",
            ],
        )
    )
