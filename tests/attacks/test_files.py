"""Links and files that lie where `index` writes: refused, and nothing that is not its own is removed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from truerank.cli import main
from truerank.core import files
from truerank.core.files import sole_folder
from truerank.core.interrupts import REMIND_AFTER, Interruptible

DOCUMENTS = '{"id": "a", "text": "heat flow"}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text(DOCUMENTS)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "numbers.npy").write_text("precious")
    return tmp_path


@pytest.mark.parametrize("name", [".films.partial", ".films.old"])
def test_a_planted_link_is_not_followed(folder, capsys, name):
    (folder / name).symlink_to(folder / "elsewhere")
    assert main(["text", "index", "d.jsonl", "-o", "films"]) == 1
    assert "symbolic link" in capsys.readouterr().err
    assert (folder / "elsewhere" / "numbers.npy").read_text() == "precious"
    assert (folder / name).is_symlink()


@pytest.mark.parametrize("name", [".films.partial", ".films.old", "films"])
def test_a_file_that_is_no_part_of_an_index_is_kept(folder, capsys, name):
    assert main(["text", "index", "d.jsonl", "-o", "films"]) == 0
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "diary.txt").write_text("precious")
    capsys.readouterr()
    assert main(["text", "index", "d.jsonl", "-o", "films"]) == 1
    assert "'diary.txt'" in capsys.readouterr().err
    assert (folder / name / "diary.txt").read_text() == "precious"


def test_an_index_behind_a_link_is_replaced_there(folder):
    (folder / "films").symlink_to(folder / "place")
    for _ in range(2):
        assert main(["text", "index", "d.jsonl", "-o", "films"]) == 0
    assert (folder / "films").is_symlink()
    assert sorted(path.name for path in folder.iterdir()) == ["d.jsonl", "elsewhere", "films", "place"]


@pytest.mark.filterwarnings("default::truerank.core.errors.TruerankWarning")
def test_documents_with_a_field_of_a_reserved_name_are_skipped_like_other_bad_ones(folder, capsys):
    (folder / "d.jsonl").write_text(DOCUMENTS + '{"id": "b", "all": "heat"}\n')
    assert main(["text", "index", "d.jsonl", "-o", "films"]) == 1
    assert "must not be called 'all'" in capsys.readouterr().err
    assert main(["text", "index", "d.jsonl", "-o", "films", "--bad", "skip"]) == 0
    assert "bad documents were left out: 1" in capsys.readouterr().err


def test_an_interrupt_while_a_folder_is_made_leaves_nothing(tmp_path, monkeypatch):
    """The interrupt came between the folder and the block that removes it."""
    make = Path.mkdir

    def interrupted(path, *args, **settings):
        make(path, *args, **settings)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), sole_folder(tmp_path / "new", ".*"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="interrupts are repeated by a signal to a thread")
def test_a_folder_is_removed_although_the_interrupt_is_repeated(tmp_path, monkeypatch):
    """`Interruptible` interrupts again after a moment, while a slow disk still removes the files."""
    empty = files._empty

    def slowly(folder, known):
        if any(folder.iterdir()):
            time.sleep(3 * REMIND_AFTER)
        empty(folder, known)

    monkeypatch.setattr(files, "_empty", slowly)
    with pytest.raises(KeyboardInterrupt), Interruptible(), sole_folder(tmp_path / "new", ".*") as folder:
        (folder / "part").write_text("")
        signal.raise_signal(signal.SIGINT)
    assert not (tmp_path / "new").exists()
