"""Test whether the mean of independent losses in [0, 1] is at most α, by exact binomial tails and by betting.

The p-values are valid for any sample size: where the mean exceeds α, P(p ≤ δ) ≤ δ. Fixed-sequence testing tests
hypotheses in an order that was chosen before the losses were seen, and stops at the first p above δ. The probability of
rejecting any true hypothesis is then at most δ (Angelopoulos et al. 2025, proposition 3).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, betaincinv

_LARGEST_STAKE = 0.75  # share of the wealth that a loss of 1 may cost


def least_losses(at_most: float, confidence: float, binary: bool = True) -> int:
    """Return the least number of losses, all 0, whose upper bound at `confidence` is at most `at_most`.

    >>> least_losses(0.35, 0.9), least_losses(0.35, 0.9, binary=False)  # ln 0.1 / ln 0.65 = 5.3
    (6, 7)
    """
    n = math.ceil(math.log(1 - confidence) / math.log1p(-at_most) - 1e-9)
    while not binary and betting_p(np.zeros((n, 1)), np.array([n]), at_most, confidence)[0] > 1 - confidence:
        n += 1 + n // 50
    return n


def mean_bounds(
    losses: np.ndarray, counts: np.ndarray, at_most: float, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean losses (t,), p-values of a mean above `at_most`, and upper bounds at `confidence`.

    `losses` (n, t) are independent, in an order that does not depend on them; column j has its first `counts[j]` rows.
    Losses that are all 0 or 1 give the binomial tail and the bound of Clopper and Pearson, others the betting test.
    """
    lost = np.where(np.arange(len(losses))[:, None] < counts, losses, 0.0).sum(axis=0)
    risk = lost / np.maximum(counts, 1)
    if not ((losses == 0) | (losses == 1)).all():
        return risk, betting_p(losses, counts, at_most, confidence), betting_bound(losses, counts, confidence)
    p = np.where(counts > 0, bdtr(lost, np.maximum(counts, 1), at_most), 1.0)
    return risk, p, np.where(lost < counts, betaincinv(lost + 1, np.maximum(counts - lost, 1), confidence), 1.0)


def betting_p(losses: np.ndarray, counts: np.ndarray, at_most: float | np.ndarray, confidence: float) -> np.ndarray:
    """Return 1/(highest wealth) of bettors against means above α, float64 (t,).

    Before each loss L the bettor stakes the share ν = min(c/(1 - α), sqrt(2 ln(1/δ)/(n σ²))), c = 3/4, and the wealth
    is multiplied by 1 + ν(α - L). σ² is the regularised variance of the losses before it (Waudby-Smith and Ramdas 2024,
    JRSS B 86, equations 25 and 26, one-sided). By Ville's inequality the inverse of the wealth is a p-value.
    """
    place = np.arange(2, len(losses) + 2)[:, None]
    mean = (0.5 + np.cumsum(losses, axis=0)) / place
    variance = (0.25 + np.cumsum((losses - mean) ** 2, axis=0)) / place
    before = np.vstack([np.full((1, losses.shape[1]), 0.25), variance[:-1]])
    stake = np.sqrt(2 * -math.log(1 - confidence) / (np.maximum(counts, 1) * before))
    stake = np.where(place - 2 < counts, np.minimum(stake, _LARGEST_STAKE / (1 - at_most)), 0.0)
    return np.exp(-np.maximum(np.cumsum(np.log1p(stake * (at_most - losses)), axis=0).max(axis=0), 0.0))


def betting_bound(losses: np.ndarray, counts: np.ndarray, confidence: float) -> np.ndarray:
    """Return the least means (t,) that `betting_p` rejects at `confidence`, rounded up by at most 0.001."""
    low, high = np.zeros(losses.shape[1]), np.ones(losses.shape[1])
    for _ in range(10):
        middle = (low + high) / 2
        rejected = betting_p(losses, counts, middle, confidence) <= 1 - confidence
        low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
    return high
