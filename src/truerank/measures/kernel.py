"""Measures of many rankings of the same queries: of all columns of X at once, and of one score vector again and again.

AdaRank, single features and other learners that look at a measure itself ask this. Any measure works; AP, nDCG, RR and
P@k under an order of ties that does not average go through a kernel that sorts no more than it must: these measures
need the ranks of the documents that can contribute (relevant, or of positive gain) and nothing of the others' order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.ranking_data import RankingData
from truerank.measures.average_precision import AveragePrecision
from truerank.measures.base import Measure
from truerank.measures.derived import hits_of, tie_order
from truerank.measures.ndcg import NormalisedDCG, discounts, gains_of, ideal_dcg
from truerank.measures.precision import Precision
from truerank.measures.reciprocal_rank import ReciprocalRank

_BLOCK_VALUES = 1 << 21  # scores in hand at a time: 16 MB as float64
_AVERAGE_PRECISION, _GAIN_SUM, _RECIPROCAL_RANK = 0, 1, 2


class QueryMeasure:
    """A measure on the queries of one data set.

    Parameters
    ----------
    data : RankingData
        Its grades and document ids are kept, its X is not.
    measure : Measure
    """

    def __init__(self, data: RankingData, measure: Measure) -> None:
        self.measure, self.judgements = measure, data.judgements()
        self._plan = _plan(measure, self.judgements)

    def of_scores(self, scores: np.ndarray) -> np.ndarray:
        """Value of every query (m,) for scores (n,); NaN where the measure skips a query."""
        if not math.isfinite(np.add.reduce(scores)) and not np.isfinite(scores).all():
            raise InvalidInputError("the scores exceed the range of float64; scale the features")
        if self._plan is None:
            return self.measure.per_query(self.judgements, scores)
        return self._plan.evaluate(scores[None], 0, self.judgements.n_queries)[:, 0]

    def of_columns(self, X: Any, *, descending: bool = True, n_jobs: int | None = None) -> np.ndarray:
        """Value of every query when it is ranked by each column: float64 (m, p).

        Parameters
        ----------
        X : array (n, p) or CSR matrix, in grouped order
        descending : bool
            False ranks small values first.
        n_jobs : int, optional
            Threads; the result does not depend on it.

        Notes
        -----
        X is read once, in blocks of queries, and never copied whole.
        """
        m, p = self.judgements.n_queries, X.shape[1]
        result = np.empty((m, p))
        sign = 1.0 if descending else -1.0
        if self._plan is None:
            self._of_columns_by_measure(X, sign, result)
            return result
        plan, offsets = self._plan, self.judgements.offsets
        rows = max(1, min(65_536, _BLOCK_VALUES // max(1, p)))

        def work(first: int, last: int) -> None:
            start, stop = int(offsets[first]), int(offsets[last])
            width = max(1, _BLOCK_VALUES // max(1, stop - start))
            part = X[start:stop].toarray() if hasattr(X, "tocsr") else X[start:stop]
            for a in range(0, p, width):
                block = np.multiply(part[:, a : a + width].T, sign, dtype=np.float64, order="C")
                result[first:last, a : a + width] = plan.evaluate(block, first, last)

        run_blocks(work, query_blocks(offsets, rows), n_jobs)
        return result

    def _of_columns_by_measure(self, X: Any, sign: float, result: np.ndarray) -> None:
        n, p = X.shape
        X = X.tocsc() if hasattr(X, "tocsr") else X
        width = max(1, _BLOCK_VALUES // max(1, n))
        for a in range(0, p, width):
            part = X[:, a : a + width]
            part = part.toarray() if hasattr(part, "tocsr") else part
            block = np.multiply(part.T, sign, dtype=np.float64, order="C")
            result[:, a : a + width] = self.measure.per_query(self.judgements, block).T


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the kernel needs of a measure and the judgements.

    Attributes
    ----------
    formula : int
    offsets : int64 array (m + 1,)
    order : int64 array (n,) or None
        Rows of each query in the order that settles ties; None is row order.
    single : bool
        Compare scores as float32.
    hits : int64 array (h,)
        Places (after `order`) of the documents that can contribute, grouped by query.
    hit_offsets : int64 array (m + 1,)
    gains : float64 array (h,)
    weights : float64 array (longest query,)
        Weight of each rank, 0 beyond the cutoff.
    scale : float64 array (m,)
    is_fixed : bool array (m,)
        Queries whose value does not depend on their order by rule (empty, missing).
    fixed : float64 array (m,)
        Those values.
    """

    formula: int
    offsets: np.ndarray
    order: np.ndarray | None
    single: bool
    hits: np.ndarray
    hit_offsets: np.ndarray
    gains: np.ndarray
    weights: np.ndarray
    scale: np.ndarray
    is_fixed: np.ndarray
    fixed: np.ndarray

    def evaluate(self, scores: np.ndarray, first: int, last: int) -> np.ndarray:
        """Values (last - first, k) of scores (k, rows of the queries first … last - 1)."""
        offsets = self.offsets[first : last + 1]
        if self.order is not None:
            scores = scores[:, self.order[offsets[0] : offsets[-1]] - offsets[0]]
        if self.single:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        values = np.empty((last - first, len(scores)))
        _measure_queries(
            np.ascontiguousarray(scores),
            offsets,
            self.hits,
            self.hit_offsets[first : last + 1],
            self.gains,
            self.weights,
            self.scale[first:last],
            self.is_fixed[first:last],
            self.fixed[first:last],
            self.formula,
            values,
        )
        return values


def _plan(measure: Measure, judgements: Any) -> _Plan | None:
    """The kernel's view of a measure, or None where only the measure itself will do."""
    kind, ties = type(measure), measure.setting("ties")
    if kind not in (AveragePrecision, NormalisedDCG, ReciprocalRank, Precision) or ties in ("average", "end"):
        return None
    if judgements.judged is not None and measure.setting("judged_only"):
        return None
    n, m, offsets = judgements.n_rows, judgements.n_queries, judgements.offsets
    sizes = np.diff(offsets)
    longest, cutoff = int(sizes.max(initial=0)), measure.cutoff
    weights, gains, scale = np.ones(longest), np.ones(n), np.ones(m)
    if kind is NormalisedDCG:
        formula = _GAIN_SUM
        gains = gains_of(judgements, measure.setting("gain"))
        mask = gains > 0
        weights = discounts(measure.setting("discount"), longest)
        ideal = ideal_dcg(judgements, measure.setting("gain"), measure.setting("discount"), cutoff)
        empty = ideal <= 0
        scale = 1.0 / np.where(empty, 1.0, ideal)
    else:
        hits = hits_of(judgements, measure.rel)
        mask, empty = hits.mask, hits.total == 0
        formula = {AveragePrecision: _AVERAGE_PRECISION, Precision: _GAIN_SUM}.get(kind, _RECIPROCAL_RANK)
        if kind is AveragePrecision:
            total = np.maximum(hits.total, 1)
            if cutoff is not None and measure.setting("denominator") == "reachable":
                total = np.minimum(total, cutoff)
            scale = 1.0 / total
        elif kind is Precision and cutoff is not None:
            scale /= np.clip(sizes, 1, cutoff) if measure.setting("short") == "shorten" else cutoff
    if cutoff is not None:
        weights[cutoff:] = 0.0
        if kind in (NormalisedDCG, Precision) and measure.setting("short") == "zero":
            scale[sizes < cutoff] = 0.0
    order = None
    if ties != "stable" and not (ties == "trec" and judgements.tie_keys is None):
        settled = tie_order(judgements, ties)
        order = None if settled is None else settled.row
    if order is not None:
        mask, gains = mask[order], gains[order]
    places = np.flatnonzero(mask)
    missing = sizes == 0
    fixed = np.full(m, {"zero": 0.0, "one": 1.0, "skip": np.nan}[measure.setting("empty")])
    fixed[missing] = 0.0 if measure.setting("missing_topics") == "zero" else np.nan
    # Fancy indices and np.array copy: the kernel meets writable arrays only, a read-only one is one more compilation.
    return _Plan(
        formula=formula,
        offsets=np.array(offsets),
        order=order,
        single=measure.setting("compare") == "float32",
        hits=places,
        hit_offsets=np.searchsorted(places, offsets).astype(np.int64),
        gains=np.array(gains[places], dtype=np.float64),
        weights=weights,
        scale=scale,
        is_fixed=empty | missing,
        fixed=fixed,
    )


@kernel
def _measure_queries(scores, offsets, hits, hit_offsets, gains, weights, scale, is_fixed, fixed, formula, values):
    """Values (m, k) of k rankings of m queries.

    `scores` (k, rows) starts at the first query's first row, `offsets` and `hits` count from the first row of all.
    The rank of a contributing document is 1 + the documents that stand before it: by a larger score, or by an equal
    one at an earlier place. Few contributing documents count them directly; many are sorted first, and each other
    document finds by bisection how many of them it stands behind.
    """
    base = offsets[0]
    k = scores.shape[0]
    m = offsets.shape[0] - 1
    most = 0
    for i in range(m):
        most = max(most, hit_offsets[i + 1] - hit_offsets[i])
    ranks = np.empty(most, np.int64)
    order = np.empty(most, np.int64)
    spare = np.empty(most, np.int64)
    keys = np.empty(most, np.float64)
    counts = np.empty(most + 1, np.int64)
    for i in range(m):
        a, b = offsets[i] - base, offsets[i + 1] - base
        h0, h1 = hit_offsets[i], hit_offsets[i + 1]
        R = h1 - h0
        if is_fixed[i]:
            values[i] = fixed[i]
            continue
        for c in range(k):
            s = scores[c, a:b]
            if R <= _COUNTING:
                for j in range(R):
                    p = hits[h0 + j] - base - a
                    ranks[j] = 1 + _count_before(s, p)
                    order[j] = j
                if formula == _AVERAGE_PRECISION:
                    _sort_few(ranks[:R])
            else:
                _rank_many(s, hits[h0:h1], base + a, ranks, order, spare, keys, counts)
            total = 0.0
            if formula == _AVERAGE_PRECISION:
                for j in range(R):
                    r = ranks[j]
                    total += weights[r - 1] * (j + 1) / r
            elif formula == _GAIN_SUM:
                for j in range(R):
                    total += gains[h0 + order[j]] * weights[ranks[j] - 1]
            else:
                first = s.shape[0]
                for j in range(R):
                    first = min(first, ranks[j])
                if R > 0:
                    total = weights[first - 1] / first
            values[i, c] = total * scale[i]


_COUNTING = 24  # contributing documents up to which counting beats sorting


@kernel
def _count_before(s, p):
    """Documents before the one at place p: scores above its own, or equal at an earlier place."""
    x = s[p]
    count = 0
    for j in range(p):
        count += s[j] >= x
    for j in range(p + 1, s.shape[0]):
        count += s[j] > x
    return count


@kernel
def _sort_few(values):
    for j in range(1, values.shape[0]):
        v = values[j]
        q = j
        while q > 0 and values[q - 1] > v:
            values[q] = values[q - 1]
            q -= 1
        values[q] = v


@kernel
def _rank_many(s, hits, start, ranks, order, spare, keys, counts):
    """Ranks of the contributing documents, ascending, and `order`: which one has the j-th rank."""
    R = hits.shape[0]
    for j in range(R):
        order[j] = j
    # Merge sort, stable, descending: runs of 8 by insertion, then doubled.
    for a in range(0, R, 8):
        for j in range(a + 1, min(a + 8, R)):
            v = order[j]
            x = s[hits[v] - start]
            q = j
            while q > a and s[hits[order[q - 1]] - start] < x:
                order[q] = order[q - 1]
                q -= 1
            order[q] = v
    width = 8
    while width < R:
        for a in range(0, R, 2 * width):
            middle, end = min(a + width, R), min(a + 2 * width, R)
            u, v = a, middle
            for q in range(a, end):
                if u < middle and (v >= end or s[hits[order[u]] - start] >= s[hits[order[v]] - start]):
                    spare[q] = order[u]
                    u += 1
                else:
                    spare[q] = order[v]
                    v += 1
        order[:R] = spare[:R]
        width *= 2
    for j in range(R):
        keys[j] = s[hits[order[j]] - start]
    counts[: R + 1] = 0
    # Each document that cannot contribute stands behind `low` contributing ones: those with a larger score, or an
    # equal one at an earlier place.
    following = 0
    for place in range(s.shape[0]):
        if following < R and hits[following] - start == place:
            following += 1
            continue
        x = s[place]
        low, high = 0, R
        while low < high:
            mid = (low + high) >> 1
            y = keys[mid]
            if y > x or (y == x and hits[order[mid]] - start < place):
                low = mid + 1
            else:
                high = mid
        counts[low] += 1
    before = 0
    for j in range(R):
        before += counts[j]
        ranks[j] = j + 1 + before
