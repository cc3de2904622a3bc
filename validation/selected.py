"""Sentences about a selected system: the best of eight that are compared with a baseline, where nothing is true."""

from __future__ import annotations

import numpy as np

from truerank.significance.corrections import divided_step_down, simultaneous_intervals
from truerank.significance.intervals import mean_interval
from validation.families import SIZES, sample, tables
from validation.harness import FEWEST, Row, rate, streams

PROMISE = "The simultaneous interval of the system with the best mean covers its true difference in 95 % of tables."
REPLICATIONS = 5_300  # unless --replications asks for another number
_COVERED = {10: 0.93, 25: 0.94, 50: 0.94}


def run(replications: int, seed: int) -> list[Row]:
    """Coverage for the selected system and for all systems at once, and the error of the words better and worse."""
    rows = []
    for name, values in list(tables(replications >= FEWEST).items())[:1]:
        centred = values - values.mean(axis=0)
        for n in SIZES:
            rows += _rows(f"nine of {name}, centred, {n} topics", centred, n, replications, seed)
    return rows


def _rows(setting: str, centred: np.ndarray, n: int, replications: int, seed: int) -> list[Row]:
    events = []
    for rng in streams(seed, replications):
        values, signs = sample(centred, 9, n, rng), int(rng.integers(2**62))
        d = values[:, 1:] - values[:, :1]
        best = int(d.mean(axis=0).argmax())
        low, high, _ = simultaneous_intervals(d, random_state=signs)
        outside = (low > 0) | (high < 0)
        alone = mean_interval(d[:, best])
        p = divided_step_down(d, random_state=signs).p_adjusted
        events.append([not outside[best], not outside.any(), not (alone.low > 0 or alone.high < 0), p.min() < 0.05])
    selected, together, alone_covers, words = np.array(events).T
    return [
        rate(setting, "coverage for the best of eight, simultaneous interval", selected, low=_COVERED[n]),
        rate(setting, "coverage for all eight at once, simultaneous intervals", together),
        rate(setting, "coverage for the best of eight, interval of this pair alone", alone_covers),
        rate(setting, "a system is called better or worse (corrected p below 0.05)", words, high=0.06),
    ]
