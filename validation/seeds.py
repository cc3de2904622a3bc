"""Error of the test of learners over queries and seeds: equal learners, simulated and trained on MQ2008.

"Trained" fits one learner with 24 seeds on five folds once. A draw gives two learners different seeds of them, and
takes queries with replacement, so that there is no true difference. "One seed" is the test over queries for the first
seed of each.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from truerank.inspection.seeds import crossed_test
from truerank.significance.intervals import mean_interval
from validation.harness import FEWEST, Row, collections, rate, streams

PROMISE = "Two equal learners differ over queries and seeds in at most 5 % of comparisons, with three seeds or more."
REPLICATIONS = 5_300
_LEVEL = 0.05
_POOL = 24  # seeds that are trained


def run(replications: int, seed: int) -> list[Row]:
    """Simulated crossed effects, then trained learners."""
    rows = []
    for seeds, queries in ((3, 50), (5, 50), (10, 50), (3, 150), (10, 150)):
        for of_seeds in (0.0, 0.1, 0.3, 1.0):
            shape = (seeds, queries)
            found = [
                _rejects(
                    rng.normal(size=queries) + of_seeds * rng.normal(size=(seeds, 1)) + 0.7 * rng.normal(size=shape)
                )
                for rng in streams(seed, replications)
            ]
            setting = f"{queries} queries, {seeds} seeds, deviation of seeds {of_seeds:g} of that of queries"
            rows += _rows(setting, found)
    pool = trained() if replications >= FEWEST else None
    for seeds, queries in ((3, 50), (5, 150), (10, 150)) if pool is not None else ():
        found = []
        for rng in streams(seed + 1, replications):
            chosen, topics = rng.permutation(len(pool))[: 2 * seeds], rng.integers(0, pool.shape[1], queries)
            values = pool[chosen][:, topics]
            found.append(_rejects(values[:seeds] - values[seeds:]))
        rows += _rows(f"pairwise descent of 300 steps on MQ2008, {queries} queries, {seeds} seeds", found)
    return rows


def _rejects(d: np.ndarray) -> tuple[bool, bool]:
    one = mean_interval(d[0])
    return crossed_test(d)[-1] < _LEVEL, bool(one.low > 0 or one.high < 0)


def _rows(setting: str, found: list[tuple[bool, bool]]) -> list[Row]:
    crossed, one = np.array(found).T
    return [rate(setting, "error of the crossed test", crossed, high=_LEVEL), rate(setting, "error with one seed", one)]


@lru_cache(maxsize=1)
def trained() -> np.ndarray | None:
    """nDCG@10 (seeds, 784 queries) of one learner on five folds of MQ2008; None without the data."""
    folder = collections()
    if folder is None:
        return None
    from truerank import PairwiseDescent, RankingData, cross_validate, read_letor

    parts = [read_letor(folder / "letor4-mq2008" / f"S{k}.txt.gz") for k in range(1, 6)]
    data = RankingData.concatenate(parts)
    learner = {"descent": PairwiseDescent(max_iter=300)}
    found = cross_validate(learner, data, "nDCG@10", seeds=range(_POOL), random_state=0)
    return found.values["descent"]["nDCG@10"]
