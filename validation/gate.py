"""How often the gate fails a commit that changed nothing, finds a loss, and is inconclusive.

A commit that changed nothing has centred differences between two systems: of TREC-9's runs (AP), of features of MQ2008
(nDCG@10), and made ones that are skewed with a third of ties. Each of n queries is in one of 0, 5 or 20 segments. With
20 looks the level is 0.05/20, each look has other differences, and one failure among the 20 is a false one. With 200
looks the intervals are Student's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from truerank.significance.gate import decide_gate, failing_ends, fails
from truerank.significance.paired import moments
from validation.harness import Row, centred_differences, collections, mq2008, rate, streams, trec9

PROMISE = "A commit that changed nothing fails the gate in at most 5 % of cases, over all segments and looks."
REPLICATIONS = 1_000  # unless --replications asks for another number
SIZES, SEGMENTS, MARGIN = (20, 50, 200), (0, 5, 20), 0.02


def run(replications: int, seed: int) -> list[Row]:
    """False failures of one look and of 20 and 200 looks, power, and the inconclusive share."""
    rows = []
    for name, d in populations(seed):
        for n in SIZES:
            for segments in SEGMENTS:
                where = f"{name}, {n} queries, {segments} segments"
                failed = [_fails(d, n, segments, 0.05, rng) for rng in streams(seed, replications)]
                rows.append(rate(where, "false FAIL", failed, high=0.05))
    name, d = next(iter(populations(seed)))
    rows += _of_looks(name, d, replications, seed)
    return [*rows, *_verdicts(replications, seed)]


def populations(seed: int) -> Iterator[tuple[str, np.ndarray]]:
    """Centred differences (N, pairs) by name."""
    rng = np.random.default_rng(seed)
    skewed = np.where(rng.random((20_000, 10)) < 0.6, 0.0, rng.gamma(0.7, 0.3, (20_000, 10)))
    found = {"TREC-9, AP": trec9(), "MQ2008, nDCG@10": mq2008()} if collections() is not None else {}
    for name, values in {**found, "skewed, a third ties": skewed}.items():
        if values is not None:
            d = centred_differences(values)
            yield name, d - d.mean(axis=0)


def _columns(d: np.ndarray, n: int, segments: int, rng: np.random.Generator) -> np.ndarray:
    """Differences (n, 1 + segments) of a commit that changed nothing, with NaN outside a segment."""
    own = d[rng.integers(0, len(d), n), rng.integers(d.shape[1])] * rng.choice([-1.0, 1.0])
    of = rng.permutation(n) % max(segments, 1)
    return np.column_stack([own, *(np.where(of == k, own, np.nan) for k in range(segments))])


def _fails(d: np.ndarray, n: int, segments: int, level: float, rng: np.random.Generator) -> bool:
    columns = _columns(d, n, segments, rng)
    _, mean, deviation = moments(columns)
    # Without an estimate below -δ, and below what a one-sided test requires, no FAIL is possible.
    least = 0.5 * math.sqrt(2.0 * math.log(1.0 / level)) / np.sqrt((~np.isnan(columns)).sum(axis=0))
    if not ((mean < -MARGIN) & (mean <= -least * deviation)).any():
        return False
    _, high = failing_ends(columns, level, int(rng.integers(2**62)))
    return bool(fails(columns, high, MARGIN, level).any())


def _of_looks(name: str, d: np.ndarray, replications: int, seed: int) -> list[Row]:
    rows = []
    for looks, segments in ((20, 0), (20, 5), (200, 0), (200, 20)):
        few = max(2, replications // (20 if looks == 20 and segments else 4))
        failed = [
            any(_fails(d, 200, segments, 0.05 / looks, rng) for _ in range(looks)) for rng in streams(seed + looks, few)
        ]
        rows.append(rate(f"{name}, 200 queries, {segments} segments, {looks} looks", "false FAIL", failed, high=0.05))
    return rows


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
    d = np.random.default_rng(seed).normal(-0.05, 0.15, (200, replications))
    _, mean, deviation = moments(d)
    high = np.array([failing_ends(d[:, [k]], 0.05 / 200)[1][0] for k in range(replications)])
    shown = (high < 0) & (mean < -MARGIN) & (deviation > 0)
    return [*rows, rate("a loss of 0.05, 200 queries, the last of 200 looks", "FAIL (power)", shown, low=0.8)]
