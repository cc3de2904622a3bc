"""Family-wise error and power of the default correction, which divides the level between max-T and Holm.

Every replication draws eight rankers and n topics at random, with replacement, and tests all 28 pairs. "One scale" is
max-T with the whole level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from truerank.significance.corrections import (
    divided_step_down,
    holm,
    simultaneous_intervals,
    small_and_steady,
    step_down_max_t,
)
from truerank.significance.paired import TIED, Signs, smallest_p
from validation.harness import FEWEST, Row, collections, rate, streams, trec9

PROMISE = "A table of all pairs has a corrected p below 0.05 without any true difference in at most 5 % of samples."
REPLICATIONS = 5_300  # unless --replications asks for another number
SIZES = (10, 25, 50)
_LEVEL = 0.05
_FEWEST_OF_POWER = 1_000
_BLOCK = 100  # draws that use the same signs
_FOUND = {10: 0.8, 25: 0.87, 50: 0.9}  # bars: the share of the pairs that one scale finds


def run(replications: int, seed: int) -> list[Row]:
    """Errors and power on real values; then the gain of a near-duplicate beside a noisy run."""
    rows = []
    for name, values in tables(replications >= FEWEST).items():
        for n in SIZES:
            rows += _errors(name, values, n, replications, seed)
            rows.append(_power(name, values, n, min(_FEWEST_OF_POWER, replications), seed + 1))
    return [*rows, *_near_duplicate(min(_FEWEST_OF_POWER, replications), seed + 2)]


@lru_cache(maxsize=1)
def tables(every: bool) -> Mapping[str, np.ndarray]:
    """Values (topics, rankers) by collection and measure; of ten runs, or of none, unless `every` are asked for."""
    folder = collections()
    if not every or folder is None:
        ten = trec9()
        return {} if ten is None else {"ten TREC-9 runs, AP": ten}
    found = {
        **_of_runs("TREC-9", folder / "trec9-web-runs", "qrels.451-500.txt.xz", ("AP", "RR", "nDCG@10")),
        **_of_runs("TREC-3", folder / "trec3-adhoc-runs", "qrels.151-200.txt.xz", ("AP",)),
    }
    return found | {"46 features of MQ2008, nDCG@10": _of_features(folder / "letor4-mq2008")}


def _of_runs(name: str, folder: Path, qrels_file: str, measures: tuple[str, ...]) -> dict[str, np.ndarray]:
    from truerank.io.streams import files_of
    from truerank.io.trec import judge_run, read_qrels, read_run
    from truerank.measures import parse_measure

    qrels = read_qrels(folder / qrels_file)
    judged = [judge_run(qrels, read_run(path)) for path in files_of(folder / "runs")]
    return {
        f"{len(judged)} {name} runs, {measure}": np.array(
            [parse_measure(measure, "trec")(missing_topics="zero").per_query(*one) for one in judged]
        ).T
        for measure in measures
    }


def _of_features(folder: Path) -> np.ndarray:
    from truerank.io.letor.read import read_letor
    from truerank.measures import parse_measure

    measure = parse_measure("nDCG@10", "ranklib")
    parts = [read_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
    return np.concatenate(
        [
            np.array([measure.per_query(part.judgements(), part.grouped(column)) for column in np.asarray(part.X).T]).T
            for part in parts
        ]
    )


def sample(values: np.ndarray, rankers: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Values (n, rankers) of rankers without replacement, and of topics with replacement."""
    chosen = rng.permutation(values.shape[1])[:rankers]
    return values[np.ix_(rng.integers(0, len(values), n), chosen)]


def _pairs(values: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(values.shape[1], 1)
    return values[:, first] - values[:, second]


def _errors(name: str, values: np.ndarray, n: int, replications: int, seed: int) -> list[Row]:
    centred = values - values.mean(axis=0)
    found = []
    for k, rng in enumerate(streams(seed, -(-replications // _BLOCK))):
        signs = Signs.of(n, 10_000, int(rng.integers(2**62)))
        every = np.concatenate(list(signs.chunks()))
        draws = [sample(centred, 8, n, rng) for _ in range(min(_BLOCK, replications - _BLOCK * k))]
        found += [_rejected(one, signs, every) for one in draws]
        for number, function in enumerate((divided_step_down, step_down_max_t)):  # the package's own, of the first
            p = function(_pairs(draws[0]), random_state=signs.seed.entropy).p_adjusted
            assert (p.min() < _LEVEL) == found[-len(draws)][number]
    by_both, by_one = np.array(found).T
    setting = f"eight of {name}, centred, {n} topics"
    return [
        rate(setting, "family-wise error over 28 pairs", by_both, high=_LEVEL),
        rate(setting, "family-wise error over 28 pairs, one scale", by_one),
    ]


def _rejected(values: np.ndarray, signs: Signs, every: np.ndarray) -> tuple[bool, bool]:
    """Whether the smallest corrected p of all pairs of values (topics, rankers) is below the level, and with one scale.

    The counts of resamples only rise, so it ends as soon as neither p can be below the level.
    """
    d = _pairs(values)
    t, size, nonzero = np.abs(d.sum(axis=0)), np.abs(d).sum(axis=0), np.count_nonzero(d, axis=0)
    threshold = t.max() - TIED * size.max()
    joint, start, p_joint = 0, 0, 0.0
    for stop in (1_024, 2_048, 4_096, len(every)):
        sums = every[start:stop] @ values  # the largest |sum| of a pair is the range of the rankers' sums
        joint, start = joint + int((np.ptp(sums, axis=1) >= threshold).sum()), stop
        p_joint = float(signs.p(np.array(joint)))
        if p_joint >= _LEVEL:
            break
    p_joint = max(p_joint, float(smallest_p(nonzero[t.argmax()])))
    alone = np.flatnonzero(small_and_steady(d) & (nonzero > 0) & (4 * (d**2).sum(axis=0) < t**2))
    p_own = np.ones(len(t))  # also where the sum is at most twice the root of the squares, which no small p has
    for k in alone:
        count = np.count_nonzero(np.abs(every @ d[:, k]) >= t[k] - TIED * size[k])
        p_own[k] = max(float(signs.p(np.array(count))), float(smallest_p(nonzero[k])))
    both = min(1.25 * p_joint, 5 * np.count_nonzero(nonzero) * float(p_own.min()))
    return both < _LEVEL, p_joint < _LEVEL


def _power(name: str, values: np.ndarray, n: int, replications: int, seed: int) -> Row:
    shown = []
    for rng in streams(seed, replications):
        d, signs = _pairs(sample(values, 8, n, rng)), int(rng.integers(2**62))
        one = step_down_max_t(d, random_state=signs)
        there = d.any(axis=0)
        by_holm = np.ones(d.shape[1])
        by_holm[there] = holm(np.where(small_and_steady(d), one.p, 1.0)[there])
        p = np.minimum(1.0, np.minimum(1.25 * one.p_adjusted, 5 * by_holm))
        if not shown:
            assert np.allclose(p, divided_step_down(d, random_state=signs).p_adjusted)
        shown.append([(p < _LEVEL).mean(), (one.p_adjusted < _LEVEL).mean()])
    found, one_scale = np.array(shown).T
    share = found.mean() / one_scale.mean()
    error = (found - share * one_scale).std(ddof=1) / math.sqrt(len(found)) / one_scale.mean()
    quantity = f"pairs found, as a share of those of one scale ({one_scale.mean():.3f} of pairs)"
    return Row(
        f"eight of {name}, {n} topics", quantity, share, error, len(found), low=_FOUND[n], fewest=_FEWEST_OF_POWER
    )


def _near_duplicate(replications: int, seed: int) -> list[Row]:
    found = []
    for rng in streams(seed, replications):
        d = np.column_stack([rng.normal(0.004, 0.006, 50), rng.normal(0.0, 0.2, 50)])
        family, one_scale = divided_step_down(d, random_state=rng), step_down_max_t(d, random_state=rng)
        low = simultaneous_intervals(d, random_state=rng).low[0]
        found.append([family.p_adjusted[0] < _LEVEL, one_scale.p_adjusted[0] < _LEVEL, low > 0])
    by_both, by_one, by_interval = np.array(found).T
    name = "50 queries, a near-duplicate with a gain of 0.004 ± 0.006 beside a noisy run N(0, 0.2)"
    return [
        rate(name, "gain found", by_both, low=0.9)._replace(fewest=_FEWEST_OF_POWER),
        rate(name, "gain found, one scale", by_one),
        rate(name, "simultaneous interval above 0", by_interval),
    ]
