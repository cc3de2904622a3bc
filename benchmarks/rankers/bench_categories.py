"""Categorical features beside LightGBM's and CatBoost's: test nDCG@10 without and with a category of the document.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_categories

The categories are derived from the documents' identifiers: on MQ2008 the first part of `GX008-86-4444840`, one of some
270 bundles in which GOV2 was crawled, so that a site's pages stand together; on OHSUMED the thousand of the document's
number, which follows MEDLINE's order. Five published folds, 100 trees of depth 6 at rate .1 for everybody; ours with
squared error, LightGBM lambdarank, CatBoost QueryRMSE. Convention `ranklib`, ties averaged; p: paired t-test by query
of "with" against "without".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from reproductions import protocol
from truerank import ObliviousBoosting
from truerank.core.printing import table
from truerank.measures import parse_measure
from truerank.significance import paired_t

Learner = Callable[[Any, np.ndarray, np.ndarray, "int | None"], np.ndarray]  # rows, X, test X, the category's column


def truerank_scores(leaves: str) -> Learner:
    def scores(train: Any, X: np.ndarray, other: np.ndarray, category: int | None) -> np.ndarray:
        ranker = ObliviousBoosting(leaves, categorical=None if category is None else [category])
        return np.asarray(ranker.fit(X, train.y, qid=train.query_index).predict(other))

    return scores


def lightgbm_scores(train: Any, X: np.ndarray, other: np.ndarray, category: int | None) -> np.ndarray:
    import lightgbm

    params = {
        "objective": "lambdarank", "num_leaves": 64, "max_depth": 6, "learning_rate": 0.1, "num_threads": 1, "seed": 0,
        "verbose": -1,
    }  # fmt: skip
    columns = [] if category is None else [category]
    rows = lightgbm.Dataset(X, train.y, group=train.group_sizes, categorical_feature=columns)
    return np.asarray(lightgbm.train(params, rows, 100).predict(other))


def catboost_scores(train: Any, X: np.ndarray, other: np.ndarray, category: int | None) -> np.ndarray:
    import catboost
    import pandas as pd

    frames = [pd.DataFrame(values) for values in (X, other)]
    columns = [] if category is None else [category]
    for frame in frames:
        for k in columns:
            frame[k] = frame[k].astype(np.int64).astype(str)
    settings = {
        "loss_function": "QueryRMSE", "iterations": 100, "depth": 6, "learning_rate": 0.1, "thread_count": 1,
        "random_seed": 0, "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    model = catboost.CatBoost(settings)
    model.fit(catboost.Pool(frames[0], train.y, group_id=train.query_index, cat_features=columns))
    return np.asarray(model.predict(frames[1]))


LEARNERS: dict[str, Learner] = {
    "truerank, fuzzy leaves": truerank_scores("fuzzy"),
    "truerank, constant leaves": truerank_scores("constant"),
    "LightGBM lambdarank": lightgbm_scores,
    "CatBoost QueryRMSE": catboost_scores,
}


def with_category(name: str, data: Any) -> np.ndarray:
    """X with the number of each document's category as the last column."""
    ids = [str(one) for one in data.doc_ids]
    numbers = [int(one[2:5]) if name == "mq2008" else int(one) // 1000 for one in ids]
    return np.column_stack([data.X, np.array(numbers, dtype=np.float64)])


def run() -> None:
    """Print a table."""
    measure = parse_measure("nDCG@10", "ranklib").tie_averaged()
    rows: list[list[Any]] = []
    for name in ("mq2008", "ohsumed"):
        collection = protocol.load_collection(os.environ["TRUERANK_DATA"], name)
        for learner, scores in LEARNERS.items():
            values: dict[bool, list[np.ndarray]] = {False: [], True: []}
            for fold in protocol.letor_folds(collection):
                X, other = with_category(name, fold.train), with_category(name, fold.test)
                p = fold.train.n_features
                plain = scores(fold.train, np.ascontiguousarray(X[:, :p]), np.ascontiguousarray(other[:, :p]), None)
                for with_it, found in ((False, plain), (True, scores(fold.train, X, other, p))):
                    values[with_it].append(np.asarray(measure.per_query(fold.test.judgements(), found)))
            without, with_one = (np.concatenate(values[key]) for key in (False, True))
            gap, test = with_one.mean() - without.mean(), paired_t(with_one, without)
            means = [f"{without.mean():.4f}", f"{with_one.mean():.4f}"]
            rows.append([name, learner, *means, f"{gap:+.4f}", f"{test.p:.2g}"])
    sys.stdout.write(table(rows, ["set", "learner", "without", "with", "gain", "p"]) + "\n")


if __name__ == "__main__":
    run()
