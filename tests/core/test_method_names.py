"""Methods are found by the names that papers and other programs give them."""

from __future__ import annotations

import shlex

import pytest

import truerank
from truerank.calibration import CALIBRATORS, calibrator_class
from truerank.cli import main, ranker_options
from truerank.cli.parser import typed_here
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


@pytest.mark.parametrize("name", PEOPLE_TYPE)
def test_the_error_names_what_to_type(name, capsys):
    hint = typed_here(name)
    assert hint
    with pytest.raises(InvalidInputError) as error:
        ranker_class(name)
    assert str(error.value).endswith(str(called_here(name)))
    assert main(["train", "none.txt", "--model", "none.json", "--ranker", name]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bennett", "A-Laplace", "gauss", "lr+noise"])
def test_calibrators_are_found_by_the_names_of_the_paper(name, capsys):
    assert main(["calibrate", "--scores", "s", "--data", "d", "-o", "c.json", "--method", name]) == 2
    hint = typed_here(name)
    assert hint in capsys.readouterr().err
    with pytest.raises(InvalidInputError) as error:
        calibrator_class(name)
    assert str(error.value).endswith(str(called_here(name)))
    typed = shlex.split(hint.rpartition(": ")[2])
    assert typed[:3] == ["truerank", "calibrate", "--method"]
    assert typed[3] in CALIBRATORS


@pytest.mark.parametrize("name", ["nothing", "", "-", "é"])
def test_other_names_have_no_hint(name):
    assert called_here(name) is None
    assert typed_here(name) == ""
