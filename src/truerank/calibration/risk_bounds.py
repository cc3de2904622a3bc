"""Is the mean of independent losses in [0, 1] at most α? Exact binomial tails and betting, and tests in a sequence.

The p-values are valid for any sample size: under a mean above α, P(p ≤ δ) ≤ δ. Fixed-sequence testing goes through
hypotheses in an order that was settled before the losses were seen and stops at the first p above δ; the probability
that any true one is rejected is then at most δ, however many there are (Angelopoulos et al. 2025, proposition 3).

References
----------
A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei (2025). Learn then test: calibrating predictive
algorithms to achieve risk control. Annals of Applied Statistics 19. I. Waudby-Smith, A. Ramdas (2024). Estimating means
of bounded random variables by betting. Journal of the Royal Statistical Society B 86.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, betaincinv

# Largest share of the wealth that a loss of 1 may cost.
_LARGEST_STAKE = 0.75


def least_losses(at_most: float, confidence: float, binary: bool = True) -> int:
    """With fewer losses than this, no bound at `confidence` lies at or below `at_most` even where all are 0.

    >>> least_losses(0.35, 0.9), least_losses(0.35, 0.9, binary=False)  # ln 0.1 / ln 0.65 = 5.3
    (6, 7)
    """
    n = math.ceil(math.log(1 - confidence) / math.log1p(-at_most) - 1e-9)
    while not binary and betting_p(np.zeros((n, 1)), np.array([n]), at_most, confidence)[0] > 1 - confidence:
        n += 1 + n // 50
    return n


def binomial_p(lost: np.ndarray, counts: np.ndarray, at_most: float) -> np.ndarray:
    """P(no more losses than these | mean α): lost (t,) of counts (t,)."""
    return np.where(counts > 0, bdtr(lost, np.maximum(counts, 1), at_most), 1.0)


def binomial_bound(lost: np.ndarray, counts: np.ndarray, confidence: float) -> np.ndarray:
    """Clopper and Pearson's upper bounds of the mean, where `lost` (t,) of `counts` (t,) losses are 1."""
    return np.where(lost < counts, betaincinv(lost + 1, np.maximum(counts - lost, 1), confidence), 1.0)


def betting_p(losses: np.ndarray, counts: np.ndarray, at_most: float | np.ndarray, confidence: float) -> np.ndarray:
    """1/(highest wealth) of bettors against means above α, float64 (t,).

    Before each loss L the share ν = min(c/(1 - α), sqrt(2 ln(1/δ)/(n σ²))), c = 3/4, is staked and the wealth
    multiplied by 1 + ν(α - L), where σ² is the regularised variance of the losses before it (Waudby-Smith and Ramdas
    2024, equations 25 and 26, one-sided). Under a mean above α the wealth is a supermartingale, so Ville's inequality
    makes its inverse a p-value.

    Parameters
    ----------
    losses : array (n, t)
        In [0, 1], in an order that does not follow them; column t counts up to its first `counts[t]` rows.
    """
    place = np.arange(2, len(losses) + 2)[:, None]
    mean = (0.5 + np.cumsum(losses, axis=0)) / place
    variance = (0.25 + np.cumsum((losses - mean) ** 2, axis=0)) / place
    before = np.vstack([np.full((1, losses.shape[1]), 0.25), variance[:-1]])
    stake = np.sqrt(2 * -math.log(1 - confidence) / (np.maximum(counts, 1) * before))
    stake = np.where(place - 2 < counts, np.minimum(stake, _LARGEST_STAKE / (1 - at_most)), 0.0)
    return np.exp(-np.maximum(np.cumsum(np.log1p(stake * (at_most - losses)), axis=0).max(axis=0), 0.0))


def betting_bound(losses: np.ndarray, counts: np.ndarray, confidence: float) -> np.ndarray:
    """The least means (t,) that `betting_p` rejects at `confidence`, to 0.001 above."""
    low, high = np.zeros(losses.shape[1]), np.ones(losses.shape[1])
    for _ in range(10):
        middle = (low + high) / 2
        rejected = betting_p(losses, counts, middle, confidence) <= 1 - confidence
        low, high = np.where(rejected, low, middle), np.where(rejected, middle, high)
    return high


def rejected_in_sequence(p: np.ndarray, confidence: float) -> int:
    """How many p-values (h,) come before the first one above 1 - confidence."""
    above = np.flatnonzero(p > 1 - confidence)
    return int(above[0]) if len(above) else len(p)
