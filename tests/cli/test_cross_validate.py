"""`cross-validate` gives the same figures alone, with --against, and from Python."""

import json

import pytest

import truerank
from truerank.cli import main
from truerank.data.samples import load_sample
from truerank.io.letor.write import write_letor
from truerank.rankers.adarank import AdaRank
from truerank.rankers.baselines import RidgeRanker

# Rankers that use validation queries, and one that does not.
NAMES = ("ridge", "adarank", "random")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("folds") / "cv.txt"
    write_letor(load_sample().take_queries(range(23)), path)  # folds of different sizes
    return str(path)


def told(capsys, *words):
    assert main(["cross-validate", *words, "--measures", "AP nDCG@5", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("division", [[], ["--cv", "3", "--seed", "7"]])
def test_a_ranker_has_the_same_figures_alone_and_compared(rows, division, capsys):
    together = told(capsys, rows, "--ranker", NAMES[0], "--against", *NAMES[1:], *division)
    for name in NAMES:
        alone = told(capsys, rows, "--ranker", name, *division)
        assert alone["means"][name] == pytest.approx(together["means"][name], rel=1e-12)
        assert alone["trained_on"][name] == together["trained_on"][name]
        of_folds = sum(fold["measures"]["AP"] for fold in alone["folds"]) / len(alone["folds"])
        assert alone["mean_of_folds"][name]["AP"] == pytest.approx(of_folds)
        assert alone["mean_of_folds"][name]["AP"] != pytest.approx(alone["means"][name]["AP"], abs=1e-6)


def test_published_parts_give_the_same_figures_alone_and_compared(tmp_path, capsys):
    for k in range(5):
        write_letor(load_sample().take_queries(range(5 * k, 5 * k + 4 + k % 2)), tmp_path / f"S{k + 1}.txt")
    together = told(capsys, str(tmp_path), "--ranker", "ridge", "--against", "adarank")
    for name in ("ridge", "adarank"):
        alone = told(capsys, str(tmp_path), "--ranker", name)
        assert alone["means"][name] == pytest.approx(together["means"][name], rel=1e-12)
        assert alone["trained_on"][name] == together["trained_on"][name] == "training queries of each fold"


def test_the_command_and_python_give_the_same_figures(rows, capsys):
    data = truerank.read_letor(rows)
    for name, ranker in (("ridge", RidgeRanker()), ("adarank", AdaRank())):
        expected = truerank.cross_validate(ranker, data, "AP nDCG@5", cv=5, validate=True)
        alone = told(capsys, rows, "--ranker", name)
        assert alone["means"][name] == pytest.approx(expected.means[type(ranker).__name__], rel=1e-12)
        of_folds = expected.fold_means[type(ranker).__name__]["AP"]
        assert [fold["measures"]["AP"] for fold in alone["folds"]] == pytest.approx(of_folds, rel=1e-12)
        assert alone["trained_on"] == {name: "3 of 5 folds, with one fold for validation"}
    best = truerank.cross_validate(truerank.SingleFeature(), data, "AP nDCG@5", cv=5)
    alone = told(capsys, rows, "--ranker", "single-feature")
    assert alone["means"]["single-feature"] == pytest.approx(best.means["SingleFeature"], rel=1e-12)
    assert alone["trained_on"] == {"single-feature": "4 of 5 folds"}
    alone = told(capsys, rows, "--ranker", "single-feature", "--grid", 'measure=["AP","nDCG@5"]')
    assert alone["trained_on"] == {"single-feature": "3 of 5 folds, with one fold for validation"}


def test_the_text_names_the_mean_and_the_division(rows, capsys):
    lines = []
    for words in ([], ["--against", "single-feature"]):
        assert main(["cross-validate", rows, "--ranker", "ridge", "--measures", "AP", *words]) == 0
        lines.append(capsys.readouterr().out)
        assert "3 of 5 folds" in lines[-1]
    data = truerank.read_letor(rows)
    mean = truerank.cross_validate(RidgeRanker(), data, "AP", cv=5, validate=True).means["RidgeRanker"]["AP"]
    assert all(f"{mean:.4f}" in text for text in lines)
    assert "mean of queries" in lines[0]
    assert "mean of folds" in lines[0]
