"""Bayesian probabilities for segments of queries, which borrow strength from each other.

The model of the differences d_is of query i in segment s, in units of u, the standard deviation of all differences:

    d_is ~ N(μ_s, σ_s²),  μ_s ~ N(μ, τ²),  σ_s² ~ scaled inverse χ²(4, 1)
    μ ~ Cauchy(0, 0.35),  τ ~ half-Cauchy(0, 0.1)

Given μ, τ and σ_s, the posterior of μ_s is normal, and segments are independent. μ, log τ and log σ_s² are summed over
nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from truerank.significance.bayes import HALVINGS, LEAST, SCALE, SURE, Posterior, cautious
from truerank.significance.paired import moments

SPREAD = 0.1  # scale of τ/u
FREEDOM = 4.0  # queries that the prior of σ_s is worth
_TAU = np.exp(np.arange(-5.0, 5.01, 0.5))[:, None, None]  # nodes of τ/SPREAD (t, 1, 1)
_MU = np.arange(-8.0, 8.01, 0.25)[:, None]  # of μ, in standard deviations about its centre (g, 1)
_CHI = np.arange(-5.0, 3.51, 0.5)  # of log σ_s², in standard deviations of log χ²


class Segments(NamedTuple):
    """The queries, mean difference, posterior mean and posterior of each segment (s,)."""

    queries: np.ndarray
    mean: np.ndarray
    shrunk: np.ndarray
    posterior: Posterior


class _Likelihood(NamedTuple):
    """The likelihood of a segment at the nodes, and the normal posteriors of μ_s at the nodes (t, g, q)."""

    log_density: np.ndarray  # of its mean, given μ and τ (t, g)
    weight: np.ndarray  # of the nodes of σ_s; they add up to 1 over q
    centre: np.ndarray
    deviation: np.ndarray  # (t, 1, q)


def segments_posterior(differences: Any, rope: float, loss: float = math.nan, *, ends: bool = True) -> Segments:
    """Return the posterior of the mean difference of each segment.

    Parameters
    ----------
    differences : float array (n, s)
        NaN where a query is not in the segment, or undefined.
    rope : float
        δ ≥ 0, in the unit of the measure.
    loss : float, optional
        Loss of a query that fails. `equivalent` is at most that of `cautious` for the segment alone, since other
        segments do not show its rare losses: NaN without a loss, and in segments of fewer than 50 queries.
    ends : bool, default True
        Whether `low` and `high` are computed; NaN if not.

    Notes
    -----
    Segments of fewer than five queries have NaN, but contribute to the other segments. If all differences are equal,
    all results are NaN. Cost: 25,000 nodes for each segment. Do not model several measures in this way: their values on
    the same queries are not independent.

    References
    ----------
    Gelman, Carlin, Stern, Dunson, Vehtari, Rubin: Bayesian Data Analysis, third edition (2013), chapter 5.
    Gelman: Prior distributions for variance parameters in hierarchical models. Bayesian Analysis 1 (2006), 515-534.

    Examples
    --------
    >>> d = np.random.default_rng(0).normal(0.03, 0.1, (40, 3))
    >>> d[8:, 2] = np.nan  # the last segment has eight queries
    >>> found = segments_posterior(d, rope=0.01)
    >>> found.queries.tolist(), found.mean.round(3).tolist(), found.shrunk.round(3).tolist()
    ([40, 40, 8], [0.014, 0.033, 0.018], [0.02, 0.025, 0.021])
    >>> found.posterior.better.round(3).tolist()
    [0.804, 0.916, 0.809]
    """
    d = np.asarray(differences, dtype=np.float64)
    queries = (~np.isnan(d)).sum(axis=0)
    nothing = np.full((7, d.shape[1]), math.nan)
    result = Segments(queries, nothing[0], nothing[1], Posterior(*nothing[2:]))
    there = np.flatnonzero(queries)
    n, mean, deviation = moments(d[:, there])
    result.mean[there] = mean
    unit = float(moments(d.reshape(-1, 1))[2][0]) if len(there) else 0.0
    if unit == 0:
        return result
    found, mean, deviation = result.posterior, mean / unit, deviation / unit
    squares, rope = (n - 1) * deviation**2, rope / unit
    tau = SPREAD * _TAU
    mu = _nodes_of_mu(n, mean, squares, tau)
    known = [_likelihood(*own, mu, tau) for own in zip(n, mean, squares)]
    # densities of log τ, of μ, and the distance of the nodes of μ
    prior = np.log(tau / (SPREAD**2 + tau**2) * (mu[:, 1:2] - mu[:, :1]))[..., 0] - np.log1p((mu / SCALE) ** 2)[..., 0]
    total = prior + sum(one.log_density for one in known)
    for k, (s, one) in enumerate(zip(there, known)):
        if n[k] < LEAST:
            continue
        parts = _mixture(total, one)
        result.shrunk[s] = unit * (parts[0] @ parts[1])
        found.worse[s], found.better[s] = _below(-rope, *parts), 1.0 - _below(rope, *parts)
        if ends:
            found.low[s], found.high[s] = (
                unit * _quantile(share, *parts) for share in ((1 - SURE) / 2, (1 + SURE) / 2)
            )
    rest = np.clip(1.0 - found.worse - found.better, 0.0, 1.0)[there]
    found.equivalent[there] = np.minimum(rest, cautious(d[:, there], rope * unit, loss, ends=False).equivalent)
    return result


def _nodes_of_mu(n: np.ndarray, mean: np.ndarray, squares: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return nodes of μ (t, g, 1) about its posterior mean with a normal prior, for each τ."""
    variance = tau[:, 0] ** 2 + (FREEDOM + squares) / ((FREEDOM + n - 1.0) * n)
    precision = (1.0 / variance).sum(axis=1) + 1.0 / SCALE**2
    centre = (mean / variance).sum(axis=1) / precision
    return centre[:, None, None] + _MU / np.sqrt(precision)[:, None, None]


def _likelihood(n: int, mean: float, squares: float, mu: np.ndarray, tau: np.ndarray) -> _Likelihood:
    freedom = FREEDOM + n - 1.0
    log_chi = math.log(freedom) + math.sqrt(2.0 / freedom) * _CHI * (1.0 + 1.0 / freedom)
    v = (FREEDOM + squares) / (n * np.exp(log_chi))  # variance of the segment's mean
    log_weight = freedom / 2.0 * log_chi - np.exp(log_chi) / 2.0
    both = tau**2 + v
    log_density = log_weight - log_weight.max() - 0.5 * np.log(both) - (mean - mu) ** 2 / (2.0 * both)
    top = log_density.max(axis=2, keepdims=True)
    weight = np.exp(log_density - top)
    sums = weight.sum(axis=2, keepdims=True)
    return _Likelihood(
        (top + np.log(sums))[..., 0], weight / sums, (mean * tau**2 + mu * v) / both, tau * np.sqrt(v / both)
    )


def _mixture(log_weight: np.ndarray, one: _Likelihood) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, centres and deviations of the normal distributions that matter in the posterior of μ_s."""
    weight = np.exp(log_weight - log_weight.max())[..., None] * one.weight
    kept = weight > 1e-9 * weight.max()
    weight = weight[kept]
    return weight / weight.sum(), one.centre[kept], np.broadcast_to(one.deviation, kept.shape)[kept]


def _below(value: float, weight: np.ndarray, centre: np.ndarray, deviation: np.ndarray) -> float:
    from scipy.special import ndtr

    return float(weight @ ndtr((value - centre) / deviation))


def _quantile(share: float, weight: np.ndarray, centre: np.ndarray, deviation: np.ndarray) -> float:
    start, stop = float((centre - 9.0 * deviation).min()), float((centre + 9.0 * deviation).max())
    for _ in range(HALVINGS):
        middle = (start + stop) / 2.0
        under = _below(middle, weight, centre, deviation) < share
        start, stop = (middle, stop) if under else (start, middle)
    return (start + stop) / 2.0
