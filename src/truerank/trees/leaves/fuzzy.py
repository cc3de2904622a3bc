"""Fuzzy leaves: every row is in every leaf with a probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel
from truerank.core.threads import Workers, row_blocks
from truerank.trees.ensemble import Ensemble
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.leaves.base import Leaves
from truerank.trees.leaves.constant import constrain, newton_values
from truerank.trees.leaves.fuzzy_predictor import FuzzyPredictor, add_averages, leaves_in_order
from truerank.trees.leaves.places import MOST_PLACES, Norms, PlaceTable, Shares, make_shares, smoothing_of
from truerank.trees.rows import Rows, Sample
from truerank.trees.training_columns import TrainingColumns

_CACHE_BYTES = 100 << 20  # states of columns that are kept between trees


@dataclass(frozen=True)
class FuzzyLeaves(Leaves):
    """Leaves to which every row belongs with a probability: `ObliviousBoosting(leaves=FuzzyLeaves(...))`.

    Parameters
    ----------
    fuzziness, p_swap : float, optional
        Width of fuzzy borders, one or the other: as a share of the rows (default 0.1), so that `p_swap` is
        `max(0, 1 - 1 / (fuzziness * n))`; or the probability, in [0, 1), that neighbouring rows swap their places. Rows
        count by weight; they are copies if all weights are multiples of one number, else rows of the mean weight.
    ties : {"near", "average"}, default "average"
        Place of rows with equal values: the one nearest to the border (the thesis), or the average over all of theirs,
        which distinguishes features that have mostly one value.
    search : bool, default False
        Use fuzzy borders in the level search, too.
    places : int in 2 … 32000, default 4096
        Probabilities are exact for features with at most this many different values, and use about this many quantiles
        of others.

    Examples
    --------
    >>> FuzzyLeaves(fuzziness=0.1).swap_probability(1000)
    0.99
    """

    fuzziness: float | None = None
    p_swap: float | None = None
    ties: str = "average"
    search: bool = False
    places: int = 4096

    name: ClassVar[str] = "fuzzy"
    needs_places: ClassVar[bool] = True
    scored_by: ClassVar[tuple[str, ...]] = ("ties",)

    def check(self) -> None:
        """Raise `InvalidInputError` on a parameter out of range."""
        check_choice(self.ties, "ties", ("near", "average"))
        if check_positive_int(self.places, "places", 2) > MOST_PLACES:
            raise InvalidInputError(f"places must be at most {MOST_PLACES}, got {self.places}")
        self.swap_probability(1)

    def swap_probability(self, n: float, places: float | None = None) -> float:
        """Return the probability that neighbouring places swap if n rows have `places` (default: n)."""
        places = n if places is None else places
        if self.p_swap is not None:
            if self.fuzziness is not None:
                raise InvalidInputError("give fuzziness or p_swap, not both: p_swap = 1 - 1 / (fuzziness * n)")
            p = check_number(self.p_swap, "p_swap", minimum=0.0, maximum=1.0, open_maximum=True)
            return p if places == n else max(0.0, 1.0 - (1.0 - p) * n / places)
        width = 0.1 if self.fuzziness is None else check_number(self.fuzziness, "fuzziness", minimum=0.0)
        if width == 0.0:
            return 0.0
        return min(max(0.0, 1.0 - 1.0 / (width * places)), float(np.nextafter(1.0, 0.0)))

    def search_rules(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float) -> GrowthRules:
        """Return the rules of the level search, with fuzzy borders if `search` asks for them."""
        if not self.search:
            return rules
        return replace(rules, smoothing=smoothing_of(columns.borders, columns.places, p_swap))

    def fitter(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> FuzzyFitter:
        return FuzzyFitter(rules.alpha, rules.monotone, columns.places, p_swap, self.ties, workers)

    def predictor(self, ensemble: Ensemble, model: Any) -> FuzzyPredictor:
        return FuzzyPredictor(ensemble, model._flat_places(), model.p_swap_, self.ties)


class FuzzyFitter:
    """Fits and evaluates fuzzy leaves: F(l) = -ΣP g / (ΣP h + alpha), score Σ_l P(x ∈ l) F(l); `p` is p_swap."""

    needs_sample = True

    def __init__(
        self,
        alpha: float,
        monotone: np.ndarray | None,
        places: Sequence[PlaceTable] | Mapping[int, PlaceTable],  # by feature
        p: float,
        ties: str,
        workers: Workers,
    ) -> None:
        self.alpha, self.monotone, self.workers = alpha, monotone, workers
        self.places, self.norms, self.ties = places, Norms(p), ties
        self._shares: dict[int, Shares] = {}

    def fit(self, tree: TreeStructure, rows: Rows, sample: Sample | None) -> np.ndarray:
        assert sample is not None
        return self.values(tree, *self.sums(tree, rows, sample), sample.unit)

    def sums(self, tree: TreeStructure, rows: Rows, sample: Sample) -> tuple[np.ndarray]:
        """Return ΣP g and ΣP h of each leaf (2, 2^d), which add up over partitions."""
        tables = self._tables(tree, rows)
        states = self._states(tree, rows)

        def work(start: int, stop: int) -> np.ndarray:
            return _leaf_sums(_stack(states, start, stop), tables, *sample.block(start, stop))

        total = np.zeros((2, 1 << tree.depth))
        for part in self.workers.run(work, row_blocks(rows.matrix.n_rows)):
            total += part
        return (total,)

    def values(self, tree: TreeStructure, total: np.ndarray, unit: float) -> np.ndarray:
        return constrain(newton_values(total[0], total[1], self.alpha), total[1], tree.features, self.monotone)

    def add(self, tree: TreeStructure, rows: Rows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's value of every row to the scores (n,)."""
        tables = self._tables(tree, rows)
        states = self._states(tree, rows)
        ordered = leaves_in_order(values[None]).ravel()

        def work(start: int, stop: int) -> None:
            _add_expected(_stack(states, start, stop), tables, ordered, scores[start:stop])

        self.workers.run(work, row_blocks(rows.matrix.n_rows))

    def _tables(self, tree: TreeStructure, rows: Rows) -> np.ndarray:
        """Return P(right) of every level by state (d, most states of a feature)."""
        levels = []
        for feature, code, side in zip(tree.features.tolist(), tree.codes.tolist(), tree.missing_right.tolist()):
            places = self.places[feature]
            if feature not in self._shares:
                self._shares[feature] = make_shares(places, self.norms, self.ties)
            own = rows.matrix.borders[feature]
            border = float(own[code]) if code < len(own) else np.inf
            b, state = places.place_of_border(border)
            levels.append(self._shares[feature].right_of(b, state, side))
        tables = np.zeros((tree.depth, max((len(level) for level in levels), default=1)))
        for table, level in zip(tables, levels):
            table[: len(level)] = level
        return tables

    def _states(self, tree: TreeStructure, rows: Rows) -> list[np.ndarray]:
        """Return the states (n,) of each level's feature."""
        cache = rows.cache
        for feature in tree.features.tolist():
            if feature in cache:
                cache[feature] = cache.pop(feature)  # the most recently used is last
                continue
            places = self.places[feature]
            blocks = row_blocks(rows.matrix.n_rows) or [(0, 0)]
            column = rows.column(feature)
            parts = self.workers.run(lambda a, b, x=column, t=places: t.states(x[a:b]), blocks)
            cache[feature] = np.concatenate(parts)
        states = [cache[feature] for feature in tree.features.tolist()]
        room = _CACHE_BYTES - 10 * rows.matrix.n_rows  # with millions of rows, memory matters more than time
        while cache and sum(column.nbytes for column in cache.values()) > room:
            del cache[next(iter(cache))]
        return states


def _stack(states: list[np.ndarray], start: int, stop: int) -> np.ndarray:
    if not states:
        return np.empty((0, stop - start), dtype=np.uint16)
    return np.stack([column[start:stop] for column in states])


@kernel
def _leaf_sums(states, tables, g, h):
    """Return ΣP g and ΣP h of every leaf (2, 2^d)."""
    depth, n = states.shape
    size = 1 << depth
    total = np.zeros((2, size))
    share = np.empty(size)
    sum_g, sum_h = total
    for i in range(n):
        if h[i] == 0.0 and g[i] == 0.0:
            continue
        share[0] = 1.0
        for t in range(depth):
            right = tables[t, states[t, i]]
            half = 1 << t
            for q in range(half):
                share[q + half] = share[q] * right
                share[q] -= share[q + half]
        a, b = g[i], h[i]
        for q in range(size):
            sum_g[q] += share[q] * a
            sum_h[q] += share[q] * b
    return total


@kernel
def _add_expected(states, tables, values, scores):
    """Add Σ_l P(row ∈ l) F(l) to the scores, 64 rows at a time; `values` are F as in `leaves_in_order`."""
    depth, n = states.shape
    shares = np.zeros((depth, 64))
    questions = np.arange(depth)
    room = 1 << (depth - 3 if depth > 2 else depth)
    work, spare = np.empty((room, 64)), np.empty((room, 64))
    total = np.zeros(64)
    for start in range(0, n, 64):
        rows = min(64, n - start)
        for t in range(depth):
            for i in range(rows):
                shares[t, i] = tables[t, states[t, start + i]]
        for i in range(rows):
            total[i] = scores[start + i]
        add_averages(shares, questions, values, depth, np.int64(0), np.int64(1), work, spare, total)
        for i in range(rows):
            scores[start + i] = total[i]
