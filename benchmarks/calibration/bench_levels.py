"""Calibrated rankers: held-out scores of the folds pooled as they come, or on the final ranker's level.

Half of the queries train, the others test, two draws. Log loss in nats of P(relevant) on the test queries: the pooled
calibrator fitted to cross-fitted scores as the folds' rankers gave them, and brought to the level of the ranker of all
training queries (`on_one_level`, what `CalibratedRanker` does); beside them the share of relevant documents. MQ2008 and
OHSUMED need TRUERANK_DATA.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truerank.calibration.pool import PooledCalibrator, held_out_losses
from truerank.calibration.ranker import cross_fitted_scores
from truerank.data.ranking_data import RankingData
from truerank.data.samples import load_sample
from truerank.data.splits import query_folds
from truerank.io.letor.read import read_letor
from truerank.models.registry import ranker_class
from truerank.rankers.pipeline import fit_ranker, ranker_scores

RANKERS = ("ridge", "rank-svm", "adarank", "list-net", "oblivious-boosting", "rank-boost", "pairwise-descent")


def collections() -> Iterator[tuple[str, RankingData]]:
    yield "Cranfield (the sample)", load_sample("cranfield-text")
    root = Path(os.environ.get("TRUERANK_DATA", ""))
    if not os.environ.get("TRUERANK_DATA"):
        print("TRUERANK_DATA names no folder of collections: MQ2008 and OHSUMED are left out")
        return
    for name, folder, parts in (("MQ2008", "letor4-mq2008", 2), ("OHSUMED", "letor3-ohsumed/querylevelnorm", 3)):
        files = [next((root / folder).glob(f"S{k}.txt*")) for k in range(1, parts + 1)]
        yield name, RankingData.concatenate([read_letor(file) for file in files])


def as_they_come(ranker: Any, data: RankingData) -> np.ndarray:
    """Cross-fitted scores without a common level."""
    scores = np.empty(data.n_rows)
    for fold in query_folds(data.n_queries, 5, query_ids=data.query_ids):
        rest = data.take_queries(np.setdiff1d(np.arange(data.n_queries), fold))
        scores[np.isin(data.query_index, fold)] = ranker_scores(fit_ranker(ranker, rest), data.take_queries(fold))
    return scores


def run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in collections():
            for ranker_name in RANKERS:
                ranker = ranker_class(ranker_name)()
                sums = np.zeros(3)
                for draw in range(2):
                    train, test = (data.take_queries(h) for h in query_folds(data.n_queries, 2, random_state=draw))
                    fitted = fit_ranker(ranker, train)
                    y, relevant, new = train.y >= 1, test.y >= 1, ranker_scores(fitted, test)
                    for k, scores in enumerate(
                        (as_they_come(ranker, train), cross_fitted_scores(ranker, train, fitted=fitted))
                    ):
                        pool = PooledCalibrator(random_state=0).fit(scores, y, groups=train.query_index)
                        sums[k] += held_out_losses(pool.log_odds(new), relevant).mean()
                    share = np.full(test.n_rows, np.log(y.mean() / (1 - y.mean())))
                    sums[2] += held_out_losses(share, relevant).mean()
                pooled, levelled, share = sums / 2
                print(f"| {name}, {ranker_name} | {pooled:.4f} | {levelled:.4f} | {share:.4f} |", flush=True)
