"""Agreement of two judges, against sums over every pair of documents."""

from __future__ import annotations

import numpy as np
import pytest

from reference import judging as reference
from support.refusals import refused
from truerank import agreement
from truerank.core.errors import InvalidInputError


def judges(seed=0, topics=6, documents=15):
    rng = np.random.default_rng(seed)
    first = {str(t): {f"d{d}": int(rng.integers(0, 4)) for d in range(documents)} for t in range(topics)}
    second = {
        t: {d: int(np.clip(g + rng.integers(-1, 2), 0, 5)) for d, g in own.items() if rng.random() < 0.9}
        for t, own in first.items()
    }
    return first, second


def test_statistics_are_those_of_every_pair():
    first, second = judges()
    found = agreement(first, second)
    x = [first[t][d] for t, own in second.items() for d in own]
    y = [g for own in second.values() for g in own.values()]
    assert found.n == len(x)
    assert found.topics == 6
    assert found.same.estimate == pytest.approx(np.mean(np.equal(x, y)))
    assert found.kappa.estimate == pytest.approx(reference.kappa(x, y, lambda a, b: a != b))
    assert found.weighted_kappa.estimate == pytest.approx(reference.kappa(x, y, lambda a, b: (a - b) ** 2))
    assert found.alpha.estimate == pytest.approx(reference.alpha(x, y))
    for grade, one in found.bias.items():
        assert one.estimate == pytest.approx(np.mean([b - a for a, b in zip(x, y) if a == grade]))
        assert one.low < one.high
    assert found.confusion.sum() == len(x)
    assert found.kappa.low < found.kappa.estimate < found.kappa.high
    assert "alpha" in str(found)
    assert found.to_dict()["n"] == len(x)


def test_a_judge_agrees_with_itself_and_chance_is_zero():
    first, _ = judges(topics=40, documents=60)
    same = agreement(first, first)
    assert (same.same.estimate, same.kappa.estimate, same.alpha.estimate) == (1, 1, 1)
    rng = np.random.default_rng(1)
    chance = agreement(first, {t: {d: int(rng.integers(0, 4)) for d in own} for t, own in first.items()})
    assert abs(chance.kappa.estimate) < 0.05
    assert chance.kappa.low < 0 < chance.kappa.high


def test_constant_grades_and_single_topics_have_no_figures():
    one = agreement({"1": {"a": 1, "b": 1}}, {"1": {"a": 1, "b": 1}})
    assert np.isnan(one.kappa.estimate)
    assert np.isnan(one.same.low)
    with refused(InvalidInputError, code="nothing-common"):
        agreement({"1": {"a": 1}}, {"2": {"a": 1}})


@pytest.mark.parametrize("topics", [3, 6])
def test_intervals_cover_the_population_with_few_topics(topics):
    rng = np.random.default_rng(5)
    missed = 0
    for draw in range(200):
        easy = rng.beta(2, 3, topics)  # share of the documents on which the judges agree; 0.4 on average
        first = {str(t): {str(d): 1 for d in range(15)} for t in range(topics)}
        second = {str(t): {str(d): int(rng.random() < easy[t]) for d in range(15)} for t in range(topics)}
        found = agreement(first, second, n_resamples=200, random_state=draw).same
        assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
        missed += not found.low <= 0.4 <= found.high
    assert missed <= 0.05 * 200 + 2 * np.sqrt(0.05 * 0.95 * 200)
