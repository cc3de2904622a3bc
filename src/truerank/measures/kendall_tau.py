"""Kendall's tau-b between scores and grades."""

from __future__ import annotations

import numpy as np

from truerank.data.grouping import at_places
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import kept, query_of_row
from truerank.measures.ranking import Ordered


class KendallTau(Measure):
    """Kendall's tau-b = (C - D) / sqrt((P - T_s)(P - T_g)) over the P pairs of ranked documents of a query.

    C and D count the concordant and the discordant pairs; T_s pairs are tied in score, and T_g pairs in grade. The
    value is in [-1, 1] and does not depend on the tie rule. Equal grades make a query empty; equal scores give 0.
    """

    NAME = "tau"
    OWN_TIES = "optimistic"  # tied scores by falling grade, so that no tied pair looks discordant
    TIE_AVERAGE = True

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        sizes = np.diff(judgements.offsets)
        pairs = (sizes * (sizes - 1) // 2).astype(np.float64)
        same_grade = _pairs_of_equal_grade(judgements)
        same_score = ordered.sum(_place_in_run(ordered.tied))
        both = np.zeros_like(ordered.tied)
        both[:, 1:] = ordered.tied[:, 1:] & (ordered.grades[:, 1:] == ordered.grades[:, :-1])
        same_both = ordered.sum(_place_in_run(both))
        discordant = ordered.sum(_inversions(judgements, ordered))
        difference = pairs - same_score - same_grade + same_both - 2.0 * discordant
        scale = np.sqrt((pairs - same_score) * (pairs - same_grade))
        return difference / np.where(scale > 0, scale, 1.0), pairs == same_grade


def _place_in_run(continues: np.ndarray) -> np.ndarray:
    """Return the distance of each position (k, n) from the start of its run; a run's sum is its number of pairs."""
    flat = continues.ravel()
    place = np.arange(flat.size)
    start = np.maximum.accumulate(np.where(flat, 0, place))
    return (place - start).reshape(continues.shape).astype(np.float64)


@kept
def _grade_codes(judgements: Judgements) -> np.ndarray:
    """Return 0 for the largest grade, 1 for the next one, … (n,)."""
    return np.unique(-judgements.grades, return_inverse=True)[1].astype(np.int64)


def _pairs_of_equal_grade(judgements: Judgements) -> np.ndarray:
    codes = _grade_codes(judgements)
    width = int(codes.max(initial=0)) + 1
    key, counts = np.unique(query_of_row(judgements) * width + codes, return_counts=True)
    return np.bincount(key // width, weights=counts * (counts - 1) / 2, minlength=judgements.n_queries)


def _inversions(judgements: Judgements, ordered: Ordered) -> np.ndarray:
    """Return numbers (k, n) whose sum over a query counts its pairs with the lower grade first.

    The codes of the grades are processed bit by bit from the highest. Among documents that agree in all higher bits, a
    1 before a 0 is an inversion. A stable sort by this bit follows. The cost is O(n log g) for g grades.
    """
    codes = _grade_codes(judgements)
    ranked = codes[ordered.rows].ravel()
    query = (query_of_row(judgements) + judgements.n_queries * np.arange(ordered.k)[:, None]).ravel()
    total = np.zeros(ranked.size)
    if not ranked.size:
        return total.reshape(ordered.rows.shape)
    for bit in range(int(codes.max()).bit_length() - 1, -1, -1):
        prefix = ranked >> (bit + 1)
        starts = np.flatnonzero(np.append(True, (prefix[1:] != prefix[:-1]) | (query[1:] != query[:-1])))
        sizes = np.diff(np.append(starts, ranked.size))
        one = (ranked >> bit) & 1
        before = np.cumsum(one) - one
        ones_before = before - np.repeat(before[starts], sizes)
        total += np.where(one == 0, ones_before, 0)
        zeros = sizes - np.add.reduceat(one, starts)
        start = np.repeat(starts, sizes)
        place = np.where(one == 1, start + np.repeat(zeros, sizes) + ones_before, np.arange(ranked.size) - ones_before)
        ranked = at_places(ranked, place)
    return total.reshape(ordered.rows.shape)
