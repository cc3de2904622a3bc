"""The value of a ranker that was never shown, estimated from the clicks on the lists of other rankers.

With n_dk impressions of document d of a query at position k, c_dk clicks on them, and a model m(d) of its relevance,

    r̂(d) = m(d) + Σ_k (c_dk - β_k n_dk - α_k n_dk m(d)) / Σ_k α_k e_dk,      V_q = Σ_d [λ_rank(d) r̂(d) + β_rank(d)].

The self-normalised estimator has e = n, so that m cancels. The other estimators use the expected impressions e, and m =
0 except for "doubly-robust". V is the mean of V_q. A document that was never shown has no r̂ and adds between 0 and λ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from truerank.clicks.examination import Examination, LogisticRelevance
from truerank.clicks.log import ClickLog, pair_codes, rows_of_pairs
from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result, data_frame
from truerank.core.threads import one_blas_thread
from truerank.core.types import ArrayLike
from truerank.data.grouping import ranks_by_query
from truerank.data.ranking_data import RankingData
from truerank.io.trec import as_run
from truerank.significance.intervals import student_quantile

ESTIMATORS = ("self-normalised", "ips", "doubly-robust")
_DRAWS, _FOLDS, _PRIOR = 100, 5, 10.0  # draws of the examination, folds of queries, weight of the mean in m(d)


class ClickValue(NamedTuple):
    """The value of a ranker, or the difference of two values.

    Attributes
    ----------
    value : float
        Documents that were never shown count 0, or with "doubly-robust" the mean of the model for their query.
    low, high : float
        Confidence interval that is valid for any relevance of the documents that were never shown.
    sampling_low, sampling_high : float
        Interval of `value` alone, which ignores documents that were never shown.
    least, most : float
        The lowest and the highest estimate for relevances in [0, 1] of documents that were never shown.
    support : float
        Share of the ranker's weight λ on documents that were shown.
    """

    value: float
    low: float
    high: float
    sampling_low: float
    sampling_high: float
    least: float
    most: float
    support: float


class ClickValues(Result, dict[str, ClickValue]):
    """Values of rankers by name, and the `difference` of any two; `str` formats a table."""

    KIND = "click-values"

    def __init__(self, ratings: _Ratings, lists: dict[str, np.ndarray], level: float, notes: list[str]) -> None:
        self._ratings, self._lists, self.level, self.notes = ratings, lists, level, notes
        super().__init__({name: ratings.value([(ranked, 1.0)], level) for name, ranked in lists.items()})

    def difference(self, a: str, b: str) -> ClickValue:
        """Return the value of a minus the value of b on the same clicks; a document in both lists counts once."""
        return self._ratings.value([(self._lists[a], 1.0), (self._lists[b], -1.0)], self.level)

    @property
    def summary(self) -> str:
        """A sentence with the largest value of a ranker and its interval."""
        name = max(self, key=lambda one: self[one].value)
        ends = f"{self.level:.0%} interval {self[name].low:.4f} to {self[name].high:.4f}"
        return f"{name} has the largest value of {counted(len(self), 'ranker')}: {self[name].value:.4f} ({ends})."

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each ranker."""
        return data_frame([one._asdict() for one in self.values()], list(self), "ranker")

    def _figures(self) -> dict[str, Any]:
        first, *others = self
        pairs = [{"a": name, "b": first} | self.difference(name, first)._asdict() for name in others]
        values = {name: value._asdict() for name, value in self.items()}
        return {"values": values, "differences": pairs, "level": self.level, "notes": self.notes}

    def _table(self, style: str) -> str:
        first, *others = self
        rows: list[list[Any]] = []
        for name, found in [*self.items(), *((f"{name} - {first}", self.difference(name, first)) for name in others)]:
            interval = f"[{found.low:.4f}, {found.high:.4f}]"
            sampling = f"[{found.sampling_low:.4f}, {found.sampling_high:.4f}]"
            rows.append([name, f"{found.value:.4f}", interval, sampling, f"{found.support:.1%}"])
        header = ["ranker", "value", f"{self.level:.0%} interval", "sampling alone", "support"]
        return styled_table(rows, header, style)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *([""] if self.notes else []), *self.notes])


def evaluate_from_clicks(
    log: ClickLog,
    rankers: Mapping[str, object],
    *,
    examination: Examination,
    cutoff: int = 10,
    discount: str | ArrayLike = "clicks",
    estimator: str = "self-normalised",
    weights: str = "impressions",
    min_shown: int = 1,
    about: str = "clicks",
    features: RankingData | None = None,
    level: float = 0.95,
) -> ClickValues:
    """Estimate the value of rankers to the users of a log, with bounds for documents that were never shown.

    Parameters
    ----------
    log : ClickLog
    rankers : dict of str to run
        A path, a dict of query to {document: score}, or any run that `evaluate` accepts.
    examination : Examination
        Fitted to this log, or to another log of the same page.
    cutoff : int, default=10
        Number of ranks that count. With `discount="clicks"`, the examination must reach the cutoff.
    discount : {"clicks", "dcg"} or array (cutoff,), default="clicks"
        λ: α_k, so that V is the number of clicks per impression; or 1/log2(k + 1), the DCG of relevances in [0, 1].
    estimator : {"self-normalised", "ips", "doubly-robust"}, default="self-normalised"
        Divisor of the clicks on a document: its examined impressions, or the number expected from the probability of
        each ranker (`propensity`, or else its share of the impressions). `"doubly-robust"` corrects a cross-fitted
        model by the clicks; the model uses `features`, or else the other documents of the query.
    weights : {"impressions", "uniform"}, default="impressions"
        Weights of the queries in the mean.
    min_shown : int, default=1
        Documents with fewer impressions count as never shown.
    about : {"clicks", "queries"}, default="clicks"
        Whether the sampling error is for new impressions of these queries, or for new queries of the same kind, which
        is larger (with Student's quantile for the number of queries).
    features : RankingData, optional
        Rows of the documents with `doc_ids`, for `"doubly-robust"`.
    level : float in (0, 1), default=0.95

    Returns
    -------
    ClickValues
        `result["new"].value`, `.low`, `.high`, `.support`; `result.difference("new", "old")` is paired.

    Notes
    -----
    The error of clicks is summed by session (by impression without sessions), so that the clicks of a user may depend
    on each other. The bootstrap draws of the examination add its uncertainty. Time O(n log n), plus O(listed documents)
    for each of 100 draws.

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
    check_choice(about, "about", ("clicks", "queries"))
    cutoff, min_shown = check_positive_int(cutoff, "cutoff"), check_positive_int(min_shown, "min_shown")
    level = check_number(level, "level", "(0, 1)")
    if not rankers:
        raise InvalidInputError("rankers is empty. Pass at least one, {name: run}", argument="rankers")
    if features is not None and estimator != "doubly-robust":
        raise InvalidInputError('only estimator="doubly-robust" uses features. Omit features')
    if not hasattr(examination, "propensities_"):
        raise InvalidInputError("examination is not fitted. Call Examination(...).fit(log) first", code="not-fitted")
    known = int(np.count_nonzero(np.cumsum(np.isnan(examination.propensities_)) == 0))
    if known < cutoff and isinstance(discount, str) and discount == "clicks":
        raise InvalidInputError(
            f"the examination is known only up to position {known}",
            argument="cutoff",
            value=cutoff,
            remedies=[Remedy(cutoff=known)],
        )
    lists = {name: _top(log, run, cutoff) for name, run in rankers.items()}
    every = np.bincount(log.query[log.offsets[:-1]], minlength=len(log.query_ids)).astype(np.float64)
    common = every > 0
    for query, _, _ in lists.values():
        common &= np.isin(np.arange(len(every)), query)
    if not common.any():
        raise InvalidInputError(
            "the rankers and the log share no query. Check that the query ids of both agree", code="no-common-query"
        )
    notes = [] if examination.identified_ else ["propensities NOT identified: the values and intervals may be wrong"]
    notes += examination.reasons_
    if lost := int((every > 0).sum() - common.sum()):
        share = 1.0 - every[common].sum() / every.sum()
        notes.append(f"queries left out because a ranker has no result: {lost} ({share:.1%} of the impressions)")
    notes += [f"rows left out of the log ({reason}): {count}" for reason, count in log.skipped.items()]
    shares = np.where(common, every if weights == "impressions" else 1.0, 0.0)
    curves = np.concatenate([[np.stack([examination.propensities_, examination.beta_])], examination.draws_[:_DRAWS]])
    lambdas, weighted = _weights(discount, curves, cutoff), weights == "impressions"
    ratings = _Ratings(log, curves, lambdas, shares / shares.sum(), min_shown, estimator, features, about, weighted)
    return ClickValues(ratings, {name: ranked[:, common[ranked[0]]] for name, ranked in lists.items()}, level, notes)


def _top(log: ClickLog, run: object, cutoff: int) -> np.ndarray:
    """Return the best documents of each query: codes of query and pair (negative if not in the log), ranks; (3, r)."""
    given = as_run(run)
    rank = ranks_by_query(given.scores, given.offsets) - 1
    query, code = pair_codes(log, given.query_ids, given.offsets, given.doc_ids)
    pair = np.where(code < 0, -1 - np.arange(len(code)), code)  # documents that the log lacks all differ
    return np.stack([query, pair, rank])[:, (rank < cutoff) & (query >= 0)]


def _weights(discount: str | ArrayLike, curves: np.ndarray, cutoff: int) -> np.ndarray:
    """Return λ, and the value of a document at any relevance, for each draw: (R, 2, cutoff)."""
    if isinstance(discount, str):
        if check_choice(discount, "discount", ("clicks", "dcg")) == "clicks":
            return curves[:, :, :cutoff]
        discount = 1.0 / np.log2(np.arange(cutoff) + 2.0)
    values = np.asarray(discount, dtype=np.float64)
    if values.shape != (cutoff,) or not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInputError(
            f"discount must hold {cutoff} numbers >= 0, one for each rank to the cutoff, got {values.tolist()!r:.80}",
            argument="discount",
        )
    return np.broadcast_to(np.stack([values, np.zeros(cutoff)]), (len(curves), 2, cutoff))


@dataclass
class _Ratings:
    """Estimated relevances of the shown pairs (query, document), and linear functions of the relevances with errors."""

    log: ClickLog
    curves: np.ndarray  # α and β for each draw (R, 2, K)
    weights: np.ndarray  # λ, and what a document adds at any relevance, for each draw (R, 2, cutoff)
    shares: np.ndarray  # of queries
    min_shown: int
    estimator: str
    features: RankingData | None
    about: str
    weighted: bool  # by impressions

    def __post_init__(self) -> None:
        """Estimate the relevances for each draw of the examination, and the residuals of rows for the first."""
        log = self.log
        ranker = np.zeros(log.n_rows, dtype=np.int32) if log.ranker is None else log.ranker + 1
        self.cells = cells = log.cells(log.position, ranker)
        place = cells.keys[0] - 1
        self.inside = place < self.curves.shape[2]
        self.inside &= ~np.isnan(self.curves[0, 0])[np.where(self.inside, place, 0)]
        code = cells.query * len(log.document_ids) + cells.document
        self.pair, self.own = np.unique(code[self.inside], return_inverse=True)
        self.query = self.pair // len(log.document_ids)
        self.place, self.n, self.clicks = place[self.inside], cells.n[self.inside], cells.clicks[self.inside]
        views = self._total(self.n)
        self.shown = views >= self.min_shown
        self.centred = self.estimator != ESTIMATORS[0]
        expected = self._expected() if self.centred else self.n
        model = self._cross_fitted() if self.estimator == "doubly-robust" else np.zeros(len(self.pair))
        ratings = []
        for alpha, beta in self.curves[:, :, self.place]:
            seen = np.maximum(self._total(alpha * expected), 1e-12)
            surplus = self._total(self.clicks - beta * self.n - alpha * self.n * model[self.own])
            ratings.append(model + surplus / seen)
        self.ratings, self.others = ratings[0], ratings[1:]
        counts = np.maximum(np.bincount(self.query, minlength=len(self.shares)), 1)
        self.guess = np.bincount(self.query, weights=model, minlength=len(self.shares)) / counts
        # Residuals of rows, divided by the impressions of their pair. One impression has no residual: its click counts.
        alpha, beta = self.curves[0, :, self.place].T
        fitted = beta + alpha * (model if self.centred else self.ratings)[self.own]
        scale = 1.0 / np.maximum(self._total(alpha * expected), 1e-12)
        if not self.centred:
            fitted = np.where(views[self.own] > 1, fitted, 0.0)
            scale *= np.sqrt(views / np.maximum(views - 1.0, 1.0))
        cell = np.where(self.inside, np.cumsum(self.inside) - 1, -1)[cells.of_row]
        self.row_pair = np.where(cell >= 0, self.own[cell], -1)
        self.residual = np.where(cell >= 0, (log.clicked - fitted[cell]) * scale[self.row_pair], 0.0)

    def _total(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.own, weights=values, minlength=len(self.pair))

    def _expected(self) -> np.ndarray:
        """Return expected impressions of the cells, from the probability of their ranker among the query's rankers."""
        log, starts = self.log, self.log.offsets[:-1]
        shape = len(log.query_ids), int(self.cells.keys[1].max()) + 1
        code = log.query[starts] * shape[1] + (0 if log.ranker is None else log.ranker[starts] + 1)
        lists = np.bincount(code, minlength=math.prod(shape)).reshape(shape)
        if log.propensity is None:
            chance = np.where(lists > 0, lists.sum(axis=0), 0.0)
        else:
            total = np.bincount(code, weights=log.propensity[starts], minlength=math.prod(shape)).reshape(shape)
            chance = total / np.maximum(lists, 1)
        chance /= np.maximum(chance.sum(axis=1, keepdims=True), 1e-300)
        ratio = lists.sum(axis=1, keepdims=True) * chance / np.maximum(lists, 1)
        return (self.cells.n * ratio[self.cells.query, self.cells.keys[1]])[self.inside]

    def _cross_fitted(self) -> np.ndarray:
        """Return a relevance for each pair that does not depend on clicks on the pair."""
        alpha, beta = self.curves[0, :, self.place].T
        seen, liked = self._total(alpha * self.n), self._total(self.clicks - beta * self.n)
        mean = liked.sum() / max(seen.sum(), 1e-12)
        by_query = [np.bincount(self.query, weights=values)[self.query] for values in (liked, seen)]
        result = (by_query[0] - liked + _PRIOR * mean) / (by_query[1] - seen + _PRIOR)
        if self.features is None:
            return np.clip(result, 0.0, 1.0)
        row = rows_of_pairs(self.log, self.query, self.pair % len(self.log.document_ids), self.features)
        there = np.flatnonzero(row >= 0)
        model = LogisticRelevance(self.features.X[row[there]])
        with one_blas_thread():
            for fold in range(_FOLDS):
                test = self.query[there] % _FOLDS == fold
                weight = np.where(test, 0.0, seen[there])
                found = model.fit(np.clip(liked[there], 0.0, seen[there]) * (weight > 0), weight, steps=20)
                result[there[test]] = model.predict(found)[test]
        return np.clip(result, 0.0, 1.0)

    def value(self, lists: list[tuple[np.ndarray, float]], level: float) -> ClickValue:
        """Return the value of a list, or of several lists added with signs."""
        query, pair, rank = np.concatenate([ranked for ranked, _ in lists], axis=1)
        sign = np.concatenate([np.full(ranked.shape[1], by) for ranked, by in lists])
        at = np.minimum(np.searchsorted(self.pair, pair), max(len(self.pair) - 1, 0))
        shown = (self.pair[at] == pair) & self.shown[at]
        share = self.shares[query] * sign
        lam = self.weights[0, 0, rank]
        # A document without a relevance counts once, with the sum of its weights in all lists.
        _, first, document = np.unique(pair, return_index=True, return_inverse=True)
        net = np.bincount(document, weights=sign * lam)
        unknown, size = ~shown[first], len(self.shares)
        ratings = np.where(shown, self.ratings[at], 0.0)
        middle = np.bincount(query, weights=share * (lam * ratings + self.weights[0, 1, rank]), minlength=size)
        extra = self.shares[query[first]] * np.where(unknown, net, 0.0)
        worst = middle + np.bincount(query[first], weights=np.minimum(extra, 0.0), minlength=size)
        best = middle + np.bincount(query[first], weights=np.maximum(extra, 0.0), minlength=size)
        drawn = []
        for curve, rated in zip(self.weights[1:], self.others):
            drawn.append(float((share * (curve[0, rank] * np.where(shown, rated[at], 0.0) + curve[1, rank])).sum()))
        # Half the distance of the 16 % and 84 % quantiles: a few bootstrap samples leave a position unconnected.
        spread = float(np.ptp(np.quantile(drawn, [0.1587, 0.8413])) / 2.0) ** 2
        z = NormalDist().inv_cdf((1.0 + level) / 2.0)
        if self.about == "clicks":
            weight = np.zeros(len(self.pair) + 1)  # the last is of rows beyond the examination
            weight[at[first][~unknown]] = (self.shares[query[first]] * net)[~unknown]
            by_list = np.add.reduceat(weight[self.row_pair] * self.residual, self.log.offsets[:-1])
            error = [z * math.sqrt(spread + self._of_clicks(by_list, parts)) for parts in (worst, middle, best)]
        else:
            m = int(np.count_nonzero(self.shares))
            t = student_quantile((1.0 + level) / 2.0, m - 1) if m > 1 else math.nan
            error = [math.sqrt(z**2 * spread + t**2 * self._of_queries(parts)) for parts in (worst, middle, best)]
        least, value, most = (float(parts.sum()) for parts in (worst, middle, best))
        whole = float(np.abs(share * lam).sum())
        support = float(np.abs(share * lam)[shown].sum()) / whole if whole > 0 else math.nan
        value += float((share * lam * np.where(shown, 0.0, self.guess[query])).sum())
        return ClickValue(
            value, least - error[0], most + error[2], value - error[1], value + error[1], least, most, support
        )

    def _of_clicks(self, by_list: np.ndarray, parts: np.ndarray) -> float:
        """Return the variance of the value over sessions or impressions, from clicks and from the queries' shares."""
        log, starts = self.log, self.log.offsets[:-1]
        query = log.query[starts]
        lists = np.bincount(query, minlength=len(parts))
        if self.centred:
            mean = np.bincount(query, weights=by_list, minlength=len(parts)) / np.maximum(lists, 1)
            several = lists > 1
            by_list = (by_list - np.where(several, mean, 0.0)[query]) * np.sqrt(lists / np.maximum(lists - 1, 1))[query]
        if self.weighted:
            values = parts / np.where(self.shares > 0, self.shares, 1.0) - parts.sum()
            by_list = by_list + np.where(self.shares > 0, values, 0.0)[query] / lists[self.shares > 0].sum()
        if log.session is not None:
            by_list = np.bincount(log.session[starts] + 1, weights=by_list)
        return float(by_list @ by_list)

    def _of_queries(self, parts: np.ndarray) -> float:
        """Return the variance of the value over queries."""
        used = self.shares > 0
        m = int(used.sum())
        deviations = parts[used] - self.shares[used] * parts.sum()
        return float(deviations @ deviations) * m / (m - 1) if m > 1 else math.nan
