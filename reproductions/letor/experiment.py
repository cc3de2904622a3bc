"""Published baselines of LETOR 3.0: every learner on the five folds of OHSUMED and MQ2008.

The validation queries choose each learner's setting by MAP with ties averaged. Test figures follow the convention of
the published tables, in which tied documents keep the order of the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from reproductions import protocol
from reproductions.letor.learners import LEARNERS, PUBLISHED, Learner, choose
from reproductions.protocol import Collection, Fold, ResultStore
from truerank.core.printing import progress, table
from truerank.measures import parse_measure

COLLECTION_NAMES = ("ohsumed", "mq2008")
MEASURES = ("AP", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the experiment."""
    protocol.add_options(parser, "letor-results")
    names = list(COLLECTION_NAMES)
    parser.add_argument(
        "--collections", nargs="+", choices=names, default=names, metavar="NAME", help="ohsumed, mq2008 (default: both)"
    )
    rankers = sorted({learner.ranker for learner in LEARNERS})
    parser.add_argument(
        "--learners", nargs="+", choices=rankers, default=rankers, metavar="RANKER", help="rankers (default: all)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run what is not finished."""
    learners = [learner for learner in LEARNERS if learner.ranker in args.learners]
    store = protocol.open_store(args.out, {"experiment": "letor", "version": 3, "seed": args.seed})
    names = args.collections[:1] if args.quick else args.collections
    collections = [protocol.load_collection(args.data, name) for name in names]
    parts = {c.name: run_collection(c, learners, store, args.seed) for c in collections}
    return {"seed": args.seed, "quick": bool(args.quick), "collections": parts}


def run_collection(
    collection: Collection, learners: Sequence[Learner], store: ResultStore, seed: int
) -> dict[str, Any]:
    """The test figures of each learner over the five folds, and of the trivial rankers with their paired tests."""
    folds = protocol.letor_folds(collection)
    rows: dict[str, dict[str, Any]] = {}
    ap: dict[str, np.ndarray] = {}
    for learner in progress(learners, f"{collection.name}, published folds"):
        pieces = [_piece(collection, learner, fold, store, seed) for fold in folds]
        pooled = {n: protocol.pool(folds, [p["test"][n] for p in pieces]) for n in MEASURES}
        ap[learner.name] = pooled["AP"]
        rows[learner.name] = {
            "chosen": [p["params"] for p in pieces],
            "status": [p["status"] for p in pieces],
            "test": {"MAP" if n == "AP" else n: protocol.mean_of_folds(folds, pooled[n]) for n in MEASURES},
            "published": PUBLISHED[collection.name].get(learner.name, {}),
        }
    measure = parse_measure("AP", convention=collection.convention)
    flat = [measure.per_query(fold.test.judgements(), np.zeros(fold.test.n_rows)).tolist() for fold in folds]
    found = {"constant scores": protocol.pool(folds, flat)}
    if "single feature" in ap:
        found["best single feature"] = ap["single feature"]
    trivial = {
        name: {
            "MAP": protocol.mean_of_folds(folds, values),
            "p": {learner: protocol.compare_paired(own, values)["p_paired_t"] for learner, own in ap.items()},
        }
        for name, values in found.items()
    }
    return {
        "convention": collection.convention,
        "queries": collection.data.n_queries,
        "documents": collection.data.n_rows,
        "learners": rows,
        "trivial": trivial,
    }


def _piece(collection: Collection, learner: Learner, fold: Fold, store: ResultStore, seed: int) -> dict[str, Any]:
    """The chosen setting of one learner on one fold, and its test figures by query."""
    convention = collection.convention

    def work() -> dict[str, Any]:
        chosen = choose(learner, fold, parse_measure("AP", convention=convention), convention, seed)
        measures = {n: parse_measure(n, convention=convention) for n in MEASURES}
        return {
            "params": chosen.params,
            "status": chosen.ranker.status_,
            "test": protocol.measure_test(chosen.ranker, fold, measures),
        }

    key = {"collection": collection.name, "fold": fold.name, "learner": learner.name}
    return store.compute(key | {"settings": list(learner.settings)}, work)


def print_tables(result: dict[str, Any]) -> None:
    """Print a table for each collection, with the published figures."""
    shown = ("MAP", "nDCG@5", "nDCG@10")
    for name, part in result["collections"].items():
        rows = [
            [learner, *(row[kind].get(figure) for figure in shown for kind in ("test", "published"))]
            for learner, row in part["learners"].items()
        ]
        about = f"{part['queries']} queries, {part['documents']} documents, convention {part['convention']}"
        protocol.show(f"\n{name}: {about}; settings by validation MAP; mean of the five test folds\n")
        protocol.show(table(rows, ["learner", *(head for figure in shown for head in (figure, "publ."))]))
