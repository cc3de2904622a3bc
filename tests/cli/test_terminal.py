"""What commands print on a terminal: no line is wider, the verdict comes first, pipes receive whole lines."""

import io
import os
import random
import struct
import subprocess
import sys

import pytest

from truerank.cli import main
from truerank.core.printing import fitted_to, table

LONG = "a-system-whose-name-has-forty-characters"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch, folder):
    """Return the lines that a command prints on a terminal, without the states of progress bars, and its exit code."""

    def run(columns, *argv):
        stream = Terminal()
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", str(columns))
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            code = main(list(argv))
        return [line.rpartition("\r")[2] for line in stream.getvalue().split("\n")], code

    return run


def test_a_real_terminal(folder):
    pty = pytest.importorskip("pty")
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 70, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    program = [sys.executable, "-c", "import sys; from truerank.cli import main; sys.exit(main())"]
    command = [*program, "evaluate", "few-bm25.run", "--qrels", "qrels.txt", "--topics", "all"]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environment)
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the terminal's last process has ended
            part = b""
        if not part:
            break
        found += part
    os.close(ours)
    lines = [line.rpartition("\r")[2] for line in found.decode().replace("\r\n", "\n").split("\n")]
    assert child.wait() == 0
    assert 60 < max(map(len, lines)) <= 70


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    assert main(["sample", str(folder)]) == 0
    rows = [f"{q},d{k},{(q + k) % 3},{(q + k) % 3 + k / 9},{k % 5},{k + 1}" for q in range(30) for k in range(9)]
    (folder / "ranked.csv").write_text("\n".join(["qid,docid,y,bm25,old,rank", *rows]))
    (folder / f"{LONG}.run").write_bytes((folder / "dirichlet.run").read_bytes())
    train = [str(folder / "train.txt.gz"), "--set", "leaves=constant", "n_estimators=20"]
    assert main(["train", *train, "--model", str(folder / "model.json")]) == 0
    return folder


COMMANDS = {
    "compare": ["compare", "bm25.run", f"{LONG}.run", "latent.run", "--qrels", "qrels.txt"],
    "all-pairs": ["compare", "bm25.run", f"{LONG}.run", "latent.run", "--qrels", "qrels.txt", "--all-pairs"],
    "model": ["compare", "model.json", "--data", "test.parquet", "--baseline", "bm25.porter-stop.all"],
    "evaluate": ["evaluate", f"{LONG}.run", "--qrels", "qrels.txt"],
    "power": ["power", "bm25.run", "latent.run", "--qrels", "qrels.txt"],
    "gate": ["gate", "bm25.run", "--gold", "qrels.txt", "--baseline", "latent.run"],
    "describe": ["describe", "judgements.parquet"],
    "agree": ["judge", "agree", "few-human.txt", "few-judge.txt"],
    "explain": ["explain", "model.json", "test.parquet"],
    "remark": ["compare", "--data", "ranked.csv", "--scores", "bm25", "old", "--baseline", "old"],
    "refusal": ["train", "train.parquet"],
    "no-file": ["evaluate", f"{LONG}-{LONG}-{LONG}.run", "--qrels", "qrels.txt"],
}
VERDICT_FIRST = {"compare": "better than", "all-pairs": "better than", "evaluate": "AP of", "power": "queries",
                 "gate": "FAIL", "model": "bm25.porter-stop.all", "remark": "bm25 is better than old"}  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_is_wider_than_the_terminal(name, columns, on_terminal):
    lines, code = on_terminal(columns, *COMMANDS[name])
    assert code in (0, 1, 2)
    words = [line for line in lines if len(line) > columns and len(line.split()) > 1]
    assert not words
    if name in VERDICT_FIRST:
        assert VERDICT_FIRST[name] in " ".join(lines[:2])


def test_a_pipe_receives_whole_lines(folder, capsys, monkeypatch, on_terminal):
    monkeypatch.chdir(folder)
    assert main(COMMANDS["compare"]) == 0
    piped = capsys.readouterr().out
    wide, _ = on_terminal(80, *COMMANDS["compare"], "--wide")
    assert max(map(len, piped.split("\n"))) > 120
    assert piped.rstrip()[-300:] in "\n".join(wide)


def test_a_table_loses_spare_columns_first_and_no_text():
    rows = [["north/long-name_of.a-system" * 2, 0.25, "[0.1, 0.4]", 1.5]]
    header = ["system", "mean", "interval", "effect"]
    with fitted_to(60):
        narrow = table(rows, header, spare=("effect",))
    assert "effect" not in narrow.split("\n")[0]
    assert "without the columns effect" in narrow
    assert max(map(len, narrow.split("\n"))) <= 60
    assert first_column(narrow.split("\n")[:-1]) == rows[0][0]
    assert table(rows, header, spare=("effect",)).count("\n") == 2


def first_column(lines):
    width = len(lines[1].split()[0])
    return "".join(line[:width].strip() for line in lines[2:])


def test_any_width_keeps_all_characters_of_a_name():
    draw = random.Random(3)
    for _ in range(300):
        name = "".join(draw.choice("ab-/._, ") for _ in range(draw.randrange(1, 90))).strip() or "a"
        with fitted_to(draw.randrange(20, 60)):
            found = table([[name, 1.0]], ["n", "v"])
        assert first_column(found.split("\n")).replace(" ", "") == name.replace(" ", "")
