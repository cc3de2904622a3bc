"""Compare learning procedures by the fold means of repeated cross-validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.core.printing import Tabular, styled_table
from truerank.significance.corrections import holm
from truerank.significance.paired import deviation_of


class LearnerPair(NamedTuple):
    """Learner `a` against `b`: mean difference over folds (positive if `a` is better), 95 % interval, p-values.

    The interval is of this pair alone and agrees with `p`; `p_adjusted` is corrected by Holm. If all folds have the
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
class LearnerComparison(Tabular):
    """The result of `CrossValidation.compare(about="learners")`."""

    measure: str
    convention: str
    folds: int
    repeats: int
    means: dict[str, float] = field(repr=False)
    pairs: list[LearnerPair] = field(repr=False)

    @property
    def about(self) -> str:
        """The population and the test, in words."""
        return (
            f"learning procedures on data like these: {self.measure} ({self.convention}), corrected resampled t-test "
            f"over {self.repeats} x {self.folds} folds with {self.folds - 1} degrees of freedom, p adjusted by Holm"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the test and its pairs for JSON."""
        pairs = [{k: None if v != v else v for k, v in pair._asdict().items()} for pair in self.pairs]
        return {"measure": self.measure, "folds": self.folds, "repeats": self.repeats, "pairs": pairs}

    def _table(self, style: str) -> str:
        rows = [
            [f"{pair.a} against {pair.b}", self.means[pair.a], self.means[pair.b],
             f"{pair.difference:+.4f}" + (f" [{pair.low:+.4f}, {pair.high:+.4f}]" if pair.low == pair.low else ""),
             pair.p, pair.p_adjusted]
            for pair in self.pairs
        ]  # fmt: skip
        return styled_table(rows, ["learners", "mean", "against", "difference, 95%", "p", "p, holm"], style)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.about}"


def compare_learners(
    fold_means: Mapping[str, Sequence[float]],
    means: Mapping[str, float],
    measure: str,
    convention: str,
    repeats: int,
    higher_is_better: bool = True,
    baseline: str | None = None,
) -> LearnerComparison:
    """Return the corrected resampled t-test of every pair of learners, or of each against `baseline`.

    `fold_means` holds J = repeats x k values by learner. With n_test / n_train = 1 / (k - 1), the statistic of Nadeau
    and Bengio (Machine Learning 52, 2003, 239-281) is

        t = mean(m_j) / sqrt((1/J + 1/(k - 1)) var(m_j)),  k - 1 degrees of freedom

    Repeats reuse the same queries, so they add no degrees of freedom.
    """
    from scipy.special import stdtr, stdtrit

    names = list(fold_means)
    if baseline is not None and baseline not in names:
        raise InvalidInputError(f"baseline {baseline!r} is none of {', '.join(names)}")
    if len(names) < 2:
        raise InvalidInputError(f"a comparison needs at least two learners, got {len(names)}")
    chosen = list(combinations(names, 2)) if baseline is None else [(a, baseline) for a in names if a != baseline]
    k = len(fold_means[names[0]]) // repeats
    factor = 1.0 / (repeats * k) + 1.0 / (k - 1)
    found = []
    for a, b in chosen:
        differences = (1.0 if higher_is_better else -1.0) * (np.asarray(fold_means[a]) - np.asarray(fold_means[b]))
        mean, error = float(differences.mean()), math.sqrt(factor) * deviation_of(differences)
        half = float(stdtrit(k - 1, 0.975)) * error if error else math.nan
        p = float(2.0 * stdtr(k - 1, -abs(mean) / error)) if error else math.nan if mean else 1.0
        found.append((a, b, mean, mean - half, mean + half, p))
    known = np.array([one[-1] for one in found])
    adjusted = np.where(np.isnan(known), math.nan, holm(np.nan_to_num(known, nan=1.0))).tolist()
    pairs = [LearnerPair(*one, p_adjusted) for one, p_adjusted in zip(found, adjusted)]
    return LearnerComparison(measure, convention, k, repeats, dict(means), pairs)
