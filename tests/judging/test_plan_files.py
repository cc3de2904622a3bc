"""What happens to plans on their way through files and spreadsheets: formulas, zeros, grades that nobody may lose."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.refusals import refused
from truerank import Plan, estimate, plan_judgements, read_plan
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.judging.plan import COLUMNS

IDS = st.text(st.sampled_from("=+-@\t\r\n'\"＝＋－＠ a0,;|!"), min_size=1, max_size=6) | st.text(min_size=1)
RUNS = {
    "a": {"051": {"000072": 3.0, "000073": 2.0, "9": 1.0}, "052": {"000072": 1.0, "7": 2.0}},
    "b": {"051": {"9": 3.0, "000073": 2.0, "000072": 1.0}, "052": {"000072": 2.0, "7": 1.0}},
}


def plan_of(keys, grades):
    n = len(keys)
    topics, documents = ([key[k] for key in keys] for k in (0, 1))
    columns = [np.ones(n, np.int64), np.full(n, 2.0), np.full(n, 0.5), np.ones(n, bool), np.array(grades)]
    return Plan(np.array(topics, object), np.array(documents, object), *columns)


@given(st.lists(st.tuples(IDS, IDS, st.floats(-1e9, 1e9) | st.just(np.nan)), min_size=1, unique_by=lambda row: row[:2]))
def test_every_id_and_grade_reads_back_and_no_cell_is_a_formula(rows):
    plan = plan_of([row[:2] for row in rows], [row[2] for row in rows])
    assert not any(cell[:1] in "=+-@\t\r\n＝＋－＠" for row in plan.cells() for cell in row[:2] if cell)
    with pytest.MonkeyPatch.context() as patch:
        written = io.StringIO(newline="")
        patch.setattr("truerank.judging.plan.atomic_write", lambda target: _Kept(written))
        plan.write("nowhere.csv")
    found = read_plan(io.StringIO(written.getvalue(), newline=""))
    assert found.keys == plan.keys
    assert np.array_equal(found.grades, plan.grades, equal_nan=True)


class _Kept:
    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *error):
        pass


def filled(plan):
    return plan.with_grades({topic: dict.fromkeys(of, 2) for topic, of in RUNS["a"].items()})


@pytest.mark.parametrize("mark", [".", ","])
def test_plans_of_european_spreadsheets_are_read(mark):
    plan = plan_of([("1", "a,b"), ("2", 'c;"d"')], [2.5, np.nan])
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([*row[:2], *(cell.replace(".", mark) for cell in row[2:])] for row in plan.cells())
    found = read_plan(io.StringIO("\ufeff" + text.getvalue(), newline=""))
    assert found.keys == plan.keys
    assert found.rows() == plan.rows()


@pytest.mark.parametrize(("grade", "scale"), [(5.0, (0, 5)), (-1.5, (-2, 4)), (4.5, (0, 5))])
def test_the_scale_that_is_advised_holds_the_grade(grade, scale):
    plan = filled(plan_judgements(RUNS, "DCG@3", budget=4))
    plan.grades[np.flatnonzero(plan.drawn)[0]] = grade
    with refused(InvalidInputError, argument="grades", code="outside-scale"):
        estimate(RUNS, "DCG@3", plan=plan)


def test_grades_are_replaced_only_on_request(tmp_path):
    path, plan = tmp_path / "judge.csv", plan_judgements(RUNS, "DCG@3", budget=4)
    plan.write(path)
    plan_judgements(RUNS, "DCG@3", budget=4.5, random_state=3).write(path)  # nobody has graded
    filled(plan).write(path)
    graded = path.read_bytes()
    with refused(InvalidInputError, argument="target", code="exists", remedy={"replace": True}):
        plan.write(path)
    assert path.read_bytes() == graded
    single = plan_judgements(RUNS, "DCG@3", budget=4)
    single.grades[np.flatnonzero(single.drawn)[0]] = 2
    single.write(tmp_path / "single.csv")
    with pytest.raises(InvalidInputError) as caught:
        plan.write(tmp_path / "single.csv")
    assert "has 1 grade that" in str(caught.value)
    filled(plan).write(path)  # the same grades
    with pytest.warns(TruerankWarning, match="is replaced"):
        plan.write(path, replace=True)
    assert np.isnan(read_plan(path).grades).all()


@pytest.mark.parametrize(
    "content", [b"51 0 72 3\n", b"topic;document;grade\n1;a;3\n", b"PK\x03\x04\xff", b'"' + b"x" * 200_000]
)
def test_what_is_not_a_plan_is_kept(tmp_path, content):
    path = tmp_path / "grades"
    path.write_bytes(content)
    with refused(InvalidInputError, argument="target", code="exists"):
        plan_judgements(RUNS, "DCG@3", budget=4).write(path)
    assert path.read_bytes() == content


def without_zeros(plan):
    strip = np.vectorize(lambda name: name.lstrip("0"), otypes=[object])
    return Plan(strip(plan.topics), strip(plan.documents), *(vars(plan)[name] for name in list(vars(plan))[2:]))


@pytest.mark.parametrize("what", ["topics", "documents"])
def test_lost_zeros_are_named(what):
    plan = filled(plan_judgements(RUNS, "DCG@3", budget=4))
    lost = without_zeros(plan)
    lost = Plan(**(vars(plan) | {what: getattr(lost, what)}))
    for action in (
        lambda: estimate(RUNS, "DCG@3", plan=lost),
        lambda: lost.with_grades({"051": {"000072": 1}}),
        lambda: plan_judgements(RUNS, "DCG@3", budget=4, human=lost),
    ):
        with refused(InvalidInputError, code="leading-zeros"):
            action()
    assert estimate(RUNS, "DCG@3", plan=plan).n_topics == 2
