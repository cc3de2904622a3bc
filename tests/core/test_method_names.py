"""Methods are found by the names that papers and other programs give them."""

from __future__ import annotations

import pytest

import truerank
from truerank.calibration import CALIBRATORS, calibrator_class
from truerank.cli import command_parser, main, ranker_options
from truerank.core.errors import InvalidInputError
from truerank.core.method_names import METHODS, called_here
from truerank.models.registry import RANKERS, ranker_class

PEOPLE_TYPE = [
    "svm-map", "svmmap", "SVM_MAP", "fuzzy-trees", "FuzzyTrees", "lambdamart", "LambdaMART", "lambdarank", "sculley",
    "pegasos", "bennett", "belous", "ranknet", "svmrank", "ranking-svm", "mart", "yetirank", "sofia-ml", "svm-roc",
    "polynomial-trees", "a-laplace",
]  # fmt: skip


@pytest.mark.parametrize("method", sorted(set(METHODS.values())), ids=lambda method: f"{method.name} {method.setting}")
def test_every_method_is_a_class_with_this_setting(method):
    cls = getattr(truerank, method.cls)
    if method.kind == "calibrator":
        assert calibrator_class(method.name) is cls
        return
    settings = ranker_options.parse_settings([method.setting] if method.setting else [])
    ranker = ranker_options.make_ranker(method.name, settings)
    assert type(ranker) is cls
    for name, value in settings.items():
        assert getattr(ranker, name) == value


def test_no_name_of_a_ranker_stands_for_another():
    assert not {name.replace("-", "") for name in RANKERS} & set(METHODS)


@pytest.mark.parametrize("name", [name for name in PEOPLE_TYPE if called_here(name).kind == "ranker"])
def test_rankers_are_made_by_the_names_of_papers(name):
    method = called_here(name)
    ranker = ranker_options.make_ranker(name, {})
    assert type(ranker).__name__ == method.cls
    for key, value in ranker_options.parse_settings([method.setting] if method.setting else []).items():
        assert getattr(ranker, key) == value
    with pytest.raises(InvalidInputError) as error:
        ranker_class(name)
    assert str(error.value).endswith(str(method))


@pytest.mark.parametrize(
    ("name", "own"), [("ListNet", "list-net"), ("RankSVM", "rank-svm"), ("rankboost", "rank-boost")]
)
def test_rankers_are_found_without_case_and_punctuation(name, own):
    assert ranker_options.ranker_named(name) == (own, [])


def test_the_setting_of_a_paper_is_one_of_the_command(tmp_path, capsys):
    data = tmp_path / "d.txt"
    data.write_text("".join(f"{k % 2} qid:{q} 1:{k} 2:{k * q}\n" for q in range(1, 4) for k in range(6)))
    words = ["train", str(data), "--model", str(tmp_path / "m.json"), "--ranker", "AdaRank-NDCG", "--set"]
    assert main([*words, "n_estimators=2"]) == 0
    model = truerank.load_model(tmp_path / "m.json")
    assert (model.measure, model.n_estimators) == ("nDCG@10", 2)
    capsys.readouterr()
    assert main([*words, "measure=AP"]) == 2
    assert "--set measure has the values nDCG@10 and AP" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bennett", "A-Laplace", "gauss", "lr+noise"])
def test_calibrators_are_found_by_the_names_of_the_paper(name):
    words = ["--scores", "s", "--data", "d", "-o", "c.json", "--method", name]
    own = command_parser("calibrate")[1].parse_args(words).method
    assert own == called_here(name).name
    assert own in CALIBRATORS
    with pytest.raises(InvalidInputError) as error:
        calibrator_class(name)
    assert str(error.value).endswith(str(called_here(name)))


@pytest.mark.parametrize("name", ["nothing", "", "-", "é"])
def test_other_names_have_no_hint(name):
    assert called_here(name) is None
