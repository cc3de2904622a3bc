"""Locks between processes: held, refused with the owner's number, and gone with their owner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from truerank.core.errors import InvalidInputError
from truerank.core.locks import locked

HOLDER = """
import sys
from truerank.core.locks import locked
with locked(sys.argv[1]):
    if sys.argv[2] == "fork":
        import os
        child = os.fork()
        if child == 0:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            os._exit(0)
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path, how: str = "alone") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    if how == "fork":
        assert process.stdout.readline()
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize("kind", ["folder", "file", "nothing"])
def test_a_second_process_is_refused_with_the_number_of_the_first(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "place"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("content")
    process = holder(path)
    with pytest.raises(InvalidInputError, match=f"place: process {process.pid} is writing here"), locked(path):
        pass
    end(process)
    with locked(path):  # a killed owner holds nothing
        pass
    assert [item.name for item in tmp_path.rglob("*lock*")] == []
    assert kind != "file" or path.read_text() == "content"


def test_a_forked_child_does_not_keep_the_lock_of_its_killed_parent(tmp_path: Path) -> None:
    process = holder(tmp_path, "fork")
    process.kill()
    process.wait()
    with locked(tmp_path):  # the child lives until its standard input ends
        pass
    end(process)


def test_this_process_is_refused_too(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(InvalidInputError, match=rf"process {os.getpid()} \(this one\)"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_an_exception_inside_frees_the_lock_and_passes(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError("inside")
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("planted", ["link", "fifo"])
def test_a_planted_lock_file_is_refused_and_what_it_names_is_kept(tmp_path: Path, planted: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "place").mkdir()
    lock = tmp_path / "place" / ".lock"
    if planted == "link":
        lock.symlink_to(victim)
    else:
        os.mkfifo(lock)
    with pytest.raises(InvalidInputError, match="cannot be locked"), locked(tmp_path / "place"):
        pass
    assert victim.read_text() == "precious"


def test_a_folder_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "missing").mkdir()
    with pytest.raises(InvalidInputError, match="cannot be locked"), locked(tmp_path / "missing" / "no" / "file"):
        pass


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout"])
def test_what_is_no_file_needs_no_lock(path: str, capfd) -> None:
    with locked(path), locked("/dev/null"):
        assert not os.path.exists("/dev/.null.lock")
