"""Calibration of the probabilities of better and worse by segment: on simulated differences, and on real runs.

A draw takes two systems, and for each segment n of its queries with replacement, in random order of the sizes. The
true difference of a segment is that of all its queries. The segments of real data are queries of similar difficulty
(the mean over systems), whose true differences differ, and random ones, whose true differences hardly differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from truerank.significance.bayes import SCALE, SURE
from truerank.significance.hierarchy import FREEDOM, SPREAD, segments_posterior
from validation.bayes import _share
from validation.harness import FEWEST, Row, mq2008, trec9

PROMISE = "Of the answers better and worse of segments with a probability of at least 0.95, at least 95 % are right."
REPLICATIONS = 5_300
SIZES = (5, 10, 20, 40, 80)
_ROPE = 0.01
_Draw = tuple[list[np.ndarray], np.ndarray, float]


def run(replications: int, seed: int) -> list[Row]:
    """Simulated differences, then real ones by collection and kind of segment."""
    rows, rng = [], np.random.default_rng(seed)
    for name, heavy, shared in _SIMULATED:
        draw = _simulated(rng, heavy, shared)
        rows += _rows(f"simulated, {name}", draw, replications, name == "from the prior")
    real = {"runs of TREC-9, AP": trec9(replications >= FEWEST), "features of MQ2008, nDCG@10": mq2008()}
    for name, values in real.items():
        if values is None:
            continue
        places = np.argsort(np.argsort(values.mean(axis=1), kind="stable"))
        for kind, order in {"by difficulty": places, "at random": rng.permutation(len(values))}.items():
            for sizes in (SIZES[-3:], (10, 10, 10)):
                draw = _real(rng, values, order * 3 // len(values), sizes)
                setting = f"{values.shape[1]} {name}, thirds {kind}, {', '.join(map(str, sizes))} queries"
                rows += _rows(setting, draw, replications, False)
    return rows


_SIMULATED = (("from the prior", False, False), ("equal segments", False, True), ("heavy tails", True, False))


def _simulated(rng: np.random.Generator, heavy: bool, shared: bool) -> Callable[[], _Draw]:
    """Segments of the model, with t errors of three degrees of freedom if `heavy`, with one mean if `shared`."""

    def draw() -> _Draw:
        sizes = rng.permutation(SIZES)
        tau = 0.0 if shared else SPREAD * abs(rng.standard_cauchy())
        truth = SCALE * rng.standard_cauchy() + tau * rng.normal(size=len(sizes))
        deviation = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, len(sizes)))
        errors: Any = (lambda n: rng.standard_t(3, n) / np.sqrt(3)) if heavy else (lambda n: rng.normal(size=n))
        unit = float(np.exp(rng.normal(-2.0, 0.5)))
        return [unit * (t + s * errors(n)) for t, s, n in zip(truth, deviation, sizes)], unit * truth, np.nan

    return draw


def _real(
    rng: np.random.Generator, values: np.ndarray, labels: np.ndarray, sizes: tuple[int, ...]
) -> Callable[[], _Draw]:
    parts = [np.flatnonzero(labels == label) for label in range(len(sizes))]

    def draw() -> _Draw:
        ours, theirs = values[:, rng.choice(values.shape[1], 2, replace=False)].T
        chosen = [rng.choice(part, n) for part, n in zip(parts, rng.permutation(sizes))]
        loss = max(np.concatenate([own[c] for c in chosen]).mean() for own in (ours, theirs))
        truth = np.array([(ours - theirs)[part].mean() for part in parts])
        return [(ours - theirs)[own] for own in chosen], truth, float(loss)

    return draw


def _rows(setting: str, draw: Callable[[], _Draw], draws: int, exact: bool) -> list[Row]:
    answers = np.concatenate([np.array(list(_answers(*draw()))) for _ in range(draws)])
    n, probability, right, equivalent, equal = answers.T
    sure = probability >= SURE
    rows = [_share(setting, "better and worse are right", right[sure], low=SURE)]
    for size in sorted(set(n[sure].tolist())) if exact else ():
        rows.append(_share(setting, f"the same, segments of {size:g} queries", right[sure & (n == size)], low=SURE))
    for low, high in ((0.8, 0.9), (0.9, 0.95)):
        chosen = (probability >= low) & (probability < high)
        rows.append(_share(setting, f"better or worse, with a probability of {low:g} to {high:g}", right[chosen]))
    rows.append(_share(setting, "equivalent is right", equal[equivalent >= SURE], low=SURE))
    return [row for row in rows if row.replications > 1]


def _answers(parts: list[np.ndarray], truth: np.ndarray, loss: float) -> Iterator[tuple[float, ...]]:
    """Queries, the larger of P(better) and P(worse), whether it is right, P(equivalent), whether it is equivalent."""
    d = np.full((max(map(len, parts)), len(parts)), np.nan)
    for k, own in enumerate(parts):
        d[: len(own), k] = own
    found = segments_posterior(d, _ROPE, loss, ends=False).posterior
    for k, own in enumerate(parts):
        sign = 1.0 if found.better[k] > found.worse[k] else -1.0
        probability = max(found.better[k], found.worse[k])
        yield len(own), probability, sign * truth[k] > _ROPE, found.equivalent[k], abs(truth[k]) <= _ROPE
