"""The command line as a process: exit codes, closed and full streams, interrupts, errors that are not ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from truerank import cli

LINES = "".join(f"{(i * 7) % 3} qid:{i // 6} 1:{i % 5} 2:{(i * i) % 7} # docid = d{i}\n" for i in range(60))


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "d.txt").write_text(LINES)
    return str(tmp_path / "d.txt")


@pytest.fixture
def model(tmp_path: Path, data: str, capsys) -> str:
    path = str(tmp_path / "m.json")
    assert cli.main(["train", data, "--ranker", "single-feature", "--model", path]) == 0
    capsys.readouterr()
    return path


def shell(command: str, **kwargs) -> subprocess.CompletedProcess:
    command = command.replace("truerank ", f"{sys.executable} -m truerank ")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, **kwargs)


def test_standard_streams_that_are_closed(data, model):
    out = shell(f"truerank predict {model} {data} >&-")
    assert out.returncode == 1
    assert "standard output is closed" in out.stderr
    out = shell(f"truerank predict {model} - <&-")
    assert out.returncode == 1
    assert "standard input is closed" in out.stderr
    out = shell(f"truerank predict {model} {data} -o {data}.scores >&- 2>&- <&-")
    assert out.returncode == 0
    assert len(Path(f"{data}.scores").read_text().split()) == 60


def test_full_and_broken_standard_output(data, model):
    out = shell(f"truerank predict {model} {data} > /dev/full")
    assert (out.returncode, out.stderr.count("\n")) == (1, 1)
    assert "No space left" in out.stderr
    out = shell(f"truerank predict {model} {data} | true; echo ${{PIPESTATUS[0]}}")
    assert out.stdout == "0\n"
    assert not out.stderr


def test_outputs_that_are_no_files(data, model, tmp_path):
    whole = shell(f"truerank predict {model} {data}").stdout
    assert len(whole.split()) == 60
    assert shell(f"truerank predict {model} {data} -o /dev/stdout").stdout == whole
    shell(f"truerank predict {model} {data} -o >(cat > {tmp_path}/copy); sleep 0.3")
    assert (tmp_path / "copy").read_text() == whole
    assert shell(f"truerank train {data} --ranker random --model /dev/null").returncode == 0
    assert not os.path.isfile("/dev/null")


def test_an_error_that_is_not_ours_is_one_line_a_report_and_70(data, model, monkeypatch, capsys, tmp_path):
    from truerank.rankers import pipeline

    def broken(*_):
        return 1 // 0

    monkeypatch.setattr(pipeline, "ranker_scores", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["predict", model, data]) == 70
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "ZeroDivisionError" in line
    report = next(tmp_path.glob("truerank-report-*")).read_text()
    assert str(next(tmp_path.glob("truerank-report-*"))) in line
    assert "Traceback" in report
    assert "broken" in report
    assert "predict" in report


def test_memory_errors_say_what_to_do(data, model, monkeypatch, capsys):
    from truerank.rankers import pipeline

    def hungry(*_):
        raise MemoryError("Unable to allocate 32.0 GiB")

    monkeypatch.setattr(pipeline, "ranker_scores", hungry)
    assert cli.main(["predict", model, data]) == 1
    error = capsys.readouterr().err
    assert "--sparse" in error
    assert "--n-features" in error


@pytest.mark.parametrize("ranker", ["pairwise-descent", "pointwise-svm", "adarank"])
def test_an_interrupt_ends_a_command_with_130_and_leaves_the_old_model(ranker, data, tmp_path):
    old = tmp_path / "old.json"
    old.write_text("the old model")
    long = {
        "pairwise-descent": ["max_iter=1000000000"],
        "pointwise-svm": ["max_iter=100000000", "tol=1e-300", "rel=1", "C=1e6"],
        "adarank": ["n_estimators=100000000", "patience=100000000", 'measure="nDCG@10"'],
    }[ranker]
    words = [sys.executable, "-m", "truerank", "train", data, "--ranker", ranker, "--model", str(old), "--set", *long]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    said = next((line for line in process.stderr if "fitting" in line), None)  # how far it is, after two seconds
    if said is None:
        pytest.skip("the fit was over before the interrupt")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    if process.returncode == 0:
        pytest.skip(f"the fit was over when the interrupt came: {error}")
    assert process.returncode == 130
    assert "Traceback" not in error
    assert "interrupted" in error
    assert old.read_text() == "the old model"
    assert sorted(os.listdir(tmp_path)) == ["d.txt", "old.json"]
