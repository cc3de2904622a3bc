"""The value of a ranker that was never shown, from the clicks on what others showed.

With n_dk impressions of a document d of a query at position k and c_dk clicks,

    r̂(d) = m(d) + Σ_k (c_dk - β_k n_dk - α_k n_dk m(d)) / Σ_k α_k e_dk,      V_q = Σ_d [λ_rank(d) r̂(d) + β_rank(d)],

e = n for the self-normalised estimator (whose m cancels) and the expected impressions for the others, m = 0 but for
"doubly-robust". V is the mean of V_q, weighted by impressions. Documents never shown have no r̂: they add anything from
0 to λ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from truerank.clicks.examination import Examination
from truerank.clicks.log import ClickLog
from truerank.clicks.relevance import LogisticRelevance, coded_pairs, rows_of_pairs
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import table
from truerank.core.threads import one_blas_thread
from truerank.data.grouping import ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.io.trec import as_run

ESTIMATORS = ("self-normalised", "ips", "doubly-robust")
_DRAWS, _FOLDS, _PRIOR = 100, 5, 10.0  # of examination; of queries; examined impressions that a prior mean is worth


class ClickValue(NamedTuple):
    """The value of a ranker, or the difference of two.

    Attributes
    ----------
    value : float
        Of the documents that were shown; with "doubly-robust" the others count with the mean
        that the model expects of their query.
    low, high : float
        Confidence interval that also holds whatever the documents are worth that were never shown.
    sampling_low, sampling_high : float
        The interval of `value` alone, which ignores those documents.
    least, most : float
        The estimate with every document that was never shown worth 0, and worth 1 (of a difference: the worst and the
        best case).
    support : float
        Share of the ranker's weight λ on documents that were shown; 1 - support was not.
    """

    value: float
    low: float
    high: float
    sampling_low: float
    sampling_high: float
    least: float
    most: float
    support: float


class ClickValues(Mapping[str, ClickValue]):
    """Values of rankers by name, and `difference` between any two; `str` gives a table."""

    def __init__(self, ratings: _Ratings, lists: dict[str, _List], level: float, notes: list[str]) -> None:
        self._ratings, self._lists, self.level, self.notes = ratings, lists, level, notes
        self._values = {name: ratings.value([(own, 1.0)], level) for name, own in lists.items()}

    def __getitem__(self, name: str) -> ClickValue:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def difference(self, a: str, b: str) -> ClickValue:
        """Value of a less that of b on the same clicks; a document of both counts by the difference of weights."""
        return self._ratings.value([(self._lists[a], 1.0), (self._lists[b], -1.0)], self.level)

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the differences to the first ranker, in JSON's own terms."""
        first, *others = self
        pairs = [{"a": name, "b": first} | self.difference(name, first)._asdict() for name in others]
        values = {name: value._asdict() for name, value in self.items()}
        return {"values": values, "differences": pairs, "level": self.level, "notes": self.notes}

    def __str__(self) -> str:
        def row(name: str, one: ClickValue) -> list[str]:
            return [name, f"{one.value:.4f}", f"[{one.low:.4f}, {one.high:.4f}]",
                    f"[{one.sampling_low:.4f}, {one.sampling_high:.4f}]", f"{one.support:.1%}"]  # fmt: skip

        first, *others = self
        rows = [row(name, one) for name, one in self.items()]
        rows += [row(f"{name} - {first}", self.difference(name, first)) for name in others]
        header = ["ranker", "value", f"{self.level:.0%} interval", "sampling alone", "support"]
        return "\n".join([table(rows, header), *([""] if self.notes else []), *self.notes])


def evaluate_from_clicks(
    log: ClickLog,
    rankers: Mapping[str, Any],
    *,
    examination: Examination,
    cutoff: int = 10,
    discount: Any = "clicks",
    estimator: str = "self-normalised",
    weights: str = "impressions",
    min_shown: int = 1,
    about: str = "queries",
    features: RankingData | None = None,
    level: float = 0.95,
) -> ClickValues:
    """Estimate what rankers would be worth to the users of a log, with what was never shown as bounds.

    Parameters
    ----------
    log : ClickLog
    rankers : dict of str to run
        A path, a dict of query to {document: score}, or what `evaluate` takes. Ties are in the run's order.
    examination : Examination
        Fitted to this log, or to another one of the same page.
    cutoff : int, default=10
        Ranks that count.
    discount : {"clicks", "dcg"} or array (cutoff,), default="clicks"
        λ: α_k, so that V is clicks per impression; 1/log2(k + 1), the DCG of relevances in [0, 1]; or your own.
    estimator : {"self-normalised", "ips", "doubly-robust"}, default="self-normalised"
        Whether a document's clicks are divided by its examined impressions, or by those expected from the probability
        of each ranker (`propensity`, or else its share of the impressions); `"doubly-robust"` adds a cross-fitted
        model, of `features` or else the mean of the query's other documents, and corrects it by the clicks.
    weights : {"impressions", "uniform"}, default="impressions"
        Of queries.
    min_shown : int, default=1
        Documents with fewer impressions count as never shown.
    about : {"queries", "clicks"}, default="queries"
        Sampling error for queries like these, or for new clicks on these very queries, which is narrower.
    features : RankingData, optional
        Rows of the documents with `doc_ids`, for `"doubly-robust"`.
    level : float in (0, 1), default=0.95

    Returns
    -------
    ClickValues
        `result["new"].value`, `.low`, `.high`, `.support`, …; `result.difference("new", "old")` is paired.

    Raises
    ------
    InvalidInputError
        On an examination that ends above the cutoff, and runs that share no query with the log.

    Notes
    -----
    Queries that one of the rankers lacks are left out, which `notes` says. The uncertainty of the examination enters by
    its bootstrap draws. Time O(n log n), and O(documents in the lists) for each of 100 draws.

    Examples
    --------
    >>> shown = {"impression": [1, 1, 2, 2], "query": ["q"] * 4, "document": ["a", "b", "b", "a"]}
    >>> log = ClickLog(**shown, position=[1, 2, 1, 2], clicked=[1, 0, 0, 1], ranker=["x", "x", "y", "y"])
    >>> seen = Examination(max_position=2).fit(log)
    >>> found = evaluate_from_clicks(log, {"new": {"q": {"a": 2.0, "c": 1.0}}}, examination=seen, cutoff=2)["new"]
    >>> round(found.value, 2), round(found.support, 2)
    (1.0, 0.5)
    """
    check_choice(estimator, "estimator", ESTIMATORS)
    check_choice(weights, "weights", ("impressions", "uniform"))
    check_choice(about, "about", ("queries", "clicks"))
    cutoff, min_shown = check_positive_int(cutoff, "cutoff"), check_positive_int(min_shown, "min_shown")
    level = check_number(level, "level", minimum=0.0, maximum=1.0, open_minimum=True, open_maximum=True)
    if not rankers:
        raise InvalidInputError("name one or more rankers, {name: run}")
    if features is not None and estimator != "doubly-robust":
        raise InvalidInputError('features are read by estimator="doubly-robust" only; leave them out')
    if not hasattr(examination, "propensities_"):
        raise InvalidInputError("the examination is not fitted; Examination(...).fit(log) first")
    known = int(np.count_nonzero(np.cumsum(np.isnan(examination.propensities_)) == 0))
    if known < cutoff and isinstance(discount, str) and discount == "clicks":
        raise InvalidInputError(f"examination is known to position {known}; give cutoff={known} (--cutoff) or less")
    curves = np.concatenate([[np.stack([examination.propensities_, examination.beta_])], examination.draws_[:_DRAWS]])
    lists = {name: _top(log, run, cutoff) for name, run in rankers.items()}
    every = np.bincount(log.query[log.offsets[:-1]], minlength=len(log.query_ids)).astype(np.float64)
    common = every > 0
    for own in lists.values():
        common &= np.isin(np.arange(len(every)), own.query)
    if not common.any():
        raise InvalidInputError("the rankers and the log share no query; compare the query ids of both")
    notes = list(examination.reasons_)
    if lost := int((every > 0).sum() - common.sum()):
        share = 1.0 - every[common].sum() / every.sum()
        notes.append(f"{lost} queries ({share:.1%} of the impressions) that a ranker lacks are left out")
    shares = np.where(common, every if weights == "impressions" else 1.0, 0.0)
    shares /= shares.sum()
    lists = {name: own.of(common) for name, own in lists.items()}
    ratings = _Ratings(log, curves, _weights(discount, curves, cutoff), shares, estimator, min_shown, about, features)
    return ClickValues(ratings, lists, level, notes)


class _List(NamedTuple):
    """The best documents of each query: numbers of query, of query and document (below 0: not in the log), ranks."""

    query: np.ndarray
    pair: np.ndarray
    rank: np.ndarray

    def of(self, chosen: np.ndarray) -> _List:
        rows = chosen[self.query]
        return _List(self.query[rows], self.pair[rows], self.rank[rows])


def _top(log: ClickLog, run: object, cutoff: int) -> _List:
    given = as_run(run)
    rank = ranks_by_query(given.scores, given.offsets) - 1
    known = {name: number for number, name in enumerate(log.query_ids.tolist())}
    query = np.repeat([known.get(str(name), -1) for name in given.query_ids.tolist()], np.diff(given.offsets))
    pair = np.full(len(rank), -1, dtype=np.int64)
    codes, rows = coded_pairs(log, [str(name) for name in given.query_ids.tolist()], given.offsets, given.doc_ids)
    pair[rows] = codes
    keep = (rank < cutoff) & (query >= 0)
    pair = np.where(pair < 0, -1 - np.arange(len(pair)), pair)  # documents that the log lacks are all different
    return _List(query[keep].astype(np.int64), pair[keep], rank[keep])


def _weights(discount: Any, curves: np.ndarray, cutoff: int) -> np.ndarray:
    """λ and what is added for a document whatever its relevance, by draw: (R, 2, cutoff)."""
    if isinstance(discount, str) and discount == "clicks":
        return curves[:, :, :cutoff]
    if isinstance(discount, str):
        check_choice(discount, "discount", ("clicks", "dcg"))
    own = (
        1.0 / np.log2(np.arange(cutoff) + 2.0) if isinstance(discount, str) else np.asarray(discount, dtype=np.float64)
    )
    if own.shape != (cutoff,) or not np.isfinite(own).all() or (own < 0).any():
        raise InvalidInputError(f"discount must hold {cutoff} numbers >= 0, one for each rank up to the cutoff")
    return np.broadcast_to(np.stack([own, np.zeros(cutoff)]), (len(curves), 2, cutoff))


class _Ratings:
    """Estimated relevances of the shown documents, and linear functions of them."""

    def __init__(
        self,
        log: ClickLog,
        curves: np.ndarray,
        weights: np.ndarray,
        shares: np.ndarray,
        estimator: str,
        min_shown: int,
        about: str,
        features: RankingData | None,
    ) -> None:
        self.curves, self.weights, self.shares, self.about = curves, weights, shares, about
        ranker = np.zeros(log.n_rows, dtype=np.int64) if log.ranker is None else np.maximum(log.ranker, 0)
        cells = log.cells(log.position, ranker)
        place, by = cells.keys[0] - 1, cells.keys[1]
        inside = (place < curves.shape[2]) & ~np.isnan(curves[0, 0][np.minimum(place, curves.shape[2] - 1)])
        expected = cells.n
        if estimator != "self-normalised":
            starts = log.offsets[:-1]
            size = int(by.max()) + 1
            lists = np.bincount(log.query[starts] * size + ranker[starts], minlength=len(log.query_ids) * size)
            by_query = lists.reshape(-1, size)
            chance = by_query.sum(axis=0) / log.n_impressions
            if log.propensity is not None:
                chance = np.bincount(cells.of_row, weights=log.propensity) / cells.n
            else:
                chance = chance[by]
            expected = by_query.sum(axis=1)[cells.query] * chance * cells.n / by_query[cells.query, by]
        code = cells.query.astype(np.int64) * len(log.document_ids) + cells.document
        self.pair, cell = np.unique(code[inside], return_inverse=True)
        self.query = self.pair // len(log.document_ids)
        self._cells = cell, place[inside], cells.n[inside], cells.clicks[inside], expected[inside]
        self.shown = np.bincount(cell, weights=cells.n[inside], minlength=len(self.pair)) >= min_shown
        self.model = np.zeros(len(self.pair))
        if estimator == "doubly-robust":
            self.model = self._cross_fitted(log, features)
        self.ratings, self.noise = self._rate(0)
        self.others = [self._rate(draw)[0] for draw in range(1, len(curves))]

    def _rate(self, draw: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevances and the variance that clicks give them."""
        cell, place, n, clicks, expected = self._cells
        alpha, beta = self.curves[draw, :, place].T

        def total(values: np.ndarray) -> np.ndarray:
            return np.bincount(cell, weights=values, minlength=len(self.pair))

        seen = np.maximum(total(alpha * expected), 1e-12)
        rating = self.model + total(clicks - beta * n - alpha * n * self.model[cell]) / seen
        rate = np.clip(alpha * np.clip(rating, 0.0, 1.0)[cell] + beta, 0.0, 1.0)
        return rating, total(n * rate * (1.0 - rate)) / seen**2

    def _cross_fitted(self, log: ClickLog, features: RankingData | None) -> np.ndarray:
        """A relevance for each pair that its own clicks have no part in."""
        cell, place, n, clicks, _ = self._cells
        alpha, beta = self.curves[0, :, place].T
        seen = np.bincount(cell, weights=alpha * n, minlength=len(self.pair))
        liked = np.bincount(cell, weights=clicks - beta * n, minlength=len(self.pair))
        mean = liked.sum() / max(seen.sum(), 1e-12)
        size = len(log.query_ids)
        by_query = [np.bincount(self.query, weights=values, minlength=size)[self.query] for values in (liked, seen)]
        result = (by_query[0] - liked + _PRIOR * mean) / (by_query[1] - seen + _PRIOR)
        if features is None:
            return np.clip(result, 0.0, 1.0)
        row = rows_of_pairs(log, self.query, self.pair % len(log.document_ids), features)
        there = np.flatnonzero(row >= 0)
        model = LogisticRelevance(features.X[row[there]])
        with one_blas_thread():
            for fold in range(_FOLDS):
                test = self.query[there] % _FOLDS == fold
                weight = np.where(test, 0.0, seen[there])
                found = model.fit(np.clip(liked[there], 0.0, seen[there]) * (weight > 0), weight, steps=20)
                result[there[test]] = model.predict(found)[test]
        return np.clip(result, 0.0, 1.0)

    def value(self, lists: list[tuple[_List, float]], level: float) -> ClickValue:
        """The value of a list, or of several that are added up with signs."""
        query, pair, rank = (np.concatenate([getattr(own, name) for own, _ in lists]) for name in _List._fields)
        sign = np.concatenate([np.full(len(own.query), by) for own, by in lists])
        at = np.minimum(np.searchsorted(self.pair, pair), max(len(self.pair) - 1, 0))
        shown = (self.pair[at] == pair) & self.shown[at]
        share = self.shares[query] * sign
        lam = self.weights[0, 0, rank]
        # Unknown relevances: a document of several lists counts with the sum of its weights.
        _, first, one = np.unique(pair, return_index=True, return_inverse=True)
        net = np.bincount(one, weights=sign * lam)
        unknown = ~shown[first]
        by_query = np.zeros((3, len(self.shares)))
        ratings = np.where(shown, self.ratings[at], 0.0)
        np.add.at(by_query[0], query, sign * (lam * ratings + self.weights[0, 1, rank]))
        np.add.at(by_query[1], query[first][unknown], np.minimum(net[unknown], 0.0))
        np.add.at(by_query[2], query[first][unknown], np.maximum(net[unknown], 0.0))
        worst, middle, best = (self.shares * (by_query[0] + more) for more in (by_query[1], 0.0, by_query[2]))
        drawn = []
        for draw in range(1, len(self.curves)):
            rated = np.where(shown, self.others[draw - 1][at], 0.0)
            drawn.append(float((share * (self.weights[draw, 0, rank] * rated + self.weights[draw, 1, rank])).sum()))
        spread = float(np.var(drawn, ddof=1)) if len(drawn) > 1 else 0.0
        z = NormalDist().inv_cdf((1.0 + level) / 2.0)

        def error(parts: np.ndarray) -> float:
            if self.about == "clicks":
                weight = self.shares[query[first]] * net
                return math.sqrt(spread + float((weight**2 * np.where(unknown, 0.0, self.noise[at[first]])).sum()))
            used = self.shares > 0
            m = int(used.sum())
            deviations = parts[used] - self.shares[used] * parts.sum()
            return math.sqrt(spread + float((deviations**2).sum()) * m / max(m - 1, 1)) if m > 1 else math.nan

        value, least, most = (float(parts.sum()) for parts in (middle, worst, best))
        whole = float(np.abs(share * lam).sum())
        support = float(np.abs(share * lam)[shown].sum()) / whole if whole > 0 else math.nan
        sampling = z * error(middle)
        expected = value + float((share * lam * np.where(shown, 0.0, self._guess(query, pair))).sum())
        low, high = least - z * error(worst), most + z * error(best)
        return ClickValue(expected, low, high, expected - sampling, expected + sampling, least, most, support)

    def _guess(self, query: np.ndarray, pair: np.ndarray) -> np.ndarray:
        """What a document is thought to be worth that was not shown: 0, or the mean of its query's model."""
        if not self.model.any():
            return np.zeros(len(query))
        size = len(self.shares)
        mean = np.bincount(self.query, weights=self.model, minlength=size) / np.maximum(
            np.bincount(self.query, minlength=size), 1
        )
        return mean[query]
