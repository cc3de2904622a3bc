"""Simulated clicks on judged data, for validation and teaching."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truerank.clicks.log import TEXT, ClickLog, Coded, coded_ids
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import ArrayLike, RandomState
from truerank.data.grouping import id_texts, ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.io.rows import RowsLike, rows_of

MODELS = ("position", "trust", "cascade")


def simulate(
    data: RowsLike,
    rankers: Mapping[str, ArrayLike],
    model: str = "position",
    impressions: int = 100_000,
    *,
    depth: int = 10,
    examination: ArrayLike | None = None,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> ClickLog:
    """Return a simulated log of impressions by randomly chosen rankers, with clicks by a click model.

    Parameters
    ----------
    data : RankingData
        Judged documents, named by their `doc_ids`, or else by row number.
    rankers : dict of str to array (n,) of scores in the caller's row order
    model : {"position", "trust", "cascade"}, default="position"
        With relevance r (`relevance_of`) and examination θ_k of position k, the probability of a click is

        * position: θ_k r, independently at each position;
        * trust: θ_k (ε⁺_k r + ε⁻_k (1 - r)), with ε⁺_k = 1 - (k + 1)/100 and ε⁻_k = 0.65/k (Agarwal et al. 2019);
        * cascade: users read from the top, click with probability r, and stop at the first click. Without a click, they
          continue from k to k + 1 with probability θ_{k+1}/θ_k.
    impressions, depth : int, default=100_000, 10
        Number and length of the lists. The query and the ranker of each list are drawn uniformly.
    examination : array (depth,) of θ_k, at most 1 and not rising, default=1/k
    noise : float in [0, 1), default=0.1
        Relevance of grade 0.
    random_state : int or NumPy generator, optional

    Returns
    -------
    ClickLog
        With `time` 0, 1, … by impression. The same seed gives the same log.

    Examples
    --------
    >>> data = RankingData([[0.0], [1.0]], [0, 1], qid=["q", "q"], doc_ids=["a", "b"])
    >>> simulate(data, {"up": [0, 1], "down": [1, 0]}, impressions=100, random_state=1).n_rows
    200
    """
    data = rows_of(data)
    check_choice(model, "model", MODELS)
    count, depth = check_positive_int(impressions, "impressions"), check_positive_int(depth, "depth")
    if not rankers:
        raise InvalidInputError("rankers is empty. Pass at least one, {name: scores}")
    theta = 1.0 / np.arange(1, depth + 1) if examination is None else np.asarray(examination, dtype=np.float64)
    if theta.shape != (depth,) or (theta <= 0).any() or (np.diff(theta, prepend=1.0) > 0).any():
        raise InvalidInputError(
            f"examination must hold {depth} probabilities above 0 that never increase, got {theta.tolist()!r:.80}",
            argument="examination",
        )
    relevance = relevance_of(data, noise)
    rng = stream(seed_of(random_state), "clicks")
    shown = np.full((len(rankers), data.n_queries, depth), -1, dtype=np.int32)  # rows by rank
    for number, (name, scores) in enumerate(rankers.items()):
        values, n = np.asarray(scores, dtype=np.float64), data.n_rows
        if values.shape != (n,):
            raise InvalidInputError(
                f"ranker {name!r} must have a score for each of {n} rows, got {values.shape}", argument="rankers"
            )
        rank = ranks_by_query(data.grouped(values), data.offsets)
        top = rank <= depth
        shown[number, data.query_index[top], rank[top] - 1] = np.flatnonzero(top)
    query = rng.integers(data.n_queries, size=count).astype(np.int32)
    ranker = rng.integers(len(rankers), size=count).astype(np.int32)
    rows = shown[ranker, query]
    there = rows >= 0
    clicked = _clicks(rng, model, np.where(there, relevance[rows], 0.0), theta)[there]
    impression = np.repeat(np.arange(count, dtype=np.int32), there.sum(axis=1))
    documents = coded_ids(np.arange(data.n_rows) if data.doc_ids is None else data.doc_ids.tolist(), "doc_ids")
    return ClickLog(
        Coded(impression, np.array([], dtype=TEXT)),
        Coded(query[impression], np.array(id_texts(data.query_ids.tolist()), dtype=TEXT)),
        Coded(documents.codes[rows[there]], documents.names),
        np.broadcast_to(np.arange(1, depth + 1, dtype=np.int32), rows.shape)[there],
        clicked,
        ranker=Coded(ranker[impression], np.array(list(rankers), dtype=TEXT)),
        propensity=np.full(len(impression), 1.0 / len(rankers)),
        time=impression.astype(np.int64),
    )


def relevance_of(data: RankingData, noise: float = 0.1) -> np.ndarray:
    """Return noise + (1 - noise) (2^g - 1)/(2^G - 1) of each document, grouped (n,), for grades g >= 0, at most G.

    Examples
    --------
    >>> relevance_of(RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], qid=[1, 1, 1])).round(2).tolist()
    [0.1, 0.4, 1.0]
    """
    noise = check_number(noise, "noise", "[0, 1)")
    if data.y is None:
        raise InvalidInputError("simulated clicks require grades. Use judged data", code="no-grades")
    gain = np.exp2(np.maximum(data.y, 0.0)) - 1.0
    return noise + (1.0 - noise) * gain / max(gain.max(initial=0.0), 1.0)


def trust_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return α_k and β_k of the trust model of `simulate`."""
    k = np.arange(1, len(theta) + 1)
    seen, mistaken = 1.0 - (k + 1) / 100.0, 0.65 / k
    return theta * (seen - mistaken), theta * mistaken


def _clicks(rng: np.random.Generator, model: str, relevance: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return clicks (count, depth) on documents of this relevance."""
    if model != "cascade":
        alpha, beta = trust_of(theta) if model == "trust" else (theta, np.zeros(len(theta)))
        return rng.random(relevance.shape, dtype=np.float32) < relevance * alpha + beta
    clicks, reading = np.zeros(relevance.shape, dtype=bool), np.ones(len(relevance), dtype=bool)
    for k, going_on in enumerate(theta / np.append(1.0, theta[:-1])):
        reading &= rng.random(len(relevance)) < going_on
        clicks[:, k] = reading & (rng.random(len(relevance)) < relevance[:, k])
        reading &= ~clicks[:, k]
    return clicks
