"""Contributions of 10,000 random pairs of documents against the difference of their scores, for every kind of ranker.

Rankers are trained on two fifths of MQ2008, pairs drawn within the queries of the others; trees are explained against
200 reference rows. Leaves of each kind stand by themselves, and a forest of another library for models from elsewhere.
BENCH_RANKERS names some of them, PAIRS another number of pairs.
Needs the collections that TRUERANK_DATA names.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from truerank import RankingData, read_letor
from truerank.inspection.explanation import _contributions, _predict
from truerank.inspection.shapley import tree_shapley
from truerank.models.registry import RANKERS, ranker_class

PAIRS = int(os.environ.get("PAIRS", "10000"))
FEWER = {"n_estimators": 30, "max_iter": 200}


def rankers() -> dict[str, Any]:
    """Unfitted rankers by name, those of BENCH_RANKERS alone where it is set."""
    kinds: dict[str, Any] = {name: ranker_class(name)() for name in RANKERS if name != "oblivious-boosting"}
    for leaves in ("constant", "fuzzy", "polynomial"):
        kinds[f"oblivious-boosting ({leaves})"] = ranker_class("oblivious-boosting")(leaves=leaves)
    for ranker in kinds.values():
        known = ranker.get_params()
        ranker.set_params(**{key: value for key, value in FEWER.items() if key in known})
    kinds["random-forest (scikit-learn)"] = RandomForestRegressor(10, max_depth=4, random_state=0)
    chosen = os.environ.get("BENCH_RANKERS")
    return kinds if chosen is None else {k: v for k, v in kinds.items() if k in chosen.split(",")}


def run() -> None:
    folder = Path(os.environ["TRUERANK_DATA"]) / "letor4-mq2008"
    train = read_letor([folder / "S1.txt.gz", folder / "S2.txt.gz"])
    test = read_letor([folder / f"S{k}.txt.gz" for k in (3, 4, 5)])
    draw = np.random.default_rng(0)
    reference = train.X[draw.choice(train.n_rows, 200, replace=False)].astype(np.float64)
    queries = draw.choice(test.n_queries, PAIRS)
    pairs = [draw.choice(size, 2, replace=False) for size in np.diff(test.offsets)[queries].tolist()]
    print(f"{PAIRS} pairs\n\n| ranker | largest gap of sum and difference | of the largest score | CPU s |")
    print("| --- | --- | --- | --- |")
    for name, ranker in rankers().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rounds, which is the point
            ranker.fit(*((train.X, train.y) if isinstance(ranker, RandomForestRegressor) else (train,)))
        start = time.process_time()
        gaps, scores = (_trees if hasattr(ranker, "tree_features_") else _one_by_one)(
            ranker, test, queries, pairs, reference
        )
        worst, largest = float(np.abs(gaps).max()), float(np.abs(scores).max())
        share = worst / largest if largest else 0.0
        print(f"| {name} | {worst:.2g} | {share:.2g} | {time.process_time() - start:.1f} |", flush=True)


def _one_by_one(
    ranker: Any, test: RankingData, queries: np.ndarray, pairs: list[np.ndarray], reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of contributions less differences of scores (pairs,), and the scores met."""
    gaps, met = [], []
    for query, (i, j) in zip(queries.tolist(), pairs):
        X = np.ascontiguousarray(test.X[test.offsets[query] : test.offsets[query + 1]], dtype=np.float64)
        scores = _predict(ranker, X)
        contributions, _ = _contributions(ranker, X, int(i), int(j), reference)
        gaps.append(contributions.sum() - (scores[i] - scores[j]))
        met += [scores[i], scores[j]]
    return np.array(gaps), np.array(met)


def _trees(
    ranker: Any, test: RankingData, queries: np.ndarray, pairs: list[np.ndarray], reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for trees, whose values of a row do not depend on the rows beside it: all pairs at once."""
    rows = test.X[(test.offsets[queries][:, None] + np.array(pairs)).ravel()].astype(np.float64)
    scores = _predict(ranker, rows)
    values = tree_shapley(ranker, rows, reference).values
    return (values[::2] - values[1::2]).sum(axis=1) - (scores[::2] - scores[1::2]), scores


if __name__ == "__main__":
    run()
