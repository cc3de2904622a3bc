"""The SVM-MAP experiment on small made-up runs: selection of runs, trials, resuming, tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reproductions.__main__ import main
from reproductions.protocol import ResultStore, rows_of

from reproductions import svm_map
from truerank.data.ranking_data import RankingData
from truerank.features.score_binning import ScoreBinning
from truerank.rankers.measure_svm import MeasureSVM
from truerank.rankers.pointwise_svm import PointwiseSVM


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten topics of forty documents, six systems of different quality, one short run and one manual one."""
    data = tmp_path_factory.mktemp("trec")
    root = data / "trec9-web-runs"
    (root / "runs").mkdir(parents=True)
    rng = np.random.default_rng(0)
    truth = rng.random((10, 60)) < 0.2
    lines = [f"{t} 0 d{d} {int(truth[t, d])}\n" for t in range(10) for d in range(60)]
    (root / "qrels").write_text("".join(lines))
    for number, noise in enumerate((0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 0.1)):
        name = "iit00m" if number == 6 else f"system{number}"
        rows = []
        for t in range(10):
            scores = truth[t] + noise * rng.normal(size=60)
            for rank, d in enumerate(np.argsort(-scores)[:40], 1):
                rows.append(f"{t} Q0 d{d} {rank} {scores[d]:.4f} {name}\n")
        (root / "runs" / f"{name}.run").write_text("".join(rows))
    (root / "runs" / "short.run").write_text("0 Q0 d1 1 1.0 short\n")
    return data


@pytest.fixture
def small_grids(monkeypatch):
    monkeypatch.setattr(svm_map, "GRIDS", {name: grid[2:8:3] for name, grid in svm_map.GRIDS.items()})


def words(folder, out, *more):
    return [
        "svm-map", "--data", str(folder), "--trials", "3", "--min-documents", "40", "--out", str(out), *more,
    ]  # fmt: skip


@pytest.mark.usefixtures("small_grids")
def test_tables_json_and_resuming(folder, tmp_path, capsys, monkeypatch):
    assert main(words(folder, tmp_path, "--json")) == 0
    first = capsys.readouterr()
    report = json.loads(first.out)
    assert "6 runs" in report["runs"]
    assert "svm-map and svm-roc: 3 of 3 trials" in first.err
    names = {"svm-map", "svm-roc", "svm-acc", "svm-acc2", "svm-acc3", "svm-acc4", "best-base", "second-base"}
    assert names <= set(report["MAP"])
    assert report["MAP"]["best-base"] == pytest.approx(max(report["best runs"].values()), abs=0.1)
    assert next(iter(report["best runs"])) == "system0"
    assert report["MAP"]["svm-map"] > 0.5
    for title in ("all runs", "without the best run"):
        assert report[title]["largest relative gap"] <= 1e-4
        assert report[title]["fits that stopped early"] == 0
        assert sum(report[title]["chosen"]["svm-map"]) == 3
    # A second run computes nothing and prints the same figures, and the tables.
    monkeypatch.setattr(svm_map, "one_trial", lambda *arguments: pytest.fail("computed again"))
    assert main(words(folder, tmp_path, "--json")) == 0
    second = capsys.readouterr()
    assert json.loads(second.out) == report
    assert "resuming" in second.err
    assert main(words(folder, tmp_path)) == 0
    text = capsys.readouterr().out
    assert "49/1 **" in text  # published, in the rows of the verdicts
    assert f"{report['MAP']['svm-map']:.4f}" in text
    # Without the accuracy variants the others keep their figures.
    assert main(words(folder, tmp_path, "--json", "--methods", "svm-map", "svm-roc")) == 0
    less = json.loads(capsys.readouterr().out)
    assert set(less["MAP"]) == names - {"svm-acc", "svm-acc2", "svm-acc3", "svm-acc4"} | {"third-base"}
    assert less["MAP"] == {name: report["MAP"][name] for name in less["MAP"]}


@pytest.mark.usefixtures("small_grids")
def test_a_killed_run_keeps_its_trials(folder, tmp_path, monkeypatch, capsys):
    class Killed(BaseException):
        pass

    calls, real = [], svm_map.one_trial

    def dies(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise Killed
        return real(*arguments)

    monkeypatch.setattr(svm_map, "one_trial", dies)
    with pytest.raises(Killed):
        main(words(folder, tmp_path))
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) == 3
    assert main(words(folder, tmp_path, "--json")) == 0
    assert len(calls) == 4 + 2 * 3 * len(svm_map.GROUPS) - 3
    whole = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(svm_map, "one_trial", real)
    assert main(words(folder, tmp_path / "other", "--json", "--jobs", "2")) == 0  # threads change nothing
    again = json.loads(capsys.readouterr().out)
    for report in (whole, again):
        for title in ("all runs", "without the best run"):
            del report[title]["CPU seconds"]
    assert set(whole["figure 2"]["functions"]) == set(list(whole["best runs"])[:3])
    assert whole == again


def test_the_figure_of_the_binning_is_what_the_ranker_adds(folder):
    parser = __import__("argparse").ArgumentParser()
    svm_map.configure(parser)
    task, _ = svm_map.load_task(parser.parse_args(words(folder, "unused")[1:]))
    train = np.arange(4)
    found = svm_map.learned_functions(task, train, 1.0, n_points=7)
    assert list(found["functions"]) == list(task.base)[:3]
    # Another way to the same values: documents that one run alone retrieved, through the fitted ranker.
    X = task.data.X[rows_of(task.data, train)]
    binning = ScoreBinning(output="binned").fit(X)
    data = RankingData.from_grouped(binning.transform(task.data.X), task.data.y, task.data.offsets)
    ranker = MeasureSVM("AP", C=1.0, rel=1, tol=svm_map.TOL).fit(data.take_queries(train))
    for name, values in found["functions"].items():
        alone = np.full((7, X.shape[1]), np.nan)
        alone[:, task.data.feature_names.index(name)] = found["x"]
        np.testing.assert_allclose(ranker.predict(binning.transform(alone)), values, rtol=0, atol=1e-12)
        assert len(set(values)) > 1


def test_relevant_documents_that_nobody_retrieved_count(folder):
    parser = __import__("argparse").ArgumentParser()
    svm_map.configure(parser)
    args = parser.parse_args(words(folder, "unused")[1:])
    task, _ = svm_map.load_task(args)
    total = int((svm_map.read_qrels(folder / "trec9-web-runs" / "qrels").grades > 0).sum())
    assert (task.judgements.grades > 0).sum() + (task.judgements.missing_grades > 0).sum() == total
    judgements, rows = svm_map.part_of(task, task.data.X, np.array([1, 4]))
    assert len(rows) == judgements.n_rows
    assert judgements.missing_offsets[-1] == len(judgements.missing_grades)
    assert len(ResultStore(None)) == 0


def test_errors(folder, tmp_path, capsys):
    for change, message in (
        (["--min-documents", "41"], "Lower --min-documents"),
        (["--trials", "0"], "--trials"),
    ):
        assert main(words(folder, tmp_path, *change)) == 1
        assert message in capsys.readouterr().err
    bad = words(folder, tmp_path)
    bad[2] = str(tmp_path / "nowhere")
    assert main(bad) == 1
    assert "folder" in capsys.readouterr().err


@pytest.mark.parametrize("class_weight", [None, "ratio"])
def test_rows_without_copies_have_the_same_optimum(class_weight):
    rng = np.random.default_rng(3)
    binned = ScoreBinning(n_thresholds=3, output="binned").fit_transform(rng.normal(size=(300, 2)))
    y = (rng.random(300) < 0.3).astype(float)
    data = RankingData.from_grouped(binned, y, np.array([0, 100, 300]))
    merged = svm_map.without_copies(data)
    assert merged.n_rows < 40
    assert np.repeat(merged.query_weight, np.diff(merged.offsets)).sum() == 300
    one, other = (PointwiseSVM(0.1, class_weight=class_weight, rel=1, tol=1e-8).fit(d) for d in (data, merged))
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-8)
