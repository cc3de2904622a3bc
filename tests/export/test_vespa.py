"""Vespa's rank profiles: the evaluator of expressions, names, and what an expression cannot hold."""

import numpy as np
import pytest

from support.refusals import refused
from truerank import RankingData, RidgeRanker, export_model
from truerank.core.errors import InvalidInputError
from truerank.export import python, vespa
from truerank.export.form import ModelForm, Plain
from truerank.export.vespa import run_profile
from truerank.trees.binary import BinaryTrees

NAMES = ("bm25(title)", "attribute(age)", "age")


def scores(expression, rows):
    text = vespa._text("m", [("m_score", expression)], "m_score")
    return run_profile(text, NAMES)(np.array(rows, dtype=np.float64))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 - 2 - 3", -4),
        ("8 / 4 / 2", 1),
        ("2 + 3 * 4 - 1", 13),
        ("(2 + 3) * (-4.5)", -22.5),
        ("1e3 -1", 999),
        ("bm25(title) * 2 + age", 9),
        ("if (attribute(age) <= 5, 1, 2)", 1),
        ("if (isNan(age) || bm25(title) > 1, if (age > 2, 7, 8), 9)", 7),
        ("max(min(age, 2), 1) + abs(-3) + exp(0)", 6),
    ],
)
def test_expressions(expression, expected):
    assert scores(expression, [[3, 5, 3]]).tolist() == [expected]


def test_each_row_takes_its_own_side_and_nan_compares_false():
    rows = [[0, 0, 1], [0, 0, 3], [0, 0, np.nan]]
    assert scores("if (age > 2, 10 + age, if (age <= 2, age, -1))", rows).tolist() == [1, 13, -1]


@pytest.mark.parametrize("expression", ["1 +", "(1", "foo(1)", "1 $ 2", "height", "1 2", "if (1, 2, 3", ""])
def test_what_is_no_expression_is_refused(expression):
    with refused(InvalidInputError, code="expression"):
        scores(expression, [[0, 0, 0]])


def test_names_of_features():
    data = RankingData([[1.0, 2.0, 0.5], [2.0, 1.0, 0.0], [3.0, 3.0, 1.5]], [0, 0, 1])
    ranker = RidgeRanker().fit(data)
    text = export_model(ranker, "vespa", NAMES, name="ag e", certify=data)
    assert text.startswith("rank-profile ag_e inherits default {")
    assert text.certificate.largest_difference == 0
    text = export_model(ranker, "vespa", NAMES, name="age")
    assert text.startswith("rank-profile age_ inherits default {")  # no function is called like a feature
    with refused(InvalidInputError, argument="feature_names"):
        export_model(ranker, "vespa", ["a b", "c", "d"])
    with refused(InvalidInputError, argument="feature_names"):
        export_model(ranker, "vespa", ["min", "c", "d"])


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_have_the_bits_of_the_program(seed):
    """Any shape, either side for nan, zero as missing, thresholds without effect, features on both sides of 1e-35."""
    rng = np.random.default_rng(seed)
    features, thresholds, right, zero, left, other, values, roots = ([] for _ in range(8))

    def grown(depth):
        if depth == 0 or rng.random() < 0.2:
            values.append(float(np.round(rng.normal(), 2)))
            return -len(values)
        node = len(features)
        features.append(int(rng.integers(3)))
        thresholds.append(float(rng.choice([-1.0, 0.0, 0.5, np.inf])))
        right.append(rng.random() < 0.5)
        zero.append(rng.random() < 0.3)
        left.append(0)
        other.append(0)
        left[node], other[node] = grown(depth - 1), grown(depth - 1)
        return node

    roots = [grown(4) for _ in range(5)]
    trees = BinaryTrees(
        np.array(roots), np.array(features, dtype=np.int64), np.array(thresholds), np.array(right, dtype=bool),
        np.array(zero, dtype=bool), np.array(left), np.array(other), np.array(values),
    )  # fmt: skip
    form = ModelForm(NAMES, Plain(trees), start=0.25)
    space = {}
    exec(python.write(form, "m", "float64"), space)
    rows = rng.choice([-2.0, -1.0, 0.0, 1e-36, 0.5, 0.7, np.nan], size=(200, 3))
    expected = [space["score"](row) for row in rows.tolist()]
    assert run_profile(vespa.write(form, "m", "float64"), NAMES)(rows).tolist() == expected


def test_trees_that_are_too_deep_are_refused():
    count = 250
    number = np.arange(count)
    right = np.append(number[1:], ~count)
    trees = BinaryTrees(
        np.array([0]), np.zeros(count, dtype=np.int64), number.astype(float), np.zeros(count, dtype=bool),
        np.zeros(count, dtype=bool), ~number, right, np.arange(count + 1.0),
    )  # fmt: skip
    with refused(InvalidInputError, code="too-deep"):
        vespa.write(ModelForm(("age",), Plain(trees)), "deep", False)
