"""Normalised discounted cumulative gain."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.grouping import offsets_of, sums_by_query
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import LARGEST_EXPONENT, SMALLEST, hits_of, ideal_grades, kept, segment_range
from truerank.measures.rank_form import SUM, RankForm


class NormalisedDCG(Measure):
    """DCG = Σ_{r ≤ k} gain(grade at rank r) · discount(r), divided by the largest possible DCG of all judged documents.

    The gain is 2^grade - 1 (`exponential`, Burges and others 2005) or the grade (`linear`, Järvelin and Kekäläinen
    2002), and 0 for negative grades. The discount is 1/log2(1 + r) (`log2`), or 1 for r ≤ 2 and 1/log2(r) for larger r
    (`letor`, as in the LETOR scripts). `gains={0: 1, 1: 4}` first replaces these grades of judged documents, as in
    ir_measures. `short="zero"` gives 0 to a query with fewer ranked documents than the cutoff, as LETOR 4 does.
    """

    NAME = "nDCG"
    OWN: ClassVar[tuple[str, ...]] = ("cutoff", "gain", "discount", "short", "gains")
    TIE_AVERAGE = True

    @property
    def rises_with_grades(self) -> bool:
        """Return False with `gains`, which may give a lower grade a larger gain."""
        return self.setting("gains") is None

    def rank_form(self, judgements: Judgements) -> RankForm:
        gain, discount = self.setting("gain"), self.setting("discount")
        gains = self.setting("gains")
        graded = judgements if gains is None else relabelled(judgements, gains)
        ideal = ideal_dcg(graded, gain, discount, self.cutoff)
        return RankForm(
            SUM,
            hits_of(graded, SMALLEST),
            discounts(discount, judgements.longest),
            self._norm(judgements, ideal),
            ideal <= 0,
            gains=gains_of(graded, gain),
            limits=self.limits(judgements),
        )

    def _norm(self, judgements: Judgements, ideal: np.ndarray) -> np.ndarray:
        """Return the divisor of the sum, float64 (m,); `ideal` is the DCG of the best order."""
        norm = np.where(ideal > 0, ideal, 1.0)
        if self.cutoff is not None and self.setting("short") == "zero":
            norm[judgements.sizes < self.cutoff] = np.inf
        return norm


class DiscountedCumulativeGain(NormalisedDCG):
    """DCG = Σ_{r ≤ k} gain(grade at rank r) · discount(r), with gain and discount as in nDCG.

    The mean DCG depends mostly on queries with many relevant documents; use DCG only to compare with tools that print
    it. DCG can exceed 1, so AdaRank cannot train it.
    """

    NAME = "DCG"
    OWN = ("cutoff", "gain", "discount", "gains")
    DEFAULTS = {"empty": "zero"}  # noqa: RUF012

    def _norm(self, judgements: Judgements, ideal: np.ndarray) -> np.ndarray:
        return np.ones(judgements.n_queries)


@kept
def relabelled(judgements: Judgements, gains: tuple[tuple[float, float], ...]) -> Judgements:
    """Return judgements with grades replaced by (grade, gain) pairs; unjudged documents have gain 0."""
    table = dict(gains)

    def mapped(grades: np.ndarray) -> np.ndarray:
        values, inverse = np.unique(grades, return_inverse=True)
        return np.array([table.get(value, value) for value in values.tolist()], dtype=np.float64)[inverse]

    grades = mapped(judgements.grades)
    if judgements.judged is not None:
        grades[~judgements.judged] = 0.0
    missing = None if judgements.missing_grades is None else mapped(judgements.missing_grades)
    return Judgements(grades, judgements.offsets, missing_grades=missing, missing_offsets=judgements.missing_offsets)


def gain_of_grade(grades: np.ndarray, gain: str) -> np.ndarray:
    """Return the gain of each grade, which is 0 for negative grades."""
    positive = np.maximum(grades, 0.0)
    if gain == "linear":
        return positive
    positive = np.nan_to_num(positive, copy=False, posinf=np.inf)  # a grade of nan is not above any other
    highest = float(positive.max(initial=0.0))
    if highest > LARGEST_EXPONENT:
        raise InvalidInputError(
            f"a grade of {highest:g} is too large for the gain 2^grade - 1. Use nDCG(gain='linear'), where the grade "
            f"is the gain, or map the grades to fewer levels",
            code="large-grade",
        )
    levels = positive.astype(np.int64)
    if np.array_equal(levels, positive):  # the usual case: a table needs a third of the time
        return (np.exp2(np.arange(highest + 1.0)) - 1.0)[levels]
    return np.exp2(positive) - 1.0


@kept
def gains_of(judgements: Judgements, gain: str) -> np.ndarray:
    """Return the gain of each row (n,)."""
    return gain_of_grade(judgements.grades, gain)


def discounts(discount: str, n: int) -> np.ndarray:
    """Return the weights of the ranks 1 … n."""
    rank = np.arange(1, n + 1, dtype=np.float64)
    if discount == "letor":
        return 1.0 / np.log2(np.maximum(rank, 2.0))
    return 1.0 / np.log2(rank + 1.0)


@kept
def ideal_dcg(judgements: Judgements, gain: str, discount: str, cutoff: int | None) -> np.ndarray:
    """Return the largest possible DCG of each query (m,)."""
    grades, offsets = ideal_grades(judgements)
    sizes = np.diff(offsets) if cutoff is None else np.minimum(np.diff(offsets), cutoff)
    place = segment_range(sizes)
    gains = gain_of_grade(grades[np.repeat(offsets[:-1], sizes) + place], gain)
    return sums_by_query(gains * discounts(discount, int(sizes.max(initial=0)))[place], offsets_of(sizes))
