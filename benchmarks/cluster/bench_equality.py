"""Every learner, measure and calibrator on MQ2008 cut into 1, 3, 7 and 50 partitions beside one machine.

python -m benchmarks cluster/bench_equality
python -m benchmarks.cluster.bench_equality calibrators
python -m benchmarks.cluster.bench_equality RankSVM MeasureSVM
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.cluster.common import cut
from truerank import (
    AdaRank,
    CalibratedRanker,
    ListNet,
    MeasureSVM,
    ObliviousBoosting,
    PointwiseSVM,
    RankBoost,
    RankingData,
    RankSVM,
    RidgeRanker,
    SingleFeature,
    evaluate,
    read_letor,
)
from truerank.calibration import CALIBRATORS
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
    "RankSVM, hinge, tol 1e-10": lambda: RankSVM(loss="hinge", tol=1e-10),
    "MeasureSVM, AP, tol 1e-10": lambda: MeasureSVM("AP", tol=1e-10),
    "PointwiseSVM (there liblinear)": lambda: PointwiseSVM(),
    "PointwiseSVM, tol 1e-9": lambda: PointwiseSVM(tol=1e-9, max_iter=1_000_000),
    "ridge": lambda: RidgeRanker(),
    "best single feature": lambda: SingleFeature(),
}
MEASURES = "AP nDCG nDCG@10 RR P@10 ERR RBP Bpref ROC"


CUTS = (1, 3, 7, 50)


def run(chosen: Sequence[str] = ("learners", "calibrators")) -> None:
    """Both tables, or one of them, or the learners whose names begin so."""
    folder = os.environ.get("TRUERANK_DATA")
    if folder is None:
        print("(needs TRUERANK_DATA)")
        return
    train = read_letor(next(Path(folder, "letor4-mq2008").rglob("S1.txt*")))
    print(f"\n**MQ2008 S1, {train.n_rows:,} rows, {train.n_queries} queries, partitions in this process**\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for name in MAKES if "learners" in chosen or name.startswith(tuple(chosen))]
        if names:
            learners(train, names)
        if "calibrators" in chosen:
            calibrators(train)


def learners(train: RankingData, names: Sequence[str]) -> None:
    """Largest differences, relative to the largest score, and of the objective where there is one."""
    print("| learner | partitions | largest difference of scores | of the objective, relative | measures equal |")
    print("| --- | --- | --- | --- | --- |")
    for name in names:
        make = MAKES[name]
        one = make().fit(train)
        scores = one.predict(train)
        for k in CUTS:
            data = from_parts(cut(train, k))
            many = make().fit(data)
            difference = np.abs(many.predict(train) - scores).max() / max(np.abs(scores).max(), 1e-300)
            objective = ""
            if hasattr(one, "objective_"):
                objective = f"{abs(many.objective_ - one.objective_) / abs(one.objective_):.1e}"
            parts = evaluate(data, one.predict(data), MEASURES)
            same = dict(parts) == dict(evaluate(train, scores, MEASURES))
            print(f"| {name} | {k} | {difference:.1e} | {objective} | {same} |", flush=True)


def calibrators(train: RankingData) -> None:
    """Largest differences of probabilities, of one ranker's scores and of those of folds whose rankers train there."""
    print("\n| calibrator | partitions | largest difference of a probability | with cv=3 |\n| --- | --- | --- | --- |")
    ridge = RidgeRanker().fit(train)
    for name in CALIBRATORS:
        held = CalibratedRanker(ridge, name, cv="prefit").fit(train).predict_proba(train)
        folds = CalibratedRanker(RidgeRanker(), name, cv=3, random_state=0).fit(train).predict_proba(train)
        for k in CUTS:
            data = from_parts(cut(train, k))
            first = CalibratedRanker(ridge, name, cv="prefit").fit(data).predict_proba(train)
            second = CalibratedRanker(RidgeRanker(), name, cv=3, random_state=0).fit(data).predict_proba(train)
            print(
                f"| {name} | {k} | {np.abs(first - held).max():.1e} | {np.abs(second - folds).max():.1e} |", flush=True
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chosen", nargs="*", default=["learners", "calibrators"])
    run(parser.parse_args().chosen)
