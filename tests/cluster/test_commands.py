"""`--cluster`: train, predict and rank by files that a pattern names, on a local cluster and on one that is there."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from truerank import load_sample, write_letor
from truerank.cli import main

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def scheduler():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore")
def test_train_predict_and_rank_write_what_one_machine_writes(tmp_path, capsys, scheduler):
    whole = load_sample().take_queries(range(40))
    write_letor(whole, tmp_path / "whole.txt")
    for number, queries in enumerate((range(25), range(25, 40))):
        write_letor(whole.take_queries(queries), tmp_path / f"part{number}.txt")
    pattern, cluster = str(tmp_path / "part?.txt"), ["--cluster", "local:1"]
    settings = ["--ranker", "oblivious-boosting", "--set", "leaves=constant", "n_estimators=3", "depth=3", "n_jobs=1"]
    model = str(tmp_path / "model.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["train", str(tmp_path / "whole.txt"), *settings, "--model", str(tmp_path / "one.json")]) == 0
        assert main(["train", pattern, *settings, "--model", model, *cluster]) == 0
        said = capsys.readouterr().err
        assert "1 workers" in said
        assert "dashboard" not in said
        cluster = ["--cluster", scheduler]
        assert main(["predict", model, pattern, "-o", str(tmp_path / "scores"), *cluster]) == 0
        assert main(["predict", "--format", "run", model, pattern, "-o", str(tmp_path / "runs"), *cluster]) == 0
        assert main(["train", pattern, *settings, "--model", model, *cluster, "--checkpoint", str(tmp_path / "c")]) == 0
        capsys.readouterr()
        measured = ["evaluate", "--model", model, "--json", "--data"]
        printed = []
        for given in ([pattern, *cluster], [str(tmp_path / "whole.txt")]):
            assert main([*measured, *given]) == 1
            assert "40 of 40 queries were used for training" in capsys.readouterr().err
            assert main([*measured, *given, "--training-queries", "keep"]) == 0
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1]
        (seen,) = json.loads(printed[0])["training_queries"].values()
        assert (seen["training_queries"], seen["recognisable"], seen["left_out"]) == (40, 40, 0)
        some = str(tmp_path / "some.txt")
        write_letor(load_sample().take_queries(range(25, 60)), some)
        for given in ([some, *cluster], [some]):  # 15 of the 35 queries trained the model
            assert main([*measured, *given]) == 0
            found = json.loads(capsys.readouterr().out)
            (seen,) = found["training_queries"].values()
            assert (seen["training_queries"], seen["left_out"], found["queries"]) == (15, 15, 20)
        described = []
        for given in ([pattern, *cluster], [str(tmp_path / "whole.txt")]):
            assert main(["describe", "--json", *given]) == 0
            described.append({k: v for k, v in json.loads(capsys.readouterr().out).items() if k != "files"})
        assert described[0] == described[1]
        for name, given in (("one", [str(tmp_path / "whole.txt")]), ("many", [pattern, *cluster])):
            out = ["--method", "platt", "--training-queries", "keep", "-o", str(tmp_path / f"{name}-calibrated.json")]
            assert main(["calibrate", model, *given, *out]) == 0
        both = ["--ranker", "ridge", "--cv", "3", "--seed", "1", "--json"]
        capsys.readouterr()
        assert main(["cross-validate", pattern, *both, *cluster]) == 0
        there = json.loads(capsys.readouterr().out)
        assert main(["cross-validate", str(tmp_path / "whole.txt"), *both]) == 0
        assert there["means"]["ridge"] == pytest.approx(json.loads(capsys.readouterr().out)["means"]["ridge"])
        some = [*settings, "--features", "1-9", "12", "--exclude", "3", "--model"]
        assert main(["train", str(tmp_path / "whole.txt"), *some, str(tmp_path / "some-one.json")]) == 0
        assert main(["train", pattern, *some, str(tmp_path / "some-many.json"), *cluster]) == 0
        assert main(["predict", str(tmp_path / "some-many.json"), pattern, "-o", str(tmp_path / "some"), *cluster]) == 0
    assert (tmp_path / "some-one.json").read_text() == (tmp_path / "some-many.json").read_text()
    assert len(list((tmp_path / "some").iterdir())) == 2
    assert (tmp_path / "one-calibrated.json").read_text() == (tmp_path / "many-calibrated.json").read_text()
    assert (tmp_path / "one.json").read_text() == (tmp_path / "model.json").read_text()
    assert main(["predict", model, str(tmp_path / "whole.txt"), "-o", str(tmp_path / "scores.txt")]) == 0
    assert (
        main(["predict", "--format", "run", model, str(tmp_path / "whole.txt"), "-o", str(tmp_path / "whole.run")]) == 0
    )
    for folder, single in (("scores", "scores.txt"), ("runs", "whole.run")):
        parts = sorted((tmp_path / folder).iterdir())
        assert len(parts) == 2
        assert "".join(part.read_text() for part in parts) == (tmp_path / single).read_text()
    assert np.isfinite(np.loadtxt(tmp_path / "scores.txt")).all()
    assert main(["predict", model, pattern, *cluster]) == 2
    assert main(["evaluate", "--data", pattern, "--scores", str(tmp_path / "scores.txt"), *cluster]) == 2
    assert main(["describe", pattern, "--scores", str(tmp_path / "scores.txt"), *cluster]) == 2


@pytest.mark.filterwarnings("ignore")
def test_words_of_grades_and_a_models_own_columns_are_read_as_on_one_machine(tmp_path, capsys, scheduler):
    pandas = pytest.importorskip("pandas")
    rng, words = np.random.default_rng(2), np.array(["Bad", "Fair", "Good"])
    frame = pandas.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120), "session": np.repeat(range(20), 6)})
    frame["label"] = words[np.digitize(frame.a + rng.normal(size=120), [-0.5, 0.5])]
    for name, own in (("whole", frame), ("part1", frame[:72]), ("part2", frame[72:])):
        own.to_csv(tmp_path / f"{name}.csv", index=False)
        own.to_parquet(tmp_path / f"{name}.parquet", index=False)
    there = [str(tmp_path / "part?.csv"), "--cluster", scheduler]
    thrifty = [str(tmp_path / "part?.parquet"), "--out-of-core", "--cluster", scheduler]
    named = ["--query-column", "session", "--grade-column", "label", "--grades", "Good=2", "Fair=1", "Bad=0"]
    settings = ["--ranker", "oblivious-boosting", "--set", "leaves=constant", "n_estimators=3", "n_jobs=1", *named]
    models, figures = [], []
    for name, data in (("one", [str(tmp_path / "whole.csv")]), ("many", there), ("thrifty", thrifty)):
        model = tmp_path / f"{name}.json"
        assert main(["train", *data, *settings, "--model", str(model)]) == 0
        capsys.readouterr()
        assert main(["evaluate", "--model", str(model), "--json", "--training-queries", "keep", "--data", *data]) == 0
        figures.append(json.loads(capsys.readouterr().out)["measures"])
        models.append(model.read_text())
    assert models[1:] == models[:1] * 2
    assert figures[1:] == figures[:1] * 2
    assert main(["predict", str(tmp_path / "one.json"), *thrifty, "-o", str(tmp_path / "scores")]) == 0
    assert [len(np.loadtxt(part)) for part in sorted((tmp_path / "scores").iterdir())] == [72, 48]
