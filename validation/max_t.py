"""Family-wise error and power of step-down max-T alone; `families` has the default correction, which also uses Holm.

The replications draw 1,000 signs each, the comparison of all 104 runs 10,000, which is the default. Holm's correction
is here of paired t-tests. "Studentised pair by pair" is max-T with a scale for each pair, which truerank does not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.special import stdtr

from truerank.significance.corrections import holm, step_down_max_t
from truerank.significance.paired import TIED, Signs, smallest_p
from validation.harness import FEWEST, Row, average, rate, streams, trec9

PROMISE = "Max-T alone, with one scale, shows a difference where there is none in at most 5 % of tables."
REPLICATIONS = 5_300  # unless --replications asks for another number
_CONTRASTS = 1_000  # of them for what is no promise
_OF_ONE_PAIR = 20_000  # replications of the test of one pair
_SIGNS = 1_000
_LEVEL = 0.05
Draw = Callable[[np.random.Generator], np.ndarray]


def run(replications: int, seed: int) -> list[Row]:
    """Tables of all pairs, without a true difference; then the pairs that are shown on real values."""
    real = trec9()
    settings: list[tuple[str, Draw, float]] = [
        ("50 topics, 8 near-duplicate systems and 2 noisy", _unequal(8), 0.05),
        ("50 topics, 18 near-duplicate systems and 2 noisy", _unequal(18), 0.05),
        ("50 topics, 8 near-duplicates that differ on few topics and 2 noisy, skewed", _sparse, 0.05),
    ]
    every = trec9(every=True) if real is not None and replications >= FEWEST else None
    if real is not None:
        settings.append(("ten TREC-9 runs, AP centred, topics resampled", _resampled(real), 0.05))
    if every is not None:
        settings.append(("ten of 104 TREC-9 runs at random, AP centred, topics resampled", _some_of(every), 0.05))
    rows = []
    for name, draw, bar in settings:
        by_max_t, others = [], []
        for number, rng in enumerate(streams(seed, replications)):
            values = draw(rng)
            by_max_t.append(_rejected(values, rng, compared=number < 3))
            if number < _CONTRASTS:
                d = _differences(values)
                others.append([holm(_t_tests(d)).min() < _LEVEL, _own_scales(d, rng) < _LEVEL])
        by_holm, by_own_scales = np.array(others).T
        rows.append(rate(name, "family-wise error, max-T", by_max_t, high=bar))
        rows.append(rate(name, "family-wise error, Holm", by_holm))
        rows.append(rate(name, "family-wise error, max-T studentised pair by pair", by_own_scales))
    rows.append(_one_skewed_pair(max(replications, _OF_ONE_PAIR) if replications >= FEWEST else replications, seed))
    rows += _four_measures(replications, seed)
    if real is not None:
        rows += _power(real, replications, seed)
    if every is not None:
        rows += _all_runs(every, seed)
    return rows


def _unequal(duplicates: int) -> Draw:
    """Systems that share topic effects: `duplicates` with a deviation of .01 around them, two with .2."""
    deviation = np.array([0.01] * duplicates + [0.2] * 2)
    return lambda rng: rng.normal(0.4, 0.2, (50, 1)) + rng.normal(size=(50, duplicates + 2)) * deviation


def _sparse(rng: np.random.Generator) -> np.ndarray:
    """Near-duplicates that differ on a tenth of the topics, by skewed amounts; all means are equal."""
    amounts = rng.gamma(0.5, 0.1, (50, 10)) - 0.05
    amounts[:, :8] *= rng.random((50, 8)) < 0.1
    amounts[:, 8:] *= 5
    return rng.normal(0.4, 0.2, (50, 1)) + amounts


def _one_skewed_pair(replications: int, seed: int) -> Row:
    """A noisy system against a near-duplicate: with such skewed values the test of a single pair is liberal, too."""
    shown = []
    for rng in streams(seed, replications):
        values = _sparse(rng)
        found = step_down_max_t(values[:, 9] - values[:, 0], n_resamples=_SIGNS, random_state=rng)
        shown.append(found.p_adjusted[0] < _LEVEL)
    return rate("50 topics, a near-duplicate and a noisy system, skewed", "error of the test of this pair alone", shown)


def _resampled(values: np.ndarray) -> Draw:
    centred = values - values.mean(axis=0)
    return lambda rng: centred[rng.integers(0, len(centred), len(centred))]


def _some_of(values: np.ndarray) -> Draw:
    centred = values - values.mean(axis=0)

    def draw(rng: np.random.Generator) -> np.ndarray:
        runs = rng.permutation(centred.shape[1])[:10]
        return centred[np.ix_(rng.integers(0, len(centred), len(centred)), runs)]

    return draw


def _differences(values: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(values.shape[1], 1)
    return values[:, first] - values[:, second]


def _rejected(values: np.ndarray, rng: np.random.Generator, *, compared: bool) -> bool:
    """Whether max-T shows any pair: the first step of `step_down_max_t`, which is run too if `compared`."""
    d, signs = _differences(values), Signs.of(len(values), _SIGNS, int(rng.integers(2**62)))
    t, size = np.abs(d.sum(axis=0)), np.abs(d).sum(axis=0)
    threshold = t.max() - TIED * size.max()  # the largest |sum| of a pair is the range of the systems' sums
    count = sum(int((np.ptp(chunk @ values, axis=1) >= threshold).sum()) for chunk in signs.chunks())
    p = max(float(signs.p(np.array(count))), float(smallest_p(np.count_nonzero(d[:, t.argmax()]))))
    if compared:
        found = step_down_max_t(d, n_resamples=_SIGNS, random_state=signs.seed.entropy)
        assert abs(found.p_adjusted.min() - p) < 1e-12
    return p < _LEVEL


def _t_tests(d: np.ndarray) -> np.ndarray:
    """p (pairs,) of paired t-tests; 1 without a difference."""
    n = len(d)
    deviation = d.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(d.mean(axis=0)) / (deviation / np.sqrt(n))
    return np.where(deviation > 0, 2.0 * stdtr(n - 1, -np.nan_to_num(t)), 1.0)


def _own_scales(d: np.ndarray, rng: np.random.Generator) -> float:
    """The smallest adjusted p of max-T in which every pair has its own deviation, anew in every resample."""
    n = len(d)
    d = d[:, d.any(axis=0)]
    signs = rng.choice([-1.0, 1.0], (_SIGNS, n))
    squares = np.maximum((d**2).sum(axis=0), 1e-300)

    def studentised(sums: np.ndarray) -> np.ndarray:
        return np.abs(sums) / np.sqrt(np.maximum(squares - sums**2 / n, 1e-9 * squares))

    observed = studentised(d.sum(axis=0)).max(initial=0.0)
    largest = studentised(signs @ d).max(axis=1, initial=0.0)
    return float((np.count_nonzero(largest >= observed - 1e-9) + 1) / (_SIGNS + 1))


def _four_measures(replications: int, seed: int) -> list[Row]:
    """Three systems and four measures whose differences have a correlation of .5: as one family, and each by itself."""
    together, apart = [], []
    for rng in streams(seed + 1, replications):
        shared = rng.normal(size=(50, 3))
        d = [_differences((shared + rng.normal(size=(50, 3))) * scale) for scale in (0.05, 0.1, 0.2, 0.4)]
        family = np.hstack(d)
        measures = np.repeat(np.arange(4), d[0].shape[1])
        found = step_down_max_t(family, measures, n_resamples=_SIGNS, random_state=rng).p_adjusted
        together.append(found.min() < _LEVEL)
        if len(apart) < _CONTRASTS:
            tables = [step_down_max_t(one, n_resamples=_SIGNS, random_state=rng).p_adjusted for one in d]
            apart.append(min(table.min() for table in tables) < _LEVEL)
    name = "50 topics, 3 systems, four measures with correlation 0.5"
    return [
        rate(name, "family-wise error over all measures, one family (as in compare)", together, high=0.05),
        rate(name, "family-wise error over all measures, each measure by itself", apart),
    ]


def _power(values: np.ndarray, replications: int, seed: int) -> list[Row]:
    """Share of the pairs of ten runs that are shown on resampled topics."""
    shown = []
    for rng in streams(seed + 2, min(replications, _CONTRASTS)):
        d = _differences(values[rng.integers(0, len(values), len(values))])
        found = step_down_max_t(d, n_resamples=_SIGNS, random_state=rng).p_adjusted
        shown.append([(found < _LEVEL).mean(), (holm(_t_tests(d)) < _LEVEL).mean()])
    by_max_t, by_holm = np.array(shown).T
    name = "ten TREC-9 runs, AP, topics resampled"
    return [
        average(name, "share of 45 pairs shown, max-T", by_max_t),
        average(name, "share of 45 pairs shown, Holm", by_holm),
    ]


def _all_runs(values: np.ndarray, seed: int) -> list[Row]:
    """The pairs of all runs that are shown; replications are the random signs."""
    d = _differences(values)
    start = time.process_time()
    found = step_down_max_t(d, random_state=seed)
    seconds = time.process_time() - start
    shown = int((found.p_adjusted < _LEVEL).sum())
    by_holm = int((holm(_t_tests(d)) < _LEVEL).sum())
    unsure = int((np.abs(found.p_adjusted - _LEVEL) < 2 * found.error).sum())
    name = f"TREC-9's {values.shape[1]} runs, AP, {d.shape[1]:,} pairs, {found.n_resamples:,} signs"
    n = d.shape[1]
    return [
        Row(f"{name}, {seconds:.1f} CPU seconds", f"share of pairs shown, max-T ({shown:,})", shown / n,
            unsure / 2 / n, found.n_resamples, low=by_holm / n),
        Row(name, f"share of pairs shown, Holm on paired t ({by_holm:,})", by_holm / n, 0.0, 1),
    ]  # fmt: skip
