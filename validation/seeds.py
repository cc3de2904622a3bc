"""Error of the test of learners over queries and seeds: equal learners, simulated and trained on MQ2008.

"Trained" fits one learner with 24 seeds on five folds once. A draw gives two learners different seeds of them, and
takes queries with replacement, so that there is no true difference. "One seed" is the test over queries for the first
seed of each. All draws of a setting are decided together, and the first ones as the package decides them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import stdtrit

from truerank.inspection.seeds import crossed_test
from truerank.significance.intervals import mean_interval
from validation.harness import FEWEST, Row, collections, rate

PROMISE = "Two equal learners differ over queries and seeds in at most 5 % of comparisons, with three seeds or more."
REPLICATIONS = 5_300
_LEVEL = 0.05
_POOL = 24  # seeds that are trained
_CHECKED = 20  # draws that the package decides, too


def run(replications: int, seed: int) -> list[Row]:
    """Simulated crossed effects, then trained learners."""
    rows, rng = [], np.random.default_rng(seed)
    for seeds, queries in ((3, 50), (5, 50), (10, 50), (3, 150), (10, 150)):
        for of_queries, of_seeds in ((1.0, 0.0), (1.0, 0.1), (1.0, 0.3), (1.0, 1.0), (0.0, 0.1), (0.0, 1.0)):
            d = of_queries * rng.normal(size=(replications, 1, queries)) + 0.7 * rng.normal(
                size=(replications, seeds, queries)
            )
            d += of_seeds * rng.normal(size=(replications, seeds, 1))
            setting = f"deviation {of_queries:g} of queries, {of_seeds:g} of seeds, 0.7 of both"
            rows += _rows(f"{queries} queries, {seeds} seeds, {setting}", d)
    pool = trained() if replications >= FEWEST else None
    for seeds, queries in ((3, 50), (5, 150), (10, 150)) if pool is not None else ():
        chosen = rng.permuted(np.tile(np.arange(len(pool)), (replications, 1)), axis=1)[:, : 2 * seeds, None]
        values = pool[chosen, rng.integers(0, pool.shape[1], (replications, 1, queries))]
        setting = f"pairwise descent of 300 steps on MQ2008, {queries} queries, {seeds} seeds"
        rows += _rows(setting, values[:, :seeds] - values[:, seeds:])
    return rows


def _rows(setting: str, d: np.ndarray) -> list[Row]:
    """Rows of the rates of rejection for differences (draws, seeds, queries)."""
    crossed, one = _rejects(d), np.abs(_student(d[:, 0])) > stdtrit(d.shape[2] - 1, 1 - _LEVEL / 2)
    for k in range(min(_CHECKED, len(d))):
        assert (crossed_test(d[k])[-1] < _LEVEL) == crossed[k]
        interval = mean_interval(d[k, 0])
        assert (interval.low > 0 or interval.high < 0) == one[k]
    return [rate(setting, "error of the crossed test", crossed, high=_LEVEL), rate(setting, "error with one seed", one)]


def _student(d: np.ndarray) -> np.ndarray:
    return np.asarray(d.mean(axis=1) / (d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])))


def _rejects(d: np.ndarray) -> np.ndarray:
    """Whether the mean is beyond the quantile of the crossed test, for each draw."""
    _, s, m = d.shape
    mean = d.mean(axis=(1, 2))
    squares_q = s * d.mean(axis=1).var(axis=1, ddof=1)
    squares_s = m * d.mean(axis=2).var(axis=1, ddof=1)
    total = ((d - mean[:, None, None]) ** 2).sum(axis=(1, 2))
    squares_e = (total - (m - 1) * squares_q - (s - 1) * squares_s) / ((m - 1) * (s - 1))
    a, b = np.maximum(squares_q - squares_e, 0.0), squares_s
    quantile = (a * stdtrit(m - 1, 1 - _LEVEL / 2) + b * stdtrit(s - 1, 1 - _LEVEL / 2)) / (a + b)
    variance = np.maximum(squares_q + squares_s - squares_e, np.maximum(squares_q, squares_s)) / (s * m)
    return np.asarray(np.abs(mean) > quantile * np.sqrt(variance))


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
    found = cross_validate(learner, data, "nDCG@10", validate=False, seeds=range(_POOL), random_state=0)
    return found.values["descent"]["nDCG@10"]
