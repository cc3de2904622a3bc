"""Rows to train on: shown documents with estimated relevances as grades."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.clicks.examination import Examination
from truerank.clicks.log import ClickLog
from truerank.clicks.relevance import rows_of_pairs
from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData, check_ranking_data


class TrainingClicks(NamedTuple):
    """Rows to train on, and how they were made.

    Attributes
    ----------
    data : RankingData
        A row for each shown document with features; its grade is the estimated relevance in [0, 1].
    cut : int
        Number of relevances that were clipped to [0, 1].
    cut_weight : float
        Share of the examined impressions on them.
    without_features : int
        Shown documents that the features lack.
    """

    data: RankingData
    cut: int
    cut_weight: float
    without_features: int


def training_data(
    log: ClickLog,
    features: RankingData,
    examination: Examination,
    *,
    weights: str = "queries",
    least: float = 1.0,
) -> TrainingClicks:
    """Return the shown documents with their features; the grade is Σ (clicks - β) / Σ α over their impressions.

    Parameters
    ----------
    log : ClickLog
    features : RankingData
        Rows of documents with `doc_ids`; grades are ignored.
    examination : Examination
    weights : {"queries", "documents"}, default="queries"
        `query_weight`: the impressions of each query, with mean 1. Or `sample_weight`: the examined impressions Σ α of
        each document, with mean 1, for pointwise learners.
    least : float, default=1
        Documents with fewer examined impressions are left out, because their estimates are mostly noise.

    Raises
    ------
    InvalidInputError
        If no document is left.

    Notes
    -----
    Train with an objective that is linear in the grades, `objective="ips-lambdarank"` or "mse". Objectives that compare
    grades would learn the noise of the estimates.
    """
    check_ranking_data(features, "features")
    check_choice(weights, "weights", ("queries", "documents"))
    least = check_number(least, "least", minimum=0.0)
    cells = log.cells(log.position)
    alpha, beta = examination.click_rates(cells.keys[0])
    known = ~np.isnan(alpha)
    pair = cells.pair
    seen = np.bincount(pair[known], weights=(alpha * cells.n)[known], minlength=int(pair[-1]) + 1)
    liked = np.bincount(pair[known], weights=(cells.clicks - beta * cells.n)[known], minlength=len(seen))
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    query = cells.query[first]
    row = rows_of_pairs(log, query, cells.document[first], features)
    kept = (row >= 0) & (seen >= max(least, 1e-9))
    if not kept.any():
        raise InvalidInputError(
            f"no shown document has features and {least:g} examined impressions; compare the query and document ids of "
            "both, or lower least (--least)"
        )
    relevance = liked[kept] / seen[kept]
    out = (relevance < 0) | (relevance > 1)
    rows, weight = row[kept], seen[kept] / seen[kept].mean()
    impressions = np.bincount(log.query[log.offsets[:-1]], minlength=len(log.query_ids))[query[kept]]
    data = RankingData(
        features.X[rows],
        np.clip(relevance, 0.0, 1.0),
        features.qid[rows],
        doc_ids=None if features.doc_ids is None else features.doc_ids[rows],
        feature_names=features.feature_names,
        query_weight=impressions / impressions.mean() if weights == "queries" else None,
        sample_weight=weight if weights == "documents" else None,
    )
    return TrainingClicks(data, int(out.sum()), float(weight[out].sum() / weight.sum()), int((row < 0).sum()))
