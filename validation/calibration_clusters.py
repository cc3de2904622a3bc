"""Do diagnostics of probabilities hold their level when the documents of a query depend on each other?

The probabilities are true: P(relevant) is drawn from Beta(0.5, 2) for each of 20 documents of a query, and relevance by
a normal variable that the documents of a query share in part (a Gaussian copula, so that each probability stays
exact). The calibration error is also measured where each probability is 0.1 too high.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from truerank.calibration.diagnostics import expected_calibration_error, reliability, spiegelhalter_test
from validation.harness import Row, average, rate, streams

PROMISE = (
    "With queries as groups, Spiegelhalter's test rejects true probabilities in at most 5 % of samples, the interval "
    "of the calibration error covers the true error, and reliability bands cover the observed shares."
)
DOCUMENTS = 20
SETTINGS = ((60, 0.0), (60, 0.1), (60, 0.3), (20, 0.3))
BAR = 0.93
REPLICATIONS = 5_300  # unless --replications asks for another number
MORE = 4  # times as many samples for Spiegelhalter's test, which needs no resampling
CONTRASTS = 300  # samples whose rows are taken as independent, which is no promise


def sample(generator: np.random.Generator, queries: int, correlation: float) -> tuple[np.ndarray, ...]:
    """Probabilities, classes and query of each document."""
    query = np.repeat(np.arange(queries), DOCUMENTS)
    p = generator.beta(0.5, 2.0, size=len(query))
    shared = generator.normal(size=queries)[query]
    latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * generator.normal(size=len(query))
    return p, ndtr(latent) < p, query


def run(replications: int, seed: int) -> list[Row]:
    """Spiegelhalter's test on the most samples; intervals and bands, which are resampled, on fewer."""
    rows = []
    contrasts = min(replications, CONTRASTS)
    for queries, correlation in SETTINGS:
        rejected: dict[bool, list[bool]] = {True: [], False: []}
        covered: dict[bool, list[bool]] = {True: [], False: []}
        shifted, inside = [], []
        for number, generator in enumerate(streams(seed, MORE * replications)):
            p, y, query = sample(generator, queries, correlation)
            for grouped in (True, False)[: 1 + (number < contrasts)]:
                groups = query if grouped else None
                rejected[grouped].append(spiegelhalter_test(y, p, groups=groups).p < 0.05)
                if number < replications:
                    error = expected_calibration_error(y, p, groups=groups, random_state=number)
                    covered[grouped].append(error.low <= 0.0 <= error.high)
            if number < replications:
                high = np.minimum(p + 0.1, 1.0)
                error = expected_calibration_error(y, high, groups=query, random_state=number)
                shifted.append(error.low <= float(np.mean(high - p)) <= error.high)
                inside.append(reliability(y, p, groups=query, n_resamples=200, random_state=number).inside)
        setting = f"{queries} queries of {DOCUMENTS}, correlation {correlation:g}"
        rows += [
            rate(setting, "Spiegelhalter rejects, by query", rejected[True], high=0.05),
            rate(setting, "Spiegelhalter rejects, rows taken as independent", rejected[False]),
            rate(setting, "interval covers the calibration error 0, by query", covered[True], low=BAR),
            rate(setting, "interval covers the calibration error 0, rows taken as independent", covered[False]),
            rate(setting, "interval covers the calibration error of a shift of 0.1, by query", shifted, low=BAR),
            average(setting, "share of bins inside their 95 % band, by query", inside, low=BAR),
        ]
    return rows
