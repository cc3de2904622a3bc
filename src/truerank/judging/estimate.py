"""Estimate values and differences of runs from few human judgements, with valid intervals for any judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result
from truerank.core.types import MeasureLike
from truerank.data.remarks import Remark
from truerank.judging.plan import Plan, as_plan, check_judged
from truerank.judging.predictions import Factors, judges_labels, make_factors
from truerank.judging.sums import Frame, gains, sum_measure
from truerank.measures.base import Measure
from truerank.significance.corrections import holm
from truerank.significance.intervals import student_quantile

FEWEST_RESIDUALS = 10  # residuals other than 0 below which there is no interval
_SHOWN_PAIRS = 30


@dataclass(frozen=True)
class Estimated:
    """The value of a run, or the difference of two runs (`b` is not None), with intervals; NaN without an interval."""

    a: str
    b: str | None
    value: float  # NaN where a run gives weight to documents outside the plan
    # 95 % interval for these topics, that is of the value if every document were judged; NaN below ten residuals.
    low: float = math.nan
    high: float = math.nan
    # 95 % interval for topics like these.
    low_topics: float = math.nan
    high_topics: float = math.nan
    # Two-sided p of the value 0 for this pair alone, below 0.05 exactly where the interval excludes 0.
    p: float = math.nan
    p_topics: float = math.nan
    # How many times the human judgements are needed without the judges, and with a uniform sample and no judge.
    worth: float = math.nan
    plan_worth: float = math.nan
    # 95 % interval of the first judge's own difference minus the true one: above 0 the judge favours a.
    judge_low: float = math.nan
    judge_high: float = math.nan
    judge_p: float = math.nan  # of the value 0 of this bias, for this pair alone
    residuals: int = 0  # judged documents that contribute to the interval
    outside: int = 0  # documents with weight outside the plan


class Spread(NamedTuple):
    """The standard error of a sum, with its degrees of freedom and the number of terms."""

    error: float
    freedom: int
    residuals: int

    @property
    def half(self) -> float:
        """Return half the width of the 95 % interval."""
        return student_quantile(0.975, self.freedom) * self.error


def spread_of(variances: np.ndarray) -> Spread:
    """Return the spread of a sum of independent terms with these estimated variances (N,).

    If a few terms make up most of the variance, its estimate is uncertain. Student's quantile with Satterthwaite's
    degrees of freedom 2 (Σ v)² / Σ v² accounts for this uncertainty.
    """
    total, squares = float(variances.sum()), float((variances**2).sum())
    freedom = int(2.0 * total**2 / squares) if squares > 0 else 1
    return Spread(math.sqrt(total), freedom, int(np.count_nonzero(variances)))


class Sampled(NamedTuple):
    """The rounds of a plan on the documents of a frame, arrays (rounds, N)."""

    known: np.ndarray  # judged before the round
    drawn: np.ndarray
    chances: np.ndarray  # probabilities in the round, 1 where it does not plan the document
    shares: np.ndarray  # weights of the rounds, which add up to 1 where a round covers the document


class GainEstimates(NamedTuple):
    """Unbiased estimates (N,) of the gains of documents and of their variances."""

    gains: np.ndarray
    variances: np.ndarray


def sampled_of(plan: Plan, keys: list[tuple[str, str]]) -> Sampled:
    """Return the rounds of a plan for the documents of a frame."""
    column = {key: number for number, key in enumerate(keys)}
    shape = plan.n_rounds, len(keys)
    covered, drawn, chances = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool), np.ones(shape)
    for row, key in enumerate(plan.keys):
        if (place := column.get(key)) is not None:
            at = plan.rounds[row] - 1, place
            covered[at], drawn[at], chances[at] = True, plan.drawn[row], plan.probabilities[row]
    known = np.cumsum(drawn, axis=0) - drawn > 0
    lost = (np.cumsum(covered, axis=0) > 0) & ~known & ~covered
    if lost.any():
        number, place = (int(one[0]) for one in np.nonzero(lost))
        topic, document = keys[place]
        raise InvalidInputError(
            f"round {number + 1} lacks topic {topic}, document {document}, which an earlier round did not draw. "
            f"Restore the file of the plan, and do not delete rows",
            code="lost-document",
        )
    budgets = np.zeros(plan.n_rounds)
    budgets[plan.rounds - 1] = plan.budgets
    shares = budgets[:, None] * (covered | known)
    return Sampled(known, drawn, chances, shares / np.maximum(shares.sum(axis=0), 1e-300))


def gain_estimates(sampled: Sampled, factors: Factors, gained: np.ndarray, others: np.ndarray) -> GainEstimates:
    """Return unbiased estimates of gains (N,) from the gains of the drawn documents.

    Round r estimates g by g itself where an earlier round has judged it, else by b_r + I (g - b_r) / π_r, with the
    estimated variance I (1 - π_r) ((g - b_r) / π_r)². The prediction b_r uses the labels of the rounds up to r without
    the document's own label, and the labels of `others` (bool (N,)). The errors of different rounds are uncorrelated.
    """
    total, variance = np.zeros(len(gained)), np.zeros(len(gained))
    for known, drawn, chances, shares in zip(*sampled):
        judged = known | drawn | others
        values = np.where(judged, gained, 0.0)
        b = factors.predict(judged, values)
        residuals = np.where(drawn, values - b, 0.0) / chances
        total += shares * np.where(known, values, b + residuals)
        variance += np.where(known, 0.0, shares**2 * (1.0 - chances) * residuals**2)
    return GainEstimates(total, variance)


class Estimate(Result):
    """The result of `estimate`, with estimates of a measure for several runs.

    `values` are by run, `budget` and `judged` are the expected and the actual number of human judgements, and `remarks`
    describe documents outside the plan.
    """

    KIND: ClassVar[str] = "estimate"
    remarks: Sequence[Remark] = ()

    def __init__(
        self, measure: Measure, frame: Frame, plan: Plan, grades: np.ndarray, judges: dict[str, np.ndarray],
        others: np.ndarray, highest: float,
    ) -> None:  # fmt: skip
        sampled, gained = sampled_of(plan, frame.keys), gains(measure, grades)
        self.measure, self.convention, self.runs, self.judges = measure.name, measure.convention, frame.runs, [*judges]
        self.n_topics, self.budget, self.judged = len(frame.topics), plan.expected, int(plan.drawn.sum())
        self._frame, self._inside = frame, sampled.shares.sum(axis=0) > 0
        self._bare = gain_estimates(sampled, make_factors(frame, {}), gained, others)
        self._full = gain_estimates(sampled, make_factors(frame, judges), gained, others) if judges else self._bare
        self._open = (~sampled.known & (sampled.chances < 1.0)).any(axis=0)
        # Σ g² of each document, and with it the variance of a uniform sample with the same budget.
        squared = np.where(sampled.known | sampled.drawn, np.nan_to_num(gained), 0.0) ** 2
        squared = (sampled.shares * squared / np.where(sampled.known, 1.0, sampled.chances)).sum(axis=0)
        share = min(1.0, self.budget / len(set(plan.keys)))
        self._uniform = squared * (1.0 - share) / share
        labels = np.clip(next(iter(judges.values()), np.zeros(0)), 0.0, highest)
        self._label_gains = np.nan_to_num(gains(measure, labels))
        self.values = {name: self._estimated(name, None) for name in frame.runs}

    def difference(self, a: str, b: str) -> Estimated:
        """Return the measure of run a minus the measure of run b."""
        if a == b:
            raise InvalidInputError(f"difference({a!r}, {b!r}) requires two different runs")
        return self._estimated(a, b)

    def differences(self) -> list[Estimated]:
        """Return the differences of all pairs of runs."""
        return [self.difference(a, b) for a, b in combinations(self.runs, 2)]

    def first_outside(self, run: str) -> tuple[str, str]:
        """Return topic and id of the first document outside the plan with weight in a run."""
        return self._frame.keys[np.flatnonzero((self._frame.difference(run, None) != 0) & ~self._inside)[0]]

    def _estimated(self, a: str, b: str | None) -> Estimated:
        from scipy.special import stdtr

        w, q = self._frame.difference(a, b) / self.n_topics, self.n_topics
        if outside := int(np.count_nonzero(w[~self._inside])):
            return Estimated(a, b, math.nan, outside=outside)
        terms = w * self._full.gains
        value, spread = float(terms.sum()), spread_of(w**2 * self._full.variances)
        found: dict[str, float] = {}
        if not w[self._open].any():
            found = {"low": value, "high": value}
        elif spread.residuals >= FEWEST_RESIDUALS:
            found = {"low": value - spread.half, "high": value + spread.half}
            found["p"] = 2.0 * float(stdtr(spread.freedom, -abs(value) / spread.error))
            bare = float((w**2 * self._bare.variances).sum())
            found["plan_worth"] = float((w**2 * self._uniform).sum()) / bare if bare > 0 else math.nan
            if self.judges:
                bias = float((w * self._label_gains).sum()) - value
                found |= {"judge_low": bias - spread.half, "judge_high": bias + spread.half}
                found["judge_p"] = 2.0 * float(stdtr(spread.freedom, -abs(bias) / spread.error))
                found["worth"] = bare / spread.error**2
        by_topic = np.bincount(self._frame.topic, weights=terms, minlength=q)
        error = float(by_topic.std(ddof=1)) * math.sqrt(q) if q > 1 else 0.0
        if found and error > 0:
            half = student_quantile(0.975, q - 1) * error
            found |= {"low_topics": value - half, "high_topics": value + half}
            found["p_topics"] = 2.0 * float(stdtr(q - 1, -abs(value) / error))
        return Estimated(a, b, value, residuals=spread.residuals, **found)  # type: ignore[arg-type]

    def _figures(self) -> dict[str, Any]:
        kept = ("measure", "convention", "n_topics", "budget", "judged", "judges")
        return {name: getattr(self, name) for name in kept} | {
            "values": [asdict(one) for one in self.values.values()],
            "differences": [asdict(one) for one in self.differences()],
        }

    @property
    def summary(self) -> str:
        """One line: measure, convention, numbers of topics and human judgements, and judges."""
        return (
            f"{self.measure}, convention {self.convention}, {self.n_topics} topics, from {self.judged} human "
            f"judgements (expected {self.budget:.1f}), judges: {', '.join(self.judges) or 'none'}"
        )

    def blocks(self) -> list[Any]:
        """Return the printed blocks: paragraphs, and tables as (header, rows)."""
        header = ["value", "95% interval", "topics like these"]
        parts: list[Any] = [
            self.summary,
            (["run", *header], [[one.a, *_cells(one)] for one in self.values.values()]),
        ]
        if pairs := self.differences():
            corrected = holm(np.nan_to_num([one.p for one in pairs], nan=1.0)).tolist()
            rows = [
                [f"{one.a} - {one.b}", *_cells(one), _number(one.p, ".4f"), _number(one.p * 0 + adjusted, ".4f"),
                 _number(one.plan_worth, ".2f"), _number(one.worth, ".2f")]
                for one, adjusted in list(zip(pairs, corrected))[:_SHOWN_PAIRS]
            ]  # fmt: skip
            parts.append((["difference", *header, "p", "p (Holm)", "plan worth", "judge worth"], rows))
            if len(pairs) > len(rows):
                parts.append(f"{len(pairs) - len(rows)} further pairs: difference(a, b) returns each of them")
            parts.append(
                "Intervals and p are for each pair alone, and for these topics unless a column says otherwise. "
                "`worth`: the factor by which the number of judgements would grow without the plan, and without "
                "the judges. A plan for differences leaves values uncertain. To estimate values, plan with "
                "pairs=None."
            )
            bias_p = holm(np.nan_to_num([one.judge_p for one in pairs], nan=1.0)).tolist()
            ahead = [(one.a, one.b) if one.judge_low > 0 else (one.b, one.a)
                     for one, adjusted in zip(pairs, bias_p) if adjusted < 0.05]  # fmt: skip
            if ahead:
                named = ", ".join(f"{better} over {worse}" for better, worse in ahead[:5])
                many = f"{len(ahead)} of {len(pairs)} pairs, p < 0.05 by Holm"
                parts.append(f"{self.judges[0]} favours, without human grades, {named} ({many}).")
        return [*parts, *(one.text for one in self.remarks)]

    def _table(self, style: str) -> str:
        return "\n\n".join(styled_table(part[1], part[0], style) for part in self.blocks() if not isinstance(part, str))

    def __str__(self) -> str:
        parts = self.blocks()
        return "\n\n".join(part if isinstance(part, str) else styled_table(part[1], part[0], "text") for part in parts)


def _number(value: float, form: str = "+.4f") -> str:
    return "-" if math.isnan(value) else format(value, form)


def _cells(one: Estimated) -> list[str]:
    form = ".4f" if one.b is None else "+.4f"
    ends = ((one.low, one.high), (one.low_topics, one.high_topics))
    return [_number(one.value, form),
            *("-" if math.isnan(low) else f"[{low:{form}}, {high:{form}}]" for low, high in ends)]  # fmt: skip


def estimate(
    runs: object, measure: MeasureLike = "DCG@10", *, plan: object = None, human: object = None, judges: object = (),
    topics: str | None = None, totals: Mapping[Any, float] | None = None,
    scale: Sequence[float] | None = None, convention: str = "trec",
) -> Estimate:  # fmt: skip
    """Estimate a measure of runs, and all their differences, from the judgements of a plan.

    The estimate of Σ_d w(d) g(d) is Σ_d w(d) b(d) + Σ_(d drawn) w(d) (g(d) - b(d)) / π(d), divided by the number of
    topics. b predicts the gain from the judges' labels without the document's own judgement. The estimate is unbiased
    for any judges; good judges make the interval narrower.

    Parameters
    ----------
    runs, measure, topics, totals, scale, convention
        As in `plan_judgements`; other runs over the plan's documents are also accepted.
    plan : Plan or path
        Plan from `plan_judgements`, in which every drawn document must have a grade.
    human : qrels, optional
        Human grades; None if the plan has them. Grades of documents that were not drawn only improve predictions.
    judges : dict or list of qrels, optional
        Labels of model judges for the plan's documents, on any scale: each label is a level.

    Notes
    -----
    The variance for these topics is Σ_(drawn) (1 - π) (w (g - b) / π)², with Student's quantile of Satterthwaite's
    degrees of freedom. For a population of similar topics, the variance is s²(T_q) / Q of the topics' own estimates,
    with Q - 1 degrees of freedom. `judging/predictions.py` has the predictions. The cost is O(documents · runs + judged
    · columns²). Särndal, Swensson and Wretman (1992), section 6.3; Angelopoulos et al. (2023), Science 382, equation 1.

    >>> from truerank import plan_judgements
    >>> runs = {"a": {"1": {"x": 2.0, "y": 1.0}}, "b": {"1": {"y": 2.0, "x": 1.0}}}
    >>> plan = plan_judgements(runs, "DCG@2", budget=2)
    >>> found = estimate(runs, "DCG@2", plan=plan, human={"1": {"x": 3, "y": 1}}).difference("a", "b")
    >>> round(found.value, 4), found.low == found.high  # every document was judged
    (0.7381, True)
    """
    one, known = sum_measure(measure, convention, totals), as_plan(plan)
    if human is not None:
        known = known.with_grades(human)
    highest = check_judged(known, scale)
    frame = Frame(runs, one, topics, totals, among=known.keys)
    grades = frame.grades(known.judged)
    noted = {key: grade for key, grade in zip(known.keys, known.grades.tolist()) if grade == grade}
    rest = np.array([noted.get(key, np.nan) for key in frame.keys])
    if human is not None:
        rest = np.where(np.isnan(rest), frame.grades(human), rest)
    others = np.isnan(grades) & ~np.isnan(rest)
    grades = np.where(others, rest, grades)
    labels, both = judges_labels(frame, judges, highest), ~np.isnan(grades)
    for name, own in labels.items():
        if both.sum() >= FEWEST_RESIDUALS and np.ptp(grades[both]) > 0 and np.array_equal(own[both], grades[both]):
            raise InvalidInputError(
                f"judge {name!r} gives every one of the {int(both.sum())} judged documents the human grade: its labels "
                f"are copies of the human grades. Omit this judge, or pass its own labels",
                code="copies",
            )
    found = Estimate(one, frame, known, grades, labels, others, highest)
    lost = [run for run in found.values.values() if run.outside]
    remarks = []
    for run in lost:
        topic, document = found.first_outside(run.a)
        where = f"{run.outside} of run {run.a}, the first: topic {topic}, document {document}"
        remarks.append(Remark("outside-plan", where, 1, [run.a]))
    if len(lost) == len(found.runs):
        raise InvalidInputError(f"no run has a value. {remarks[0].text}", remedies=remarks[0].remedies, code="no-value")
    if lost:
        warn(remarks[0].text)
    if others.any():
        seen = {topic for (topic, _), other in zip(frame.keys, others.tolist()) if other}
        remarks.append(Remark("undrawn-grades", f"in {counted(len(seen), 'topic')}", int(others.sum())))
    found.remarks = remarks
    return found
