"""Plans: probabilities, rounds, files, and what is refused."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from support.few_judgements import made
from support.refusals import refused
from truerank import Plan, estimate, plan_judgements, read_plan
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.judging.plan import COLUMNS, allocate
from truerank.judging.sums import Frame, sum_measure


@pytest.mark.parametrize("budget", [1.0, 7.5, 30.0, 59.0, 100.0])
def test_probabilities_add_up_to_the_budget(budget):
    rng = np.random.default_rng(0)
    importance = np.where(rng.random(60) < 0.5, 0.0, rng.gamma(0.5, size=60))
    found = allocate(importance, budget)
    assert found.sum() == pytest.approx(min(budget, 60))
    assert found.min() >= 0.1 * min(budget, 60) / 60 - 1e-12
    assert found.max() <= 1
    free = (found < 1) & (found > found.min())
    if free.any():
        ratio = found[free] / importance[free]
        assert ratio == pytest.approx(np.full(len(ratio), ratio[0]))


def test_importance_is_the_root_mean_square_over_pairs():
    runs, _, _ = made(runs=4)
    frame = Frame(runs, sum_measure("RBP(0.7)@5"))
    pairs = [(a, b) for a in runs for b in runs if a < b]
    expected = np.sqrt(np.mean([frame.difference(a, b) ** 2 for a, b in pairs], axis=0))
    assert frame.mean_square("all") == pytest.approx(expected)
    assert frame.mean_square([("run1", "run3")]) == pytest.approx(np.abs(frame.difference("run1", "run3")))
    assert frame.mean_square(None) ** 2 == pytest.approx(
        np.mean([frame.difference(a, None) ** 2 for a in frame.runs], axis=0)
    )


def test_the_number_drawn_varies_about_the_budget():
    runs, _, _ = made(topics=10, documents=30)
    counts = [int(plan_judgements(runs, "DCG@10", budget=60, random_state=seed).drawn.sum()) for seed in range(60)]
    assert len(set(counts)) > 5
    assert np.mean(counts) == pytest.approx(60, abs=3)
    first = plan_judgements(runs, "DCG@10", budget=60, random_state=3)
    assert np.array_equal(first.drawn, plan_judgements(runs, "DCG@10", budget=60, random_state=3).drawn)
    backwards = dict(reversed(list(runs.items())))
    assert np.array_equal(first.drawn, plan_judgements(backwards, "DCG@10", budget=60, random_state=3).drawn)


def test_uniform_plans_have_one_probability():
    runs, _, _ = made(topics=5, documents=20)
    plan = plan_judgements(runs, "P@10", budget=20, uniform=True)
    assert plan.probabilities == pytest.approx(np.full(len(plan.documents), 20 / len(plan.documents)))


def test_a_round_plans_what_is_not_judged_and_looks_where_the_judge_errs():
    runs, human, _ = made(topics=10, documents=40)
    sure = {t: {d: int(int(d[1:]) % 2 == 0) for d in own} for t, own in human.items()}
    truth = {t: {d: 0 if sure[t][d] else human[t][d] for d in own} for t, own in human.items()}
    first = plan_judgements(runs, "DCG@20", budget=80)
    second = plan_judgements(runs, "DCG@20", budget=80, human=first.with_grades(truth), judges=[sure])
    later = second.rounds == 2
    keys = set(zip(second.topics[later], second.documents[later]))
    done = set(zip(first.topics[first.drawn], first.documents[first.drawn]))
    assert not keys & done
    assert len(keys) + len(done) == len(set(first.keys)) == len(set(second.keys))
    assert second.probabilities[later].sum() == pytest.approx(80)
    assert second.expected == pytest.approx(160)
    label = np.array([sure[t][d] for t, d in zip(second.topics[later], second.documents[later])])
    chances = second.probabilities[later]
    assert chances[label == 0].mean() > 1.3 * chances[label == 1].mean()
    assert len(second.to_judge) == int(second.drawn[later].sum())


def test_a_file_reads_back_as_the_same_bits(tmp_path):
    runs, human, _ = made(topics=5, documents=20)
    runs["run0"]["0"]['d "7", last'] = 9.0
    human["0"]['d "7", last'] = 2
    plan = plan_judgements(runs, "DCG@10", budget=33.3)
    plan.write(tmp_path / "judge.csv")
    text = (tmp_path / "judge.csv").read_text()
    assert text.splitlines()[0] == ",".join(COLUMNS)
    rows = list(csv.DictReader(io.StringIO(text)))
    asked = [row for row in rows if row["judge"] == "yes"]
    assert rows[: len(asked)] == asked
    for row in asked:
        row["grade"] = str(human[row["topic"]][row["document"]])
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, ["note", *reversed(COLUMNS)], restval="seen", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(reversed(rows))
    (tmp_path / "filled.csv").write_text("\ufeff" + buffer.getvalue(), encoding="utf-8", newline="")
    found = read_plan(tmp_path / "filled.csv")
    assert found.to_judge == []
    key = {(t, d): i for i, (t, d) in enumerate(zip(found.topics, found.documents))}
    order = [key[pair] for pair in zip(plan.topics, plan.documents)]
    for name in ("rounds", "budgets", "probabilities", "drawn"):
        assert np.array_equal(getattr(found, name)[order], getattr(plan, name))
    assert np.array_equal(found.grades[order], plan.with_grades(human).grades, equal_nan=True)


GOOD = "topic,document,round,budget,probability,judge,grade\n1,a,1,2,.5,yes,3\n1,b,1,2,.5,no,\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace("judge,", "judging,"), {"code": "columns", "line": 1}),
        ("1 0 a 2\n1 0 b 0\n", {"code": "columns", "line": 1}),
        (GOOD.replace(".5,yes", "1.5,yes"), {"code": "row", "line": 2}),
        (GOOD.replace("yes,3", "yes,good"), {"code": "not-a-number", "line": 2}),
        (GOOD.replace("1,b", "1,a"), {"code": "twice", "line": 3}),
        (GOOD.replace(",no,", ""), {"code": "columns", "line": 3}),
        (GOOD.replace("yes,3", "yes,inf"), {"code": "row", "line": 2}),
        (GOOD.replace("yes", "perhaps"), {"code": "row", "line": 2}),
        (GOOD.splitlines()[0], {"code": "no-rows"}),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(text, words, tmp_path):
    (tmp_path / "judge.csv").write_text(text)
    with refused(DataFileError, **words):
        read_plan(tmp_path / "judge.csv")
    assert isinstance(read_plan(io.StringIO(GOOD)), Plan)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": 9}, {"argument": "budget"}),
        ({"budget": float("nan")}, {"argument": "budget"}),
        ({"pairs": "some"}, {"argument": "pairs", "value": "some"}),
        ({"pairs": [("run0", "other")]}, {"code": "unknown-run"}),
        ({"pairs": []}, {"argument": "pairs"}),
        ({"measure": "DCG@5 P@5"}, {"code": "several-measures"}),
        ({"human": "open"}, {"code": "no-grade"}),
        ({"runs": {}}, {"argument": "runs"}),
    ],
)
def test_misuse_of_a_plan_says_what_to_do(change, words):
    runs, _, _ = made(topics=5, documents=12)
    given = {"runs": runs, "measure": "DCG@5", "budget": 20} | change
    if given.get("human") == "open":
        given["human"] = plan_judgements(runs, "DCG@5", budget=20)
    with refused(InvalidInputError, **words):
        plan_judgements(**given)


def test_grades_that_disagree_with_the_plan_are_refused():
    runs, human, _ = made(topics=5, documents=12)
    plan = plan_judgements(runs, "DCG@5", budget=20).with_grades(human)
    topic, document = next(iter(plan.judged)), next(iter(next(iter(plan.judged.values()))))
    human[topic][document] = 3 - human[topic][document]
    with refused(InvalidInputError, code="contradiction"):
        plan.with_grades(human)


def test_no_argument_after_the_measure_goes_by_its_place():
    runs, human, judge = made(topics=5, documents=12)
    plan = plan_judgements(runs, "DCG@5", budget=20)
    with pytest.raises(TypeError, match="positional"):
        plan_judgements(runs, "DCG@5", 20, human)
    with pytest.raises(TypeError, match="positional"):
        estimate(runs, "DCG@5", human, plan)
    later = plan_judgements(runs, "DCG@5", budget=20, human=human, judges=[judge])
    assert not np.array_equal(later.probabilities, plan.probabilities)
