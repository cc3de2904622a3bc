"""The posterior of a mean difference by adding up a fine grid of means and deviations, with the Cauchy prior itself."""

from __future__ import annotations

import numpy as np


def probabilities(d, rope, scale):
    """P(μ < -rope), P(-rope ≤ μ ≤ rope), P(μ > rope) for normal differences d (n,), by a grid over μ and log σ."""
    n, mean, deviation = len(d), np.mean(d), np.std(d, ddof=1)
    mu = mean + deviation / np.sqrt(n) * np.linspace(-14, 14, 4_001)
    log_sigma = np.log(deviation) + np.linspace(-2.5, 4, 801)
    sigma = np.exp(log_sigma)[:, None]
    squares = ((d[:, None] - mu) ** 2).sum(axis=0)
    # p(σ) ∝ 1/σ is flat in log σ; the density of μ given σ is that of the Cauchy prior of μ/σ, divided by σ
    log_density = -n * np.log(sigma) - squares / (2 * sigma**2) - np.log(sigma) - np.log1p((mu / (scale * sigma)) ** 2)
    weight = np.exp(log_density - log_density.max()).sum(axis=0)
    weight /= weight.sum()
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    edges = np.concatenate([mu - (mu[1] - mu[0]) / 2, [mu[-1] + (mu[1] - mu[0]) / 2]])
    below, above = np.interp(-rope, edges, cumulative), 1.0 - np.interp(rope, edges, cumulative)
    return below, 1.0 - below - above, above
