"""Locks between processes: held, refused with the owner's number, and gone with their owner."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.refusals import refused
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
    with refused(InvalidInputError, code="locked"), locked(path):
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
        refused(InvalidInputError, code="locked"),
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
    with refused(InvalidInputError, code="no-lock"), locked(tmp_path / "place"):
        pass
    assert victim.read_text() == "precious"


def test_a_folder_that_is_missing_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "missing").mkdir()
    with refused(InvalidInputError, code="no-lock"), locked(tmp_path / "missing" / "no" / "file"):
        pass


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout"])
def test_what_is_no_file_needs_no_lock(path: str, capfd) -> None:
    with locked(path), locked("/dev/null"):
        assert not os.path.exists("/dev/.null.lock")


@pytest.mark.parametrize("content", ["", "precious\n", "12345\n", "truerank, process 7 and more\n"])
def test_a_lock_file_of_another_program_is_neither_changed_nor_removed(tmp_path: Path, content: str) -> None:
    foreign = tmp_path / ".place.lock"
    foreign.write_text(content)
    before = foreign.stat()
    with locked(tmp_path / "place"):
        with refused(InvalidInputError, code="locked"), locked(tmp_path / "place"):
            pass
        assert foreign.read_text() == content
    assert foreign.read_text() == content
    assert (foreign.stat().st_ino, foreign.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_lock_file_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    end(holder(tmp_path / "place"))
    assert (tmp_path / ".place.lock").exists()
    with locked(tmp_path / "place"):
        pass
    assert list(tmp_path.iterdir()) == []


CONTENDER = """
import sys, time
from truerank.core.errors import InvalidInputError
from truerank.core.locks import locked
end, held = time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end or not held:
    try:
        with locked(sys.argv[1]):
            with open(sys.argv[1] + ".inside", "x"):
                pass
            import os
            os.unlink(sys.argv[1] + ".inside")
            held += 1
    except InvalidInputError as error:
        assert "is writing to it" in str(error), error
print(held)
"""


@pytest.mark.parametrize("foreign", [False, True])
def test_contenders_are_never_inside_together(tmp_path: Path, foreign: bool) -> None:
    """Creation, take-over and removal of the lock file race with each other thousands of times."""
    if foreign:
        (tmp_path / ".place.lock").write_text("another program's")
    line = [sys.executable, "-c", CONTENDER, str(tmp_path / "place"), "1.0"]
    contenders = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    results = [process.communicate() for process in contenders]
    assert [process.returncode for process in contenders] == [0, 0, 0], results
    assert all(int(held) > 0 for held, _ in results)
    assert [path.name for path in tmp_path.iterdir()] == ([".place.lock"] if foreign else [])
