"""Polynomials in fuzzy leaves, which trees do not have: what they would be worth, on validation queries of real sets.

    export TRUERANK_DATA=DIR
    python -m benchmarks.rankers.bench_fuzzy_polynomials [mq2008] [ohsumed] [mslr] [--divisions N]

A leaf's polynomial of degree 1 counts with the row's share P(l) of the leaf, so that membership and slope both change
gradually: f(x) = Σ_l P(l) y_lᵀ φ(x), φ the constant and the tree's features, standardised. Coefficients, made here,
with gradients g, hessians h and λ between neighbours as `trees.leaves.polynomial` has it:

* local: those of Σ_l ½ y_lᵀ A_l y_l - b_lᵀ y_l with A_l = Σ P(l) h φ φᵀ and b_l = -Σ P(l) g φ, as fuzzy leaves have
  theirs. Since Σ_l P(l) = 1 and squares are convex that bounds the loss, so that training falls with every tree.
* joint: the Newton step of all leaves, by least squares on the products P(l) φ; in the first folds alone.

λ is a share of the rows; "chosen": the share of which 20 trees rank the training queries best, each left out once of
three folds. Squared error, 100 trees, all else at the defaults. N divisions into five folds (3): the published one of
MQ2008 and OHSUMED (training and validation queries) and random ones; a query's values are averaged over them. By set:
nDCG@5, nDCG@10, AP, then t of the differences by query to fuzzy and to polynomial leaves (nDCG@10).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from reproductions.protocol import Fold
from scipy import stats

from benchmarks.rankers.bench_oblivious_quality import assignments
from truerank import ObliviousBoosting, PolynomialLeaves, RankingData
from truerank.core.printing import table
from truerank.core.threads import Workers
from truerank.data.splits import query_folds
from truerank.matrices.binning import code_rows
from truerank.matrices.exact_sums import exact_total
from truerank.measures import parse_measure
from truerank.trees.boosting import BoostedRows, Progress, TreePlan, boost, change_parts
from truerank.trees.grower import Grower, GrowthRules, TreeStructure
from truerank.trees.histogram import GradientSizes, PackingScales, drawn_rows, pack_rows
from truerank.trees.leaves.fuzzy import FuzzyFitter, FuzzyLeaves
from truerank.trees.leaves.polynomial import solve_jointly
from truerank.trees.rows import Sample, TrainingRows
from truerank.trees.training_columns import Scaling, scan_training_columns

SETS = ("mq2008", "ohsumed", "mslr")
MEASURES = [parse_measure(name, "ranklib") for name in ("nDCG@5", "nDCG@10", "AP")]
TREES, TRIAL, RATE, DEPTH, BORDERS = 100, 20, 0.1, 6, 64
SHARES = (0.01, 0.1, 1.0)
Scores = Callable[[RankingData, RankingData, int], np.ndarray]


class SquaredErrorRows(BoostedRows):
    """Rows for squared error and leaves that the package does not have."""

    def __init__(
        self,
        y: np.ndarray,
        rows: TrainingRows,
        start: float,
        leaves: FuzzyPolynomials,
        plan: TreePlan,
        workers: Workers,
    ) -> None:
        self._y, self._rows, self._start, self._leaves, self._workers = y, rows, start, leaves, workers
        self._scores, self.borders = np.full(len(y), start), rows.matrix.borders
        self._grower = Grower(rows.matrix, plan.rules, workers)

    def derive(self, t: int) -> None:
        self._g, self._h = self._scores - self._y, np.ones(len(self._y))

    def sizes(self) -> GradientSizes:
        return GradientSizes.of(self._g, self._h, self._workers)

    def change(self) -> float:
        return exact_total(change_parts(self._start, self._g, self._h, self._scores, self._workers))

    def grow(self, t: int, allowed: np.ndarray) -> tuple[TreeStructure, np.ndarray]:
        rows = drawn_rows(self._g, self._h, None)
        tree = self._grower.grow(pack_rows(*rows, PackingScales.of(self.sizes()), self._workers), allowed)
        return tree, self._leaves.fit(tree, self._rows, Sample(self._g, self._h, None))

    def add(self, t: int, tree: TreeStructure, values: np.ndarray) -> None:
        self._leaves.add(tree, self._rows, values, self._scores)


class FuzzyPolynomials:
    """Fits and evaluates a tree's polynomials, λ = `share` times the rows; the `scores` of `valid` are advanced too."""

    needs_sample = True

    def __init__(
        self, fuzzy: FuzzyFitter, scaling: Scaling, share: float, joint: bool, valid: TrainingRows, scores: np.ndarray
    ):
        self.fuzzy, self.scaling, self.share, self.joint = fuzzy, scaling, share, joint
        self.valid, self.scores = valid, scores

    def fit(self, tree: TreeStructure, rows: TrainingRows, sample: Sample) -> np.ndarray:
        """Coefficients (leaves, M); the validation rows' scores are advanced by them."""
        shares, phi = self.shares(tree, rows), self.features(tree, rows)
        g, h = (np.broadcast_to(one, len(phi)) for one in sample.block(0, len(phi)))
        (leaves, m), penalty = (shares.shape[1], phi.shape[1]), self.share * float(h.sum())
        right = -(shares.T @ (g[:, None] * phi))
        if self.joint:
            values = self._newton(shares, phi, h, right, penalty)
        else:
            squares = (phi[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
            matrix = (shares.T @ (h[:, None] * squares)).reshape(leaves, m, m)
            values = solve_jointly(matrix, right, 0.0, penalty)
        self.add(tree, self.valid, RATE * values, self.scores)
        return values

    def add(self, tree: TreeStructure, rows: TrainingRows, values: np.ndarray, scores: np.ndarray) -> None:
        """Add the tree's value of every row to the scores (n,)."""
        scores += ((self.shares(tree, rows) @ values) * self.features(tree, rows)).sum(axis=1)

    def shares(self, tree: TreeStructure, rows: TrainingRows) -> np.ndarray:
        """P(l) of every row (n, leaves)."""
        shares = np.ones((rows.matrix.n_rows, 1))
        for table_of_level, states in zip(self.fuzzy._tables(tree, rows), self.fuzzy._states(tree, rows)):
            right = table_of_level[states][:, None]
            shares = np.concatenate([shares * (1.0 - right), shares * right], axis=1)
        return shares

    def features(self, tree: TreeStructure, rows: TrainingRows) -> np.ndarray:
        """φ of every row (n, M): 1 and the tree's different features."""
        z = self.scaling.take(rows.X, np.unique(tree.features).astype(np.int64))
        return np.concatenate([np.ones((1, z.shape[1])), z]).T

    @staticmethod
    def _newton(shares: np.ndarray, phi: np.ndarray, h: np.ndarray, right: np.ndarray, penalty: float) -> np.ndarray:
        leaves, m = right.shape
        products = (shares[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
        matrix = products.T @ (h[:, None] * products)
        number = np.arange(leaves)
        apart = np.bitwise_count(number[:, None] ^ number)
        neighbours = np.where(apart == 1, -1.0, 0.0) + np.diag(np.full(leaves, float(leaves.bit_length() - 1)))
        matrix += penalty * np.kron(neighbours, np.eye(m))
        matrix[np.diag_indices_from(matrix)] += 1e-9 * np.trace(matrix) / len(matrix)
        return np.linalg.solve(matrix, right.ravel()).reshape(leaves, m)


class NoTrees(Progress):
    """The trees are not kept: the scores are what is asked for."""

    def add(self, tree: TreeStructure, values: np.ndarray, borders: list[np.ndarray], depth: int) -> None:
        """Forget the tree."""

    def keep(self, n_trees: int) -> None:
        """All scores stay."""


def fuzzy_polynomials(share: float, joint: bool, train: RankingData, valid: RankingData, trees: int) -> np.ndarray:
    """Scores of the validation rows."""
    assert train.y is not None
    leaves = FuzzyLeaves()
    columns = scan_training_columns(train.X, None, BORDERS, leaves, scaled=True, clip=True, known_places={}, n_jobs=1)
    start = float(train.y.mean())
    scores = np.full(valid.n_rows, start)
    plan = TreePlan(trees, np.full(trees, RATE), GrowthRules(DEPTH, 0.0, 0.0, None), "row", False, 1.0, 1.0, 0)
    with Workers(1) as workers:
        p = leaves.swap_probability(train.n_rows)
        fuzzy = FuzzyFitter(0.0, None, columns.places, p, leaves.ties, workers)
        rows, seen = (TrainingRows(data.X, code_rows(data.X, columns.borders, 1)) for data in (train, valid))
        assert columns.scaling is not None
        fitter = FuzzyPolynomials(fuzzy, columns.scaling, share, joint, seen, scores)
        boosted = SquaredErrorRows(np.asarray(train.y), rows, start, fitter, plan, workers)
        boost(boosted, plan, None, NoTrees(), True)
    return scores


def named(leaves: Any, train: RankingData, valid: RankingData, trees: int) -> np.ndarray:
    """Scores of trees that there are."""
    if isinstance(leaves, float):
        leaves = PolynomialLeaves(smoothing=leaves * train.n_rows)
    return np.asarray(ObliviousBoosting(leaves, n_estimators=trees).fit(train).predict(valid))


def chosen(make: Callable[[float], Scores], train: RankingData, valid: RankingData, trees: int) -> np.ndarray:
    """Scores with the λ that ranks training queries left out best."""
    every, worth = np.arange(train.n_queries), dict.fromkeys(SHARES, 0.0)
    for part in query_folds(train.n_queries, 3, random_state=0):
        rest, left_out = train.take_queries(np.setdiff1d(every, part)), train.take_queries(part)
        for share in SHARES:
            scores = make(share)(rest, left_out, TRIAL)
            worth[share] += MEASURES[1].mean(left_out.judgements(), scores) * left_out.n_queries
    return make(max(worth, key=worth.__getitem__))(train, valid, trees)


def contestants() -> dict[str, Scores]:
    """What gives scores, by name."""
    local = lambda share: partial(fuzzy_polynomials, share, False)  # noqa: E731
    polynomial = lambda share: partial(named, share)  # noqa: E731
    return {
        **{kind: partial(named, kind) for kind in ("constant", "fuzzy", "polynomial")},
        **{f"polynomial, λ {share:g}": polynomial(share) for share in SHARES if share != 0.1},
        "polynomial, λ chosen": partial(chosen, polynomial),
        **{f"fuzzy polynomials, local, λ {share:g}": local(share) for share in SHARES},
        "fuzzy polynomials, local, λ chosen": partial(chosen, local),
        "first folds: local, λ 0.1": local(0.1),
        "first folds: joint, λ 0.1": partial(fuzzy_polynomials, 0.1, True),
    }


def divisions(name: str, number: int) -> list[list[Fold]]:
    """Folds whose validation parts hold every query once, so many times."""
    root = os.environ["TRUERANK_DATA"]
    if name == "mslr":
        return [folds for _, folds in assignments(name, root, number)]
    published = [folds for _, folds in assignments(name, root, 1)]
    return published + [folds for _, folds in assignments(f"{name} random", root, number - 1)]


def values_by_query(scores: Scores, folds: list[Fold]) -> np.ndarray:
    """Values (queries, measures) of the validation queries of all folds, in the order of their ids."""
    values: dict[str, list[float]] = {}
    for fold in folds:
        judgements, found = fold.valid.judgements(), scores(fold.train, fold.valid, TREES)
        own = np.transpose([measure.per_query(judgements, found) for measure in MEASURES])
        values |= dict(zip(map(str, fold.valid.query_ids), own.tolist()))
    return np.array([values[query] for query in sorted(values)])


def run(argv: list[str] | None = None) -> None:
    """Print a line for each set and contestant; of all sets where none is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--divisions", type=int, default=3)
    args = parser.parse_args(argv or [])
    header = ["set", "leaves", *(measure.name for measure in MEASURES), "t, fuzzy", "t, polynomial"]
    for name in args.sets:
        every = divisions(name, args.divisions)
        known: dict[str, np.ndarray] = {}
        rows: list[list[Any]] = []
        for leaves, scores in contestants().items():
            first = leaves.startswith("first")
            values = np.mean([values_by_query(scores, folds) for folds in every[: 1 if first else None]], axis=0)
            known[leaves] = values
            tests = []
            for other in ("fuzzy", "polynomial"):
                compared = not first and leaves != other and other in known
                t = stats.ttest_rel(values[:, 1], known[other][:, 1]).statistic if compared else np.nan
                tests.append(f"{t:+.2f}" if compared else "")
            rows.append([name, leaves, *(f"{x:.4f}" for x in values.mean(axis=0)), *tests])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
        sys.stdout.write(table(rows, header) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1:])
