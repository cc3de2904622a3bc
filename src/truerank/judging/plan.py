"""Plans of documents for people to judge: samples with known probabilities, in rounds."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import IO, Any, cast

import numpy as np

from truerank.core.checks import check_number
from truerank.core.errors import DataFileError, InvalidInputError, Remedy, warn
from truerank.core.files import atomic_write, read_text
from truerank.core.printing import counted
from truerank.core.random_streams import seed_of, stream
from truerank.core.types import MeasureLike, PathLike, RandomState
from truerank.io.delimited import dialect
from truerank.io.trec import as_qrels
from truerank.judging.predictions import Factors, judges_labels, make_factors
from truerank.judging.sums import Frame, gains, refuse_lost_zeros, sum_measure

COLUMNS = ("topic", "document", "round", "budget", "probability", "judge", "grade")
SCALE = (0.0, 4.0)  # lowest and highest grade that people give, unless `scale` says other
LEAST_SHARE = 0.1  # least probability of a document, as a share of budget / documents
_LEAST_DEVIATION = 0.1
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # start of a text that a spreadsheet may compute


@dataclass(frozen=True)
class Plan:
    """Documents with their probabilities of being drawn, with a row for each round that could draw the document."""

    topics: np.ndarray
    documents: np.ndarray
    rounds: np.ndarray  # from 1
    budgets: np.ndarray  # requested budget of the round, which is also its weight in estimates
    probabilities: np.ndarray  # of being drawn in the round
    drawn: np.ndarray  # whether people should judge the document
    grades: np.ndarray  # human grades; NaN where there is none

    @property
    def expected(self) -> float:
        """Return the expected number of judgements of all rounds."""
        return float(self.probabilities.sum())

    @property
    def n_rounds(self) -> int:
        """Return the number of rounds."""
        return int(self.rounds.max(initial=0))

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Return topic and document of each row."""
        return list(zip(self.topics.tolist(), self.documents.tolist()))

    @property
    def to_judge(self) -> list[tuple[str, str]]:
        """Return topic and document of the drawn rows without a grade."""
        return [key for key, open_ in zip(self.keys, self.drawn & np.isnan(self.grades)) if open_]

    @property
    def judged(self) -> dict[str, dict[str, float]]:
        """Return the grades of drawn documents as qrels, `{topic: {document: grade}}`."""
        found: dict[str, dict[str, float]] = {}
        for (topic, document), taken, grade in zip(self.keys, self.drawn, self.grades.tolist()):
            if taken and grade == grade:
                found.setdefault(topic, {})[document] = grade
        return found

    def with_grades(self, human: object) -> Plan:
        """Return the plan with grades of the drawn documents from qrels; two different grades are an error."""
        qrels = as_qrels(human)
        refuse_lost_zeros((self.topics, self.documents), (qrels.query_ids, qrels.doc_ids))
        table, grades = qrels.by_topic(qrels.grades), self.grades.copy()
        for row, (topic, document) in enumerate(self.keys):
            grade = table.get(topic, {}).get(document, -1.0)
            if not self.drawn[row] or grade < 0:
                continue
            if grades[row] == grades[row] and grades[row] != grade:
                raise InvalidInputError(
                    f"topic {topic}, document {document}: the plan has grade {grades[row]:g}, but the labels have "
                    f"{grade:g}. Correct one of them",
                    code="contradiction",
                )
            grades[row] = grade
        return replace(self, grades=grades)

    def rows(self) -> list[list[str]]:
        """Return the rows of the file without the header; drawn documents come first."""
        return [
            [self.topics[row], self.documents[row], str(self.rounds[row]), repr(float(self.budgets[row])),
             repr(float(self.probabilities[row])), "yes" if self.drawn[row] else "no",
             "" if math.isnan(self.grades[row]) else repr(float(self.grades[row])).removesuffix(".0")]
            for row in np.argsort(~self.drawn, kind="stable").tolist()
        ]  # fmt: skip

    def cells(self) -> list[list[str]]:
        """Return `rows` for a spreadsheet, with an apostrophe before ids that it could treat as formulas."""
        return [[*(f"'{name}" if _FORMULA.match(name) else name for name in row[:2]), *row[2:]] for row in self.rows()]

    def write(self, target: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the plan as a CSV file for people to fill in, atomically.

        Raises InvalidInputError (with `replace`, warns) if `target` has grades that this plan lacks, or is not a plan.
        """
        if lost := self._lost(target):
            if not replace:
                raise InvalidInputError(
                    f"{os.fspath(target)}: {lost}",
                    argument="target",
                    value=os.fspath(target),
                    remedies=["name another file", Remedy("to overwrite it", replace=True)],
                    code="exists",
                )
            warn(f"{os.fspath(target)} is replaced: {lost}")
        with atomic_write(target) as opened:
            opened.writelines(map(_line, [COLUMNS, *self.cells()]))

    def _lost(self, target: str | os.PathLike[str]) -> str:
        """Describe what overwriting the file would lose: grades, or another kind of file; "" if nothing."""
        if not os.path.isfile(target) or os.path.getsize(target) == 0:
            return ""
        try:
            old = read_plan(target)
        except DataFileError as error:
            return f"the file is not a plan ({error})"
        own = dict(zip(self.keys, self.grades.tolist()))
        lost = [key for key, grade in zip(old.keys, old.grades.tolist()) if grade == grade and own.get(key) != grade]
        first = "topic {}, document {}".format(*lost[0]) if lost else ""
        return first and f"the file has {counted(len(lost), 'grade')} that the new plan lacks (the first: {first})"

    def __str__(self) -> str:
        rounds = f"{self.n_rounds} round{'s' if self.n_rounds > 1 else ''}"
        return (
            f"{int(self.drawn.sum())} documents to judge (expected {self.expected:.1f}) of {len(set(self.keys))} in "
            f"{len(set(self.topics.tolist()))} topics, {rounds}; {len(self.to_judge)} have no grade yet"
        )


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # quotes the characters of its line ends
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_plan(source: PathLike | IO[str]) -> Plan:
    """Read a plan from a file that `Plan.write` wrote and people have completed.

    Rows and columns may have any order; unknown columns are ignored. Semicolons and decimal commas, as European
    spreadsheets write them, are accepted. `estimate` uses grades of rows that were not drawn (`judge` is `no`) only to
    predict.
    """
    name = str(getattr(source, "name", "" if hasattr(source, "read") else source))
    text = read_text(source) if isinstance(source, str | os.PathLike) else source.read()
    text = text.lstrip("\ufeff")
    delimiter, mark = dialect("csv", text.encode())
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        (_, head), *lines = [(reader.line_num, cells) for cells in reader] or [(1, [])]
    except csv.Error as error:
        raise DataFileError(f"not a CSV file ({error})", name, reader.line_num) from error
    head = [column.strip().lower() for column in head]
    if lacking := [column for column in COLUMNS if column not in head]:
        raise DataFileError(
            f"the plan has no column {lacking[0]!r}. Expected {', '.join(COLUMNS)}. Labels without a plan have unknown "
            f"probabilities: create a plan first (plan_judgements, truerank judge plan)", name, 1, code="columns",
        )  # fmt: skip
    places = [head.index(column) for column in COLUMNS]
    rows: list[tuple[Any, ...]] = []
    seen: dict[tuple[Any, ...], int] = {}
    for line, cells in lines:
        if not any(cell.strip() for cell in cells):
            continue
        try:
            row = _row(cells, places, mark)
            if (key := row[:3]) in seen:
                what = f"document {row[1]!r} of topic {row[0]!r} is also in line {seen[key]}. Remove one of the lines"
                raise InvalidInputError(what, code="twice")
        except InvalidInputError as error:
            raise DataFileError(error, name, line) from error
        seen[key] = line
        rows.append(row)
    if not rows:
        raise DataFileError("the plan holds no rows", name, code="no-rows")
    return _plan_of(rows)


def _row(cells: list[str], places: list[int], mark: str) -> tuple[Any, ...]:
    """Return the values of a row of a file, in the order of `COLUMNS`; `mark` is the decimal mark."""
    if len(cells) <= max(places):
        what = f"the row has {counted(len(cells), 'column')}, fewer than the header. Quote cells that contain commas"
        raise InvalidInputError(what, code="columns")
    topic, document = (re.sub("^'", "", cells[k]) if _FORMULA.match(cells[k]) else cells[k] for k in places[:2])
    number, budget, chance, asked, grade = (cells[place].strip().replace(mark, ".").lower() for place in places[2:])
    try:
        row = (topic, document, int(number), float(budget), float(chance), asked == "yes", float(grade or "nan"))
    except ValueError as error:
        what = f"{error}. Round, budget, probability and grade must be numbers"
        raise InvalidInputError(what, code="not-a-number") from error
    fits = 0.0 < row[4] <= 1.0 and 0 < row[3] < math.inf and row[2] >= 1 and asked in ("yes", "no")
    if not fits or math.isinf(row[6]):
        raise InvalidInputError(
            f"round {number}, budget {budget}, probability {chance}, judge {asked!r}, grade {grade}: expected a round "
            "from 1, a budget above 0, a probability in (0, 1], yes or no, a finite grade",
            code="row",
        )
    return row


def _plan_of(rows: list[tuple[Any, ...]]) -> Plan:
    kinds = (object, object, np.int64, np.float64, np.float64, bool, np.float64)
    return Plan(*(np.array(column, dtype=kind) for column, kind in zip(zip(*rows), kinds)))


def as_plan(plan: object) -> Plan:
    """Return a plan, or read it from a file."""
    if plan is None or isinstance(plan, Mapping):
        raise InvalidInputError(
            "labels without a plan have unknown probabilities, so that no estimate from them is unbiased. Create a "
            "plan first:"
            " plan_judgements(runs, measure, budget=100)",
            code="no-plan",
        )
    return plan if isinstance(plan, Plan) else read_plan(cast(PathLike, plan))


def check_judged(plan: Plan, scale: Sequence[float] | None) -> float:
    """Return the highest grade of the scale; raise unless every drawn document has a grade within the scale."""
    low, high = (float(end) for end in (SCALE if scale is None else scale))
    wrong, lacking = (plan.grades < low) | (plan.grades > high), plan.drawn & np.isnan(plan.grades)
    for bad in (wrong, lacking):
        if not bad.any():
            continue
        row, n = int(np.flatnonzero(bad)[0]), int(bad.sum())
        where, grade = f"topic {plan.topics[row]}, document {plan.documents[row]}", plan.grades[row]
        if bad is lacking:
            raise InvalidInputError(
                f"{n} of the {int(plan.drawn.sum())} drawn documents have no grade, the first of them {where}. Judge "
                f"all of them: missing grades bias every figure",
                code="no-grade",
            )
        least, most = math.floor(min(low, grade)), math.ceil(max(high, grade))
        raise InvalidInputError(
            f"{where}: grade {grade:g} is outside the scale {low:g} to {high:g} (in all, {n} grades are outside)",
            argument="grades",
            value=float(grade),
            remedies=["correct it", Remedy("to change the scale", scale=(least, most))],
            code="outside-scale",
        )
    return high


def allocate(importance: np.ndarray, budget: float) -> np.ndarray:
    """Return probabilities proportional to `importance` with sum `budget`, between `LEAST_SHARE` of the mean and 1.

    >>> allocate(np.array([4.0, 1.0, 1.0, 0.0]), 2.0).round(3).tolist()
    [1.0, 0.475, 0.475, 0.05]
    """
    n = len(importance)
    if budget >= n:
        return np.ones(n)
    least = LEAST_SHARE * budget / n
    weighted = importance > 0
    if weighted.sum() + least * (~weighted).sum() <= budget:  # every document that matters is certain
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
    runs: object, measure: MeasureLike = "DCG@10", *, budget: float = 100, human: object = None, judges: object = (),
    pairs: str | Sequence[tuple[str, str]] | None = "all", uniform: bool = False, topics: str | None = None,
    totals: Mapping[Any, float] | None = None, scale: Sequence[float] | None = None, convention: str = "trec",
    random_state: RandomState = None,
) -> Plan:  # fmt: skip
    """Draw the documents that people should judge, to compare runs from few judgements.

    Each document d is drawn independently with probability π(d) ∝ w(d) · sd(d), cut at 1. Here, w is the root mean
    square, over the pairs of runs, of the difference of the weights that the measure gives to the document, and sd is
    the standard deviation of its gain, predicted from earlier judgements (1 in the first round).

    Parameters
    ----------
    runs : dict of str to run
        As in `evaluate`: paths, `{topic: {document: score}}`, data frames.
    measure : str or Measure, default "DCG@10"
        DCG, P, RBP, or R@k with `totals`, the number of relevant documents of each topic.
    budget : float, default 100
        Expected number of judgements in this round, at least two per topic. The actual number varies.
    human : Plan or qrels, optional
        A judged `Plan` is extended by one more round, over the documents that are not judged yet. Qrels only predict
        deviations.
    judges : dict or list of qrels, optional
        Labels of model judges, which affect the plan only together with `human`.
    pairs : "all", list of (str, str), or None, default "all"
        Pairs of runs to compare. If None, the plan is for the values of the runs, not for differences.
    uniform : bool, default False
        Whether all documents have the same probability.
    topics, scale, convention
        "common" or "all", required if the runs have different topics; lowest and highest human grade (default: 0 and
        4); evaluation convention for settings that the measure omits ("trec": the gain of DCG is the grade).

    Notes
    -----
    Every document with weight has π ≥ 0.1 · budget / documents. Särndal, Swensson and Wretman (1992), section 12.2.

    >>> runs = {"a": {"1": {"x": 2.0, "y": 1.0, "z": 0.0}}, "b": {"1": {"z": 2.0, "y": 1.0, "x": 0.0}}}
    >>> plan = plan_judgements(runs, "DCG@3", budget=2)
    >>> plan.documents.tolist(), plan.probabilities.round(3).tolist()
    (['x', 'y', 'z'], [0.967, 0.067, 0.967])
    """
    one = sum_measure(measure, convention, totals)
    before = human if isinstance(human, Plan) else None
    frame = Frame(runs, one, topics, totals)
    budget = check_number(budget, "budget", "[0, inf)")
    if budget < 2 * len(frame.topics):
        raise InvalidInputError(
            f"budget={budget:g} is less than two judgements for each of the {len(frame.topics)} topics, too few "
            f"for an interval. Give a budget of {2 * len(frame.topics)} or more, or use fewer topics",
            argument="budget",
        )
    high = float((SCALE if scale is None else scale)[1]) if before is None else check_judged(before, scale)
    told = (
        np.full(len(frame.keys), np.nan) if human is None else frame.grades(human if before is None else before.judged)
    )
    importance = np.ones(len(told)) if uniform else frame.mean_square(pairs)
    if not uniform and not np.isnan(told).all():
        factors = make_factors(frame, judges_labels(frame, judges, high))
        importance = importance * _deviations(factors, gains(one, told))
    keys = frame.keys
    if before is not None:
        refuse_lost_zeros((before.topics, before.documents), zip(*keys))
        # Every round plans all documents that are not judged, also those that only other runs rank: a round that left
        # them out would count for them only where an earlier round drew them.
        rest = sorted(set(before.keys) - set(keys))
        keys = [*keys, *rest]
        importance = np.append(importance, np.full(len(rest), float(uniform)))
    known = set() if before is None else {(topic, d) for topic, own in before.judged.items() for d in own}
    free = [row for row, key in enumerate(keys) if key not in known]
    if not free:
        raise InvalidInputError("every document that affects a value is already judged. Estimate from these grades")
    chances = allocate(importance[free], budget)
    number = 1 if before is None else before.n_rounds + 1
    drawn = stream(seed_of(random_state), "judging", number).random(len(free)) < chances
    made = _plan_of([
        (*keys[row], number, budget, chance, taken, math.nan)
        for row, chance, taken in zip(free, chances.tolist(), drawn.tolist())
    ])  # fmt: skip
    if before is None:
        return made
    return Plan(**{
        part.name: np.concatenate([getattr(before, part.name), getattr(made, part.name)]) for part in fields(Plan)
    })  # fmt: skip


def _deviations(factors: Factors, gained: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each document's gain about its prediction, shrunk over levels and never 0."""
    judged = ~np.isnan(gained)
    values = np.where(judged, gained, 0.0)
    squares = np.where(judged, (values - factors.predict(judged, values)) ** 2, 0.0)
    mean = squares[judged].mean()
    if mean == 0:
        return np.ones(len(gained))
    return np.sqrt(np.maximum(factors.predict(judged, squares), _LEAST_DEVIATION * mean))
