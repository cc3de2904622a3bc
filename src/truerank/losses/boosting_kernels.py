"""Kernels of the objectives: gradients and hessians over the pairs of each query."""

from __future__ import annotations

import numpy as np

from truerank.core.kernel import kernel
from truerank.matrices.sorting import best_first, longest_query


@kernel
def discounted_pairs(y, scores, offsets, first, last, gradients, hessians, gains, discounts, inverse, sigma, cutoff):
    """Add logistic pairs with the weight |Δ gain| |Δ discount| / ideal (lambdarank), or 1 if `cutoff` is 0.

    ρ_ij = e_j / (e_i + e_j) with e = exp(σ (s - max s)), so that a pair costs a division and no exponential; e is at
    least exp(-300).

    Two functions would take 1.4 times as long: the compiler knows only of arrays created here that they do not overlap.
    Unsigned indices are not checked for negative values, so several divisions run at a time.
    """
    longest = longest_query(offsets, first, last)
    order = np.empty(longest, dtype=np.int64)
    gain, power, weight = np.empty(longest), np.empty(longest), np.empty(longest)
    g, h = np.empty(longest), np.empty(longest)
    own_g, own_h = np.empty(longest), np.empty(longest)
    for q in range(first, last):
        start = offsets[q]
        n = offsets[q + 1] - start
        weighed = cutoff > 0
        if weighed and inverse[q] == 0.0:
            continue
        # Stage 1. Sort documents by score, with e_i = exp(σ (s_i - max s)).
        if weighed:
            best_first(scores[start : start + n], order)
        else:
            for a in range(n):
                order[a] = a
        top = -np.inf
        for a in range(n):
            top = max(top, scores[start + a])
        for a in range(n):
            i = start + order[a]
            gain[a] = gains[i]
            power[a] = np.exp(max(sigma * (scores[i] - top), -300.0))
            g[a] = h[a] = 0.0
        # Stage 2. For pairs (a, b) with a ranked before b, compute weights w, then λ = σ w ρ and its derivative.
        above = min(n, cutoff) if weighed else n
        last = np.uint64(n)
        for a in range(above):
            mine, below = gain[a], np.uint64(a + 1)
            if weighed:
                d, scale = discounts[a], inverse[q]
                for b in range(below, last):
                    weight[b] = (mine - gain[b]) * (d - discounts[b]) * scale
            else:
                for b in range(below, last):
                    weight[b] = np.float64(mine > gain[b]) - np.float64(mine < gain[b])
            e = power[a]
            for b in range(below, last):
                w = weight[b]
                rho = power[b] / (e + power[b])  # of a before b
                push = sigma * w * (rho if w > 0.0 else 1.0 - rho)
                bend = sigma * sigma * abs(w) * rho * (1.0 - rho)
                own_g[b] = push
                own_h[b] = bend
                g[b] += push
                h[b] += bend
            sum_g = sum_h = 0.0
            for b in range(below, last):
                sum_g += own_g[b]
                sum_h += own_h[b]
            g[a] -= sum_g
            h[a] += sum_h
        for a in range(n):
            i = start + order[a]
            gradients[i] = g[a]
            hessians[i] = h[a]


@kernel
def given_pairs(y, scores, weights, sigma, gradients, hessians):
    """Add the logistic pairs of one query with given weights (n, n)."""
    n = y.size
    for i in range(n):
        for j in range(n):
            if y[i] > y[j]:
                x = sigma * (scores[i] - scores[j])
                rho = 1.0 / (1.0 + np.exp(x)) if x < 0.0 else np.exp(-x) / (1.0 + np.exp(-x))
                push = sigma * weights[i, j] * rho
                bend = sigma * sigma * weights[i, j] * rho * (1.0 - rho)
                gradients[i] -= push
                gradients[j] += push
                hessians[i] += bend
                hessians[j] += bend


@kernel
def neighbour_pairs(y, scores, offsets, first, last, gradients, hessians, noise, decay):
    """Add logistic pairs of neighbours in the rankings by `scores + noise`, with weight decay^rank |Δ grade|."""
    rankings = noise.shape[0]
    keys = np.empty(longest_query(offsets, first, last))
    order = np.empty(keys.size, dtype=np.int64)
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        for r in range(rankings):
            for i in range(start, stop):
                keys[i - start] = scores[i] + noise[r, i]
            best_first(keys[: stop - start], order)
            w = 1.0 / rankings
            for a in range(stop - start - 1):
                i = start + order[a]
                j = start + order[a + 1]
                if y[i] < y[j]:
                    i, j = j, i
                pair = w * (y[i] - y[j])
                w *= decay
                if pair > 0.0:
                    x = scores[i] - scores[j]
                    rho = 1.0 / (1.0 + np.exp(x)) if x < 0.0 else np.exp(-x) / (1.0 + np.exp(-x))
                    gradients[i] -= pair * rho
                    gradients[j] += pair * rho
                    hessians[i] += pair * rho * (1.0 - rho)
                    hessians[j] += pair * rho * (1.0 - rho)
