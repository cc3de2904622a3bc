"""Where output goes: whole files, devices and pipes that are written to, temporary files that go away."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from truerank.core import files
from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write, atomic_writes, check_target
from truerank.core.json_lines import JsonLines


@pytest.fixture(autouse=True)
def nothing_swept(monkeypatch):
    monkeypatch.setattr(files, "_swept", set())


def left(folder):
    return [name for name in os.listdir(folder) if name.endswith(files._SUFFIX)]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as stream:
        stream.write("new")
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.json"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_permissions_are_the_masks_or_the_old_files(tmp_path, mask, monkeypatch):
    before = os.umask(mask)
    monkeypatch.setattr(os, "umask", None)  # other threads create files meanwhile: the mask is never touched
    try:
        with atomic_write(tmp_path / "a") as stream:
            stream.write("x")
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o666 & ~mask
        os.chmod(tmp_path / "a", 0o640)
        with atomic_write(tmp_path / "a") as stream:
            stream.write("y")
        assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_fifo_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    check_target(path)
    with atomic_write(path, "wb") as stream:
        stream.write(b"scores\n")
    reader.join()
    assert got == [b"scores\n"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_stays_a_device(tmp_path):
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for path in ("/dev/null", link):
        check_target(path)
        with atomic_write(path) as stream:
            stream.write("x" * 100_000)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert link.is_symlink()


def test_an_open_descriptor_is_written_to_where_it_stands(tmp_path):
    with open(tmp_path / "log", "w") as log:
        log.write("before\n")
        log.flush()
        name = f"/dev/fd/{log.fileno()}"
        check_target(name)
        with atomic_write(name) as stream:
            stream.write("between\n")
        log.write("after\n")
    assert (tmp_path / "log").read_text() == "before\nbetween\nafter\n"


def test_a_full_device_is_an_error_that_names_it():
    with pytest.raises(OSError, match="No space left") as caught, atomic_write("/dev/full") as stream:
        stream.write("x" * 100_000)
    assert caught.value.filename == "/dev/full"


def test_a_pipe_without_reader_is_an_error(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with (
        pytest.raises(InvalidInputError, match="the reader closed the output"),
        atomic_write(f"/dev/fd/{write_end}") as stream,
    ):
        stream.write("x")
    os.close(write_end)


def test_outputs_are_probed(tmp_path):
    (tmp_path / "folder").mkdir()
    refused = {
        tmp_path / "folder": "is a folder",
        tmp_path / "no" / "m": "does not exist",
        "": "empty",
        "/dev/fd/999": "cannot be written",
        "a\0b": "NUL",
        tmp_path / ("x" * 300): "File name",
    }
    for path, what in refused.items():
        with pytest.raises(InvalidInputError, match=what):
            check_target(path)
    check_target(tmp_path / "fine")
    assert os.listdir(tmp_path) == ["folder"]


def test_what_a_kill_left_is_removed_and_what_is_being_written_is_not(tmp_path):
    code = (
        "import sys, os, signal\nfrom truerank.core.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as stream:\n"
        "    stream.write('half'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.json")], check=False)
    assert len(left(tmp_path)) == 1
    with atomic_write(tmp_path / "b.json") as stream:
        stream.write("mine")
        assert len(left(tmp_path)) == 1  # the left one is gone, the one in use is not
        files._swept.clear()
        with atomic_write(tmp_path / "c.json") as other:
            other.write("another")
    assert sorted(os.listdir(tmp_path)) == ["b.json", "c.json"]
    assert (tmp_path / "b.json").read_text() == "mine"


def test_two_files_are_one_step(tmp_path):
    (tmp_path / "a").write_text("old a")
    (tmp_path / "a.query").write_text("old query")
    with pytest.raises(RuntimeError), atomic_writes([tmp_path / "a", tmp_path / "a.query"]) as (first, second):
        first.write("new a")
        second.write("new query")
        raise RuntimeError
    assert (tmp_path / "a").read_text() == "old a"
    assert (tmp_path / "a.query").read_text() == "old query"
    with atomic_writes([tmp_path / "a", tmp_path / "a.query"]) as (first, second):
        first.write("new a")
        second.write("new query")
    assert (tmp_path / "a").read_text() == "new a"
    assert sorted(os.listdir(tmp_path)) == ["a", "a.query"]


def test_an_interrupt_between_two_renames_comes_after_both(tmp_path, monkeypatch):
    replace, calls = os.replace, []

    def interrupted(source, target):
        replace(source, target)
        calls.append(target)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupted)
    # A run that was started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), atomic_writes([tmp_path / "a", tmp_path / "b"]) as streams:
            for stream in streams:
                stream.write("new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) == 2
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_an_index_is_there_after_a_kill_between_its_renames(tmp_path):
    from truerank.io.documents import Document
    from truerank.text.index import Index, build_index

    documents = [Document("a", {"text": "heat"}, {}, {})]
    build_index(documents, tmp_path / "index")
    os.replace(tmp_path / "index", tmp_path / ".index.old")  # where the kill came
    assert Index(tmp_path / "index").n_documents == 1
    build_index(documents * 1, tmp_path / "index")
    assert sorted(os.listdir(tmp_path)) == ["index"]


@pytest.mark.parametrize(("step", "documents_left"), [(0, 1), (1, 1), (2, 2)])
def test_an_index_is_the_old_or_the_new_one_after_an_interrupt_among_its_renames(
    tmp_path, monkeypatch, step, documents_left
):
    from truerank.io.documents import Document
    from truerank.text import index
    from truerank.text.index import Index, build_index

    documents = [Document(name, {"text": "heat"}, {}, {}) for name in "ab"]
    build_index(documents[:1], tmp_path / "index")
    steps = []  # the old index set aside, the new one in its place, the old one removed

    def interrupted(call):
        def called(path, *more, **settings):
            if os.path.isdir(path):
                steps.append(path)
                if len(steps) == step + 1:
                    raise KeyboardInterrupt
            return call(path, *more, **settings)

        return called

    monkeypatch.setattr(os, "replace", interrupted(os.replace))
    monkeypatch.setattr(index, "remove_folder", interrupted(index.remove_folder))
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, tmp_path / "index")
    assert sorted(os.listdir(tmp_path)) == ["index"]
    assert Index(tmp_path / "index").n_documents == documents_left


def test_a_line_that_cannot_be_appended_whole_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "lines"
    lines = JsonLines(path, "JSON expected")
    lines.append(1)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        lines.append(2)
    assert path.read_text() == "1\n"


def test_a_temporary_file_whose_writer_never_began_is_removed_at_the_end(tmp_path):
    program = """
import sys
from truerank.cli.guard import as_program
from truerank.core.files import atomic_write

def command():
    global writer
    writer = atomic_write(sys.argv[1])
    writer.__enter__()  # an interrupt can fall between this and the body of `with`
    raise KeyboardInterrupt

import os
os._exit(as_program(command))
"""
    found = subprocess.run([sys.executable, "-c", program, str(tmp_path / "out.txt")], timeout=60)
    assert found.returncode == 130
    assert os.listdir(tmp_path) == []


def test_an_interrupt_inside_a_destructor_is_not_printed():
    program = """
import os, signal, time
from truerank.cli.guard import as_program

class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)  # the handler's KeyboardInterrupt cannot leave this method

def command():
    Held()
    time.sleep(20)
    return 0

signal.signal(signal.SIGINT, signal.default_int_handler)  # a run that was started in the background ignores it
os._exit(as_program(command))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert found.returncode == 130
    assert found.stderr == "truerank: interrupted\n"
