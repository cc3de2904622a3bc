"""Confidence sequences: intervals of a mean that hold simultaneously at all times, for any number of looks.

For x_1, x_2, … in [0, 1] and a candidate mean m, two bets against m have the capital

    K⁺_t(m) = Π_{i ≤ t} (1 + min(λ_i, c/m) (x_i - m)),      K⁻_t(m) = Π_{i ≤ t} (1 - min(λ_i, c/(1 - m)) (x_i - m)),
    λ_i = sqrt(2 log(2/α) / (s²_{i-1} i log(1 + i))),

where s² is the variance of the values so far. A mean m is excluded when max(K⁺, K⁻)/2 reaches 1/α. The true mean is
excluded with probability α at most.

References
----------
I. Waudby-Smith, A. Ramdas: Estimating Means of Bounded Random Variables by Betting, JRSS-B 86, 2024; section 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.core.checks import as_numbers, check_number
from truerank.core.errors import InvalidInputError
from truerank.core.types import ArrayLike

_STAKE = 0.5  # c
_GRID, _BLOCK = 200, 2048


class Sequence(NamedTuple):
    """A confidence sequence at L looks; every field is an array (L,).

    `n` is the number of units so far, and `mean` is their mean. The interval [`low`, `high`] never widens from one look
    to the next. `p` is the smallest always-valid p for the mean `null` so far.
    """

    n: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray


def confidence_sequence(
    values: ArrayLike,
    low: float = -1.0,
    high: float = 1.0,
    *,
    null: float = 0.0,
    level: float = 0.95,
    looks: ArrayLike | None = None,
) -> Sequence:
    """Return the confidence sequence of the mean of values (n,) in [low, high], in order of arrival.

    Parameters
    ----------
    values : array (n,)
        Independent units, or at least units whose mean, given the past, is constant.
    low, high : float, default=-1, 1
        Bounds of every value, chosen before the data are seen.
    null : float, default=0
        The mean that `p` tests.
    level : float in (0, 1), default=0.95
    looks : rising array (L,) of int, optional
        Numbers of values after which to look. Default: once, at the end.

    Notes
    -----
    Time O(400 n). Ends are rounded outwards to a grid with steps of 0.005 (high - low), and 1/16 standard errors near
    the mean.

    Examples
    --------
    >>> found = confidence_sequence([1.0, 0.0, 1.0, 1.0] * 100, looks=[100, 400])
    >>> found.low.round(2).tolist(), bool(found.p[-1] < 0.001)
    ([0.59, 0.68], True)
    """
    level = check_number(level, "level", "(0, 1)")
    x = as_numbers(values, "values")
    if x.ndim != 1 or not len(x) or not ((x >= low) & (x <= high)).all():
        raise InvalidInputError(
            f"values must be numbers in [{low:g}, {high:g}], got {x.tolist()!r:.60}", argument="values"
        )
    null = check_number(null, "null", f"[{low!r}, {high!r}]")
    ends = np.array([len(x)]) if looks is None else np.asarray(looks, dtype=np.int64)
    if not len(ends) or (np.diff(ends, prepend=0) <= 0).any() or ends[-1] > len(x):
        raise InvalidInputError(
            f"looks must be ascending, from 1 to {len(x)} values, got {ends.tolist()!r:.80}", argument="looks"
        )
    x, alpha = (x[: ends[-1]] - low) / (high - low), 1.0 - level
    t = np.arange(1, len(x) + 1)
    centre = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - centre) ** 2)) / (t + 1)
    stake = np.sqrt(2.0 * np.log(2.0 / alpha) / (np.append(0.25, variance[:-1]) * t * np.log1p(t)))
    near = x.mean() + 6.0 * max(float(x.std()), 1e-3) / np.sqrt(len(x)) * np.linspace(-1.0, 1.0, _GRID)
    zero = (null - low) / (high - low)
    grid = np.unique(np.concatenate([np.linspace(0.0, 1.0, _GRID + 1), near[(near > 0) & (near < 1)], [zero]]))
    # Log capital of both bets for each candidate, (looks, grid).
    log_up, log_down = np.zeros((2, len(grid)))
    cap_up, cap_down = _STAKE / np.maximum(grid, 1e-12), _STAKE / np.maximum(1.0 - grid, 1e-12)
    capital, at = np.empty((len(ends), len(grid))), 0
    for number, end in enumerate(ends.tolist()):
        while at < end:
            part = slice(at, min(end, at + _BLOCK))
            bets, apart = stake[part, None], x[part, None] - grid
            log_up += np.log1p(np.minimum(bets, cap_up) * apart).sum(axis=0)
            log_down += np.log1p(-np.minimum(bets, cap_down) * apart).sum(axis=0)
            at = part.stop
        capital[number] = np.maximum(log_up, log_down) - np.log(2.0)
    kept = np.logical_and.accumulate(capital < -np.log(alpha))  # an excluded candidate stays excluded
    first, last = kept.argmax(axis=1), len(grid) - 1 - kept[:, ::-1].argmax(axis=1)
    lows, highs = grid[np.maximum(first - 1, 0)], grid[np.minimum(last + 1, len(grid) - 1)]
    none = ~kept.any(axis=1)  # possible, with probability alpha
    lows, highs = np.where(none, centre[ends - 1], lows), np.where(none, centre[ends - 1], highs)
    p = np.exp(-np.maximum.accumulate(np.maximum(capital[:, np.searchsorted(grid, zero)], 0.0)))
    means = np.cumsum(x)[ends - 1] / ends
    lows, highs, means = (low + (high - low) * part for part in (lows, highs, means))
    return Sequence(ends, means, np.maximum.accumulate(lows), np.minimum.accumulate(highs), p)
