"""Find whether reranking pays, and to which depth, from quality and cost by the number of reranked documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_number, check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result
from truerank.core.types import MeasureLike, RandomState
from truerank.features.run_pool import RunPool
from truerank.io.trec import as_qrels
from truerank.measures import parse_measure
from truerank.significance.corrections import simultaneous_intervals
from truerank.significance.intervals import Verdict, checked_margin, decided, failing_loss

if TYPE_CHECKING:
    from truerank.calibration.cutoffs import Cutoff

DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
_NAMES = ["first stage", "reranked"]


class DepthLine(NamedTuple):
    """The quality and cost if the first `depth` documents of each query are reranked.

    `difference` is the mean minus the mean at the full depth, and `low` to `high` is its interval, simultaneous over
    depths. `not_worse` holds for the chosen depth and deeper; depths below the first failing depth are not tested.
    """

    depth: int
    documents: float  # that are reranked, mean over queries
    mean: float
    difference: float
    low: float
    high: float
    cost: float
    not_worse: bool  # shown to be not worse by more than the margin than the full depth


@dataclass(frozen=True, repr=False, eq=False)
class RerankingDepth(Result):
    """The result of `reranking_depth`.

    Attributes
    ----------
    chosen : int
        Least depth that is significantly not worse than the full depth by more than the margin; else the full depth.
    full : int
    margin : float
    lines : list of DepthLine
        Lines in ascending order of depth, from 0 (no reranking).
    pays : Verdict
        Verdict on the full depth, compared with no reranking.
    values : float64 array (m, depths)
        Values of the measure by query and depth, in the order of `lines`.
    query_ids : list of str (m,)
    gaps : float64 array (m,)
        Best score of the first stage minus the second best, by query; 0 for a single document.
    """

    measure: str
    convention: str
    chosen: int
    full: int
    margin: float
    lines: list[DepthLine]
    pays: Verdict
    values: np.ndarray
    query_ids: list[str]
    gaps: np.ndarray
    KIND: ClassVar[str] = "depth"

    def by_query(self, at_most: float = 0.02, *, confidence: float = 0.9, depth: int = 0, score: Any = None) -> Cutoff:
        """Return the score of a query from which `depth` documents suffice, with a guaranteed bound on the loss.

        Parameters
        ----------
        at_most : float, default 0.02
            Bound on the mean loss against the full depth, over queries with a score of at least `threshold_`, in the
            unit of a measure between 0 and 1. A query that gains counts as a loss of 0.
        confidence : float, default 0.9
            Probability of the guarantee over samples of such queries.
        depth : int, default 0
            One of the depths of `lines`.
        score : float array (m,), optional
            Confidence of the first stage by query, in the order of `query_ids`; by default `gaps`.

        Returns
        -------
        Cutoff
            Whose `answers(scores)` decides for new queries whether `depth` suffices; the rest require the full depth.

        Raises
        ------
        InvalidInputError
            For another depth, and for losses outside of 0 to 1.

        Examples
        --------
        >>> qrels = {str(q): {"a": 1} for q in range(400)}
        >>> first = {q: {"a": 9.0, "b": 2.0} if int(q) % 2 else {"b": 3.0, "a": 2.5} for q in qrels}
        >>> found = reranking_depth(first, {q: {"a": 1.0, "b": 0.0} for q in qrels}, qrels, "RR")
        >>> cutoff = found.by_query(0.05)
        >>> cutoff.answered_, cutoff.answers([8.0, 0.2]).tolist()
        (0.5, [True, False])
        """
        from truerank.calibration.cutoffs import Cutoff

        places = {line.depth: place for place, line in enumerate(self.lines)}
        if depth not in places:
            raise InvalidInputError(
                f"depth must be one of {', '.join(map(str, places))}, got {depth}", argument="depth"
            )
        losses = np.maximum(self.values[:, -1] - self.values[:, places[depth]], 0.0)
        cutoff = Cutoff(f"of {self.measure} at depth {depth}", at_most=at_most, confidence=confidence, random_state=0)
        cutoff.fit_losses(self.gaps if score is None else score, losses)
        return cutoff

    @property
    def summary(self) -> str:
        """A sentence with the chosen depth, and whether reranking pays."""
        by_depth = {line.depth: line for line in self.lines}
        chosen, full = by_depth[self.chosen], by_depth[self.full]
        none = self.lines[0]
        pays = f"{self.measure} is {full.mean:.4f} with reranking and {none.mean:.4f} without ({self.pays.n} queries)"
        if not self.pays.better:
            worse = "makes the ranking worse" if self.pays.worse else "shows no significant gain"
            return f"Reranking {worse}: {pays}."
        if self.chosen == self.full:
            below = self.lines[-2].depth
            return f"Reranking pays: {pays}. At depth {below}, a loss above {self.margin:g} cannot be excluded."
        if not self.chosen:
            return f"Reranking pays by at most {self.margin:g}: {pays}."
        share = f", at {100 * chosen.cost / full.cost:.3g} % of the cost" if full.cost else ""
        return (
            f"Rerank {self.chosen} documents: not worse by more than {self.margin:g} than {self.full} "
            f"({chosen.mean:.4f} against {full.mean:.4f}){share}. Reranking pays: {pays}."
        )

    def _figures(self) -> dict[str, Any]:
        return {
            "summary": self.summary, "measure": self.measure, "convention": self.convention, "margin": self.margin,
            "chosen": self.chosen, "full": self.full, "queries": self.pays.n, "pays": list(self.pays.kinds),
            "lines": [line._asdict() for line in self.lines],
        }  # fmt: skip

    def _table(self, style: str) -> str:
        rows = [
            [line.depth, f"{line.documents:.4g}", line.mean, f"{line.difference:+.4f}",
             "" if math.isnan(line.low) else f"{line.low:+.4f} to {line.high:+.4f}", f"{line.cost:.4g}",
             "yes" if line.not_worse else ""] for line in self.lines
        ]  # fmt: skip
        header = ["depth", "documents", self.measure, "against full", "95 % interval", "cost", "not worse"]
        return styled_table(rows, header, style)


def reranking_depth(
    first: Any,
    reranked: Any,
    qrels: Any,
    measure: MeasureLike = "nDCG@10",
    *,
    margin: float = 0.01,
    depths: Sequence[int] | None = None,
    cost: float | Mapping[int, float] = 1.0,
    fixed_cost: float = 0.0,
    convention: str = "trec",
    random_state: RandomState = 0,
) -> RerankingDepth:
    """Return quality and cost by reranking depth, and the least depth that is not worse than the full depth.

    At depth k, the first k documents of the first stage are sorted by the reranker's scores; all later documents keep
    their order. Documents without a score of the reranker do not move above documents with a score.

    Parameters
    ----------
    first : run
        Run of the first stage: a path, a `Run`, or `{query: {document: score}}`.
    reranked : run
        Scores of the reranker for its documents, to the full depth. Equal scores keep the order of the first stage.
    qrels : qrels
    measure : str or Measure, default "nDCG@10"
    margin : float, default 0.01
        Loss δ that does not matter, in the unit of the measure.
    depths : sequence of int, optional
        By default, the values of `DEPTHS` below the full depth, which is the last rank with a score of the reranker.
    cost : float or mapping of depth to cost, default 1.0
        Cost of a reranked document, or the measured cost of a query at each depth.
    fixed_cost : float, default 0.0
        Cost of a query that is reranked, in addition to the cost of its documents.
    convention : str, default "trec"
    random_state : seed of the resamples of simultaneous intervals

    Raises
    ------
    InvalidInputError
        For runs and qrels without a common query, a reranker without a document of the first stage, depths above the
        full depth, and measures where lower is better.

    Returns
    -------
    RerankingDepth

    Notes
    -----
    Depths are tested from the deepest down, each against the full depth by the rule of "not worse by more than δ" (see
    `truerank.significance.intervals.verdict`), and the tests stop at the first depth that fails. The level needs no
    correction, because a depth is tested only if all deeper depths have passed. `python -m validation depth` measures
    how often the chosen depth loses more than δ.

    Examples
    --------
    >>> qrels = {str(q): {"a": 1} for q in range(200)}
    >>> first = {query: {"c": 3.0, "a": 2.0, "b": 1.0} for query in qrels}
    >>> scores = {query: {"a": 0.9, "b": 0.2, "c": 0.1} for query in qrels}
    >>> found = reranking_depth(first, scores, qrels, "RR", margin=0.05, depths=[1, 2])
    >>> found.chosen, [line.mean for line in found.lines]
    (2, [0.5, 0.5, 1.0, 1.0])
    """
    delta = checked_margin(margin)
    if delta is None:
        raise InvalidInputError(
            "margin must be a number above 0, got None. Pass the largest loss to accept, such as margin=0.01",
            argument="margin",
        )
    by = parse_measure(measure, convention).check_mean()
    pool = RunPool(dict(zip(_NAMES, (first, reranked))), as_qrels(qrels))
    rank, score = _lists(pool)
    rows = np.flatnonzero(rank > 0)
    scored = ~np.isnan(score[rows])
    full = int(rank[rows][scored].max(initial=0))
    if not full:
        what = "the reranker has no score for any document of the first stage"
        raise InvalidInputError(f"{what}. Check that the ids of both runs agree", code="no-score")
    tried = _checked_depths(depths, full)
    judgements, query = pool.judgements(rows), pool.query_of_row[rows]
    values = np.column_stack([
        by.per_query(judgements, _ranking(query, rank[rows], score[rows], k)) for k in tried
    ])  # fmt: skip
    known = ~np.isnan(values).any(axis=1)
    values = values[known]
    if len(values) < 2:
        raise InvalidInputError(
            f"{by.name} has a value for {counted(len(values), 'query')}, but two are required. Judge more queries"
        )
    verdicts = [_against_full(values, column, delta, by) for column in range(len(tried) - 1)]
    chosen = tried[chosen_depth([one.not_worse for one in verdicts])]
    differences = values[:, :-1] - values[:, -1:]
    ends = simultaneous_intervals(differences, random_state=random_state)
    low, high = (np.append(end, 0.0) for end in (ends.low, ends.high))
    reranked_of = [float((scored & (rank[rows] <= k)).sum()) / pool.n_queries for k in tried]
    lines = [
        DepthLine(k, n, float(values[:, j].mean()), float(values[:, j].mean() - values[:, -1].mean()), float(low[j]),
                  float(high[j]), _cost(k, n, cost, fixed_cost), k >= chosen)
        for j, (k, n) in enumerate(zip(tried, reranked_of))
    ]  # fmt: skip
    pays = decided("t", values[:, -1] - values[:, 0], delta, failing_loss(values[:, 0], values[:, -1], by))
    present, first_score = pool.run_of_entry == 0, np.full(pool.n_rows, np.nan)
    first_score[pool.rows[present]] = pool.scores[present]
    gaps = np.array([_gap(own) for own in np.split(first_score[rows], judgements.offsets[1:-1])])[known]
    names = [str(name) for name in np.asarray(pool.query_ids)[known].tolist()]
    return RerankingDepth(by.name, by.convention, chosen, full, delta, lines, pays, values, names, gaps)


def _gap(scores: np.ndarray) -> float:
    best = np.sort(scores)[-2:]
    return float(best[-1] - best[0]) if len(best) else 0.0


def chosen_depth(not_worse: Sequence[bool]) -> int:
    """Return the index of the chosen depth; tests proceed from the deepest depth, and stop at the first failure.

    >>> chosen_depth([True, False, True, True]), chosen_depth([True, False])
    (2, 2)
    """
    place = len(not_worse)
    while place and not_worse[place - 1]:
        place -= 1
    return place


def _against_full(values: np.ndarray, column: int, margin: float, by: Any) -> Verdict:
    ours, full = values[:, column], values[:, -1]
    loss = failing_loss(full, ours, by)
    if loss is None:
        raise InvalidInputError(
            f"no depth can be tested by {by.name}, because lower values are better. Choose a measure whose higher "
            "values are better",
            argument="measure",
        )
    return decided("t", ours - full, margin, loss)


def _checked_depths(depths: Sequence[int] | None, full: int) -> list[int]:
    if depths is None:
        return [0, *(k for k in DEPTHS if k < full), full]
    tried = sorted({check_positive_int(k, "depths") for k in depths} | {full})
    if tried[-1] > full:
        raise InvalidInputError(
            f"depth {tried[-1]} is above {full}, the last rank for which the reranker has a score. Omit it",
            argument="depths",
        )
    return [0, *tried]


def _lists(pool: RunPool) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's rank in the first stage (0 if absent), and its reranker score or NaN."""
    rank, score = np.zeros(pool.n_rows, dtype=np.int64), np.full(pool.n_rows, np.nan)
    first = pool.run_of_entry == 0
    rank[pool.rows[first]] = pool.ranks[first]
    score[pool.rows[~first]] = pool.scores[~first]
    return rank, score


def _ranking(query: np.ndarray, rank: np.ndarray, score: np.ndarray, depth: int) -> np.ndarray:
    """Return scores (n,) that sort the first `depth` documents of each query by the reranker."""
    moved = ~np.isnan(score) & (rank <= depth)
    order = np.lexsort((rank, np.where(moved, -score, 0.0), ~moved, query))
    result = np.empty(len(rank))
    result[order] = -np.arange(len(rank), dtype=np.float64)
    return result


def _cost(depth: int, documents: float, cost: float | Mapping[int, float], fixed: float) -> float:
    if isinstance(cost, Mapping):
        if depth and depth not in cost:
            raise InvalidInputError(f"cost has no entry for depth {depth}. Add one for each depth", argument="cost")
        return check_number(cost.get(depth, 0.0), "cost", "[0, inf)")
    each = check_number(cost, "cost", "[0, inf)")
    return check_number(fixed, "fixed_cost", "[0, inf)") + each * documents if depth else 0.0
