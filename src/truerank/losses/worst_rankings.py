"""Most violated rankings: the oracles of the structural SVM.

For a query with R relevant and N non-relevant documents, the joint feature map of Yue and others (2007) gives a ranking
y the value `w·Ψ(y) = 1/(RN) Σ_ij y_ij (s_i - t_j)`, with s, t the scores of relevant and non-relevant documents. An
oracle returns, for every query, the ranking that maximises `H(y) = Δ(y) + w·Ψ(y) - w·Ψ(y*)`, where y* is the perfect
ranking, as its loss Δ and the coefficients c of the scores: `H = Δ + Σ c·s`. Both kinds of documents keep the order of
their scores, so that a ranking is given by `place[j]` in 1 … R+1, the first relevant document that the j-th
non-relevant document precedes; it never decreases. A relevant document with b non-relevant documents before it has the
coefficient -2b/(RN). A non-relevant document after a relevant documents has the coefficient 2(R - a)/(RN).

* `AP`: moving the j-th other document before relevant k changes H by `k/(R(j+k-1)(j+k)) - 2(s_k - t_j)/(RN)`,
  independently for each j, and the best places are monotone in j (Theorem 2): divide and conquer over j with running
  sums of these terms, O(n log n). The sums start at the right end of each node, so that nothing cancels.
* `nDCG` without a cutoff and with a convex discount D: the same with `(D(j+k-1) - D(j+k))/IDCG`.
* `nDCG@k`: a lattice over (relevant, other) documents down to rank k; below it the two lists merge by score. On lists
  of real length, w = 0 often minimises this bound; use `ramp` to learn.
* `RR`: the number p of non-relevant documents before the first relevant document determines the loss; all later
  documents merge by score.
* `ROC`: the loss is a sum over pairs, and a pair is swapped if `s - t < 1/2`.

Ties in score keep relevant documents first and otherwise the order of the rows. All measures cost O(n log n) for the
sort, and nDCG@k costs O(k²) more for each query.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import sums_by_query
from truerank.losses.graded_pairs import sort_grades
from truerank.matrices.sorting import longest_query, room_to_sort, sort_descending
from truerank.measures.base import Measure
from truerank.measures.ndcg import discounts

_AP, _ROC, _RR, _CONVEX, _LATTICE = range(5)


class RankingOracle:
    """Worst rankings under the measure "AP", "ROC", "RR" or "nDCG", binary at the grade `rel`.

    nDCG has a `cutoff` (None: the whole list) and a `discount`: "log2", or with a cutoff "letor", which is not convex.
    Queries with a relevant and a non-relevant document are `kept` (m,).

    Examples
    --------
    One relevant document ranks behind a non-relevant document by 1: the worst ranking swaps them, AP falls from 1 to
    1/2, and `H = 1/2 + 2 · 1`.

    >>> oracle = RankingOracle("AP", np.array([1.0, 0.0]), np.array([0, 2]), rel=1)
    >>> loss, coefficients = oracle(np.array([0.0, 1.0]))
    >>> loss.tolist(), coefficients.tolist()
    ([0.5], [-2.0, 2.0])

    References
    ----------
    Yue, Finley, Radlinski, Joachims (2007), A support vector method for optimizing average precision, SIGIR,
    sections 3 and 4. Joachims (2005), A support vector method for multivariate performance measures, ICML (ROC).
    """

    def __init__(
        self,
        measure: str,
        grades: np.ndarray,
        offsets: np.ndarray,
        *,
        rel: float = 1.0,
        cutoff: int | None = None,
        discount: str = "log2",
    ) -> None:
        codes = {"AP": _AP, "ROC": _ROC, "RR": _RR, "nDCG": _CONVEX if cutoff is None else _LATTICE}
        if measure not in codes:
            raise InvalidInputError(
                f"the measure {measure!r} has no oracle; oracles exist for AP, ROC, RR, nDCG and nDCG@k",
                code="no-oracle",
            )
        self.code, self.measure = codes[measure], measure
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        relevant = np.asarray(grades) >= rel
        self.n_relevant = sums_by_query(relevant.astype(np.int64), self.offsets)
        sizes = np.diff(self.offsets)
        self.kept = (self.n_relevant > 0) & (self.n_relevant < sizes)
        # Relevant rows first within each query; each call leaves both parts in the order of its scores.
        self.rows = sort_grades(~relevant, self.offsets)[0]
        longest = int(sizes.max(initial=0))
        self.cutoff = longest if cutoff is None else int(cutoff)
        if discount == "letor" and cutoff is None:
            raise InvalidInputError(
                "nDCG with LETOR's discount (1, 1, .63, …) is not convex. Set a cutoff", code="no-cutoff"
            )
        self.discount = np.append(0.0, discounts(discount, longest + 1))

    def __call__(self, scores: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss (m,) and coefficients (n,) of every query's most violated ranking under the scores (n,)."""
        loss, coefficients = np.zeros(len(self.kept)), np.zeros(len(scores))
        work = partial(
            _worst_rankings, self.code, np.ascontiguousarray(scores, dtype=np.float64), self.rows, self.offsets,
            self.n_relevant, self.discount, self.cutoff, loss, coefficients,
        )  # fmt: skip
        run_blocks(work, query_blocks(self.offsets, 16_384), n_jobs)
        return loss, coefficients


def oracle_for(measure: Measure, grades: np.ndarray, offsets: np.ndarray, rel: float) -> RankingOracle:
    """Return the oracle of a measure: AP, ROC, RR, nDCG or nDCG@k, with binary gains."""
    name, cutoff = measure.NAME, measure.cutoff
    if name not in ("AP", "ROC", "RR", "nDCG") or (cutoff is not None and name != "nDCG"):
        raise InvalidInputError(f"oracles exist for AP, ROC, RR, nDCG and nDCG@k, got {measure.name}", code="no-oracle")
    discount = measure.setting("discount") if name == "nDCG" else "log2"
    return RankingOracle(name, grades, offsets, rel=rel, cutoff=cutoff, discount=discount)


@kernel
def _places_convex(code, s, t, scale, discount, ideal, place, stack):
    """Write place[j - 1] for AP and convex nDCG by divide and conquer over j, between the neighbours' places.

    `scale` is 2/(RN). Of equal values, the lowest position is returned.
    """
    n_rel, n_other = len(s), len(t)
    depth = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 1, n_other, 1, n_rel + 1
    while depth >= 0:
        first, last, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        depth -= 1
        if low == high:
            for j in range(first, last + 1):
                place[j - 1] = low
            continue
        j = (first + last) // 2
        best, best_value, value = high, 0.0, 0.0
        for k in range(high - 1, low - 1, -1):
            if code == _AP:
                step = k / (n_rel * (float(j + k - 1) * float(j + k)))
            else:
                step = (discount[j + k - 1] - discount[j + k]) / ideal
            value += step - scale * (s[k - 1] - t[j - 1])
            if value >= best_value:
                best, best_value = k, value
        place[j - 1] = best
        if first < j:
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, j - 1, low, best
        if j < last:
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = j + 1, last, best, high


@kernel
def _places_merged(s, t, margin, place):
    """Write place[j - 1]: before the first relevant k with `s_k - t_j < margin`."""
    k = 0
    for j in range(len(t)):
        while k < len(s) and s[k] - t[j] >= margin:
            k += 1
        place[j] = k + 1


@kernel
def _places_reciprocal(s, t, scale, place):
    """Write place[j - 1] for RR: p documents first, the others merged by score behind the first relevant one."""
    n_rel, n_other = len(s), len(t)
    _places_merged(s, t, 0.0, place)
    # The merge is free from place 2 on. Moving document j from there to the front changes H by -scale · Σ (s_k - t_j)
    # over the relevant documents that it passes.
    passed = np.zeros(n_rel + 1)  # passed[i] = Σ_{k <= i} (s_k - s_1), shifted so that large equal scores cancel
    for k in range(n_rel):
        passed[k + 1] = passed[k] + (s[k] - s[0])
    value, best, best_value = 0.0, 0, 0.0
    for j in range(n_other):
        place[j] = max(place[j], 2)
        count = place[j] - 1
        value -= scale * (passed[count] - count * (t[j] - s[0]))
        with_loss = value + 1.0 - 1.0 / (j + 2)
        if with_loss > best_value:
            best, best_value = j + 1, with_loss
    for j in range(best):
        place[j] = 1


@kernel
def _merged_tails(s, t):
    """Return sums that give any tail of the merge by score in O(1).

    These are: others before each relevant document, relevant ones before each other; running sums of s and t; from the
    end, the sums of each score times the documents of the other kind before (relevant) or behind (other) it.
    """
    n_rel, n_other = len(s), len(t)
    before = np.zeros(n_rel + 1, dtype=np.int64)
    ahead = np.zeros(n_other + 1, dtype=np.int64)
    k = 0
    for j in range(n_other):
        while k < n_rel and s[k] >= t[j]:
            before[k] = j
            k += 1
        ahead[j] = k
    for q in range(k, n_rel):
        before[q] = n_other
    before[n_rel], ahead[n_other] = n_other, n_rel
    sum_s, sum_t = np.zeros(n_rel + 1), np.zeros(n_other + 1)
    tail_s, tail_t = np.zeros(n_rel + 1), np.zeros(n_other + 1)
    for k in range(n_rel):
        sum_s[k + 1] = sum_s[k] + s[k]
    for j in range(n_other):
        sum_t[j + 1] = sum_t[j] + t[j]
    for k in range(n_rel - 1, -1, -1):
        tail_s[k] = tail_s[k + 1] + before[k] * s[k]
    for j in range(n_other - 1, -1, -1):
        tail_t[j] = tail_t[j + 1] + (n_rel - ahead[j]) * t[j]
    return before, ahead, sum_s, sum_t, tail_s, tail_t


@kernel
def _places_lattice(s, t, scale, discount, cutoff, ideal, place):
    """Write place[j - 1] for nDCG@k: the best path over (a relevant, b other) documents to rank k, and a merged tail.

    Relevant a+1 after b others adds `-D(r)/ideal - scale·b·s`, another one after a relevant ones `scale·(R-a)·t`: H
    against the perfect ranking, up to the constant 1.
    """
    n_rel, n_other = len(s), len(t)
    depth = min(cutoff, n_rel + n_other)
    before, ahead, sum_s, sum_t, tail_s, tail_t = _merged_tails(s, t)
    value = np.full(depth + 2, -np.inf)
    from_relevant = np.zeros((depth + 1, depth + 1), dtype=np.uint8)
    value[0] = 0.0
    # Stage 1. Compute the best value of each state (a, b = r - a) at rank r from those at rank r - 1.
    for r in range(1, depth + 1):
        for a in range(min(r, n_rel), max(0, r - n_other) - 1, -1):
            b = r - a
            best, taken = -np.inf, 0
            if a > 0 and b <= n_other:
                best = value[a - 1] - discount[r] / ideal - scale * b * s[a - 1]
                taken = 1
            if b > 0 and a <= r - 1:
                other = value[a] + scale * (n_rel - a) * t[b - 1]
                if other > best:
                    best, taken = other, 0
            value[a] = best
            from_relevant[r, a] = taken
        if r - 1 - n_other >= 0:
            value[r - 1 - n_other] = -np.inf  # more than N others: no longer reachable
    # Stage 2. Find the best state at rank k, with its merged tail.
    best_a, best_value = -1, -np.inf
    for a in range(max(0, depth - n_other), min(depth, n_rel) + 1):
        b = depth - a
        # Relevant documents up to k1 have no further other one before them in the tail, and the reverse for j1.
        k1 = max(a, ahead[b])
        j1 = max(b, before[a])
        tail = -scale * (b * (sum_s[k1] - sum_s[a]) + tail_s[k1])
        tail += scale * ((n_rel - a) * (sum_t[j1] - sum_t[b]) + tail_t[j1])
        if value[a] + tail > best_value:
            best_a, best_value = a, value[a] + tail
    # Stage 3. Write the places of the tail, then of the path, backwards.
    a, b = best_a, depth - best_a
    for j in range(b, n_other):
        place[j] = max(a, ahead[j]) + 1
    for r in range(depth, 0, -1):
        if from_relevant[r, a] == 1:
            a -= 1
        else:
            b -= 1
            place[b] = a + 1


@kernel
def _worst_rankings(code, scores, rows, offsets, n_relevant, discount, cutoff, loss, coefficients, first, last):
    longest = longest_query(offsets, first, last)
    spare = room_to_sort(longest)
    place, values = np.empty(longest, dtype=np.int64), np.empty(longest)
    stack = np.empty((66, 4), dtype=np.int64)
    for q in range(first, last):
        start, n_rel = offsets[q], n_relevant[q]
        n_other = offsets[q + 1] - start - n_rel
        if n_rel == 0 or n_other == 0:
            continue
        rel_order, other_order = rows[start : start + n_rel], rows[start + n_rel : offsets[q + 1]]
        # The rows stay in the order of these scores: the next call, with scores much alike, sorts in little time.
        sort_descending(scores, rel_order, n_rel, spare)
        sort_descending(scores, other_order, n_other, spare)
        s, t = values[:n_rel], values[n_rel : n_rel + n_other]
        # Only differences matter; the shift keeps the lattice's products of scores and counts small.
        shift = scores[rel_order[0]]
        for k in range(n_rel):
            s[k] = scores[rel_order[k]] - shift
        for j in range(n_other):
            t[j] = scores[other_order[j]] - shift
        scale = 2.0 / (float(n_rel) * float(n_other))
        ideal = 0.0
        for r in range(1, min(n_rel, cutoff) + 1):
            ideal += discount[r]
        if code in (_AP, _CONVEX):
            _places_convex(code, s, t, scale, discount, ideal, place[:n_other], stack)
        elif code == _ROC:
            _places_merged(s, t, 0.5, place[:n_other])
        elif code == _RR:
            _places_reciprocal(s, t, scale, place[:n_other])
        else:
            _places_lattice(s, t, scale, discount, cutoff, ideal, place[:n_other])
        loss[q] = _settle(code, place[:n_other], scale, discount, cutoff, ideal, rel_order, other_order, coefficients)


@kernel
def _settle(code, place, scale, discount, cutoff, ideal, rel_order, other_order, coefficients):
    """Write the nonzero coefficients of the ranking with the other documents at `place`; return its loss."""
    n_rel, n_other = len(rel_order), len(other_order)
    j, total = 0, 0.0
    for k in range(n_rel):
        while j < n_other and place[j] <= k + 1:
            coefficients[other_order[j]] = scale * (n_rel - (place[j] - 1))
            j += 1
        coefficients[rel_order[k]] = -scale * j
        if code == _AP:
            total += j / float(k + 1 + j)
        elif code == _ROC:
            total += j
        elif code == _RR:
            if k == 0:
                total = j / float(1 + j)
        elif k + 1 + j <= cutoff:
            total += discount[k + 1 + j]
    if code == _AP:
        return total / n_rel
    if code == _ROC:
        return 0.5 * scale * total
    return total if code == _RR else 1.0 - total / ideal
