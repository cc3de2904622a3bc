"""Which leaves trees start with: AP and nDCG@10 of the validation queries, nothing selected.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_oblivious_defaults

Trained on the training queries of the five published folds of MQ2008 and OHSUMED (validation queries are the fold's
own, test queries are not looked at), of five random folds of MSLR's sample, and on the first three fifths of the
shipped sample (validation: the fourth). Convention `ranklib`, all other parameters at their defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproductions import protocol
from truerank import FuzzyLeaves, ObliviousBoosting, RankBoost, SingleFeature, load_sample, read_letor
from truerank.core.printing import table
from truerank.data.ranking_data import RankingData
from truerank.data.splits import query_folds
from truerank.measures import parse_measure

LEARNERS: dict[str, Any] = {
    "best single feature": SingleFeature(),
    "plain": ObliviousBoosting("constant"),
    "polynomial": ObliviousBoosting("polynomial"),
    **{
        f"fuzzy, {ties}, {width:g}": ObliviousBoosting(FuzzyLeaves(width, ties=ties))
        for ties in ("near", "average")
        for width in (0.05, 0.1, 0.15)
    },
    "rank-boost": RankBoost(),
    "rank-boost, ten thresholds": RankBoost(thresholds=10),
}
SETS = ("mq2008", "ohsumed", "mslr", "sample")
MEASURES = [parse_measure(name, "ranklib") for name in ("AP", "nDCG@10")]


def sets(wanted: Sequence[str] = ()) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """Name, and pairs of training and validation queries, of the sets that are named, or of all."""
    root = Path(os.environ["TRUERANK_DATA"])
    for name in wanted or SETS:
        if name == "mslr":
            data = read_letor(str(next((root / "mslr-web10k-sample").glob("*.txt.gz"))))
            yield name, in_five(data)
        elif name == "sample":
            sample = load_sample()
            yield name, [(sample.take_queries(range(135)), sample.take_queries(range(135, 180)))]
        else:
            folds = protocol.letor_folds(protocol.load_collection(root, name))
            yield name, [(fold.train, fold.valid) for fold in folds]


def in_five(data: RankingData) -> list[tuple[RankingData, RankingData]]:
    """Pairs of four fifths of the queries and the fifth, at random."""
    every = np.arange(data.n_queries)
    parts = query_folds(data.n_queries, 5, random_state=0)
    return [(data.take_queries(np.setdiff1d(every, part)), data.take_queries(part)) for part in parts]


def run() -> None:
    """Print the table."""
    rows: dict[str, list[Any]] = {name: [name] for name in LEARNERS}
    header = ["validation AP, nDCG@10"]
    for set_name, pairs in sets():
        header.append(set_name)
        for name, learner in LEARNERS.items():
            total = np.zeros(2)
            for train, valid in pairs:
                scores = learner.fit(train).predict(valid)
                total += [measure.mean(valid.judgements(), scores) * valid.n_queries for measure in MEASURES]
            mean = total / sum(valid.n_queries for _, valid in pairs)
            rows[name].append(f"{mean[0]:.4f} {mean[1]:.4f}")
    sys.stdout.write(table(list(rows.values()), header) + "\n")


if __name__ == "__main__":
    run()
