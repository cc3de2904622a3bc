"""`cross-validate` gives the same figures alone, with --against, and from Python."""

import json
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import truerank
from support.refusals import refused
from truerank.cli import main
from truerank.core.errors import DataFileError, InvalidInputError
from truerank.core.names import resolve
from truerank.data.samples import load_sample
from truerank.io.letor.write import write_letor
from truerank.io.rows import rows_of
from truerank.measures import parse_measure
from truerank.models.registry import RANKERS

# Rankers that use validation queries, and some that do not.
NAMES = ("ridge", "adarank", "random", "single-feature")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """One file, five published parts, and published folds whose validation queries are not a whole part."""
    root = tmp_path_factory.mktemp("folds")
    write_letor(load_sample().take_queries(range(23)), root / "rows.txt")  # folds of different sizes
    parts = [load_sample().take_queries(range(5 * k, 5 * k + 4 + k % 2)) for k in range(5)]
    (root / "parts").mkdir()
    for k, part in enumerate(parts):
        write_letor(part, root / "parts" / f"S{k + 1}.txt")
    for k in range(3):
        (folder := root / "folds" / f"Fold{k + 1}").mkdir(parents=True)
        for stem, own in (("test", parts[k]), ("vali", parts[3].take_queries([0, 1])), ("train", parts[4])):
            write_letor(own, folder / f"{stem}.txt")
    return {"rows": str(root / "rows.txt"), "parts": str(root / "parts"), "folds": str(root / "folds")}


@pytest.fixture(scope="module")
def rows(places):
    return places["rows"]


def made(name, **settings):
    return resolve(RANKERS[name])(**settings)


def told(capsys, *words):
    assert main(["cross-validate", *words, "--measures", "AP nDCG@5", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("place", "division"),
    [("rows", []), ("rows", ["--cv", "3", "--seed", "7"]), ("parts", []), ("folds", [])],
    ids=["rows", "three", "parts", "folds"],
)
def test_one_question_has_one_answer(places, place, division, capsys):
    """Python, the command alone and the command with --against train on the same queries and give the same figures."""
    own = {} if not division else {"cv": 3, "random_state": 7}
    seed = {"random_state": own.get("random_state", 0)}
    rankers = {name: made(name, **seed if "random_state" in made(name).get_params() else {}) for name in NAMES}
    expected = truerank.cross_validate(rankers, rows_of(places[place]), "AP nDCG@5", **own)
    together = told(capsys, places[place], "--ranker", NAMES[0], "--against", *NAMES[1:], *division)
    assert together["means"] == expected.means
    assert together["trained_on"] == expected.trained_on
    assert len(set(expected.trained_on.values())) == 2
    for name in NAMES:
        alone = told(capsys, places[place], "--ranker", name, *division)
        one = truerank.cross_validate({name: rankers[name]}, rows_of(places[place]), "AP nDCG@5", **own).to_dict()
        assert alone == json.loads(json.dumps(one)) | {"remarks": alone["remarks"]}
        for key in ("means", "means_ties_averaged", "mean_of_folds", "trained_on", "fold_means"):
            assert alone[key][name] == together[key][name] == getattr(expected, key)[name]


def test_rankers_without_validation_learn_from_the_validation_queries(places):
    data = rows_of(places["folds"])
    for validate in (True, False):
        found = truerank.cross_validate({name: made(name) for name in NAMES[::2]}, data, "AP", validate=validate)
        assert found.trained_on["random"] == "training and validation queries of each fold"

    class Counted(truerank.SingleFeature):
        seen: list = []  # noqa: RUF012

        def fit(self, X, *args, **more):
            Counted.seen.append(X.n_queries)
            return super().fit(X, *args, **more)

    for validate in (True, False):
        truerank.cross_validate(Counted(), data, "AP", validate=validate)
    assert Counted.seen == [len(fold.train) + len(fold.valid) for fold in data.folds] * 2


@pytest.mark.parametrize("place", ["rows", "parts"])
def test_a_grid_is_chosen_on_the_validation_queries_of_each_fold(places, place, capsys):
    """By hand: fit every combination to the training queries, choose on the validation queries, and test."""
    data = rows_of(places[place])
    folds = truerank.data.splits.folds_of(data, validate=True, random_state=0)
    grid = {"alpha": [1e9, 0.1, 1.0]}
    choose = parse_measure("nDCG@5", convention="ranklib").tie_averaged()
    chosen, values = [], []
    for fold in folds:
        train, valid, test = map(data.take_queries, fold[1:])
        fitted = [made("ridge", **dict(zip(grid, one))).fit(train, eval_set=valid) for one in product(*grid.values())]
        best = int(np.argmax([choose.mean(valid.judgements(), ranker.predict(valid)) for ranker in fitted]))
        chosen.append({"alpha": grid["alpha"][best]})
        values.append(truerank.evaluate(test, fitted[best], "AP", convention="ranklib", training_queries="keep")["AP"])
    assert len({one["alpha"] for one in chosen}) > 1
    found = truerank.cross_validate(made("ridge"), data, "AP", grid=grid, select="nDCG@5")
    assert found.settings["RidgeRanker"] == chosen
    assert found.fold_means["RidgeRanker"]["AP"] == pytest.approx(values, rel=1e-12)
    words = [places[place], "--ranker", "ridge", "--grid", "alpha=1e9,0.1,1.0", "--select", "nDCG@5"]
    alone = told(capsys, *words)
    assert alone["settings"]["ridge"] == chosen
    assert alone["means"]["ridge"]["AP"] == found.means["RidgeRanker"]["AP"]
    prepared = told(capsys, *words, "--prepare", "z-score-in-query")
    assert all(one.keys() == {"alpha"} for one in prepared["settings"]["ridge"])
    assert prepared["means"] != alone["means"]


def test_what_a_grid_requires(rows):
    data = rows_of(rows)
    for grid, words in (
        ({"alpha": 1.0}, {"argument": "grid"}),
        ({"alpha": "12"}, {"argument": "grid"}),
        ({"alpha": []}, {"argument": "grid"}),
    ):
        with refused(InvalidInputError, **words):
            truerank.cross_validate(made("ridge"), data, "AP", grid=grid)
    with refused(InvalidInputError, argument="grid"):
        truerank.cross_validate({"ridge": made("ridge")}, data, "AP", grid={"alpha": [1.0, 2.0]})
    for own in ({"cv": truerank.QueryKFold(3)}, {"validate": False}):
        with refused(InvalidInputError, code="no-validation"):
            truerank.cross_validate(made("ridge"), data, "AP", grid={"alpha": [1.0, 2.0]}, **own)
    with refused(InvalidInputError, argument="cv"):
        truerank.cross_validate(made("single-feature"), data, "AP", cv=2, grid={"feature": [1, 2]})
    assert truerank.cross_validate(made("single-feature"), data, "AP", cv=2).n_folds == 2
    one = truerank.cross_validate(made("ridge"), data, "AP", cv=3, grid={"alpha": [2.0]})
    assert one.means == truerank.cross_validate(made("ridge", alpha=2.0), data, "AP", cv=3).means
    assert clone(made("ridge")).get_params() == made("ridge").get_params()


def test_a_grid_with_seeds_gives_each_seed_its_own_choice(rows):
    data, name = rows_of(rows), "pairwise-descent"
    grid = {"max_iter": [1, 200]}
    settings = {"cv": 3, "grid": {name: grid}, "select": "AP"}
    many = truerank.cross_validate({name: made(name)}, data, "AP", seeds=[3, 4], **settings)
    for k, seed in enumerate(many.seeds):
        one = truerank.cross_validate({name: made(name, random_state=seed)}, data, "AP", **settings)
        np.testing.assert_array_equal(many.values[name]["AP"][k], one.per_query[name]["AP"])
    assert many.trained_on == one.trained_on == {name: "1 of 3 folds, with one fold for validation"}


def test_rows_that_no_fold_tests_have_no_scores(places, tmp_path, capsys):
    told(capsys, places["folds"], "--ranker", "ridge", "--scores", str(tmp_path / "scores"))
    with refused(DataFileError, code="untested-rows"):
        truerank.evaluate(rows_of(places["folds"]), str(tmp_path / "scores"), "AP")


def test_scores_of_published_parts_are_in_the_order_of_each_test_file(places, tmp_path, capsys):
    told(capsys, places["parts"], "--ranker", "ridge", "--scores", str(tmp_path / "scores"))
    data = rows_of(places["parts"])
    found = truerank.cross_validate(made("ridge"), data, "AP")
    for k, fold in enumerate(data.folds, 1):
        own = np.loadtxt(tmp_path / "scores" / f"test-S{k}.txt")
        part = truerank.read_letor(f"{places['parts']}/S{k}.txt")
        assert len(own) == part.n_rows
        values = truerank.evaluate(part, own, "AP", convention="ranklib")["AP"]
        assert values == pytest.approx(found.fold_means["RidgeRanker"]["AP"][k - 1], rel=1e-12)
        assert len(fold.test) == part.n_queries
    words = [
        "compare",
        "--data",
        str(places["parts"]),
        "--scores",
        str(tmp_path / "scores"),
        "bm25",
        "-m",
        "AP",
        "--json",
    ]
    assert main(words) == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["means"]["scores"] == pytest.approx(found.means["RidgeRanker"]["AP"], rel=1e-12)


def test_the_text_names_the_mean_and_the_division(rows, capsys):
    lines = []
    for words in ([], ["--against", "single-feature"]):
        assert main(["cross-validate", rows, "--ranker", "ridge", "--measures", "AP", *words]) == 0
        lines.append(capsys.readouterr().out)
        assert "4 of 5 folds" in lines[-1]
    data = rows_of(rows)
    mean = truerank.cross_validate(made("ridge"), data, "AP", cv=5).means["RidgeRanker"]["AP"]
    assert all(f"{mean:.4f}" in text for text in lines)
    assert "mean of queries" in lines[0]
    assert "mean of folds" in lines[0]
