"""Approximate a model by plain trees for formats that cannot hold it, and measure the loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.export.certificate import dense_rows, reference_scores
from truerank.export.form import ModelForm, form_of

_SETTINGS: dict[str, Any] = {
    "leaves": "constant", "n_estimators": 500, "learning_rate": 0.1, "depth": 6, "borders": 254,
}  # fmt: skip


def distilled_form(form: ModelForm, data: RankingData, judged: RankingData | None) -> tuple[ModelForm, dict[str, Any]]:
    """Return a form of constant oblivious trees fitted by least squares to the model's scores on `data`, and its cost.

    The cost is measured on `judged`, or else on `data`: nDCG@10 and AP of both models if there are grades, the share of
    pairs within queries that both order the same way, and the largest difference of scores.
    """
    from truerank.rankers.oblivious_boosting import ObliviousBoosting

    if not isinstance(data, RankingData):
        raise InvalidInputError(f"distil must be a RankingData, got {type(data).__name__}")
    if form.calibration is not None:
        raise InvalidInputError("a calibrated model cannot be distilled; export its ranker")
    X = dense_rows(data)
    targets = reference_scores(form, X)
    low = float(targets.min())
    teacher = RankingData.from_grouped(X, targets - low, data.offsets, data.query_ids, feature_names=data.feature_names)
    student = ObliviousBoosting(**_SETTINGS).fit(teacher)
    plain = form_of(student, form.names)
    where = data if judged is None else judged
    rows = dense_rows(where)
    before, after = reference_scores(form, rows), reference_scores(plain, rows)
    cost: dict[str, Any] = {
        "trees": student.n_iter_, "measured_on": "the rows of the distillation" if judged is None else "certify",
        "rank_agreement": concordance(before, after, where.offsets),
        "largest_difference": float(np.abs(after + low - before).max(initial=0.0)), "shift": low,
    }  # fmt: skip
    if where.y is not None:
        from truerank.measures import parse_measure

        for name in ("nDCG@10", "AP"):
            measure, judgements = parse_measure(name, convention="ranklib"), where.judgements()
            cost[name] = {
                "model": float(measure.mean(judgements, before)), "distilled": float(measure.mean(judgements, after)),
            }  # fmt: skip
    return plain, cost


def concordance(a: np.ndarray, b: np.ndarray, offsets: np.ndarray) -> float:
    """Return the share of pairs within queries with different a that b orders the same way; ties of b count half."""
    same = total = 0.0
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        x, y = np.sign(np.subtract.outer(a[start:stop], a[start:stop])), np.subtract.outer(b[start:stop], b[start:stop])
        upper = np.triu(x != 0, 1)
        same += float(np.where(y == 0, 0.5, np.sign(y) == x)[upper].sum())
        total += float(upper.sum())
    return same / total if total else 1.0
