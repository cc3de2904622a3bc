"""Distil a teacher, such as a cross-encoder, into a cheap ranker that learns its score differences."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from sklearn.base import clone

from truerank.core.checks import as_vector
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import RankingData
from truerank.io.rows import RowsLike, rows_of
from truerank.rankers.baselines import RidgeRanker
from truerank.rankers.oblivious_boosting import ObliviousBoosting

OBJECTIVE: Final = "query-mse"


def distil(data: RowsLike, teacher: Any, student: Any = None, *, eval_set: RankingData | None = None) -> Any:
    """Return a copy of the student that has learned the teacher's score differences within queries.

    The loss of a query with n documents is `1/(2n) Σ_ij ((t_i - t_j) - (s_i - s_j))²`, the margin MSE over all pairs
    of its documents, for teacher scores t and student scores s. It equals `½ Σ_i (e_i - mean of e)²` with e = t - s,
    which trees have as the objective "query-mse", and ridge regression as its loss.

    Parameters
    ----------
    data : RankingData
        Cheap features of documents of any queries; grades are not read, so queries need no labels.
    teacher : array-like (n,), or fitted ranker
        Scores in the order of the rows, higher is better; only differences within a query matter. A ranker scores the
        rows.
    student : ObliviousBoosting or RidgeRanker, optional
        By default `ObliviousBoosting(objective="query-mse")`. It is cloned.
    eval_set : RankingData, optional
        Judged queries with human labels, for early stopping by the student's measure.

    Raises
    ------
    InvalidInputError
        If scores are not finite, or not as many as the rows, or if the student has another loss.

    Notes
    -----
    Test with human labels whether the student is good enough: `compare(judged, {"teacher": scores, "student":
    student}, margin=0.01)` tests whether it is not worse by more than the margin.

    References
    ----------
    S. Hofstätter et al.: Improving efficient neural ranking models with cross-architecture knowledge distillation.
    arXiv:2010.02666 (2020): margin MSE.

    Examples
    --------
    >>> data = RankingData([[1.0], [3.0], [2.0], [5.0], [4.0]], [0, 0, 0, 0, 0], [1, 1, 1, 2, 2])
    >>> student = distil(data, [0.5, 2.5, 1.5, -3.0, -4.0], RidgeRanker(alpha=0.0))
    >>> student.coef_.round(6).tolist()
    [1.0]
    """
    data = rows_of(data)
    model = clone(ObliviousBoosting(objective=OBJECTIVE) if student is None else student)
    check_student(model)
    return model.fit(with_teacher(data, teacher), eval_set=eval_set)


def check_student(model: Any) -> None:
    """Raise an error unless a ranker learns differences of scores within queries."""
    if isinstance(model, ObliviousBoosting):
        if model.objective != OBJECTIVE:
            raise InvalidInputError(
                f"the student's objective {model.objective!r} does not learn differences of scores",
                argument="student",
                remedies=[f'pass ObliviousBoosting(objective="{OBJECTIVE}", …)'],
            )
    elif not isinstance(model, RidgeRanker):
        raise InvalidInputError(
            f"the student must be an ObliviousBoosting or a RidgeRanker, got {type(model).__name__}", argument="student"
        )


def with_teacher(data: RankingData, teacher: Any) -> RankingData:
    """Return data whose grades are the teacher's scores minus the lowest score of the query."""
    by_ranker = hasattr(teacher, "predict")
    scores = as_vector(data.scores(teacher) if by_ranker else teacher, "teacher", data.n_rows)
    scores = scores if by_ranker else data.grouped(scores)
    lowest = np.repeat(np.minimum.reduceat(scores, data.offsets[:-1]), data.group_sizes)
    return data.replaced(y=scores - lowest)
