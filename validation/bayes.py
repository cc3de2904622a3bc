"""Calibration of the probabilities of better, equivalent and worse: on simulated differences, and on real runs.

A draw takes two systems at random, in random order, and n topics with replacement. The true difference is that of all
topics. "Simulated" draws the true standardised difference from the prior, which the posterior must then match.
"""

from __future__ import annotations

import numpy as np

from truerank.significance.bayes import SCALE, SURE, Posterior, posterior
from validation.families import tables
from validation.harness import FEWEST, Row, rate

PROMISE = "Of the answers better, equivalent and worse with a probability of at least 0.95, at least 95 % are right."
REPLICATIONS = 5_300
SIZES = (25, 50)
_DRAWS = 6  # draws for each replication, since only some draws have an answer
_ROPE = 0.01


def run(replications: int, seed: int) -> list[Row]:
    """Simulated differences, then real ones by collection and measure."""
    rows, rng = [], np.random.default_rng(seed)
    draws = _DRAWS * replications
    for n in SIZES:
        deviation = np.exp(rng.normal(-2.0, 0.5, draws))
        truth = SCALE * rng.standard_cauchy(draws) * deviation
        found = posterior(rng.normal(truth, deviation, (n, draws)), _ROPE, ends=False)
        rows += _rows(f"simulated from the prior, {n} topics", found, truth, True)
    for name, values in tables(replications >= FEWEST).items():
        for n in SIZES:
            k, m = values.shape[1], len(values)
            first = rng.integers(0, k, draws)
            second = (first + rng.integers(1, k, draws)) % k
            topics = rng.integers(0, m, (n, draws))
            truth = values[:, first].mean(axis=0) - values[:, second].mean(axis=0)
            found = posterior(values[topics, first] - values[topics, second], _ROPE, ends=False)
            rows += _rows(f"two of {name}, {n} topics", found, truth, False)
    return rows


def _rows(setting: str, found: Posterior, truth: np.ndarray, exact: bool) -> list[Row]:
    better, equal, worse = truth > _ROPE, np.abs(truth) <= _ROPE, truth < -_ROPE
    sure = np.concatenate([better[found.better >= SURE], worse[found.worse >= SURE]])
    rows = [_share(setting, "better and worse are right", sure, low=SURE)]
    rows.append(_share(setting, "equivalent is right", equal[found.equivalent >= SURE], low=SURE))
    for low, high in ((0.6, 0.7), (0.8, 0.9), (0.9, 0.95)):
        chosen = (found.better >= low) & (found.better < high)
        bar = {"low": low, "high": high} if exact else {}
        rows.append(
            _share(setting, f"better, of those with a probability of {low:g} to {high:g}", better[chosen], **bar)
        )
    return [row for row in rows if row.replications > 1]


def _share(setting: str, quantity: str, events: np.ndarray, **bar: float) -> Row:
    return rate(setting, quantity, events if len(events) else [0.0], **bar)
