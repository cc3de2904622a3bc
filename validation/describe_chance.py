"""How often `truerank describe` reports an error or a warning about random features of few queries."""

from __future__ import annotations

import numpy as np

from truerank.data.checkup import examine, fold_scales, spreads
from truerank.data.ranking_data import RankingData
from truerank.measures.file_order import file_order_finding
from validation.harness import Row, rate, streams

PROMISE = (
    "Random features and grades of few queries give a warning in at most 5 % of data sets, and the error that a "
    "feature equals the grades in at most 0.1 %."
)
FEATURES = 46
SETTINGS = [(3, 2), (5, 2), (8, 2), (3, 5)]  # queries, documents
BARS = {"feature-equals-grade": 0.001, "file-order": 0.05, "fold-scale": 0.05}


def run(replications: int, seed: int) -> list[Row]:
    """The rate of each finding, and for comparison that of a feature that orders all documents as the grades do."""
    rows = []
    for queries, documents in SETTINGS:
        qid = np.repeat(np.arange(queries), documents)
        found: dict[str, list[bool]] = {name: [] for name in BARS}
        by_chance = []
        for rng in streams(seed, replications):
            grades = rng.permuted(np.tile(np.eye(1, documents)[0], (queries, 1)), axis=1).ravel()
            sparse = rng.exponential(size=(2, len(qid), FEATURES)) * (rng.random((2, len(qid), FEATURES)) < 0.1)
            data = RankingData(rng.random((len(qid), FEATURES)), grades, qid)
            codes = {finding.code for finding in (*examine(data), *file_order_finding(data))}
            files = [spreads(RankingData(X, grades, qid)) for X in sparse]
            codes |= {finding.code for finding in fold_scales(["one", "other"], files)}
            for name, events in found.items():
                events.append(name in codes)
            first = data.X.reshape(queries, documents, -1).argmax(axis=1)
            best = grades.reshape(queries, documents).argmax(axis=1)
            by_chance.append(bool((first == best[:, None]).all(axis=0).any()))
        setting = f"{FEATURES} random features, {queries} queries of {documents} documents"
        rows.append(rate(setting, "some feature has the relevant document first in every query", by_chance))
        rows += [rate(setting, f"finding {name}", found[name], high=bar) for name, bar in BARS.items()]
    return rows
