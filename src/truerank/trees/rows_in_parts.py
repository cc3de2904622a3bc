"""Boost oblivious trees over parts: sums of integer histograms determine each level of a tree.

A part keeps codes, scores, and while a tree grows, gradients and the leaf of each row. `shared_growth` grows a tree on
all members together, and rows in memory by themselves. The journal keeps the trees alone, so a lost part is rebuilt
from its source and the model so far.

Histograms of constant leaves are integers and all scales are exact sums, so the trees have the bits of one machine for
any partitioning. Fuzzy and polynomial leaves add floating-point numbers along a fixed tree over the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from truerank.core.checks import is_sparse
from truerank.core.random_streams import stream
from truerank.core.threads import Workers, row_blocks
from truerank.core.types import Scorer
from truerank.data.grouping import at_places, offsets_of
from truerank.data.ranking_data import RankingData
from truerank.data.row_source import Part, RowSource
from truerank.data.rows import beside, joined
from truerank.losses.protocols import Derivatives, checked
from truerank.matrices.binning import code_rows
from truerank.matrices.bundles import bundle_columns, summed
from truerank.matrices.content import content_hashes, order_by_content
from truerank.matrices.exact_sums import exact_parts
from truerank.matrices.row_copies import CopyUnit, RowCopies
from truerank.solvers.early_stopping import EarlyStopping
from truerank.trees.boosting import BoostedRows, Progress, TreePlan, change_parts
from truerank.trees.bundled_grower import grower_of
from truerank.trees.categories import CategoryTables
from truerank.trees.column_borders import row_copies
from truerank.trees.grower import Grower, TreeStructure
from truerank.trees.histogram import GradientSizes, PackingScales, SampledRows, drawn_rows, pack_rows
from truerank.trees.linear_start import LinearStart, linear_start_sums
from truerank.trees.rows import Sample, TrainingRows, draw_rows
from truerank.trees.shared_growth import SumSearch, grow_over_parts
from truerank.trees.training_columns import Scaling, TrainingColumns


@dataclass(frozen=True)
class Setup:
    """The settings of a fit, which every part receives once."""

    objective: Any
    plan: TreePlan
    leaves: Any
    columns: TrainingColumns
    p_swap: float
    linear: LinearStart | None
    categories: CategoryTables | None
    n_rows: int
    first_rows: np.ndarray
    copy_unit: CopyUnit | None  # None: every row counts once
    # Places by content: offsets (m + 1,), and of each part where its queries start.
    query_starts: np.ndarray | None
    query_places: list[np.ndarray] | None
    workers: Workers | None  # the threads of rows in memory; None for other parts, which receive these settings


class RowsInMemory(BoostedRows):
    """The rows of one part in memory."""

    def __init__(self, part: Part, copies: RowCopies | None) -> None:
        self._part = part
        self._trees: PartTrees = part.memory["trees"]
        super().__init__(self._trees.setup.columns.borders, self._trees.fitter, copies)

    def go_on(self, model: Scorer, n_trees: int, begun: bool) -> None:
        """Continue from the scores of a model; if its trees are `begun` on other data, start there."""
        if not begun:
            self.derive(0)
        _go_on(self._part, model, begun)
        if begun:
            self.derive(0)

    def derive(self, t: int) -> None:
        self._derived = _derive(self._part, t)
        if t == 0:
            self._at_start = self._derived

    def _tree(self, scales: PackingScales, n_rows: float, allowed: np.ndarray) -> TreeStructure:
        return self._trees.grow(scales, n_rows, allowed)

    def _leaf_sums(self, tree: TreeStructure) -> tuple[np.ndarray, ...]:
        return _leaf_sums(self._part, tree)

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        _add(self._part, tree, values)


class RowsInParts(BoostedRows):
    """Sums over parts elsewhere, which add a tree and derive the next gradients in one round."""

    def __init__(
        self, crew: RowSource, setup: Setup, has_missing: np.ndarray, workers: Workers, copies: RowCopies | None
    ) -> None:
        leaves = setup.leaves.fitter(setup.plan.rules, setup.columns, setup.p_swap, workers)
        super().__init__(setup.columns.borders, leaves, copies)
        self._rows, self._reads_losses = crew, bool(setup.plan.rules.small_leaf_penalty)
        self._can_be_asked = (setup.columns.n_bins > 1) | has_missing
        self._trees_end = crew.mark()
        self._at_start = self._derived = crew.statistics(_derive, 0, keep=True)

    def go_on(self, model: Scorer, n_trees: int, begun: bool) -> None:
        """Continue from the scores of a model's `n_trees`; if `begun`, these trees were fitted to other data."""
        crew = self._rows
        crew.rewind(self._trees_end)
        crew.statistics(_go_on, model, begun, keep=True)
        self._trees_end = crew.mark()
        self._derived = crew.statistics(_derive, n_trees, keep=True)

    def derive(self, t: int) -> None:
        """Do nothing, because `add` derived."""

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        grown: tuple[TreeStructure, np.ndarray] = self._rows.remembered("tree", partial(super().grow, t, allowed))
        return grown

    def _tree(self, scales: PackingScales, n_rows: float, allowed: np.ndarray) -> TreeStructure:
        packs = self._reads_losses or not (allowed & self._can_be_asked).any()
        tree: TreeStructure = self._rows.retried(partial(grow_over_parts, self._rows, scales, n_rows, allowed, packs))
        return tree

    def _leaf_sums(self, tree: TreeStructure) -> tuple[np.ndarray, ...]:
        return tuple(self._rows.statistics(_leaf_sums, tree))

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        """Add tree t to the scores, and in the same round compute the derivatives for the next tree."""
        crew = self._rows
        self._derived = crew.statistics(_add_and_derive, tree, values, t + 1)
        crew.rewind(self._trees_end)
        crew.note(_add, tree, values)
        self._trees_end = crew.mark()
        crew.note(_derive, t + 1)


class WatchedInParts:
    """`Watched` for validation queries in parts."""

    def __init__(self, crew: RowSource, stopping: EarlyStopping | None) -> None:
        self._rows, self.stopping = crew, stopping

    def go_on(self, ranker: Scorer, progress: Progress) -> None:
        if self.stopping is not None and len(progress.valid) != len(progress.trees):
            staged = np.concatenate(self._rows.statistics(_staged, ranker, self.stopping.measure, merge=beside), axis=1)
            progress.valid = [float(self.stopping.measure.aggregate(by_query)) for by_query in staged]
        self._rows.statistics(_go_on, ranker, False, keep=True)

    def value_with(self, tree: TreeStructure, values: np.ndarray) -> float:
        if self.stopping is None:
            self._rows.statistics(_add, tree, values)
            return float("nan")
        measure = self.stopping.measure
        by_query = self._rows.statistics(_add_and_measure, tree, values, measure, merge=beside)
        self._rows.note(_add, tree, values)
        return float(measure.aggregate(joined(by_query)))


# Statistics of a part, which use `part.memory["trees"]`.


class PartTrees:
    """The codes, grades and scores of a part, and the growing tree."""

    g: np.ndarray
    h: np.ndarray

    def __init__(self, part: Part, setup: Setup, training: bool) -> None:
        data = part.data
        self.setup, self.number = setup, part.number
        self.workers = setup.workers or Workers(1)
        X = training_matrix(part, data, setup.workers is not None)
        if not training and setup.categories is not None:
            X = setup.categories.encode(data.X)
        n_jobs = self.workers.n_threads
        borders = setup.columns.borders
        codes = bundle_columns(X, borders) if is_sparse(X) else code_rows(X, borders, n_jobs)
        self.fitter = setup.leaves.fitter(setup.plan.rules, setup.columns, setup.p_swap, self.workers)
        # Plain leaves never read the values again. (A view of no rows would keep them all.)
        self.rows = TrainingRows(X if self.fitter.needs_sample else np.empty((0, X.shape[1]), X.dtype), codes, training)
        self.light = data if setup.workers is not None else data.without_features()
        self.weight = data.row_weight
        self.copies = row_copies(part, setup.copy_unit) if training and setup.copy_unit is not None else None
        self.scores = np.zeros(data.n_rows)
        self.linear = None if setup.linear is None else setup.linear.scores(X, n_jobs)
        self.start: Any = 0.0
        self.sampled: SampledRows | None = None
        self.has_missing: np.ndarray | None = None  # in any part
        self.search: SumSearch | None = None  # this worker's, at its first part
        self.grower: Grower | None = None  # of rows in memory
        self.by_content: np.ndarray | None = None
        if training and setup.query_places is not None:
            y = np.asarray(data.y)
            self.by_content, queries = order_by_content(data.X, y, data.offsets, data.query_weight)
            self.y_by_content, sizes = y[self.by_content], data.group_sizes[queries]
            self.offsets = offsets_of(sizes)
            shift = np.repeat(setup.query_places[self.number][queries] - self.offsets[:-1], sizes)
            self.positions = np.arange(data.n_rows) + shift
            if hasattr(setup.objective, "reorder"):
                setup.objective.reorder(self.by_content)

    def derive(self, t: int) -> None:
        """Compute gradients, hessians and draws of tree t."""
        plan = self.setup.plan
        g, h = self._derivatives(stream(plan.seed, "objective", t))
        self.g, self.h = (g, h) if self.weight is None else (g * self.weight, h * self.weight)
        self.drawn = None
        if plan.replace or plan.subsample < 1.0:
            assert self.setup.query_starts is not None
            assert self.by_content is not None
            rng = stream(plan.seed, "rows", t)
            drawn = draw_rows(rng, self.setup.query_starts, plan.unit, plan.replace, plan.subsample)
            self.drawn = None if drawn is None else at_places(drawn[self.positions], self.by_content)
        self.sampled = None

    def _derivatives(self, rng: np.random.Generator) -> Derivatives:
        """Return gradients and hessians (n,), without weights."""
        objective, y, scores, offsets = self.setup.objective, np.asarray(self.light.y), self.scores, self.light.offsets
        if getattr(objective, "by_place", False):
            order = self.by_content
            assert order is not None
            alone = self.setup.workers is not None
            objective.begin(rng if alone else _RowDraws(rng, self.setup.n_rows, self.positions))
            g, h = checked(objective, self.y_by_content, scores[order], self.offsets)
            return at_places(g, order), at_places(h, order)
        objective.begin(rng)
        if not (getattr(objective, "by_row", False) and len(y)):
            return checked(objective, y, scores, offsets)
        gradients = np.empty_like(scores)

        def derive(start: int, stop: int) -> float:
            rows = slice(start, stop)
            gradients[rows], hessians = checked(objective, y[rows], scores[rows], offsets, start)
            return float(hessians[0])

        hessian = self.workers.run(derive, row_blocks(len(scores)))[0]
        return gradients, np.broadcast_to(hessian, scores.shape)

    def grow(self, scales: PackingScales, n_rows: float, allowed: np.ndarray) -> TreeStructure:
        """Return the next tree, for rows in memory."""
        rows, g, h = drawn_rows(self.g, self.h, self.drawn)
        if not self.fitter.needs_sample:
            del self.g, self.h  # memory
        packed = pack_rows(rows, g, h, scales, self.workers)
        del rows, g, h
        if self.grower is None:
            self.grower = grower_of(self.rows.matrix, self.setup.plan.rules, self.workers)
        return self.grower.grow(packed, allowed, n_rows)

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
        if t == 0 or (self.fitter.needs_sample and not self.setup.objective.quadratic):
            whole = sizes if self.drawn is None else GradientSizes.of(self.g, self.h, self.workers)
            weight = np.broadcast_to(1.0, self.scores.shape) if self.weight is None else self.weight
            sums |= {"all_gradients": whole.gradients, "all_hessians": whole.hessians, "weight": exact_parts(weight)}
        return sums


class _Sums(dict[str, Any]):
    """Sums by name, which can be added to other sums of the same names."""

    def __add__(self, other: dict[str, Any]) -> _Sums:
        return _Sums({name: value + other[name] for name, value in self.items()})


class _RowDraws:
    """The draws of a generator for some rows, the same as on one machine; O(n) for each row of draws."""

    def __init__(self, rng: np.random.Generator, n: int, positions: np.ndarray) -> None:
        self.rng, self.n, self.positions = rng, n, positions

    def logistic(self, size: tuple[int, int]) -> np.ndarray:
        return np.array([self.rng.logistic(size=self.n)[self.positions] for _ in range(size[0])]).reshape(size)

    def random(self, size: int) -> np.ndarray:
        return self.rng.random(self.n)[self.positions]


def training_matrix(part: Part, data: RankingData, in_memory: bool) -> Any:
    """Return the part's rows for trees, with the statistics of categories: dense, or CSC if sparse and in memory."""
    X: Any = data.X
    if is_sparse(X):
        if not in_memory:
            return X.toarray()
        if "by column" not in part.memory:
            part.memory["by column"] = summed(X).tocsc()
        return part.memory["by column"]
    if "statistics" in part.memory:
        columns, values = part.memory["statistics"]
        X = X.copy()
        X[:, columns] = values
    return X


def category_values(part: Part, columns: np.ndarray) -> list[np.ndarray]:
    return [part.data.X[:, columns]]


def take_statistics(part: Part, columns: np.ndarray, values: list[np.ndarray]) -> None:
    part.memory["statistics"] = np.array(columns), np.array(values[part.number])


def linear_sums(part: Part, scaling: Scaling) -> tuple[np.ndarray, np.ndarray, float]:
    data = part.data
    return linear_start_sums(
        training_matrix(part, data, False), np.asarray(data.y), data.offsets, data.row_weight, scaling
    )


def query_hashes(part: Part) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    data = part.data
    return [(*content_hashes(data.X, np.asarray(data.y), data.offsets)[2:], data.group_sizes)]


def count_copies(part: Part, unit: CopyUnit) -> int:
    return int(row_copies(part, unit).sum())


def open_training(part: Part, setup: Setup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    part.memory.pop("sorted", None)
    trees = part.memory["trees"] = PartTrees(part, setup, True)
    y = np.asarray(trees.light.y)
    if trees.linear is not None:
        y = y - trees.linear
    weight = np.broadcast_to(1.0, y.shape) if trees.weight is None else trees.weight
    grades = y if trees.weight is None else trees.weight * y
    return trees.rows.matrix.has_missing.astype(np.int64), exact_parts(grades), exact_parts(weight)


def open_validation(part: Part, setup: Setup, start: float, has_missing: np.ndarray) -> None:
    part.memory["trees"] = PartTrees(part, setup, False)
    start_scores(part, start, has_missing)


def start_scores(part: Part, start: float, has_missing: np.ndarray) -> None:
    trees = part.memory["trees"]
    trees.has_missing = np.array(has_missing)
    trees.scores[:] = start
    trees.start = start
    if trees.linear is not None:
        trees.scores += trees.linear
        trees.start = trees.scores.copy()


def _go_on(part: Part, model: Any, begun: bool) -> None:
    trees = part.memory["trees"]
    trees.scores[:] = part.data.scores(model)
    if begun:  # on other data the model may stand worse than a constant
        trees.start = trees.scores.copy()


def _staged(part: Part, ranker: Any, measure: Any) -> list[np.ndarray]:
    rows = part.data.as_grouped()
    judgements = rows.judgements()
    return [np.array([measure.per_query(judgements, scores) for scores in ranker.staged_predict(rows)])]


def _derive(part: Part, t: int) -> dict[str, Any]:
    trees = part.memory["trees"]
    trees.derive(t)
    return trees.sizes(t)


def _leaf_sums(part: Part, tree: TreeStructure) -> tuple[np.ndarray, ...]:
    trees = part.memory["trees"]
    return trees.fitter.sums(tree, trees.rows, Sample(trees.g, trees.h, trees.drawn))


def _add(part: Part, tree: TreeStructure, values: np.ndarray) -> None:
    trees = part.memory["trees"]
    trees.sampled = None
    trees.fitter.add(tree, trees.rows, np.array(values), trees.scores)


def _add_and_derive(part: Part, tree: TreeStructure, values: np.ndarray, t: int) -> dict[str, Any]:
    _add(part, tree, values)
    return _derive(part, t)


def _add_and_measure(part: Part, tree: TreeStructure, values: np.ndarray, measure: Any) -> list[np.ndarray]:
    _add(part, tree, values)
    trees = part.memory["trees"]
    return [np.asarray(measure.per_query(trees.light.judgements(), trees.scores))]
