"""A Python function as a measure."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from support.refusals import refused
from truerank import evaluate
from truerank.calibration.query_losses import parse_loss
from truerank.core.errors import InvalidInputError
from truerank.data.ranking_data import Judgements
from truerank.losses.protocols import FunctionObjective
from truerank.measures import parse_measure


def top_grade(grades):
    return grades[0] / 4


def test_it_is_called_with_the_grades_in_ranked_order():
    seen = []

    def measure(grades):
        seen.append(grades.tolist())
        return 0.5

    judgements = Judgements(np.array([0.0, 1, 2, 3]), np.array([0, 3, 4]))
    values = parse_measure(measure).per_query(judgements, np.array([[1.0, 3, 2, 0], [0, 0, 0, 0]]))
    assert values.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert sorted(seen) == [[0, 1, 2], [1, 2, 0], [3], [3]]


def test_it_is_a_value_like_any_measure():
    measure = parse_measure(top_grade)
    assert measure == parse_measure(top_grade) == pickle.loads(pickle.dumps(measure))
    assert measure != parse_measure(lambda grades: 0.0)
    assert repr(measure) == "FunctionMeasure(top_grade)"
    assert measure.name == "top_grade"
    assert measure(ties="pessimistic").per_query(Judgements(np.array([3.0, 1]), np.array([0, 2])), [1, 1]) == [0.25]
    assert list(evaluate([0, 4], [0.1, 0.2], top_grade).values()) == [1.0]
    with refused(InvalidInputError, code="no-average"):
        parse_measure(top_grade, "sklearn")


@pytest.mark.parametrize("value", ["high", None, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_an_error(value):
    with refused(InvalidInputError, code="not-finite"):
        evaluate([0, 1], [0.1, 0.2], lambda grades: value)


def test_it_gives_its_function():
    assert parse_measure(top_grade).function is top_grade


def test_functions_of_other_arguments_are_refused_before_they_are_called():
    y, scores, qid = [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], [1, 1, 2, 2]
    with refused(InvalidInputError, argument="measure <lambda>", value="(y, scores)"):
        evaluate(y, scores, lambda y, scores: 1.0, qid=qid)
    for function in (lambda grades: 1.0, lambda grades, k=3: 1.0, lambda *all: 1.0, np.mean, len):
        assert len(evaluate(y, scores, function, qid=qid)) == 1
    with refused(InvalidInputError, argument="objective", value="(y_true, y_pred)"):
        FunctionObjective(lambda y_true, y_pred: (y_pred, y_true))
    with refused(InvalidInputError, argument="loss", value="(grades)"):
        parse_loss(lambda grades: 0.0, "shown")
