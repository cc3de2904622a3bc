"""Students of a teacher: the loss is the margin MSE over all pairs, labels are not read, a test gives the verdict."""

import numpy as np
import pytest

from truerank import ObliviousBoosting, RankingData, RankSVM, RidgeRanker, compare, distil, read_letor, write_letor
from truerank.cli import main
from truerank.core.errors import InvalidInputError
from truerank.losses.boosting import QuerySquaredError
from truerank.models.model_file import load_model


def world(m=60, n=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m * n, 4))
    truth = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=m * n)
    qid = np.repeat(np.arange(seed * 1000, seed * 1000 + m), n)
    data = RankingData(X, (truth > 1.0).astype(int), qid)
    return data, truth + 7.0 * rng.normal(size=m)[np.repeat(np.arange(m), n)]  # offsets of queries have no meaning


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_the_margin_mse_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    t, s, offsets = rng.normal(size=17), rng.normal(size=17), np.array([0, 6, 7, 17])
    gradients, _ = QuerySquaredError()(t, s, offsets)
    step = 1e-6

    def loss(scores):
        parts = []
        for a, b in zip(offsets, offsets[1:]):
            margins = (t[a:b, None] - t[None, a:b]) - (scores[a:b, None] - scores[None, a:b])
            parts.append((margins**2).sum() / (4 * (b - a)))
        return sum(parts)

    for k in range(17):
        moved = [np.where(np.arange(17) == k, s + sign * step, s) for sign in (1, -1)]
        assert gradients[k] == pytest.approx((loss(moved[0]) - loss(moved[1])) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("student", [RidgeRanker(), ObliviousBoosting(objective="query-mse", n_estimators=40)])
def test_a_student_learns_without_labels(student):
    data, scores = world()
    unlabelled = data.replaced(y=np.zeros(data.n_rows))
    before = unlabelled.y.copy()
    model = distil(unlabelled, scores, student)
    assert np.array_equal(unlabelled.y, before)
    judged, truth = world(seed=1)
    found = compare(judged, {"teacher": truth, "student": model}, "nDCG@10", margin=0.1)
    if not isinstance(student, RidgeRanker):  # a line does not know the square
        assert found.pairs[0].verdict.not_worse
    else:
        assert found.means["student"] > 0.6
    assert found.pairs[0].verdict is not None
    shifted = distil(unlabelled, scores + np.repeat(np.arange(60.0), 12), student)
    assert np.allclose(model.predict(judged), shifted.predict(judged), atol=1e-6)


def test_a_ranker_is_a_teacher():
    data, _ = world()
    teacher = ObliviousBoosting("constant", n_estimators=5, objective="mse").fit(data)
    assert np.array_equal(
        distil(data, teacher, RidgeRanker()).coef_, distil(data, teacher.predict(data), RidgeRanker()).coef_
    )


@pytest.mark.parametrize(
    ("teacher", "student"),
    [([1.0], None), (np.full(720, np.nan), None), (None, ObliviousBoosting()), (None, RankSVM())],
)
def test_what_cannot_be_learned_is_refused(teacher, student):
    data, scores = world()
    with pytest.raises(InvalidInputError):
        distil(data, scores if teacher is None else teacher, student)


def test_the_command(tmp_path, capsys):
    data, scores = world()
    write_letor(data, tmp_path / "train.txt")
    np.savetxt(tmp_path / "teacher.txt", scores)
    words = ["train", str(tmp_path / "train.txt"), "--teacher", str(tmp_path / "teacher.txt")]
    trees = ObliviousBoosting(objective="query-mse", n_estimators=9)
    for ranker, more, student in (
        ("ridge", (), RidgeRanker()),
        ("oblivious-boosting", ("--set", "n_estimators=9"), trees),
    ):
        assert main([*words, "--model", str(tmp_path / "m.json"), "--ranker", ranker, *more]) == 0
        expected = distil(read_letor(tmp_path / "train.txt"), scores, student)
        assert np.allclose(load_model(tmp_path / "m.json").predict(data), expected.predict(data), atol=1e-9)
    assert main([*words, "--model", str(tmp_path / "m.json"), "--ranker", "rank-svm"]) != 0
    capsys.readouterr()
