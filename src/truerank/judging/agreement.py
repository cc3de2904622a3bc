"""Agreement of two judges: confusion, kappa, Krippendorff's alpha and bias by grade, with intervals over topics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from truerank.core.checks import check_positive_int
from truerank.core.errors import InvalidInputError
from truerank.core.printing import styled_table
from truerank.core.random_streams import seed_of, stream
from truerank.core.results import Result
from truerank.core.types import RandomState
from truerank.io.trec import as_qrels
from truerank.significance.intervals import Interval, stretched_percentiles


@dataclass(frozen=True)
class Agreement(Result):
    """The agreement of two judges on the documents that both have judged."""

    n: int
    topics: int
    levels: list[float]  # grades that one of the judges gives
    confusion: np.ndarray  # documents by grade of the first judge (rows) and of the second (columns)
    same: Interval  # share of documents with the same grade
    kappa: Interval  # Cohen's
    weighted_kappa: Interval  # with quadratic weights
    alpha: Interval  # Krippendorff's
    bias: dict[float, Interval]  # mean of the second judge's grade minus the first's, by the first's grade

    KIND: ClassVar[str] = "agreement"

    @property
    def summary(self) -> str:
        """A sentence with the number of documents that both have judged."""
        return f"{self.n} documents of {self.topics} topics judged by both; 95 % intervals over topics"

    def _figures(self) -> dict[str, Any]:
        intervals = {name: getattr(self, name)._asdict() for name in _STATISTICS}
        return asdict(self) | intervals | {"bias": {f"{grade:g}": one._asdict() for grade, one in self.bias.items()}}

    def _table(self, style: str) -> str:
        named = [[text, _text(getattr(self, name), ".3f")] for name, text in _STATISTICS.items()]
        rows = [
            [f"{grade:g}", *counts, _text(self.bias[grade], "+.2f") if grade in self.bias else "-"]
            for grade, counts in zip(self.levels, self.confusion.tolist())
        ]
        columns = ["first \\ second", *(f"{grade:g}" for grade in self.levels), "second minus first"]
        return "\n\n".join([styled_table(named, ["agreement", "value"], style), styled_table(rows, columns, style)])


_STATISTICS = {"same": "same grade", "kappa": "kappa", "weighted_kappa": "kappa, quadratic weights",
               "alpha": "alpha, ordinal"}  # fmt: skip


def _text(one: Interval, form: str) -> str:
    ends = "" if np.isnan(one.low) else f" [{one.low:{form}}, {one.high:{form}}]"
    return "-" if np.isnan(one.estimate) else f"{one.estimate:{form}}{ends}"


def agreement(a: object, b: object, *, n_resamples: int = 2_000, random_state: RandomState = None) -> Agreement:
    """Return the agreement of two judges (qrels) on the documents that both have judged.

    Negative grades mean not judged. Intervals are percentiles of a bootstrap over topics, and NaN for a single topic.
    The distances of the ends from the value are multiplied by t √(m/(m - 1)) / 1.96, with Student's quantile t for m
    topics. Kappa and alpha are NaN if both judges give one grade to all documents.

    Notes
    -----
    Kappa is 1 - Σ d o / Σ d e with the observed shares o, the shares e of independent judges, and the disagreement d: 0
    or 1, or the squared difference of grades (Cohen 1968). Alpha pools the shares of both judges and uses the ordinal
    difference (Krippendorff 2011). The cost is O(n + resamples · levels²).

    >>> found = agreement({"1": {"x": 1, "y": 0, "z": 1}}, {"1": {"x": 1, "y": 0, "z": 0}})
    >>> round(found.same.estimate, 4), round(found.kappa.estimate, 4)
    (0.6667, 0.4)
    """
    check_positive_int(n_resamples, "n_resamples", 10)
    first, second = (qrels.by_topic(qrels.grades) for qrels in (as_qrels(a), as_qrels(b)))
    shared = [
        (topic, grade, second[topic][document])
        for topic, own in first.items() if topic in second
        for document, grade in own.items() if grade >= 0 and second[topic].get(document, -1) >= 0
    ]  # fmt: skip
    if not shared:
        raise InvalidInputError(
            "no document is judged in both qrels. Check that their topics and document ids agree", code="nothing-common"
        )
    topics, x, y = zip(*shared)
    levels, codes = np.unique([x, y], return_inverse=True)
    names, topic = np.unique(topics, return_inverse=True)
    k, m = len(levels), len(names)
    row, column = codes.reshape(2, -1)
    tables = np.bincount((topic * k + row) * k + column, minlength=m * k * k).reshape(m, k * k).astype(np.float64)
    draws = stream(seed_of(random_state), "agreement").multinomial(m, np.full(m, 1 / m), size=n_resamples)
    counts = np.concatenate([tables.sum(axis=0)[None], draws @ tables]).reshape(-1, k, k)  # of the data, then resampled
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = (counts * (levels - levels[:, None])).sum(axis=2) / counts.sum(axis=2)
        figures = {
            "same": np.trace(counts, axis1=1, axis2=2) / counts.sum(axis=(1, 2)),
            "kappa": _kappa(counts, 1.0 - np.eye(k)),
            "weighted_kappa": _kappa(counts, (levels[:, None] - levels) ** 2),
            "alpha": _alpha(counts),
        }
    found = {name: _interval(values, m, (0.0 if name == "same" else -1.0, 1.0)) for name, values in figures.items()}
    by_grade = {
        float(level): _interval(bias[:, i], m, (float(levels[0] - level), float(levels[-1] - level)))
        for i, level in enumerate(levels) if counts[0, i].any()
    }  # fmt: skip
    return Agreement(len(shared), m, levels.tolist(), counts[0].astype(np.int64), bias=by_grade, **found)


def _interval(values: np.ndarray, topics: int, limits: tuple[float, float]) -> Interval:
    """Return the first value with percentiles of the other values, stretched for few topics, within `limits`."""
    drawn, value = values[1:][~np.isnan(values[1:])], float(values[0])
    if topics < 2 or not len(drawn):
        return Interval(value, np.nan, np.nan)
    ends = stretched_percentiles(value, drawn, topics)
    return Interval(value, *np.clip(ends, *limits).tolist())


def _kappa(counts: np.ndarray, disagreement: np.ndarray) -> np.ndarray:
    n = counts.sum(axis=(1, 2))
    expected = np.einsum("bi,bj,ij->b", counts.sum(axis=2), counts.sum(axis=1), disagreement) / n**2
    return 1.0 - (counts * disagreement).sum(axis=(1, 2)) / n / expected


def _alpha(counts: np.ndarray) -> np.ndarray:
    coincidences = counts + counts.transpose(0, 2, 1)
    given = coincidences.sum(axis=2)  # how often each grade is given, by either judge
    middle = np.cumsum(given, axis=1) - given / 2
    disagreement = (middle[:, :, None] - middle[:, None, :]) ** 2
    expected = np.einsum("bi,bj,bij->b", given, given, disagreement) / (given.sum(axis=1) - 1.0)
    return 1.0 - (coincidences * disagreement).sum(axis=(1, 2)) / expected
