"""Simultaneous coverage of sets of ranks, and their width, on the 40 runs of TREC-3.

Every replication draws eight runs and n topics at random, the topics with replacement, and tests all 28 pairs. The true
ranks are those of the means over all topics. "Two groups" gives four runs each the mean of their group, so that they
share their ranks; "one group" gives all runs one mean.
"""

from __future__ import annotations

import numpy as np

from truerank.significance.corrections import divided_step_down
from truerank.significance.ranks import rank_sets
from validation.families import tables
from validation.harness import FEWEST, Row, average, rate, streams

PROMISE = "The sets of ranks of all systems simultaneously contain their true ranks in at least 94 % of samples."
REPLICATIONS = 5_300
SIZES = (25, 50)
_RUNS, _LEVEL = 8, 0.05
_LEAST = 1.6  # |sum| / root of the sum of squares below which no p of random signs is small


def run(replications: int, seed: int) -> list[Row]:
    """Coverage for distinct and equal true means."""
    rows = []
    for name, values in tables(replications >= FEWEST).items():
        if "TREC-3" not in name and replications >= FEWEST:
            continue
        for n in SIZES:
            for groups, words in ((_RUNS, "true means as they are"), (2, "two groups"), (1, "one group")):
                found = [_covered(values, n, groups, rng) for rng in streams(seed, replications)]
                setting = f"eight of {name}, {words}, {n} topics"
                covered, widths = np.array(found).T
                rows.append(rate(setting, "all true ranks are in their sets", covered, low=0.94))
                if groups == _RUNS:
                    rows.append(average(setting, "ranks in a set, of 8", widths[~np.isnan(widths)]))
    return rows


def _covered(values: np.ndarray, n: int, groups: int, rng: np.random.Generator) -> tuple[bool, float]:
    """Whether all true ranks are in their sets, and the mean number of ranks in a set (NaN if it is not computed)."""
    chosen = rng.permutation(values.shape[1])[:_RUNS]
    own, truth = values[:, chosen], values[:, chosen].mean(axis=0)
    order = np.argsort(truth)
    for part in np.array_split(order, groups):
        own[:, part] += truth[part].mean() - truth[part]
        truth[part] = truth[part].mean()
    drawn = own[rng.integers(0, len(own), n)]
    first, second = np.triu_indices(_RUNS, 1)
    d = drawn[:, first] - drawn[:, second]
    wrong = np.sign(d.sum(axis=0)) * (truth[first] - truth[second]) <= 1e-12
    possible = np.abs(d.sum(axis=0)) > _LEAST * np.sqrt((d**2).sum(axis=0))
    measured = rng.random() < 0.05  # the widths of one draw in twenty
    if not (wrong & possible).any() and not measured:  # no wrong pair can be found
        return True, np.nan
    found = divided_step_down(d, random_state=rng).p_adjusted < _LEVEL
    better = np.zeros((_RUNS, _RUNS), dtype=bool)
    up = d.sum(axis=0) > 0
    better[first[found & up], second[found & up]] = better[second[found & ~up], first[found & ~up]] = True
    low, high = np.array(rank_sets(better)).T
    above = (truth[None, :] > truth[:, None] + 1e-12).sum(axis=1)
    below = (truth[None, :] < truth[:, None] - 1e-12).sum(axis=1)
    covers = (low <= 1 + above).all() and (high >= _RUNS - below).all()
    return bool(covers), float((high - low + 1).mean()) if measured else np.nan
