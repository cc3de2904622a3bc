"""The posterior of segments' mean differences by adding up dense grids of means, with each segment's t likelihood."""

from __future__ import annotations

import numpy as np


def probabilities(parts, rope, scale, spread, freedom):
    """P(μ_s < -rope), P(-rope ≤ μ_s ≤ rope), P(μ_s > rope) (segments, 3) of differences d_s (n_s,) in `parts`.

    d_is ~ N(μ_s, σ_s²), μ_s ~ N(μ, τ²), μ/u ~ Cauchy(0, scale), τ/u ~ half-Cauchy(0, spread), σ_s² ~ scaled inverse χ²
    of `freedom` degrees of freedom and scale u², with u the standard deviation of all differences.
    """
    u = np.std(np.concatenate(parts), ddof=1)
    n, m, ss = (np.array([f(d / u) for d in parts]) for f in (len, np.mean, lambda d: ((d - d.mean()) ** 2).sum()))
    # σ_s integrated: ∫ p(σ²) Π N(d_i; x, σ²) dσ² ∝ (freedom + ss + n (m - x)²)^(-(freedom + n)/2)
    x, step = np.linspace(-2.0, 2.0, 501, retstep=True)
    likelihood = [(freedom + s + k * (c - x) ** 2) ** (-(freedom + k) / 2) for k, c, s in zip(n, m, ss)]
    likelihood = np.array([own / own.max() for own in likelihood])  # (segments, x)
    above = np.clip((x[None] - np.array([[-rope / u], [rope / u]])) / step + 0.5, 0, 1)  # the part of a cell
    masks = 1 - above[0], above[0] - above[1], above[1]
    mu = 0.2 * np.sinh(np.linspace(-6.5, 6.5, 401))  # wider than x, since τ may be large
    prior = np.gradient(mu) / (1.0 + (mu / scale) ** 2)
    total, sums = 0.0, np.zeros((len(parts), 3))
    for tau in spread * np.exp(np.linspace(-6, 6, 49)):
        width = max(tau, step)  # a narrower normal density would fall between the cells
        kernel = np.exp(-((mu[:, None] - x) ** 2) / (2 * width**2)) / width
        inside = np.array([[kernel @ (own * mask) for mask in masks] for own in likelihood])  # (segments, 3, μ)
        marginal = inside.sum(axis=1)
        weight = prior * tau / (spread**2 + tau**2) * marginal.prod(axis=0)
        total += weight.sum()
        sums += (weight * inside / np.maximum(marginal, 1e-300)[:, None]).sum(axis=2)
    return sums / total
