"""Edited model files: refused with a message, or fit for use; the wrong kind of model; what a fit may not save."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from support.edited_models import fuzz, models
from support.refusals import refused
from truerank import cli
from truerank.calibration.ranker import CalibratedRanker
from truerank.core.errors import InvalidInputError, ModelFileError
from truerank.data.ranking_data import RankingData
from truerank.features.per_query import MinMaxInQuery
from truerank.models.model_file import load_model, save_model
from truerank.rankers.adarank import AdaRank


def test_edited_models_are_refused_or_work(tmp_path):
    counts, wrong = fuzz(tmp_path, 100, seed=3)
    assert not wrong, [(name, what) for name, what, _ in wrong][:10]
    assert counts["refused"] > 24
    assert counts["works"] > 2


def test_edited_calibrators_are_refused_or_give_probabilities(tmp_path):
    counts, wrong = fuzz(tmp_path, 900, seed=1, only="calibrat")
    assert not wrong, [(name, what) for name, what, _ in wrong][:10]
    assert counts["works"] > 30


@pytest.mark.parametrize("content", ["null", "5", "{}", "[]", '"x"', '{"$class": 5}', '{"$class": "os.system"}',
                                     '{"$array": "float64", "shape": [1], "values": [1]}', "9" * 5000])  # fmt: skip
def test_no_model_where_the_model_should_be(tmp_path, content):
    path = tmp_path / "m.json"
    path.write_text('{"format": "truerank-model", "version": 1, "model": ' + content + "}")
    with refused(ModelFileError, path=str(path)):
        load_model(path)


def test_a_model_that_was_never_fitted_is_refused(tmp_path):
    with refused(InvalidInputError, code="not-fitted"):
        save_model(AdaRank(), tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    made = models()
    for name in ("calibrator platt", "pipeline", "adarank", "calibrated"):
        save_model(made[name], folder / f"{name.split()[-1]}.json")
    rows = np.random.default_rng(2).uniform(size=(12, 4)).round(3).tolist()
    lines = [
        f"{i % 2} qid:{i // 6} " + " ".join(f"{k}:{v}" for k, v in enumerate(row, 1)) for i, row in enumerate(rows)
    ]
    (folder / "d.txt").write_text(
        "# features: a b c d\n" + "\n".join(f"{line} # docid = d{i}" for i, line in enumerate(lines)) + "\n"
    )
    return folder


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["predict", "platt.json", "d.txt"], "PlattCalibrator, which does not rank"),
        (["predict", "--format", "run", "platt.json", "d.txt"], "PlattCalibrator, which does not rank"),
        (["evaluate", "--model", "platt.json", "--data", "d.txt"], "PlattCalibrator, which does not rank"),
        (["calibrate", "platt.json", "d.txt", "-o", "o.json"], "PlattCalibrator, not a ranker"),
        (["decide", "adarank.json", "d.txt"], "has no probabilities"),
    ],
)
def test_the_wrong_kind_of_model_is_one_line(files, words, what, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert cli.main(words) == 1
    error = capsys.readouterr().err
    assert what in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["decide", "calibrated.json", "d.txt"], ["predict", "--format", "run", "calibrated.json", "d.txt"]]
)
def test_named_files_are_taken_without_a_warning(files, words, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert cli.main(words) == 0
    assert "warning" not in capsys.readouterr().err


def test_pipelines_evaluate_and_are_calibrated(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert cli.main(["evaluate", "--model", "pipeline.json", "--data", "d.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 2
    data = RankingData(np.arange(24.0).reshape(12, 2), np.arange(12) % 2, qid=np.arange(12) // 6)
    calibrated = CalibratedRanker(make_pipeline(MinMaxInQuery(), AdaRank()), method="platt", cv=2).fit(data)
    assert calibrated.predict_proba(data).shape == (12, 2)
