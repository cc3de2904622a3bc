"""Orders of systems by human and model judgements: statistics against loops, swaps, intervals, the command."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from reference.orders import rbo, tau, tau_ap
from support.refusals import refused
from truerank import evaluate, leaderboard
from truerank.cli import main
from truerank.core.errors import InvalidInputError, TruerankWarning
from truerank.io.trec import as_qrels, as_run, write_qrels, write_run
from truerank.judging.leaderboard import _agreement, _swapped, correlations, resampled


def test_correlations_are_those_of_loops_over_pairs_places_and_ties():
    rng = np.random.default_rng(0)
    for _ in range(100):
        k = int(rng.integers(2, 6))
        a, b = rng.integers(0, 4, (2, k)).astype(float)
        expected = [tau(a, b), tau_ap(a, b), rbo(a, b, 0.9)]
        np.testing.assert_allclose(correlations(a[None], b[None])[:, 0], expected, atol=1e-12)


def test_equal_orders_agree_and_opposite_ones_do_not():
    order = np.arange(6.0)[None]
    np.testing.assert_allclose(correlations(order, 3 * order + 1)[:, 0], [1, 1, 1])
    found = correlations(order, -order)[:, 0]
    assert found[:2].tolist() == [-1, -1]
    assert 0 < found[2] < 1


@pytest.fixture(scope="module")
def collection():
    """Twenty topics of 30 documents; six systems whose noise grows; a good judge and one that inverts the grades."""
    rng = np.random.default_rng(3)
    grades = rng.integers(0, 4, (20, 30))
    runs = {}
    for k in range(6):
        noisy = grades + (0.4 + 0.5 * k) * rng.normal(size=grades.shape)
        runs[f"s{k}"] = {f"{t}": {f"d{d}": float(noisy[t, d]) for d in range(30)} for t in range(20)}
    table = lambda own: {f"{t}": {f"d{d}": int(own[t, d]) for d in range(30)} for t in range(20)}  # noqa: E731
    flipped = np.where(rng.random(grades.shape) < 0.1, 3 - grades, grades)
    return table(grades), {"good": table(flipped), "inverse": table(3 - grades)}, runs


def test_a_good_judge_keeps_the_order_and_an_inverse_one_swaps_it(collection):
    human, judges, runs = collection
    found = leaderboard(human, judges, runs, "DCG@10", n_resamples=200)
    good, inverse = found.judges
    values = evaluate(human, runs, "DCG@10", convention="trec")
    assert found.means == pytest.approx({name: own["DCG@10"] for name, own in values.items()})
    assert good.tau.low <= good.tau.estimate <= good.tau.high <= 1.0
    assert good.tau.estimate > 0.8 > 0 > inverse.tau.estimate
    assert inverse.swapped >= 10
    assert {("s0", "s5"), ("s1", "s5")} <= set(inverse.swaps)
    assert good.swaps == []
    assert 40 <= good.restored <= 600
    assert len(inverse.swaps) <= inverse.swapped
    assert found.summary.startswith("good is the best of 2 judges")


def test_people_who_judge_themselves_need_no_mending(collection):
    human, _, runs = collection
    (itself,) = leaderboard(human, {"same": human}, runs, "nDCG@10", n_resamples=50).judges
    assert (itself.tau.estimate, itself.tau_ap.estimate, itself.swapped) == (1.0, 1.0, 0)
    assert itself.rbo.estimate == pytest.approx(1.0)
    assert itself.restored is None  # nDCG is no sum over documents


def test_only_topics_that_all_judgements_have_count(collection):
    human, judges, runs = collection
    fewer = {topic: own for topic, own in judges["good"].items() if int(topic) < 12}
    found = leaderboard(human, {"good": fewer}, runs, "P@5", n_resamples=50, restore=False)
    assert found.topics == 12
    part = {topic: own for topic, own in human.items() if int(topic) < 12}
    again = leaderboard(part, {"good": fewer}, runs, "P@5", n_resamples=50, restore=False)
    assert found.to_dict() == again.to_dict()


def test_what_is_no_leaderboard_is_refused(collection):
    human, judges, runs = collection
    with refused(InvalidInputError, argument="runs"):
        leaderboard(human, judges, {"a": runs["s0"], "b": runs["s1"]})
    with refused(InvalidInputError, code="few-topics"):
        leaderboard(human, {"good": {"0": judges["good"]["0"]}}, runs)


def test_the_command_prints_the_same(collection, tmp_path, capsys):
    human, judges, runs = collection
    write_qrels(as_qrels(human), tmp_path / "human.qrels")
    (tmp_path / "runs").mkdir()
    for name, own in runs.items():
        write_run(as_run(own, name), tmp_path / "runs" / f"{name}.run")
    for name, own in judges.items():
        write_qrels(as_qrels(own), tmp_path / name)
    files = ["--judges", *(str(tmp_path / name) for name in judges), "--runs", str(tmp_path / "runs")]
    command = ["judge", "leaderboard", "--qrels", str(tmp_path / "human.qrels"), *files, "--measure", "DCG@10"]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == leaderboard(human, judges, runs, "DCG@10").to_dict()
    assert main(command) == 0
    assert "s0 is better by human judgements" in capsys.readouterr().out
    assert main(["judge", "leaderboard", *files]) == 2


def test_labels_in_words_have_the_numbers_that_are_given(collection, tmp_path, capsys):
    human, judges, runs = collection
    write_qrels(as_qrels(human), tmp_path / "human.qrels")
    for name in ("s0", "s2", "s4"):
        write_run(as_run(runs[name], name), tmp_path / f"{name}.run")
    words, lines = ["bad", "fair", "good", "perfect"], []
    for topic, own in judges["good"].items():
        lines += [f"{topic} 0 {document} {words[grade]}\n" for document, grade in own.items()]
    (tmp_path / "words.txt").write_text("".join(lines))
    ranked = [str(tmp_path / f"{name}.run") for name in ("s0", "s2", "s4")]
    given = ["--qrels", str(tmp_path / "human.qrels"), "--judges", str(tmp_path / "words.txt"), "--runs", *ranked]
    command = ["judge", "leaderboard", *given]
    assert main(command) == 1
    capsys.readouterr()
    assert main([*command, "--json", "--grades", "bad=0", "fair=1", "good=2", "perfect=3"]) == 0
    found = json.loads(capsys.readouterr().out)
    chosen = {name: runs[name] for name in ("s0", "s2", "s4")}
    assert found == leaderboard(human, {"words": judges["good"]}, chosen).to_dict()


def test_means_that_differ_by_rounding_are_tied():
    runs = {name: {t: {d: -float(k) for k, d in enumerate(order)} for t in "123"}
            for name, order in {"a": "xyz", "b": "yxz", "c": "zyx"}.items()}  # fmt: skip
    people = {"1": {"x": 1, "y": 0}, "2": {"x": 1, "y": 0, "z": 0}, "3": {"x": 0, "y": 1, "z": 0}}
    human = np.array([[0.1, 0.0, 0.0], [0.2, 0.0, 0.0], [0.0, 0.3, 0.0]])
    assert (human[:, 0] - human[:, 1]).mean() != 0
    for judge in (np.tile([0.1, 0.0, 0.0], (3, 1)), np.tile([0.0, 0.1, 0.0], (3, 1))):
        assert _swapped(human, judge, 0) == []
    tied = {t: {"x": 1, "y": 1, "z": 1} for t in "123"}
    found = leaderboard(tied, {"model": people}, runs, "DCG@3")
    with pytest.warns(TruerankWarning, match="all systems the same DCG@3"):
        leaderboard(people, {"model": tied}, runs, "DCG@3", restore=False)
    assert np.isnan(found.judges[0].tau.estimate)
    assert found.judges[0].restored is None


@pytest.mark.parametrize("systems", [4, 20])
def test_intervals_cover_tau_of_close_systems(systems):
    """Resampled orders are noisier than the order itself; of few systems, leaving out one topic may change nothing."""
    rng, covered = np.random.default_rng(4), 0
    human = np.sort(rng.normal(0, 0.1, systems)) + rng.normal(0, 0.3, (200, systems))
    judge = human + rng.normal(0, 0.05, systems) + rng.normal(0, 0.3, human.shape)
    truth = correlations(human.mean(axis=0)[None], judge.mean(axis=0)[None])[0, 0]
    for _ in range(100):
        topics = rng.integers(0, 200, 20)
        tau = _agreement(human[topics], judge[topics], *resampled(20, systems, 100, rng))[0]
        covered += tau.low <= truth <= tau.high
    assert covered >= 93


def test_intervals_cover_tau_of_nearly_equal_systems_that_are_all_swapped():
    """Of six systems, the judge swaps all pairs of nearly equal ones; a sample shows about half of them swapped."""
    rng = np.random.default_rng(5)
    noise = rng.normal(0, 0.3, (2, 200, 6))
    means = np.array([[0.0, 0.02, 0.04, 0.06, 0.4, 0.8], [0.06, 0.04, 0.02, 0.0, 0.4, 0.8]])
    human, judge = noise - noise.mean(axis=1, keepdims=True) + means[:, None]
    truth = correlations(human.mean(axis=0)[None], judge.mean(axis=0)[None])[:2, 0]
    covered, narrow = np.zeros(2), 0
    for _ in range(200):
        topics = rng.integers(0, 200, 25)
        draws, halves = resampled(25, 6, 200, rng)
        found = _agreement(human[topics], judge[topics], draws, halves)
        covered += [one.low <= own <= one.high for one, own in zip(found, truth)]
        narrow += _agreement(human[topics], judge[topics], draws, halves[:0])[0].low > truth[0]
    assert (covered >= 186).all()
    assert narrow > 200 - covered[0]


@pytest.mark.parametrize("scale", [lambda grade: 33 * grade, lambda grade: grade + 1, lambda grade: grade - 1,
                                   lambda grade: (grade + 0.5) / 4])  # fmt: skip
def test_labels_on_another_scale_are_told(collection, scale):
    human, judges, runs = collection
    other = {topic: {name: scale(grade) for name, grade in own.items()} for topic, own in judges["good"].items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        leaderboard(human, {"other": other}, runs, "DCG@10", restore=False, n_resamples=20)
    assert "human grades are from 0 to 3" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaderboard(human, judges, runs, "DCG@10", restore=False, n_resamples=20)
