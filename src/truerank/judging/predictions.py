"""Predictions of a document's gain that do not use its own judgement.

A ridge regression of the gains of judged documents on judges' labels, topics and the runs' weights predicts all gains.
The prediction for a judged document excludes its own gain, in closed form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError, warn
from truerank.io.trec import run_name
from truerank.judging.sums import Frame

PSEUDO_LABEL, PSEUDO_TOPIC = 2.0, 4.0
"""Pseudo-observations that shrink the mean of a label, and of a topic, towards the overall mean."""
USUAL_LEVELS, FEW_LEVELS, MOST_LEVELS = 4, 5, 12
"""Levels of a judge without an extra penalty, and levels into which more than `MOST_LEVELS` scores are binned."""
RUN_LEVELS, MOST_TOPICS = 8, 1_000
_TINY = 1e-9


class Factors:
    """Factors that predict the gains of documents, as columns of 0 and 1.

    `codes` (N, factors) are the columns with the value 1, with different columns for each factor; column 0 is the
    overall mean. `penalties` (columns,) are the penalties of the ridge regression.
    """

    def __init__(self, factors: Sequence[tuple[np.ndarray, float]], n: int) -> None:
        codes, penalties = [np.zeros(n, dtype=np.int64)], [_TINY]
        for values, penalty in factors:
            levels, code = np.unique(values, return_inverse=True)
            codes.append(code + len(penalties))
            penalties += [penalty] * len(levels)
        self.codes, self.penalties = np.column_stack(codes), np.array(penalties)

    def predict(self, judged: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return predictions (N,) from the values of the `judged` documents (bool (N,)), without the document itself.

        b = argmin Σ_(judged) (g - Σ_f b_f)² + Σ_f λ_f b_f². For a judged document with leverage h, the prediction
        without it is g - (g - fitted) / (1 - h). With one judge and no other factor, b is the mean gain of each label,
        shrunk towards the overall mean by λ pseudo-observations. The prediction is 0 if no other document is judged.
        """
        rows, p = np.flatnonzero(judged), len(self.penalties)
        if not len(rows):
            return np.zeros(len(self.codes))
        x = np.zeros((len(rows), p))
        x[np.arange(len(rows))[:, None], self.codes[rows]] = 1.0
        inverse = np.linalg.inv(x.T @ x + np.diag(self.penalties))
        y = values[rows]
        fitted = (inverse @ (x.T @ y))[self.codes].sum(axis=1)
        leverage = np.einsum("ij,ij->i", x @ inverse, x)
        fitted[rows] = y - (y - fitted[rows]) / np.maximum(1.0 - leverage, _TINY)
        if len(rows) == 1:
            fitted[rows] = 0.0
        return fitted


def make_factors(frame: Frame, judges: Mapping[str, np.ndarray]) -> Factors:
    """Return the factors: topic, sum of the runs' weights (with at least three runs), and the label of each judge.

    Penalties of labels are proportional to the number of judges, so that naming a judge twice has no effect.
    """
    factors: list[tuple[np.ndarray, float]] = []
    if len(frame.topics) <= MOST_TOPICS:
        factors.append((frame.topic, PSEUDO_TOPIC))
    if len(frame.runs) > 2:
        total = np.asarray(frame.weights.sum(axis=0))[0]
        factors.append((_binned(total, RUN_LEVELS), PSEUDO_LABEL))
    for labels in judges.values():
        levels = np.unique(labels[~np.isnan(labels)])
        values = np.where(np.isnan(labels), -np.inf, labels)
        if len(levels) > MOST_LEVELS:
            values = _binned(values, FEW_LEVELS)
        # Many levels of a useless judge would make the interval wider.
        crowd = max(1.0, len(np.unique(values)) / USUAL_LEVELS) ** 2
        factors.append((values, PSEUDO_LABEL * len(judges) * crowd))
    return Factors(factors, len(frame.topic))


def judges_labels(frame: Frame, judges: object, highest: float) -> dict[str, np.ndarray]:
    """Return the labels (N,) of each judge by name, NaN without a label; warn about missing and unusual labels."""
    found = {name: frame.grades(judge) for name, judge in judges_by_name(judges).items()}
    for name, labels in found.items():
        lacking, strange = np.flatnonzero(np.isnan(labels)), np.unique(labels[labels > highest])
        if len(lacking) == len(labels):
            raise InvalidInputError(
                f"judge {name!r} labels none of the documents. Check that its topics are the topics of the runs",
                code="nothing-labelled",
            )
        if len(lacking):
            warn(
                f"judge {name!r} has no label for {len(lacking)} of the {len(labels)} documents (the first: topic "
                f"{frame.keys[lacking[0]][0]}, document {frame.keys[lacking[0]][1]}). Such documents are a separate "
                "level"
            )
        if len(strange) and len(np.unique(labels)) <= MOST_LEVELS:
            shown = ", ".join(f"{label:g}" for label in strange[:5])
            warn(f"judge {name!r} has labels above {highest:g} ({shown}). Each of them is a separate level")
    return found


def judges_by_name(judges: object) -> dict[str, Any]:
    """Return judges by name, from a dict, a list or a single judge."""
    if isinstance(judges, Mapping):
        first = next(iter(judges.values()), None)
        if not isinstance(first, Mapping) or any(isinstance(value, Mapping) for value in first.values()):
            return {str(name): judge for name, judge in judges.items()}
    named: dict[str, Any] = {}
    listed = () if judges is None else judges if isinstance(judges, list | tuple) else [judges]
    for place, judge in enumerate(listed, 1):
        name = run_name(os.fspath(judge)) if isinstance(judge, str | os.PathLike) else f"judge {place}"
        named[name if name not in named else f"{name} {place}"] = judge
    return named


def _binned(values: np.ndarray, levels: int) -> np.ndarray:
    """Return the number of the quantile of each value, among `levels`."""
    borders = np.unique(np.quantile(values, np.arange(1, levels) / levels, method="lower"))
    return np.searchsorted(borders, values)
