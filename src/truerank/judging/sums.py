"""Measures that are sums over documents, and the weights of documents in runs.

A measure M = (1/Q) Σ_d w(d) g(d) has weights w from the ranks and gains g from the grades: DCG, P, RBP, and R with
known totals. Estimates from a sample of documents are unbiased only for these measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from truerank.core.errors import InvalidInputError, Remedy
from truerank.core.types import MeasureLike
from truerank.data.ranking_data import Judgements
from truerank.io.trec import Run, as_qrels, as_run
from truerank.measures.base import Measure
from truerank.measures.coverage import check_topics
from truerank.measures.derived import read_grades
from truerank.measures.evaluation import runs_by_name
from truerank.measures.names import parse_measures
from truerank.measures.ndcg import discounts, gain_of_grade
from truerank.measures.ranking import Ranking

SUMS = ("DCG", "P", "RBP", "R")


def sum_measure(measure: MeasureLike, convention: str = "trec", totals: Mapping[Any, float] | None = None) -> Measure:
    """Return the measure, which must be a single sum over documents; `totals` apply only to R."""
    parsed = parse_measures(measure, convention)
    if len(parsed) != 1:
        raise InvalidInputError(
            f"a plan requires one measure, got {len(parsed)}: {', '.join(parsed)}. Create a plan for each",
            code="several-measures",
        )
    (one,) = parsed.values()
    if one.NAME not in SUMS:
        raise InvalidInputError(
            f"{one.name} is not a sum over documents, and has no valid interval from few judgements. "
            f"Choose DCG@k, P@k, RBP, or R@k with totals=, for example DCG@{one.cutoff or 10}",
            argument="measure",
        )
    if one.setting("judged_only") or one.setting("ties") not in ("trec", "stable"):
        raise InvalidInputError(f"{one!r}: its ranks depend on the judgements. Omit judged_only and ties=")
    if one.setting("empty") != "zero":
        raise InvalidInputError(
            f"{one.name} ({one.convention}) does not count 0 for topics without relevant documents, which are known "
            f"only after judging. Choose convention='trec'",
            argument="convention",
        )
    if (one.NAME == "R") != (totals is not None):
        lacks = "requires totals={topic: number of relevant documents}"
        raise InvalidInputError(
            f"{one.name} {lacks if one.NAME == 'R' else 'does not use totals=, which belong to R@k'}", argument="totals"
        )
    return one


def gains(measure: Measure, grades: np.ndarray) -> np.ndarray:
    """Return the gain of each grade; the gain of NaN is NaN."""
    known = read_grades(np.where(np.isnan(grades), 0.0, grades), measure.setting("grades"))
    if measure.NAME != "DCG":
        credit = known if measure.NAME == "RBP" and measure.setting("graded") else 1.0
        return np.where(np.isnan(grades), np.nan, credit * (known >= measure.rel))
    for grade, other in measure.setting("gains") or ():
        known = np.where(grades == grade, float(other), known)
    return np.where(np.isnan(grades), np.nan, gain_of_grade(known, measure.setting("gain")))


def _rank_weights(measure: Measure, size: int) -> np.ndarray:
    """Return the weights of the first ranks of a list of the given size."""
    k = size if measure.cutoff is None else measure.cutoff
    if measure.NAME == "DCG":
        return discounts(measure.setting("discount"), size)[:k]
    if measure.NAME == "RBP":
        return ((1.0 - measure.setting("p")) * measure.setting("p") ** np.arange(size, dtype=np.float64))[:k]
    weight, short = 1.0, measure.setting("short")
    if measure.NAME == "P":
        weight = 0.0 if short == "zero" and size < k else 1.0 / (min(size, k) if short == "shorten" else k)
    return np.full(min(size, k), weight)


class Frame:
    """The N documents with weight in a run.

    Attributes: names of the `runs`, `topics` of the mean, `keys` (topic, document) in order, the number of each
    document's `topic` (N,), and the `weights`, a csr_matrix (runs, N).
    """

    def __init__(
        self, runs: object, measure: Measure, topics: str | None = None, totals: Mapping[Any, float] | None = None,
        among: Sequence[tuple[str, str]] | None = None,
    ) -> None:  # fmt: skip
        named = runs_by_name(runs)
        named = {as_run(runs).tag or "run": as_run(runs)} if named is None else named
        if not named:
            raise InvalidInputError("there are no runs. Pass a dict of runs by name", argument="runs")
        self.runs = list(named)
        for run in named.values() if among else ():
            refuse_lost_zeros(zip(*among or ()), (run.query_ids, run.doc_ids))
        planned = None if among is None else list(dict.fromkeys(topic for topic, _ in among))
        self.topics = _settled(named, topics, planned)
        place = {topic: number for number, topic in enumerate(self.topics)}
        known = {str(topic): float(total) for topic, total in (totals or {}).items()}
        if measure.NAME == "R" and (lacking := [topic for topic in self.topics if topic not in known]):
            raise InvalidInputError(f"totals= lacks topic {lacking[0]!r} ({len(lacking)} are missing). Add each topic")
        found: list[dict[tuple[int, str], float]] = []
        for run in named.values():
            own: dict[tuple[int, str], float] = {}
            order = in_ranked_order(run, measure)
            for name, start, stop in zip(run.query_ids.tolist(), run.offsets[:-1].tolist(), run.offsets[1:].tolist()):
                if (topic := place.get(name)) is None:
                    continue
                weights = _rank_weights(measure, stop - start)
                if measure.NAME == "R":
                    weights = weights / known[name] if known[name] > 0 else 0.0 * weights
                documents = run.doc_ids[order[start : start + len(weights)]].tolist()
                own.update(((topic, document), weight) for document, weight in zip(documents, weights.tolist()))
            found.append(own)
        every = sorted({key for own in found for key in own})
        if not every:
            raise InvalidInputError(
                f"{measure.name}: no document of any run has weight. Check that the lists are long enough"
            )
        column = {key: number for number, key in enumerate(every)}
        indices = [column[key] for own in found for key in own]
        values = [weight for own in found for weight in own.values()]
        ends = np.cumsum([0, *map(len, found)])
        self.weights = csr_matrix((values, indices, ends), shape=(len(found), len(every)))
        self.keys = [(self.topics[topic], document) for topic, document in every]
        self.topic = np.array([topic for topic, _ in every], dtype=np.int64)

    def grades(self, qrels: object) -> np.ndarray:
        """Return the grades (N,) of the documents in qrels; NaN for missing and negative grades."""
        known = as_qrels(qrels)
        table = known.by_topic(known.grades)
        found = np.array([table.get(topic, {}).get(document, np.nan) for topic, document in self.keys], dtype=float)
        return np.where(found >= 0, found, np.nan)

    def difference(self, a: str, b: str | None) -> np.ndarray:
        """Return the weights (N,) of run a, minus the weights of run b if given."""
        own = self._of(a)
        return own if b is None else own - self._of(b)

    def _of(self, run: str) -> np.ndarray:
        if run not in self.runs:
            raise InvalidInputError(
                f"there is no run {run!r}. Choose among: {', '.join(self.runs[:20])}", code="unknown-run"
            )
        return np.asarray(self.weights[self.runs.index(run)].toarray()[0])

    def mean_square(self, pairs: str | Sequence[tuple[str, str]] | None) -> np.ndarray:
        """Return the root mean square (N,) of weights, or of their differences over `pairs` of runs."""
        squares, n = np.asarray(self.weights.multiply(self.weights).sum(axis=0))[0], len(self.runs)
        if pairs is None or n == 1:
            return np.sqrt(squares / n)
        if isinstance(pairs, str):
            if pairs != "all":
                raise InvalidInputError(argument="pairs", expected='"all", None or a list of (run, run)', value=pairs)
            sums = np.asarray(self.weights.sum(axis=0))[0]
            return np.sqrt(np.maximum(n * squares - sums**2, 0.0) / (n * (n - 1) / 2))
        if not len(pairs):
            raise InvalidInputError('pairs is empty. Name pairs of runs, or use pairs="all"', argument="pairs")
        return np.sqrt(np.mean([self.difference(a, b) ** 2 for a, b in pairs], axis=0))


def refuse_lost_zeros(planned: Iterable[Any], others: Iterable[Any]) -> None:
    """Raise InvalidInputError if topics or documents of a plan equal ids of runs or qrels without leading zeros."""
    for own, given in zip(map(set, planned), map(set, others)):
        whole = {name.lstrip("0") or "0": name for name in given - own if name[:1] == "0"}
        lost = [name for name in own - given if name in whole]
        if lost and not any(name[:1] == "0" and len(name) > 1 for name in own):
            raise InvalidInputError(
                f"ids differ by leading zeros: the plan has {min(lost)!r}, elsewhere it is {whole[min(lost)]!r} "
                f"({len(lost)} such ids). A spreadsheet has probably changed the plan: import the columns topic and "
                f"document as text, or copy the grades into the original plan",
                code="leading-zeros",
            )


def _settled(runs: Mapping[str, Run], topics: str | None, among: list[str] | None) -> list[str]:
    """Return the topics of the mean: the topics that the runs (and the plan) share, or all topics."""
    check_topics(topics)
    own = {name: set(run.query_ids.tolist()) for name, run in runs.items()}
    every = among or list(dict.fromkeys(topic for run in runs.values() for topic in run.query_ids.tolist()))
    common = [topic for topic in every if all(topic in there for there in own.values())]
    of = " of the plan" if among is not None else ""
    if len(common) < len(every) and topics is None:
        name, lacking = max(((n, len(set(every) - there)) for n, there in own.items()), key=lambda one: one[1])
        raise InvalidInputError(
            f"{name!r} lacks {lacking} of the {len(every)} topics{of}",
            argument="topics",
            remedies=[
                Remedy(f"for the {len(common)} topics that all runs have", topics="common"),
                Remedy("to count missing topics as 0", topics="all"),
            ],
            code="different-topics",
        )
    chosen = every if topics == "all" else common
    if not chosen:
        raise InvalidInputError(
            f"the runs share no topic{of}. Use the same topic ids in all of them",
            argument="runs",
            code="no-common-topic",
        )
    return [str(topic) for topic in chosen]


def in_ranked_order(run: Run, measure: Measure) -> np.ndarray:
    """Return the rows of a run in ranked order within its topics, independent of grades."""
    judgements = Judgements(np.zeros(run.n_rows), run.offsets, tie_keys=run.doc_ids, query_ids=run.query_ids)
    return Ranking(judgements, run.scores).ordered(measure.setting("ties"), measure.setting("compare")).rows[0]
