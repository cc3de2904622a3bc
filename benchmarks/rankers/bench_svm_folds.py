"""SVM-MAP beside SVM-ROC, RankSVM and ridge: published folds and twenty random assignments of queries to folds.

Settings are chosen by validation MAP among the few of `reproductions/letor/learners.py`; the gap of the SVMs is 1e-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from reproductions.letor.learners import LEARNERS

from benchmarks.harness import collections
from reproductions import protocol
from truerank.measures import parse_measure
from truerank.models.registry import ranker_class
from truerank.significance import paired_t, randomisation, wilcoxon, win_loss

NAMES = ("SVM-MAP", "SVM-ROC", "RankSVM", "ridge")
ASSIGNMENTS = 20


def run() -> None:
    """Both tables of both collections."""
    root = collections()
    if root is None:
        return
    for name in ("ohsumed", "mq2008"):
        collection = protocol.load_collection(root, name)
        print(f"\n**{name}** (convention {collection.convention})\n")
        print("| | published folds | mean ± sd | SVM-MAP's difference | wins/losses | t | Wilcoxon | randomisation |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        reference = np.empty(0)
        for learner in NAMES:
            published, _ = test_precision(learner, protocol.letor_folds(collection), collection.convention)
            means, by_query = zip(
                *(
                    test_precision(learner, protocol.random_folds(collection.data, seed), collection.convention)
                    for seed in range(ASSIGNMENTS)
                )
            )
            values = np.mean(by_query, axis=0)
            cells = [f"{published:.4f}", f"{np.mean(means):.4f} ± {np.std(means, ddof=1):.4f}"]
            if learner == NAMES[0]:
                reference = values
            else:
                counts = win_loss(reference, values)
                tests = [test(reference, values).p for test in (paired_t, wilcoxon, randomisation)]
                cells += [f"{np.mean(reference - values):+.4f}", f"{counts.wins}/{counts.losses}"]
                cells += [f"{p:.2g}" for p in tests]
            print(f"| {learner} | {' | '.join(cells)} |", flush=True)


def test_precision(name: str, folds: list[protocol.Fold], convention: str) -> tuple[float, np.ndarray]:
    """Mean of the test folds' MAP, and AP by query of the whole collection."""
    measure = parse_measure("AP", convention)
    learner = next(one for one in LEARNERS if one.name == name)
    fixed: dict[str, Any] = {"tol": 1e-4} if learner.ranker == "measure-svm" else {}
    pieces = []
    for fold in folds:
        chosen = protocol.select(
            [settings | fixed for settings in learner.settings],
            lambda settings, f: ranker_class(learner.ranker)(**settings).fit(f.train),
            fold,
            measure,
        )
        scores = protocol.grouped_scores(chosen.ranker, fold.test)
        pieces.append(measure.per_query(fold.test.judgements(), scores).tolist())
    by_query = protocol.pool(folds, pieces)
    return protocol.mean_of_folds(folds, by_query), by_query
