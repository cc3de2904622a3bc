"""Convert the figure of one tool to the conventions of others, on the same ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.core.checks import check_choice
from truerank.core.types import ArrayLike, MeasureLike
from truerank.data.ranking_data import Judgements, RankingData
from truerank.io.trec import Qrels, as_qrels, as_run, judge_run
from truerank.measures.conventions import CONVENTIONS
from truerank.measures.coverage import over_topics
from truerank.measures.evaluation import Evaluation, evaluate
from truerank.measures.names import parse_measures


class ConvertedClaim(dict[str, float]):
    """The mean of a measure on one ranking by convention, the stated one first; `evaluations` has the details."""

    def __init__(self, measure: str, evaluations: dict[str, Evaluation]) -> None:
        super().__init__({name: next(iter(one.values())) for name, one in evaluations.items()})
        self.measure, self.evaluations = measure, evaluations


def convert_claim(
    y: ArrayLike,
    scores: object,
    measure: MeasureLike = "nDCG@10",
    *,
    stated: str | None = None,
    qid: ArrayLike | None = None,
    topics: str | None = None,
) -> ConvertedClaim:
    """Return a figure under every convention: what trec_eval, LightGBM, CatBoost … would print for the same ranking.

    Parameters
    ----------
    y : grades (n,) with `qid`, RankingData or Judgements; or Qrels, a path, or `{topic: {document: grade}}`
    scores : array (n,); or with qrels a Run, a path, or `{topic: {document: score}}`
    measure : str or Measure, default "nDCG@10"
        The settings that it names (`nDCG(gain="linear")@10`) are kept under every convention.
    stated : str, optional
        The convention to put first.
    qid : array-like (n,), optional
    topics : {"common", "all"}, optional
        As in `evaluate` with qrels: whether topics without scores are left out or count 0. The default is the rule of
        each convention.

    Notes
    -----
    The ranking is required, because conventions differ in empty queries, short lists and ties, query by query.

    Examples
    --------
    >>> qrels, run = {"1": {"a": 2, "b": 1}, "2": {"c": 0}}, {"1": {"b": 9.0, "a": 8.0}, "2": {"c": 1.0}}
    >>> found = convert_claim(qrels, run, "nDCG@10")
    >>> {name: round(value, 3) for name, value in found.items() if name in ("trec", "ranklib", "lightgbm")}
    {'trec': 0.43, 'ranklib': 0.398, 'lightgbm': 0.898}
    """
    if stated is not None:
        check_choice(stated, "stated", CONVENTIONS)
    grades: Any = y
    if isinstance(y, dict | str | Qrels) or hasattr(y, "__fspath__"):
        grades, scores = judge_run(as_qrels(y), as_run(scores))
    names = list(CONVENTIONS) if stated is None else [stated, *(name for name in CONVENTIONS if name != stated)]
    given = grades if isinstance(grades, Judgements | RankingData) else np.asarray(grades)
    evaluations = {}
    for name in names:
        measures = measure if topics is None else list(over_topics(parse_measures(measure, name), topics).values())
        evaluations[name] = evaluate(measures, given, scores, qid=qid, convention=name)
    return ConvertedClaim(next(iter(evaluations[names[0]])), evaluations)
