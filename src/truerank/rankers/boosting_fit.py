"""Fit boosted trees to parts of rows: the stages of a fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.errors import InvalidInputError
from truerank.core.random_streams import stream
from truerank.core.rounds import show_arrays
from truerank.core.threads import Workers
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import RowSource
from truerank.data.rows import beside, joined
from truerank.losses.boosting import SquaredError, make_objective
from truerank.losses.position_bias import UnbiasedLambdaRank
from truerank.losses.protocols import ByQuery, FunctionObjective
from truerank.matrices.exact_sums import exact_total
from truerank.matrices.row_copies import CopyUnit, RowCopies, different_weights
from truerank.rankers.fitted_trees import FittedParts, check_same_columns
from truerank.rankers.leaf_choice import queries_for_trials
from truerank.solvers.early_stopping import EarlyStopping
from truerank.solvers.result import Status
from truerank.trees.boosting import Progress, TreePlan, boost, check_limits
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.column_borders import (
    LIMIT,
    ColumnSummary,
    column_borders,
    copy_unit,
    merge_summaries,
    summaries_of,
)
from truerank.trees.leaves.base import Leaves
from truerank.trees.linear_start import Start, solve_linear_start
from truerank.trees.rows_in_parts import (
    RowsInMemory,
    RowsInParts,
    Setup,
    WatchedInParts,
    category_values,
    count_copies,
    linear_sums,
    open_training,
    open_validation,
    query_hashes,
    start_scores,
    take_statistics,
    training_matrix,
)
from truerank.trees.training_columns import TrainingColumns, look_at, scan_training_columns

_OBJECTIVES = ("mse", "lambdarank", "softmax", "xe-ndcg", "pairwise-logistic", "yetirank")  # over several parts
_COLUMNS = 8  # columns all of whose values are summarised in one round


@dataclass(frozen=True)
class Grown:
    """The result of a fit, with the trees, and what scoring with them requires."""

    status: Status
    progress: Progress
    start: Start
    columns: TrainingColumns
    p_swap: float  # 0 without fuzzy leaves
    tables: CategoryTables | None
    propensities: dict[str, np.ndarray]


@dataclass
class BoostingFit:
    """One fit to parts of rows, which may continue the trees of a `model`, fitted to these or other rows."""

    data: RowSource
    valid: RowSource | None
    model: FittedParts | None
    # Checked settings.
    borders: int  # parts of the values of a column
    start: str
    start_alpha: float
    clip: bool
    objective: Any
    stopping: EarlyStopping | None
    leaves: Leaves
    plan: TreePlan
    categories: np.ndarray | None  # columns, int64 (u,)
    n_jobs: int | None

    def __post_init__(self) -> None:
        model = self.model
        self.progress = Progress() if model is None else model.progress
        self.alone: RankingData | None = None if self.data.alone is None else self.data.alone.data
        self._check_rows()
        self.unit, self.copies = _copies(self.data)
        if model is not None and model.begun:
            have = len(self.progress.trees)
            rates = np.append(np.zeros(have), self.plan.learning_rates)
            self.plan = replace(self.plan, n_estimators=self.plan.n_estimators + have, learning_rates=rates)

    def run(self) -> Grown:
        """Grow the trees."""
        data, model, progress = self.data, self.model, self.progress
        tables: CategoryTables | None = None
        if model is not None and model.begun and model.tables is not None:
            tables = self._encoded(model.tables)
        elif self.categories is not None:
            tables = self._categories(self.categories)
        p_swap, columns = self._columns()
        plan = replace(self.plan, rules=self.leaves.search_rules(self.plan.rules, columns, p_swap))
        linear = None if model is None else model.start.linear
        if self.start == "linear" and linear is None:
            assert columns.scaling is not None
            products, moment, total = data.statistics(linear_sums, columns.scaling)
            linear = solve_linear_start(products, moment, total, columns.scaling, self.start_alpha, plan.rules.monotone)
        unbiased = self.objective if isinstance(self.objective, UnbiasedLambdaRank) else None
        if unbiased is not None:
            show_arrays(unbiased.propensities)
        by_place = plan.replace or plan.subsample < 1.0 or getattr(self.objective, "by_place", False)
        query_starts, query_places = _places(data) if by_place else (None, None)
        with Workers(self.n_jobs) as workers:
            setup = Setup(
                self.objective, plan, self.leaves, columns, p_swap, linear, tables, data.n_rows, data.first_rows,
                self.unit, query_starts, query_places, None if self.alone is None else workers,
            )  # fmt: skip
            missing, grades, weights = data.statistics(open_training, setup, keep=True)
            has_missing = missing > 0
            constant = exact_total(grades) / exact_total(weights) if isinstance(self.objective, SquaredError) else 0.0
            if model is not None:
                constant = model.start.constant
            data.statistics(start_scores, constant, has_missing, keep=True)
            watched = None
            if self.valid is None:
                progress.valid = []
            else:
                self.valid.statistics(open_validation, setup, constant, has_missing, keep=True)
                watched = WatchedInParts(self.valid, self.stopping)
                if model is not None:
                    watched.go_on(model.ranker, progress)
            rows: RowsInMemory | RowsInParts
            if data.alone is not None:
                rows = RowsInMemory(data.alone, self.copies)
            else:
                rows = RowsInParts(data, setup, has_missing, workers, self.copies)
            if model is not None:
                rows.go_on(model.ranker, len(progress.trees), model.begun)
            status = boost(rows, plan, watched, progress, self.objective.quadratic)
        propensities = {} if unbiased is None else unbiased.propensities()
        return Grown(status, progress, Start(constant, linear), columns, p_swap, tables, propensities)

    def _check_rows(self) -> None:
        """Check the magnitude of grades and weights, and that eval_set is sparse if, and only if, X is sparse."""
        if self.alone is None:
            check_limits(self.data.description.largest_grade, self.data.description.largest_weight)
            return
        sparse = is_sparse(self.alone.X)
        valid = None if self.valid is None or self.valid.alone is None else self.valid.alone.data
        if valid is not None and is_sparse(valid.X) != sparse:
            raise InvalidInputError(
                f"X is {'sparse' if sparse else 'dense'}, and the rows of eval_set are not. Pass both in the same form",
                argument="eval_set",
            )
        if sparse and self.leaves.needs_scaling:  # a model's that the fit goes on from
            raise InvalidInputError(
                f"X is sparse, but the {self.leaves.name} leaves of the model to continue require X.toarray()",
                code="sparse",
            )
        weight = self.alone.row_weight
        check_limits(
            float(np.abs(np.asarray(self.alone.y)).max(initial=0.0)), None if weight is None else float(weight.max())
        )

    def _encoded(self, tables: CategoryTables) -> CategoryTables:
        """Return the tables of a model, after sending their statistics of the rows to the parts."""
        encoded = [tables.encode(X)[:, tables.features] for X in self.data.each(_values)]
        self.data.statistics(take_statistics, tables.features, encoded, keep=True)
        return tables

    def _categories(self, columns: np.ndarray) -> CategoryTables:
        """Return the tables of categorical columns, after sending the statistics of their rows to the parts."""
        data = self.data
        if self.model is not None:
            raise InvalidInputError(
                "a model with categorical features cannot be continued. Set warm_start=False",
                argument="categorical",
            )
        light = data.without_features()
        queries = _queries_by_content(data)[0]
        order = queries[stream(self.plan.seed, "categories", 0).permutation(len(queries))]
        values, grades = joined(data.statistics(category_values, columns, merge=beside)), np.asarray(light.y)
        numbers = np.arange(len(columns))
        tables, by_row = fit_categories(values, grades, light.offsets, light.row_weight, numbers, order)
        data.statistics(take_statistics, columns, np.split(by_row, data.first_rows[1:-1]), keep=True)
        return replace(tables, features=columns)

    def _columns(self) -> tuple[float, TrainingColumns]:
        """Return the probability of a swap (0 without fuzzy leaves), and borders, places and scaling of the columns."""
        model, leaves, copies = self.model, self.leaves, self.copies
        p_swap, known_places = 0.0, {}
        if leaves.needs_places:
            p_swap = leaves.swap_probability(*((self.data.n_rows,) if copies is None else (copies.rows, copies.places)))
            if model is not None and model.begun:
                p_swap, known_places = model.p_swap, model.places
        scaled = leaves.needs_scaling or self.start == "linear"
        if self.data.alone is None:
            columns = self._columns_of_parts(scaled)
        else:
            columns = scan_training_columns(
                training_matrix(self.data.alone, self.data.alone.data, True), copies, self.borders, leaves, scaled,
                self.clip, known_places, self.n_jobs,
            )  # fmt: skip
        if model is not None and model.begun and scaled:
            columns = replace(columns, scaling=model.scaling)
        elif model is not None:
            check_same_columns(model.ranker, leaves, columns, p_swap)
        return p_swap, columns

    def _columns_of_parts(self, scaled: bool) -> TrainingColumns:
        """Return borders, places and scaling from summaries of the columns of all parts."""
        data, leaves, unit = self.data, self.leaves, self.unit
        if not scaled and not leaves.needs_places:
            borders = column_borders(data, self.borders, unit)
            return TrainingColumns.of([(own, None, None) for own in borders], self.clip)
        places_a_copy = 1.0 if self.copies is None else self.copies.places_a_copy

        def look(summary: ColumnSummary) -> tuple[np.ndarray, Any, Any]:
            if unit is None:
                return look_at(summary.sorted_values(), self.borders, leaves, scaled)
            ends = np.cumsum(summary.counts, dtype=np.int64)
            return look_at(summary.values, self.borders, leaves, scaled, ends, places_a_copy)

        looked = []
        with Workers(self.n_jobs) as workers:
            for first in range(0, data.n_features, _COLUMNS):
                some = range(first, min(first + _COLUMNS, data.n_features))
                summaries = data.statistics(summaries_of, some, data.feature_names, LIMIT, unit, merge=merge_summaries)
                looked += workers.run(look, [(one,) for one in summaries])
        return TrainingColumns.of(looked, self.clip)


def objective_of(ranker: Any, measure: Any, data: RowSource, continued: str) -> Any:
    """Return the objective of a ranker's settings; `continued` names the argument that continues a model, or is ""."""
    if data.alone is None and not callable(ranker.objective) and ranker.objective not in _OBJECTIVES:
        raise InvalidInputError(
            f"on a cluster objective must be one of {', '.join(_OBJECTIVES)} or a function, got "
            f"{ranker.objective!r}. Use one of these, or call fit(data.gather()) if all rows fit into memory",
            argument="objective",
        )
    objective = make_objective(ranker.objective, ranker.objective_params, measure, data.part_jobs)
    if data.alone is None and not isinstance(objective, SquaredError | ByQuery | FunctionObjective):
        raise InvalidInputError(f"on a cluster objective must be a name or a function, got {ranker.objective!r:.60}")
    if isinstance(objective, UnbiasedLambdaRank):
        assert data.alone is not None
        objective.read(data.alone.data)
        if continued:
            raise InvalidInputError(
                f"{continued} does not support unbiased-lambdarank, whose propensities change with every tree. Start a "
                "new fit",
                code="continued",
            )
    return objective


def _copies(data: RowSource) -> tuple[CopyUnit | None, RowCopies | None]:
    """Return the weight of one copy and the copies of the rows; both are None if every row counts once."""
    if data.alone is not None:
        weight: Any = data.alone.data.row_weight
        copies = None if weight is None else RowCopies.of(weight)
        return None if copies is None else CopyUnit.of(different_weights(weight), len(weight)), copies
    unit = copy_unit(data)
    if unit is None:
        return None, None
    total = int(data.statistics(count_copies, unit))
    return unit, RowCopies.with_unit(unit, np.empty(0, dtype=np.int64), total, data.n_rows)


def _queries_by_content(data: RowSource) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of all queries, ordered by content, and the size of each query, in the order of the parts."""
    own, with_grades, sizes = (np.concatenate(parts) for parts in zip(*data.statistics(query_hashes, merge=beside)))
    return np.lexsort((data.weight_by_query, with_grades, own)), sizes


def rows_for_trials(data: RowSource) -> RankingData:
    """Return the rows on which kinds of leaves are compared: the rows in memory, or a sample of rows in parts."""
    if data.alone is not None:
        rows: RankingData = data.alone.data
        return rows
    return data.sample(queries_for_trials(*_queries_by_content(data), data.weight_by_query))


def _places(data: RowSource) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the offsets (m + 1,) of the queries ordered by content, and the start of each query of each part."""
    order, sizes = _queries_by_content(data)
    offsets = offsets_of(sizes[order])
    return offsets, np.split(at_places(offsets[:-1], order), np.cumsum(data.queries_by_part)[:-1])


def _values(rows: RankingData) -> Any:
    return rows.X
