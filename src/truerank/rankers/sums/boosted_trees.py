"""Boosted oblivious trees over partitions: a tree is made of sums of integer histograms, level by level.

A partition keeps codes, scores, and while a tree grows, gradients and the leaf of each row. `shared_growth` grows a
tree on all members together. The journal keeps the trees alone, so a lost partition is rebuilt from its source and the
model so far.

Histograms of constant leaves are integers and all scales are exact sums, so the trees have the bits of one machine for
any partitioning. Fuzzy and polynomial leaves add floating-point numbers along a fixed tree over the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import stream
from truerank.core.threads import Workers
from truerank.core.types import Scorer
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside
from truerank.losses.boosting import SquaredError, make_objective
from truerank.losses.protocols import ByQuery, FunctionObjective, checked
from truerank.matrices.binning import code_rows
from truerank.matrices.content import content_hashes
from truerank.matrices.exact_sums import exact_parts, exact_total
from truerank.matrices.row_copies import CopyUnit, RowCopies
from truerank.rankers.boosting_fit import CATEGORIES_STAY, BoostingFit
from truerank.rankers.fitted_trees import begun_progress, check_same_columns, keep
from truerank.rankers.leaf_choice import queries_for_trials
from truerank.rankers.sums.column_borders import (
    LIMIT,
    ColumnSummary,
    column_borders,
    copy_unit,
    merge_summaries,
    row_copies,
    summaries_of,
)
from truerank.rankers.sums.shared_growth import PartitionGrower, SumSearch
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.boosting import Plan, Progress, boost, change_parts, check_limits
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.grower import TreeStructure
from truerank.trees.histogram import GradientSizes, PackingScales, SampledRows, drawn_rows
from truerank.trees.leaves.base import Leaves
from truerank.trees.linear_start import LinearStart, Start, linear_start_sums, solve_linear_start
from truerank.trees.rows import Rows, Sample, draw_rows
from truerank.trees.training_columns import Scaling, TrainingColumns, look_at

_OBJECTIVES = ("mse", "lambdarank", "softmax", "xe-ndcg", "pairwise-logistic", "yetirank")
_COLUMNS = 8  # columns all of whose values are summarised in one round


@dataclass(frozen=True)
class Setup:
    """The settings of a fit, which every partition receives once."""

    objective: Any
    plan: Plan
    leaves: Any
    columns: TrainingColumns
    p_swap: float
    linear: LinearStart | None
    categories: CategoryTables | None
    n_rows: int
    first_rows: np.ndarray
    copy_unit: CopyUnit | None  # None: every row counts once
    # Places by content: offsets (m + 1,), and of each partition where its queries start.
    query_starts: np.ndarray | None
    query_places: list[np.ndarray] | None

    def fitter(self, workers: Workers) -> Any:
        return self.leaves.fitter(self.plan.rules, self.columns, self.p_swap, workers)


def boosted(data: Any, ranker: Scorer, valid: Any, continued: bool) -> Status:
    """Fit an `ObliviousBoosting` to rows in memory, or to the parts of a `RowSource`."""
    if isinstance(data, RowSource):
        return _boosted_over_parts(data, ranker, valid)
    return BoostingFit(ranker, data, valid, continued).run()


def _boosted_over_parts(data: RowSource, ranker: Any, valid: RowSource | None) -> Status:
    parts = ranker._parts()
    progress = begun_progress(ranker, data.n_features)
    _check_fits_partitions(ranker, data)
    stopping = ranker._early_stopping(valid is not None)
    ranker._choose_leaves(partial(_queries_for_trials, data), bool(progress.trees))
    leaves = ranker.kind_of_leaves
    scaled = leaves.needs_scaling or ranker.start == "linear"
    start_alpha = check_number(ranker.start_alpha, "start_alpha", minimum=0.0)
    plan = ranker._plan()
    objective = _objective(ranker)
    unit = copy_unit(data)
    copies = None
    if unit is not None:
        total = data.statistics(_count_copies, unit)
        copies = RowCopies.with_unit(unit, np.empty(0, dtype=np.int64), int(total), data.n_rows)
    p_swap = 0.0
    if leaves.needs_places:
        p_swap = leaves.swap_probability(*((data.n_rows,) if copies is None else (copies.rows, copies.places)))
    categories = _encode_categories(ranker, data, bool(progress.trees))
    places_a_copy = 1.0 if copies is None else copies.places_a_copy
    columns = _look_at_columns(ranker, data, parts, leaves, scaled, unit, places_a_copy)
    if progress.trees:
        check_same_columns(ranker, leaves, columns, p_swap)
    plan = replace(plan, rules=leaves.search_rules(plan.rules, columns, p_swap))
    linear = ranker._start().linear if progress.trees else None
    if ranker.start == "linear" and linear is None:
        assert columns.scaling is not None
        products, moment, total = data.statistics(_linear_sums, columns.scaling)
        linear = solve_linear_start(products, moment, total, columns.scaling, start_alpha, plan.rules.monotone)
    by_place = plan.replace or plan.subsample < 1.0 or getattr(objective, "by_place", False)
    setup = Setup(
        objective, plan, leaves, columns, p_swap, linear, categories, data.n_rows, data.first_rows, unit,
        *(_places(data) if by_place else (None, None)),
    )  # fmt: skip
    missing, grades, weights = data.statistics(_open, setup, keep=True)
    constant = exact_total(grades) / exact_total(weights) if isinstance(objective, SquaredError) else 0.0
    if progress.trees:
        constant = ranker._start().constant
    data.statistics(_start, constant, missing > 0, keep=True)
    watched = None
    if valid is None or stopping is None:
        progress.valid = []
    else:
        valid.statistics(_open_valid, setup, constant, missing > 0, keep=True)
        watched = WatchedInPartitions(valid, stopping)
        if progress.trees:
            watched.go_on(ranker, progress)
    with Workers(ranker.n_jobs) as workers:
        rows = RowsInPartitions(data, setup, missing > 0, workers, copies)
        if progress.trees:
            rows.go_on(ranker, progress)
        status = boost(rows, plan, watched, progress, objective.quadratic)
    ranker._keep(progress, Start(constant, linear), leaves, columns, p_swap)
    if categories is not None:
        keep(ranker, categories)
    return status


def _check_fits_partitions(ranker: Any, data: RowSource) -> None:
    check_choice(ranker.start, "start", ("constant", "linear"))
    if not callable(ranker.objective) and ranker.objective not in _OBJECTIVES:
        raise InvalidInputError(
            f"on a cluster objective must be one of {', '.join(_OBJECTIVES)} or a function, got {ranker.objective!r}; "
            "fit to `data.gather()` if the rows fit here",
            argument="objective",
        )
    check_limits(data.description.largest_grade, data.description.largest_weight)


def _objective(ranker: Any) -> SquaredError | ByQuery | FunctionObjective:
    objective = make_objective(ranker.objective, ranker.objective_params, ranker._measure(), 1)
    if not isinstance(objective, SquaredError | ByQuery | FunctionObjective):
        raise InvalidInputError("on a cluster objective must be one by name or a function")
    return objective


def _look_at_columns(
    ranker: Any,
    data: RowSource,
    parts: int,
    leaves: Leaves,
    scaled: bool,
    unit: CopyUnit | None,
    places_a_copy: float,
) -> TrainingColumns:
    """Return the borders of all columns and, if the leaves need them, places and scaling, from summaries of columns."""
    if not scaled and not leaves.needs_places:
        return TrainingColumns.of([(own, None, None) for own in column_borders(data, parts, unit)], bool(ranker.clip))

    def look(summary: ColumnSummary) -> tuple[np.ndarray, Any, Any]:
        if unit is None:
            return look_at(summary.sorted_values(), parts, leaves, scaled)
        return look_at(summary.values, parts, leaves, scaled, np.cumsum(summary.counts, dtype=np.int64), places_a_copy)

    looked = []
    with Workers(ranker.n_jobs) as workers:
        for first in range(0, data.n_features, _COLUMNS):
            columns = range(first, min(first + _COLUMNS, data.n_features))
            summaries = data.statistics(summaries_of, columns, data.feature_names, LIMIT, unit, merge=merge_summaries)
            looked += workers.run(look, [(one,) for one in summaries])
    return TrainingColumns.of(looked, bool(ranker.clip))


def _encode_categories(ranker: Any, data: RowSource, continued: bool) -> CategoryTables | None:
    """Bring the tables of the categorical columns to the client, and give the partitions their statistics by row."""
    columns = ranker._category_columns(data.n_features)
    if columns is None:
        return None
    if continued:
        raise InvalidInputError(CATEGORIES_STAY, argument="categorical")
    light = data.without_features()
    queries = _queries_by_content(data)[0]
    order = queries[stream(ranker.seed_, "categories", 0).permutation(len(queries))]
    values, grades = np.concatenate(data.statistics(_category_values, columns, merge=beside)), np.asarray(light.y)
    tables, encoded = fit_categories(values, grades, light.offsets, light.row_weight, np.arange(len(columns)), order)
    data.statistics(_take_statistics, columns, np.split(encoded, data.first_rows[1:-1]), keep=True)
    return replace(tables, features=columns)


def _queries_by_content(data: RowSource) -> tuple[np.ndarray, np.ndarray]:
    """Return all queries in the order by content, and their sizes."""
    own, with_grades, sizes = (np.concatenate(parts) for parts in zip(*data.statistics(_hashes, merge=beside)))
    return np.lexsort((data.weight_by_query, with_grades, own)), sizes


def _queries_for_trials(data: RowSource) -> RankingData:
    """Return the queries on which kinds of leaves are compared: the same as on one machine."""
    return data.sample(queries_for_trials(*_queries_by_content(data), data.weight_by_query))


def _places(data: RowSource) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the starts of all places in the order by content (m + 1,), and of the queries of each partition."""
    order, sizes = _queries_by_content(data)
    offsets = offsets_of(sizes[order])
    return offsets, np.split(at_places(offsets[:-1], order), np.cumsum(data.queries_by_part)[:-1])


class RowsInPartitions:
    """`BoostedRows` with sums over partitions instead of passes over rows, with its methods."""

    def __init__(
        self, crew: RowSource, setup: Setup, has_missing: np.ndarray, workers: Workers, copies: RowCopies | None
    ) -> None:
        self._rows, self._setup, self.borders, self._copies = crew, setup, setup.columns.borders, copies
        n_bins = setup.columns.n_bins
        self._grower = PartitionGrower(crew, n_bins, has_missing, setup.plan.rules)
        self._leaves = setup.fitter(workers)
        self._trees_end = crew.mark()
        self._at_start = self._derived = crew.statistics(_derive, 0, keep=True)

    def go_on(self, ranker: Scorer, progress: Progress) -> None:
        crew = self._rows
        crew.rewind(self._trees_end)
        crew.statistics(_go_on, ranker, keep=True)
        self._trees_end = crew.mark()
        self._derived = crew.statistics(_derive, len(progress.trees), keep=True)

    def derive(self, t: int) -> None:
        """Do nothing: the round that added the last tree has done it."""

    def sizes(self) -> GradientSizes:
        return GradientSizes(0, self._at_start["all_gradients"], self._at_start["all_hessians"], True)

    def change(self) -> float:
        return exact_total(self._derived["change"])

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        derived, leaves = self._derived, self._leaves
        sizes = GradientSizes(derived["n"], derived["gradients"], derived["hessians"], derived["broken"] == 0)
        scales = PackingScales.of(sizes)
        unit = 1.0
        if leaves.needs_sample and not self._setup.objective.quadratic:
            unit = exact_total(derived["all_hessians"]) / exact_total(derived["weight"])
        counted = sizes.n_rows if self._copies is None else self._copies.rows_of(int(derived["copies"]))

        def one_tree() -> tuple[TreeStructure, np.ndarray]:
            tree = self._grower.grow(scales, counted, allowed)
            if not leaves.needs_sample:
                return tree, leaves.fit(tree, None)
            sums = self._rows.statistics(_leaf_sums, tree)
            return tree, leaves.values(tree, *sums, unit)

        return self._rows.remembered("tree", one_tree)

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        """Add tree t to the scores, and in the same round compute the derivatives for the next tree."""
        crew = self._rows
        self._derived = crew.statistics(_add_and_derive, tree, values, t + 1)
        crew.rewind(self._trees_end)
        crew.note(_add, tree, values)
        self._trees_end = crew.mark()
        crew.note(_derive, t + 1)


class WatchedInPartitions:
    """`Watched` for validation queries in partitions."""

    def __init__(self, crew: RowSource, stopping: EarlyStopping) -> None:
        self._rows, self.stopping = crew, stopping

    def go_on(self, ranker: Scorer, progress: Progress) -> None:
        if len(progress.valid) != len(progress.trees):
            staged = np.concatenate(self._rows.statistics(_staged, ranker, self.stopping.measure, merge=beside), axis=1)
            progress.valid = [float(self.stopping.measure.aggregate(by_query)) for by_query in staged]
        self._rows.statistics(_go_on, ranker, keep=True)

    def value_with(self, tree: TreeStructure, values: np.ndarray) -> float:
        measure = self.stopping.measure
        by_query = self._rows.statistics(_add_and_measure, tree, values, measure, merge=beside)
        self._rows.note(_add, tree, values)
        return float(measure.aggregate(np.concatenate(by_query)))


# Statistics of a partition, which use `partition.memory["trees"]`.


class PartitionTrees:
    """Codes, grades and scores of a partition, and the tree that grows."""

    g: np.ndarray
    h: np.ndarray

    def __init__(self, partition: Part, setup: Setup, training: bool) -> None:
        data = partition.data
        self.setup, self.number = setup, partition.number
        X = _matrix(partition, data) if training or setup.categories is None else setup.categories.encode(data.X)
        codes = code_rows(X, setup.columns.borders, 1)
        self.workers = Workers(1)
        self.fitter = setup.fitter(self.workers)
        # Plain leaves never read the values again. (A view of no rows would keep them all.)
        self.rows = Rows(X if self.fitter.needs_sample else np.empty((0, X.shape[1]), X.dtype), codes)
        self.light = data.without_features()
        self.weight = data.row_weight
        self.copies = row_copies(partition, setup.copy_unit) if training else None
        self.scores = np.zeros(data.n_rows)
        self.linear = None if setup.linear is None else setup.linear.scores(X, 1)
        self.start: Any = 0.0
        self.sampled: SampledRows | None = None
        self.n_bins = setup.columns.n_bins
        self.has_missing: np.ndarray | None = None  # in any partition
        self.search: SumSearch | None = None  # this worker's, at its first partition
        if training and setup.query_places is not None:
            keys, grades, _, _ = content_hashes(data.X, np.asarray(data.y), data.offsets)
            self.by_content = np.lexsort((grades, keys, data.query_index))  # the queries stay in their order
            shift = np.repeat(setup.query_places[self.number] - data.offsets[:-1], data.group_sizes)
            self.positions = np.arange(data.n_rows) + shift

    def derive(self, t: int) -> None:
        """Compute gradients, hessians and draws of tree t."""
        setup, y, plan = self.setup, np.asarray(self.light.y), self.setup.plan
        rng = stream(plan.seed, "objective", t)
        if getattr(setup.objective, "by_place", False):
            setup.objective.begin(_RowDraws(rng, setup.n_rows, self.positions))
            order = self.by_content
            g, h = checked(setup.objective, y[order], self.scores[order], self.light.offsets)
            g, h = at_places(g, order), at_places(h, order)
        else:
            setup.objective.begin(rng)
            g, h = checked(setup.objective, y, self.scores, self.light.offsets)
        self.g, self.h = (g, h) if self.weight is None else (g * self.weight, h * self.weight)
        self.drawn = None
        if plan.replace or plan.subsample < 1.0:
            assert setup.query_starts is not None
            rng = stream(plan.seed, "rows", t)
            drawn = draw_rows(rng, setup.query_starts, plan.unit, plan.replace, plan.subsample)
            self.drawn = None if drawn is None else at_places(drawn[self.positions], self.by_content)
        self.sampled = None

    def sizes(self, t: int) -> dict[str, Any]:
        """Return the sums that determine the scales of tree t and the value of the objective."""
        rows, g, h = drawn_rows(self.g, self.h, self.drawn)
        sizes = GradientSizes.of(g, h, self.workers)
        sums = _Sums(
            n=sizes.n_rows,
            copies=0 if self.copies is None else int(self.copies[rows].sum()),
            gradients=sizes.gradients,
            hessians=sizes.hessians,
            broken=0 if sizes.whole else 1,
            change=change_parts(self.start, self.g, self.h, self.scores, self.workers),
        )
        if t == 0 or self.fitter.needs_sample:
            whole = sizes if self.drawn is None else GradientSizes.of(self.g, self.h, self.workers)
            weight = np.broadcast_to(1.0, self.scores.shape) if self.weight is None else self.weight
            sums |= {"all_gradients": whole.gradients, "all_hessians": whole.hessians, "weight": exact_parts(weight)}
        return sums


class _Sums(dict[str, Any]):
    """Named sums that can be added."""

    def __add__(self, other: dict[str, Any]) -> _Sums:
        return _Sums({name: value + other[name] for name, value in self.items()})


class _RowDraws:
    """The draws of a generator for all rows, at some positions, as on one machine; O(n) for each row of draws."""

    def __init__(self, rng: np.random.Generator, n: int, positions: np.ndarray) -> None:
        self.rng, self.n, self.positions = rng, n, positions

    def logistic(self, size: tuple[int, int]) -> np.ndarray:
        return np.array([self.rng.logistic(size=self.n)[self.positions] for _ in range(size[0])]).reshape(size)

    def random(self, size: int) -> np.ndarray:
        return self.rng.random(self.n)[self.positions]


def _matrix(partition: Part, data: RankingData) -> np.ndarray:
    """Return the partition's training rows for trees: dense, with the statistics of categories."""
    X: np.ndarray = data.X.toarray() if hasattr(data.X, "tocsr") else data.X
    if "statistics" in partition.memory:
        columns, values = partition.memory["statistics"]
        X = X.copy()
        X[:, columns] = values
    return X


def _category_values(partition: Part, columns: np.ndarray) -> list[np.ndarray]:
    return [partition.data.X[:, columns]]


def _take_statistics(partition: Part, columns: np.ndarray, values: list[np.ndarray]) -> None:
    partition.memory["statistics"] = np.array(columns), np.array(values[partition.number])


def _linear_sums(partition: Part, scaling: Scaling) -> tuple[np.ndarray, np.ndarray, float]:
    data = partition.data
    return linear_start_sums(_matrix(partition, data), np.asarray(data.y), data.offsets, data.row_weight, scaling)


def _hashes(partition: Part) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    data = partition.data
    return [(*content_hashes(data.X, np.asarray(data.y), data.offsets)[2:], data.group_sizes)]


def _count_copies(partition: Part, unit: CopyUnit) -> int:
    copies = row_copies(partition, unit)
    return 0 if copies is None else int(copies.sum())


def _open(partition: Part, setup: Setup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    partition.memory.pop("sorted", None)
    trees = partition.memory["trees"] = PartitionTrees(partition, setup, True)
    y = np.asarray(trees.light.y)
    if trees.linear is not None:
        y = y - trees.linear
    weight = np.broadcast_to(1.0, y.shape) if trees.weight is None else trees.weight
    grades = y if trees.weight is None else trees.weight * y
    return trees.rows.matrix.has_missing.astype(np.int64), exact_parts(grades), exact_parts(weight)


def _open_valid(partition: Part, setup: Setup, start: float, has_missing: np.ndarray) -> None:
    partition.memory["trees"] = PartitionTrees(partition, setup, False)
    _start(partition, start, has_missing)


def _start(partition: Part, start: float, has_missing: np.ndarray) -> None:
    trees = partition.memory["trees"]
    trees.has_missing = np.array(has_missing)
    trees.scores[:] = start
    trees.start = start
    if trees.linear is not None:
        trees.scores += trees.linear
        trees.start = trees.scores.copy()


def _go_on(partition: Part, ranker: Any) -> None:
    partition.memory["trees"].scores[:] = ranker._predict(partition.data.X)


def _staged(partition: Part, ranker: Any, measure: Any) -> list[np.ndarray]:
    judgements = partition.data.judgements()
    return [np.array([measure.per_query(judgements, scores) for scores in ranker._staged(partition.data.X)])]


def _derive(partition: Part, t: int) -> dict[str, Any]:
    trees = partition.memory["trees"]
    trees.derive(t)
    return trees.sizes(t)


def _leaf_sums(partition: Part, tree: TreeStructure) -> tuple[np.ndarray, ...]:
    trees = partition.memory["trees"]
    return trees.fitter.sums(tree, trees.rows, Sample(trees.g, trees.h, trees.drawn))


def _add(partition: Part, tree: TreeStructure, values: np.ndarray) -> None:
    trees = partition.memory["trees"]
    trees.sampled = None
    trees.fitter.add(tree, trees.rows, np.array(values), trees.scores)


def _add_and_derive(partition: Part, tree: TreeStructure, values: np.ndarray, t: int) -> dict[str, Any]:
    _add(partition, tree, values)
    return _derive(partition, t)


def _add_and_measure(partition: Part, tree: TreeStructure, values: np.ndarray, measure: Any) -> list[np.ndarray]:
    _add(partition, tree, values)
    trees = partition.memory["trees"]
    return [np.asarray(measure.per_query(trees.light.judgements(), trees.scores))]
