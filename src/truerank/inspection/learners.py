"""Comparisons of learning procedures, and the corrected resampled t-test over folds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.errors import InvalidInputError
from truerank.core.printing import counted, styled_table
from truerank.core.results import Result, data_frame
from truerank.significance.corrections import holm
from truerank.significance.paired import LEVEL, deviation_of, differences_of
from truerank.significance.paper_table import paper_table


@dataclass(repr=False, eq=False)
class ComparedLearners(Result):
    """Comparisons of pairs of learners by one measure."""

    measure: str
    convention: str
    means: dict[str, float] = field(repr=False)
    pairs: list[Any] = field(repr=False)
    higher_is_better: bool

    SIZES: ClassVar[tuple[str, str]]  # fields with the numbers of what was tested
    SHOWN: ClassVar[tuple[str, ...]] = ("intervals", "seeds")
    intervals: ClassVar[dict[str, Any]] = {}
    rank_sets: ClassVar[dict[str, Any]] = {}
    interval_of: ClassVar[str] = "mean difference"

    @property
    def about(self) -> str:
        """A text that names the population and the test."""
        raise NotImplementedError

    @property
    def tested(self) -> str:
        """A text with the population and the test, for the caption of a table of several measures."""
        about = self.about.replace(f"{self.measure} ({self.convention}), ", "")
        return about.replace('; about="learners" includes them', "")

    @property
    def baseline(self) -> str | None:
        """The learner with which all others are compared."""
        against = {pair.b for pair in self.pairs}
        return against.pop() if len(against) == 1 else None

    @property
    def _sign(self) -> float:
        return 1.0 if self.higher_is_better else -1.0

    def favoured(self, pair: Any) -> str:
        """Return the learner with the better mean."""
        return str(pair.a if pair.difference > 0 else pair.b)

    def to_latex(self, show: Sequence[str] = ()) -> str:
        """Return the table of a paper (`Comparison.to_latex`)."""
        return paper_table({self.measure: self}, "latex", None, show)

    @property
    def summary(self) -> str:
        """A sentence on how many pairs of learners differ."""
        differ = sum(pair.p_adjusted < LEVEL for pair in self.pairs)
        return f"{differ} of {counted(len(self.pairs), 'pair')} of learners differ significantly in {self.measure}."

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair."""
        return data_frame([pair._asdict() for pair in self.pairs])

    def _figures(self) -> dict[str, Any]:
        return {
            "measure": self.measure,
            **{name: getattr(self, name) for name in self.SIZES},
            "pairs": [pair._asdict() for pair in self.pairs],
        }

    def _table(self, style: str) -> str:
        errors = [name for name in self.pairs[0]._fields if name.startswith("of_")]
        shown = [f"error {name.replace('_', ' ')}" for name in errors]
        header = ["learners", "mean", "against", "difference, 95%", *shown, "p", "p, holm"]
        rows = [
            [f"{one.a} against {one.b}", self.means[one.a], self.means[one.b],
             f"{one.difference:+.4f}" + ("" if math.isnan(one.low) else f" [{one.low:+.4f}, {one.high:+.4f}]"),
             *(getattr(one, name) for name in errors), one.p, one.p_adjusted] for one in self.pairs
        ]  # fmt: skip
        return styled_table(rows, header, style, "" if style == "text" else self.about)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.about}"


def tested_pairs(
    names: Sequence[str], baseline: str | None, test: Callable[[str, str], Sequence[float]]
) -> list[tuple[Any, ...]]:
    """Return the figures of `test`, with p last, and p by Holm of all pairs, or of each learner and `baseline`."""
    if len(names) < 2:
        raise InvalidInputError(f"a comparison requires at least two learners, got {len(names)}", code="one-learner")
    if baseline is not None:
        check_choice(baseline, "baseline", list(names))
    chosen = list(combinations(names, 2)) if baseline is None else [(a, baseline) for a in names if a != baseline]
    found = [test(a, b) for a, b in chosen]
    known = np.array([one[-1] for one in found])
    adjusted = np.where(np.isnan(known), math.nan, holm(np.nan_to_num(known, nan=1.0))).tolist()
    return [(*pair, *one, p) for pair, one, p in zip(chosen, found, adjusted)]


class LearnerPair(NamedTuple):
    """The mean difference of learners `a` and `b` over folds (positive if `a` is better), with 95 % interval and p.

    The interval is for this pair alone and agrees with `p`; `p_adjusted` is corrected by Holm. If all folds have the
    same difference, there is no interval and no p (NaN); without any difference p is 1.
    """

    a: str
    b: str
    difference: float
    low: float
    high: float
    p: float
    p_adjusted: float


@dataclass(repr=False, eq=False)
class LearnerComparison(ComparedLearners):
    """The result of `CrossValidation.compare(about="learners")`."""

    folds: int
    repeats: int

    KIND: ClassVar[str] = "learner-comparison"
    SIZES: ClassVar = ("folds", "repeats")

    @property
    def about(self) -> str:
        """A text that names the population and the test."""
        return (
            f"learning procedures on data like these: {self.measure} ({self.convention}), corrected resampled t-test "
            f"over {self.repeats} x {self.folds} folds with {self.folds - 1} degrees of freedom, p adjusted by Holm"
        )


def compare_learners(
    fold_means: Mapping[str, Sequence[float]],
    means: Mapping[str, float],
    measure: str,
    convention: str,
    repeats: int,
    higher_is_better: bool = True,
    baseline: str | None = None,
) -> LearnerComparison:
    """Return the corrected resampled t-test of every pair of learners, or of each learner against `baseline`.

    `fold_means` holds J = repeats x k values by learner. With n_test / n_train = 1 / (k - 1), the statistic of Nadeau
    and Bengio (Machine Learning 52, 2003, 239-281) is

        t = mean(m_j) / sqrt((1/J + 1/(k - 1)) var(m_j)),  k - 1 degrees of freedom

    Repeats reuse the same queries, so they add no degrees of freedom.
    """
    from scipy.special import stdtr, stdtrit

    k, sign = len(next(iter(fold_means.values()), ())) // repeats, 1.0 if higher_is_better else -1.0
    factor = 1.0 / (repeats * k) + 1.0 / (k - 1)

    def test(a: str, b: str) -> tuple[float, ...]:
        differences = sign * differences_of(np.asarray(fold_means[a]), np.asarray(fold_means[b]))
        mean, error = float(differences.mean()), math.sqrt(factor) * deviation_of(differences)
        half = float(stdtrit(k - 1, 0.975)) * error if error else math.nan
        p = float(2.0 * stdtr(k - 1, -abs(mean) / error)) if error else math.nan if mean else 1.0
        return mean, mean - half, mean + half, p

    pairs = [LearnerPair(*one) for one in tested_pairs(list(fold_means), baseline, test)]
    return LearnerComparison(measure, convention, dict(means), pairs, higher_is_better, k, repeats)
