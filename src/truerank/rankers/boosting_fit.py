"""Fit boosted trees to data in memory."""

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
from truerank.data.ranking_data import RankingData
from truerank.losses.boosting import make_objective
from truerank.losses.position_bias import UnbiasedLambdaRank
from truerank.matrices.binning import code_rows
from truerank.matrices.bundles import bundle_columns, summed
from truerank.matrices.content import order_by_content
from truerank.matrices.row_copies import RowCopies
from truerank.rankers.fitted_trees import begun_progress, check_same_columns, keep, trees_of
from truerank.solvers.result import Status
from truerank.trees.boosted_rows import RowsHere, WatchedHere
from truerank.trees.boosting import boost, check_limits
from truerank.trees.categories import CategoryTables, fit_categories
from truerank.trees.linear_start import Start, linear_start_sums, solve_linear_start
from truerank.trees.rows import Rows
from truerank.trees.training_columns import TrainingColumns, scan_training_columns

CATEGORIES_STAY = "warm_start: a model with categorical features cannot be continued; set warm_start=False"


class BoostingFit:
    """One fit of an `ObliviousBoosting`; with `begun` it continues the trees of `init_model`, of other data."""

    def __init__(self, ranker: Any, data: RankingData, valid: RankingData | None, begun: bool) -> None:
        self.ranker, self.data, self.valid, self.begun = ranker, data, valid, begun
        self.sparse = hasattr(data.X, "tocsc")
        self.code: Any = bundle_columns if self.sparse else partial(code_rows, n_jobs=ranker.n_jobs)
        self.parts = ranker._parts()
        check_choice(ranker.start, "start", ("constant", "linear"))
        self.start_alpha = check_number(ranker.start_alpha, "start_alpha", minimum=0.0)
        self.progress = trees_of(ranker) if begun else begun_progress(ranker, ranker.n_features_in_)
        self.continued = bool(self.progress.trees)
        self.stopping = ranker._early_stopping(valid is not None)
        self.objective = self._objective()
        ranker._choose_leaves(lambda: data, self.continued or begun)
        self.leaves = ranker.kind_of_leaves
        self.weight = data.row_weight
        self._check_rows()
        self.copies = None if self.weight is None else RowCopies.of(self.weight)
        self.plan = ranker._plan()
        if begun:
            have = len(self.progress.trees)
            rates = np.append(np.zeros(have), self.plan.learning_rates)
            self.plan = replace(self.plan, n_estimators=self.plan.n_estimators + have, learning_rates=rates)

    def run(self) -> Status:
        """Grow the trees, and store them in the ranker."""
        ranker, data = self.ranker, self.data
        self.tables, self.X = (None, data.X) if ranker.categorical is None else self._categories()
        by_column = summed(self.X).tocsc() if self.sparse else self.X
        p_swap, columns = self._columns(by_column)
        start, scores, at_start = self._standing() if self.continued else self._start(columns)
        plan = replace(self.plan, rules=self.leaves.search_rules(self.plan.rules, columns, p_swap))
        unbiased = self.objective if isinstance(self.objective, UnbiasedLambdaRank) else None
        if unbiased is not None:
            show_arrays(unbiased.propensities)
        with Workers(ranker.n_jobs) as workers:
            fitter = self.leaves.fitter(plan.rules, columns, p_swap, workers)
            watched = None
            if self.valid is None:
                self.progress.valid = []
            else:
                watched = self._watched(self.valid, fitter, columns, start)
            rows = Rows(by_column, self.code(by_column, columns.borders), True)
            gains = self.progress.gains
            boosted = RowsHere(data, rows, scores, at_start, gains, self.objective, fitter, plan, workers, self.copies)
            status = boost(boosted, plan, watched, self.progress, self.objective.quadratic)
        ranker._keep(self.progress, start, self.leaves, columns, p_swap)
        if self.tables is not None:
            keep(ranker, self.tables)
        if unbiased is not None:
            for name, values in unbiased.propensities().items():
                setattr(ranker, f"{name}_", values)
        return status

    def _check_rows(self) -> None:
        """Check the magnitude of grades and weights, and that training and validation rows have one form."""
        if self.valid is not None and hasattr(self.valid.X, "tocsc") != self.sparse:
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
        assert self.data.y is not None
        largest = None if self.weight is None else float(self.weight.max())
        check_limits(float(np.abs(self.data.y).max(initial=0.0)), largest)

    def _objective(self) -> Any:
        ranker, data = self.ranker, self.data
        objective = make_objective(ranker.objective, ranker.objective_params, ranker._measure(), ranker.n_jobs)
        if not isinstance(objective, UnbiasedLambdaRank):
            return objective
        objective.read(data)
        if self.continued:
            raise InvalidInputError(
                f"{'init_model' if self.begun else 'warm_start'}: unbiased-lambdarank learns its propensities from "
                "tree to tree and cannot be continued; start anew",
                code="continued",
            )
        return objective

    def _categories(self) -> tuple[CategoryTables | None, Any]:
        """Return the tables of categorical columns, or None, and the training rows with their statistics."""
        ranker, data = self.ranker, self.data
        if self.begun and hasattr(ranker, "category_features_"):
            tables = ranker._category_tables()
            return tables, tables.encode(data.X)
        columns = ranker._category_columns(data.n_features)
        if columns is None:
            return None, data.X
        if self.continued:
            raise InvalidInputError(CATEGORIES_STAY, argument="categorical")
        assert data.y is not None
        _, queries = order_by_content(data.X, data.y, data.offsets, data.query_weight)
        order = queries[stream(ranker.seed_, "categories", 0).permutation(len(queries))]
        return fit_categories(data.X, data.y, data.offsets, self.weight, columns, order)

    def _columns(self, by_column: Any) -> tuple[float, TrainingColumns]:
        """Return the probability of a swap (0 without fuzzy leaves), and borders, places and scaling of the columns."""
        ranker, leaves = self.ranker, self.leaves
        p_swap, known_places = 0.0, {}
        copies = self.copies
        if leaves.needs_places:
            counted = (self.data.n_rows,) if copies is None else (copies.rows, copies.places)
            p_swap = leaves.swap_probability(*counted)
            if self.begun:
                flat = ranker._flat_places()
                p_swap, known_places = ranker.p_swap_, dict(zip(flat.features.tolist(), flat.tables()))
        scaled = leaves.needs_scaling or ranker.start == "linear"
        columns = scan_training_columns(
            by_column, copies, self.parts, leaves, scaled, bool(ranker.clip), known_places,
            ranker.n_jobs,
        )  # fmt: skip
        if self.begun and scaled:
            columns = replace(columns, scaling=ranker._scaling())
        if self.continued and not self.begun:
            check_same_columns(ranker, leaves, columns, p_swap)
        return p_swap, columns

    def _start(self, columns: TrainingColumns) -> tuple[Start, np.ndarray, Any]:
        """Return the start of the first tree, its scores (n,), and the scores for the watch over the objective."""
        ranker, data = self.ranker, self.data
        assert data.y is not None
        linear, known = None, np.zeros(1)
        if ranker.start == "linear":
            assert columns.scaling is not None
            sums = linear_start_sums(self.X, data.y, data.offsets, self.weight, columns.scaling)
            linear = solve_linear_start(*sums, columns.scaling, self.start_alpha, self.plan.rules.monotone)
            known = linear.scores(self.X, ranker.n_jobs)
        start = Start(float(self.objective.start(data.y - known, self.weight)), linear)
        scores = np.full(len(data.y), start.constant) + known
        # For the watch over the training objective: one number, unless the start is a line.
        return start, scores, start.constant if linear is None else scores.copy()

    def _standing(self) -> tuple[Start, np.ndarray, Any]:
        """Return the same as `_start` for a fit that continues trees."""
        ranker = self.ranker
        start, scores = ranker._start(), ranker._predict(self.data.X)
        if self.begun:
            return start, scores, scores.copy()  # on other data the model may stand worse than a constant
        return start, scores, start.constant if start.linear is None else start.scores(self.X, ranker.n_jobs)

    def _watched(self, valid: RankingData, fitter: Any, columns: TrainingColumns, start: Start) -> WatchedHere:
        """Return the validation queries, and compute the values of existing trees on new ones."""
        ranker, progress = self.ranker, self.progress
        assert self.stopping is not None
        X = valid.X if self.tables is None else self.tables.encode(valid.X)
        judgements = valid.judgements()
        if len(progress.valid) != len(progress.trees):
            progress.valid = [
                float(self.stopping.measure.mean(judgements, scores)) for scores in ranker._staged(valid.X)
            ]
        scores = ranker._predict(valid.X) if self.continued else start.scores(X, ranker.n_jobs)
        X = summed(X).tocsc() if self.sparse else X
        rows = Rows(X, self.code(X, columns.borders))
        return WatchedHere(rows, scores, judgements, fitter, self.stopping)
