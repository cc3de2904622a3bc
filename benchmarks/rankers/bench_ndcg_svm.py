"""Training on nDCG@10 by the ramp bound beside training on AP, both judged by nDCG@10: published and random folds.

C (and the round of the ramp bound) is chosen by nDCG@10 of the validation queries, from one list for both. Measures are
averaged over ties.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import collections
from reproductions import protocol
from truerank.measures import parse_measure
from truerank.rankers.measure_svm import MeasureSVM
from truerank.significance import paired_t, randomisation, wilcoxon, win_loss

# In the mean loss; times 1/63 they are about .1 to 10 in the sum over OHSUMED's training queries.
VALUES_OF_C = [6.0, 20.0, 60.0, 200.0, 600.0]
ASSIGNMENTS = 10
MEASURE = "nDCG@10"


def run() -> None:
    """One table."""
    root = collections()
    if root is None:
        return
    print("| | folds | AP | nDCG@10 | difference | wins/losses | t | Wilcoxon | randomisation |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ("ohsumed", "mq2008"):
        collection = protocol.load_collection(root, name)
        groups = [("published", [protocol.letor_folds(collection)])]
        random = [protocol.random_folds(collection.data, seed) for seed in range(ASSIGNMENTS)]
        groups.append((f"{ASSIGNMENTS} assignments", random))
        for label, assignments in groups:
            means, values = [], []
            for trained_on in ("AP", MEASURE):
                by_query = [test_values(trained_on, folds, collection.convention) for folds in assignments]
                values.append(np.mean(by_query, axis=0))
                means.append(float(np.mean(values[-1])))
            counts = win_loss(values[1], values[0])
            cells = [name, label, *(f"{mean:.4f}" for mean in means), f"{means[1] - means[0]:+.4f}"]
            cells.append(f"{counts.wins}/{counts.losses}")
            cells += [f"{test(values[1], values[0]).p:.2g}" for test in (paired_t, wilcoxon, randomisation)]
            print(f"| {' | '.join(cells)} |", flush=True)


def test_values(trained_on: str, folds: list[protocol.Fold], convention: str) -> np.ndarray:
    """nDCG@10 of every query of the collection, by the ranker of the fold that tests it."""
    measure = parse_measure(MEASURE, convention)(ties="average")
    pieces = []
    for fold in folds:
        ranker = MeasureSVM(trained_on, C=VALUES_OF_C, rel=1, validation_measure=measure, convention=convention)
        ranker.fit(fold.train, eval_set=fold.valid)
        pieces.append(measure.per_query(fold.test.judgements(), protocol.grouped_scores(ranker, fold.test)).tolist())
    return protocol.pool(folds, pieces)
