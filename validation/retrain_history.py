"""How often 26 weekly retrainings, compared on the same 60 queries, promote a model that is truly worse.

All histories go on week by week together. The first ones of each week are compared with `decide` and `History`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfc, stdtr

from truerank.inspection.retraining import decide
from truerank.significance.comparison import resamples_for
from truerank.significance.history import History, level_of
from truerank.significance.paired import Signs, moments, signs_p
from validation.harness import Row, rate

PROMISE = (
    "26 retrainings without a true gain, compared on the same 60 queries, promote a truly worse model in at most 5 % "
    "of histories."
)
REPLICATIONS = 5_300  # unless --replications asks for another number
WEEKS, QUERIES = 26, 60
QUERY_SD, MODEL_SD = 0.25, 0.15  # of the values between queries, and of a model around the query's mean
BY_CHANCE = 4.0  # times the level: above it Student's p excludes that the randomisation p is below the level
COMPARED = 2  # histories that are compared with `decide`


def run(replications: int, seed: int) -> list[Row]:
    """Candidates as good as production up to chance, and candidates that are all worse by a hair."""
    rows = []
    for setting, deviation, step in (("exchangeable models", 0.01, 0.0), ("each candidate worse by 0.0001", 0.0, 1e-4)):
        for test in ("randomisation", "t", "wilcoxon"):
            for counted in (True, False):
                rng = np.random.default_rng([seed, len(rows)])
                worse = _histories(rng, replications, test, deviation, step, counted)
                looks = "looks counted" if counted else "looks not counted"
                quantity = f"histories that promote a truly worse model, {test}, {looks}"
                rows.append(rate(setting, quantity, worse, high=0.05 if counted else None))
    return rows


def _histories(rng: np.random.Generator, n: int, test: str, deviation: float, step: float, counted: bool) -> np.ndarray:
    """Whether some promotion (n,) was of a model that is truly worse than the one it replaced."""
    queries, history = np.arange(QUERIES, dtype=np.uint64), History()
    easy = QUERY_SD * rng.standard_normal((QUERIES, n)) + 0.5
    truth, worse = deviation * rng.standard_normal(n), np.zeros(n, dtype=bool)
    production = easy + truth + MODEL_SD * rng.standard_normal((QUERIES, n))
    for week in range(WEEKS):
        own = deviation * rng.standard_normal(n) if deviation else truth
        new_truth = own - step
        candidate = easy + new_truth + MODEL_SD * rng.standard_normal((QUERIES, n))
        look = history.look(queries) if counted else 1
        history.count(queries)
        promoted = _promoted(test, candidate, production, look, week)
        worse |= promoted & (new_truth < truth)
        production, truth = np.where(promoted, candidate, production), np.where(promoted, new_truth, truth)
    return worse


def _promoted(test: str, candidate: np.ndarray, production: np.ndarray, look: int, week: int) -> np.ndarray:
    """Which candidates (queries, n) replace the models in production, as `decide` says."""
    d, level = candidate - production, level_of(look, 0.05)
    _, mean, deviation = moments(d)
    p = 2 * stdtr(QUERIES - 1, -np.abs(mean) / (deviation / math.sqrt(QUERIES)))
    shown = mean
    if test == "randomisation":
        near = np.flatnonzero(p < BY_CHANCE * level)
        signs = Signs.of(QUERIES, resamples_for(1, level), week)
        p = np.ones(len(mean))
        p[near] = signs_p(np.ascontiguousarray(d[:, near]), signs) if len(near) else []
    elif test == "wilcoxon":  # the normal approximation, since more than 50 queries differ
        ranks = np.abs(d).argsort(axis=0).argsort(axis=0) + 1.0
        shown = np.where(d > 0, ranks, -ranks).sum(axis=0)
        p = erfc(np.abs(shown) / 2 / math.sqrt(QUERIES * (QUERIES + 1) * (2 * QUERIES + 1) / 12))
    promoted = (p < level) & (shown > 0) & (mean >= 0)
    for k in range(min(COMPARED, len(promoted))):
        own = decide(candidate[:, k], production[:, k], test=test, look=look, random_state=week)
        assert own.promoted == promoted[k]
    return np.asarray(promoted)
