"""Training on the labels of model judges: raw, or calibrated by few human grades (MQ2008, made judges, test nDCG@10).

    python -m benchmarks judging/bench_training_grades

Three made judges label the training rows: a generous one, a noisy one, and one who prefers long documents (the bias
depends on a feature, which a calibration by label cannot see). People have graded a tenth of the rows. `calibrated` is
the expected grade of a row by its label, its own human grade left out, and the human grade where there is one;
`weights` counts a row by how well its grade is known. Means over the five folds; `±` is the standard error, over all
test queries, of the difference to the raw labels.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import collections
from truerank import ObliviousBoosting, RankingData, evaluate, read_letor
from truerank.core.printing import table
from truerank.judging.predictions import Factors

_HUMAN = 0.1
_LEARNERS = {
    "squared error": {"objective": "mse", "n_estimators": 60, "depth": 4},
    "LambdaRank": {"objective": "lambdarank", "n_estimators": 60, "depth": 4},
}
_LENGTH = 20  # column of the length of the whole document
_CONFUSION = {
    "generous": [[0.45, 0.30, 0.25], [0.10, 0.30, 0.60], [0.05, 0.15, 0.80]],
    "noisy": [[0.60, 0.25, 0.15], [0.30, 0.40, 0.30], [0.20, 0.30, 0.50]],
}


def labels_of(judge: str, data: RankingData, rng: np.random.Generator) -> np.ndarray:
    """Labels (n,) 0, 1 and 2 of a made judge."""
    grades = data.y.astype(int)
    if judge in _CONFUSION:
        edges = np.cumsum(np.array(_CONFUSION[judge])[grades], axis=1)
        return (rng.random(len(grades))[:, None] > edges[:, :2]).sum(axis=1).astype(float)
    shift = 1.5 * (data.X[:, _LENGTH] - 0.5) + rng.normal(0.0, 0.5, len(grades))
    return np.clip(np.round(grades + shift), 0, 2)


def ways(labels: np.ndarray, grades: np.ndarray, judged: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Training grades and weights of the rows, by name."""
    factors = Factors([(labels, 2.0)], len(labels))
    expected = factors.predict(judged, np.where(judged, grades, 0.0))
    squares = np.where(judged, (grades - expected) ** 2, 0.0)
    variance = np.maximum(factors.predict(judged, squares), 0.1 * squares[judged].mean())
    filled = np.where(judged, grades, expected)
    spread = np.var(grades[judged])
    weights = np.where(judged, 1.0, spread / (spread + variance))
    return {
        "raw labels": (labels, None),
        "raw labels, human grades where known": (np.where(judged, grades, labels), None),
        "human grades alone": (grades, judged.astype(float)),
        "calibrated": (filled, None),
        "calibrated, weights": (filled, weights),
        "all human grades": (grades, None),
    }


def run() -> None:
    """Train on every way's grades and test on the human grades of the fold's test queries."""
    folder = collections()
    if folder is None:
        print("needs the collections that TRUERANK_DATA names")
        return
    parts = [read_letor(next((folder / "letor4-mq2008").glob(f"S{k}.*"))) for k in range(1, 6)]
    rows = []
    for judge in (*_CONFUSION, "prefers length"):
        values: dict[tuple[str, str], list[np.ndarray]] = {}
        for fold in range(5):
            train = RankingData.concatenate([parts[(fold + k) % 5] for k in range(3)])
            test = parts[(fold + 4) % 5]
            rng = np.random.default_rng([fold, len(judge)])
            judged = rng.random(train.n_rows) < _HUMAN
            for way, (grades, weights) in ways(labels_of(judge, train, rng), train.y, judged).items():
                keep = weights is None or weights > 0
                rows_kept = np.flatnonzero(np.broadcast_to(keep, train.n_rows))
                for learner, settings in _LEARNERS.items():
                    ranker = ObliviousBoosting(**settings, random_state=0)
                    own = None if weights is None else weights[rows_kept]
                    ranker.fit(train.X[rows_kept], grades[rows_kept], qid=train.qid[rows_kept], sample_weight=own)
                    found = evaluate(test, ranker.predict(test.X), "nDCG@10")
                    values.setdefault((learner, way), []).append(found.per_query["nDCG@10"])
        for (learner, way), folds in values.items():
            own, raw = np.concatenate(folds), np.concatenate(values[learner, "raw labels"])
            error = float((own - raw).std(ddof=1) / np.sqrt(len(own)))
            rows.append([judge, learner, way, f"{own.mean():.4f}", f"{own.mean() - raw.mean():+.4f}", f"{error:.4f}"])
    print(table(rows, ["judge", "learner", "training grades", "nDCG@10", "less raw labels", "±"]))
