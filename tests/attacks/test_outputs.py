"""Surface: outputs that are one file, that people have filled in, or that belong together."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.processes import run
from truerank import RidgeRanker, load_sample, save_model, write_letor
from truerank.cli import main
from truerank.core import files
from truerank.core.files import atomic_write, atomic_writes, identity, one_step

RUN = "".join(f"{q} Q0 d{d} {d + 1} {9 - d} {{}}\n" for q in range(12) for d in range(9))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("made")
    train, data = (load_sample().take_queries(np.arange(start, start + 12)) for start in (0, 12))
    write_letor(data, place / "d.txt")
    save_model(RidgeRanker().fit(train), place / "m.json")
    for name in "ab":
        (place / f"{name}.run").write_text(RUN.format(*[name] * RUN.count("{}")))
    (place / "q.txt").write_text("".join(f"{q} 0 d{d} {(d + q) % 3}\n" for q in range(12) for d in range(9)))
    documents = (f'{{"id": "d{d}", "text": "heat {d % 3} flow", "label": "{d % 2}"}}\n' for d in range(40))
    (place / "docs.jsonl").write_text("".join(documents))
    return place


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


JUDGE = "judge plan a.run b.run --budget 30 -o X --page Y"
PAIRS = [
    JUDGE,
    "tune d.txt --ranker ridge --space alpha=[1] --cv 3 --state X --model Y",
    "retrain m.json d.txt --candidate X --previous Y",
    "retrain m.json d.txt --history X --candidate Y",
    "retrain m.json d.txt --model X --previous Y",
    "text classify docs.jsonl --train docs.jsonl --model X -o Y",
    "fuse a.run b.run --qrels q.txt --model X -o Y",
    "export m.json --to solr -o X --statistics Y",
]


@pytest.mark.parametrize("form", ["equal", "path", "link", "hard", "case"])
@pytest.mark.parametrize("command", PAIRS)
def test_two_outputs_are_never_one_file(folder, capsys, command, form):
    """Names that are equal, written otherwise, links to one place, or equal but for case; new files and old ones."""
    x, y = {"equal": ("new", "new"), "path": ("new", "./sub/../new"), "link": ("new", "link"),
            "hard": ("old", "twin"), "case": ("New", "nEW")}[form]  # fmt: skip
    os.mkdir("sub")
    Path("old").write_bytes(b"")
    os.symlink("new", "link")
    os.link("old", "twin")
    before = content(folder)
    assert main(command.replace("X", x).replace("Y", y).split()) == 2
    assert "must be different files" in capsys.readouterr().err
    assert content(folder) == before


READ = [(c, read) for c in PAIRS for read in ("a.run", "q.txt", "d.txt", "m.json", "docs.jsonl") if read in c]


@pytest.mark.parametrize(("command", "read"), READ)
def test_no_output_is_an_input(folder, capsys, command, read):
    os.symlink(read, "link")
    os.link(read, "hard")
    before = content(folder)
    for place in ("X", "Y"):
        for name in (read, "link", "hard"):
            words = command.replace(place, name).replace("X", "x.new").replace("Y", "y.new").split()
            if command.startswith("retrain") and "--model" in words and words[words.index("--model") + 1] == name:
                continue  # a model in production may be replaced
            assert main(words) == 2
            message = capsys.readouterr().err
            assert "would be overwritten" in message or "must be different files" in message
    assert content(folder) == before


@pytest.mark.parametrize(
    "line",
    [
        "convert d.txt rows --to lightgbm", "retrain m.json d.txt", "retrain m.json d.txt --model new.json",
        "split d.txt -o . --replace", "text links edges.txt --urls pagerank",
    ],
)  # fmt: skip
def test_names_that_a_command_derives_are_no_inputs(folder, capsys, line):
    Path("edges.txt").write_text("a b\n")
    derived = {
        "convert": "rows.query", "retrain": "m.json.history.json", "split": "train.txt", "text": "pagerank"
    }[line.split()[0]]  # fmt: skip
    if line.startswith("text"):
        line += " -o pagerank"
        Path("pagerank").write_text("a http://a/\nb http://b/\n")
    elif line.startswith("retrain m.json d.txt --model"):
        line = line.replace("d.txt", "new.json.reference.json")
        os.rename("d.txt", "new.json.reference.json")
        derived = "new.json.reference.json"
    else:
        line = line.replace("d.txt", derived)
        os.rename("d.txt", derived)
    before = content(folder)
    assert main(line.split()) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert content(folder) == before


def test_devices_and_names_of_columns_and_tags_are_no_files(folder, capsys):
    assert main(["judge", "plan", "a.run", "b.run", "--budget", "30", "-o", "/dev/null", "--page", "/dev/null"]) == 0
    for _ in range(2):
        assert main(["fuse", "a.run", "b.run", "--method", "rrf", "--tag", "fused", "-o", "fused"]) == 0
        assert main(["predict", "m.json", "d.txt", "--format", "run", "-o", "run"]) == 0
    assert main(["judge", "plan", "a.run", "b.run", "--budget", "30", "-o", "old.csv"]) == 0
    capsys.readouterr()


@pytest.mark.filterwarnings("default::truerank.core.errors.TruerankWarning")
def test_a_judged_plan_and_another_page_are_kept(folder, capsys):
    words = JUDGE.replace("X", "plan.csv").replace("Y", "page.html").split()
    assert main(words) == 0
    assert main(words) == 0  # nobody has graded, and the page is the same
    text = Path("plan.csv").read_text()
    Path("plan.csv").write_text(text.replace(",yes,\n", ",yes,2\n"))
    before = content(folder)
    assert main(words) == 1
    assert "grades that the new plan lacks" in capsys.readouterr().err
    assert main([*words[:-4], "-o", "other.csv", "--seed", "7", "--page", "page.html"]) == 1
    assert "page.html exists and differs" in capsys.readouterr().err
    assert content(folder) == before
    assert main([*words, "--replace"]) == 0
    assert Path("plan.csv").read_text() == text


DISK = """
import errno, os, sys
from truerank.core import files
from truerank.cli import main
real, wrong = files._NamedFile.write, sys.argv[1]
def write(self, data):
    if os.path.basename(self._output) == wrong:
        with files.naming(self._output):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return real(self, data)
files._NamedFile.write = write
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("wrong", ["x.new", "y.new"])
@pytest.mark.parametrize("command", [command for command in PAIRS if "statistics" not in command])
def test_a_full_disk_leaves_all_outputs_and_names_the_file(folder, command, wrong):
    if command.startswith("tune") and wrong == "x.new":
        pytest.skip("trials are appended as they end, so that the command can continue")
    for name in ("x.new", "y.new"):
        if name == "x.new" and ("--history X" in command or "--state X" in command):
            continue  # a history that is continued
        Path(name).write_bytes(b"" if command == JUDGE else b"old")
    before = content(folder)
    words = command.replace("X", "x.new").replace("Y", "y.new").split()
    if command.startswith("retrain"):
        words += ["--margin", "5", "--share", "0.7", *([] if "--history" in words else ["--history", "history"])]
    done = run(DISK, wrong, *words)
    assert done.returncode == 1, done.stderr
    assert f"{wrong}: No space left" in done.stderr.decode()
    after = content(folder)
    if command.startswith("tune"):
        after.pop("x.new")
    assert after == before


def test_a_step_is_one_for_all_files_that_are_written_inside(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("old")
    with one_step():
        with atomic_write(a) as stream:
            stream.write("new")
        with pytest.raises(KeyError), atomic_write(b) as stream:
            raise KeyError
        with atomic_writes([b, tmp_path / "c"]) as streams:
            streams[0].write("b")
        with one_step(), atomic_write(b) as stream:
            stream.write("later")
        assert a.read_text() == "old"
        assert not b.exists()
    assert (a.read_text(), b.read_text(), (tmp_path / "c").read_text()) == ("new", "later", "")
    with pytest.raises(KeyError), one_step():
        with atomic_write(a) as stream:
            stream.write("newer")
        raise KeyError
    assert a.read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


def test_the_error_names_the_file_of_several(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as caught, atomic_writes([tmp_path / "a", tmp_path / "b"]):
        monkeypatch.setattr(files.os, "fsync", full)
    assert caught.value.filename == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_identity(tmp_path):
    (tmp_path / "there").write_text("")
    os.link(tmp_path / "there", tmp_path / "hard")
    (tmp_path / "soft").symlink_to("new")
    assert identity(tmp_path / "there") == identity(tmp_path / "hard") != identity(tmp_path / "new")
    assert identity(tmp_path / "soft") == identity(tmp_path / "new") == identity(f"{tmp_path}/x/../NEW")
    assert identity(tmp_path / "caf\u00e9") == identity(tmp_path / "cafe\u0301")
    assert identity(tmp_path) is identity("/dev/null") is None


WRITER = """
import sys
from truerank.core.files import atomic_writes
end, mark = int(sys.argv[2]), sys.argv[3]
for number in range(end):
    with atomic_writes([f"{sys.argv[1]}/{name}" for name in "ab"]) as streams:
        for stream in streams:
            stream.write(f"{mark} {number}")
"""


def test_simultaneous_writers_do_not_mix_their_files(tmp_path):
    """At the end of many races over two files, both are of the same writer and the same turn."""
    for turn in range(4):
        line = [sys.executable, "-c", WRITER, str(tmp_path), str(40 + turn)]
        writers = [subprocess.Popen([*line, mark]) for mark in "xyz"]
        assert [process.wait() for process in writers] == [0, 0, 0]
        assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
