"""Corrections of p-values for families of comparisons: of single p-values, and by resampling (step-down max-T).

A resample draws a sign for each topic. For features that are compared with shuffled copies, it draws for each topic
which copy replaces the original. All hypotheses use the same draw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import at_places
from truerank.significance.paired import TIED, Signs, as_differences, differences_of, smallest_p


def bonferroni(p: ArrayLike) -> np.ndarray:
    """Return p-values times the size of their family, at most 1.

    Examples
    --------
    >>> bonferroni([0.01, 0.04, 0.5]).tolist()
    [0.03, 0.12, 1.0]
    """
    values = _family(p)
    return np.minimum(1.0, values * len(values))


def holm(p: ArrayLike) -> np.ndarray:
    """Return Holm's step-down adjusted p-values (1979), which are valid under any dependence.

    The i-th smallest of n becomes the largest of (n - j + 1) p_(j) over j ≤ i, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return at_places(np.minimum(1.0, stepped), order)


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return Benjamini and Hochberg's step-up adjusted p-values (1995).

    The i-th smallest of n becomes the smallest of n p_(j) / j over j ≥ i. At level 0.05, at most 5 % of the differences
    that are called significant are expected to be wrong. Holm bounds the chance of a single wrong one.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _family(p)
    order = np.argsort(values, kind="stable")
    n = len(values)
    stepped = np.minimum.accumulate((values[order] * n / np.arange(1, n + 1))[::-1])[::-1]
    return at_places(np.minimum(1.0, stepped), order)


def _family(p: ArrayLike) -> np.ndarray:
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError(f"p-values must be a list of numbers in [0, 1], got {p!r}")
    return values


class Family(NamedTuple):
    """The result of `step_down_max_t` for h hypotheses."""

    p_adjusted: np.ndarray  # float64 (h,)
    error: np.ndarray  # float64 (h,): Monte Carlo standard error of each adjusted p; 0 if all signs were tried
    n_resamples: int
    exhaustive: bool  # whether all 2^n signs were tried


def step_down_max_t(
    differences: ArrayLike,
    measures: ArrayLike | None = None,
    *,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
) -> Family:
    """Return p-values of mean differences, adjusted for the whole family (step-down max-T).

    Parameters
    ----------
    differences : float array (n topics, h hypotheses)
        NaN if a topic is undefined for a hypothesis's measure. Such a topic is left out of the test of the hypothesis.
    measures : sequence (h,), optional
        The measure of each hypothesis. Hypotheses of one measure share one scale. By default all do.
    n_resamples : int, default=10_000
        Random sign vectors B. If only B or fewer sign vectors exist (2^n), each is used once.
    random_state : seed

    Returns
    -------
    Family
        p is 1 without any difference, and never below 2^(1 - nonzero differences).

    Raises
    ------
    InvalidInputError
        If a difference is infinite, or a hypothesis has no topic.

    Notes
    -----
    T_h = Σ_i d_ih / (s_v √n_h), with n_h the topics of hypothesis h and s_v the root mean square of the differences of
    measure v. A resample has T*_h = Σ_i ε_i d_ih / (s_v √n_h), with one sign ε_i a topic. With hypotheses ordered by
    falling |T|, p_(j) is (count + 1)/(B + 1) for the resamples in which the largest |T*| of the hypotheses j, j + 1, …
    is at least |T_(j)|, and at least p_(j-1).

    Scales of single hypotheses do not hold the level: almost identical rankers have few, skewed nonzero differences.
    The test is exact for symmetric differences. With 50 topics and strongly skewed differences the error of the whole
    family is up to 6 % (`python -m validation max_t`). Cost: O(B n h) time, 256 numbers a hypothesis.

    References
    ----------
    P. H. Westfall, S. S. Young: Resampling-Based Multiple Testing. Wiley, 1993, section 2.6.

    Examples
    --------
    >>> d = np.array([[0.2, 0.0], [0.1, 0.1], [0.3, -0.1], [0.2, 0.0], [0.2, 0.1], [0.1, 0.0]])
    >>> step_down_max_t(d).p_adjusted.round(4).tolist()
    [0.0312, 1.0]
    """
    d = as_differences(differences)
    h = d.shape[1]
    _, of = np.unique(np.zeros(h) if measures is None else np.asarray(measures), return_inverse=True)
    if of.shape != (h,):
        raise InvalidInputError(f"measures has {len(of)} names for {h} hypotheses; one for each is required")
    topics = (~np.isnan(d)).sum(axis=0)
    # The root mean square of each measure's differences, with equal weight for each hypothesis; 1 if all are 0.
    squares = np.bincount(of, weights=np.nanmean(d**2, axis=0)) / np.bincount(of)
    scale = np.sqrt(np.where(squares > 0, squares, 1.0))[of] * np.sqrt(topics)
    d = np.nan_to_num(d)
    signs = Signs.of(len(d), n_resamples, random_state)
    nonzero = np.count_nonzero(d, axis=0)
    t = np.abs(d.sum(axis=0)) / scale
    tested = np.flatnonzero(nonzero)
    tested = tested[np.argsort(t[tested], kind="stable")]  # by rising |T|
    p = np.ones(h)
    if len(tested):
        threshold = (t - TIED * (np.abs(d).sum(axis=0) / scale)[tested].max())[tested, None]
        scaled = np.ascontiguousarray((d / scale)[:, tested].T)
        counts = np.zeros(len(tested), dtype=np.int64)
        for chunk in signs.chunks():
            largest = scaled @ chunk.T
            np.abs(largest, out=largest)
            np.maximum.accumulate(largest, axis=0, out=largest)
            counts += np.count_nonzero(largest >= threshold, axis=1)
        found = np.maximum(signs.p(counts), smallest_p(nonzero[tested]))
        p[tested] = np.maximum.accumulate(found[::-1])[::-1]
    error = np.zeros(h) if signs.exhaustive else np.sqrt(p * (1 - p) / signs.n_resamples)
    return Family(p, error, signs.n_resamples, signs.exhaustive)


def step_down_of_copies(
    values: np.ndarray, *, level: float = 0.05, n_resamples: int = 2_000, random_state: RandomState = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return adjusted p-values and noise floors (h,) of values, compared with the values of exchangeable copies.

    `values` (h hypotheses, n topics, 1 + R copies) has no NaN, and copy 0 is the original. p is below `level` exactly
    if the absolute mean over topics of the original less the mean of its copies is above the floor. Without any
    difference p is 1 and the floor 0.

    T_h = |Σ_i d_ih| / s_h, with d_ih the original less the mean of the copies, and s_h its root mean square over all
    choices. Each of the B resamples draws for every topic the copy that replaces the original, the same for all
    hypotheses. The step-down is that of `step_down_max_t`. Cost: O(B n h R) in a matrix product.

    Examples
    --------
    >>> values = np.zeros((2, 12, 4))
    >>> values[0, :, 0], values[1, ::2, 1] = 0.5, 0.5
    >>> p, floor = step_down_of_copies(values)
    >>> p.round(4).tolist(), floor.round(2).tolist()
    ([0.0005, 0.3438], [0.12, 0.08])
    """
    h, n, copies = values.shape
    found = differences_of(values, values.mean(axis=2, keepdims=True)) * (copies / (copies - 1))
    scale = np.sqrt((found**2).mean(axis=2).sum(axis=1))
    p, floor = np.ones(h), np.zeros(h)
    tested = np.flatnonzero(scale)
    if not len(tested):
        return p, floor
    t = np.abs(found[tested, :, 0].sum(axis=1)) / scale[tested]
    order = np.argsort(t, kind="stable")  # by rising |T|
    tested, t = tested[order], t[order]
    scaled = (found[tested] / scale[tested, None, None]).reshape(len(tested), -1)
    rng, one_of = np.random.default_rng(seed_of(random_state)), np.eye(copies)
    largest = np.empty((len(tested), n_resamples))
    for start in range(0, n_resamples, 64):
        draw = rng.integers(0, copies, (min(64, n_resamples - start), n))
        largest[:, start : start + 64] = scaled @ one_of[draw].reshape(len(draw), -1).T
    largest = np.maximum.accumulate(np.abs(largest), axis=0)
    own = (1.0 + (largest >= t[:, None] - 1e-9).sum(axis=1)) / (n_resamples + 1.0)
    p[tested] = np.maximum.accumulate(own[::-1])[::-1]
    # The largest count whose p is below the level leaves the next larger statistic as the critical one.
    allowed = min(n_resamples, math.ceil(level * (n_resamples + 1)) - 1)
    last = max(0, int(np.count_nonzero(p[tested] >= level)) - 1)
    floor[tested] = np.sort(largest[last])[n_resamples - max(allowed, 1)] * scale[tested] / n
    return p, floor
