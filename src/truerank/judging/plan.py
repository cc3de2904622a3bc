"""Which documents people should judge: samples with known probabilities, in rounds."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.files import atomic_write, read_text
from truerank.core.random_streams import seed_of, stream
from truerank.io.trec import as_qrels
from truerank.judging.predictions import judges_labels, make_factors
from truerank.judging.sums import Frame, gains, sum_measure

COLUMNS = ("topic", "document", "round", "budget", "probability", "judge", "grade")
SCALE = (0.0, 4.0)
"""Lowest and highest grade that people give, unless `scale` says other."""
LEAST_SHARE = 0.1
"""Least probability of a document, as a share of budget / documents."""
_LEAST_DEVIATION = 0.1


@dataclass(frozen=True)
class Plan:
    """Documents that could be drawn, with their probabilities, and those that were drawn.

    A document has a row in each round in which it could be drawn; with one round `topics` and `documents` are all
    documents to which some run gives weight.

    Attributes
    ----------
    topics, documents : str arrays (n,)
    rounds : int64 array (n,)
        From 1.
    budgets, probabilities : float64 arrays (n,)
        The round's budget as it was asked for, in proportion to which rounds count, and the probability of being drawn
        in the round. The probabilities of a round add up to its budget, or to the number of its documents.
    drawn : bool array (n,)
        Documents that people should judge.
    grades : float64 array (n,)
        What people said; NaN where they have not.
    """

    topics: np.ndarray
    documents: np.ndarray
    rounds: np.ndarray
    budgets: np.ndarray
    probabilities: np.ndarray
    drawn: np.ndarray
    grades: np.ndarray

    @property
    def expected(self) -> float:
        """Expected number of judgements of all rounds."""
        return float(self.probabilities.sum())

    @property
    def n_rounds(self) -> int:
        """Rounds so far."""
        return int(self.rounds.max(initial=0))

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Topic and document of each row."""
        return list(zip(self.topics.tolist(), self.documents.tolist()))

    @property
    def to_judge(self) -> list[tuple[str, str]]:
        """Topic and document of what is drawn and has no grade yet."""
        return [key for key, open_ in zip(self.keys, self.drawn & np.isnan(self.grades)) if open_]

    @property
    def judged(self) -> dict[str, dict[str, float]]:
        """`{topic: {document: grade}}` of what was drawn and judged."""
        found: dict[str, dict[str, float]] = {}
        for (topic, document), taken, grade in zip(self.keys, self.drawn, self.grades.tolist()):
            if taken and grade == grade:
                found.setdefault(topic, {})[document] = grade
        return found

    def with_grades(self, human: Any) -> Plan:
        """The plan with grades of drawn documents from qrels; `InvalidInputError` where two disagree."""
        qrels = as_qrels(human)
        table, grades = qrels.by_topic(qrels.grades), self.grades.copy()
        for row, (topic, document) in enumerate(self.keys):
            grade = table.get(topic, {}).get(document, -1.0)
            if not self.drawn[row] or grade < 0:
                continue
            if grades[row] == grades[row] and grades[row] != grade:
                raise InvalidInputError(
                    f"topic {topic}, document {document}: the plan has grade {grades[row]:g} and the labels {grade:g}; "
                    "correct one of them"
                )
            grades[row] = grade
        return replace(self, grades=grades)

    def rows(self) -> list[list[str]]:
        """The rows of the file, without its head: those of documents that were drawn first."""
        return [
            [self.topics[row], self.documents[row], str(self.rounds[row]), repr(float(self.budgets[row])),
             repr(float(self.probabilities[row])), "yes" if self.drawn[row] else "no",
             "" if math.isnan(self.grades[row]) else f"{self.grades[row]:g}"]
            for row in np.argsort(~self.drawn, kind="stable").tolist()
        ]  # fmt: skip

    def write(self, target: str | os.PathLike[str]) -> None:
        """Write it as CSV for people to fill in; a file is replaced atomically. Numbers read back as the same bits."""
        with atomic_write(target) as opened:
            csv.writer(opened, lineterminator="\n").writerows([COLUMNS, *self.rows()])

    def __str__(self) -> str:
        rounds = f"{self.n_rounds} round{'s' if self.n_rounds > 1 else ''}"
        return (
            f"{int(self.drawn.sum())} documents to judge (expected {self.expected:.1f}) of {len(set(self.keys))} in "
            f"{len(set(self.topics.tolist()))} topics, {rounds}; {len(self.to_judge)} have no grade yet"
        )


def read_plan(source: Any) -> Plan:
    """Read a plan that `Plan.write` wrote, with the grades that people have filled in.

    Rows and columns may stand in any order; other columns are ignored. A grade in a row that was not drawn (`judge` is
    `no`) is kept, and `estimate` uses it for predictions only. `DataFileError` with the line on anything else.
    """
    name = str(getattr(source, "name", "" if hasattr(source, "read") else source))
    text = source.read() if hasattr(source, "read") else read_text(source)
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")))
    head = [column.strip().lower() for column in next(reader, [])]
    if lacking := [column for column in COLUMNS if column not in head]:
        raise DataFileError(
            f"the plan has no column {lacking[0]!r}; expected {', '.join(COLUMNS)}. Labels without a plan have unknown "
            "probabilities: make a plan first (plan_judgements, truerank judge plan)", name, 1,
        )  # fmt: skip
    places = [head.index(column) for column in COLUMNS]
    rows: list[tuple[Any, ...]] = []
    seen: dict[tuple[Any, ...], int] = {}
    for cells in reader:
        line = reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) <= max(places):
            raise DataFileError(f"the row has {len(cells)} columns, and the head {len(head)}", name, line)
        topic, document, number, budget, chance, asked, grade = (cells[place].strip() for place in places)
        asked = asked.lower()
        try:
            row = (topic, document, int(number), float(budget), float(chance), asked == "yes", float(grade or "nan"))
        except ValueError as error:
            raise DataFileError(f"{error}; round, budget, probability and grade are numbers", name, line) from error
        if not (0.0 < row[4] <= 1.0 and row[3] > 0 and row[2] >= 1 and asked in ("yes", "no")) or math.isinf(row[6]):
            raise DataFileError(
                f"round {number}, budget {budget}, probability {chance}, judge {asked!r}, grade {grade}: expected a "
                "round from 1, a budget above 0, a probability in (0, 1], yes or no, a finite grade", name, line,
            )  # fmt: skip
        if (key := row[:3]) in seen:
            raise DataFileError(f"document {document!r} of topic {topic!r} stands in line {seen[key]} too", name, line)
        seen[key] = line
        rows.append(row)
    if not rows:
        raise DataFileError("the plan holds no rows", name)
    return _plan_of(rows)


def _plan_of(rows: list[tuple[Any, ...]]) -> Plan:
    kinds = (object, object, np.int64, np.float64, np.float64, bool, np.float64)
    return Plan(*(np.array(column, dtype=kind) for column, kind in zip(zip(*rows), kinds)))


def as_plan(plan: Any) -> Plan:
    """A `Plan` of itself or of a file."""
    if plan is None or isinstance(plan, Mapping):
        raise InvalidInputError(
            "labels without a plan have unknown probabilities of being chosen, and no estimate from them is unbiased. "
            "Make a plan first: plan_judgements(runs, measure, budget)"
        )
    return plan if isinstance(plan, Plan) else read_plan(plan)


def check_judged(plan: Plan, scale: Any) -> float:
    """The highest human grade, after a check that every drawn document has a grade of the scale."""
    low, high = (float(end) for end in (SCALE if scale is None else scale))
    wrong, lacking = (plan.grades < low) | (plan.grades > high), plan.drawn & np.isnan(plan.grades)
    for bad in (wrong, lacking):
        if not bad.any():
            continue
        row, n = int(np.flatnonzero(bad)[0]), int(bad.sum())
        where, grade = f"topic {plan.topics[row]}, document {plan.documents[row]}", plan.grades[row]
        if bad is lacking:
            raise InvalidInputError(
                f"{n} of the {int(plan.drawn.sum())} documents that were drawn have no grade, the first: {where}. "
                "Judge all of them: leaving some out makes every figure biased"
            )
        most = max(10, math.ceil(grade))
        raise InvalidInputError(
            f"{where}: grade {grade:g} is outside the scale {low:g} to {high:g} ({n} such). Correct it, or give the "
            f"scale with scale=(0, {most}) (--scale 0 {most})"
        )
    return high


def allocate(importance: np.ndarray, budget: float) -> np.ndarray:
    """Probabilities proportional to `importance`, cut at 1, at least `LEAST_SHARE` of the mean, whose sum is `budget`.

    >>> allocate(np.array([4.0, 1.0, 1.0, 0.0]), 2.0).round(3).tolist()
    [1.0, 0.475, 0.475, 0.05]
    """
    n = len(importance)
    if budget >= n:
        return np.ones(n)
    least = LEAST_SHARE * budget / n
    weighted = importance > 0
    if weighted.sum() + least * (~weighted).sum() <= budget:  # all that matters, and more
        return np.where(weighted, 1.0, (budget - weighted.sum()) / max(1, (~weighted).sum()))
    low, high = 0.0, 1.0 / importance[weighted].min()
    for _ in range(100):
        middle = (low + high) / 2
        if np.clip(middle * importance, least, 1.0).sum() < budget:
            low = middle
        else:
            high = middle
    return np.clip(high * importance, least, 1.0)


def plan_judgements(
    runs: Any, measure: Any = "DCG@10", budget: float = 100, judges: Any = (), human: Any = None, pairs: Any = "all",
    uniform: bool = False, random_state: Any = 0, *, topics: str | None = None,
    totals: Mapping[Any, float] | None = None, scale: Any = None, convention: str = "trec",
) -> Plan:  # fmt: skip
    """Draw the documents that people should judge, so that runs can be compared from few judgements.

    Each document d is drawn independently with probability π(d) ∝ w(d) · sd(d), cut at 1: w is the root mean square,
    over the pairs of runs, of the difference of the weights that the measure gives to the document, and sd the
    deviation of its gain that earlier judgements predict (1 in the first round).

    Parameters
    ----------
    runs : dict of str to run
        What `evaluate` takes: paths, `{topic: {document: score}}`, frames.
    measure : str or Measure, default "DCG@10"
        DCG, P, RBP, or R@k with `totals`: measures that are sums over documents.
    budget : float, default 100
        Expected number of judgements of this round, at least two a topic. The number drawn varies about it.
    judges : dict or list of qrels, optional
        Labels of model judges. They change the plan only where `human` shows where they err.
    human : Plan or qrels, optional
        A plan whose documents are judged: the result has one more round, over documents that are not judged yet.
        Qrels (labels from elsewhere) only help to predict deviations.
    pairs : "all", list of (str, str), or None, default "all"
        Pairs of runs that will be compared. None: the runs' own values matter, not their differences.
    uniform : bool, default False
        Give all documents the same probability.
    random_state : seed, default 0
    topics : {"common", "all"}, optional
        Required where the runs have different topics.
    totals : mapping of topic to number, optional
        Relevant documents of each topic, for R@k.
    scale : (float, float), default (0, 4)
        Lowest and highest human grade.
    convention : str, default "trec"
        Fills in what the measure's name leaves open: with "trec" the gain of DCG is the grade.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidInputError
        On measures that are no sums, too small budgets, runs of different topics, and rounds that are not judged.

    Notes
    -----
    Every document to which some run gives weight has π ≥ 0.1 · budget / documents. A budget of all documents or more
    draws every one. O(runs · topics · cutoff). Särndal, Swensson and Wretman (1992), sections 3.5 and 12.2.

    Examples
    --------
    >>> runs = {"a": {"1": {"x": 2.0, "y": 1.0, "z": 0.0}}, "b": {"1": {"z": 2.0, "y": 1.0, "x": 0.0}}}
    >>> plan = plan_judgements(runs, "DCG@3", budget=2)
    >>> plan.documents.tolist(), plan.probabilities.round(3).tolist()
    (['x', 'y', 'z'], [0.967, 0.067, 0.967])
    """
    one = sum_measure(measure, convention, totals)
    before = human if isinstance(human, Plan) else None
    frame = Frame(runs, one, topics, totals)
    budget = check_number(budget, "budget", minimum=0)
    if budget < 2 * len(frame.topics):
        raise InvalidInputError(
            f"budget={budget:g} is below two judgements a topic ({len(frame.topics)} topics), too few for an interval. "
            f"Give a budget of {2 * len(frame.topics)} or more, or take fewer topics"
        )
    high = float((SCALE if scale is None else scale)[1]) if before is None else check_judged(before, scale)
    told = (
        np.full(len(frame.keys), np.nan) if human is None else frame.grades(human if before is None else before.judged)
    )
    importance = np.ones(len(told)) if uniform else frame.mean_square(pairs)
    if not uniform and not np.isnan(told).all():
        factors = make_factors(frame, judges_labels(frame, judges, high))
        importance = importance * _deviations(factors, gains(one, told))
    free = np.arange(len(told)) if before is None else np.flatnonzero(np.isnan(told))
    if not len(free):
        raise InvalidInputError("every document that a run gives weight to is judged already; there is nothing to plan")
    chances = allocate(importance[free], budget)
    number = 1 if before is None else before.n_rounds + 1
    drawn = stream(seed_of(random_state), "judging", number).random(len(free)) < chances
    made = _plan_of([
        (*frame.keys[row], number, budget, chance, taken, math.nan)
        for row, chance, taken in zip(free.tolist(), chances.tolist(), drawn.tolist())
    ])  # fmt: skip
    if before is None:
        return made
    return Plan(**{
        part.name: np.concatenate([getattr(before, part.name), getattr(made, part.name)]) for part in fields(Plan)
    })  # fmt: skip


def _deviations(factors: Any, gained: np.ndarray) -> np.ndarray:
    """Standard deviation of each document's gain about its prediction, shrunk over levels and never 0."""
    judged = ~np.isnan(gained)
    values = np.where(judged, gained, 0.0)
    squares = np.where(judged, (values - factors.predict(judged, values)) ** 2, 0.0)
    mean = squares[judged].mean()
    if mean == 0:
        return np.ones(len(gained))
    return np.sqrt(np.maximum(factors.predict(judged, squares), _LEAST_DEVIATION * mean))
