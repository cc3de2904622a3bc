"""Defaults beside defaults: ObliviousBoosting() and ("constant"), LGBMRanker(), XGBRanker(), CatBoostRanker().

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_defaults [--out FILE] [--seconds N] [--assignments N] [--leaves]

Nothing is chosen and nothing is tuned: each ranker is built with no argument but the seed, one thread and silence, and
fitted to the training queries of each fold; the validation queries are left out. Folds: the published ones of MQ2008
and OHSUMED, then random assignments of their queries, of MSLR's sample and of the shipped sample to five folds. One
evaluator (convention `ranklib`, ties averaged). Values of a query are averaged over assignments, each of ours is
compared with the three peers by a randomisation test, and Holm's correction is over the three. `--out` keeps finished
fits, so that a run that was stopped (`--seconds`) goes on. `--leaves` prints instead which leaves `ObliviousBoosting()`
takes on these folds, and its CPU seconds as a share of those with these leaves named.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.rankers.bench_oblivious_quality import assignments
from reproductions import protocol
from truerank import load_sample
from truerank.measures import parse_measure
from truerank.rankers.pipeline import fit_ranker, ranker_scores
from truerank.significance import compare_values

MEASURES = ("AP", "nDCG@10")
SETS = ("mq2008", "ohsumed", "mslr", "sample", "mq2008 random", "ohsumed random")
LEVEL = 0.05


def oblivious(leaves: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from truerank import ObliviousBoosting

        return ObliviousBoosting(leaves, random_state=seed, n_jobs=1)

    return make


def lightgbm_ranker(seed: int) -> Any:
    import lightgbm

    return lightgbm.LGBMRanker(random_state=seed, n_jobs=1, verbose=-1)


def xgboost_ranker(seed: int) -> Any:
    import xgboost

    return xgboost.XGBRanker(random_state=seed, n_jobs=1)


def catboost_ranker(seed: int) -> Any:
    import catboost

    return catboost.CatBoostRanker(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False)


OURS = {"truerank, defaults": oblivious("auto"), "truerank, constant leaves": oblivious("constant")}
PEERS = {"LGBMRanker": lightgbm_ranker, "XGBRanker": xgboost_ranker, "CatBoostRanker": catboost_ranker}


def folds_of(name: str, data_folder: str, number: int) -> Iterator[tuple[str, list[protocol.Fold]]]:
    """The published folds, or `number` random assignments."""
    if name == "sample":
        sample = load_sample()
        for repetition in range(number):
            yield f"assignment {repetition}", protocol.random_folds(sample, repetition)
    else:
        yield from assignments(name, data_folder, number)


def piece(make: Callable[[int], Any], fold: protocol.Fold, seed: int) -> dict[str, Any]:
    """Test values by query, and the CPU seconds of the fit."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fit_ranker(make(seed), fold.train)
    seconds = time.process_time() - start
    scores, judgements = ranker_scores(fitted, fold.test), fold.test.judgements()
    values = {}
    for name in MEASURES:
        measure = parse_measure(name, "ranklib").tie_averaged()
        values[name] = measure.per_query(judgements, scores).tolist()
    return {"test": values, "seconds": seconds}


def show(name: str, values: dict[str, list[dict[str, np.ndarray]]], seconds: dict[str, float]) -> None:
    """The table of a set, and in words where ours is below or above a peer."""
    count = len(next(iter(values.values())))
    folds = "published folds" if name in ("mq2008", "ohsumed") else f"mean of {count} assignments to five folds"
    print(f"\n**{name}** ({folds})\n")
    print("| ranker | MAP | p, defaults | p, constant | nDCG@10 | p, defaults | p, constant | CPU s a fit |")
    print("| --- " * 8 + "|")
    means: dict[str, dict[str, np.ndarray]] = {
        ranker: {m: np.mean([one[m] for one in runs], axis=0) for m in MEASURES} for ranker, runs in values.items()
    }
    p: dict[tuple[str, str, str], float] = {}
    findings = []
    for measure in MEASURES:
        for ours in OURS:
            per_query = {ranker: means[ranker][measure] for ranker in (ours, *PEERS)}
            found = compare_values(per_query, baseline=ours, measure=measure, convention="ranklib", random_state=0)
            for pair in found.pairs:
                p[measure, pair.a, ours] = pair.p_adjusted
                if pair.p_adjusted < LEVEL:
                    word = "BELOW" if pair.difference > 0 else "above"
                    findings.append(f"{ours} is {word} {pair.a} in {measure} (p {pair.p_adjusted:.2g})")
    for ranker in values:
        cells = [ranker]
        for measure in MEASURES:
            cells.append(f"{np.nanmean(means[ranker][measure]):.4f}")
            cells += [f"{p[measure, ranker, ours]:.2g}" if ranker in PEERS else "" for ours in OURS]
        print("| " + " | ".join([*cells, f"{seconds[ranker]:.2f}"]) + " |")
    print("\n" + ("\n".join(f"* {line}" for line in findings) or "* no difference is significant"), flush=True)


def print_leaves(name: str, divisions: Iterator[tuple[str, list[protocol.Fold]]]) -> None:
    """Which leaves the default takes in the folds of a set, and what the choice costs."""
    taken: Counter[str] = Counter()
    ratios = []
    for seed, (_, folds) in enumerate(divisions):
        for fold in folds:
            start = time.process_time()
            leaves = oblivious("auto")(seed).fit(fold.train).leaves_
            middle = time.process_time()
            oblivious(leaves)(seed).fit(fold.train)
            ratios.append((middle - start) / (time.process_time() - middle))
            taken[leaves] += 1
    found = ", ".join(f"{kind} {count}" for kind, count in taken.items())
    print(f"{name}: {found}; {np.median(ratios):.2f} times the seconds, at most {max(ratios):.2f}", flush=True)


def run(argv: list[str] | None = None) -> None:
    """All sets; a set that the time did not allow is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=os.environ.get("TRUERANK_DATA", ""))
    parser.add_argument("--out", default="reproduce-output/defaults.jsonl")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--assignments", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no fit after this many")
    parser.add_argument("--leaves", action="store_true", help="only which leaves the default takes")
    args = parser.parse_args(argv or [])
    if not args.data:
        print("(set TRUERANK_DATA to the folder of the collections)")
        return
    if args.leaves:
        for name in args.sets:
            print_leaves(name, folds_of(name, args.data, args.assignments))
        return
    store = protocol.ResultStore(args.out, {"benchmark": "defaults", "form": 1})
    deadline = time.monotonic() + args.seconds
    for name in args.sets:
        values: dict[str, list[dict[str, np.ndarray]]] = {ranker: [] for ranker in (*OURS, *PEERS)}
        seconds: dict[str, list[float]] = {ranker: [] for ranker in values}
        for number, (label, folds) in enumerate(folds_of(name, args.data, args.assignments)):
            rankers = {**OURS, **PEERS}
            keys = [
                {"set": name, "folds": label, "fold": fold.name, "ranker": ranker}
                for ranker in rankers
                for fold in folds
            ]
            if time.monotonic() > deadline and not all(key in store for key in keys):
                print(f"({name}: {label} was left out for want of time)")
                break
            for ranker, make in rankers.items():
                pieces = [
                    store.compute(
                        {"set": name, "folds": label, "fold": fold.name, "ranker": ranker},
                        lambda fold=fold, make=make, seed=number: piece(make, fold, seed),
                    )
                    for fold in folds
                ]
                pooled = {m: protocol.pool(folds, [one["test"][m] for one in pieces]) for m in MEASURES}
                values[ranker].append(pooled)
                seconds[ranker] += [one["seconds"] for one in pieces]
        if values["LGBMRanker"]:
            show(name, values, {ranker: float(np.median(taken)) for ranker, taken in seconds.items()})


if __name__ == "__main__":
    import sys

    run(sys.argv[1:])
