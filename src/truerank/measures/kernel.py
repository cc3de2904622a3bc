"""Evaluate many rankings of the same queries: all columns of X at once, or one score vector after another.

AdaRank and other learners that evaluate a measure in each round use this module, and `evaluate` if numba is loaded.
Measures with a rank form (`measures/rank_form.py`) are computed by a kernel that needs only the ranks of contributing
documents (relevant, or of positive gain), not a full sort. The kernel adds in the order of `RankForm.values`, with
equal bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, row_blocks, run_blocks
from truerank.core.types import Matrix
from truerank.data.ranking_data import Judgements, RankingData
from truerank.measures.base import EMPTY_VALUES, Measure
from truerank.measures.derived import BY_ID, as_read, kept, tie_order
from truerank.measures.rank_form import PRECISION, SUM, RankForm
from truerank.measures.ranking import Ranking

_BLOCK_VALUES = 1 << 21  # scores in memory at a time: 16 MB as float64
_Ranks = tuple[np.ndarray, np.ndarray, np.ndarray]
_MOST_COUNTED = 2048  # queries with more hits are sorted, by NumPy
_MANY_HITS = 5  # with more than one hit in so many documents, sorting all documents is faster


class QueryMeasure:
    """A measure on the queries of one data set; the object keeps the grades and document ids, but not X."""

    def __init__(self, data: RankingData, measure: Measure) -> None:
        self.measure, self.judgements = measure, data.judgements()
        self._plan = plan_of(self.judgements, measure.check())

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Return the value of every query (m,) for scores (n,); NaN for skipped queries."""
        if not math.isfinite(np.add.reduce(scores)) and not np.isfinite(scores).all():
            raise InvalidInputError("the scores exceed the range of float64. Scale the features.", code="overflow")
        if self._plan is None:
            return self.measure.per_query(self.judgements, scores)
        return self._plan.evaluate(scores[None], 0, self.judgements.n_queries)[0]

    def of_columns(self, X: Matrix, *, descending: bool = True, n_jobs: int | None = None) -> np.ndarray:
        """Return the value of every query ranked by each column of X (n, p), in grouped order: float64 (m, p).

        `descending=False` ranks small values first. X is read once, in blocks of queries, without a full copy.
        The result does not depend on the number of threads `n_jobs`.
        """
        judgements, plan, p = self.judgements, self._plan, X.shape[1]
        result = np.empty((judgements.n_queries, p))
        sign = 1.0 if descending else -1.0
        blocks = [(0, judgements.n_queries)]
        if plan is not None:
            blocks = query_blocks(judgements.offsets, max(1, min(65_536, _BLOCK_VALUES // max(1, p))))

        def work(first: int, last: int) -> None:
            start, stop = int(judgements.offsets[first]), int(judgements.offsets[last])
            part = X[start:stop].tocsc() if hasattr(X, "tocsr") else X[start:stop]
            for a, b in row_blocks(p, max(1, _BLOCK_VALUES // max(1, stop - start))):
                columns = part[:, a:b].toarray() if hasattr(X, "tocsr") else part[:, a:b]
                block = np.multiply(columns.T, sign, dtype=np.float64, order="C")
                if plan is None:
                    result[:, a:b] = self.measure.per_query(judgements, block).T
                else:
                    result[first:last, a:b] = plan.evaluate(block, first, last).T

        run_blocks(work, blocks, n_jobs)
        return result


@dataclass(frozen=True, slots=True)
class _Plan:
    """A rank form with its documents in the order of the kernel."""

    form: RankForm
    offsets: np.ndarray  # int64 (m + 1,)
    order: np.ndarray | None  # int64 (n,): rows of each query in the order that settles ties; None is row order
    averaged: bool  # ties count with the average over their orders
    single: bool  # scores are compared as float32
    hits: np.ndarray  # int64 (h,): places (after `order`) of the documents that can contribute, grouped by query
    hit_offsets: np.ndarray  # int64 (m + 1,)
    gains: np.ndarray  # float64 (h,)
    weights: np.ndarray  # float64 (longest query,)
    cumulative: np.ndarray  # float64 (longest query + 1,)
    limits: np.ndarray  # int64 (m,)
    norm: np.ndarray  # float64 (m,)
    is_fixed: np.ndarray  # bool (m,): empty and missing queries, whose value does not depend on the order
    fixed: np.ndarray  # float64 (m,): these values

    def evaluate(self, scores: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return values (k, last - first) of scores (k, rows of the queries first … last - 1)."""
        values = np.empty((len(scores), last - first))
        for one, own in zip(self.compared(scores, first, last), values):
            own[:] = self.values_at(self.ranks(one, first, last), first, last)
        return values

    def compared(self, scores: np.ndarray, first: int, last: int) -> np.ndarray:
        """Return scores (k, rows) of these queries in the compared precision, in the order that breaks ties."""
        start, stop = self.offsets[first], self.offsets[last]
        if self.order is not None:
            scores = scores[:, self.order[start:stop] - start]
        if self.single:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        return np.ascontiguousarray(scores)

    def ranks(self, compared: np.ndarray, first: int, last: int) -> _Ranks:
        """Return the numbers of documents before each hit and tied with it, and the hits by rank, for one ranking."""
        hit_offsets = self.hit_offsets[first : last + 1]
        before, size, order = (np.empty(hit_offsets[-1] - hit_offsets[0], dtype=np.int64) for _ in range(3))
        offsets = self.offsets[first : last + 1]
        _rank_queries(compared, offsets, self.hits, hit_offsets, self.averaged, before, size, order)
        return before, size, order

    def values_at(self, ranks: _Ranks, first: int, last: int) -> np.ndarray:
        """Return values (last - first,) from the `ranks` of a plan with the same hits."""
        values, own = np.empty(last - first), slice(first, last)
        _values_at(
            *ranks, self.hit_offsets[first : last + 1], self.gains, self.weights, self.cumulative, self.limits[own],
            self.norm[own], self.is_fixed[own], self.fixed[own], self.form.kind, values,
        )  # fmt: skip
        return values

    def ranks_alike(self, other: _Plan) -> bool:
        """Return whether two plans use equal ranks."""
        same = self.order is other.order and self.averaged == other.averaged and self.single == other.single
        return same and np.array_equal(self.hits, other.hits)


def values_of_ranking(measure: Measure, ranking: Ranking) -> np.ndarray | None:
    """Return values (k, m) of the scores of a ranking; None if NumPy must evaluate them or is faster.

    Scores that are not finite require NumPy. The kernel needs 0.6 to 0.9 of NumPy's time for a ranking with many hits.
    """
    form = measure.form_of(ranking.judgements)
    k, n = ranking.scores.shape
    if form is None or (k == 1 and _MANY_HITS * len(form.hits.query) > n):  # making a plan is slow
        return None
    plan = plan_of(ranking.judgements, measure)
    if plan is None:
        return None
    scores = np.ascontiguousarray(ranking.scores, dtype=np.float64)
    with np.errstate(all="ignore"):
        if not math.isfinite(np.add.reduce(scores, axis=None)):
            return None
    m = ranking.judgements.n_queries
    if len(scores) > 1:
        return plan.evaluate(scores, 0, m)
    # Keep the ranks of a single ranking: most measures of a report need the ranks of the same documents.
    kept = next((ranks for other, ranks in ranking.hit_ranks if plan.ranks_alike(other)), None)
    if kept is None:
        kept = plan.ranks(plan.compared(scores, 0, m)[0], 0, m)
        ranking.hit_ranks.append((plan, kept))
    return plan.values_at(kept, 0, m)[None]


@kept
def plan_of(judgements: Judgements, measure: Measure) -> _Plan | None:
    """Return the plan of a measure for the kernel, or None if the measure has none."""
    ties = measure.setting("ties")
    if ties == "end" or (measure.setting("judged_only") and not judgements.known.all()):
        return None
    if as_read(judgements, measure.setting("grades")) is not None:
        return None
    form = measure.form_of(judgements)
    if form is None or form.hits.ranked.max(initial=0) > _MOST_COUNTED:
        return None
    m, offsets = judgements.n_queries, judgements.offsets
    order = None
    if ties != "stable" and not (ties in BY_ID and judgements.tie_keys is None):
        settled = tie_order(judgements, "optimistic" if ties == "average" else ties)
        order = None if settled is None else settled.row
    mask = form.hits.mask if order is None else form.hits.mask[order]
    places = np.flatnonzero(mask)
    gains = np.ones(len(places))
    if form.gains is not None:
        gains = form.gains[places if order is None else order[places]]
    missing = judgements.sizes == 0
    fixed = np.full(m, EMPTY_VALUES[measure.setting("empty")])
    fixed[missing] = 0.0 if measure.setting("missing_topics") == "zero" else np.nan
    # Fancy indices and np.array copy, because the kernel would be compiled again for read-only arrays.
    return _Plan(
        form=form,
        offsets=np.array(offsets),
        order=order,
        averaged=ties == "average",
        single=measure.setting("compare") == "float32",
        hits=places,
        hit_offsets=np.searchsorted(places, offsets).astype(np.int64),
        gains=np.array(gains, dtype=np.float64),
        weights=np.array(form.weights, dtype=np.float64),
        cumulative=form.cumulative(),
        limits=np.array(form.limit_of(), dtype=np.int64),
        norm=np.array(form.norm, dtype=np.float64),
        is_fixed=form.empty | missing,
        fixed=fixed,
    )


@kernel
def _rank_queries(scores, offsets, hits, hit_offsets, averaged, before, size, order):
    """Write the ranks (h,) of the hits of some queries in one ranking of their rows.

    `scores` starts at the first row of the first query, the results at its first hit; `offsets`, `hits` and
    `hit_offsets` count from the start of the data. The documents before a hit have a larger score or, if ties are
    broken, an equal score at an earlier position. They are counted, O(hits · documents); `order[j]` is the hit of a
    query with the j-th rank.
    """
    for i in range(offsets.shape[0] - 1):
        begin, end = hit_offsets[i] - hit_offsets[0], hit_offsets[i + 1] - hit_offsets[0]
        s = scores[offsets[i] - offsets[0] : offsets[i + 1] - offsets[0]]
        for j in range(begin, end):
            p = hits[hit_offsets[0] + j] - offsets[i]
            x = s[p]
            count = same = 0
            for q in range(s.shape[0]):
                count += s[q] > x
                same += s[q] == x
            if same > 1 and not averaged:
                same = 1
                for q in range(p):
                    count += s[q] == x
            k = j
            while k > begin and before[k - 1] > count:
                before[k], size[k], order[k] = before[k - 1], size[k - 1], order[k - 1]
                k -= 1
            before[k], size[k], order[k] = count, same, j - begin


@kernel
def _values_at(
    before, size, order, hit_offsets, gains, weights, cumulative, limits, norm, is_fixed, fixed, kind, values
):
    """Write values (m,) from the ranks of the hits, by the formulas of `RankForm`; the arguments are its parts."""
    for i in range(values.shape[0]):
        if is_fixed[i]:
            values[i] = fixed[i]
            continue
        begin, end, limit = hit_offsets[i] - hit_offsets[0], hit_offsets[i + 1] - hit_offsets[0], limits[i]
        total = 0.0
        if kind == PRECISION:
            total = _precision(before, size, begin, end, limit)
        elif kind != SUM:
            total = _first(before, size, begin, end, limit, weights)
        else:
            for j in range(begin, end):  # by the mean weight of tied ranks; ranks beyond the limit have weight 0
                g, n, gain = before[j], size[j], gains[hit_offsets[i] + order[j]]
                if n > 1:
                    total += gain * ((cumulative[min(g + n, limit)] - cumulative[min(g, limit)]) / n)
                elif g < limit:
                    total += gain * weights[g]
        values[i] = total / norm[i]


@kernel
def _precision(before, size, begin, end, limit):
    """Return the expected sum of the precisions at the hits of a query, group by group."""
    total = 0.0
    j = begin
    while j < end:
        g, n, r = before[j], size[j], 1
        while n > 1 and j + r < end and before[j + r] == g:
            r += 1
        for i in range(n):
            if g + i >= limit:
                break
            total += r / n * (j - begin + 1 + i * (r - 1) / max(n - 1, 1)) / (g + i + 1)
        j += r
    return total


@kernel
def _first(before, size, begin, end, limit, weights):
    """Return the expected weight of the rank of the first hit of a query."""
    if begin == end:
        return 0.0
    g, n, r = before[begin], size[begin], 1
    while n > 1 and begin + r < end and before[begin + r] == g:
        r += 1
    total = 0.0
    p = r / n
    for j in range(n - r + 1):
        if g + j < limit:
            total += p * weights[g + j]
        if j < n - r:
            p *= (n - j - r) / (n - j - 1)
    return total
