"""Compare a learned fusion with unlearned methods by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from truerank.core.errors import InvalidInputError
from truerank.core.printing import progress, styled_table
from truerank.core.results import Result
from truerank.core.types import MeasuresLike, RandomState
from truerank.data.grouping import offsets_of, places_of
from truerank.data.splits import query_folds
from truerank.features.fusion import METHODS
from truerank.features.rules import comb_sum
from truerank.features.run_pool import RunPool
from truerank.io.trec import Run
from truerank.measures import mean_of, parse_measures
from truerank.measures.base import Measure
from truerank.measures.coverage import Coverage, covered_topics
from truerank.rankers.run_fusion import RunFusion
from truerank.significance import measure_interval
from truerank.significance.comparison import MeasuredValues, compare_measures
from truerank.significance.comparison_text import family, remarks_below
from truerank.significance.paired import LEVEL
from truerank.significance.tables import PairComparison

DEPTH = 1000  # documents of a fused list that are measured
UNLEARNED: dict[str, Callable[[RunPool], np.ndarray]] = {
    name: METHODS[name] for name in ("rrf", "comb-sum", "comb-mnz", "comb-anz", "borda")
}
LEARNED = "learned"


class FusionEvidence(Result):
    """The result of `cross_validate_fusion`, with values of every method on topics that were not used for fitting.

    Attributes
    ----------
    measures : dict of str to Measure
        Measures by the name of their mean: "MAP" for AP, else the name of the measure.
    per_query, judged_only : dict of str to dict of str to float64 array (m,)
        Values by measure and method: "learned", "rrf", "comb-sum", "comb-mnz", "comb-anz", "borda", "weighted-sum"
        (with the runs' training means, or 1 minus the mean of an error), "best-run" (the best run on the training
        topics); also judged documents only.
    best_runs : list of str
        The best run on the training topics of each fold.
    held_out : dict of str to Run
        The run of each learned fusion, whose topics are fused with weights learned from other topics.
    recommended, reason : str
        "learned" if it is better by the first measure than every other method and the best single run, each with a
        corrected p below 0.05. Otherwise, the highest mean among the methods that are not significantly worse.
    comparisons : dict of str to Comparison
        Comparison of each unlearned method with "learned", by measure; p is corrected for all measures together.
    """

    KIND = "fusion"

    def __init__(
        self,
        measures: dict[str, Measure],
        per_query: dict[str, dict[str, np.ndarray]],
        judged_only: dict[str, dict[str, np.ndarray]],
        query_ids: np.ndarray,
        best_runs: list[str],
        n_folds: int,
        random_state: RandomState,
        coverage: Coverage | None = None,
        held_out: Mapping[str, Run] | None = None,
    ) -> None:
        self.measures, self.per_query, self.judged_only = measures, per_query, judged_only
        self.query_ids, self.best_runs, self.n_folds, self.coverage = query_ids, best_runs, n_folds, coverage
        self.held_out = dict(held_out or {})
        measured = [
            MeasuredValues(values, name, measures[name].convention, measures[name].higher_is_better, by=measures[name])
            for name, values in per_query.items()
        ]
        found = compare_measures(measured, baseline=LEARNED, query_ids=query_ids, random_state=random_state)
        self.comparisons = dict(zip(per_query, found))
        self.intervals = {
            name: {method: measure_interval(measures[name], one) for method, one in values.items()}
            for name, values in per_query.items()
        }
        self.recommended, self.reason = self._recommend()

    def means(self, judged_only: bool = False) -> dict[str, dict[str, float]]:
        """Return the mean by measure and method."""
        source = self.judged_only if judged_only else self.per_query
        return {name: {method: mean_of(one) for method, one in values.items()} for name, values in source.items()}

    def better_than(self, method: str) -> bool:
        """Return whether "learned" is better than a method by the first measure, with a corrected p below 0.05."""
        pair = next(pair for pair in next(iter(self.comparisons.values())).pairs if pair.a == method)
        return pair.difference < 0 and pair.p_adjusted < LEVEL

    def _recommend(self) -> tuple[str, str]:
        name, comparison = next(iter(self.comparisons.items()))
        means, higher = comparison.means, comparison.higher_is_better

        def shown(pair: PairComparison) -> str:
            runs = f" ({', '.join(sorted(set(self.best_runs)))})" if pair.a == "best-run" else ""
            gain = f"learned minus {pair.a} {_gain(pair)}, p = {pair.p_adjusted:.3g}"
            return f"  {pair.a}{runs}: {means[pair.a]:.4f}, {gain}"

        ordered = sorted(comparison.pairs, key=lambda pair: means[pair.a], reverse=higher)
        level = [pair for pair in ordered if not (pair.difference < 0 and pair.p_adjusted < LEVEL)]
        worse = [pair for pair in level if pair.p_adjusted < LEVEL][:1]
        if not level:
            use, why, listed = LEARNED, "the learned fusion is better than every alternative", ordered[:1]
        elif worse:
            use, why, listed = worse[0].a, "the learned fusion is worse", worse
        else:
            use, why, listed = level[0].a, "no significant difference from the learned fusion", level
        about = f"({ordered[0].queries} topics in {self.n_folds} folds, p corrected for {family(comparison)})"
        lines = [f"use {use}: {why}", f"{name} {about}", f"  learned: {means[LEARNED]:.4f}", *map(shown, listed)]
        return use, "\n".join(lines)

    @property
    def summary(self) -> str:
        """A sentence with the recommended method, and the reason."""
        return f"{self.reason.partition(chr(10))[0]}."

    def _figures(self) -> dict[str, Any]:
        result: dict[str, Any] = dict(self.means())
        result["judged_only"] = self.means(judged_only=True)
        result["intervals"] = {
            name: {method: [interval.low, interval.high] for method, interval in values.items()}
            for name, values in self.intervals.items()
        }
        result["comparisons"] = {name: comparison._figures() for name, comparison in self.comparisons.items()}
        result |= {
            "recommended": self.recommended,
            "reason": self.reason,
            "topics": len(self.query_ids),
            "folds": self.n_folds,
            "best_runs": self.best_runs,
            "coverage": None if self.coverage is None else self.coverage.to_dict(),
        }
        return result

    def _table(self, style: str) -> str:
        texts = []
        for name, values in self.per_query.items():
            against = {pair.a: pair for pair in self.comparisons[name].pairs}
            rows: list[list[Any]] = []
            for method, _ in sorted(values.items(), key=lambda item: -mean_of(item[1])):
                interval, pair = self.intervals[name][method], against.get(method)
                ends = "" if interval.low != interval.low else f"[{interval.low:.4f}, {interval.high:.4f}]"
                row: list[Any] = [method, interval.estimate, ends, mean_of(self.judged_only[name][method])]
                row += ["", "", ""] if pair is None else [
                    _gain(pair), f"{pair.losses}/{pair.wins}/{pair.ties}", pair.marked,
                ]  # fmt: skip
                rows.append(row)
            header = [name, "mean", "95% interval", "judged only", "learned minus it, 95%", "wins/losses/ties"]
            texts.append(styled_table(rows, [*header, f"p, {self.comparisons[name].correction}"], style))
        return "\n\n".join(texts)

    def __str__(self) -> str:
        first = next(iter(self.comparisons.values()))
        about = (
            f"{', '.join(self.measures)}, convention {first.convention}; {first.tested}, ** where it is below 0.05; "
            "each interval of a mean is for this mean alone; intervals of differences are simultaneous (single step), "
            "corrected as p is"
        )
        coverage = [] if self.coverage is None else [str(self.coverage)]
        below = "\n".join([about, *coverage, *remarks_below(self.comparisons)])
        return "\n\n".join([super().__str__(), below, self.reason])


def _gain(pair: PairComparison) -> str:
    """Return the gain of the learned fusion with its simultaneous interval, which has the correction of p_adjusted."""
    assert pair.simultaneous is not None  # by the default correction
    _, low, high = pair.simultaneous
    return f"{-pair.difference:+.4f}" + ("" if low != low else f" [{-high:+.4f}, {-low:+.4f}]")


def cross_validate_fusion(
    pool: RunPool,
    model: RunFusion | None = None,
    *,
    others: Mapping[str, RunFusion] | None = None,
    measures: MeasuresLike = "AP nDCG@10",
    convention: str = "trec",
    cv: int = 5,
    depth: int = DEPTH,
    topics: str | None = None,
    random_state: RandomState = 0,
) -> FusionEvidence:
    """Compare a learned fusion with unlearned methods, on topics that were not used for training.

    Parameters
    ----------
    pool : RunPool with judgements
    model : RunFusion, optional
        Fusion that is cloned and fitted to the training topics of each fold.
    others : mapping of name to RunFusion, optional
        Other learned fusions, which are fitted to the same topics and compared with the model.
    measures, convention
        Lists are cut at `depth`. Relevant documents outside a list reduce its value, also documents that no run found.
        A topic without documents has the value 0.
    cv : int, default 5
        Number of folds of topics, drawn by the seed and the names of topics.
    depth : int, default 1000
    topics : "common", "all" or None, default None
        Required for runs with different topics: the topics that all runs have, or all topics of the qrels, where a
        topic that a list lacks counts 0.
    random_state : seed of the folds and the tests

    Raises
    ------
    InvalidInputError
        For fewer topics than folds, no judgements, or runs with different topics without `topics`.
    """
    if pool.grades is None:
        raise InvalidInputError(
            "cross-validation requires judgements. Create the pool with RunPool(runs, qrels)", argument="qrels"
        )
    absent = pool.topics_without_runs
    there = {name: np.append(own, np.zeros(len(absent), bool)) for name, own in zip(pool.names, (pool.lengths > 0).T)}
    kept, coverage = covered_topics(there, topics)
    of_pool, absent = kept[: pool.n_queries], absent if topics == "all" else []
    pool = pool if of_pool.all() else pool.take(np.flatnonzero(of_pool))
    parsed = titled(measures, convention)
    condensed = {name: f"{name}, judged only" for name in parsed}
    measured = parsed | {condensed[name]: measure(judged_only=True) for name, measure in parsed.items()}
    by_run = run_values(pool, measured)
    models = {LEARNED: RunFusion() if model is None else model} | dict(others or {})
    learned = {name: np.zeros(pool.n_rows) for name in models}
    weighted = np.zeros(pool.n_rows)
    best_runs, best_run = [], {name: np.zeros(pool.n_queries) for name in measured}
    first = next(iter(parsed))
    order = np.argsort(pool.query_ids, kind="stable")  # independent of the order of topics in a file
    parts = query_folds(pool.n_queries, cv, random_state=random_state)
    for part in progress(parts, "folds"):
        fold = np.sort(order[part])
        train = np.setdiff1d(np.arange(pool.n_queries), fold)
        training = pool.take(train)
        test = pool.take(fold)
        rows = places_of(pool.offsets, fold)[0]
        for name, one in models.items():
            learned[name][rows] = clone(one).fit(training).pool_scores(test)
        means = by_run[first][:, train].mean(axis=1)
        means = means if parsed[first].higher_is_better else 1.0 - means
        weighted[rows] = comb_sum(test, means)
        best = int(np.argmax(means))
        best_runs.append(pool.names[best])
        for name, values in best_run.items():
            values[fold] = by_run[name][best, fold]
    scores = learned | {name: method(pool) for name, method in UNLEARNED.items()}
    scores["weighted-sum"] = weighted
    found = {method: list_values(pool, one, measured, depth) for method, one in scores.items()} | {"best-run": best_run}
    per_query, judged_only = (
        {
            name: {method: np.append(own[label], np.zeros(len(absent))) for method, own in found.items()}
            for name, label in labels.items()
        }
        for labels in ({name: name for name in parsed}, condensed)
    )
    ids = np.array([*pool.query_ids.tolist(), *absent], dtype=str)
    held_out = {name: pool.to_run(own, depth=depth, tag=name) for name, own in learned.items()}
    return FusionEvidence(parsed, per_query, judged_only, ids, best_runs, len(parts), random_state, coverage, held_out)


def titled(measures: MeasuresLike, convention: str) -> dict[str, Measure]:
    """Return measures by the name of their mean, where a topic without documents counts 0; raise without a mean."""
    parsed = parse_measures(measures, convention)
    return {("MAP" if name == "AP" else name): one(missing_topics="zero").check_mean() for name, one in parsed.items()}


def list_values(
    pool: RunPool, scores: np.ndarray, measures: Mapping[str, Measure], depth: int
) -> dict[str, np.ndarray]:
    """Return per-topic values (m,) of the fused lists, cut at `depth`."""
    rows = pool.best(scores, depth)
    judgements = pool.judgements(rows)
    return {name: measure.per_query(judgements, scores[rows]) for name, measure in measures.items()}


def run_values(pool: RunPool, measures: Mapping[str, Measure]) -> dict[str, np.ndarray]:
    """Return per-topic values (r, m) of the runs."""
    order = np.argsort(pool.run_of_entry, kind="stable")
    ends = offsets_of(pool.lengths.sum(axis=0))
    result = {name: np.zeros((pool.n_runs, pool.n_queries)) for name in measures}
    for run in range(pool.n_runs):
        entries = order[ends[run] : ends[run + 1]]
        judgements = pool.judgements(pool.rows[entries])
        for name, measure in measures.items():
            result[name][run] = measure.per_query(judgements, pool.scores[entries])
    return result
