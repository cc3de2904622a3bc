"""Clicks on judged data by a stated model, for proof and for teaching."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from truerank.clicks.log import ClickLog, Coded, coded_ids
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.data.grouping import id_texts, ranks_by_query
from truerank.data.ranking_data import RankingData, check_ranking_data

MODELS = ("position", "trust", "cascade")


def simulate(
    data: RankingData,
    rankers: Mapping[str, Any],
    model: str = "position",
    impressions: int = 100_000,
    *,
    depth: int = 10,
    examination: Any = None,
    noise: float = 0.1,
    random_state: Any = None,
) -> ClickLog:
    """Return a log of impressions by rankers that are chosen at random, clicked as a model says.

    Parameters
    ----------
    data : RankingData
        Judged documents; their `doc_ids` name them, or else their rows.
    rankers : dict of str to array (n,)
        Scores of each ranker in the caller's row order.
    model : {"position", "trust", "cascade"}, default="position"
        With r the relevance (`relevance_of`) and θ_k the examination of position k, the probability of a click is

        * position: θ_k r, each position by itself;
        * trust: θ_k (ε⁺_k r + ε⁻_k (1 - r)), with ε⁺_k = 1 - (k + 1)/100 and ε⁻_k = 0.65/k (Agarwal et al. 2019);
        * cascade: users read from the top, click with probability r, and stop at the first click; one who has not
          clicked goes on from k to k + 1 with probability θ_{k+1}/θ_k.
    impressions : int, default=100_000
        Lists shown. Each draws a query and a ranker, all alike.
    depth : int, default=10
    examination : array (depth,), optional
        θ_k, falling from at most 1. Default: 1/k.
    noise : float in [0, 1), default=0.1
        Relevance of grade 0.
    random_state : int or NumPy generator, optional

    Returns
    -------
    ClickLog
        In order of time, with `time` 0, 1, …. The same seed gives the same log.

    Notes
    -----
    O(impressions · depth) time and memory.

    Examples
    --------
    >>> data = RankingData([[0.0], [1.0]], [0, 1], qid=["q", "q"], doc_ids=["a", "b"])
    >>> simulate(data, {"up": [0, 1], "down": [1, 0]}, impressions=100, random_state=1).n_rows
    200
    """
    check_ranking_data(data)
    check_choice(model, "model", MODELS)
    count, depth = check_positive_int(impressions, "impressions"), check_positive_int(depth, "depth")
    if not rankers:
        raise InvalidInputError("simulate needs one or more rankers, {name: scores}")
    theta = 1.0 / np.arange(1, depth + 1) if examination is None else np.asarray(examination, dtype=np.float64)
    if theta.shape != (depth,) or (theta <= 0).any() or (np.diff(theta, prepend=1.0) > 0).any():
        raise InvalidInputError(f"examination must hold {depth} probabilities above 0 that do not rise")
    relevance = relevance_of(data, noise)
    rng = stream(seed_of(random_state), "clicks")
    shown = np.full((len(rankers), data.n_queries, depth), -1, dtype=np.int32)  # rows by rank
    for number, (name, scores) in enumerate(rankers.items()):
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (data.n_rows,):
            raise InvalidInputError(
                f"ranker {name!r} must have a score for each of {data.n_rows} rows, got {values.shape}"
            )
        rank = ranks_by_query(data.grouped(values), data.offsets)
        top = rank <= depth
        shown[number, data.query_index[top], rank[top] - 1] = np.flatnonzero(top)
    query = rng.integers(data.n_queries, size=count)
    ranker = rng.integers(len(rankers), size=count)
    rows = shown[ranker, query]
    there = rows >= 0
    clicked = _clicks(rng, model, np.where(there, relevance[rows], 0.0), theta) & there
    sizes = there.sum(axis=1)
    documents = coded_ids(np.arange(data.n_rows) if data.doc_ids is None else data.doc_ids.tolist(), "doc_ids")
    texts = np.array(id_texts(data.query_ids.tolist()), dtype=np.dtypes.StringDType())
    impression = np.repeat(np.arange(count, dtype=np.int32), sizes)
    return ClickLog(
        Coded(impression, np.zeros(0, dtype=np.dtypes.StringDType())),
        Coded(query.astype(np.int32)[impression], texts),
        Coded(documents.codes[rows[there]], documents.names),
        np.broadcast_to(np.arange(1, depth + 1, dtype=np.int32), rows.shape)[there],
        clicked[there],
        ranker=Coded(ranker.astype(np.int32)[impression], np.array(list(rankers), dtype=np.dtypes.StringDType())),
        propensity=np.full(len(impression), 1.0 / len(rankers)),
        time=impression.astype(np.int64),
    )


def relevance_of(data: RankingData, noise: float = 0.1) -> np.ndarray:
    """Return the probability that a document attracts, (n,) in grouped order: noise + (1 - noise) (2^g - 1)/(2^G - 1).

    g is the grade, negative ones count as 0, and G is the highest of the data.

    Examples
    --------
    >>> relevance_of(RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], qid=[1, 1, 1])).round(2).tolist()
    [0.1, 0.4, 1.0]
    """
    noise = check_number(noise, "noise", minimum=0.0, maximum=1.0, open_maximum=True)
    if data.y is None:
        raise InvalidInputError("simulated users need grades; give judged data")
    gain = np.exp2(np.maximum(data.y, 0.0)) - 1.0
    return noise + (1.0 - noise) * gain / max(gain.max(initial=0.0), 1.0)


def trust_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return α_k and β_k of the trust model of `simulate`: a click at k has probability α_k r + β_k."""
    k = np.arange(1, len(theta) + 1)
    seen, mistaken = 1.0 - (k + 1) / 100.0, 0.65 / k
    return theta * (seen - mistaken), theta * mistaken


def _clicks(rng: np.random.Generator, model: str, relevance: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Clicks (count, depth) on documents of this relevance."""
    if model == "trust":
        alpha, beta = trust_of(theta)
        return rng.random(relevance.shape, dtype=np.float32) < relevance * alpha + beta
    if model == "position":
        return rng.random(relevance.shape, dtype=np.float32) < relevance * theta
    clicks = np.zeros(relevance.shape, dtype=bool)
    reading = np.ones(len(relevance), dtype=bool)
    for k in range(len(theta)):
        reading &= rng.random(len(relevance)) < theta[k] / (theta[k - 1] if k else 1.0)
        clicks[:, k] = reading & (rng.random(len(relevance)) < relevance[:, k])
        reading &= ~clicks[:, k]
    return clicks
