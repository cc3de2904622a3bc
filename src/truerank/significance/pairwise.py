"""Many systems at once: every pair tested on shared resamples, families, and what cannot be told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.significance.two_samples import deviation_of, paired_differences, rounding_of

FEWEST, MOST = 10_000, 400_000  # resamples of a family of tests
MOST_GROUPS = 200
_BLOCK = 2_000_000  # numbers that are held at a time


def resamples_for(n_tests: int, level: float = 0.05) -> int:
    """Resamples with which the smallest p, times the number of tests, is half the level; 10,000 to 400,000.

    With fewer a family could show nothing: the smallest p of B resamples is 1/(B + 1), and Holm multiplies it by the
    number of tests.

    >>> resamples_for(1), resamples_for(4950)
    (10000, 198000)
    """
    return int(min(MOST, max(FEWEST, math.ceil(2 * n_tests / level))))


def pairwise_randomisation(
    values: np.ndarray, pairs: Sequence[tuple[int, int]], *, n_resamples: int | None = None, random_state: Any = 0
) -> np.ndarray:
    """Paired randomisation test of many pairs of systems, two-sided p (len(pairs),).

    As `randomisation` for each pair, but one draw of signs serves all of them: swapping the values of a query of a pair
    is `Σ_q s_q a_q - Σ_q s_q b_q`, so k products with the signs serve all pairs. Each p is that of its own test; they
    are dependent, which Holm and Bonferroni allow.

    Parameters
    ----------
    values : float array (k, m)
        Value of each system on each query, without NaN.
    pairs : sequence of (int, int)
    n_resamples : int, optional
        By default `resamples_for(len(pairs))`.
    random_state : seed

    Notes
    -----
    O(resamples × (k m + pairs)). p = (count + 1)/(B + 1); sums that are equal in exact arithmetic count as equal, so
    the products' rounding plays no part.
    """
    values = _matrix(values)
    b = resamples_for(len(pairs)) if n_resamples is None else check_positive_int(n_resamples, "n_resamples")
    k, m = values.shape
    first = np.array([pair[0] for pair in pairs], dtype=np.int64)
    second = np.array([pair[1] for pair in pairs], dtype=np.int64)
    if (np.bincount(second, minlength=k) > 0).sum() < (np.bincount(first, minlength=k) > 0).sum():
        first, second = second, first
    anchors = [(a, np.flatnonzero(first == a)) for a in np.unique(first).tolist()]
    difference = values[first] - values[second]
    size = np.abs(values).sum(axis=1)
    threshold = np.abs(difference.sum(axis=1)) - rounding_of(np.abs(difference).sum(axis=1), size[first] + size[second])
    counts = np.zeros(len(pairs), dtype=np.int64)
    rng = np.random.default_rng(random_state)
    block = max(1, _BLOCK // max(k, m))
    for start in range(0, b, block):
        rows = min(block, b - start)
        signs = rng.integers(0, 2, (rows, m), dtype=np.int8) * 2.0 - 1.0
        sums = values @ signs.T  # (k, rows)
        for a, places in anchors:
            step = max(1, _BLOCK // rows)
            for i in range(0, len(places), step):
                some = places[i : i + step]
                far = np.abs(sums[second[some]] - sums[a]) >= threshold[some, None]
                counts[some] += np.count_nonzero(far, axis=1)
    p = (counts + 1) / (b + 1)
    return np.where(np.abs(difference).max(axis=1, initial=0.0) == 0, 1.0, p)


def pairwise_bootstrap(
    values: np.ndarray,
    pairs: Sequence[tuple[int, int]],
    *,
    level: float = 0.95,
    n_resamples: int = 2_000,
    random_state: Any = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap intervals, over queries, of the mean differences of pairs of systems: low and high.

    The draws are those of `bootstrap_interval` with the same seed.
    """
    values = _matrix(values)
    m = values.shape[1]
    rng = np.random.default_rng(random_state)
    drawn = np.empty((len(values), n_resamples))
    block = max(1, 250_000 // m)
    for start in range(0, n_resamples, block):
        rows = min(block, n_resamples - start)
        chosen = rng.integers(0, m, (rows, m)) + m * np.arange(rows)[:, None]
        weights = np.bincount(chosen.ravel(), minlength=rows * m).reshape(rows, m) / m
        drawn[:, start : start + rows] = np.einsum("km,rm->kr", values, weights)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    low, high = np.empty(len(pairs)), np.empty(len(pairs))
    for place, (a, b) in enumerate(pairs):
        mean = float((values[a] - values[b]).mean())
        ends = np.quantile(drawn[a] - drawn[b], tails)
        low[place], high[place] = min(float(ends[0]), mean), max(float(ends[1]), mean)
    return low, high


def tukey_hsd(
    values: np.ndarray, pairs: Sequence[tuple[int, int]], *, n_resamples: int = 10_000, random_state: Any = 0
) -> np.ndarray:
    """Tukey's honestly significant difference by randomisation: p (len(pairs),), corrected for the family of all pairs.

    In each resample every query's k values are put in random order among the systems; p of a pair is the share of
    resamples whose largest mean less the smallest is at least the pair's difference, `(count + 1)/(B + 1)`. The null is
    that all systems are alike.

    References
    ----------
    Carterette: Multiple testing in statistical analysis of systems-based information retrieval experiments. ACM TOIS
    30 (2012), section 5.1.
    """
    values = _matrix(values)
    b = check_positive_int(n_resamples, "n_resamples")
    k, m = values.shape
    rng = np.random.default_rng(random_state)
    ranges = np.empty(b)
    block = max(1, _BLOCK // (k * m))
    for start in range(0, b, block):
        rows = min(block, b - start)
        mixed = rng.permuted(np.broadcast_to(values, (rows, k, m)), axis=1)
        sums = mixed.sum(axis=2)
        ranges[start : start + rows] = sums.max(axis=1) - sums.min(axis=1)
    difference = np.array([abs(float((values[x] - values[y]).sum())) for x, y in pairs])
    ranges.sort()
    threshold = difference - 1e-12 * np.abs(values).sum()
    count = b - np.searchsorted(ranges, threshold, side="left")
    return (count + 1) / (b + 1)


def effect_size(a: Any, b: Any) -> float:
    """Cohen's d of paired values: mean difference over the differences' standard deviation (n - 1).

    0 where all differences are 0, infinite where they are equal otherwise, NaN with a single query.

    Examples
    --------
    >>> round(effect_size([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.8, 0.4]), 4)
    1.2247
    """
    difference = paired_differences(a, b)
    if not difference.any():
        return 0.0
    if len(difference) < 2:
        return math.nan
    mean, deviation = float(difference.mean()), deviation_of(difference)
    return mean / deviation if deviation else math.copysign(math.inf, mean)


def groups_alike(means: Sequence[float], different: np.ndarray) -> list[list[int]]:
    """Groups of systems such that two systems share a group exactly if no difference between them is shown.

    Piepho's insert and absorb: from one group of all, every shown pair splits the groups that hold both; groups within
    others go. Where that needs more than `MOST_GROUPS` groups, the longest runs in the order of means without a
    shown difference are taken instead: systems that share one are alike, others may be too.

    Parameters
    ----------
    means : sequence (k,)
    different : bool array (k, k)
        Symmetric; whether the difference of two systems is shown.

    Returns
    -------
    list of lists of int
        Each group by falling mean, groups by their best member; groups overlap, and every system is in at least one.

    References
    ----------
    Piepho: An algorithm for a letter-based representation of all-pairwise comparisons. J. Comput. Graph. Stat. 13
    (2004), 456-466.

    Examples
    --------
    >>> apart = np.zeros((3, 3), dtype=bool)
    >>> apart[0, 2] = apart[2, 0] = True
    >>> groups_alike([0.5, 0.4, 0.3], apart)
    [[0, 1], [1, 2]]
    """
    order = np.argsort(-np.asarray(means, dtype=np.float64), kind="stable").tolist()
    k = len(order)
    groups = [(1 << k) - 1]  # sets of places in the order of means, as bits
    for i in range(k):
        for j in range(i + 1, k):
            if not different[order[i], order[j]]:
                continue
            pair = 1 << i | 1 << j
            kept = [group for group in groups if group & pair != pair]
            parts = {group & ~(1 << one) for group in groups if group & pair == pair for one in (i, j)}
            for part in sorted(parts, key=int.bit_count, reverse=True):
                if not any(part & group == part for group in kept):
                    kept.append(part)
            groups = kept
            if len(groups) > MOST_GROUPS:
                return _runs_alike(order, different)
    found = [[i for i in range(k) if group >> i & 1] for group in groups]
    return [[order[i] for i in group] for group in sorted(found)]


def _runs_alike(order: list[int], different: np.ndarray) -> list[list[int]]:
    """The longest runs in the order of means within which no difference is shown."""
    groups: list[list[int]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and not different[order[stop], order[start:stop]].any():
            stop += 1
        if stop > reached:
            groups.append(order[start:stop])
            reached = stop
    return groups


def _matrix(values: Any) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] == 0 or not np.isfinite(array).all():
        raise InvalidInputError(
            f"values must be finite, one row a system and one column a query, got shape {array.shape}"
        )
    return array
