"""How often 26 weekly retrainings, compared on the same 60 queries, promote a model that is truly worse."""

from __future__ import annotations

import numpy as np

from truerank.inspection.retraining import decide
from truerank.significance.history import History
from truerank.significance.paired import paired_t
from validation.harness import Row, rate, streams

PROMISE = (
    "26 retrainings without a true gain, compared on the same 60 queries, promote a truly worse model in at most 5 % "
    "of histories."
)
WEEKS, QUERIES = 26, 60
QUERY_SD, MODEL_SD = 0.25, 0.15  # of the values between queries, and of a model around the query's mean
BY_CHANCE = 1.4  # |t| below which no test is run, since none has p < 0.05 there


def run(replications: int, seed: int) -> list[Row]:
    """Candidates as good as production up to chance, and candidates that are all worse by a hair."""
    rows = []
    for setting, deviation, step in (("exchangeable models", 0.01, 0.0), ("each candidate worse by 0.0001", 0.0, 1e-4)):
        for test in ("randomisation", "t", "wilcoxon"):
            for counted in (True, False):
                worse = [_history(rng, test, deviation, step, counted) for rng in streams(seed, replications)]
                looks = "looks counted" if counted else "looks not counted"
                quantity = f"histories that promote a truly worse model, {test}, {looks}"
                rows.append(rate(setting, quantity, worse, high=0.05 if counted else None))
    return rows


def _history(rng: np.random.Generator, test: str, deviation: float, step: float, counted: bool) -> bool:
    """Whether some promotion was of a model that is truly worse than the one it replaced."""
    queries = np.arange(QUERIES, dtype=np.uint64)
    easy = QUERY_SD * rng.standard_normal(QUERIES) + 0.5
    history, truth = History(), deviation * rng.standard_normal()
    production = easy + truth + MODEL_SD * rng.standard_normal(QUERIES)
    for week in range(WEEKS):
        new_truth = truth - step + deviation * (rng.standard_normal() - (truth / deviation if deviation else 0.0))
        candidate = easy + new_truth + MODEL_SD * rng.standard_normal(QUERIES)
        look = history.look(queries) if counted else 1
        history.count(queries)
        if test != "wilcoxon" and abs(paired_t(candidate, production).statistic) < BY_CHANCE:
            continue
        if decide(candidate, production, test=test, look=look, random_state=week).promoted:
            if new_truth < truth:
                return True
            production, truth = candidate, new_truth
    return False
