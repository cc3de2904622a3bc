"""Every learner on MQ2008 cut into 1, 3, 7 and 50 partitions beside one machine."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np

from benchmarks.cluster.common import cut
from truerank import (
    AdaRank,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    RankBoost,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    evaluate,
    read_letor,
)
from truerank.cluster import from_parts

MAKES = {
    "trees, plain leaves, mse": lambda: ObliviousBoosting("constant", n_estimators=20),
    "trees, plain leaves, lambdarank": lambda: ObliviousBoosting("constant", objective="lambdarank", n_estimators=20),
    "trees, plain leaves, yetirank": lambda: ObliviousBoosting("constant", objective="yetirank", n_estimators=10),
    "trees, fuzzy leaves": lambda: ObliviousBoosting("fuzzy", n_estimators=20),
    "trees, polynomial leaves": lambda: ObliviousBoosting("polynomial", n_estimators=10),
    "AdaRank": lambda: AdaRank(),
    "RankBoost": lambda: RankBoost(n_estimators=100),
    "ListNet": lambda: ListNet(),
    "RankSVM, squared hinge": lambda: RankSVM(),
    "RankSVM, hinge": lambda: RankSVM(loss="hinge"),
    "MeasureSVM, AP": lambda: MeasureSVM("AP"),
    "MeasureSVM, nDCG@10 (ramp)": lambda: MeasureSVM("nDCG@10"),
    "ridge": lambda: RidgeRanker(),
    "best single feature": lambda: SingleFeature(),
}
MEASURES = "AP nDCG nDCG@10 RR P@10 ERR RBP Bpref ROC"


def run() -> None:
    """Largest differences, relative to the largest score, and of the objective where there is one."""
    folder = os.environ.get("TRUERANK_DATA")
    if folder is None:
        print("(needs TRUERANK_DATA)")
        return
    train = read_letor(next(Path(folder, "letor4-mq2008").rglob("S1.txt*")))
    print(f"\n**MQ2008 S1, {train.n_rows:,} rows, {train.n_queries} queries, partitions in this process**\n")
    print("| learner | partitions | largest difference of scores | of the objective, relative | measures equal |")
    print("| --- | --- | --- | --- | --- |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in MAKES.items():
            one = make().fit(train)
            scores = one.predict(train)
            for k in (1, 3, 7, 50):
                data = from_parts(cut(train, k))
                many = make().fit(data)
                difference = np.abs(many.predict(train) - scores).max() / max(np.abs(scores).max(), 1e-300)
                objective = ""
                if hasattr(one, "objective_"):
                    objective = f"{abs(many.objective_ - one.objective_) / abs(one.objective_):.1e}"
                parts = evaluate(MEASURES, data, one.predict(data))
                same = dict(parts) == dict(evaluate(MEASURES, train, scores))
                print(f"| {name} | {k} | {difference:.1e} | {objective} | {same} |", flush=True)


if __name__ == "__main__":
    run()
