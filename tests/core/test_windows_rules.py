"""Files, locks, guards and text indexes under the rules of Windows, by a test double."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import truerank
from support.refusals import refused
from support.windows import install
from truerank.core.errors import InvalidInputError
from truerank.core.files import atomic_write, atomic_writes, check_target, one_step, remove_folder, sole_folder
from truerank.core.locks import DescriptorLock, locked
from truerank.io.documents import Document

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the double reads /proc")
HOLDER = """
import sys
from truerank.core.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def rules():
    patches = install()
    yield patches.refused
    patches.undo()


def test_the_double_refuses_what_windows_refuses(rules, tmp_path):
    path = tmp_path / "a"
    with open(path, "w") as stream:
        stream.write("x")
        stream.flush()
        for call in (lambda: os.replace(path, tmp_path / "b"), lambda: os.unlink(path)):
            with pytest.raises(PermissionError):
                call()
    np.save(tmp_path / "m.npy", np.arange(3))
    held = np.load(tmp_path / "m.npy", mmap_mode="r")
    with pytest.raises(PermissionError):
        os.unlink(tmp_path / "m.npy")
    del held
    os.unlink(tmp_path / "m.npy")
    assert len(rules) == 3


def test_files_are_written_and_replaced_whole(rules, tmp_path):
    path = tmp_path / "out.txt"
    for text in ("first\n", "second\n"):
        with atomic_write(path) as stream:
            stream.write(text)
        assert path.read_bytes() == text.encode()
    with pytest.raises(RuntimeError), atomic_write(path) as stream:
        stream.write("third")
        raise RuntimeError
    others = [tmp_path / name for name in ("a", "b")]
    with one_step(), atomic_writes(others, "wb") as streams:
        for stream in streams:
            stream.write(b"\n")
    check_target(path)
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "out.txt"]
    assert path.read_text() == "second\n"
    assert rules == []


def test_files_of_killed_runs_are_removed_and_those_of_others_stay(rules, tmp_path):
    left, held = tmp_path / ".out.0000.truerank-tmp", tmp_path / ".out.1111.truerank-tmp"
    left.write_text("left")
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, sys\nf = open(sys.argv[1], 'w')\nfcntl.flock(f, fcntl.LOCK_EX)\n"
         "print('held', flush=True)\nsys.stdin.readline()", str(held)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout.readline()
    with atomic_write(tmp_path / "new") as stream:
        stream.write("")
    assert sorted(os.listdir(tmp_path)) == [held.name, "new"]
    holder.communicate("\n")


def test_locks_hold_other_processes_off_without_fcntl(rules, tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline()
    with refused(InvalidInputError, code="locked"), locked(tmp_path):
        pass
    holder.communicate("\n")
    with locked(tmp_path), refused(InvalidInputError, code="locked"), locked(tmp_path):
        pass
    with open(tmp_path / "content", "wb+") as stream:  # the lock covers no byte of the content
        stream.write(b"content")
        stream.flush()
        DescriptorLock.take(stream.fileno())
        assert os.pread(stream.fileno(), 7, 0) == b"content"
        assert stream.tell() == 7


def test_folders_are_made_and_removed(rules, tmp_path):
    with sole_folder(tmp_path / "partial", r".*\.txt") as folder:
        (folder / "a.txt").write_text("")
        os.replace(folder, tmp_path / "whole")
    remove_folder(tmp_path / "whole", r".*\.txt")
    assert not (tmp_path / "whole").exists()
    assert rules == []


def test_a_text_index_is_built_replaced_and_read(rules, tmp_path):
    for words in ("river bank", "bank money river"):
        documents = [Document(name, {"text": text}, {}, {}) for name, text in (("d1", words), ("d2", "money"))]
        truerank.build_index(documents, tmp_path / "index")
    assert truerank.Index(tmp_path / "index").n_documents == 2
    assert rules == []


def test_commands_run_with_a_console_of_cp1252(tmp_path):
    (tmp_path / "q.txt").write_text("é 0 d1 1\né 0 d2 0\n語 0 d1 1\n", encoding="utf-8")
    (tmp_path / "r.txt").write_text("é Q0 d1 1 2.0 run\n語 Q0 d1 1 1.0 run\n", encoding="utf-8")
    words = ["evaluate", "--qrels", "q.txt", "--run", "r.txt", "--per-query", "--measures", "AP"]
    done = subprocess.run(
        [sys.executable, "-m", "truerank", *words], cwd=tmp_path, capture_output=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "é".encode("cp1252") in done.stdout
    assert b"\\u8a9e" in done.stdout


def test_interrupts_are_watched_without_set_blocking(rules):
    code = (
        "import os\nif hasattr(os, 'set_blocking'):\n    real = os.set_blocking\n    del os.set_blocking\n"
        "import signal\nset_wakeup_fd = signal.set_wakeup_fd\n"
        "signal.set_wakeup_fd = lambda number, **_: (real(number, False), set_wakeup_fd(number))[1]\n"
        "from truerank.cli import main\nraise SystemExit(main(['--version']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_models_are_saved_and_exported(rules, tmp_path):
    ranker = truerank.RidgeRanker().fit([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]], [0, 0, 1])
    truerank.save_model(ranker, tmp_path / "a model.json")
    assert truerank.load_model(tmp_path / "a model.json").predict([[1.0, 2.0]]).shape == (1,)
    rows = truerank.RankingData([[1.0, 2.0], [2.0, 0.5]], [1, 0], [1, 1], feature_names=["a", "b"])
    assert truerank.export_model(ranker, "python", ["a", "b"], certify=rows).certificate.rank_agreement == 1.0
    assert rules == []
