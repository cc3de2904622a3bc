"""Predicted power from a pilot of 50 queries, against the power on all other queries.

The prediction is that of `queries_needed` at one number of queries; the first pilots are compared with it.
"""

from __future__ import annotations

import numpy as np

from truerank.core.random_streams import seed_of
from truerank.io.letor.read import read_letor
from truerank.measures import parse_measure
from truerank.rankers.baselines import RidgeRanker, SingleFeature
from truerank.significance.paired import deviation_of
from truerank.significance.power import _power, deviation_interval, queries_needed
from validation.harness import Row, average, collections, rate, streams

PROMISE = (
    "The power that a pilot of 50 queries predicts is right on average, and its 95 % interval covers the true power."
)
REPLICATIONS = 5_300  # unless --replications asks for another number
_N, _EFFECT = 150, 0.04
_RESAMPLES, _COMPARED = 500, 5


def run(replications: int, seed: int) -> list[Row]:
    """Draw pilots; the truth is the power of the same test and effect on samples of all the other queries."""
    populations = {"skewed, many ties": _made(seed), "85 % zeros": _zeros(seed)}
    folder = collections()
    if folder is not None:
        populations["MQ2008, ridge less BM25's column, nDCG@10"] = _mq2008(folder)
    rows = []
    for name, differences in populations.items():
        predicted, true, covered = [], [], []
        for rng in streams(seed, replications):
            order = rng.permutation(len(differences))
            while np.count_nonzero(differences[order[:50]]) < 5:  # queries_needed refuses such a pilot
                order = rng.permutation(len(differences))
            pilot, rest = differences[order[:50]], differences[order[50:]]
            drawn = int(rng.integers(2**31))
            middle, low, high = _predicted(pilot, drawn)
            if len(predicted) < _COMPARED:
                found = queries_needed(pilot, _EFFECT, at=[_N], n_resamples=_RESAMPLES, random_state=drawn)
                assert found.power_by_n[_N] == (middle, low, high)
            truth = _power(rest - rest.mean(), _EFFECT, "t", 0.05, _N, 1_000, int(rng.integers(2**31)))
            predicted.append(middle)
            true.append(truth)
            covered.append(low <= truth <= high)
        errors = np.array(predicted) - np.array(true)
        rows.append(average(name, f"mean predicted power less the true one, n = {_N}", errors, low=-0.05, high=0.05))
        rows.append(average(name, "true power", true))
        rows.append(rate(name, "true power within the printed interval", covered, low=0.9))
    return rows


def _predicted(pilot: np.ndarray, drawn: int) -> tuple[float, float, float]:
    """Predicted power at _N queries, and both ends of its interval."""
    d = -pilot if pilot.mean() < 0 else pilot
    low_s, high_s = deviation_interval(d)
    seed = int(np.random.default_rng(seed_of(drawn)).integers(2**62))
    middle, low, high = (
        _power(d - d.mean(), _EFFECT / scale, "t", 0.05, _N, _RESAMPLES, seed)
        for scale in (1.0, high_s / deviation_of(d), low_s / deviation_of(d))
    )
    return middle, min(low, middle), max(high, middle)


def _made(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.6, 0.2, 784) * np.where(rng.random(784) < 0.3, -1.0, 1.0)
    return np.where(rng.random(784) < 0.35, 0.0, values)


def _zeros(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(784) < 0.85, 0.0, rng.normal(0.0, 0.5, 784))


def _mq2008(folder: object) -> np.ndarray:
    from truerank.data.ranking_data import RankingData

    parts = [read_letor(f"{folder}/letor4-mq2008/S{k}.txt.gz") for k in range(1, 6)]
    measure = parse_measure("nDCG@10", "ranklib")
    found = []
    for k in range(5):
        train = RankingData.concatenate([parts[j] for j in range(5) if j != k])
        test = parts[k]
        values = [
            measure.per_query(test.judgements(), test.grouped(ranker.fit(train).predict(test)))
            for ranker in (RidgeRanker(), SingleFeature(24))
        ]
        found.append(values[0] - values[1])
    return np.concatenate(found)
