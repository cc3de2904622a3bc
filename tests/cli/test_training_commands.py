"""train, predict, rank, cross-validate and rankers, as a person calls them."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone

from support.processes import truerank
from truerank import ObliviousBoosting, RankingData
from truerank.cli import main
from truerank.data.samples import load_sample
from truerank.data.splits import query_folds
from truerank.io.letor.read import read_letor
from truerank.io.letor.write import write_letor
from truerank.io.trec import read_run
from truerank.models.model_file import load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    data = load_sample().take_queries(range(30))
    for k in range(5):
        write_letor(data.take_queries(range(k * 6, k * 6 + 6)), folder / f"S{k + 1}.txt")
    write_letor(data, folder / "all.txt.gz")
    return folder


@pytest.fixture(scope="module")
def model(files):
    path = str(files / "model.json")
    code = main(["train", str(files / "S1.txt"), "--valid", str(files / "S2.txt"), "--ranker", "adarank", "--set",
                 "measure=AP", "n_estimators=20", "--model", path])  # fmt: skip
    assert code == 0
    return path


def test_cross_validate_shows_what_ties_gave(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = [
        f"{int(k < 3)} qid:{q} 1:{0 if q % 2 else rng.random():.3f}\n" for q in range(30) for k in range(8)
    ]  # relevant documents first, and half of the queries all tied
    (tmp_path / "a.txt").write_text("".join(lines))
    words = ["cross-validate", str(tmp_path / "a.txt"), "--ranker", "single-feature", "--cv", "3"]
    assert main([*words, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["means"]["single-feature"]["AP"] > report["means_ties_averaged"]["single-feature"]["AP"] + 0.1
    assert main(words) == 0
    assert "ties averaged" in capsys.readouterr().out


def test_train_says_what_was_learned(files, capsys):
    path = str(files / "other.json")
    words = ["train", str(files / "S1.txt"), "--ranker", "adarank", "--model", path, "--json"]
    assert main(words) == 0
    summary = json.loads(capsys.readouterr().out)
    data = read_letor(files / "S1.txt")
    assert (summary["rows"], summary["queries"], summary["ranker"]) == (data.n_rows, data.n_queries, "adarank")
    assert summary["train"] == pytest.approx(load_model(path).score(data))


def test_predict_writes_one_exact_score_a_line(files, model, capsys, tmp_path):
    assert main(["predict", model, str(files / "S3.txt")]) == 0
    printed = [float(line) for line in capsys.readouterr().out.split()]
    expected = load_model(model).predict(read_letor(files / "S3.txt"))
    np.testing.assert_array_equal(printed, expected)
    assert main(["predict", model, str(files / "S3.txt"), "-o", str(tmp_path / "s.txt")]) == 0
    assert [float(line) for line in (tmp_path / "s.txt").read_text().split()] == printed


@pytest.mark.parametrize(("ending", "opened"), [("gz", gzip.open), ("xz", lzma.open)])
def test_scores_are_compressed_as_the_name_says(files, model, tmp_path, ending, opened):
    for name in ("scores.txt", f"scores.txt.{ending}"):
        assert main(["predict", model, str(files / "S3.txt"), "-o", str(tmp_path / name)]) == 0
    assert opened(tmp_path / f"scores.txt.{ending}").read() == (tmp_path / "scores.txt").read_bytes()


def test_rank_writes_a_run_that_reads_back(files, model, tmp_path):
    run = tmp_path / "test.run"
    assert main(["predict", "--format", "run", model, str(files / "S3.txt"), "-o", str(run), "--depth", "5"]) == 0
    lines = [line.split() for line in run.read_text().splitlines()]
    data = read_letor(files / "S3.txt")
    assert {line[0] for line in lines} == {str(q) for q in data.query_ids}
    assert [int(line[3]) for line in lines[:5]] == [1, 2, 3, 4, 5]
    assert {line[5] for line in lines} == {"truerank"}
    scores = [float(line[4]) for line in lines[:5]]
    assert scores == sorted(scores, reverse=True)
    read_run(run)


@pytest.mark.parametrize("folds", [".", "all.txt.gz"])
def test_cross_validate_reports_every_fold(files, folds, capsys):
    words = ["cross-validate", str(files / folds), "--ranker", "adarank", "--set", "n_estimators=5",
             "--grid", 'measure=["AP","nDCG@5"]',
             "--measures", "AP RR", "--json", "--convention", "mslr"]  # fmt: skip
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["convention"] == "mslr"
    assert (report["folds"], len(report["fold_names"])) == (5, 5)
    assert {one["measure"] for one in report["settings"]["adarank"]} <= {"AP", "nDCG@5"}
    of_folds = np.mean(report["fold_means"]["adarank"]["AP"])
    assert report["mean_of_folds"]["adarank"]["AP"] == pytest.approx(of_folds)


def test_letor_fold_folders_are_found(files, tmp_path, capsys):
    for k in (1, 2):
        (tmp_path / f"Fold{k}").mkdir()
        for name, part in zip(("train", "vali", "test"), (1, 2, 2 + k)):
            os.link(files / f"S{part}.txt", tmp_path / f"Fold{k}" / f"{name}.txt")
    assert main(["cross-validate", str(tmp_path), "--ranker", "adarank", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["fold_names"] == ["Fold1", "Fold2"]
    assert len(set(report["fold_means"]["adarank"]["AP"])) == 2


def test_rankers_lists_what_can_be_trained(capsys):
    assert main(["train", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["rankers"]
    assert listed["adarank"]["class"] == "AdaRank"
    assert "n_estimators" in listed["adarank"]["params"]
    assert main(["train", "--list", "adarank"]) == 0
    assert "Parameters" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["train", "{S1}", "--ranker", "nothing", "--model", "{out}"],
            2,
            "unknown ranker 'nothing'. Choose among: adarank",
        ),
        (["train", "{S1}", "--ranker", "adarank", "--set", "depth=3", "--model", "{out}"], 2, "no parameter 'depth'"),
        (["train", "{S1}", "--ranker", "adarank", "--set", "depth", "--model", "{out}"], 2, "--set must be key=value"),
        (["train", "{S1}", "--ranker", "adarank", "--model", "/nowhere/at/all/m.json"], 1, "does not exist"),
        (["train", "{S1}.gone", "--ranker", "adarank", "--model", "{out}"], 1, "No such file"),
        (["train", "{S1}", "--ranker", "adarank", "--set", "measure=XX", "--model", "{out}"], 1, "XX"),
        (["train", "{S1}", "--ranker", "adarank", "--set", "n_estimators=0", "--model", "{out}"], 1, "n_estimators"),
        (["predict", "{S1}", "{S1}"], 1, "not a model"),
        (["predict", "--format", "run", "{model}", "{S1}", "--depth", "0"], 2, "--depth"),
        (["predict", "--format", "run", "{model}", "{S1}", "--tag", "a b"], 2, "--tag"),
        (["cross-validate", "{folder}", "--ranker", "adarank", "--grid", "measure=AP"], 2, "must be a list"),
        (["cross-validate", "{S1}", "--ranker", "adarank", "--cv", "2"], 1, "cv must be 3"),
        (["cross-validate", "{S1}", "--ranker", "adarank", "--cv", "99"], 1, "99 folds require"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else None,
)
def test_misuse_and_failure_have_their_exit_codes_and_messages(files, model, tmp_path, capsys, words, code, message):
    places = {"S1": files / "S1.txt", "out": tmp_path / "m.json", "model": model, "folder": files}
    assert main([word.format(**places) for word in words]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert not (tmp_path / "m.json").exists()


def test_a_closed_pipe_ends_quietly(files, model):
    ours, theirs = os.pipe()

    def head():
        with open(ours) as stream:
            lines.append(next(stream))

    lines: list[str] = []
    reader = threading.Thread(target=head)
    reader.start()
    result = truerank("predict", str(model), str(files / "all.txt.gz"), stdout=theirs)
    os.close(theirs)
    reader.join()
    assert (result.returncode, result.stderr) == (0, b"")
    assert len(lines) == 1


def test_help_and_no_command():
    for words in (["--help"], ["train", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 0
    assert main([]) == main(["nothing"]) == 2


def test_the_first_compilation_is_announced_once(files, tmp_path):
    words = [sys.executable, "-m", "truerank", "train", str(files / "S1.txt"), "--ranker", "ridge"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = []
    for _ in range(2):
        result = subprocess.run([*words, "--model", str(tmp_path / "m.json")], env=environment, capture_output=True,
                                text=True, check=True)  # fmt: skip
        said.append(result.stderr.count("compiling numerical code"))
    assert said == [0 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 1, 0]


def test_lists_need_no_quotes_of_the_shell():
    from truerank.cli.cross_validate import _grid
    from truerank.cli.tune import parse_space

    assert parse_space(["leaves=constant,fuzzy", "C=0.1,1"]) == {"leaves": ["constant", "fuzzy"], "C": [0.1, 1]}
    assert _grid(["m=AP,RR"]) == _grid(['m=["AP","RR"]']) == {"m": ["AP", "RR"]}


def test_numbers_need_no_digit_before_the_point():
    from truerank.cli.parser import UsageError
    from truerank.cli.ranker_options import parse_settings
    from truerank.cli.tune import parse_space
    from truerank.inspection.tuning import Between

    assert parse_settings(["C=.5", "tol=1.e-3", "text=.5.1"]) == {"C": 0.5, "tol": 0.001, "text": ".5.1"}
    assert parse_settings(["C=0.1,1,10", "names=a,1", "word=,"]) == {"C": [0.1, 1, 10], "names": "a,1", "word": ","}
    assert parse_space(["C=.1,1", "rate=.01...3"]) == {"C": [0.1, 1], "rate": Between(0.01, 0.3)}
    for words in ("C=a..b", 'C="a".."b"', "C=3..1", "C=1.."):
        with pytest.raises(UsageError, match="--space C"):
            parse_space([words])


def clicks(table, seed=0):
    """Rows of query, click, two features, place and purchase, which also go into a table."""
    rng = np.random.default_rng(seed)
    rows = [
        (q, int(rng.random() < 0.5 / k), round(rng.random(), 3), round(rng.random(), 3), k, int(rng.integers(0, 3)))
        for q in range(40)
        for k in rng.permutation(6) + 1
    ]
    table.write_text("qid,y,bm25,price,shown,bought\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return rows


UNBIASED = ["--ranker", "oblivious-boosting", "--set", "n_estimators=5", "depth=2", "leaves=constant"]
UNBIASED += ["objective=unbiased-lambdarank"]


def test_positions_go_with_their_rows_into_every_fit(tmp_path, capsys):
    table, path = tmp_path / "clicks.csv", str(tmp_path / "model.json")
    X, y, qid, shown = (np.array([row[i] for row in clicks(table)]) for i in (slice(2, 4), 1, 0, 4))
    data = RankingData(X, y, qid, feature_names=["bm25", "price"]).with_position(shown)
    settings = {"n_estimators": 5, "depth": 2, "objective": "unbiased-lambdarank", "random_state": 0}
    ranker = ObliviousBoosting("constant", **settings)

    def run(*words, code=0):
        assert main([*words]) == code
        return json.loads(capsys.readouterr().out)

    words = ["--position", "shown", "--exclude", "bought", "--json"]
    scores = str(tmp_path / "scores.txt")
    run("cross-validate", str(table), *UNBIASED, *words, "--scores", scores, "--seed", "0")
    parts = query_folds(40, 5, random_state=0, query_ids=data.query_ids)
    expected = np.empty(len(y))
    for part in parts:
        train = data.take_queries(np.setdiff1d(np.arange(40), part))
        expected[np.isin(qid, part)] = clone(ranker).fit(train).predict(data.take_queries(part))
        plain = clone(ranker).fit(train.replaced(position=train.position * 0 + 1)).predict(data.take_queries(part))
        assert not np.array_equal(plain, expected[np.isin(qid, part)])
    np.testing.assert_array_equal(np.loadtxt(scores), expected)

    run("tune", str(table), *UNBIASED, *words, "--space", "learning_rate=0.1,0.3", "--model", path, "--cv", "2")
    rate = load_model(path).learning_rate
    direct = clone(ranker).set_params(learning_rate=rate).fit(data)
    np.testing.assert_array_equal(load_model(path).click_propensities_, direct.click_propensities_)
    other = ["--model", path, "--space", "objective=mse,lambdarank"]
    assert main(["tune", str(table), *UNBIASED[:-1], *words, *other]) == 1
    assert "position requires" in capsys.readouterr().err

    newer = tmp_path / "newer.csv"
    X, y, qid, shown = (np.array([row[i] for row in clicks(newer, 1)]) for i in (slice(2, 4), 1, 0, 4))
    held_out = tmp_path / "held_out.csv"
    clicks(held_out, 2)
    words = ["--held-out", str(held_out), "--position", "shown", "--json", "--candidate", str(tmp_path / "new.json")]
    found = run("retrain", path, str(newer), *words, code=3)
    assert found["how"] == "refitted"  # propensities cannot be continued
    again = clone(direct).fit(RankingData(X, y, qid, feature_names=["bm25", "price"]), position=shown)
    new = load_model(str(tmp_path / "new.json"))
    np.testing.assert_array_equal(new.click_propensities_, again.click_propensities_)
    assert new.feature_names_in_.tolist() == ["bm25", "price"]

    words = ["--position", "shown", "--exclude", "bought", "--json", "--prepare", "min-max-in-query"]
    run("train", str(table), *UNBIASED, *words, "--model", path)
    assert load_model(path).ranker_.feature_names_in_.tolist() == ["bm25", "price"]
    for command in (["cross-validate", str(table)], ["tune", str(table), "--model", path]):
        assert main([*command, "--ranker", "ridge", "--position", "shown"]) == 2
        assert "only oblivious-boosting reads" in capsys.readouterr().err
    assert main(["cross-validate", str(table), *UNBIASED, "--position", "shown", "--cluster", "local:1"]) == 2
    assert "cannot be combined with --cluster" in capsys.readouterr().err


def test_positions_are_a_column_that_is_no_feature(tmp_path, capsys):
    table = tmp_path / "clicks.csv"
    rows = clicks(table)
    path = str(tmp_path / "model.json")
    words = ["train", str(table), "--ranker", "oblivious-boosting", "--model", path]
    words += ["--set", "n_estimators=5", "depth=2"]
    assert main([*words, "objective=unbiased-lambdarank", "--position", "shown", "--exclude", "bought"]) == 0
    model = load_model(path)
    assert model.feature_names_in_.tolist() == ["bm25", "price"]
    X, y, qid, shown = (np.array([row[i] for row in rows]) for i in (slice(2, 4), 1, 0, 4))
    data = RankingData(X, y, qid, feature_names=["bm25", "price"])
    direct = ObliviousBoosting(n_estimators=5, depth=2, objective="unbiased-lambdarank", random_state=0)
    np.testing.assert_array_equal(model.predict(data), direct.fit(data, position=shown).predict(data))
    np.testing.assert_array_equal(model.click_propensities_, direct.click_propensities_)
    assert main(["predict", path, str(table)]) == 0  # finds its columns by name
    for choice in (["--features", "bm25", "price"], ["--exclude", "bought", "shown"]):
        assert main([*words, "objective=unbiased-lambdarank", "--position", "shown", *choice]) == 0
        assert load_model(path).feature_names_in_.tolist() == ["bm25", "price"]
        np.testing.assert_array_equal(load_model(path).predict(data), direct.predict(data))
    capsys.readouterr()
    for wrong, code, said in (
        (["--position", "place"], 1, "no column 'place'"),
        (["--position", "b*"], 2, "names 2"),
        (["--position", "shown"], 1, "position requires"),
        (["--position", "shown", "--cluster", "local:1"], 2, "--position cannot be combined with --cluster"),
    ):
        assert main([*words, *wrong]) == code
        assert said in capsys.readouterr().err
    other = ["train", str(table), "--ranker", "adarank", "--model", path, "--position", "shown"]
    assert main(other) == 2
    assert "only oblivious-boosting reads" in capsys.readouterr().err


def test_the_last_name_of_a_ranker_counts_with_its_own_settings(files, tmp_path, capsys):
    rows, model = str(files / "S1.txt"), str(tmp_path / "model.json")
    assert main(["train", rows, "--ranker", "SVM-MAP", "--ranker", "AdaRank-NDCG", "--model", model]) == 0
    assert load_model(model).measure == "nDCG@10"
    assert main(["train", rows, "--ranker", "SVM-MAP", "--set", "measure=RR", "--model", model]) == 2
    assert "--set measure has the values AP and RR" in capsys.readouterr().err
    assert main(["cross-validate", str(files / "all.txt.gz"), "--ranker", "list-net", "--against", "ListNet"]) == 2
    assert "named twice" in capsys.readouterr().err
