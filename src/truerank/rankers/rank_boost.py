"""RankBoost (Freund, Iyer, Schapire and Singer 2003): boosted threshold stumps, without ever listing a pair."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.core.kernel import kernel
from truerank.core.rounds import tell
from truerank.core.threads import query_blocks, run_blocks
from truerank.data.grouping import mixed_queries
from truerank.data.ranking_data import RankingData
from truerank.measures.kernel import QueryMeasure
from truerank.rankers.base import Ranker
from truerank.rankers.round_results import History
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.stumps import (
    TOLERANCE,
    GridStumps,
    SortedStumps,
    StepFunctions,
    Stump,
    apply_stump,
)

_WIDEST = 600.0  # range of a query's scores up to which exp(f(a) - f(b)) is computed as a product
_CAP = 1e-12  # |r| is kept this far below 1, so that a perfect stump has a finite weight (14.2)


class RankBoost(Ranker):
    """RankBoost: a weighted sum of threshold stumps that orders document pairs, by exponential loss.

    Every pair (a, b) of documents of one query, a of the lower grade, has a weight D(a, b), uniform at first (or in
    proportion to the weight of its query). A round takes the stump `h(x) = 1[x_k > theta]` with the largest |r|,

        r = sum_(a,b) D(a, b) (h(b) - h(a)),    alpha = 1/2 ln((1 + r) / (1 - r)),

    and sets `D(a, b) <- D(a, b) exp(alpha (h(a) - h(b))) / Z`. The score is `f(x) = sum_t alpha_t h_t(x)`, which
    minimises the mean over pairs of `exp(f(a) - f(b))`, an upper bound of the share of wrongly ordered pairs.

    Since D(a, b) is proportional to exp(f(a) - f(b)), it factors over documents: r is a sum of one signed potential
    for each document, and these come from one sum of exponentials for each grade of a query. So a round costs
    O(rows x columns), however many pairs there are, and the model is that of listing them all.

    Parameters
    ----------
    n_estimators : int, default 300
        Rounds.
    thresholds : int or "all", default 100
        Evenly spaced thresholds for each column between its smallest and largest value (RankLib's default is ten),
        or "all" distinct values. "all" costs about twice as much and fits more closely.
    measure : str, Measure or callable, default "nDCG@10"
        What `score` reports, and what `eval_set` is judged by unless `validation_measure` says otherwise.
    validation_measure : str, Measure or callable, optional
        What `eval_set` is judged by, ties averaged so that no order of the rows decides; None means `measure`.
    convention : str, default "ranklib"
        What the measure's name leaves open.
    patience : int or None, default None
        With `eval_set`: stop after this many rounds without a better validation measure. None runs all rounds. Either
        way the model keeps the rounds up to the best one.
    n_jobs : int or None, default None
        Threads, over fixed blocks of queries (and of columns for "all"); any number gives the same bits.

    Attributes
    ----------
    feature_, threshold_, weight_, missing_ : arrays (n_iter_,)
        The stumps: column, theta, alpha, and h where the value is missing (nan), 0 or 1.
    edge_ : float64 array (n_iter_,)
        r of each round.
    exponential_loss_ : float64 array (rounds run,)
        Mean over pairs of exp(f(a) - f(b)) before each round, 1 at first.
    validation_scores_ : float64 array (rounds run,)
        With `eval_set`, the measure after each round.
    history_ : dict of arrays
        By round that was run: `loss` (`exponential_loss_`), `edge`, `alpha` (the stump's weight), `validation` (NaN
        without `eval_set`).
    n_iter_ : int
        Rounds kept.
    status_ : str
        Why training stopped, in words.

    Raises
    ------
    InvalidInputError
        On parameters out of range, infinite values.

    Notes
    -----
    Missing values (nan) are allowed: each stump sends them to whichever of 0 and 1 gives the larger |r|, and a column
    with missing values also has the threshold -inf, which tells present from missing. In a column without missing
    values in training, nan later counts as "not above the threshold".

    Ties: stumps within 1e-12 of the largest |r| go to the lowest column, then the lowest threshold, then missing 0.

    Degenerate cases: queries with one grade have no pair and take no part; without any pair the model has no stumps
    and scores are 0. |r| = 1 is capped at 1 - 1e-12 and ends training. It also ends when no stump has |r| > 1e-12.

    Difference from the paper: theta comes from a grid unless `thresholds="all"`; scale of each feature is irrelevant,
    but a grid is not indifferent to strongly skewed columns, for which "all" is the better choice.

    References
    ----------
    Y. Freund, R. Iyer, R. E. Schapire, Y. Singer: An efficient boosting algorithm for combining preferences. Journal
    of Machine Learning Research 4 (2003), 933-969; figures 1 and 2, section 3.2 (third method: r and alpha).

    Examples
    --------
    >>> from truerank import RankBoost
    >>> X = [[0.1, 3.0], [0.4, 1.0], [0.9, 2.0], [0.2, 5.0], [0.8, 4.0]]
    >>> ranker = RankBoost(n_estimators=5, thresholds="all").fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> ranker.feature_.tolist(), ranker.threshold_.tolist()
    ([0, 0, 0, 0, 0], [0.2, 0.4, 0.2, 0.4, 0.2])
    >>> ranker.rank(X, qid=[1, 1, 1, 2, 2]).tolist()
    [3, 2, 1, 2, 1]
    """

    model_attributes: ClassVar[tuple[str, ...]] = (
        *Ranker.model_attributes,
        "feature_",
        "threshold_",
        "weight_",
        "missing_",
        "edge_",
        "n_iter_",
    )
    allow_nan = True
    missing_values = "to the side of each stump that fits better"
    uses_eval_set = True

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        thresholds: int | str = 100,
        measure: Any = "nDCG@10",
        validation_measure: Any = None,
        convention: str = "ranklib",
        patience: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.thresholds = thresholds
        self.measure = measure
        self.validation_measure = validation_measure
        self.convention = convention
        self.patience = patience
        self.n_jobs = n_jobs

    def _fit(self, data: RankingData, valid: RankingData | None) -> None:
        rounds = check_positive_int(self.n_estimators, "n_estimators")
        if self.thresholds != "all":
            if isinstance(self.thresholds, str):
                raise InvalidInputError(f'thresholds must be a whole number >= 1 or "all", got {self.thresholds!r}')
            check_positive_int(self.thresholds, "thresholds")
        chooser = self.measure if self.validation_measure is None else self.validation_measure
        curve = None if valid is None else EarlyStopping(chooser, self.convention, self.patience)
        watched = None if curve is None else stump_scores(valid, curve)
        pairs = make_pair_weights(data, self.n_jobs)
        stumps: list[Stump] = []
        weights: list[float] = []
        losses: list[float] = []
        status = Status.ALL_ROUNDS
        if not pairs.n_rows:
            status, rounds = Status.NOTHING_TO_LEARN, 0
        else:
            search = pairs.search(self.thresholds)
        for t in range(1, rounds + 1):
            stump = pairs.best_stump(search)
            losses.append(pairs.exponential_loss)
            if stump is None or abs(stump.edge) <= TOLERANCE:
                status = Status.NO_WEAK_RANKER
                break
            edge = min(max(stump.edge, -1 + _CAP), 1 - _CAP)
            weight = 0.5 * math.log((1 + edge) / (1 - edge))
            stumps.append(Stump(stump.feature, stump.threshold, stump.missing, edge))
            weights.append(weight)
            stop = False
            if curve is not None and watched is not None:
                stop = curve.add_value(watched.value_with(stump, weight))
            if abs(stump.edge) >= 1 - _CAP:
                status = Status.PERFECT
                break
            if stop:
                status = Status.VALIDATION
                break
            if tell(t, rounds, validation=None if curve is None else curve.values[-1], loss=losses[-1]):
                status = Status.CALLBACK
                break
            pairs.apply(search, stump, weight)
        kept = len(stumps) if curve is None else curve.best_round
        self.feature_ = np.array([s.feature for s in stumps[:kept]], dtype=np.int64)
        self.threshold_ = np.array([s.threshold for s in stumps[:kept]], dtype=np.float64)
        self.missing_ = np.array([s.missing for s in stumps[:kept]], dtype=np.int64)
        self.edge_ = np.array([s.edge for s in stumps[:kept]], dtype=np.float64)
        self.weight_ = np.array(weights[:kept], dtype=np.float64)
        self.exponential_loss_ = np.array(losses)
        self.history_ = History(
            {
                "loss": np.array(losses),
                "edge": np.array([s.edge for s in stumps]),
                "alpha": np.array(weights),
                "validation": np.full(len(weights), np.nan) if curve is None else np.array(curve.values),
            }
        )
        self.n_iter_ = kept
        self.__dict__.pop("validation_scores_", None)
        if curve is not None:
            self.validation_scores_ = np.array(curve.values)
        self._finish(status)

    def _feature_shares(self) -> np.ndarray:
        return np.bincount(self.feature_, np.abs(self.weight_), minlength=self.n_features_in_)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        return self.step_functions().predict(X, self.n_jobs)

    def step_functions(self) -> StepFunctions:
        """The fitted ranker as a sum of one step function for each feature."""
        return StepFunctions(self.feature_, self.threshold_, self.missing_, self.weight_)

    def check_model(self) -> None:
        """Called after loading: the stumps' arrays fit together and name existing columns."""
        super().check_model()
        arrays = [getattr(self, name, None) for name in ("feature_", "threshold_", "missing_", "weight_", "edge_")]
        kinds = [np.int64, np.float64, np.int64, np.float64, np.float64]
        for array, kind in zip(arrays, kinds):
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.shape != arrays[0].shape:  # type: ignore[union-attr]
                raise ModelFileError("RankBoost: feature_, threshold_, missing_, weight_ and edge_ do not fit together")
        if self.feature_.ndim != 1 or ((self.feature_ < 0) | (self.feature_ >= self.n_features_in_)).any():
            raise ModelFileError(f"RankBoost: feature_ must name columns 0 to {self.n_features_in_ - 1}")
        if np.isnan(self.threshold_).any() or not np.isfinite(self.weight_).all():
            raise ModelFileError("RankBoost: thresholds must be numbers and weights finite")


class StumpScores:
    """Scores of validation queries, and their measure after each stump."""

    def __init__(self, valid: RankingData, curve: EarlyStopping) -> None:
        self.X, self._weight = valid.X, valid.query_weight
        self._measure = QueryMeasure(valid, curve.measure)
        self._rows, self._scores = np.arange(valid.n_rows), np.zeros(valid.n_rows)

    def value_with(self, stump: Stump, weight: float) -> float:
        """Add `weight * h` to the scores; the measure's mean."""
        return self._measure.measure.aggregate(self.by_query_with(stump, weight), self._weight)

    def by_query_with(self, stump: Stump, weight: float) -> np.ndarray:
        """The same, by query (m,)."""
        apply_stump(self.X, self._rows, stump, weight, self._scores, 0, len(self._rows))
        return self._measure.of_scores(self._scores)


def stump_scores(valid: Any, curve: EarlyStopping) -> Any:
    """`StumpScores` of these data, or what data that live on a cluster give in its place."""
    return valid.stump_scores(curve) if getattr(valid, "is_cluster_data", False) else StumpScores(valid, curve)


def make_pair_weights(data: Any, n_jobs: int | None) -> Any:
    """`PairWeights` of these data, or what data that live on a cluster give in their place."""
    return data.pair_weights() if getattr(data, "is_cluster_data", False) else PairWeights(data, n_jobs)


class PairWeights:
    """The weights D of all pairs as potentials of documents, over the queries that have pairs.

    Rows are put in order of (query, grade); each run of one query and grade is a segment. With `low_g` and `high_g`
    the smallest and largest score of segment g, and `p_g = ln sum exp f(a)`, `q_g = ln sum exp(-f(b))` over it,

        pi(x) = exp(-f(x)) sum_(g' < g) exp(p_g') - exp(f(x)) sum_(g' > g) exp(q_g'),    divided by Z,

    is computed from exp(low_g - f(x)) and exp(f(x) - high_g), neither above 1, and two coefficients for each segment
    whose exponents are at most the largest pair's: nothing overflows at any score. Where no query's scores are wider
    than 600, which is nearly always, plain sums of exp(f - c) and its inverse do, c being the query's middle.

    A block of queries yields (M, Z_b, h_b): its largest exponent, its sum of pair weights and the histogram of its
    potentials, both divided by e^M. These add up over blocks, whatever machine holds them, after multiplication by
    e^(M - max M); the division by Z comes last.

    Attributes
    ----------
    rows : int64 array (n_rows,)
        Rows of the data that stand in some pair, in the order of the potentials.
    exponential_loss : float
        Mean of exp(f(a) - f(b)) at the last call of `best_stump`.
    """

    def __init__(self, data: RankingData, n_jobs: int | None) -> None:
        self.n_jobs, self._X = n_jobs, data.X
        y, offsets = data.y, data.offsets
        assert y is not None  # Ranker.fit has checked
        weight = data.weight_by_query
        mixed = mixed_queries(y, offsets) & (weight > 0)
        query = data.query_index
        chosen = np.flatnonzero(mixed[query])
        query, grade = query[chosen], y[chosen]
        order = np.lexsort((grade, query))
        self.rows = chosen[order]
        self.n_rows = len(self.rows)
        query, grade = query[order], grade[order]
        new_query = np.ones(self.n_rows, dtype=bool)
        new_query[1:] = query[1:] != query[:-1]
        new_segment = new_query.copy()
        new_segment[1:] |= grade[1:] != grade[:-1]
        segment_starts = np.flatnonzero(new_segment)
        self._segments = np.append(segment_starts, self.n_rows)
        self._queries = np.append(np.flatnonzero(new_query[segment_starts]), len(segment_starts))
        self._rows_of_query = self._segments[self._queries]
        self._query_weight = np.ascontiguousarray(weight[mixed])
        self._blocks = query_blocks(self._rows_of_query)
        self._scores = np.zeros(self.n_rows)
        self._up, self._down, self._potentials = (np.empty(self.n_rows) for _ in range(3))
        self._log_total = math.nan
        self.exponential_loss = 1.0

    def search(self, thresholds: int | str) -> GridStumps | SortedStumps:
        """The search for stumps over the rows that stand in some pair."""
        if isinstance(thresholds, str):
            return SortedStumps(self._X, self.rows, self.n_jobs)
        return GridStumps(self._X, self.rows, int(thresholds), self.n_jobs)

    def drop_values(self) -> None:
        """Let go of X, where the search has its own codes."""
        self._X = self._X[:0]

    def best_stump(self, search: GridStumps | SortedStumps) -> Stump | None:
        """Bring the potentials up to date and find the stump with the largest |r|."""
        grid = search if isinstance(search, GridStumps) else None
        parts = run_blocks(lambda a, b: self._statistics(a, b, grid), self._blocks, self.n_jobs)
        exponents, totals = np.array([part[0] for part in parts]), np.array([part[1] for part in parts])
        largest = float(exponents.max())
        scales = np.exp(exponents - largest)
        total = float(np.sum(scales * totals))
        log_total = largest + math.log(total)
        if math.isnan(self._log_total):
            self._log_total = log_total
        self.exponential_loss = math.exp(min(log_total - self._log_total, 700.0))
        scales /= total
        if grid is not None:
            histogram = parts[0][2] * scales[0]
            for part, scale in zip(parts[1:], scales[1:]):
                histogram += part[2] * scale
            return grid.best(histogram)
        for (a, b), scale in zip(self._blocks, scales):
            first, last = self._row_range(a, b)
            self._potentials[first:last] *= scale
        assert isinstance(search, SortedStumps)
        return search.best(self._potentials)

    def sums_by_bin(self, grid: GridStumps) -> tuple[float, float, np.ndarray]:
        """Of all rows here (M, Z, sums of the potentials by bin of the grid), which `add_scaled` adds up."""
        nothing = (-math.inf, 0.0, np.zeros(int(grid.bin_start[-1])))
        total: tuple[float, float, np.ndarray] = nothing
        for a, b in self._blocks:
            exponent, weight, histogram = self._statistics(a, b, grid)
            assert histogram is not None
            total = add_scaled(total, (exponent, weight, grid.sums_by_bin(histogram)))
        return total

    def apply(self, search: GridStumps | SortedStumps, stump: Stump, weight: float) -> None:
        """Add `weight * h` to the scores."""
        search.apply(stump, weight, self._scores)

    def _row_range(self, first_query: int, last_query: int) -> tuple[int, int]:
        return int(self._rows_of_query[first_query]), int(self._rows_of_query[last_query])

    def _statistics(
        self, first_query: int, last_query: int, grid: GridStumps | None
    ) -> tuple[float, float, np.ndarray | None]:
        first, last = self._row_range(first_query, last_query)
        arrays = (self._segments, self._queries, first_query, last_query)
        up, down = self._up[first:last], self._down[first:last]
        widest = _shift_by_query(self._scores, *arrays, self._up)
        if widest <= _WIDEST:
            np.exp(up, out=up)
            np.divide(1.0, up, out=down)
            exponent = 0.0
            total = _potentials_of_narrow(self._up, self._down, self._query_weight, *arrays, self._potentials)
        else:
            ranges = _shift_by_segment(self._scores, *arrays, self._up, self._down)
            np.exp(up, out=up)
            np.exp(down, out=down)
            exponent, total = _potentials(
                self._up, self._down, ranges, np.log(self._query_weight), *arrays, self._potentials
            )
        return exponent, total, None if grid is None else grid.histogram(self._potentials, first, last)


def add_scaled(
    a: tuple[float, float, np.ndarray], b: tuple[float, float, np.ndarray]
) -> tuple[float, float, np.ndarray]:
    """Sum of (M, Z, h) of two sets of queries, each divided by its own e^M."""
    largest = max(a[0], b[0])
    if largest == -math.inf:
        return a
    first, second = math.exp(a[0] - largest), math.exp(b[0] - largest)
    return largest, first * a[1] + second * b[1], first * a[2] + second * b[2]


@kernel
def _shift_by_query(scores, segments, queries, first_query, last_query, up):
    """`up = f - c` with c the middle of the query's scores; returns the widest range of a query's scores."""
    widest = 0.0
    for query in range(first_query, last_query):
        start = segments[queries[query]]
        stop = segments[queries[query + 1]]
        low = np.inf
        high = -np.inf
        for i in range(start, stop):
            low = min(low, scores[i])
            high = max(high, scores[i])
        middle = 0.5 * (low + high)
        for i in range(start, stop):
            up[i] = scores[i] - middle
        widest = max(widest, high - low)
    return widest


@kernel
def _potentials_of_narrow(up, down, weight, segments, queries, first_query, last_query, potentials):
    """Potentials of a block, times Z; returns the block's Z. `up = exp(f - c)` and `down` is its inverse.

    exp(f(a) - f(b)) is up(a) down(b), whatever c is, and fits a float where no query's scores are too wide.
    """
    total = 0.0
    for query in range(first_query, last_query):
        w = weight[query]
        first = queries[query]
        last = queries[query + 1]
        below = 0.0
        for g in range(first, last):
            sum_up = 0.0
            sum_down = 0.0
            for i in range(segments[g], segments[g + 1]):
                potentials[i] = below * down[i]
                sum_up += up[i]
                sum_down += down[i]
            total += below * sum_down
            below += w * sum_up
        above = 0.0
        for g in range(last - 1, first - 1, -1):
            sum_down = 0.0
            for i in range(segments[g], segments[g + 1]):
                potentials[i] -= above * up[i]
                sum_down += down[i]
            above += w * sum_down
    return total


@kernel
def _shift_by_segment(scores, segments, queries, first_query, last_query, up, down):
    """`up = f - high_g` and `down = low_g - f`; returns (low_g, high_g) of the block's segments."""
    first = queries[first_query]
    ranges = np.empty((queries[last_query] - first, 2))
    for g in range(first, queries[last_query]):
        low = np.inf
        high = -np.inf
        for i in range(segments[g], segments[g + 1]):
            low = min(low, scores[i])
            high = max(high, scores[i])
        for i in range(segments[g], segments[g + 1]):
            up[i] = scores[i] - high
            down[i] = low - scores[i]
        ranges[g - first, 0] = low
        ranges[g - first, 1] = high
    return ranges


@kernel
def _log_add(a, b):
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    return max(a, b) + np.log1p(np.exp(-abs(a - b)))


@kernel
def _potentials(up, down, ranges, log_weight, segments, queries, first_query, last_query, potentials):
    """Potentials of a block, times Z / e^M; returns M and the block's Z / e^M."""
    first = queries[first_query]
    n = len(ranges)
    p = np.empty(n)  # becomes ln sum_(g' < g) exp(p_g'), plus the query's log weight
    q = np.empty(n)  # becomes ln sum_(g' > g) exp(q_g'), plus the query's log weight
    exponent = -np.inf
    own = np.empty(n)  # q_g of the segment itself
    for query in range(first_query, last_query):
        lower = log_weight[query]
        running = -np.inf
        for g in range(queries[query] - first, queries[query + 1] - first):
            sum_up = 0.0
            sum_down = 0.0
            for i in range(segments[g + first], segments[g + first + 1]):
                sum_up += up[i]
                sum_down += down[i]
            own[g] = np.log(sum_down) - ranges[g, 0]
            p[g] = running + lower
            running = _log_add(running, np.log(sum_up) + ranges[g, 1])
            exponent = max(exponent, p[g] + own[g])
        running = -np.inf
        for g in range(queries[query + 1] - first - 1, queries[query] - first - 1, -1):
            q[g] = running + lower
            running = _log_add(running, own[g])
    total = 0.0
    for g in range(n):
        total += np.exp(p[g] + own[g] - exponent)
        below = np.exp(p[g] - ranges[g, 0] - exponent)
        above = np.exp(q[g] + ranges[g, 1] - exponent)
        for i in range(segments[g + first], segments[g + first + 1]):
            potentials[i] = down[i] * below - up[i] * above
    return exponent, total
