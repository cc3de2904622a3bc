"""The command line as a process: exit codes, closed and full streams, interrupts, errors that are not ours."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import truerank
from truerank import cli

LINES = "".join(f"{(i * 7) % 3} qid:{i // 6} 1:{i % 5} 2:{(i * i) % 7} # docid = d{i}\n" for i in range(60))


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "d.txt").write_text(LINES)
    return str(tmp_path / "d.txt")


@pytest.fixture
def model(tmp_path: Path, data: str) -> str:
    path = str(tmp_path / "m.json")
    with contextlib.redirect_stderr(io.StringIO()):
        assert cli.main(["train", data, "--ranker", "single-feature", "--model", path]) == 0
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
    with open("/dev/full", "wb") as full:
        out = truerank("predict", model, data, stdout=full.fileno())
    assert (out.returncode, out.stderr.count(b"\n")) == (1, 1)
    assert b"No space left" in out.stderr
    ours, theirs = os.pipe()
    os.close(ours)
    out = truerank("predict", model, data, stdout=theirs)
    os.close(theirs)
    assert (out.returncode, out.stderr) == (0, b"")


def test_outputs_that_are_no_files(data, model, capfd):
    assert cli.main(["predict", model, data]) == 0
    whole = capfd.readouterr().out
    assert len(whole.split()) == 60
    assert cli.main(["predict", model, data, "-o", "/dev/stdout"]) == 0
    assert capfd.readouterr().out == whole
    ours, theirs = os.pipe()
    assert cli.main(["predict", model, data, "-o", f"/dev/fd/{theirs}"]) == 0
    os.close(theirs)
    with open(ours) as stream:
        assert stream.read() == whole
    assert cli.main(["train", data, "--ranker", "random", "--model", "/dev/null"]) == 0
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


def test_an_interrupt_ends_a_command_with_130_and_leaves_the_old_model(data, tmp_path):
    old = tmp_path / "old.json"
    old.write_text("the old model")
    long = ["--ranker", "pairwise-descent", "--set", "max_iter=1000000000"]
    words = [sys.executable, "-m", "truerank", "train", data, *long, "--model", str(old)]
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
