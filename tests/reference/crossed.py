"""Crossed random effects of queries and seeds: sums of squares by loops, and p by trying levels."""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats


def crossed(d):
    """Mean, half width of the 95 % interval, errors of queries and seeds, and p of differences d (seeds, queries)."""
    s, m = len(d), len(d[0])
    mean = np.mean(d)
    of_query = [np.mean([d[i][q] for i in range(s)]) for q in range(m)]
    of_seed = [np.mean(d[i]) for i in range(s)]
    ms_q = sum(s * (own - mean) ** 2 for own in of_query) / (m - 1)
    ms_s = sum(m * (own - mean) ** 2 for own in of_seed) / (s - 1)
    ms_e = sum((d[i][q] - of_query[q] - of_seed[i] + mean) ** 2 for i in range(s) for q in range(m))
    ms_e /= (m - 1) * (s - 1)
    error = np.sqrt(max(ms_q + ms_s - ms_e, ms_q, ms_s) / (s * m))
    a, b = max(ms_q - ms_e, 0) / (s * m), ms_s / (s * m)

    def quantile(level):
        return (a * stats.t.isf(level / 2, m - 1) + b * stats.t.isf(level / 2, s - 1)) / (a + b)

    p = optimize.brentq(lambda level: quantile(level) * error - abs(mean), 1e-12, 1 - 1e-12)
    return mean, quantile(0.05) * error, np.sqrt(a), np.sqrt(b), p
