"""Fit boosted trees to parts of rows: the stages of a fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from truerank.core.checks import check_choice, check_number
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
from truerank.rankers.fitted_trees import begun_progress, check_same_columns, keep, trees_of
from truerank.rankers.leaf_choice import queries_for_trials
from truerank.rankers.sums.boosted_trees import (
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
from truerank.rankers.sums.column_borders import (
    LIMIT,
    ColumnSummary,
    column_borders,
    copy_unit,
    merge_summaries,
    summaries_of,
)
from truerank.solvers.result import Status
from truerank.trees.boosting import boost, check_limits
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.linear_start import Start, solve_linear_start
from truerank.trees.training_columns import TrainingColumns, look_at, scan_training_columns

_OBJECTIVES = ("mse", "lambdarank", "softmax", "xe-ndcg", "pairwise-logistic", "yetirank")  # over several parts
_COLUMNS = 8  # columns all of whose values are summarised in one round


class BoostingFit:
    """One fit of an `ObliviousBoosting`; with `begun` it continues the trees of `init_model`, of other data."""

    def __init__(self, ranker: Any, data: RowSource, valid: RowSource | None, begun: bool) -> None:
        self.ranker, self.data, self.valid, self.begun = ranker, data, valid, begun
        self.alone: RankingData | None = None if data.alone is None else data.alone.data
        self.sparse = self.alone is not None and hasattr(self.alone.X, "tocsc")
        self.parts = ranker._parts()
        check_choice(ranker.start, "start", ("constant", "linear"))
        self.start_alpha = check_number(ranker.start_alpha, "start_alpha", minimum=0.0)
        self.progress = trees_of(ranker) if begun else begun_progress(ranker, ranker.n_features_in_)
        self.continued = bool(self.progress.trees)
        self.stopping = ranker._early_stopping(valid is not None)
        self.objective = self._objective()
        ranker._choose_leaves(partial(_queries_for_trials, data), self.continued or begun)
        self.leaves = ranker.kind_of_leaves
        self._check_rows()
        self.unit, self.copies = _copies(data)
        self.plan = ranker._plan()
        if begun:
            have = len(self.progress.trees)
            rates = np.append(np.zeros(have), self.plan.learning_rates)
            self.plan = replace(self.plan, n_estimators=self.plan.n_estimators + have, learning_rates=rates)

    def run(self) -> Status:
        """Grow the trees, and store them in the ranker."""
        ranker, data, progress = self.ranker, self.data, self.progress
        tables = self._categories()
        p_swap, columns = self._columns()
        plan = replace(self.plan, rules=self.leaves.search_rules(self.plan.rules, columns, p_swap))
        linear = ranker._start().linear if self.continued else None
        if ranker.start == "linear" and linear is None:
            assert columns.scaling is not None
            products, moment, total = data.statistics(linear_sums, columns.scaling)
            linear = solve_linear_start(products, moment, total, columns.scaling, self.start_alpha, plan.rules.monotone)
        unbiased = self.objective if isinstance(self.objective, UnbiasedLambdaRank) else None
        if unbiased is not None:
            show_arrays(unbiased.propensities)
        by_place = plan.replace or plan.subsample < 1.0 or getattr(self.objective, "by_place", False)
        query_starts, query_places = _places(data) if by_place else (None, None)
        with Workers(ranker.n_jobs) as workers:
            setup = Setup(
                self.objective, plan, self.leaves, columns, p_swap, linear, tables, data.n_rows, data.first_rows,
                self.unit, query_starts, query_places, None if self.alone is None else workers,
            )  # fmt: skip
            missing, grades, weights = data.statistics(open_training, setup, keep=True)
            has_missing = missing > 0
            constant = exact_total(grades) / exact_total(weights) if isinstance(self.objective, SquaredError) else 0.0
            if self.continued:
                constant = ranker._start().constant
            data.statistics(start_scores, constant, has_missing, keep=True)
            watched = None
            if self.valid is None or self.stopping is None:
                progress.valid = []
            else:
                self.valid.statistics(open_validation, setup, constant, has_missing, keep=True)
                watched = WatchedInParts(self.valid, self.stopping)
                if self.continued:
                    watched.go_on(ranker, progress)
            rows = RowsInParts(data, setup, has_missing, workers, self.copies)
            if self.continued:
                rows.go_on(ranker, len(progress.trees), self.begun)
            status = boost(rows, plan, watched, progress, self.objective.quadratic)
        ranker._keep(progress, Start(constant, linear), self.leaves, columns, p_swap)
        if tables is not None:
            keep(ranker, tables)
        if unbiased is not None:
            for name, values in unbiased.propensities().items():
                setattr(ranker, f"{name}_", values)
        return status

    def _check_rows(self) -> None:
        """Check the magnitude of grades and weights, and that training and validation rows have one form."""
        if self.alone is None:
            check_limits(self.data.description.largest_grade, self.data.description.largest_weight)
            return
        valid = None if self.valid is None or self.valid.alone is None else self.valid.alone.data
        if valid is not None and hasattr(valid.X, "tocsc") != self.sparse:
            raise InvalidInputError(
                f"X is {'sparse' if self.sparse else 'dense'} and that of eval_set is not: give both in the same form",
                argument="eval_set",
            )
        if self.sparse and self.leaves.needs_scaling:  # a model's that the fit goes on from
            raise InvalidInputError(
                f"X is sparse, and the model to go on from has {self.leaves.name} leaves, which need a dense matrix; "
                "call X.toarray()",
                code="sparse",
            )
        weight = self.alone.row_weight
        check_limits(
            float(np.abs(np.asarray(self.alone.y)).max(initial=0.0)), None if weight is None else float(weight.max())
        )

    def _objective(self) -> Any:
        ranker = self.ranker
        if self.alone is None and not callable(ranker.objective) and ranker.objective not in _OBJECTIVES:
            raise InvalidInputError(
                f"on a cluster objective must be one of {', '.join(_OBJECTIVES)} or a function, got "
                f"{ranker.objective!r}; fit to `data.gather()` if the rows fit here",
                argument="objective",
            )
        n_jobs = self.data.part_jobs
        objective = make_objective(ranker.objective, ranker.objective_params, ranker._measure(), n_jobs)
        if self.alone is None and not isinstance(objective, SquaredError | ByQuery | FunctionObjective):
            raise InvalidInputError("on a cluster objective must be one by name or a function")
        if not isinstance(objective, UnbiasedLambdaRank):
            return objective
        assert self.alone is not None
        objective.read(self.alone)
        if self.continued:
            raise InvalidInputError(
                f"{'init_model' if self.begun else 'warm_start'}: unbiased-lambdarank learns its propensities from "
                "tree to tree and cannot be continued; start anew",
                code="continued",
            )
        return objective

    def _categories(self) -> CategoryTables | None:
        """Return the tables of categorical columns, or None, and give the parts the statistics of their rows."""
        ranker, data = self.ranker, self.data
        if self.begun and hasattr(ranker, "category_features_"):
            tables: CategoryTables = ranker._category_tables()
            columns = tables.features
            encoded = [tables.encode(X)[:, columns] for X in data.each(_values)]
            data.statistics(take_statistics, columns, encoded, keep=True)
            return tables
        columns = ranker._category_columns(data.n_features)
        if columns is None:
            return None
        if self.continued:
            raise InvalidInputError(
                "warm_start: a model with categorical features cannot be continued; set warm_start=False",
                argument="categorical",
            )
        light = data.without_features()
        queries = _queries_by_content(data)[0]
        order = queries[stream(ranker.seed_, "categories", 0).permutation(len(queries))]
        values, grades = joined(data.statistics(category_values, columns, merge=beside)), np.asarray(light.y)
        numbers = np.arange(len(columns))
        tables, by_row = fit_categories(values, grades, light.offsets, light.row_weight, numbers, order)
        data.statistics(take_statistics, columns, np.split(by_row, data.first_rows[1:-1]), keep=True)
        return replace(tables, features=columns)

    def _columns(self) -> tuple[float, TrainingColumns]:
        """Return the probability of a swap (0 without fuzzy leaves), and borders, places and scaling of the columns."""
        ranker, leaves, copies = self.ranker, self.leaves, self.copies
        p_swap, known_places = 0.0, {}
        if leaves.needs_places:
            counted = (self.data.n_rows,) if copies is None else (copies.rows, copies.places)
            p_swap = leaves.swap_probability(*counted)
            if self.begun:
                flat = ranker._flat_places()
                p_swap, known_places = ranker.p_swap_, dict(zip(flat.features.tolist(), flat.tables()))
        scaled = leaves.needs_scaling or ranker.start == "linear"
        if self.data.alone is None:
            columns = self._columns_of_parts(scaled)
        else:
            columns = scan_training_columns(
                training_matrix(self.data.alone, self.data.alone.data, True), copies, self.parts, leaves, scaled,
                bool(ranker.clip), known_places, ranker.n_jobs,
            )  # fmt: skip
        if self.begun and scaled:
            columns = replace(columns, scaling=ranker._scaling())
        if self.continued and not self.begun:
            check_same_columns(ranker, leaves, columns, p_swap)
        return p_swap, columns

    def _columns_of_parts(self, scaled: bool) -> TrainingColumns:
        """Return the same from summaries of columns."""
        ranker, data, leaves, unit = self.ranker, self.data, self.leaves, self.unit
        if not scaled and not leaves.needs_places:
            borders = column_borders(data, self.parts, unit)
            return TrainingColumns.of([(own, None, None) for own in borders], bool(ranker.clip))
        places_a_copy = 1.0 if self.copies is None else self.copies.places_a_copy

        def look(summary: ColumnSummary) -> tuple[np.ndarray, Any, Any]:
            if unit is None:
                return look_at(summary.sorted_values(), self.parts, leaves, scaled)
            ends = np.cumsum(summary.counts, dtype=np.int64)
            return look_at(summary.values, self.parts, leaves, scaled, ends, places_a_copy)

        looked = []
        with Workers(ranker.n_jobs) as workers:
            for first in range(0, data.n_features, _COLUMNS):
                some = range(first, min(first + _COLUMNS, data.n_features))
                summaries = data.statistics(summaries_of, some, data.feature_names, LIMIT, unit, merge=merge_summaries)
                looked += workers.run(look, [(one,) for one in summaries])
        return TrainingColumns.of(looked, bool(ranker.clip))


def _copies(data: RowSource) -> tuple[CopyUnit | None, RowCopies | None]:
    """Return the weight of one copy of a row, and the copies of all rows; None where every row counts once."""
    if data.alone is not None:
        weight: Any = data.alone.data.row_weight
        copies = RowCopies.of(weight)
        unit = None if copies is None else CopyUnit.of(different_weights(weight), len(weight))
        return unit, copies
    unit = copy_unit(data)
    if unit is None:
        return None, None
    total = int(data.statistics(count_copies, unit))
    return unit, RowCopies.with_unit(unit, np.empty(0, dtype=np.int64), total, data.n_rows)


def _queries_by_content(data: RowSource) -> tuple[np.ndarray, np.ndarray]:
    """Return all queries in the order by content, and their sizes."""
    own, with_grades, sizes = (np.concatenate(parts) for parts in zip(*data.statistics(query_hashes, merge=beside)))
    return np.lexsort((data.weight_by_query, with_grades, own)), sizes


def _queries_for_trials(data: RowSource) -> RankingData:
    """Return queries with those on which kinds of leaves are compared: the same as for rows in memory."""
    if data.alone is not None:
        rows: RankingData = data.alone.data
        return rows
    return data.sample(queries_for_trials(*_queries_by_content(data), data.weight_by_query))


def _places(data: RowSource) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the starts of all places in the order by content (m + 1,), and of the queries of each part."""
    order, sizes = _queries_by_content(data)
    offsets = offsets_of(sizes[order])
    return offsets, np.split(at_places(offsets[:-1], order), np.cumsum(data.queries_by_part)[:-1])


def _values(rows: RankingData) -> Any:
    return rows.X
