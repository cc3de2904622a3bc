"""Normalised discounted cumulative gain."""

from __future__ import annotations

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.measures.base import Measure
from truerank.measures.derived import LARGEST_EXPONENT, SMALLEST, ideal_grades, ranks, top_of, top_places
from truerank.measures.ranking import Ordered


class NormalisedDCG(Measure):
    """DCG = Σ_{r ≤ k} gain(grade at rank r) · discount(r), over the DCG of the best order of all judged documents.

    Gain is 2^grade - 1 (`exponential`, Burges et al. 2005) or the grade (`linear`, Järvelin & Kekäläinen 2002), 0 for
    grades below 0. Discount is 1/log2(1 + r) (`log2`), or 1 for r ≤ 2 and 1/log2(r) beyond (`letor`, as the LETOR
    scripts have it). `short="zero"` gives 0 to a query with fewer ranked documents than the cutoff (LETOR 4's script).
    """

    NAME = "nDCG"
    OWN = ("cutoff", "gain", "discount", "short")
    TIE_AVERAGE = True
    __slots__ = ()

    def _values(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        gain, discount = self.setting("gain"), self.setting("discount")
        result = np.zeros((ordered.k, judgements.n_queries))
        if judgements.n_rows:
            gains = gains_of(judgements, gain)
            weights = discounts(discount, int(np.diff(judgements.offsets).max()))
            if self.cutoff is None:
                hits, at = ordered.hits(SMALLEST), ordered.hit_ranks(SMALLEST)
                rows = ordered.rows[hits.mask[ordered.rows]].reshape(ordered.k, -1)
                result = hits.sum(gains[rows] * weights[at - 1])
            else:
                places, place, starts, queries = top_places(judgements, self.cutoff)
                values = gains[ordered.rows[:, places]] * weights[place]
                result[:, queries] = np.add.reduceat(values, starts, axis=1)
        return self._normalised(judgements, result)

    def _average(self, ordered: Ordered) -> tuple[np.ndarray, np.ndarray]:
        judgements = ordered.judgements
        weights = weights_of_places(judgements, self.setting("discount"), self.cutoff)
        gains = ordered.smoothed(gains_of(judgements, self.setting("gain")))
        return self._normalised(judgements, ordered.sum(gains * weights))

    def _normalised(self, judgements: Judgements, result: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ideal = ideal_dcg(judgements, self.setting("gain"), self.setting("discount"), self.cutoff)
        result /= np.where(ideal > 0, ideal, 1.0)
        if self.cutoff is not None and self.setting("short") == "zero":
            result[:, np.diff(judgements.offsets) < self.cutoff] = 0.0
        return result, ideal <= 0


def gain_of_grade(grades: np.ndarray, gain: str) -> np.ndarray:
    """Gain of each grade; 0 for grades below 0."""
    if gain == "linear":
        return np.maximum(grades, 0.0)
    gains = np.zeros_like(grades)
    relevant = np.flatnonzero(grades > 0)  # mostly few
    if len(relevant) and grades[relevant].max() > LARGEST_EXPONENT:
        raise InvalidInputError(
            f"a grade of {grades[relevant].max():g} is too large for the gain 2^grade - 1; take the grade itself as "
            "gain, nDCG(gain='linear'), or map the grades to a few levels"
        )
    gains[relevant] = np.exp2(grades[relevant]) - 1.0
    return gains


def gains_of(judgements: Judgements, gain: str) -> np.ndarray:
    """Gain of each row (n,), from the cache."""
    key = ("gains", gain)
    if key not in judgements.cache:
        judgements.cache[key] = gain_of_grade(judgements.grades, gain)
    return judgements.cache[key]


def discounts(discount: str, n: int) -> np.ndarray:
    """Weights of the ranks 1 … n."""
    rank = np.arange(1, n + 1, dtype=np.float64)
    if discount == "letor":
        return 1.0 / np.log2(np.maximum(rank, 2.0))
    return 1.0 / np.log2(rank + 1.0)


def weights_of_places(judgements: Judgements, discount: str, cutoff: int | None) -> np.ndarray:
    """Discount of each place (n,), 0 beyond the cutoff."""
    rank = ranks(judgements)
    weights = discounts(discount, int(rank.max()) if len(rank) else 0)[rank - 1]
    return weights if cutoff is None else np.where(rank <= cutoff, weights, 0.0)


def ideal_dcg(judgements: Judgements, gain: str, discount: str, cutoff: int | None) -> np.ndarray:
    """Largest possible DCG of each query (m,), from the cache."""
    key = ("ideal_dcg", gain, discount, cutoff)
    if key not in judgements.cache:
        grades, offsets = ideal_grades(judgements)
        result = np.zeros(judgements.n_queries)
        longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
        places, place, starts, queries = top_of(offsets, max(1, longest) if cutoff is None else cutoff)
        if len(places):
            values = gain_of_grade(grades[places], gain) * discounts(discount, longest)[place]
            result[queries] = np.add.reduceat(values, starts)
        judgements.cache[key] = result
    return judgements.cache[key]
