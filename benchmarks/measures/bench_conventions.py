"""Every convention against the program it is named for, on random inputs: how many values differ.

TRUERANK_INPUTS is the number of inputs of each program, by default 2,000; TRUERANK_CONVENTIONS are the conventions, by
default all. `convention_peers` says how programs are found.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measures.convention_peers import PEERS, Missing, Peer, Refused
from truerank import judge_run
from truerank.core.errors import TruerankError
from truerank.data.ranking_data import Judgements
from truerank.io.trec import as_qrels, as_run
from truerank.measures import Ranking, parse_measure
from truerank.measures.conventions import CONVENTIONS

RUNS = ("trec", "trec9", "gdeval", "ranx", "ir_measures")
DIGITS = {"trec": 4, "gdeval": 5, "letor4": 4, "mslr": 4}  # that the program prints
SINGLE = ("xgboost", "catboost", "ranklib")  # grades or values are float32 there
LISTED = {  # known differences, by convention, and kind of grades or measure
    ("ranklib", "fractional"): "RankLib truncates gains, and grades above 0 are relevant; here grades are numbers",
    ("ranklib", "large"): "RankLib's gains overflow from grade 31",
    ("ranx", "Bpref"): "ranx divides 0 by 0 without relevant or without other judged documents; here 0 and 1",
}
KINDS = ("binary", "graded", "negative", "fractional", "large")


@dataclass
class Case:
    """An input: qrels and a run, or rows in the order of their queries."""

    kind: str
    qrels: dict[str, dict[str, float]] = field(default_factory=dict)
    run: dict[str, dict[str, float]] = field(default_factory=dict)
    y: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    qid: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))


def grades_of(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Grades of a kind; some lists have no positive grade."""
    if rng.random() < 0.15:
        return np.zeros(n)
    if kind == "binary":
        return rng.integers(0, 2, n).astype(float)
    if kind == "negative":
        return rng.integers(-2, 4, n).astype(float)
    if kind == "fractional":
        return np.round(rng.uniform(-0.9 if rng.random() < 0.3 else 0, 3, n), int(rng.integers(1, 3)))
    return rng.integers(0, 5 if kind == "graded" else 41, n).astype(float)


def scores_of(rng: np.random.Generator, n: int, distinct: bool = False) -> np.ndarray:
    """Scores: ties, differences below float32, large and small ones, all equal, or all different."""
    kind = 4 if distinct else rng.integers(0, 5)
    if kind == 0:
        return rng.integers(0, 4, n) + rng.integers(0, 2, n) * 1e-9
    if kind == 1:
        return rng.choice([0.0, -0.0, 1e30, -1e30, 1e-30, 1e300, -1e300], n)
    if kind == 2:
        return np.full(n, 0.5)
    return rng.integers(0, 6, n).astype(float) if kind == 3 else rng.permutation(n) - n / 3


def made_up(rng: np.random.Generator, convention: str) -> Case:
    """Return a random input of the form that a program reads."""
    case = Case(str(rng.choice(KINDS)))
    if convention not in RUNS:
        case.sizes = rng.choice([1, 2, 3, 5, 8, 14, 30], int(rng.integers(1, 5)))
        case.qid = np.repeat(np.arange(len(case.sizes)), case.sizes)
        case.y = np.concatenate([grades_of(rng, case.kind, n) for n in case.sizes])
        case.scores = np.concatenate([scores_of(rng, n) for n in case.sizes])
        return case
    pool = [f"d{i}" for i in range(16)] + ["é", "Ω1", "10", "9", "A", "a"]
    topics = [str(topic) for topic in range(101, 101 + int(rng.integers(1, 5)))]
    for topic in topics:
        names = rng.choice(pool, int(rng.integers(1, 20)), replace=False).tolist()
        grades = grades_of(rng, case.kind, len(names))
        grades = np.trunc(grades).astype(int) if convention == "ir_measures" else grades  # it reads whole ones
        case.qrels[topic] = dict(zip(names, grades.tolist()))
    for topic in [*topics[int(rng.random() < 0.2) :], *(["777"] if rng.random() < 0.2 else [])]:
        names = rng.choice(pool, int(rng.choice([1, 2, 5, 12, 20])), replace=False).tolist()
        case.run[topic] = dict(zip(names, scores_of(rng, len(names), convention == "ranx").tolist()))
    return case


@dataclass
class Tally:
    """Counts of compared values and their differences, by measure."""

    compared: Counter[str] = field(default_factory=Counter)
    different: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)  # by truerank
    largest: dict[str, float] = field(default_factory=dict)
    first: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    refused: int = 0  # by the program

    def add(self, name: str, theirs: float, ours: float, tolerance: float, case: Case, convention: str) -> None:
        """Count one value."""
        self.compared[name] += 1
        gap = abs(theirs - ours)
        if gap <= tolerance * max(1.0, abs(theirs)) or (np.isnan(theirs) and np.isnan(ours)):
            return
        if (convention, case.kind) in LISTED or (np.isnan(theirs) and (convention, name) in LISTED):
            self.listed[name] += 1
            return
        self.different[name] += 1
        self.largest[name] = max(self.largest.get(name, 0.0), gap)
        self.first.setdefault(name, (case, theirs, ours))


def ours_of(case: Case, convention: str, names: Iterable[str]) -> dict[str, Any]:
    """Return the mean of each measure and its values by query; None for a measure that truerank refuses."""
    if convention in RUNS:
        judgements, scores = judge_run(as_qrels(case.qrels), as_run(case.run))
        missing = {"missing_topics": "skip"}
    else:
        judgements, grouping = Judgements.from_labels(case.y, case.qid)
        scores = case.scores if grouping.order is None else case.scores[grouping.order]
        missing = {}
    ranking, found = Ranking(judgements, scores), {}
    for name in names:
        try:
            if convention in CONVENTIONS:
                measure = parse_measure(name, convention)(**missing)
            else:
                measure = parse_measure(import_module(convention).parse_measure(name))
            values = measure.values(ranking)
            found[name] = measure.aggregate(values), dict(zip(judgements.query_ids.tolist(), values.tolist()))
        except TruerankError:
            found[name] = None
    return found


def compared(convention: str, peer: Peer, n_inputs: int, seed: int = 0) -> Tally:
    """Compare random inputs of one convention."""
    tally, tolerance = Tally(), 1e-6 if convention in SINGLE else 1e-9
    if convention in DIGITS:
        tolerance = 0.50001 * 10.0 ** -DIGITS[convention]
    printed = dict.fromkeys(("ERR@3", "nDCG(dcg='exp-log2')@3"), 5.0001e-6) if convention == "ir_measures" else {}
    for trial in range(n_inputs):
        case = made_up(np.random.default_rng([seed, trial]), convention)
        try:
            theirs = peer(case)
        except Refused:
            tally.refused += 1
            continue
        for name, own in ours_of(case, convention, theirs).items():
            values = theirs[name]
            if own is None:
                tally.declined[name] += 1
            elif isinstance(values, float):
                tally.add(name, values, own[0], printed.get(name, tolerance), case, convention)
            else:
                for query, value in values.items() if isinstance(values, dict) else enumerate(values):
                    if value is not None:  # refused by the program
                        tally.add(name, value, own[1][query], printed.get(name, tolerance), case, convention)
    return tally


def run() -> None:
    n_inputs = int(os.environ.get("TRUERANK_INPUTS", "2000"))
    wanted = os.environ.get("TRUERANK_CONVENTIONS", " ".join(PEERS)).split()
    print("convention | measure | values compared | different | listed | inputs that truerank refuses")
    print("--- | --- | --- | --- | --- | ---")
    for convention in wanted:
        try:
            peer = PEERS[convention]()
        except Missing as reason:
            print(f"{convention} | left out: {reason}")
            continue
        start = time.process_time()
        tally = compared(convention, peer, n_inputs)
        for name in dict.fromkeys([*tally.compared, *tally.declined]):
            different = str(tally.different[name])
            if name in tally.first:
                case, theirs, ours = tally.first[name]
                different += f" (at most {tally.largest[name]:.2g}; first {theirs!r} and {ours!r}, {case.kind} grades)"
            listed, declined = tally.listed[name], tally.declined[name]
            print(f"{convention} | {name} | {tally.compared[name]} | {different} | {listed} | {declined}")
        seconds = time.process_time() - start
        print(
            f"{convention}: {n_inputs} inputs, {tally.refused} refused by the program, {seconds:.0f} CPU s", flush=True
        )
    for (convention, what), reason in LISTED.items():
        print(f"listed: {convention}, {what}: {reason}")
