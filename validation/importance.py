"""How often a report of importances shows a feature that is noise, and how often one that matters."""

from __future__ import annotations

import numpy as np

from truerank.data.ranking_data import RankingData
from truerank.inspection.importance import permutation_importance
from truerank.rankers.baselines import RidgeRanker
from validation.harness import Row, rate, streams

PROMISE = (
    "A report of permutation importances on held-out queries shows a loss for some feature that is noise in at most "
    "5 % of reports."
)
NOISE, DOCUMENTS = 10, 8


def run(replications: int, seed: int) -> list[Row]:
    """Ridge rankers of ten noise columns, alone and next to a column that the grades depend on."""
    rows = []
    for queries, effect in ((20, 0.0), (40, 0.5)):
        noise, uncorrected, found = [], [], []
        for rng in streams(seed, replications):
            held_out = _data(rng, queries, effect)
            ranker = RidgeRanker().fit(_data(rng, 30, effect))
            result = permutation_importance(ranker, held_out, measure="AP(rel=1)", random_state=rng)
            shown = {name for name in result.shown if name != "feature 1" or effect == 0}
            noise.append(bool(shown))
            uncorrected.append(bool((result.low[1 if effect else 0 :] > 0).any()))
            found.append("feature 1" in result.shown)
        setting = f"{NOISE} noise columns{', one true' if effect else ''}, {queries} queries"
        rows.append(rate(setting, "some noise column is shown", noise, high=0.05))
        rows.append(rate(setting, "some noise column has an interval above 0, uncorrected", uncorrected))
        if effect:
            rows.append(rate(setting, "the true column is shown (power)", found))
    return rows


def _data(rng: np.random.Generator, queries: int, effect: float) -> RankingData:
    """Queries of 8 documents, half of them relevant; with an effect, column 0 is the true one."""
    n = queries * DOCUMENTS
    X = rng.standard_normal((n, NOISE + (effect > 0)))
    latent = (effect * X[:, 0] + rng.standard_normal(n)).reshape(queries, DOCUMENTS)
    grades = (latent.argsort(axis=1).argsort(axis=1) >= DOCUMENTS // 2).astype(float)
    return RankingData(X, grades.ravel(), np.repeat(np.arange(queries), DOCUMENTS))
