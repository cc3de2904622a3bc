"""Fuzzy leaves: every row belongs to every leaf with a probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_choice, check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.kernel import kernel, kernel_array
from truerank.core.threads import Workers, row_blocks, run_blocks
from truerank.data.grouping import offsets_of
from truerank.matrices.steps import count_below
from truerank.trees.ensemble import Ensemble
from truerank.trees.grower import GrowthRules, TreeStructure
from truerank.trees.kept_parts import kept
from truerank.trees.leaves.base import Leaves, TreesForm
from truerank.trees.leaves.constant import constrain, newton_values
from truerank.trees.leaves.places import (
    MOST_PLACES,
    FlatPlaces,
    Norms,
    PlaceTable,
    Shares,
    knot_index,
    make_shares,
    smoothing_of,
)
from truerank.trees.rows import Sample, TrainingRows
from truerank.trees.training_columns import TrainingColumns

ROWS = 64  # rows whose shares are stored together
_TASK = 32 * ROWS  # rows in a task of a thread: their values fit the second-level cache
_LEVELS = 768  # levels of a group of trees: the shares of their questions fit the second-level cache


class StateFactors(NamedTuple):
    """Factors of all values, concatenated by feature."""

    first: np.ndarray  # int64 (u + 1,): offsets of the knots of each feature
    pairs: np.ndarray  # float64 (2 Σ(2K + 1),): factors of P(left) and P(right) by state, in the order of `knots_first`
    blocks: np.ndarray  # float64 (2, Σ(2K + 1)): first and last place of each state, for steep features
    steep: np.ndarray  # bool (u,)
    log_p: float


def knots_first(sizes: np.ndarray) -> np.ndarray:
    """Return the states of features with `sizes` knots, one feature after the other: states of knots, then of gaps.

    >>> knots_first(np.array([2, 1])).tolist()
    [1, 3, 0, 2, 4, 6, 5, 7]
    """
    first = offsets_of(2 * sizes + 1)[:-1].tolist()
    parts = [np.arange(a + i, a + 2 * k + 1, 2) for a, k in zip(first, sizes.tolist()) for i in (1, 0)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def leaves_in_order(values: np.ndarray) -> np.ndarray:
    """Return leaf values (trees, 2^d) with the answer to the first question as the first digit of the number.

    >>> leaves_in_order(np.array([[1.0, 2.0, 5.0, 7.0]])).tolist()
    [[1.0, 5.0, 2.0, 7.0]]
    """
    depth = values.shape[1].bit_length() - 1
    return np.ascontiguousarray(values.reshape(-1, *[2] * depth).transpose(0, *range(depth, 0, -1))).reshape(
        values.shape
    )


class Group(NamedTuple):
    """A group of trees, and their different questions by feature."""

    columns: np.ndarray  # int64: the features
    asked: np.ndarray  # int64 (features + 1,): offsets of the questions about each
    numbers: np.ndarray  # float64 (5 questions,): see `answer`
    questions: np.ndarray  # int64 (trees · depth,)
    values: np.ndarray  # float64 (trees · 2^depth,): as in `leaves_in_order`


class FuzzyPredictor:
    """Scores from fuzzy leaves: the leaf values of every tree, averaged over the probabilities of the leaves.

    The states of a task's values are computed feature by feature, so that a feature's steps stay in the cache. Then
    each tile of 64 rows answers every different question of the trees once, and each tree averages its leaf values.
    P(right) is a factor of the value times a factor of the border (`places`), and the factors of a feature's knots are
    stored together (`knots_first`), because most values are in a knot. An average takes 63 interpolations for each row
    and a tree of six levels: from the last level up, `a + P(right) (b - a)` halves the number of values.

    For each level (T, depth), `columns` is its used feature, `border_states` the last state left of its border, and
    `border_factors` (T, depth, 3) the border's factors in P(left) and P(right) and the training values at or below it.
    """

    def __init__(self, ensemble: Ensemble, flat: FlatPlaces, p: float, ties: str) -> None:
        self.features = flat.features
        tables = flat.tables()
        norms = Norms(p)
        shares = [make_shares(table, norms, ties) for table in tables]
        pairs = np.concatenate([np.empty((0, 2)), *(np.stack([s.up, s.down], axis=1) for s in shares)])
        self.factors = StateFactors(
            offsets_of(flat.sizes),
            pairs[knots_first(flat.sizes)].ravel(),
            np.concatenate([np.empty((2, 0)), *(np.stack([s.start, s.stop]) for s in shares)], axis=1),
            np.array([s.steep for s in shares], dtype=np.bool_),
            norms.log_p,
        )
        shape = ensemble.features.shape
        self.columns = np.searchsorted(flat.features, ensemble.features).astype(np.int64)
        self.border_states = np.empty(shape, dtype=np.int64)
        self.border_factors = np.empty((*shape, 3))
        for t, level in np.ndindex(*shape):
            k = int(self.columns[t, level])
            b, state = tables[k].place_of_border(float(ensemble.borders[t, level]))
            self.border_states[t, level] = state
            self.border_factors[t, level] = (*shares[k].border_factors(b), b)
        self.missing_right = ensemble.missing_right
        self.values = ensemble.values
        asked = np.stack([self.columns, self.border_states, self.missing_right], axis=-1).reshape(-1, 3)
        _, one, questions = np.unique(asked, axis=0, return_index=True, return_inverse=True)
        self._one, self._questions = one, questions.reshape(shape)
        self._ordered = leaves_in_order(self.values)
        index = knot_index([(table.lower, table.upper) for table in tables])
        self._index = {np.dtype(kind): index.of_type(kind) for kind in (np.float32, np.float64)}

    def predict(self, X: np.ndarray, n_jobs: int | None, scores: np.ndarray, trees: slice = slice(None)) -> np.ndarray:
        """Add the values of `trees` for the rows of X, float32 or float64, to `scores` (n,), and return the scores."""
        used = np.unique(self.columns[trees])
        columns = np.searchsorted(used, np.arange(len(self.features)))
        index = self._index[X.dtype]
        n_trees, depth = self._questions[trees].shape
        step = max(1, _LEVELS // max(1, depth))
        groups = [self._group(trees, slice(i, i + step), columns) for i in range(0, n_trees, step)]

        def work(start: int, stop: int) -> None:
            states = _find_states(kernel_array(X[start:stop]), self.features[used], used, index)
            for group in groups:
                _add_trees(states, used, self.factors, group, depth, scores[start:stop])

        run_blocks(work, row_blocks(len(X), _TASK), n_jobs)
        return scores

    def _group(self, trees: slice, group: slice, columns: np.ndarray) -> Group:
        """Return the arrays of some of the trees."""
        asked, questions = np.unique(self._questions[trees][group], return_inverse=True)
        one = self._one[asked]
        features, first_asked = np.unique(self.columns.ravel()[one], return_index=True)
        first_rights, sides = self.border_states.ravel()[one] + 1.0, self.missing_right.ravel()[one]
        numbers = np.column_stack([first_rights, self.border_factors.reshape(-1, 3)[one], sides])
        return Group(
            columns[features], np.append(first_asked, len(asked)), numbers.ravel(), questions.ravel(),
            self._ordered[trees][group].ravel(),
        )  # fmt: skip


_CACHE_BYTES = 100 << 20  # states of columns that are kept between trees


@dataclass(frozen=True)
class FuzzyLeaves(Leaves):
    """Leaves to which every row belongs with a probability: `ObliviousBoosting(leaves=FuzzyLeaves(...))`.

    The n training values of a feature are sorted, and b of them are at or below a border c. A value x > c has the place
    i = #(values < x), and a value x ≤ c has i = #(values ≤ x) - 1. With p = `p_swap`, these are equation 4 of Belous
    (2015), normalised by Z, and equation 5:

        P(x ≤ c) = Σ_{j<b} p^(i-j) / Z(i) = (p^(i-b+1) - p^(i+1)) / ((1-p) Z(i))     for x > c, likewise for x ≤ c
        Z(i) = Σ_j p^|i-j| = (1 + p - p^(i+1) - p^(n-i)) / (1-p)
        P(x ∈ l) = the product over the levels of a tree
        F(l) = Σ P(x ∈ l) r / Σ P(x ∈ l)     for the residuals r;  score(x) = Σ_l P(x ∈ l) F(l)

    The score depends only on ranks, and a small change of a feature changes the score little.

    Parameters
    ----------
    fuzziness, p_swap : float, optional
        Width of fuzzy borders, as one of both parameters: a share of the rows (default 0.1), so that `p_swap` is
        `max(0, 1 - 1 / (fuzziness * n))`; or the probability, in [0, 1), that neighbouring rows swap their places. Rows
        count by weight; they are copies if all weights are multiples of one number, else rows of the mean weight.
    ties : {"near", "average"}, default "average"
        Place of rows with equal values: the place nearest to the border (the thesis), or the average over their places,
        which distinguishes features that have mostly one value.
    search : bool, default False
        Whether to use fuzzy borders also in the level search.
    places : int in 2 … 32000, default 4096
        Maximum number of different values of a feature for exact probabilities; for other features, about this many
        quantiles are used.

    References
    ----------
    Belous 2015 (thesis), section 3.1. `truerank.trees.leaves.places` lists the normalisations, and their differences
    from the thesis.

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
            raise InvalidInputError(f"places must be at most {MOST_PLACES}, got {self.places}", argument="places")
        self.swap_probability(1)

    def swap_probability(self, n: float, places: float | None = None) -> float:
        """Return the probability that neighbouring places swap if n rows have `places` (default: n)."""
        places = n if places is None else places
        if self.p_swap is not None:
            if self.fuzziness is not None:
                raise InvalidInputError(
                    "pass fuzziness or p_swap, not both: p_swap = 1 - 1 / (fuzziness * n)", argument="fuzziness"
                )
            p = check_number(self.p_swap, "p_swap", "[0, 1)")
            return p if places == n else max(0.0, 1.0 - (1.0 - p) * n / places)
        width = 0.1 if self.fuzziness is None else check_number(self.fuzziness, "fuzziness", "[0, inf)")
        if width == 0.0:
            return 0.0
        return min(max(0.0, 1.0 - 1.0 / (width * places)), float(np.nextafter(1.0, 0.0)))

    @property
    def most_places(self) -> int:
        return self.places

    @property
    def searches_places(self) -> bool:
        return self.search

    def search_rules(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float) -> GrowthRules:
        """Return the rules of the level search, with fuzzy borders if `search` is True."""
        if not self.search:
            return rules
        return replace(rules, smoothing=smoothing_of(columns.borders, columns.places, p_swap))

    def fitter(self, rules: GrowthRules, columns: TrainingColumns, p_swap: float, workers: Workers) -> FuzzyFitter:
        return FuzzyFitter(rules.alpha, rules.monotone, columns.places, p_swap, self.ties, workers)

    def predictor(self, ensemble: Ensemble, model: Any) -> FuzzyPredictor:
        return FuzzyPredictor(ensemble, kept(model, FlatPlaces), model.p_swap_, self.ties)

    def form(self, ensemble: Ensemble, model: Any) -> Fuzzy:
        return Fuzzy(ensemble, kept(model, FlatPlaces), model.p_swap_, self.ties)


@dataclass(frozen=True)
class Fuzzy(TreesForm):
    """Oblivious trees of fuzzy leaves with their place tables."""

    places: FlatPlaces
    p_swap: float
    ties: str
    kind = "fuzzy"
    is_shared = True

    def answers(self) -> Callable[[int, np.ndarray], np.ndarray]:
        trees, norms = self.trees, Norms(self.p_swap)
        tables = dict(zip(self.places.features.tolist(), self.places.tables()))
        shares = {k: make_shares(table, norms, self.ties) for k, table in tables.items()}

        def answers(tree: int, columns: np.ndarray) -> np.ndarray:
            right = np.empty((trees.depth, columns.shape[1]))
            for level, feature in enumerate(trees.features[tree].tolist()):
                b, state = tables[feature].place_of_border(float(trees.borders[tree, level]))
                found = shares[feature].right_of(b, state, bool(trees.missing_right[tree, level]))
                right[level] = found[tables[feature].states(columns[feature])]
            return right

        return answers


class FuzzyFitter:
    """A fitter and evaluator of fuzzy leaves: F(l) = -ΣP g / (ΣP h + alpha), score Σ_l P(x ∈ l) F(l); `p` is p_swap."""

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

    def sums(self, tree: TreeStructure, rows: TrainingRows, sample: Sample) -> tuple[np.ndarray]:
        """Return ΣP g and ΣP h of each leaf (2, 2^d), which can be summed over partitions."""
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

    def add(self, tree: TreeStructure, rows: TrainingRows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's value of every row to the scores (n,)."""
        tables = self._tables(tree, rows)
        states = self._states(tree, rows)
        ordered = leaves_in_order(values[None]).ravel()

        def work(start: int, stop: int) -> None:
            _add_expected(_stack(states, start, stop), tables, ordered, scores[start:stop])

        self.workers.run(work, row_blocks(rows.matrix.n_rows))

    def _tables(self, tree: TreeStructure, rows: TrainingRows) -> np.ndarray:
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

    def _states(self, tree: TreeStructure, rows: TrainingRows) -> list[np.ndarray]:
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
def _find_states(X, features, used, index):
    """Return the states of the rows' values, uint16 (tiles · features · 64)."""
    n = X.shape[0]
    n_tiles = -(-n // 64)
    values = np.empty((n_tiles, features.size, 64), dtype=X.dtype)
    values[n_tiles - 1] = 0.0  # rows of the last tile may be missing
    for i in range(n):
        x = X[i]
        tile = values[i // 64]
        for j in range(features.size):
            tile[j, i % 64] = x[features[j]]
    states = np.empty((n_tiles, features.size, 64), dtype=np.uint16)
    flat, found = values.ravel(), states.ravel()
    for j in range(used.size):
        for t in range(n_tiles):
            at = 64 * (t * used.size + j)
            count_below(flat, at, at + 64, index, used[j], index.sizes[used[j]] + 1, found)
    return found


@kernel
def _add_trees(states, used, factors, group, depth, scores):
    """Add the expected leaf value of every tree of a group to the scores (n,), tile by tile."""
    n_tiles = -(-scores.size // 64)
    n_trees = group.values.size >> depth
    shares = np.empty((group.numbers.size // 5, 64))
    room = 1 << (depth - 3 if depth > 2 else depth)
    work, spare = np.empty((room, 64)), np.empty((room, 64))
    total = np.zeros(64)
    for t in range(n_tiles):
        rows = min(64, scores.size - 64 * t)
        for j in range(group.columns.size):
            c = group.columns[j]
            at = 64 * (t * used.size + c)
            answer(states, at, factors, used[c], group.asked[j], group.asked[j + 1], group.numbers, shares)
        for i in range(rows):
            total[i] = scores[64 * t + i]
        add_averages(shares, group.questions, group.values, depth, np.int64(0), n_trees, work, spare, total)
        for i in range(rows):
            scores[64 * t + i] = total[i]


@kernel
def answer(states, at, factors, k, first, end, questions, shares):
    """Write P(right) of the rows of a tile in the questions `first` … `end - 1`, all about feature k, to `shares`.

    `states` are read from `at` on. `questions` has five numbers for each: the first state right of the border, the
    border's factors in P(left) and P(right), the places at or below it, and P(right) of a missing value.
    """
    knots = factors.first[k + 1] - factors.first[k]
    origin, lost = 2 * factors.first[k] + k, 2 * knots + 1
    own, pairs = states[at : at + 64], factors.pairs
    state, up, down = np.empty(64), np.empty(64), np.empty(64)
    missing = 0
    for i in range(64):
        here = np.int64(own[i])
        missing += here == lost
        state[i] = here
        some = here if here < lost else 0  # of a missing value any: its factors are not used
        pair = np.uint64(2 * (origin + (some >> 1) + (0 if some & 1 else knots)))
        up[i], down[i] = pairs[pair], pairs[pair + np.uint64(1)]
    for q in range(first, end):
        border, left, right = questions[5 * q], questions[5 * q + 1], questions[5 * q + 2]
        for i in range(64):
            above, below = 1.0 - up[i] * left, down[i] * right
            shares[q, i] = above if state[i] >= border else below
    if factors.steep[k]:
        _answer_steeply(states, at, factors, k, first, end, questions, shares)
    for i in range(64 if missing > 0 else 0):
        if state[i] == lost:
            for q in range(first, end):
                shares[q, i] = questions[5 * q + 4]


@kernel
def _answer_steeply(states, at, factors, k, first, end, questions, shares):
    """Write P(right) like `answer`, for observed values of a steep feature, whose factors lack the powers of p."""
    knots = factors.first[k + 1] - factors.first[k]
    origin, lost = 2 * factors.first[k] + k, 2 * knots + 1
    for i in range(64):
        own = np.int64(states[at + i])
        if own == lost:
            continue
        pair = 2 * (origin + (own >> 1) + (0 if own & 1 else knots))
        up, down = factors.pairs[pair], factors.pairs[pair + 1]
        start, stop = factors.blocks[0, origin + own], factors.blocks[1, origin + own]
        for q in range(first, end):
            b = questions[5 * q + 3]
            if own >= questions[5 * q]:
                shares[q, i] = 1.0 - up * np.exp(factors.log_p * (start - b + 1.0)) * questions[5 * q + 1]
            else:
                shares[q, i] = down * np.exp(factors.log_p * (b - stop)) * questions[5 * q + 2]


@kernel
def add_averages(shares, questions, values, depth, start, stop, work, spare, total):
    """Add the averages of trees start … stop - 1 of 64 rows to `total` (64,).

    `shares` (questions, 64) are P(right) of the rows, `questions` (trees · depth) those of each tree, `values`
    (trees · 2^depth) as in `leaves_in_order`. `work` and `spare` (2^depth, 64; from depth 3 an eighth) are scratch.
    """
    for tree in range(start, stop):
        first, leaf, level, size = depth * tree, tree << depth, depth, 1 << depth
        if depth < 3:
            for q in range(size):
                for i in range(64):
                    work[q, i] = values[leaf + q]
        else:
            level, size = depth - 3, size >> 3
            for q in range(size):
                _average_leaves(values, leaf + 8 * q, shares, questions, first + level, work, q)
        while level >= 3:
            level, size = level - 3, size >> 3
            for q in range(size):
                _average_three(work, 8 * q, shares, questions, first + level, spare, q)
            work, spare = spare, work
        while level > 0:
            level, size = level - 1, size >> 1
            r = questions[first + level]
            for q in range(size):
                for i in range(64):
                    left, right = work[2 * q, i], work[2 * q + 1, i]
                    spare[q, i] = left + shares[r, i] * (right - left)
            work, spare = spare, work
        for i in range(64):
            total[i] += work[0, i]


@kernel
def _average_leaves(values, at, shares, questions, question, result, out):
    """Average eight leaf values from `at` on over three questions into `result[out]`, for each of 64 rows."""
    r, s, t = questions[question], questions[question + 1], questions[question + 2]
    a, b, c, d = values[at], values[at + 2], values[at + 4], values[at + 6]
    to_a, to_b, to_c, to_d = values[at + 1] - a, values[at + 3] - b, values[at + 5] - c, values[at + 7] - d
    for i in range(64):
        last, middle = shares[t, i], shares[s, i]
        left, right = a + last * to_a, c + last * to_c
        left += middle * (b + last * to_b - left)
        right += middle * (d + last * to_d - right)
        result[out, i] = left + shares[r, i] * (right - left)


@kernel
def _average_three(values, at, shares, questions, question, result, out):
    """Average like `_average_leaves`, from eight values that differ between rows."""
    r, s, t = questions[question], questions[question + 1], questions[question + 2]
    for i in range(64):
        last, middle = shares[t, i], shares[s, i]
        left, b, right, d = values[at, i], values[at + 2, i], values[at + 4, i], values[at + 6, i]
        left += last * (values[at + 1, i] - left)
        b += last * (values[at + 3, i] - b)
        right += last * (values[at + 5, i] - right)
        d += last * (values[at + 7, i] - d)
        left += middle * (b - left)
        right += middle * (d - right)
        result[out, i] = left + shares[r, i] * (right - left)


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
