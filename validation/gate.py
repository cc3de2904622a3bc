"""How often the gate fails a commit that changed nothing, finds a loss, and is inconclusive.

A commit that changed nothing has centred differences between two systems: of TREC-9's runs (AP), of features of MQ2008
(nDCG@10), and made ones that are skewed. Each of n queries is in one of 0, 5 or 20 segments. With 20 looks the level is
0.05/20, each look has other differences, and one failure among the 20 is a false one.

Draws are decided together (`failed`): most are far from a failure, which a hundred signs show, and only those near one
are compared with all signs of the gate. A test compares these decisions with the gate's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from truerank.significance.corrections import FEWEST, family_resamples, own_level, small_and_steady
from truerank.significance.gate import decide_gate, skewed_half
from truerank.significance.paired import LEVEL, Signs, smallest_p
from validation.harness import Row, centred_differences, collections, mq2008, rate, streams, trec9

PROMISE = "A commit that changed nothing fails the gate in at most 5 % of cases, over all segments and looks."
SIZES, SEGMENTS, LOOKS, MARGIN = (20, 50, 200), (0, 5, 20), (1, 20), 0.02
STAGES = (100, 2_000)  # signs after which draws far from a failure are left out


def run(replications: int, seed: int) -> list[Row]:
    """False failures of one look and of 20 and 200 looks, power, and the inconclusive share."""
    rows = []
    for name, d in populations(seed):
        for looks, sizes in ((1, SIZES), (20, SIZES), (200, SIZES[-1:])):
            for n in sizes:
                for segments in SEGMENTS:
                    where = f"{name}, {n} queries, {segments} segments, {looks} look{'s' * (looks > 1)}"
                    found = false_failures(d, n, segments, looks, replications, seed)
                    rows.append(rate(where, "false FAIL", found, high=0.05))
    return [*rows, *_verdicts(min(replications, 300), seed), _power(replications, seed)]


def populations(seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Centred differences (N, pairs) by name."""
    rng = np.random.default_rng(seed)
    skewed = np.where(rng.random((20_000, 10)) < 0.6, 0.0, rng.gamma(0.7, 0.3, (20_000, 10)))
    found = {"TREC-9, AP": trec9(), "MQ2008, nDCG@10": mq2008()} if collections() is not None else {}
    for name, values in {**found, "skewed": skewed}.items():
        if values is not None:
            yield name, centred_differences(values)


def false_failures(d: np.ndarray, n: int, segments: int, looks: int, replications: int, seed: int) -> np.ndarray:
    """Return which replications (replications,) have a failure in any of their looks."""
    found, rng = [], np.random.default_rng([seed, n, segments, looks])
    batch = max(1, 2_000_000 // (looks * n))
    for start in range(0, replications, batch):
        here = min(batch, replications - start), looks
        pair, sign = rng.integers(d.shape[1], size=here), rng.choice([-1.0, 1.0], here)
        own = d[rng.integers(len(d), size=(*here, n)), pair[..., None]] * sign[..., None]
        found.append(failed(own.reshape(-1, n), segments, LEVEL / looks).reshape(here).any(axis=1))
    return np.concatenate(found)


class _Moments(NamedTuple):
    """Of each draw and mean (draws, 1 + segments), the whole set first."""

    topics: np.ndarray  # (1 + segments,)
    mean: np.ndarray
    deviation: np.ndarray
    shown: np.ndarray  # whether the estimate and the number of queries that differ permit a FAIL
    equal: np.ndarray  # whether all differences are the same loss, which fails without an interval


def failed(own: np.ndarray, segments: int, level: float) -> np.ndarray:
    """Return which draws (draws,) of differences (draws, n) fail the gate; query i is in the segment i % segments.

    Draws are independent, so segments at random are the same.
    """
    n = own.shape[1]
    of = np.arange(n) % max(segments, 1)
    members = np.column_stack([np.ones(n), *(of == k for k in range(segments))]).astype(np.float64)
    found = _moments(own, members, level)
    h = members.shape[1]
    if level < LEVEL:
        there = found.deviation > 0
        pooled = np.sqrt((found.deviation**2).sum(axis=1) / np.maximum(there.sum(axis=1), 1))[:, None]
        t = stdtrit(np.maximum(found.topics - 1, 1), 1.0 - level / (2.0 * h))
        cubes = own**3 @ members - 3.0 * found.mean * (own**2 @ members) + 2.0 * found.topics * found.mean**3
        skewness = cubes / (found.topics * np.where(there, found.deviation, 1.0) ** 3)
        high = found.mean + np.maximum(found.deviation, pooled) * skewed_half(t, skewness, found.topics)
        return ((found.shown & (high < 0)) | found.equal).any(axis=1)
    tested = np.count_nonzero(found.deviation, axis=1)
    alone = tested < 2
    by_itself = np.where(alone, level, own_level(h, level, family_resamples(h, level)[1]) * h / np.maximum(tested, 1))
    low = found.shown & (found.mean < -_student(found, by_itself[:, None]))
    result = (low.any(axis=1) & alone) | found.equal.any(axis=1)
    for k in np.flatnonzero(low.any(axis=1) & ~alone):
        columns = np.where(members > 0, own[k, :, None], np.nan)
        result[k] = (
            low[k] & small_and_steady(np.where(found.deviation[k] > 0, columns - found.mean[k], columns * 0.0))
        ).any()
    near = np.flatnonzero(~result & ~alone & found.shown.any(axis=1))
    result[near] = _by_signs(own[near], members, _Moments(found[0], *(one[near] for one in found[1:])), level)
    return result


def _moments(own: np.ndarray, members: np.ndarray, level: float) -> _Moments:
    topics = members.sum(axis=0)
    mean = own @ members / topics
    squares = np.maximum(own**2 @ members - topics * mean**2, 0.0)
    deviation = np.sqrt(squares / np.maximum(topics - 1, 1))
    deviation[deviation < 1e-9] = 0.0
    least, loses = smallest_p((own != 0.0).astype(np.float64) @ members), mean < -MARGIN
    equal = (deviation == 0) & (least * members.shape[1] < level) & loses
    return _Moments(topics, mean, deviation, (least < level) & (deviation > 0) & loses, equal)


def _student(found: _Moments, level: float | np.ndarray) -> np.ndarray:
    return stdtrit(np.maximum(found.topics - 1, 1), 1.0 - level / 2.0) * found.deviation / np.sqrt(found.topics)


@lru_cache(maxsize=1)
def _signs(n: int, resamples: int) -> tuple[Signs, np.ndarray]:
    """The gate's signs, and the vectors of these as rows."""
    signs = Signs.of(n, resamples, 0)
    return signs, np.concatenate([chunk.astype(np.float32) for chunk in signs.chunks()])


def _by_signs(own: np.ndarray, members: np.ndarray, found: _Moments, level: float) -> np.ndarray:
    """Return which draws fail by the intervals of max-T, whose scale all means share."""
    h = members.shape[1]
    resamples = max(FEWEST, int(np.ceil(500 / level - 1e-9)))
    signs, vectors = _signs(own.shape[1], resamples)
    allowed = (0.8 if family_resamples(h, level)[1] else 1.0) * level
    few = found.topics - 1
    scale = np.sqrt((found.deviation**2 * few / found.topics).mean(axis=1))[:, None] * np.sqrt(found.topics)
    ratio = np.sqrt(found.topics / np.maximum(few, 1)) * scale / found.topics
    least = np.where(found.shown, -found.mean / ratio, 0.0).max(axis=1)  # a quantile of max |T*| below it fails
    result, left = np.zeros(len(own), dtype=bool), np.arange(len(own))
    for number in [count for count in STAGES if count < len(vectors)] + [len(vectors)]:
        last = number == len(vectors)
        sure = 0.0 if last else 5.0 * np.sqrt(allowed * number) + 2.0
        fewest = signs.fewest(allowed) if last else allowed * number
        counts = np.empty(len(left))
        for place, k in enumerate(left.tolist()):
            columns = members * (own[k, :, None] - found.mean[k]) / scale[k] * (found.deviation[k] > 0)
            largest = np.abs(vectors[:number] @ columns.astype(np.float32)).max(axis=1)
            counts[place] = np.count_nonzero(largest >= least[k])
        result[left[counts < fewest - sure]] = True
        left = left[(counts >= fewest - sure) & (counts < fewest + sure)]
    return result


def _verdicts(replications: int, seed: int) -> list[Row]:
    """Verdicts at the margin 0.02 for a baseline of mean 0.5 and differences with the standard deviation 0.15."""
    rows = []
    for n in (20, 50, 100, 200, 400):
        found = {"no loss": [], "a loss of 0.05": []}  # type: dict[str, list[str]]
        for rng in streams(seed + n, replications):
            old, noise = rng.uniform(0.0, 1.0, n), rng.normal(0.0, 0.15, n)
            for name, loss in (("no loss", 0.0), ("a loss of 0.05", 0.05)):
                found[name].append(decide_gate(np.abs(old + noise - loss), old, MARGIN).verdict)
        for name, verdicts in found.items():
            rows += [
                rate(f"{name}, {n} queries", verdict, [one == verdict for one in verdicts])
                for verdict in ("PASS", "FAIL", "INCONCLUSIVE")
            ]
    return rows


def _power(replications: int, seed: int) -> Row:
    own = np.random.default_rng(seed).normal(-0.05, 0.15, (replications, 200))
    return rate(
        "a loss of 0.05, 200 queries, the last of 200 looks", "FAIL (power)", failed(own, 0, LEVEL / 200), low=0.8
    )
